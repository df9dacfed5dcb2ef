"""What cannot work is said in the agreed shape, with its exit status and its fix."""

import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

import cases

TALKS = os.path.join(cases.BINARY_DIR, "tests/programs/talks")


def elf_header(bits, machine):
    """The beginning of an executable ELF file (System V ABI, figure 4-3)."""
    return b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + struct.pack("<HHI", 2, machine, 1) \
        + bytes(64)


class EmptyWords(cases.CommandCase):
    def test_none_is_taken_for_one_that_is_not_given(self):
        for verb, *words, name in (("last", "DIR", "", "LOCATION"), ("why", "DIR", "", "LOCATION"),
                                   ("hits", "DIR", "", "LOCATION"), ("info", "", "PATH"),
                                   ("find", "DIR", "--in", "", "--in"),
                                   ("find", "DIR", "--kind", "", "--kind"),
                                   ("stats", "DIR", "--range", "", "--range"),
                                   ("info", "--thread=", "DIR", "--thread"),
                                   ("run", "--ring=", "--no-debugger", "--", "x", "--ring"),
                                   ("history", "DIR", "", "RANGE")):
            with self.subTest(verb=verb, name=name):
                self.assert_error(cases.tailtrace(verb, *words), 2,
                                  f"cannot understand the arguments of tailtrace {verb}",
                                  f"{name} is empty", f"tailtrace help {verb}")


class ClosedOutput(cases.CommandCase):
    def test_that_nothing_can_be_written_is_an_error_with_its_fix(self):
        outcome = subprocess.run([cases.TAILTRACE, "help"], check=False, text=True,
                                 preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE)
        outcome.stdout = ""
        self.assert_error(outcome, 7, "cannot write the output", "the standard output is closed",
                          "send it to /dev/null")


class MissingCapability(cases.CommandCase):
    @unittest.skipUnless(os.geteuid() == 0, "only root can be root without a capability")
    @unittest.skipUnless(shutil.which("setpriv"), "setpriv is not installed")
    def test_root_without_it_is_not_sent_to_sudo(self):
        program = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        outcome = subprocess.run(
            ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", cases.TAILTRACE,
             "attach", "--engine=step", f"--on-crash={folder.name}/bundle", str(program.pid)],
            capture_output=True, text=True, timeout=cases.HANG_S, check=False)
        self.assert_error(outcome, 4, f"cannot attach to process {program.pid}",
                          "CAP_SYS_PTRACE", "start the container with --cap-add=SYS_PTRACE")


class MissingWords(cases.CommandCase):
    def test_what_is_saved_needs_a_folder(self):
        self.assert_error(cases.tailtrace("save", "DIR"), 2, "cannot save DIR",
                          "no new folder is named", "tailtrace save DIR FOLDER")


class LongWords(cases.CommandCase):
    def test_range_as_long_as_a_word_can_be(self):
        for verb in ("history", "calls"):
            outcome = cases.tailtrace(verb, "/nonexistent", "-" + "1" * 100_000)
            self.assert_error(outcome, 7, "cannot open /nonexistent", "No such file")


class InFolder(cases.CommandCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, content, mode=0o755):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        return path

    def path_with(self, *names):
        """An environment whose PATH has these programs only."""
        tools = tempfile.mkdtemp(dir=self.folder)
        for name in names:
            if not shutil.which(name):
                self.skipTest(f"{name} is not here")
            os.symlink(shutil.which(name), os.path.join(tools, name))
        return dict(os.environ, PATH=tools)


class Programs(InFolder):
    def check(self, program, what, why, fix=""):
        for verb in (["run", "--"], ["run", "--no-debugger", "--keep=" + self.folder + "/kept",
                                     "--"], ["serve", ":0"]):
            with self.subTest(verb):
                outcome = cases.tailtrace(*verb, program)
                self.assert_error(outcome, 2, "cannot run " + what, why, fix)
        self.assertFalse(os.path.exists(self.folder + "/kept"))

    def test_no_such_program(self):
        path = os.path.join(self.folder, "nothing")
        self.check(path, path, "No such file or directory", "check the name")
        self.check("no-such-program", "no-such-program", "no folder of PATH", "give its path")

    def test_not_executable(self):
        path = self.file("plain", b"#!/bin/sh\n", 0o644)
        self.check(path, path, "it is not executable", "chmod +x " + path)

    def test_folder(self):
        self.check(self.folder, self.folder, "it is a folder", "name a program")

    def test_32_bit_program(self):
        for name, machine in (("i386", 3), ("x32", 62)):
            path = self.file(name, elf_header(32, machine))
            self.check(path, path, "it is a 32-bit program", "64-bit build")

    def test_program_of_another_processor(self):
        path = self.file("arm", elf_header(64, 183))
        self.check(path, path, "it is for another processor (ELF machine 183)",
                   "a build of it for x86-64")

    def test_program_cut_short(self):
        with open(TALKS, "rb") as file:
            whole = file.read()
        for size in (64, 70, 1000, 5000):
            path = self.file("cut", whole[:size])
            self.check(path, path, "its end is missing", "build or copy it again")

    def test_neither_program_nor_script(self):
        path = self.file("text", b"hello\n")
        self.check(path, path, "neither an ELF program nor a script", "the program that reads it")
        path = self.file("empty", b"")
        self.check(path, path, "neither an ELF program nor a script", "the program that reads it")

    def test_script_without_its_interpreter(self):
        path = self.file("script", b"#!/nonexistent/interpreter -x\n")
        self.check(path, path, "its #! line names /nonexistent/interpreter: No such file",
                   "correct that line")
        path = self.file("windows", b"#!/bin/sh\r\necho\r\n")
        self.check(path, path, "its #! line names /bin/sh", "the line ends as on Windows")

    def test_no_program_at_all(self):
        self.assert_error(cases.tailtrace("run"), 2, "cannot run a program", "none behind `--`",
                          "tailtrace run -- PROGRAM")
        self.assert_error(cases.tailtrace("run", TALKS), 2, "cannot run a program", "`--`")


