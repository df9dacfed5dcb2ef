"""System calls that fail: each row of the table is a command, and what of it may fail how.

    calls_test.py [--all] [NAME...]

A row is walked: the command runs once in peace, which counts its calls, then again and again with
another one of them failing. Whatever fails, the command ends by itself, says what and why, leaves
no process and no file behind, and what it was to keep is whole or not there. Without --all some
calls of each kind are tried, the first, the last, and between them.
"""

import dataclasses
import errno
import functools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))
import driver  # pylint: disable=wrong-import-position
import rsp  # pylint: disable=wrong-import-position

TAILTRACE = driver.TAILTRACE


def program(name):
    return os.path.join(driver.BUILD, "tests", "programs", name)


@dataclasses.dataclass
class Row:
    name: str
    words: typing.Callable  # of the folder that keeps, and of what is given
    fails: dict             # call: the errors that it fails with
    keeps: str = ""         # a name in the folder that keeps; whole, or not there
    writes: str = ""        # the same of a file that is always the same
    status: int = 0         # in peace
    text: str = ""          # its input
    beside: bool = False    # a running program is given, and must not be harmed
    answers: bool = False   # a debugger, which is told of what fails, or cut off
    opens_to_remove: bool = False  # folders, which stay where they cannot be opened
    is_quick: bool = True   # tried without --all, too
    needs: str = ""         # an engine of doctor's


DESCRIPTORS = {"open": [errno.EMFILE], "pipe": [errno.EMFILE]}
DISK = {"mkdir": [errno.ENOSPC], "write": [errno.ENOSPC], "fsync": [errno.ENOSPC],
        "rename": [errno.EIO], "ftruncate": [errno.ENOSPC]}
FILES = {"open": [errno.EMFILE, errno.EACCES], "read": [errno.EIO], "mmap": [errno.ENOMEM]}
# ESRCH says that the thread is gone, which no call that fails can make true.
TRACED = {"ptrace": [errno.EPERM], "fork": [errno.EAGAIN]}
# Seconds by which clocks jump, one of them to before 1970.
DAY_S = 24 * 60 * 60
CLOCKS = {"clock": [-DAY_S, DAY_S, -60 * 365 * DAY_S]}
EVENTS = {"perf_event_open": [errno.EMFILE, errno.EACCES, errno.ENOENT, errno.ENOSPC],
          "mmap": [errno.EPERM, errno.ENOMEM], "ioctl": [errno.EINVAL]}

TABLE = [
    Row("record", lambda kept, given: ["run", "--no-debugger", "--engine=qemu", f"--keep={kept}/s",
                                       "--", program("talks")],
        {**DESCRIPTORS, "mkdir": [errno.ENOSPC], "fork": [errno.EAGAIN], "pread": [errno.EIO],
         "late": [0]},
        needs="qemu"),
    Row("record until a crash",
        lambda kept, given: ["run", f"--on-crash={kept}/crash.tt", "--",
                             program("waits_for_words")],
        {**DESCRIPTORS, **DISK, **CLOCKS, "fork": [errno.EAGAIN]}, keeps="crash.tt", text="crash\n",
        status=139, needs="qemu"),
    Row("save a bundle", lambda kept, given: ["save", given.session, f"{kept}/saved.tt"],
        {**DISK, **FILES}, keeps="saved.tt", needs="qemu"),
    Row("save many threads", lambda kept, given: ["save", given.many, f"{kept}/many.tt"],
        {"syncfs": [errno.EIO], "rename": [errno.EIO]}, keeps="many.tt", needs="qemu"),
    Row("tell of a bundle", lambda kept, given: ["info", given.bundle], FILES, needs="qemu"),
    Row("watch", lambda kept, given: ["watch", "counter", "--", program("counter")],
        {**DESCRIPTORS, **EVENTS, **TRACED}, status=7, needs="perf events"),
    Row("diagnose", lambda kept, given: ["doctor"],
        # Without opening folders they cannot be taken away: what fails is no "open".
        {"pipe": [errno.EMFILE], **CLOCKS, **EVENTS, **TRACED, "mkdir": [errno.ENOSPC]}),
    Row("attach", lambda kept, given: ["attach", "--engine=step", f"--on-crash={kept}/end.tt",
                                       "--on-call=wanted_function", str(given.beside)],
        # The requests behind the first cannot fail while the thread is there.
        {**DESCRIPTORS, **DISK, **CLOCKS, **EVENTS, "seize": [errno.EPERM], "pread": [errno.EIO],
         "read": [errno.EIO]},
        keeps="end.tt", beside=True, opens_to_remove=True, needs="step"),
]


