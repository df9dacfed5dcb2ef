"""The call stack of a past moment as LLDB's own frames, which every window over LLDB shows.

The plugin's steps back turn it on, `tailtrace live` turns it off. LLDB 22 asks for frames here
(ScriptedFrameProvider); the debug server, which has the history, says which calls were open. Of a
moment that nothing is known of, as of every other thread, LLDB's own frames are shown.

Threading: on LLDB's threads.
"""

import json
import threading
import time

import lldb
from lldb.plugins.scripted_process import INTEL64_GPR, ScriptedFrame

LIMIT_FRAMES = 256
PATIENCE_S = 1
EVENT_HANDLER = "dbg.evt-handler"  # the name of LLDB's thread, as the kernel has it

_stacks = {}  # thread: its HistoryFrames since it stopped last
_known = {}  # thread: the callers that were found out last
_hooks = {}  # target, whatever runs in it: LLDB's number of the hook that follows its stops


class HistoryFrame(ScriptedFrame):
    """A caller: where it goes on, and the place of its call. No register of it is known."""

    def __init__(self, index, target, pc, place, inlined):  # the base class's own would use LLDB
        self.index, self.target, self.pc, self.place = index, target, pc, place
        self.inlined = inlined
        self.name = None
        self.register_info = {"sets": ["General Purpose Registers"], "registers": INTEL64_GPR}

    def get_id(self):
        return self.index

    def get_pc(self):
        return self.pc

    def get_symbol_context(self):
        return self.place

    def is_inlined(self):
        return self.inlined

    def is_artificial(self):
        return False

    def get_register_context(self):
        return None

    def get_variables(self, *_):
        """Each with an error: where they were is not known. LLDB ends when it has no list of them,
        and is to evaluate an expression."""
        found = lldb.SBValueList()
        found.Append(lldb.SBValue())  # without any it is no list
        block = self.place.GetBlock() if _is_safe() else lldb.SBBlock()
        while block.IsValid():
            found.Append(block.GetVariables(self.target, True, True, True))
            block = block.GetParent() if not block.IsInlined() else lldb.SBBlock()
        return found


def _is_safe():
    """Whether LLDB may be used here. Its event handler shows frames without having locked the
    target first, while a command may have, and wait for the frames."""
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", encoding="ascii") as name:
        return name.read().strip() != EVENT_HANDLER


class HistoryFrames:
    """The frames of a thread from one stop to the next: what is at the program counter is LLDB's
    own, inlined functions included."""

    def __init__(self, input_frames, args):  # the base class's own would use LLDB
        self.own = input_frames
        self.callers = ()  # arguments of HistoryFrame, but for the index; once they are known
        if _is_safe():
            thread = input_frames.GetThread().GetThreadID()
            _stacks[thread] = self
            self.callers = self._left(_known.get(thread, ()))

    def _left(self, callers):
        """Of the callers at the stop before those that are left where the innermost one goes on.
        LLDB's own steps that leave a function ask before the hook has run, and remember it when
        there is none."""
        own = self.own.GetSize()
        # In the present LLDB's own frames go on behind the inlined ones, which stand at one place.
        returned = callers and self.own.GetFrameAtIndex(own - 1).GetPC() == callers[0][1]
        return callers[own:] if returned else ()

    @staticmethod
    def get_description():
        return "the call stack of a moment in tailtrace's history"

    def get_frame_at_index(self, index):
        own = self.own.GetSize()
        if index < own:
            return index
        if index - own >= len(self.callers):
            return None
        return HistoryFrame(index, *self.callers[index - own])


class Follow:
    """Hook that finds out about the callers at each stop, also where LLDB itself goes on foot."""

    def __init__(self, target, extra_args, internal_dict):
        pass

    def handle_stop(self, context, stream):
        learn(context.GetThread())
        return True


def _ask(thread, command):
    """What LLDB prints for a command; "" where it fails."""
    result = lldb.SBCommandReturnObject()
    debugger = thread.GetProcess().GetTarget().GetDebugger()
    debugger.GetCommandInterpreter().HandleCommand(command, result)
    return result.GetOutput() or "" if result.Succeeded() else ""


def _unregister(thread):
    number = None
    for line in _ask(thread, "target frame-provider list").splitlines():
        name, _, value = line.strip().partition(": ")
        number = value if name == "ID" else number
        if name == "Name" and value == f"{__name__}.HistoryFrames":
            _ask(thread, f"target frame-provider remove {number}")