class Tools(InFolder):
    def test_without_qemu_the_qemu_engine_names_its_package(self):
        env = self.path_with("gdb", "gdbserver")
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + self.folder + "/kept",
                                  "--engine=qemu", "--", TALKS, env=env)
        self.assert_error(outcome, 3, "cannot record with qemu", "qemu-x86_64 is not installed",
                          "sudo apt install qemu-user")
        self.assertFalse(os.path.exists(self.folder + "/kept"))
        outcome = cases.tailtrace("run", "-nx", "-batch", "--engine=qemu", "--", TALKS, env=env)
        self.assert_error(outcome, 3, "cannot record with qemu", "qemu-x86_64 is not installed",
                          "sudo apt install qemu-user")

    def test_without_qemu_auto_steps(self):
        cases.needs_engine(self, "step")
        env = self.path_with("gdb", "gdbserver", "sh")
        outcome = cases.tailtrace("run", "-nx", "-batch", "-ex", "next", "-ex", "info record",
                                  "-ex", "continue", "--", TALKS, env=env)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertIn("Active record target: record-btrace", outcome.stdout)

    def test_without_gdb_its_package_is_named(self):
        outcome = cases.tailtrace("run", "--", TALKS, env=self.path_with("gdbserver"))
        self.assert_error(outcome, 3, "cannot start GDB", "there is no gdb in PATH",
                          "apt-get install gdb")

    def test_without_gdbserver_the_step_engine_names_its_package(self):
        outcome = cases.tailtrace("run", "--engine=step", "--", TALKS, env=self.path_with("gdb"))
        self.assert_error(outcome, 3, "cannot run gdbserver", "no such program",
                          "install gdbserver")


class Serving(InFolder):
    def test_port_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            outcome = cases.tailtrace("serve", "--once", f":{port}", TALKS)
            self.assert_error(outcome, 7, "Can't bind address: Address already in use",
                              f"somebody listens on :{port} already",
                              f"choose another than :{port}")

    def test_path_is_left_of_one_that_was_killed(self):
        path = os.path.join(self.folder, "left")
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        outcome = cases.tailtrace("serve", "--once", f"unix:{path}", TALKS)
        self.assert_error(outcome, 7, "Can't bind address: Address already in use",
                          f"{path} is there already", "remove it where nobody listens")

    def test_addresses_that_are_none(self):
        for comm, why, fix in (("127.0.0.1:65536", "`65536` is no port", "from 1 to 65535"),
                               (":99999999999999999999", "is no port", "from 1 to 65535"),
                               (":-1", "`-1` is no port", "from 1 to"),
                               ("127.0.0.1:", "`` is no port", "from 1 to 65535"),
                               ("here", "it is none of HOST:PORT", ":0"),
                               ("unix:", "a path of 1 to", "a shorter path")):
            for engine in ("qemu", "step"):
                with self.subTest(comm):
                    outcome = cases.tailtrace("serve", f"--engine={engine}", comm, TALKS)
                    self.assert_error(outcome, 2, "cannot listen on", why, fix)

    def test_other_than_loopback_is_refused_unless_allowed(self):
        self.assert_error(cases.tailtrace("serve", "0.0.0.0:0", TALKS), 2,
                          "will not listen on 0.0.0.0", "no loopback address", "--allow-remote")

    def test_process_to_attach_to_is_gone(self):
        child = subprocess.Popen(["true"])
        child.wait()
        outcome = cases.tailtrace("serve", "--attach", ":0", str(child.pid))
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn(str(child.pid), outcome.stderr)


