"""GDB commands for what a program did last: `source tailtrace.py`, then `help tailtrace`.

They ask `tailtrace serve`, which the inferior runs under, past GDB's own decoder: the first page
comes at once, whatever the size of the history. Numbers are those of `record instruction-history`
and `record function-call-history`.
"""

import json
import re

import gdb

ITEMS_PER_REQUEST = 2000


def user_error(what, why="", fix=""):
    parts = [("why: ", why), ("fix: ", fix)]
    return gdb.GdbError("\n".join([what] + [f"  {n} {text}" for n, text in parts if text]))


def monitor(command):
    """What the server answers to `monitor tailtrace COMMAND`."""
    try:
        text = gdb.execute(f"monitor tailtrace {command}", to_string=True)
    except gdb.error as error:
        raise user_error("cannot ask for the history", str(error),
                         "target remote | tailtrace serve - PROGRAM") from None
    if text.startswith("error: "):
        raise gdb.GdbError(text[len("error: "):].rstrip("\n"))
    return text


def thread_word():
    thread = gdb.selected_thread()
    if thread is None:
        raise user_error("cannot show a history", "no thread is selected",
                         "start the program first")
    pid, lwp, tid = thread.ptid
    return f"p{pid:x}.{lwp or tid:x}"


def ask(command):
    """Head line and items of one of the server's commands for scripts."""
    lines = monitor(f"{command} {thread_word()}").splitlines()
    try:
        head, *rest = [json.loads(line) for line in lines]
        if not head["schema"].startswith("tailtrace."):
            raise KeyError
    except (ValueError, KeyError, TypeError):
        raise user_error("cannot ask for the history", "the server's answer is not tailtrace's",
                         "target remote | tailtrace serve - PROGRAM") from None
    return head, rest


def fetch(what, first, last):
    """Numbered things from first to last, a piece at a time; Ctrl-C stops between two pieces."""
    while first <= last:
        _, things = ask(f"{what} {first} {min(ITEMS_PER_REQUEST, last - first + 1)}")
        if not things:
            return
        yield from things
        first = things[-1]["number"] + 1


def number_of(text):
    try:
        return int(gdb.parse_and_eval(text))
    except (gdb.error, ValueError, TypeError, OverflowError):
        raise user_error(f"cannot use the number `{text}`", "it is not one",
                         "give a number from 1, or back from -1") from None


class Pager:
    """Ranges in GDB's words: N, N,M, N,+K, N,-K, -, or nothing for what comes next."""

    def __init__(self):
        self.shown = None  # first and last, of which thread, in a history of which size

    def pick(self, text, size, page):
        text = text.strip()
        page = page or size
        if self.shown is not None and self.shown[2:] != (thread_word(), size):
            self.shown = None
        if size == 0:
            raise gdb.GdbError("No instruction was recorded yet.")
        if text == "":
            first, last = self.following(size, page)
        elif text == "-":
            before = self.shown[0] - 1 if self.shown else size
            first, last = before - page + 1, before
            if before < 1:
                raise gdb.GdbError("At the start of the history.")
        else:
            first, last = self.given(text, size, page)
        first, last = max(first, 1), min(last, size)
        if first > last:
            raise user_error(f"there is nothing in the range `{text}`", f"there are 1 to {size}")
        self.shown = (first, last, thread_word(), size)
        return first, last

    def following(self, size, page):
        if self.shown is None:
            return size - page + 1, size
        if self.shown[1] >= size:
            raise gdb.GdbError("At the end of the history.")
        return self.shown[1] + 1, self.shown[1] + page

    @staticmethod
    def given(text, size, page):
        begin, comma, end = (part.strip() for part in text.partition(","))
        first = number_of(begin)
        first += size + 1 if first < 0 else 0
        if not comma:
            return first, first + page - 1
        if end.startswith("+"):
            return first, first + number_of(end[1:]) - 1
        if end.startswith("-") and number_of(begin) > 0:
            return first - number_of(end[1:]) + 1, first
        last = number_of(end)
        return first, last + (size + 1 if last < 0 else 0)