def dialogue(*packets):
    """What a debugger says, without waiting for answers."""
    return "".join(rsp.frame(packet).decode() for packet in ("QStartNoAckMode", *packets))


RECORDED = dialogue("qSupported:multiprocess+;swbreak+;vContSupported+", "?", "Qbtrace:pt",
                    "vCont;s", "vCont;s", "qXfer:btrace:read:all:0,1000", "Qbtrace:off", "k")
TABLE += [
    Row(f"serve with {engine}",
        lambda kept, given, engine=engine: ["serve", "--once", f"--engine={engine}",
                                            f"--keep={kept}/s", "-", program("talks")],
        {**DESCRIPTORS, **DISK, **CLOCKS, "fork": [errno.EAGAIN], "socket": [errno.EMFILE],
         "read": [errno.EIO], "pread": [errno.EIO], "mmap": [errno.ENOMEM]},
        text=RECORDED, answers=True, opens_to_remove=True, needs=engine)
    for engine in ("step", "qemu")]
# Where the processor records, as in the test guest.
TABLE += [
    Row(f"record with {' '.join(options)}",
        lambda kept, given, options=options: ["run", "--no-debugger", "--engine=" + options[0],
                                              *options[1:], f"--keep={kept}/s", "--",
                                              program("talks")],
        # All else fails as with other engines.
        EVENTS, keeps="s", needs=options[0])
    for options in (["pt"], ["pt", "--by-cpu"], ["pt", "--lossless"], ["bts"], ["lbr"])]
TABLE += [
    Row("serve with pt",
        lambda kept, given: ["serve", "--once", "--engine=pt", f"--keep={kept}/s", "-",
                             program("talks")],
        {**DESCRIPTORS, **EVENTS}, text=RECORDED, answers=True, opens_to_remove=True,
        needs="pt"),
    Row("attach with pt",
        lambda kept, given: ["attach", "--engine=pt", f"--on-crash={kept}/end.tt",
                             "--on-call=wanted_function", str(given.beside)],
        {**EVENTS, "seize": [errno.EPERM], "pread": [errno.EIO]}, keeps="end.tt", beside=True,
        needs="pt")]
TABLE += [Row("tell of a stream",
              lambda kept, given: ["info", next(pathlib.Path(given.bundle).rglob("*.stream"))],
              FILES, needs="qemu")]
TABLE += [
    Row(f"show {what}", lambda kept, given, what=what: ["history", given.paths[what], "-20,-1"],
        FILES, needs="qemu")
    for what in ("a session", "a bundle", "a bundle of LLDB's", "a perf.data file")]
TABLE += [
    Row(f"export {form}",
        lambda kept, given, form=form: ["export", f"--format={form}", f"--output={kept}/{form}",
                                        given.bundle],
        {**DISK, **FILES}, writes=form, is_quick=form in ("html", "perf-data"), needs="qemu")
    for form in ("folded", "chrome", "perfetto", "html", "perf-data", "drcov", "bolt", "autofdo",
                 "arrow", "npy", "btrace")]


