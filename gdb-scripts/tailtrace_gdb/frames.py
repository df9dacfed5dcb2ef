"""The call stack of a past moment: calls that the history has, and below them the frames that the
program still has at the stop, which nobody left meanwhile.
"""

import gdb

from . import place
from .styles import styled
from .words import function_blocks, recorded_line, source_line, text_of_line

CALLS = ("call", "indirect-call")  # what `branch` of an item is

_live = None  # of which history, and what was found


def plain(name):
    """A function's name without what it takes and where it is from."""
    return (name or "??").partition("(")[0].partition("@")[0]


def frames_now():
    """(name, pc) of each frame as GDB has it, innermost first."""
    found = []
    try:
        frame = gdb.newest_frame()
        while frame is not None and len(found) < 256:
            if frame.type() != gdb.INLINE_FRAME:
                found.append((frame.name() or "??", frame.pc()))
            frame = frame.older()
    except gdb.error:
        pass
    return found


def live_frames(history):
    """The frames of the stop, also while GDB replays."""
    global _live
    key = history.key
    if _live is not None and _live[0] == key:
        return _live[1]
    record = place.recording(history)
    position = record.replay_position if record is not None else None
    if position is not None:
        gdb.execute("record goto end", to_string=True)
    found = frames_now()
    if position is not None:
        gdb.execute(f"record goto {position.number}", to_string=True)
    _live = (key, found)
    return found


def callers_of(history, call, limit):
    """The calls that were open around a call, innermost first, itself included."""
    chain = [call]
    while chain[-1].get("caller") and len(chain) < limit:
        chain.append(history.call(chain[-1]["caller"]))
    return chain


def anchored(history, root):
    """The frames of the stop below `root`, the outermost call that was recorded, or none."""
    last = history.call(-1)
    chain = callers_of(history, last, 1 << 16)
    live = live_frames(history)
    names = [plain(name) for name, _ in live]
    end = chain[-1]
    if "gap" in root or "gap" in end or root["level"] != end["level"]:
        return []
    if plain(root.get("function")) != plain(end.get("function")):
        return []
    # The stop may be in a function just called, or just returned to.
    for shift in (0, 1, -1):
        at = shift + len(chain) - 1
        if 0 <= at < len(names) and names[at] == plain(end.get("function")):
            return live[at + 1:]
    return []


def kept(history, root, position):
    """The same of a folder, which has the stack of its end; to `main`, unless GDB shows more."""
    older = history.older_callers(position)
    names = [root.get("function"), *(name for name, _, _ in older)]
    if "main" in names and not gdb.parameter("backtrace past-main"):
        return older[:names.index("main")]
    return older


class Shown:
    """One line of a stack. `pc` is where it goes on, of callers behind the call; None: a signal
    came there. `block` is the function's, where GDB knows it; `site` the line of the call of what
    is inlined in it; `item` has the line beside a saved folder alone."""

    def __init__(self, pc, function, is_call, block=None, site=None, item=None):
        self.pc = pc
        self.function = function
        self.is_call = is_call
        self.block = block
        self.site = site
        self.item = item or {}

    def inside(self):
        """An address in the line that is being executed."""
        return self.pc - 1 if self.is_call else self.pc

    def line(self):
        return self.site or source_line(self.inside()) or recorded_line(self.item)

    def with_inlined(self):
        """Itself as GDB shows it: a line for each function that is inlined there, too."""
        if self.pc is None:
            return [self]
        blocks = function_blocks(self.inside()) or [None]
        inlined = [block.function for block in blocks[:-1]]
        names = [function.print_name for function in inlined] + [self.function]
        sites = [None] + [(function.symtab, function.line) for function in inlined]
        return [Shown(self.pc, name, self.is_call, block, site, self.item)
                for name, block, site in zip(names, blocks, sites)]


def stack_at(history, position, limit):
    """What was on the stack before an instruction was executed, innermost first."""
    shown = [one for frame in frames_at(history, position, limit) for one in frame.with_inlined()]
    return shown[:limit]


def frames_at(history, position, limit):
    """The same without what was inlined, which is not called."""
    if position == 0:
        return [Shown(pc, name, i > 0) for i, (name, pc) in enumerate(live_frames(history))][:limit]
    item = history.item(position)
    call = history.call_holding(position)
    if "gap" in item or call is None:
        return []
    shown = [Shown(int(item["address"], 16), call.get("function"), False, item=item)]
    chain = callers_of(history, call, limit)
    for inner, outer in zip(chain, chain[1:]):
        callers = callers_shown(history, inner, outer)
        if not callers:
            return shown[:limit]
        shown += callers
    if not chain[-1].get("caller"):
        shown += [Shown(pc, name, True) for name, pc in anchored(history, chain[-1])] or [
            Shown(pc, name, True, item=item)
            for name, pc, item in kept(history, chain[-1], position)]
    return shown[:limit]


