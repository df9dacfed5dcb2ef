"""The lldb that is installed, and how it is brought to our server."""

import functools
import os
import pathlib
import re
import shutil
import subprocess

import hosts

OLDEST = 15  # the first that decodes a trace of a debug server by itself
NEWEST = 30


@functools.cache
def path():
    """$TAILTRACE_TEST_LLDB, else the newest lldb that can read Intel PT; empty if there is none."""
    if named := os.environ.get("TAILTRACE_TEST_LLDB"):
        return shutil.which(named) or ""
    names = [f"lldb-{version}" for version in range(NEWEST, OLDEST - 1, -1)] + ["lldb"]
    for name in names:
        found = shutil.which(name)
        if found and reads_intel_pt(found):
            return found
    return ""


@functools.cache
def version():
    """Its main number; 0 if it does not say."""
    answer = subprocess.run([path(), "--version"], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    found = re.search(r"lldb version (\d+)", answer.stdout)
    return int(found[1]) if found else 0


@functools.cache
def reads_intel_pt(lldb):
    """Debian's packages are built with it, others may not be."""
    answer = subprocess.run([lldb, "-b", "-x", "-o", "trace schema intel-pt"], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    return "iptTrace" in answer.stdout


def why_not():
    """Why nothing can be tried with lldb here; empty if it can."""
    if path() and reads_intel_pt(path()):
        return ""
    if named := os.environ.get("TAILTRACE_TEST_LLDB"):
        return f"{named} is not there, or reads no Intel PT"
    return "there is no lldb that reads Intel PT (sudo apt install lldb-22)"


def command():
    return [*hosts.lldb(path()), "-x", "--no-use-colors"]


def connecting(engine, program, port):
    """Commands that create the target and connect to the server."""
    commands = []
    if engine == "qemu":
        # LLDB would take the file that the local process executes, which is qemu.
        commands.append("platform select remote-linux --sysroot /")
    return commands + [f"target create {program}",
                       f"process connect -p gdb-remote connect://127.0.0.1:{port}"]


def debug_server(tailtrace, engine):
    """An environment in which lldb starts our debug server by itself."""
    server = pathlib.Path(tailtrace).with_name("tailtrace-lldb-server")
    return {**os.environ, "LLDB_DEBUGSERVER_PATH": str(server), "TAILTRACE_ENGINE": engine}


def plugin(tailtrace):
    return pathlib.Path(tailtrace).parent / "lldb" / "liblldb-tailtrace.so"


def typed(command):
    """What `thread select` selects is shown by another thread of LLDB, beside the next command:
    frames that are asked for as a thread begins to run stay, and are wrong where it stops."""
    return re.sub(r"^thread select (\d+)$",
                  r"script lldb.process.SetSelectedThreadByIndexID(\1)", command)


def script(before, commands):
    """What lldb reads on stdin: a mark before each command, and nothing runs in the background."""
    # A server of ours says itself how long to wait, but not before LLDB's own server has started.
    lines = ["script lldb.debugger.SetAsync(False)", "settings set auto-confirm true",
             "settings set stop-line-count-before 0", "settings set stop-line-count-after 1",
             "settings set symbols.enable-external-lookup false",
             "settings set plugin.process.gdb-remote.packet-timeout 60"] + before
    for number, text in enumerate(commands):
        lines += [f'script print("\\n@@{number}@@", flush=True)', typed(text)]
    return "\n".join(lines + ['script print("\\n@@end@@", flush=True)', "quit", ""])
