"""Whoever talks to `tailtrace serve`, or is talked about, ends in every state of the dialogue.

    states_test.py [--all]

The states are the packets of a debugger's usual dialogue, one after the other. In each of them the
debugger closes the connection, closes it in the middle of a packet, or says no more while the
server is told to end; the server below is killed; the program is killed. Programs that fork, become
another, make threads, unwind and end run to their end from each of them. Whatever it was: the
server ends by itself with a status, no process is left, and no file. Without --all every third of
them is tried.
"""

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))
import cases  # pylint: disable=wrong-import-position
import driver  # pylint: disable=wrong-import-position
import rsp  # pylint: disable=wrong-import-position

TALKS = "talks"
RESTLESS = ("forks", "vfork_exec", "relay", "exceptions", "nothing")
STOPPED = 4  # the state in which nothing is recorded yet
MOST_STOPS = 100  # of one program
TRAP = "05"


class Dialogue:
    """A debugger's side, which may stop after any step."""

    def __init__(self, port):
        self.debugger = rsp.Debugger(port)
        self.thread = ""

    def look_at_the_stop(self):
        self.thread = re.search(r"thread:([^;]+);", self.debugger.ask("?"))[1]

    def step(self):
        return self.debugger.ask(f"vCont;s:{self.thread}")

    def steps(self):
        """In their order: what is said, and what it is called."""
        ask = self.debugger.ask
        return [("connected", lambda: None),
                ("without acknowledgements", self.debugger.stop_acks),
                ("greeted", lambda: ask("qSupported:multiprocess+;swbreak+;vContSupported+")),
                ("stopped", self.look_at_the_stop),
                ("selected", lambda: ask("Hg" + self.thread)),
                ("recording", lambda: ask("Qbtrace:pt")),
                ("stepped", self.step),
                ("reading", lambda: ask("qXfer:btrace:read:all:0,40")),
                ("no longer recording", lambda: ask("Qbtrace:off")),
                ("running", lambda: self.debugger.send("vCont;c"))]


def close(server, dialogue, family):
    dialogue.debugger.close()


def close_in_a_packet(server, dialogue, family):
    dialogue.debugger.send_raw(b"$qXfer:btrace:re")
    dialogue.debugger.close()


def stall(server, dialogue, family):
    dialogue.debugger.send_raw(b"$vCo")
    server.process.terminate()


def executed_by(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def lose(dialogue, family, names):
    """Kills one of the server's family, and asks for what is there until it is told that it ended.
    Any answer will do, and none when the connection ends; that one comes is what is tried."""
    for pid in family:
        if executed_by(pid) in names:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    try:
        for packet in ("?", "g", "qXfer:btrace:read:new:0,1000", "vCont;c"):
            if dialogue.debugger.ask(packet)[:1] in ("W", "X"):
                break
    except (rsp.Gone, ConnectionError):
        pass
    dialogue.debugger.close()


def lose_what_is_below(server, dialogue, family):
    lose(dialogue, family, ("gdbserver", "qemu-x86_64"))


def lose_the_program(server, dialogue, family):
    lose(dialogue, family, ("talks", "qemu-x86_64"))


WAYS = (close, close_in_a_packet, stall, lose_what_is_below, lose_the_program)


def run_to_its_end(server, dialogue, family):
    """All that the program does is recorded, or not, as far as the dialogue came."""
    go_on = "vCont;c"
    for _ in range(MOST_STOPS):
        stop = dialogue.debugger.ask(go_on)
        if stop[:1] in ("W", "X"):
            break
        # A debugger passes on what is not its own.
        go_on = "vCont;c" if stop[1:3] == TRAP else f"vCont;C{stop[1:3]}:{dialogue.thread};c"
    else:
        raise AssertionError(f"the program does not end, but: {stop}")
    dialogue.debugger.close()


def try_it(engine, way, states, program=TALKS):
    """What is wrong after a dialogue of so many steps, and the last one's name."""
    folder = tempfile.mkdtemp(prefix="states.")
    places = ("TMPDIR", "XDG_RUNTIME_DIR", "TAILTRACE_SESSIONS")
    env = dict(os.environ, **{place: folder for place in places})
    path = os.path.join(cases.BINARY_DIR, "tests", "programs", program)
    server = rsp.Server("--once", f"--engine={engine}", "127.0.0.1:0", path, env=env)
    try:
        if server.port is None:
            return "", f"it does not listen: {server.said}"
        dialogue = Dialogue(server.port)
        name = ""
        for name, say in dialogue.steps()[:states]:
            say()
        way(server, dialogue, cases.children_of(server.process.pid))
        status = server.wait()
        said = "".join(server.said)
        orphans = driver.end_orphans(driver.HANG_S)
        left = os.listdir(folder)
        dialogue.debugger.close()
        allowed = 128 + signal.SIGTERM if way is stall else None
        if status < 0 or status >= 128 and status not in (allowed, 128 + signal.SIGKILL):
            return name, f"status {status}: {said}"
        if orphans:
            return name, f"processes are left: {orphans}"
        if left:
            return name, f"files are left: {left}"
        return name, driver.badly_said(said)
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    everything = "--all" in sys.argv
    driver.adopt_orphans()
    engines = [engine for engine in ("step", "qemu")
               if any(one["name"] == engine and one["works"] for one in cases.doctor()["engines"])]
    failures = tried = 0
    count = 10
    table = [(way, TALKS, count) for way in WAYS]
    for offset, engine in enumerate(engines):
        # What runs cannot be told to run. Single steps up to main() take too long.
        last = count - 1 if engine == "qemu" else STOPPED
        restless = [(run_to_its_end, program, last) for program in RESTLESS]
        for number, (way, program, last) in enumerate(table + restless):
            for states in range(1, last + 1):
                if not everything and (states + number + offset) % 3 != 0:
                    continue
                name, wrong = try_it(engine, way, states, program)
                tried += 1
                if wrong:
                    failures += 1
                    print(f"FAILED: {engine}, {program}, {name}, {way.__name__}: {wrong}",
                          flush=True)
    print(f"{tried} ends in {count} states")
    sys.exit(77 if tried == 0 else 1 if failures else 0)


if __name__ == "__main__":
    main()