class Given:
    """A recording, and what was made of it, to be read."""

    def __init__(self):
        self.place = driver.Place()
        self.session = os.path.join(self.place.path, "session")
        self.many = os.path.join(self.place.path, "many")
        self.bundle = os.path.join(self.place.path, "given.tt")

        self.beside = None  # a running program's number

    @functools.cached_property
    def paths(self):
        """The recording in each form that can be opened."""
        file = os.path.join(self.place.path, "perf.data")
        self.make(["run", "--no-debugger", "--engine=qemu", f"--keep={self.session}", "--",
                   program("talks")])
        self.make(["run", "--no-debugger", "--engine=qemu", f"--keep={self.many}", "--",
                   program("many_threads"), "1", "100"])
        self.make(["save", self.session, self.bundle])
        self.make(["export", "--format=perf-data", f"--output={file}", self.bundle])
        return {"a session": self.session, "a bundle": self.bundle,
                "a bundle of LLDB's": os.path.join(self.bundle, "trace.json"),
                "a perf.data file": file}

    def make(self, words):
        outcome = driver.run([TAILTRACE, *words], self.place)
        if outcome.status != 0:
            sys.exit(f"cannot make what is to be read: {outcome.err}")


def check_kept(row, place):
    """What is wrong with what the row keeps."""
    for name in os.listdir(place.kept):
        if ".unfinished." in name:
            return f"half of something is left: {name}"
    path = os.path.join(place.kept, row.keeps)
    if not row.keeps or not os.path.exists(path):
        return ""
    read = subprocess.run([TAILTRACE, "history", path, "-1"], capture_output=True, text=True,
                          timeout=driver.HANG_S, check=False)
    return "" if read.returncode == 0 else f"what is kept cannot be read: {read.stderr}"


def written(row, place):
    """What the row wrote; None: nothing."""
    path = pathlib.Path(place.kept, row.writes)
    return path.read_bytes() if row.writes and path.exists() else None


def check(row, outcome, place, in_peace=None, call=""):
    """What is wrong when a call failed; empty: nothing."""
    if call in ("clock", "late") and outcome.status != row.status:
        return f"status {outcome.status}, though no call failed"
    if call == "open" and row.opens_to_remove:
        outcome.left = []
    if wrong := outcome.wrong(row.status):
        return wrong
    if written(row, place) not in (None, in_peace) and "error: " not in outcome.err:
        return "what it wrote is not whole, and nothing is said"
    if outcome.status == 0 and row.writes and written(row, place) is None:
        return "nothing is written, and nothing is said"
    if outcome.status != row.status:
        if "error: " not in outcome.err and not row.answers:
            return f"status {outcome.status} without an error"
        if row.keeps and os.path.exists(os.path.join(place.kept, row.keeps)):
            return "it failed, and something is kept"
        if written(row, place) is not None:
            return "it failed, and half of something is left"
    elif row.keeps and not os.path.exists(os.path.join(place.kept, row.keeps)) and \
            "error: " not in outcome.err:
        return "nothing is kept, and nothing is said"
    return check_kept(row, place)