def split_modifiers(argument, known):
    """"/rs 1,2" to ({"r", "s"}, "1,2")."""
    found = set()
    rest = argument.strip()
    while rest.startswith("/"):
        letters, _, rest = rest[1:].partition(" ")
        rest = rest.strip()
        for letter in letters:
            if letter not in known:
                raise user_error(f"cannot use the modifier `/{letter}`",
                                 "known are " + " ".join(f"/{k}" for k in sorted(known)))
            found.add(letter)
    return found, rest


class Words:
    """How addresses and instructions are written: as GDB's own lists have them."""

    def __init__(self):
        self.architecture = gdb.selected_inferior().architecture()
        self.places = {}
        self.texts = {}

    def place(self, address):
        """"<main+4>", or nothing."""
        if address not in self.places:
            if hasattr(gdb, "format_address"):  # GDB 13
                match = re.search(r" <(.*?)(?:\+(\d+))?>$", gdb.format_address(address))
            else:
                said = gdb.execute(f"info symbol {address:#x}", to_string=True)
                match = re.match(r"(.*?)(?: \+ (\d+))? in section ", said)
            self.places[address] = f"<{match[1]}+{match[2] or 0}>" if match else ""
        return self.places[address]

    def instruction(self, item):
        """In the user's flavour, if memory still holds what was executed."""
        address = int(item["address"], 16)
        key = (address, item["bytes"])
        if key not in self.texts:
            text = item["text"]
            try:
                data = bytes.fromhex(item["bytes"])
                memory = gdb.selected_inferior().read_memory(address, len(data)).tobytes()
                if memory == data:
                    text = self.architecture.disassemble(address)[0]["asm"]
            except gdb.error:
                pass
            self.texts[key] = text
        return self.texts[key]

    def line(self, item, modifiers):
        address = int(item["address"], 16)
        place = self.place(address)
        if "f" in modifiers and place:
            place = f"<+{place.rpartition('+')[2]}"
        name = f" {place}" if place else ""
        raw = ""
        if modifiers & {"r", "b"}:
            raw = f"{bytes.fromhex(item['bytes']).hex(' '):<19}\t"
        return f"{item['number']}\t   {address:#018x}{name}:\t{raw}{self.instruction(item)}\n"


def source_text(address):
    """File, line and text of the source line of an address; None where there is none."""
    place = gdb.find_pc_line(address)
    if place.symtab is None or not place.line:
        return None
    try:
        with open(place.symtab.fullname(), errors="replace") as file:
            text = file.read().splitlines()[place.line - 1]
    except (OSError, IndexError):
        text = ""
    return f"{place.symtab.filename}:{place.line}\t{text}\n"


