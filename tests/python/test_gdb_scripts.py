"""The GDB commands of gdb-scripts/tailtrace.py in stock GDB, behind `tailtrace serve`, against what
GDB's own record commands say of the same history."""

import os
import pathlib
import re
import shutil
import subprocess

import hosts
import pytest
import rings
import tailtrace

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "gdb-scripts" / "tailtrace.py"
BUILD = pathlib.Path(os.environ["TAILTRACE_BINARY_DIR"])
PROGRAM = BUILD / "tests/programs/three_rounds"
COMMANDS = ["start", "stop", "info", "save", "load", "run", "export", "doctor",
            "instruction-history", "function-call-history", "calls", "goto", "back", "forward",
            "next-back", "finish-back", "where", "hits", "last", "why-here"]
CONNECT = ["set sysroot /", f"target remote | {BUILD}/plugin/tailtrace serve - {PROGRAM}"]
# Lists are held against GDB's own, which show every round of a loop.
RECORD = CONNECT + ["set tailtrace fold-loops off", "break main", "continue", "record btrace",
                    "next", "next", "next", "next"]

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="GDB is not installed")


def environment():
    return {**os.environ, "PYTHONPATH": os.fspath(BUILD / "python")}


def talk(*commands):
    return talk_without_program(*commands, program=[str(PROGRAM)])


