"""The call stack where a thread stands in its past, as frames of LLDB (22 and later).

The plugin registers HistoryFrames when it has moved a thread there. Of the past only program
counters are known: the frames have functions and source lines, and no variables.
"""

from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider

MAX_TEXT = 1 << 16


class HistoryFrames(ScriptedFrameProvider):
    """Frames with the program counters in `pcs`, innermost first, of the thread `tid` at the stop
    with the number `stop`. Any other thread, and the same one elsewhere, keeps its own."""

    def __init__(self, input_frames, args):
        super().__init__(input_frames, args)
        self.pcs = []
        known = self.thread is not None and self.process is not None
        if known and self.told("tid") == f"t{self.thread.GetThreadID()}":
            if self.told("stop") == f"s{self.process.GetStopID()}":
                self.pcs = [int(pc, 16) for pc in self.told("pcs").split(":") if pc]

    def told(self, key):
        """What the plugin said of it; empty if nothing."""
        if self.args is None:
            return ""
        return self.args.GetValueForKey(key).GetStringValue(MAX_TEXT) or ""

    @staticmethod
    def get_description():
        """As `target frame-provider list` has it."""
        return "tailtrace: the call stack at a position of the history"

    def get_frame_at_index(self, index):
        """The frame where the thread stands is its own, with what registers are known."""
        if index == 0 or not self.pcs:
            return index if index < len(self.input_frames) else None
        return {"idx": index, "pc": self.pcs[index]} if index < len(self.pcs) else None
