"""Beginning and ending recordings, keeping them, and what works here."""

import glob
import os
import re
import shlex
import shutil

import gdb

from . import export, native, place, saved, source
from .errors import user_error
from .package import attempt, package
from .prefix import Command, completed
from .server import ask


def filename(argument, verb):
    words = gdb.string_to_argv(argument)
    if len(words) != 1:
        raise user_error(f"cannot {verb}", "it needs the name of one file",
                         f"see `help tailtrace {verb}`")
    return os.path.abspath(os.path.expanduser(words[0]))


class Start(Command):
    """Begin to record the program's threads, and those that it starts.

Usage: tailtrace start [pt | bts | lbr]

A program that GDB runs itself is recorded by the processor: Intel PT, Intel BTS, or last branch
records, the best that works unless one is named. One that does not run yet is recorded from its
first instruction. Behind `tailtrace serve` it is the server that records."""

    name = "start"
    elsewhere = ("record",)

    def run(self, argument):
        word = argument.strip() or "auto"
        if word not in native.ENGINES:
            raise user_error(f"cannot record with `{word}`", "", "tailtrace start [pt | bts | lbr]")
        inferior = gdb.selected_inferior()
        if native.is_native(inferior):
            recording = native.start(inferior, word)
            if recording is None:
                gdb.write("Recording begins when the program does.\n")
            else:
                native.tell(recording)
        else:
            self.behind_server("" if word == "auto" else word)
        saved.unload()

    @staticmethod
    def behind_server(word):
        ask("help")  # says how to get a server where there is none
        if place.record_of_gdb() is None:
            gdb.execute(f"record btrace {word}".rstrip())
        gdb.write("Recording.\n")

    def complete(self, text, word):
        return [choice for choice in native.ENGINES if choice.startswith(text)]


class Stop(Command):
    """End the recording; what was recorded is dropped, and what was loaded is forgotten.

Usage: tailtrace stop"""

    name = "stop"
    completion = gdb.COMPLETE_NONE
    takes_words = False

    def run(self, argument):
        ended = saved.trace is not None
        saved.unload()
        ended = native.stop(gdb.selected_inferior()) or ended
        if gdb.selected_thread() is None or place.record_of_gdb() is None:
            if not ended:
                raise user_error("cannot stop recording", "nothing is recorded",
                                 "tailtrace start")
            return
        # GDB 13 loses its way when it is stopped in the past.
        if place.is_gdb_in_the_past():
            gdb.execute("record goto end", to_string=True)
        gdb.execute("record stop")


class Info(Command):
    """Say what is recorded of each thread, and of the selected one how much.

Usage: tailtrace info"""

    name = "info"
    elsewhere = ("show",)
    completion = gdb.COMPLETE_NONE
    takes_words = False

    def run(self, argument):
        self.write_threads()
        history = source.current()
        size = history.size  # all of it is looked at, whatever its length
        facts = history.facts()
        whole = "from its beginning" if facts["complete"] else "older ones are overwritten"
        gaps = facts["gaps"]
        gdb.write(f"Selected thread: {size - gaps} instructions, {gaps} gaps, {whole}.\n")

    @staticmethod
    def write_threads():
        recording = native.current()
        if saved.trace is not None:
            gdb.write(f"Loaded from {saved.trace.path}:\n")
            for thread in saved.trace.threads:
                gdb.write(thread_line(thread.pid, thread.tid, thread.engine))
        elif recording is not None:
            for tid in recording.threads():
                gdb.write(thread_line(recording.pid, tid, recording.attached.engine))
        else:
            source.refuse_where_none_can_be()
            gdb.write(ask("info"))


def thread_line(pid, tid, engine):
    return f"  thread {pid}.{tid}: recorded by {engine or 'an unknown engine'}\n"


class Save(Command):
    """Write what is recorded of all threads to a new folder, to be loaded another day.

Usage: tailtrace save FOLDER

It has the code that was executed and the names of the files it came from, not the program's data:
keep a core file beside it (`generate-core-file`)."""

    name = "save"
    completion = gdb.COMPLETE_FILENAME

    def run(self, argument):
        path = filename(argument, "save")
        recording = native.current()
        if saved.trace is not None:
            attempt(lambda _: saved.trace.save(path))
            self.tell(len(saved.trace.threads), path)
        elif recording is not None:
            self.tell(recording.save(path), path)
        else:
            source.refuse_where_none_can_be()
            gdb.write(ask(f"save {path}"))

    @staticmethod
    def tell(count, path):
        gdb.write(f"Saved {threads_text(count)} in {path}.\n")


class Load(Command):
    """Show the histories of a saved folder from now on, as with a core file of the program.

Usage: tailtrace load FOLDER

Also loads whatever else the Python package opens. `tailtrace stop` forgets it."""

    name = "load"
    elsewhere = ("open",)
    completion = gdb.COMPLETE_FILENAME

    def run(self, argument):
        saved.load(filename(argument, "load"))
        gdb.write(f"Loaded {threads_text(len(saved.trace.threads))} from {saved.trace.path}.\n")