class Values(InFolder):
    def test_rings_that_cannot_be(self):
        for ring, why in (("0", "power of two"), ("3", "power of two"), ("-1", "negative"),
                          ("99999999999999999999", "larger than 64 bits"),
                          ("8192GiB", "power of two"), ("1KiB", "power of two"),
                          ("999999999999G", "larger than 64 bits"),
                          ("much", "not a number"), ("64parsecs", "no unit")):
            for verb in (["run", f"--ring={ring}", "--"], ["serve", f"--ring={ring}", ":0"]):
                with self.subTest(verb):
                    outcome = cases.tailtrace(*verb, TALKS)
                    self.assert_error(outcome, 2, ring, why)
                    self.assertIn("\n  fix:  ", outcome.stderr)

    def test_handover_that_cannot_be(self):
        for number in ("0", "-5", "x"):
            outcome = cases.tailtrace("run", f"--handover={number}", "--", TALKS)
            self.assert_error(outcome, 2, f"cannot hand over `{number}` instructions", "no number",
                              "--handover")

    def test_engine_that_is_none(self):
        self.assert_error(cases.tailtrace("run", "--engine=magic", "--", TALKS), 2,
                          "cannot understand the arguments of tailtrace run", "magic",
                          "tailtrace help run")

    def test_folder_to_keep_exists(self):
        outcome = cases.tailtrace("run", "--no-debugger", f"--keep={self.folder}", "--", TALKS)
        self.assert_error(outcome, 7, self.folder, "File exists", "does not exist yet")

    def test_folder_to_keep_cannot_be_made(self):
        cases.needs_engine(self, "qemu")
        outcome = cases.tailtrace("run", "--no-debugger", "--engine=qemu", "--", TALKS,
                                  env=dict(os.environ, XDG_STATE_HOME="/dev/null"))
        self.assert_error(outcome, 7, "/dev/null/tailtrace/talks.1", "Not a directory",
                          "--keep=DIR")

    def test_gdbs_options_without_gdb(self):
        outcome = cases.tailtrace("run", "--no-debugger", "-ex", "x", "--", TALKS)
        self.assert_error(outcome, 2, "cannot use -ex", "would be a debugger's",
                          "tailtrace help run")

    def test_engine_that_needs_a_debugger(self):
        outcome = cases.tailtrace("run", "--no-debugger", "--engine=step", "--", TALKS)
        self.assert_error(outcome, 2, "without a debugger", "", "--engine=qemu")

    def test_ways_to_record_that_exclude_each_other(self):
        for options, fix in ((["--lossless"], "--no-debugger"),
                             (["--no-debugger", "--engine=qemu", "--lossless"], "--engine=pt"),
                             (["--no-debugger", "--engine=pt", "--children"], "--by-cpu"),
                             (["--no-debugger", "--by-cpu", "--lossless"], "--lossless"),
                             (["--no-debugger", "--engine=lbr", "--lossless"], "--engine=pt")):
            outcome = cases.tailtrace("run", *options, "--", TALKS)
            self.assert_error(outcome, 2, "cannot record so", "", fix)

    def test_unknown_verb(self):
        self.assert_error(cases.tailtrace("rn"), 2, "`rn` is no verb", "", "tailtrace run")