class Command(gdb.Command):
    """A sub-command of `tailtrace` whose failures are errors of the user's."""

    name = ""

    def __init__(self):
        super().__init__(f"tailtrace {self.name}", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        self.run(argument or "")


class Tailtrace(gdb.Command):
    """Show and walk what the program did last.

The program runs under `tailtrace serve`, and is recorded since `record btrace`.
Numbers count instructions from 1, the oldest; negative ones back from -1, the newest."""

    def __init__(self):
        super().__init__("tailtrace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    def invoke(self, argument, from_tty):
        if argument:
            raise user_error(f"there is no command `tailtrace {argument}`", "",
                             "see `help tailtrace`")
        gdb.execute("help tailtrace")


class Info(Command):
    """Say what is recorded of each thread, and of the selected one how much.

Usage: tailtrace info"""

    name = "info"

    def run(self, argument):
        gdb.write(monitor("info"))
        head, _ = ask("items 1 0")
        whole = "from its beginning" if head["complete"] else "older ones are overwritten"
        gdb.write(f"Selected thread: {head['size'] - head['gaps']} instructions, "
                  f"{head['gaps']} gaps, {whole}.\n")


class InstructionHistory(Command):
    """Show the instructions that the selected thread executed, newest last.

Usage: tailtrace instruction-history [/srbf] [N | N,M | N,+K | N,-K | -]

Without a range it shows the newest ones, and when repeated those that follow; `-` shows those
before. Modifiers: /s source lines, /r or /b bytes, /f no function names."""

    name = "instruction-history"
    pager = Pager()

    def run(self, argument):
        modifiers, text = split_modifiers(argument, "msrbfp")
        head, _ = ask("items 1 0")
        first, last = self.pager.pick(text, head["size"], gdb.parameter("tailtrace history-size"))
        words = Words()
        shown = None
        for item in fetch("items", first, last):
            if "gap" in item:
                gdb.write(f"{item['number']}\t   [{item['gap']}: {item['text']}]\n")
                shown = None
                continue
            if modifiers & {"s", "m"}:
                source = source_text(int(item["address"], 16))
                if source is not None and source != shown:
                    gdb.write(source)
                shown = source
            gdb.write(words.line(item, modifiers))


class FunctionCallHistory(Command):
    """Show the functions that the selected thread was in, newest last.

Usage: tailtrace function-call-history [/ilc] [N | N,M | N,+K | N,-K | -]

Modifiers: /i numbers of instructions, /l source lines, /c indented by call depth."""

    name = "function-call-history"
    pager = Pager()

    def run(self, argument):
        modifiers, text = split_modifiers(argument, "ilc")
        head, _ = ask("calls 1 0")
        page = gdb.parameter("tailtrace history-size")
        first, last = self.pager.pick(text, head["calls"], page)
        for call in fetch("calls", first, last):
            gdb.write(self.line(call, modifiers))

    @staticmethod
    def line(call, modifiers):
        indent = "  " * call.get("level", 0) if "c" in modifiers else ""
        if "gap" in call:
            return f"{call['number']}\t{indent}[{call['gap']}: {call['text']}]\n"
        text = f"{call['number']}\t{indent}{call.get('function', '??')}"
        if "i" in modifiers:
            text += f"\tinst {call['first']},{call['last']}"
        if "l" in modifiers and "file" in call:
            lines = f"{call['first_line']}"
            if call["last_line"] != call["first_line"]:
                lines += f",{call['last_line']}"
            text += f"\tat {call['file']}:{lines}"
        return text + "\n"


def recording():
    record = gdb.current_recording()
    if record is None:
        raise user_error("cannot go to a past instruction", "GDB itself is not recording",
                         "record btrace")
    return record


def offset_to_gdb(size):
    """What GDB's numbers are less than ours: it may have been given the newest part only."""
    return size - (recording().end.number - 1)


def go_to(number):
    """Stands on an item, by our number; one behind the last is the present."""
    head, _ = ask("items 1 0")
    size = head["size"]
    if not 1 <= number <= size + 1:
        raise user_error(f"there is no instruction {number}", f"there are 1 to {size}")
    if number == size + 1:
        gdb.execute("record goto end")
        return
    inside = number - offset_to_gdb(size)
    if inside < 1:
        raise user_error(f"cannot go to instruction {number}",
                         f"GDB was given the newest only, from {number + 1 - inside} on",
                         "serve with a larger --handover, or look at it with "
                         f"`tailtrace instruction-history {number}`")
    gdb.execute(f"record goto {inside}")


def standing():
    """Number of the instruction that GDB shows now."""
    head, _ = ask("items 1 0")
    position = recording().replay_position
    if position is None:
        return head["size"] + 1
    return position.number + offset_to_gdb(head["size"])


class Goto(Command):
    """Show the program as it was when it was about to execute an instruction.

Usage: tailtrace goto N | begin | end

N counts from 1, or back from -1. `end` is the present."""

    name = "goto"

    def run(self, argument):
        word = argument.strip()
        head, _ = ask("items 1 0")
        if word in ("begin", "start"):
            go_to(max(1, 1 + offset_to_gdb(head["size"])))
        elif word == "end":
            go_to(head["size"] + 1)
        elif not word:
            raise user_error("cannot go anywhere", "no number was given",
                             "see `help tailtrace goto`")
        else:
            number = number_of(word)
            go_to(number + (head["size"] + 1 if number < 0 else 0))


class Back(Command):
    """Go back by one instruction, or by so many.

Usage: tailtrace back [COUNT]"""

    name = "back"
    direction = -1

    def run(self, argument):
        count = number_of(argument) if argument.strip() else 1
        go_to(standing() + self.direction * count)


class Forward(Back):
    """Go forward by one recorded instruction, or by so many.

Usage: tailtrace forward [COUNT]"""

    name = "forward"
    direction = 1


def addresses_of(location):
    """Where a breakpoint at a location would be."""
    if not location.strip():
        raise user_error("cannot search for nothing", "", "give a location: FUNCTION or FILE:LINE")
    try:
        found = [place.pc for place in gdb.decode_line(location.strip())[1] or ()]
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None
    if not found:
        raise user_error(f"there is no code at {location}")
    return found


def arrivals(location, limit):
    words = " ".join(f"{address:#x}" for address in addresses_of(location))
    return ask(f"find {limit} {words}")[1]


class Hits(Command):
    """Show when a location was arrived at, newest last: where a breakpoint would have stopped.

Usage: tailtrace hits LOCATION"""

    name = "hits"

    def __init__(self):
        gdb.Command.__init__(self, "tailtrace hits", gdb.COMMAND_DATA, gdb.COMPLETE_LOCATION)

    def run(self, argument):
        limit = gdb.parameter("tailtrace history-size") or ITEMS_PER_REQUEST
        found = arrivals(argument, limit)
        if not found:
            gdb.write("It was not arrived at in what is recorded.\n")
        words = Words()
        for item in reversed(found):
            gdb.write(words.line(item, set()))


class Last(Command):
    """Go to the newest arrival at a location.

Usage: tailtrace last LOCATION"""

    name = "last"

    def __init__(self):
        gdb.Command.__init__(self, "tailtrace last", gdb.COMMAND_DATA, gdb.COMPLETE_LOCATION)

    def run(self, argument):
        found = arrivals(argument, 1)
        if not found:
            raise user_error(f"{argument.strip()} was not arrived at in what is recorded")
        go_to(found[0]["number"])


class Doctor(Command):
    """Say what works here: this GDB, the connection, the server, the recording.

Usage: tailtrace doctor"""

    name = "doctor"

    def run(self, argument):
        gdb.write(f"GDB {gdb.VERSION}\n")
        connection = getattr(gdb.selected_inferior(), "connection", None)
        kind = f"{connection.type} {connection.details or ''}".strip() if connection else "none"
        gdb.write(f"connection: {kind}\n")
        for what, try_it in [("server", lambda: monitor("help") and "tailtrace serve"),
                             ("recording", lambda: "{size} instructions, engine {engine}".format(
                                 **ask("items 1 0")[0]))]:
            try:
                gdb.write(f"{what}: {try_it()}\n")
            except gdb.GdbError as error:
                gdb.write(f"{what}: no: {error}\n")


class HistorySize(gdb.Parameter):
    """How many instructions or functions one command shows; 0 or `unlimited` for all."""

    set_doc = "Set how many instructions or functions one `tailtrace` command shows."
    show_doc = "Show how many instructions or functions one `tailtrace` command shows."

    def __init__(self):
        super().__init__("tailtrace history-size", gdb.COMMAND_DATA, gdb.PARAM_UINTEGER)
        self.value = 10

    def get_show_string(self, value):
        return f"One `tailtrace` command shows {value}."


class SetTailtrace(gdb.Command):
    """Set what `tailtrace` commands go by."""

    def __init__(self, verb):
        super().__init__(f"{verb} tailtrace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


def install():
    Tailtrace()
    SetTailtrace("set")
    SetTailtrace("show")
    HistorySize()
    for command in (Info, InstructionHistory, FunctionCallHistory, Goto, Back, Forward, Hits, Last,
                    Doctor):
        command()


install()