def threads_text(count):
    return f"{count} thread{'' if count == 1 else 's'}"


class Run(Command):
    """Start the program under the best engine there is here, connect, and record up to `main`.

Usage: tailtrace run [ARGUMENTS]

Without arguments the program gets those of `set args`; a shell reads them, and of redirections
takes 2>FILE only. What starts it is `set tailtrace server`."""

    name = "run"
    completion = gdb.COMPLETE_FILENAME

    def run(self, argument):
        program = gdb.current_progspace().filename
        if program is None:
            raise user_error("cannot run", "GDB has no program", "file PROGRAM")
        words = argument.strip() or gdb.parameter("args")
        if any(mark in for_shell(words) for mark in "<>|&;"):
            raise user_error("cannot run", "redirections would be those of GDB's connection",
                             "set args, without < > | & ; but for 2>FILE")
        server = gdb.parameter("tailtrace server")
        if shutil.which(os.path.expanduser(server)) is None:
            raise user_error("cannot run", f"there is no program {server}",
                             "set tailtrace server /path/to/tailtrace")
        gdb.execute("set sysroot /")
        engine = gdb.parameter("tailtrace engine")
        gdb.execute(f"target remote | {shlex.quote(server)} serve --engine={engine} - "
                    f"{shlex.quote(program)} {words}".rstrip())
        self.to_main()

    @staticmethod
    def to_main():
        """As `tailtrace run` of the command line does."""
        gdb.execute("record btrace pt")
        # Where each instruction is stepped the way to `main` would take long.
        steps = "by the step engine" in ask("info")
        if steps:
            gdb.execute("record stop", to_string=True)
        if has_function("main"):
            gdb.execute("tbreak main")
            gdb.execute("continue")
        else:
            gdb.write("The program has no symbol `main`: this is its first instruction.\n")
        if steps:
            gdb.execute("record btrace pt")


def for_shell(words):
    """What a shell looks into for marks of its own, without where errors go."""
    unquoted = re.sub(r"\\.|'[^']*'|\"(\\.|[^\"\\])*\"", "", words)
    return re.sub(r"(?<!\S)2>>?(?!&)", "", unquoted)


def has_function(name):
    try:
        return gdb.decode_line(name)[1] is not None
    except gdb.error:
        return False


class Export(Command):
    """Write the selected thread's history to a new file for other programs.

Usage: tailtrace export FORMAT FILE [RANGE]

Formats: `json`, an object a line for each instruction; `calls`, the same for calls; `text`, as
`tailtrace instruction-history` has them; `folded`, stacks for flame graphs; `lcov`, how often each
line was executed. A range is one of instructions, in GDB's words; without one it is all."""

    name = "export"

    def run(self, argument):
        words = gdb.string_to_argv(argument)
        if len(words) not in (2, 3):
            raise user_error("cannot export", "it needs a format and the name of a file",
                             "see `help tailtrace export`")
        path = os.path.abspath(os.path.expanduser(words[1]))
        count = export.write(source.current(), words[0], path, words[2] if words[2:] else "")
        gdb.write(f"Wrote {count} lines to {path}.\n")

    def complete(self, text, word):
        before, space, path = text.rpartition(" ")
        if not space or word is None:
            return completed(text, word, export.FORMATS)
        # GDB would complete the words before it, too.
        found = sorted(glob.glob(glob.escape(path) + "*"))
        return completed(text, word, [before + space + name + "/" * os.path.isdir(name)
                                      for name in found])


def recorded_text(history):
    return f"{history.size} instructions, engine {history.facts()['engine']}"


class Doctor(Command):
    """Say what works here: this GDB, the connection, the server, the recording.

Usage: tailtrace doctor"""

    name = "doctor"
    completion = gdb.COMPLETE_NONE
    takes_words = False

    def run(self, argument):
        gdb.write(f"GDB {gdb.VERSION}\n")
        connection = getattr(gdb.selected_inferior(), "connection", None)
        kind = f"{connection.type} {connection.details or ''}".strip() if connection else "none"
        gdb.write(f"connection: {kind}\n")
        checks = [("Python package", lambda: package().__version__)]
        if native.is_native(gdb.selected_inferior()):
            checks += [(name, lambda name=name: native.try_engine(name) or "works")
                       for name in native.ENGINES[1:]]
        else:
            checks.append(("server", lambda: ask("help") and "tailtrace serve"))
        checks.append(("recording", lambda: recorded_text(source.current())))
        for what, try_it in checks:
            try:
                gdb.write(f"{what}: {try_it()}\n")
            except gdb.GdbError as error:
                gdb.write(f"{what}: no: {error}\n")


COMMANDS = [Start, Stop, Info, Save, Load, Run, Export, Doctor]
