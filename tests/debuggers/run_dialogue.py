#!/usr/bin/env python3
"""Plays a dialogue with stock gdb or lldb and compares; README.md has the format."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import hosts
import lldb_stock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "gdb-scripts"
SKIPPED = 77
TIMEOUT_S = float(os.environ.get("TAILTRACE_HANG_S", 120))


class Dialogue:
    """A parsed .dialogue file: its settings, and pairs of command and expected lines."""

    def __init__(self, path):
        self.settings = {"connect": "pipe", "engines": "step qemu", "formats": "bts pt"}
        self.debugger = "gdb"
        self.steps = []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                self._take(line.rstrip("\n"))

    def _take(self, line):
        prompt = re.match(r"\((gdb|lldb)\) ", line)
        if prompt:
            self.debugger = prompt.group(1)
            self.steps.append((line[prompt.end():], []))
        elif self.steps:
            if line:
                self.steps[-1][1].append(line)
        elif line and not line.startswith("#"):
            name, value = line.split(":", 1)
            self.settings[name] = value.strip()


def pattern_of(line):
    return ".*".join(re.escape(part) for part in line.split("..."))


def filled(line, words):
    """A line with what the words in braces mean; other braces are the line's own."""
    for word, meant in words.items():
        line = line.replace("{" + word + "}", str(meant))
    return line


def complaint(answer, expected):
    """What is wrong with an answer; None if nothing is."""
    lines = answer.split("\n")
    at = 0
    for want in expected:
        if want.startswith("! "):
            pattern = re.compile(pattern_of(want[2:]))
            if any(pattern.search(line) for line in lines):
                return f"must not be there: {want[2:]}"
            continue
        pattern = re.compile(pattern_of(want) + r"\s*$")
        found = next((i for i in range(at, len(lines)) if pattern.match(lines[i])), None)
        if found is None:
            return f"missing: {want}"
        at = found + 1
    return None


def start_ready(program):
    """Starts a program that says when it is ready and waits for its input."""
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()


class Server:
    """A `tailtrace serve` with a port, and the program that it attaches to, if any."""

    def __init__(self, command, program=None):
        self.inferior = None
        if program:
            self.inferior = start_ready(program)
            command = command + [str(self.inferior.pid)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        self.port = None
        for line in self.process.stderr:
            found = re.match(r"Listening on port (\d+)", line)
            if found:
                self.port = found.group(1)
                break

    def end(self):
        for process in (self.process, self.inferior):
            if process:
                end(process)


def connection(options, connect, program):
    """The server, if it runs by itself, and the gdb commands that connect to it."""
    serve = [options.tailtrace, "serve", f"--engine={options.engine}"]
    pipe = " ".join(serve)
    if connect == "pipe":
        return None, [f"target remote | {pipe} - {program}"]
    if connect == "none":
        return None, []
    if connect == "extended":
        return None, [f"target extended-remote | {pipe} --multi -",
                      f"set remote exec-file {program}"]
    if connect == "port":
        server = Server(serve + ["127.0.0.1:0", program])
    elif connect == "attach":
        server = Server(serve + ["--attach", "127.0.0.1:0"], program)
    else:
        sys.exit(f"unknown connect: {connect}")
    return server, [f"target remote 127.0.0.1:{server.port}"]


def run_debugger(command, text=None, env=None):
    """All that a debugger says. It reads its commands from `text` if there is any."""
    stdin = {"input": text} if text else {"stdin": subprocess.DEVNULL}
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT_S, errors="replace", check=False, env=env,
                              **stdin).stdout
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace") + "\n(no answer in time)\n"


def answers_in(output):
    """What stands between the marks that were printed before each command."""
    return re.split(r"\n?@@(?:\d+|end)@@\n", output)[1:]


