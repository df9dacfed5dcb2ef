"""Runs commands of ours with calls that fail, and looks at what they say and leave behind."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ["TAILTRACE_BINARY_DIR"]
TAILTRACE = os.environ["TAILTRACE"]
SHIM = os.environ.get('FAULT_SHIM') or os.path.join(BUILD, 'tests', 'libfault_shim.so')
HANG_S = float(os.environ.get("TAILTRACE_HANG_S", 120))
PR_SET_CHILD_SUBREAPER = 36

# As enum Name in shim.c.
NAMES = ("open", "read", "write", "mmap", "ioctl", "perf_event_open", "ptrace", "pread", "mkdir",
         "rename", "fsync", "ftruncate", "socket", "fork", "pipe", "syncfs", "seize", "clock",
         "late")


def adopt_orphans():
    """Whatever a command leaves behind becomes a child of this process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_children():
    found = []
    for tid in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{tid}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def end_orphans(patience_s):
    """Those that are still there after a time, by name; they are killed."""
    end = time.monotonic() + patience_s
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return []
        if time.monotonic() > end:
            break
        time.sleep(0.002)
    names = []
    for pid in own_children():
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            names.append(file.read().strip())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return names


class Place:
    """Folders of a run's own: for what it keeps, and for what it must take away again."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="faults.")
        self.kept = os.path.join(self.path, "kept")
        self.scratch = os.path.join(self.path, "scratch")
        # Recordings that could not be put where they were wanted are kept here.
        self.state = os.path.join(self.path, "state")
        os.mkdir(self.kept)
        os.mkdir(self.scratch)
        self.counts = os.path.join(self.path, "counts")
        with open(self.counts, "wb") as file:
            file.write(bytes(8 * (len(NAMES) + 1)))

    def environment(self, fault=None, **more):
        env = dict(os.environ, TMPDIR=self.scratch, XDG_RUNTIME_DIR=self.scratch,
                   TAILTRACE_SESSIONS=self.scratch, XDG_STATE_HOME=self.state,
                   FAULT_PROGRAM=os.path.basename(TAILTRACE), FAULT_COUNTS=self.counts,
                   LD_PRELOAD=SHIM, **more)
        env.pop("FAULT", None)
        if fault:
            env["FAULT"] = fault
        return env

    def counted(self):
        """Calls by name, and how many were made to fail."""
        with open(self.counts, "rb") as file:
            numbers = struct.unpack(f"{len(NAMES) + 1}q", file.read())
        return dict(zip(NAMES, numbers)), numbers[-1]

    def left(self):
        """What lies in the folders that must be empty."""
        return sorted(os.listdir(self.scratch))

    def remove(self):
        shutil.rmtree(self.path)


ERROR = re.compile(r"^error: ([^\n]+)\n((?:  (?:why|fix|now):  [^\n]+\n)*)", re.MULTILINE)


def badly_said(text):
    """What is wrong with the errors in a text; empty: nothing."""
    for line in re.findall(r"^error:.*$", text, re.MULTILINE):
        if not re.match(r"error: \S.{5,}", line):
            return f"an error that says nothing: {line!r}"
    for what, parts in ERROR.findall(text):
        if "why:" not in parts and ": " not in what:
            return f"an error without a cause: {what!r}"
    for word in ("terminate called", "what():", "Assertion", "Sanitizer", "Traceback"):
        if word in text:
            return f"it says {word!r}"
    return ""


class Outcome:
    def __init__(self, status, out, err, place, orphans):
        self.status, self.out, self.err, self.orphans = status, out, err, orphans
        self.calls, self.failed = place.counted()
        self.left = place.left()

    def wrong(self, of_the_program=None):
        """What no command may do, whatever failed; but for a status that is the program's own."""
        ended = (128 + signal.SIGABRT, 128 + signal.SIGSEGV)
        if self.status < 0 or self.status in ended and self.status != of_the_program:
            return f"it ended by a signal: {self.status}"
        if self.orphans:
            return f"processes are left: {self.orphans}"
        if self.left:
            return f"files are left: {self.left}"
        return badly_said(self.err)


class Beside:
    """A running program that a command is about: waits_for_words, which is told again and again to
    call wanted_function(), and in the end to exit."""

    EXITS_WITH = 3
    PAUSE_S = 0.02  # between two calls; nothing depends on it

    def __init__(self):
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "tests", "programs", "waits_for_words")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)
        self.process.stdout.readline()  # it is ready
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.talk), threading.Thread(target=self.listen)]
        for thread in self.threads:
            thread.start()

    def talk(self):
        with contextlib.suppress(BrokenPipeError):
            while not self.over.wait(self.PAUSE_S):
                self.process.stdin.write("call\n")
            self.process.stdin.write("exit\n")

    def listen(self):
        for _ in self.process.stdout:
            pass

    def end(self):
        """Its status."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        return self.process.wait(HANG_S)


def run(words, place, fault=None, text="", beside=None):
    """A command to its end; the program beside it is ended then."""
    try:
        done = subprocess.run(words, env=place.environment(fault), input=text, cwd=place.kept,
                              capture_output=True, text=True, errors="replace", timeout=HANG_S,
                              check=False)
    except subprocess.TimeoutExpired:
        end_orphans(0)
        sys.exit(f"hangs with {fault}: {' '.join(words)}")
    if beside and (status := beside.end()) != beside.EXITS_WITH:
        done.stderr += f"\nerror: the program beside: status {status}\n"
        done.returncode = -1
    # Children of one that ended may need a moment to see it.
    return Outcome(done.returncode, done.stdout, done.stderr, place, end_orphans(HANG_S))