def callers_shown(history, inner, outer):
    """Who called or was interrupted, and before it the signal if one did that; nothing at a gap."""
    name = outer.get("function")
    if outer["first"] > inner["first"]:  # it is known by the return to it
        return [Shown(int(history.item(outer["first"])["address"], 16), name, True)]
    at = history.item(outer["last"])
    if "gap" in at:
        return []
    behind = int(at["address"], 16) + len(at["bytes"]) // 2
    if inner.get("tail_called") or at.get("branch") in CALLS:
        return [Shown(behind, name, True, item=at)]
    interrupted = Shown(int(at["to"], 16) if "to" in at else behind, name, False)
    events = history.item(inner["first"]).get("events", [])
    if any(event["event"] == "signal" for event in events):
        return [Shown(None, "<signal handler called>", False), interrupted]
    return [interrupted]


def arguments_of(block):
    """"a=<unavailable>, b=<unavailable>" as GDB writes values that nobody kept."""
    return ", ".join(f"{s.name}=<unavailable>" for s in block or () if s.is_argument)


def begins_line(pc, symtab, line):
    """Whether a statement of the line begins there: GDB leaves the address out then."""
    if not isinstance(symtab, gdb.Symtab):
        return False
    return any(entry.pc == pc for entry in symtab.linetable().line(line) or ())


def begins_no_statement(pc):
    """Whether other code of a line begins there."""
    row = gdb.find_pc_line(pc)
    return row.pc == pc and row.line != 0 and not begins_line(pc, row.symtab, row.line)


def frame_line(level, frame):
    """As GDB's `backtrace` has it."""
    if frame.pc is None:
        return f"#{level:<3}{frame.function}\n"
    found = frame.line()
    begins = not frame.is_call and found is not None and begins_line(frame.pc, *found)
    address = "" if begins or frame.site else styled("address", f"{frame.pc:#018x}") + " in "
    name = styled("function", frame.function or "??")
    where = ""
    if found is not None:
        where = f" at {styled('filename', found[0].filename)}:{found[1]}"
    return f"#{level:<3}{address}{name} ({arguments_of(frame.block)}){where}\n"


def show_present(limit):
    """As GDB has it, which knows the values there; nothing beside a saved folder alone."""
    if gdb.selected_thread() is None:
        return
    gdb.execute("frame 0")
    stack = gdb.execute(f"backtrace {limit}", to_string=True)
    gdb.write("".join(stack.splitlines(keepends=True)[1:]))


def show(history, position, gdb_has_shown):
    """Writes the frame at an instruction and the stack around it."""
    limit = gdb.parameter("tailtrace frames") or 1 << 16
    if position == 0 and not gdb_has_shown and not place.is_gdb_in_the_past():
        show_present(limit)
        return
    frames = stack_at(history, position, limit + 1)
    if gdb_has_shown and frames:
        # GDB's `record goto` leaves the TUI as it was; choosing another frame does not.
        follow_in_tui(source_line(frames[0].pc), ["frame 1", "frame 0"])
    if not gdb_has_shown:
        if not frames:
            text = history.item(position).get("text") if position < 0 else None
            gdb.write(f"At {history.number(position)}: {text or 'nothing is known'}\n")
            return
        gdb.write(frame_line(0, frames[0]))
        found = frames[0].line()
        if found is not None:
            text = text_of_line(*found) or f"in {found[0].filename}"  # as GDB has it
            gdb.write(f"{found[1]}\t{text}\n")
            follow_in_tui(found, [])
    for level, frame in enumerate(frames[1:limit], 1):
        gdb.write(frame_line(level, frame))
    if len(frames) > limit:
        gdb.write("(More stack frames follow...)\n")


def follow_in_tui(found, commands):
    """Lets the TUI's source window follow, with GDB's own mark where these commands can be used."""
    try:
        if "src" not in gdb.execute("info win", to_string=True).split():
            return
    except gdb.error:
        return
    try:
        for command in commands:
            gdb.execute(command, to_string=True)
    except gdb.error:
        commands = []
    if not commands and found is not None and isinstance(found[0], gdb.Symtab):
        gdb.execute(f"list {found[0].filename}:{found[1]},{found[1]}", to_string=True)