def play_with_lldb(options, dialogue, folder):
    """As play_with_gdb."""
    program = f"{options.programs}/{dialogue.settings['program']}"
    connect = dialogue.settings["connect"]
    server, inferior, connecting, env = None, None, [], None
    serve = [options.tailtrace, "serve", "--once", f"--engine={options.engine}"]
    if connect.startswith("debug-server"):
        env = lldb_stock.debug_server(options.tailtrace, options.engine)
        if connect == "debug-server":
            connecting = [f"target create {program}"]
        else:
            inferior = start_ready(program)
    elif connect in ("pipe", "port"):
        server = Server(serve + ["127.0.0.1:0", program])
        connecting = lldb_stock.connecting(options.engine, program, server.port)
    elif connect == "attach":
        server = Server(serve + ["--attach", "127.0.0.1:0"], program)
        connecting = lldb_stock.connecting(options.engine, program, server.port)
    elif connect != "none":
        sys.exit(f"unknown connect: {connect}")
    words = {"engine": options.engine, "program": program, "folder": folder,
             "plugin": lldb_stock.plugin(options.tailtrace),
             "pid": inferior.pid if inferior else ""}
    commands = [filled(command, words) for command, _ in dialogue.steps]
    try:
        output = run_debugger(lldb_stock.command(), lldb_stock.script(connecting, commands),
                              env)
    finally:
        if server:
            server.end()
        if inferior:
            end(inferior)
    return commands, answers_in(output), output


def play_with_gdb(options, dialogue, folder):
    """The answers to the dialogue's commands, and the whole transcript."""
    program = f"{options.programs}/{dialogue.settings['program']}"
    server, connecting = connection(options, dialogue.settings["connect"], program)
    words = {"format": options.format, "engine": options.engine, "program": program,
             "scripts": SCRIPTS, "tailtrace": options.tailtrace,
             "folder": folder,
             "port": server.port if server else ""}
    fixed = ["set width 0", "set height 0", "set confirm off", "set debuginfod enabled off",
             "set sysroot /", "set remotetimeout 60"]
    commands = [filled(command, words) for command, _ in dialogue.steps]
    gdb = [*hosts.gdb(), "-q", "-nx", "-batch"]
    for command in fixed + connecting:
        gdb += ["-ex", command]
    for number, command in enumerate(commands):
        gdb += ["-ex", f"echo \\n@@{number}@@\\n", "-ex", command]
    gdb += ["-ex", "echo \\n@@end@@\\n", program]
    try:
        # The package that is built beside the program, for GDB's own Python.
        package = pathlib.Path(options.tailtrace).resolve().parents[1] / "python"
        output = run_debugger(gdb, env={**os.environ, "PYTHONPATH": str(package)})
    finally:
        if server:
            server.end()
    return commands, answers_in(output), output


def what_is_missing(dialogue, engine):
    """What of this machine the dialogue lacks; empty if nothing."""
    server = "gdbserver" if engine == "step" else "qemu-x86_64"
    if not shutil.which(server):
        return f"{server} is not installed"
    if dialogue.debugger == "lldb":
        oldest = int(dialogue.settings.get("lldb", lldb_stock.OLDEST))
        missing = lldb_stock.why_not()
        if not missing and lldb_stock.version() < oldest:
            missing = f"it needs LLDB {oldest}"
        return missing
    return "" if shutil.which("gdb") else "gdb is not installed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tailtrace", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--format", default="pt", help="of the trace that gdb asks for")
    parser.add_argument("--show", action="store_true", help="print the transcript")
    parser.add_argument("dialogue")
    options = parser.parse_args()
    dialogue = Dialogue(options.dialogue)
    missing = what_is_missing(dialogue, options.engine)
    if missing:
        print(f"skipped: {missing}")
        return SKIPPED
    play = play_with_lldb if dialogue.debugger == "lldb" else play_with_gdb
    with tempfile.TemporaryDirectory(prefix="tailtrace-dialogue-") as folder:
        commands, answers, output = play(options, dialogue, folder)
    if options.show:
        print(output)
    for number, (_, expected) in enumerate(dialogue.steps):
        answer = answers[number] if number < len(answers) else ""
        words = {"engine": options.engine, "folder": folder}
        wrong = complaint(answer, [filled(line, words) for line in expected])
        if wrong:
            with tempfile.NamedTemporaryFile("w", prefix="tailtrace-dialogue-", suffix=".txt",
                                             delete=False) as kept:
                kept.write(output)
            print(f"({dialogue.debugger}) {commands[number]}\n{answer}\n{wrong}\n"
                  f"the transcript is {kept.name}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