def _with_inlined(target, pc):
    """A caller and the functions that the compiler put into it there, innermost first."""
    address = target.ResolveLoadAddress(pc - 1)
    place = target.ResolveSymbolContextForAddress(address, lldb.eSymbolContextEverything)
    while True:
        above = lldb.SBAddress()
        around = place.GetParentOfInlinedScope(address, above)
        yield target, pc, place, around.IsValid()
        if not around.IsValid():
            return
        place, address = around, above


def _packet(thread, packet):
    """The debug server's answer; "" where there is none."""
    answer = _ask(thread, f"process plugin packet send {packet}").partition("response: ")[2]
    return "" if answer.startswith("\n") else answer.rstrip("\n")


def _question(thread, words):
    """The lines that the server answers to a question in JSON, behind the line about them all."""
    answer = _packet(thread, f"qTailtrace:{words.encode().hex()}")
    while answer == "w":  # it is at work
        answer = _packet(thread, "qTailtrace.more")
    return [json.loads(line) for line in answer.split("\n")[1:] if line.startswith("{")]


def learn(thread):
    """Finds out what called where a thread stands; False where nobody can say."""
    name = f"p{thread.GetProcess().GetProcessID():x}.{thread.GetThreadID():x}"
    position = _packet(thread, f"qTailtraceWhere:{name}")
    _known.pop(thread.GetThreadID(), None)
    if position.startswith("-"):
        known = _question(thread, f"frames {position} {LIMIT_FRAMES} {name}")
        thread.GetFrameAtIndex(0).GetPC()  # now it has a stack of this stop
        stack = _stacks.get(thread.GetThreadID())
        if stack:
            target = thread.GetProcess().GetTarget()
            # Behind what is LLDB's own.
            stack.callers = [frame for one in known[1:]
                             for frame in _with_inlined(target, int(one["pc"], 16))]
            _known[thread.GetThreadID()] = stack.callers
            thread.GetNumFrames()
    return position != ""


def _let_events_be_handled(debugger):
    """LLDB shows a thread again whose frames have changed, on its own time: not in the middle of
    what is done next, where it would be the first to ask for frames, and keep those of before. Its
    handler takes one event after the other: when it takes this one it is done with that."""
    listener, event = debugger.GetListener(), lldb.SBEvent()
    marker = lldb.SBBroadcaster("tailtrace")
    listener.StartListeningForEvents(marker, 1)
    marker.BroadcastEventByType(1)
    end_s = time.monotonic() + PATIENCE_S
    while listener.PeekAtNextEventForBroadcaster(marker, event) and time.monotonic() < end_s:
        time.sleep(PATIENCE_S / 1000)
    listener.StopListeningForEvents(marker, 1)


def _selected(debugger):
    """A name for the target, and its thread."""
    target = debugger.GetSelectedTarget()
    key = debugger.GetID(), debugger.GetIndexOfTarget(target)
    return key, target.GetProcess().GetSelectedThread()


def on(debugger):
    """Shows callers in the past in the selected target from here on."""
    target, thread = _selected(debugger)
    if target in _hooks:
        _ask(thread, f"target stop-hook enable {_hooks[target]}")
        return
    if not learn(thread):
        return
    said = _ask(thread, f"target stop-hook add -P {__name__}.Follow")
    _hooks[target] = "".join(c for c in said if c.isdigit())
    _ask(thread, f"target frame-provider register -C {__name__}.HistoryFrames")
    thread.GetNumFrames()
    _let_events_be_handled(debugger)


def lead(debugger):
    """Leaves it to whoever moves a thread to look() at each stop: LLDB names each thread for a hook
    that it calls for several."""
    target, thread = _selected(debugger)
    if target in _hooks:
        _ask(thread, f"target stop-hook disable {_hooks[target]}")


def follow(debugger):
    """The hook does it again."""
    target, thread = _selected(debugger)
    if target in _hooks:
        _ask(thread, f"target stop-hook enable {_hooks[target]}")


def look(debugger):
    """Finds out about the callers where the selected thread stopped, or others that come back."""
    target, thread = _selected(debugger)
    if target in _hooks:
        for one in thread.GetProcess().threads:
            if one.GetThreadID() in (thread.GetThreadID(), *_known):
                learn(one)


def off(debugger):
    """Leaves the target's frames to LLDB again."""
    target, thread = _selected(debugger)
    hook = _hooks.pop(target, None)
    if hook is None:
        return
    _ask(thread, f"target stop-hook delete {hook}")
    _unregister(thread)
    _stacks.clear()
    _known.clear()
    _let_events_be_handled(debugger)