def numbers(count, everything):
    if everything:
        return range(1, count + 1)
    return sorted({1, (count + 1) // 2, count} & set(range(1, count + 1)))


def in_a_place(row, given, fault, judge):
    place = driver.Place()
    beside = driver.Beside() if row.beside else None
    given.beside = beside and beside.process.pid
    try:
        return judge(driver.run([TAILTRACE, *row.words(place.kept, given)], place, fault, row.text,
                                beside), place)
    finally:
        place.remove()


def walk(row, given, everything):
    """How many faults were tried, and what was wrong with which."""
    peace, in_peace = in_a_place(row, given, None,
                                 lambda outcome, place: (outcome, written(row, place)))
    if peace.status != row.status or peace.wrong(row.status):
        return 0, [f"in peace: status {peace.status}, {peace.wrong(row.status)}\n{peace.err}"]
    tried, wrong = 0, []
    for call, errors in row.fails.items():
        for number in numbers(peace.calls[call], everything):
            for error in errors if everything else errors[number % len(errors):][:1]:
                fault = f"{call}:{number}:{error}"
                tried += 1
                said, err = in_a_place(
                    row, given, fault,
                    lambda outcome, place: (check(row, outcome, place, in_peace, call),
                                            outcome.err))
                if said:
                    wrong.append(f"{call} number {number}: {errno.errorcode.get(error, 'a jump')}: "
                                 f"{said}\n{err}")
    return tried, wrong


# Limits of the system in the place of calls that fail.
LIMITS = [
    ("descriptors", resource.RLIMIT_NOFILE, (8, 12, 16, 24)),
    ("memory", resource.RLIMIT_AS, (60 << 20, 100 << 20, 200 << 20)),
    ("the size of files", resource.RLIMIT_FSIZE, (0, 4096)),
]


def with_limits(given, everything):
    """Saves, shows and exports a bundle with less and less of everything."""
    tried, wrong = 0, []
    names = ("save a bundle", "show a bundle", "export html", "export perf-data")
    for row in (row for row in TABLE if row.name in names):
        in_peace = in_a_place(row, given, None, lambda _, place, row=row: written(row, place))
        for name, what, values in LIMITS:
            for value in values if everything else values[:2]:
                place = driver.Place()
                env = place.environment()
                del env["LD_PRELOAD"]
                words = [TAILTRACE, *row.words(place.kept, given)]
                done = subprocess.run(
                    words, env=env, capture_output=True, text=True, check=False,
                    timeout=driver.HANG_S, restore_signals=False,  # SIGXFSZ stays ignored
                    preexec_fn=lambda: resource.setrlimit(what, (value, value)))
                outcome = driver.Outcome(done.returncode, done.stdout, done.stderr, place,
                                         driver.end_orphans(driver.HANG_S))
                tried += 1
                # The loader itself ends with 127 where it has no room.
                said = "" if outcome.status == 127 else check(row, outcome, place, in_peace)
                if said:
                    wrong.append(f"{row.name} with {value} of {name}: {said}\n{outcome.err}")
                place.remove()
    return tried, wrong


def with_few_syncs(given, _):
    """A bundle is on the disk when it is at its place: of few files each by itself, of many all at
    once, for each takes the disk some time."""
    tried, wrong = 0, []
    for session, few in ((given.session, True), (given.many, False)):
        place = driver.Place()
        done = driver.run([TAILTRACE, "save", session, f"{place.kept}/saved.tt"], place)
        files = sum(len(names) for _, _, names in os.walk(place.kept))
        synced, at_once = done.calls["fsync"], done.calls["syncfs"]
        # The folder and the one that it is in are written out, too.
        good = (synced >= files + 2 and at_once == 0) if few else (synced == 1 and at_once == 1)
        tried += 1
        if done.status != 0 or not good or few != (files < 64):
            wrong.append(f"{files} files: {synced} fsync, {at_once} syncfs\n{done.err}")
        place.remove()
    return tried, wrong


def works(name):
    document = json.loads(subprocess.run([TAILTRACE, "doctor", "--json"], capture_output=True,
                                         text=True, check=False).stdout)
    return any(one["works"] for one in document["engines"] + document["besides"]
               if one["name"] == name)


def main():
    everything = "--all" in sys.argv
    names = [word for word in sys.argv[1:] if word != "--all"]
    driver.adopt_orphans()
    given = Given()
    failures = total = 0
    walks = [(row.name, row.needs, functools.partial(walk, row, given, everything))
             for row in TABLE if row.is_quick or everything or row.name in names]
    walks.append(("syncs", "qemu", functools.partial(with_few_syncs, given, everything)))
    walks.append(("limits", "qemu", functools.partial(with_limits, given, everything)))
    for name, needs, one in walks:
        if names and name not in names:
            continue
        if needs and not works(needs):
            print(f"skip: {name}: {needs} does not work here")
            continue
        if needs == "qemu":
            assert given.paths
        tried, wrong = one()
        total += tried
        print(f"{name}: {tried} faults", flush=True)
        for text in wrong:
            failures += 1
            print(f"FAILED: {name}: {text}", flush=True)
    shutil.rmtree(given.place.path)
    if total == 0:
        sys.exit(77)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