class Recordings(InFolder):
    """A recording to spoil in many ways, for the verbs that read one."""

    def record(self, program=TALKS):
        cases.needs_engine(self, "qemu")
        session = os.path.join(self.folder, "session")
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + session, "--", program)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        process, = os.listdir(session)
        return session, os.path.join(session, process)

    def check(self, path, status, what, why="", fix=""):
        for verb in ("history", "calls", "info"):
            with self.subTest(verb):
                self.assert_error(cases.tailtrace(verb, path), status, what, why, fix)

    def spoil(self, path, offset, data):
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def test_questions_that_cannot_be_meant(self):
        session, _ = self.record()
        for (verb, *words), what, why in (
                (["history", "-1,-500"], "`-1,-500`", "it ends before it begins"),
                (["hits", "main", "--limit=-1"], "arguments", "`-1` is no number from 0 on"),
                (["export", "--format=bogus"], "arguments of tailtrace export",
                 "--format: `bogus` is none of folded, chrome, "),
                (["calls", "--color=sometimes"], "arguments",
                 "`sometimes` is none of auto, always, never"),
                (["calls", "--depth=0"], "arguments", "`0` is no number from 1 to 2147483647"),
                (["stats", "--json=line"], "arguments", "--json: `line` is not `lines`"),
                (["coverage", "--json", "--lcov"], "arguments", "--lcov excludes --json"),
                (["diff", session, "--module=none"], "code of none", "neither recording")):
            with self.subTest(verb):
                status = 1 if verb == "history" else 2
                self.assert_error(cases.tailtrace(verb, session, *words), status, what, why)

    def test_no_such_recording(self):
        self.check(os.path.join(self.folder, "none"), 7, "none", "No such file",
                   "name a recording first")

    def test_folder_without_a_recording(self):
        self.check(self.folder, 5, self.folder, "no thread", "the folder that --keep or save wrote")

    def test_file_that_is_no_recording(self):
        self.check(self.file("text", b"not a recording\n" * 100), 5, "text",
                   "no record stream and no perf.data file", "folder")

    def test_ring_is_no_ring(self):
        session, process = self.record()
        self.spoil(os.path.join(process, "thread.0.ring"), 0, b"RUBBISH!")
        self.check(session, 5, "thread.0.ring")

    def test_ring_of_another_version(self):
        session, process = self.record()
        self.spoil(os.path.join(process, "thread.0.ring"), 8, struct.pack("<I", 99))
        self.check(session, 5, "thread.0.ring", "99")

    def test_ring_is_cut_short(self):
        session, process = self.record()
        os.truncate(os.path.join(process, "thread.0.ring"), 10000)
        self.check(session, 5, "thread.0.ring", "cut short")

    def test_rings_of_other_threads_than_one_that_is_cut_short(self):
        session, process = self.record(os.path.join(os.path.dirname(TALKS), "three_workers"))
        os.truncate(os.path.join(process, "thread.1.ring"), 10000)
        for verb in (["history"], ["info"], ["save"]):
            with self.subTest(verb):
                saved = [self.folder + "/saved"] if verb == ["save"] else []
                outcome = cases.tailtrace(*verb, session, *saved)
                self.assertEqual(outcome.returncode, 0, outcome.stderr)
                self.assertRegex(outcome.stderr,
                                 r"(?m)^error: cannot read the ring .*/thread\.1\.ring\n"
                                 r"  why:  it is cut short: 10000 bytes")
        info = cases.tailtrace("info", self.folder + "/saved").stdout
        self.assertEqual(re.findall(r"^thread", info, re.M), ["thread"] * 2)

    def test_ring_with_an_impossible_capacity(self):
        session, process = self.record()
        self.spoil(os.path.join(process, "thread.0.ring"), 24, struct.pack("<Q", 12345))
        self.check(session, 5, "thread.0.ring", "12345")

    def test_process_file_is_missing_or_rubbish(self):
        session, process = self.record()
        path = os.path.join(process, "process.json")
        self.spoil(path, 0, b"}}}}")
        self.check(session, 5, "process.json")
        os.unlink(path)
        self.check(session, 7, "process.json", "No such file")

    def test_process_file_has_other_types(self):
        session, process = self.record()
        for text in ('{"schema": 5}', '{"schema": null, "pid": "x"}', "[]", '"tailtrace"'):
            with open(os.path.join(process, "process.json"), "w", encoding="ascii") as file:
                file.write(text)
            self.check(session, 5, "process.json")

    def test_code_file_is_cut_short(self):
        session, process = self.record()
        os.truncate(os.path.join(process, "code"), 100)
        self.check(session, 5, "code")
        os.truncate(os.path.join(process, "code"), 8192)
        self.spoil(os.path.join(process, "code"), 0, b"TTCODE\n\0" + struct.pack("<I", 1))
        self.spoil(os.path.join(process, "code"), 24, struct.pack("<Q", 1 << 20))
        self.check(session, 5, "code", "cut short")

    def test_code_entry_ends_behind_the_file(self):
        session, process = self.record()
        self.spoil(os.path.join(process, "code"), 4096 + 8, struct.pack("<I", 0xffffffff))
        self.check(session, 5, "code", "ends behind the file")

    def test_tables_of_other_versions(self):
        for name in ("code", "blocks"):
            session, process = self.record()
            self.spoil(os.path.join(process, name), 8, struct.pack("<I", 7))
            self.check(session, 5, name, "version 7, this program reads version 1")
            self.spoil(os.path.join(process, name), 0, b"RUBBISH!")
            self.check(session, 5, name, "does not begin as")
            shutil.rmtree(session)

    def test_blocks_are_cut_short(self):
        session, process = self.record()
        os.truncate(os.path.join(process, "blocks"), 10000)
        self.check(session, 5, "blocks", "cut short")
        os.truncate(os.path.join(process, "blocks"), 10)
        self.check(session, 5, "blocks", "cut short")

    def test_open_block_is_nowhere(self):
        session, process = self.record()
        self.spoil(os.path.join(process, "thread.0.ring"), 144, struct.pack("<Q", 0x1234))
        self.check(session, 5, "cannot tell where thread", "0x1234 is in no table")

    def test_head_inside_a_record(self):
        session, process = self.record()
        self.spoil(os.path.join(process, "thread.0.ring"), 128, struct.pack("<Q", 33))
        self.check(session, 5, "thread.0.ring", "head lies inside a record")


if __name__ == "__main__":
    cases.main()