def talk_without_program(*commands, program=()):
    """What GDB says to each of the commands, all of them in one session."""
    words = [*hosts.gdb(), "-nx", "-batch", "-ex", "set confirm off", "-ex", f"source {SCRIPT}"]
    for number, command in enumerate(commands):
        words += ["-ex", f"echo @@{number}@@\\n", "-ex", command]
    words += ["-ex", "echo @@end@@\\n", "-ex", "kill", *program]
    said = subprocess.run(words, env=environment(), stdin=subprocess.DEVNULL, text=True,
                          timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    parts = re.split(r"^@@\w+@@\n", said, flags=re.M)
    assert len(parts) == len(commands) + 2, said
    assert "Traceback" not in said and "Python Exception" not in said, said
    return parts[1:-1]


class Session:
    """A GDB that has recorded a stretch of the program, for questions that change nothing."""

    def __init__(self):
        self.gdb = subprocess.Popen([*hosts.gdb(), "-nx", "-q", str(PROGRAM)], env=environment(),
                                    text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT)
        self.asked = 0
        self.ask("set prompt", "set confirm off", "set pagination off", "set width 0",
                 f"source {SCRIPT}", *RECORD)

    def ask(self, *commands):
        """What it says to each of them."""
        return [self.answer(command) for command in commands]

    def answer(self, command):
        self.asked += 1
        end = f"@@{self.asked}@@"
        self.gdb.stdin.write(f"{command}\necho {end}\\n\n")
        self.gdb.stdin.flush()
        lines = []
        for line in self.gdb.stdout:
            if line.endswith(end + "\n"):
                said = "".join(lines) + line[:-len(end) - 1]
                assert "Traceback" not in said and "Python Exception" not in said, said
                return said
            lines.append(line)
        raise AssertionError("GDB has ended: " + "".join(lines))

    def end(self):
        self.gdb.stdin.write("kill\nquit\n")
        self.gdb.stdin.close()
        self.gdb.stdout.read()
        self.gdb.wait()


@pytest.fixture(scope="module")
def session():
    started = Session()
    yield started
    started.end()


@pytest.fixture
def recorded(session):
    yield session.ask
    session.ask("tailtrace goto end", "set tailtrace history-size 10")


def test_instruction_lists_are_gdbs_own(recorded):
    ranges = ["1,40", "1,+25", "30,-12", "2000", "/r 1,60", "/f 1,9", "/rf 5,25"]
    pairs = recorded(*[f"{whose} instruction-history {r}" for r in ranges
                       for whose in ("record", "tailtrace")])
    for range_, gdbs, ours in zip(ranges, pairs[::2], pairs[1::2]):
        assert len(gdbs.splitlines()) >= 9
        assert ours == gdbs, range_


def test_source_lines_stand_before_their_instructions(recorded):
    (said,) = recorded("tailtrace instruction-history /s 1,10")
    lines = said.splitlines()
    call = next(i for i, line in enumerate(lines) if "call " in line and "malloc@plt" in line)
    assert re.search(r"three_rounds.c:\d+\t    void\* room = malloc\(16\);$", lines[call - 2])
    assert len([line for line in lines if re.match(r"\d+\t", line)]) == 10


def test_all_instructions_are_gdbs_own(recorded):
    gdbs, ours = recorded("set tailtrace history-size unlimited",
                          "record instruction-history 1,+1000000",
                          "tailtrace instruction-history 1")[1:]
    assert len(gdbs.splitlines()) > 2000
    assert ours == gdbs


def test_call_lists_are_gdbs_own(recorded):
    ranges = ["1,20", "/i 1,+9", "/c 1,40", "/ic 30,-10", "/il 1,1"]
    pairs = recorded(*[f"{whose} function-call-history {r}" for r in ranges
                       for whose in ("record", "tailtrace")])
    for range_, gdbs, ours in zip(ranges, pairs[::2], pairs[1::2]):
        assert gdbs.count("\n") >= 1
        assert ours == gdbs, range_


def test_pages_go_on_where_they_ended(recorded):
    first, second, before, newest, end = recorded(
        "tailtrace instruction-history 1,5", "tailtrace instruction-history",
        "tailtrace instruction-history -", "tailtrace instruction-history -3",
        "tailtrace instruction-history")
    numbers = [[int(line.split()[0]) for line in said.splitlines()]
               for said in (first, second, before, newest)]
    assert numbers[0] == [1, 2, 3, 4, 5]
    assert numbers[1] == list(range(6, 16))
    assert numbers[2] == [1, 2, 3, 4, 5]
    assert len(numbers[3]) == 3 and numbers[3][0] > 2000
    assert end == "At the end of the history.\n"


def test_goes_where_record_goto_goes(recorded):
    said = recorded("record goto 12", "print $pc", "tailtrace goto 12", "print $pc",
                    "tailtrace forward 3", "print $pc", "record goto 15", "print $pc",
                    "tailtrace back", "print $pc", "record goto 14", "print $pc",
                    "tailtrace goto -1", "tailtrace forward", "info record",
                    "tailtrace goto begin", "print $pc", "record goto begin", "print $pc",
                    "tailtrace goto end", "info record")
    values = [re.search(r"0x\w+", one)[0] for one in said if one.startswith("$")]
    assert values[0] == values[1]
    assert values[2] == values[3]
    assert values[4] == values[5]
    assert values[6] == values[7]
    assert "Replay in progress" not in said[14] and "Replay in progress" not in said[-1]


def test_hits_are_where_breakpoints_stop(recorded):
    hits, none, last, frames, stops = recorded(
        "tailtrace hits inc", "tailtrace hits clean_up", "tailtrace last inc",
        "backtrace 3", "record goto end")
    assert [line.split(":")[0].split("<")[1] for line in hits.splitlines()] == ["inc+0>"] * 2
    assert none == "It was not arrived at in what is recorded.\n"
    assert "inc (" in last
    assert [re.search(r"(\w+) \(", line)[1] for line in frames.splitlines()[:3]] == [
        "inc", "twice", "main"]


def test_calls_that_are_not_shown_are_told_of(tmp_path):
    """Where the server has them and where the package does."""
    ask = ["set tailtrace history-size 2", "tailtrace calls twice",
           "set tailtrace history-size unlimited", "python lists.MOST_WHOLE = 2",
           "tailtrace calls twice", "python lists.MOST_WHOLE = 3", "tailtrace calls twice"]
    said = talk(*CONNECT, "break main", "continue", "tailtrace start", "tbreak _exit", "continue",
                "python from tailtrace_gdb import lists", *ask, f"tailtrace save {tmp_path}/run.tt",
                f"tailtrace load {tmp_path}/run.tt", *ask)
    for answers in said[8:][:len(ask)], said[-len(ask):]:
        two, unlimited, all_three = answers[1], answers[4], answers[6]
        assert re.fullmatch(r"\(More came before\.\.\.\)\n(-?\d+\ttwice\t.*\n){2}", two)
        assert unlimited == two
        assert re.fullmatch(r"(-?\d+\ttwice\t.*\n){3}", all_three)


def test_a_gdb_without_python_says_so():
    """Such a GDB reads the file as its own commands; `python` is one that it refuses."""
    lines = [line for line in SCRIPT.read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0].startswith("python ")
    compile(SCRIPT.read_text(), SCRIPT, "exec")


def test_source_lines_end_where_gdb_ends_them(tmp_path):
    source = tmp_path / "fed.c"
    source.write_bytes(b"/* a page */\f\r\nint x;\r\n")
    subprocess.run(["gcc", "-g", "-c", source, "-o", tmp_path / "fed.o"], check=True)
    gdbs, ours = talk_without_program(
        "list 2,2", "python from tailtrace_gdb.words import text_of_line; "
        "print(f'2\\t{text_of_line(gdb.decode_line()[1][0].symtab, 2)}')",
        program=[str(tmp_path / "fed.o")])
    assert gdbs == ours == "2\tint x;\n"


def test_answers_are_parted_at_line_feeds_only():
    said, = talk_without_program(
        r"python from tailtrace_gdb.history import parsed; "
        r"""print(ascii(parsed('{"file":"/a\u2028b"}\n{"file":"/c\u0085d"}\n')))""")
    assert said == r"[{'file': '/a\u2028b'}, {'file': '/c?d'}]" + "\n"


def test_every_command_has_help():
    said = talk("help tailtrace", *[f"help tailtrace {command}" for command in COMMANDS])
    for command, text in zip(COMMANDS, said[1:]):
        assert f"tailtrace {command} -- " in said[0]
        first = text.splitlines()[0]
        assert first.endswith(".") and "Usage: tailtrace " + command in text
    assert "not documented" not in "".join(said)


def test_locations_are_completed():
    said = talk("complete tailtrace hits twic", "complete tailtrace la")
    assert said == ["tailtrace hits twice\n", "tailtrace last\n"]


def test_formats_and_files_are_completed(tmp_path):
    (tmp_path / "a-folder").mkdir()
    (tmp_path / "a-file").touch()
    said = talk("complete tailtrace export js", f"complete tailtrace export json {tmp_path}/a-",
                f"complete tailtrace export json {tmp_path}/no", "complete tailtrace load /et")
    assert said == ["tailtrace export json\n", f"tailtrace export json {tmp_path}/a-file\n"
                    f"tailtrace export json {tmp_path}/a-folder/\n", "", "tailtrace load /etc\n"]


def test_an_export_to_a_full_disk_leaves_no_half_of_a_file(tmp_path):
    small = ("python import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
             "resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))")
    said = talk(*RECORD, small, f"tailtrace export json {tmp_path}/items",
                "python resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))")
    assert f"cannot write {tmp_path}/items\n  why:  File too large\n" in said[-2]
    assert not list(tmp_path.iterdir())


def test_positions_are_completed(recorded):
    said = recorded("tailtrace instruction-history 98,102", "complete tailtrace goto 10",
                    "complete tailtrace instruction-history 9", "complete tailtrace goto -")
    assert said[1:] == ["".join(f"tailtrace goto {number}\n" for number in (100, 101, 102)),
                        "".join(f"tailtrace instruction-history {n}\n" for n in (98, 99)),
                        "tailtrace goto -1\n"]


def test_settings_are_listed_and_unknown_ones_refused():
    listed, none, unknown, shown = talk("show tailtrace", "set tailtrace", "set tailtrace size 3",
                                        "show tailtrace size")
    assert [line.partition(":")[0] for line in listed.splitlines()] == [
        f"tailtrace {name}" for name in ("annotate", "engine", "fold-loops", "frames",
                                         "history-size", "pane", "server")]
    assert "tailtrace fold-loops:  Loops are folded.\n" in listed
    assert "List of set tailtrace subcommands:" in none
    assert unknown.startswith('Undefined set tailtrace command: "size 3".')
    assert shown.startswith('Undefined show tailtrace command: "size".')


def test_frames_are_shown_as_gdb_shows_them(recorded):
    size = int(recorded("tailtrace info")[0].split("thread: ")[1].split()[0])
    pairs = recorded(*[command for number in range(size - 60, size + 1) for command in
                       (f"record goto {number}", "tailtrace where")])
    begins = re.compile(r"#0  (0x\w+ in )?\w+ \(")
    gdbs = [begins.search(said)[0] for said in recorded(*[
        command for number in range(size - 60, size + 1)
        for command in (f"record goto {number}", "backtrace 1")])[1::2]]
    assert [begins.search(said)[0] for said in pairs[1::2]] == gdbs
    assert len({"0x" in one for one in gdbs}) == 2


def test_without_a_server_says_what_to_do():
    said = talk(*[f"tailtrace {command} 1" for command in COMMANDS
                  if command not in ("doctor", "run", "start")])
    for text in said:
        assert "  why:" in text or "no symbol" in text.lower() or "no thread" in text, text


def test_behind_another_server_says_what_to_do():
    connect = f"target remote | gdbserver - {PROGRAM}"
    said = talk("set sysroot /", connect, "tailtrace info", "tailtrace goto 3", "tailtrace doctor")
    for text in said[2:4]:
        assert "fix:  target remote | tailtrace serve - PROGRAM" in text
    assert "server: no: " in said[4]


def test_before_recording_says_what_to_do():
    said = talk(*CONNECT, "tailtrace instruction-history", "tailtrace goto 1", "tailtrace doctor")
    for text in said[2:4]:
        assert "why:  the thread is not recorded\n  fix:  record btrace" in text
    assert "recording: no: " in said[4]


@pytest.mark.parametrize("command, answer", [
    ("instruction-history 99999", "there is nothing in the range `99999`"),
    ("instruction-history 3,1", "there is nothing in the range `3,1`"),
    ("instruction-history foo bar", "cannot use the number `foo bar`"),
    ("instruction-history /z 1", "cannot use the modifier `/z`"),
    ("goto", "cannot go anywhere"), ("goto 0", "there is no instruction 0"),
    ("goto 99999", "there is no instruction 99999"), ("back 99999", "there is no instruction -"),
    ("forward 2", "there is no instruction "), ("where 3", "cannot use `3`"),
    ("stop it", "cannot use `it`"), ("instruction-history 1,", "cannot use the range"),
    ("hits", "cannot search for nothing"),
    ("hits no_such_function", 'Function "no_such_function" not defined.'),
    ("last clean_up", "clean_up was not arrived at"),
    ("magic", "there is no command `tailtrace magic`\n  fix:  see `help tailtrace`"),
    ("stack -5", "there is no command `tailtrace stack -5`\n  fix:  tailtrace where"),
    ("history 5", "there is no command `tailtrace history 5`\n"
                  "  fix:  tailtrace instruction-history"),
    ("open DIR", "there is no command `tailtrace open DIR`\n  fix:  tailtrace load"),
    ("stats", "there is no command `tailtrace stats`\n"
              "  fix:  `tailtrace save DIR`, and behind it `shell tailtrace stats DIR`")])
def test_refuses_in_a_sentence(recorded, command, answer):
    (said,) = recorded(f"tailtrace {command}")
    assert said.startswith(answer), said


def test_a_line_that_cannot_be_read_is_shown_with_its_file(tmp_path):
    source, program = tmp_path / "gone.c", tmp_path / "gone"
    source.write_text("int main(void) {\n  return 0;\n}\n")
    subprocess.run(["gcc", "-g", "-o", program, source], check=True)
    with tailtrace.record([str(program)], engine="qemu") as trace:
        position = trace.threads[0].last("gone.c:2").position
        trace.save(str(tmp_path / "saved"))
    source.unlink()
    said = talk_without_program(f"tailtrace load {tmp_path}/saved", f"tailtrace goto {position}")[1]
    assert f"\n2\tin {source}\n" in said


def test_beside_a_folder_alone_gdb_does_not_know_what_is_there(tmp_path):
    tailtrace.record([os.fspath(PROGRAM)], engine="qemu").save(tmp_path / "run.tt")
    _, hits, calls = talk_without_program(
        f"tailtrace load {tmp_path}/run.tt", "tailtrace hits abort", "tailtrace calls abort")
    assert hits == "It was not arrived at in what is recorded.\n"
    assert calls == "abort was not called in what is recorded\n"


def test_size_of_a_page_is_a_setting(recorded):
    said = recorded("show tailtrace history-size", "set tailtrace history-size 3",
                    "show tailtrace history-size", "tailtrace instruction-history 1",
                    "tailtrace function-call-history 1")
    assert said[0] == "One `tailtrace` command shows 10.\n"
    assert said[2] == "One `tailtrace` command shows 3.\n"
    assert [len(text.splitlines()) for text in said[3:]] == [3, 3]


def test_stands_before_a_program_that_ended():
    said = talk(*CONNECT, "tbreak clean_up", "continue", "record btrace", "continue",
                "tailtrace info", "tailtrace instruction-history")
    for text in said[-2:]:
        assert "  why:" in text or "no thread" in text


def test_a_long_history_counts_back_from_the_newest(tmp_path):
    rounds = (1 << 20) + 10
    ring = rings.write_ring(tmp_path / "long.ring", rings.loop_records(rounds), capacity=1 << 21,
                            stands_at=rings.LOOP_AT)
    code = [(rings.LOOP_AT, rings.LOOP_CODE)]
    with tailtrace.open(ring, code=code) as trace:
        trace.save(tmp_path / "long.tt")
    newest, before, calls, first, hits, info, again = talk_without_program(
        f"tailtrace load {tmp_path}/long.tt", "tailtrace instruction-history /a",
        "tailtrace instruction-history /a -", "tailtrace function-call-history /i",
        "tailtrace instruction-history /a 1,2", "tailtrace hits *0x2000", "tailtrace info",
        "tailtrace instruction-history /a -1")[1:]

    def numbers(said):
        return [int(line.split()[0]) for line in said.splitlines()]

    assert numbers(newest) == list(range(-10, 0)) and newest.splitlines()[-1].endswith("jnz 0x2000")
    assert numbers(before) == list(range(-20, -10))
    assert calls.startswith("-1\t") and calls.endswith(",-1\n")
    assert numbers(first) == [-2 * rounds, -2 * rounds + 1]
    more, _, hits = hits.partition("\n")
    assert more == "(More came before...)"
    assert numbers(hits) == list(range(-20, 0, 2))
    assert f"{2 * rounds} instructions" in info
    assert numbers(again) == [-1]


def test_beside_a_folder_alone_the_history_names_what_decided(tmp_path):
    trace = tailtrace.record([os.fspath(PROGRAM)], engine="qemu")
    trace.save(tmp_path / "run.tt")
    said = talk_without_program(f"tailtrace load {tmp_path}/run.tt", "tailtrace why-here")[-1]
    decided = re.findall(r"^(\d+)\t   0x([0-9a-f]+)( <.*\+\d+>)?:\t", said, re.M)
    assert len(decided) > 5
    for number, address, name in decided:
        item = trace.threads[0].at(int(number))
        assert item.address == int(address, 16)
        assert name.startswith(f" <{item.function}+") if item.function else not name
    called = re.findall(r"\tcall +(0x[0-9a-f]+)\tto (.*?)(?:\t|$)", said, re.M)
    assert len(called) > 2 and all(re.fullmatch(r"<.+\+\d+>", to) for _, to in called)


def talk_behind_a_long_history(*commands):
    """The same behind `tailtrace serve`, of a program with more than a million branches."""
    program = BUILD / "tests/programs/rounds"
    return talk_without_program(
        "set sysroot /", f"target remote | {BUILD}/plugin/tailtrace serve --engine=qemu "
        f"--ring=64M - {program} 15000", "tbreak rounds.c:26", "record btrace pt", "continue",
        *commands, program=[str(program)])


# However far back is asked first, and once all are known.
FAR_CALLS = """
from tailtrace_gdb import source
history = source.current()
def asked():
    return [[(call["position"], call.get("function"), call["first"], call["last"])
             for call in history.some("calls", first, 3)]
            for first in (-3, -4000, -3, -70000, -9000, -100000000)]
near = asked()
history.number_of_calls()
print(near == asked(), [len(calls) for calls in near], near[0] == near[2])
"""


def test_calls_far_back_are_the_same_when_all_are_known(tmp_path):
    (tmp_path / "far.py").write_text(FAR_CALLS)
    said = talk_behind_a_long_history(f"source {SCRIPT}", f"source {tmp_path}/far.py")
    assert said[-1] == "True [3, 3, 3, 3, 3, 0] True\n"


# First the newest, before the whole was looked at; then more than one answer holds. GDB itself says
# what the branches are, and where the program stands.
RECORDS = """
import gdb, struct, tailtrace_gdb
for name, asked in (("newest", (-1000,)), ("some", (-70000, 40000)), ("oldest", (1, 70000)),
                    ("older", (-(1 << 40), (1 << 40) - 1200000)), ("none", (1 << 40,))):
    with open(f"{gdb.parameter('cwd')}/{name}", "wb") as file:
        file.write(tailtrace_gdb.records(*asked))
newest = list(struct.iter_unpack(tailtrace_gdb.RECORD_STRUCT, tailtrace_gdb.records()))
print(len(newest), tailtrace_gdb.RECORD_DTYPE)
print(newest[-1][0] == int(gdb.parse_and_eval("$pc")))
code = gdb.selected_inferior().architecture()
branches = [(one[0], one[4]) for one in newest if one[4] in (1, 3, 4, 6)]
asm = {at: code.disassemble(at)[0]["asm"] for at, _ in branches}
print(sorted({(kind, asm[at].split()[0][0]) for at, kind in branches}))
try:
    tailtrace_gdb.records(0)
except gdb.GdbError as error:
    print(error)
"""


def test_records_are_fetched_by_number(tmp_path):
    (tmp_path / "ask.py").write_text(RECORDS)
    said = talk_behind_a_long_history(
        f"set cwd {tmp_path}", f"source {tmp_path}/ask.py", f"tailtrace save {tmp_path}/saved",
        "monitor tailtrace records -1 1", f"tailtrace load {tmp_path}/saved",
        "python print(tailtrace_gdb.records(-9, 4).hex())",
        "python print(tailtrace_gdb.records(1, 2).hex())",
        "python print(len(tailtrace_gdb.records()) // 32)")
    monitor, _, some, oldest, page = said[-5:]
    told, stands, kinds, *refused = said[6].splitlines()
    assert stands == "True" and kinds == "[(1, 'j'), (3, 'c'), (4, 'r'), (6, 'c')]"
    assert refused == [
        "cannot fetch records", "  why:  no record is number 0",
        "  fix:  count from 1, the oldest, or back from -1, the newest"]
    with tailtrace.open(tmp_path / "saved") as trace:
        records = trace.threads[0].records
        assert len(records) > 1200000
        fields = [(name, form.replace("|", "")) for name, form in records.dtype.descr]
        assert told == f"1000 {fields}"
        for name, wanted in (("newest", records[-1000:]), ("some", records[-70000:-30000]),
                             ("oldest", records[:70000]), ("older", records[:-1200000]),
                             ("none", records[:0])):
            assert (tmp_path / name).read_bytes() == wanted.tobytes(), name
        assert some.strip() == records[-9:-5].tobytes().hex()
        assert oldest.strip() == records[:2].tobytes().hex() and page == "1000\n"
    assert monitor.startswith('error: there is no command "records -1 1"')
