"""The always-on recorder: `tailtrace run --on-crash` and `tailtrace attach`."""

import datetime
import glob
import json
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import tempfile

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/waits_for_words")


def named_in_core(path):
    """The program's name, of the note that describes the process (elf.h, NT_PRPSINFO)."""
    with open(path, "rb") as file:
        core = file.read()
    at = core.index(struct.pack("<3I", 5, 136, 3) + b"CORE\0\0\0\0") + 20 + 40
    return core[at:at + 16].rstrip(b"\0").decode()


class RecorderCase(cases.CommandCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bundle = os.path.join(self.folder, "end.tt")
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.folder, "state"))

    def about(self, bundle=None):
        with open(os.path.join(bundle or self.bundle, "bundle.json"), encoding="utf-8") as file:
            return json.load(file)

    def newest(self, bundle=None, count=30, tid=None):
        """The newest items of the thread that a bundle names first, or of another."""
        thread = [f"--thread={tid}"] if tid else []
        outcome = cases.tailtrace("history", "--json", *thread, bundle or self.bundle,
                                  f"-{count},-1")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return json.loads(outcome.stdout)["items"]

    def assert_ends_in_the_crash(self, bundle=None):
        """The newest instructions came down to where deeper() wrote to nowhere."""
        items = self.newest(bundle)
        self.assertEqual({item["function"] for item in items[-12:]}, {"deeper"})
        self.assertEqual(sum(item["text"].startswith("call") for item in items[-24:]
                             if item.get("function") == "deeper"), 3, items)
        about = self.about(bundle)
        self.assertEqual(about["recorded"]["cause"], "SIGSEGV")
        self.assertEqual(about["recorded"]["signal"], signal.SIGSEGV)
        # It stands at the write itself, which is not executed; so say the registers, too.
        first = about["threads"][0]
        self.assertEqual(about["recorded"]["tid"], first["tid"])
        stop = json.loads(cases.tailtrace("info", "--json", f"--thread={first['tid']}",
                                          bundle or self.bundle).stdout)["threads"][0]["stop"]
        self.assertEqual(int(stop, 16), int(first["registers"]["rip"], 16))
        self.assertEqual(len(about["threads"]), 2)
        why = cases.tailtrace("why", bundle or self.bundle).stderr
        self.assertIn(f".{first['tid']} of 2 is that of SIGSEGV; --thread=TID picks", why)
        self.assert_info_tells(about, bundle or self.bundle)

    def assert_info_tells(self, about, bundle):
        """`tailtrace info` says the cause, the time and the registers that the bundle has."""
        told = json.loads(cases.tailtrace("info", "--json", bundle).stdout)
        self.assertEqual({name: told["recorded"][name] for name in ("cause", "signal", "tid")},
                         {name: about["recorded"][name] for name in ("cause", "signal", "tid")})
        ended = about["recorded"]["clocks"][-1]["realtime_ns"] // 10**9
        told_end = datetime.datetime.strptime(told["recorded"]["ended"], "%Y-%m-%dT%H:%M:%S.%f%z")
        self.assertEqual(int(told_end.timestamp()), ended)
        for thread, kept in zip(told["threads"], about["threads"]):
            self.assertEqual(thread.get("registers"), kept.get("registers"))
            self.assertEqual(thread.get("name"), kept.get("name"))
        printed = cases.tailtrace("info", bundle).stdout
        self.assertRegex(printed, r"(?m)^  cause +SIGSEGV, thread %d\.%d$" % (
            about["recorded"]["pid"], about["recorded"]["tid"]))
        rip = int(about["threads"][0]["registers"]["rip"], 16)
        self.assertIn(f"rip     {rip:#018x}", printed)


class Run(RecorderCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        super().setUp()

    def run_until_crash(self, words, *options, program=(PROGRAM,)):
        return subprocess.run([cases.TAILTRACE, "run", f"--on-crash={self.bundle}", *options, "--",
                               *program], input=words, capture_output=True, text=True, env=self.env,
                              timeout=cases.HANG_S, check=False)

    def test_crash_leaves_its_end_which_is_read_without_the_program(self):
        program = os.path.join(self.folder, "program")
        shutil.copy(PROGRAM, program)
        # A fault that the program handles comes first; it is not the end.
        outcome = self.run_until_crash("handled\ncrash\n", "--core", program=[program])
        self.assertEqual(outcome.returncode, 128 + signal.SIGSEGV, outcome.stderr)
        self.assertIn("did handled\n", outcome.stdout)
        self.assertIn(f"recorded: tailtrace history {self.bundle}\n", outcome.stderr)
        # Another machine has neither the program nor the folder.
        os.remove(program)
        moved = os.path.join(self.folder, "moved")
        shutil.move(self.bundle, moved)
        self.assert_ends_in_the_crash(moved)
        names = {thread["name"] for thread in self.about(moved)["threads"]}
        self.assertEqual(names, {"program"}, "and not the emulator's")
        for folder, _, names in os.walk(moved):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
            for name in names:
                path = os.path.join(folder, name)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
        copies = {module["path"]: module["file"] for module in self.about(moved)["modules"]}
        self.assertIn(program, copies)
        self.assertFalse([path for path in copies if "qemu" in path], copies)
        # Two records do not tell who called deeper(); its stack does.
        outcome = cases.tailtrace("last", "--json", "--inside", "--records=2", moved, "deeper")
        path = json.loads(outcome.stdout)["threads"][0]["hits"][0]["path"]
        self.assertEqual([frame.get("function") for frame in path][:5], ["deeper"] * 4 + ["main"])
        core = subprocess.run(
            ["gdb", "-nx", "-batch", "-ex", "backtrace", "-ex", "info threads",
             os.path.join(moved, copies[program]), os.path.join(moved, "core")],
            capture_output=True, text=True, timeout=cases.HANG_S, check=False)
        calls = re.findall(r"(?m)^#\d+ .*?(\w+) \(", core.stdout)
        self.assertEqual(calls[-5:], ["deeper"] * 4 + ["main"], core.stdout + core.stderr)
        self.assertEqual(len(re.findall(r"LWP \d+\)", core.stdout)), 3, core.stdout)
        self.assertEqual(named_in_core(os.path.join(moved, "core")), "program")
        # Nothing else is left.
        self.assertEqual(os.listdir(self.folder), ["moved"])

    def test_program_that_used_up_its_memory_leaves_its_end(self):
        program = os.path.join(cases.BINARY_DIR, "tests/programs/exhausts_memory")
        command = [cases.TAILTRACE, "run", f"--on-crash={self.bundle}", "--", program]
        outcome = subprocess.run(["/bin/sh", "-c", 'ulimit -v 1048576; exec "$@"', "sh", *command],
                                 capture_output=True, text=True, env=self.env,
                                 timeout=cases.HANG_S, check=False)
        self.assertEqual(outcome.returncode, 128 + signal.SIGABRT, outcome.stderr)
        self.assertNotIn("ERROR", outcome.stderr)
        self.assertIn("abort", cases.tailtrace("last", self.bundle, "abort").stdout)

    def test_program_that_it_became_is_named(self):
        crash = ["/bin/sh", "-c", "kill -SEGV $$", "-0", "--"]
        outcome = self.run_until_crash(
            "", program=["/bin/sh", "-c", 'exec "$@"', "-0", *crash])
        self.assertEqual(outcome.returncode, 128 + signal.SIGSEGV, outcome.stderr)
        self.assertRegex(cases.tailtrace("info", self.bundle).stdout,
                         r"(?m)^  command +/\S*sh -c kill -SEGV \$\$ -0 --$")
        self.assertEqual(self.about()["threads"][0]["name"], "sh")

    def test_end_without_a_crash_leaves_nothing(self):
        outcome = self.run_until_crash("handled\nexit\n")
        self.assertEqual(outcome.returncode, 3, outcome.stderr)
        self.assertEqual(outcome.stderr, "")
        self.assertEqual(os.listdir(self.folder), [])

    def test_snapshot_is_taken_while_it_goes_on_and_a_kill_is_an_end(self):
        with subprocess.Popen([cases.TAILTRACE, "run", f"--on-crash={self.bundle}",
                               "--modules=ids", "--", PROGRAM], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.env) as process:
            self.assertTrue(process.stdout.readline().startswith("ready"))
            process.send_signal(signal.SIGUSR2)
            self.assertEqual(process.stderr.readline(),
                             f"snapshot: tailtrace history {self.bundle}.1\n")
            process.stdin.write("call\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "did call\n")
            (program,) = cases.children_of(process.pid)
            os.kill(program, signal.SIGKILL)
            _, said = process.communicate(timeout=cases.HANG_S)
            self.assertEqual(process.returncode, 128 + signal.SIGKILL, said)
        self.assertEqual(self.about(self.bundle + ".1")["recorded"]["cause"], "snapshot")
        self.assertEqual(self.about()["recorded"]["cause"], "SIGKILL")
        modules = {module["path"]: module for module in self.about()["modules"]}
        self.assertTrue(modules[PROGRAM]["build_id"])
        self.assertNotIn("file", modules[PROGRAM])
        tid = self.about()["threads"][0]["tid"]
        before, after = (cases.tailtrace("hits", "--json", f"--thread={tid}", bundle,
                                         "wanted_function")
                         for bundle in (self.bundle + ".1", self.bundle))
        self.assertEqual((before.returncode, after.returncode), (1, 0), after.stderr)

    def test_killed_recorder_leaves_the_rings(self):
        with subprocess.Popen([cases.TAILTRACE, "run", f"--on-crash={self.bundle}", "--", PROGRAM],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=self.env) as process:
            self.assertTrue(process.stdout.readline().startswith("ready"))
            (program,) = cases.children_of(process.pid)
            process.kill()
            process.wait(cases.HANG_S)
        cases.wait_until_gone(program)
        newest = self.newest(self.bundle + ".session")
        self.assertTrue(newest)
        self.leave_rings_as_they_are_made()
        self.assertEqual(self.newest(self.bundle + ".session"), newest)
        again = self.run_until_crash("exit\n")
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn(self.bundle + ".session", again.stderr)

    def leave_rings_as_they_are_made(self):
        """Of threads whose making the end came into, as there would be by chance."""
        for folder in glob.glob(self.bundle + ".session/*.*/"):
            for number, size in ((90, 0), (91, 1 << 16)):
                with open(f"{folder}/thread.{number}.ring", "xb") as ring:
                    ring.truncate(size)

    def test_place_that_cannot_be_written_is_said_before_the_program_begins(self):
        outcome = cases.tailtrace("run", "--on-crash=/proc/end.tt", "--", PROGRAM)
        self.assertEqual(outcome.stdout, "")  # tests/faults/rights_test.py has a read-only folder
        self.assertIn("error: cannot save a bundle at /proc/end.tt", outcome.stderr)
        os.mkdir(self.bundle)
        outcome = self.run_until_crash("")
        self.assert_error(outcome, 2, "cannot save a bundle", "something is there already")

    def test_bundle_of_a_wanted_signal_that_cannot_be_written_is_told_though_it_goes_on(self):
        self.env["XDG_STATE_HOME"] = "/dev/null"  # nor is there another place
        with subprocess.Popen([cases.TAILTRACE, "run", f"--on-crash={self.bundle}",
                               "--on-signal=SEGV", "--", PROGRAM], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.env) as process:
            self.assertTrue(process.stdout.readline().startswith("ready"))
            os.mkdir(self.bundle)
            out, said = process.communicate("handled\nexit\n", timeout=cases.HANG_S)
        self.assertEqual(out, "did handled\n")
        self.assertIn("error: cannot save a bundle", said)
        self.assertEqual(process.returncode, 2, said)

    def test_what_is_no_process_is_told(self):
        self.assert_error(cases.tailtrace("attach", "sleep"), 2, "cannot understand",
                          "PID: `sleep` is no number from 1 to")

    def test_words_that_do_not_fit_together(self):
        for words, part in ((["--on-signal=USR1"], "under a debugger"),
                            (["--on-crash=" + self.bundle, "--lldb"], "without a debugger"),
                            (["--on-crash=" + self.bundle, "--on-signal=KILL"], "SIGKILL"),
                            (["--on-crash=" + self.bundle, "--on-write=0x1001:2"], "multiple"),
                            (["--on-crash=" + self.bundle, "--engine=qemu", "--on-call=main"],
                             "under qemu")):
            outcome = cases.tailtrace("run", *words, "--", PROGRAM)
            self.assertEqual(outcome.returncode, 2, outcome.stderr)
            self.assertIn(part, outcome.stderr)


class Attach(RecorderCase):
    def setUp(self):
        cases.needs_engine(self, "step")
        super().setUp()
        self.program = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.addCleanup(self.end_program)
        self.watched = self.program.stdout.readline().split()[1]

    def end_program(self):
        self.program.kill()
        self.program.wait()
        self.program.stdin.close()
        self.program.stdout.close()

    def say(self, word):
        self.program.stdin.write(word + "\n")
        self.program.stdin.flush()

    def attach(self, *options, limit=None):
        recorder = subprocess.Popen(
            [cases.TAILTRACE, "attach", "--engine=step", "--ring=64KiB",
             f"--on-crash={self.bundle}", *options, str(self.program.pid)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.env,
            preexec_fn=limit)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        line = recorder.stderr.readline()
        self.assertIn(f"recording process {self.program.pid} by single steps", line)
        return recorder

    def ended(self, recorder, status=0):
        said = recorder.stderr.read()
        self.assertEqual(recorder.wait(cases.HANG_S), status, said)
        return said

    def assert_goes_on(self):
        self.say("call")
        self.assertEqual(self.program.stdout.readline(), "did call\n")

    def test_crash_ends_it(self):
        recorder = self.attach("--core")
        self.say("handled")
        self.assertEqual(self.program.stdout.readline(), "did handled\n")
        self.say("crash")
        self.assertEqual(self.program.wait(cases.HANG_S), -signal.SIGSEGV)
        self.ended(recorder)
        self.assert_ends_in_the_crash()
        core = subprocess.run(["gdb", "-nx", "-batch", "-ex", "backtrace", PROGRAM,
                               os.path.join(self.bundle, "core")], capture_output=True, text=True,
                              timeout=cases.HANG_S, check=False)
        calls = re.findall(r"(?m)^#\d+ .*?(\w+) \(", core.stdout)
        self.assertEqual(calls[-5:], ["deeper"] * 4 + ["main"], core.stdout + core.stderr)
        self.assert_callers_are_those_that_gdb_finds()

    def assert_callers_are_those_that_gdb_finds(self):
        """Of any of the newest calls, however little of the history is left."""
        core = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set backtrace past-main on", "-ex",
                               "backtrace", PROGRAM, os.path.join(self.bundle, "core")],
                              capture_output=True, text=True, timeout=cases.HANG_S, check=False)
        frames = [int(line, 16) for line in re.findall(r"(?m)^#[1-9]\d* +(0x\w+) in ", core.stdout)]
        self.assertGreater(len(frames), 4, core.stdout + core.stderr)
        for records in (2, 3, 4, 5, 1000):
            outcome = cases.tailtrace("last", "--json", "--inside", f"--records={records}",
                                      self.bundle, "deeper")
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            hit, = json.loads(outcome.stdout)["threads"][0]["hits"]
            older = [int(frame["address"], 16) + 1 for frame in hit["path"]
                     if "before_history" in frame]
            self.assertEqual(older, frames[len(frames) - len(older):], (records, hit["path"]))
            self.assertEqual(len(hit["path"]), len(frames) + 1, (records, hit["path"]))
            said = cases.tailtrace("last", "--inside", f"--records={records}", self.bundle,
                                   "deeper").stdout
            self.assertEqual(said.count("[before]  called from"), len(older), said)

    def test_function_ends_it_and_the_program_goes_on(self):
        recorder = self.attach("--on-call=wanted_function")
        self.say("call")
        self.assertEqual(self.program.stdout.readline(), "did call\n")
        self.ended(recorder)
        newest = self.newest(tid=self.program.pid)[-1]
        self.assertEqual((newest["function"], newest["text"].split()[0]), ("main", "call"))
        self.assert_goes_on()

    def test_write_to_a_place_ends_it(self):
        self.assert_write_ends_it(self.watched + ":8")

    def test_write_to_a_variable_ends_it(self):
        self.assert_write_ends_it("watched")

    def test_what_is_no_variable_is_told(self):
        for name, why in (("wanted_function", "it is code"), ("no_such", "no symbol table")):
            outcome = cases.tailtrace("attach", "--engine=step", f"--on-crash={self.bundle}",
                                      f"--on-write={name}", str(self.program.pid))
            self.assert_error(outcome, 2, name, why)

    def assert_write_ends_it(self, place):
        recorder = self.attach(f"--on-write={place}")
        self.say("write")
        self.assertEqual(self.program.stdout.readline(), "did write\n")
        self.ended(recorder)
        self.assertIn("access to " + self.watched, self.about()["recorded"]["cause"])
        newest = self.newest()[-1]
        self.assertEqual(newest["function"], "main")
        self.assertIn("0x2a", newest["text"])
        self.assert_goes_on()

    def test_named_signal_ends_it_and_is_delivered(self):
        recorder = self.attach("--on-signal=SIGUSR1")
        self.program.send_signal(signal.SIGUSR1)
        self.assertEqual(self.program.wait(cases.HANG_S), -signal.SIGUSR1)
        self.ended(recorder)
        self.assertEqual(self.about()["recorded"]["cause"], "SIGUSR1")

    def test_of_threads_that_only_waited_it_is_told_where_they_stand(self):
        recorder = self.attach()
        recorder.send_signal(signal.SIGINT)
        self.ended(recorder)
        said = cases.tailtrace("last", self.bundle)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stdout, r"(?s)  stands in .*read.*\n    called from .*  main\n")
        self.assertIn("there is no item -1\n  why:  nothing was executed", said.stderr)
        self.assertIn("from the beginning of the recording",
                      cases.tailtrace("info", self.bundle).stdout)
        self.assertIn("fix:  tailtrace last shows where it stands",
                      cases.tailtrace("why", self.bundle).stderr)
        for verb in "last", "hits", "why", "calls":
            self.assertIn("error: main was not reached\n"
                          "  why:  nothing was executed while it was recorded\n"
                          "  fix:  tailtrace last shows where it stands\n",
                          cases.tailtrace(verb, self.bundle, "main").stderr)

    def test_user_ends_it_after_a_snapshot(self):
        recorder = self.attach()
        self.assert_goes_on()
        recorder.send_signal(signal.SIGUSR2)
        self.assertEqual(recorder.stderr.readline(),
                         f"snapshot: tailtrace history {self.bundle}.1\n")
        self.assert_goes_on()
        recorder.send_signal(signal.SIGINT)
        self.ended(recorder)
        hits = [len(json.loads(cases.tailtrace("hits", "--json", f"--thread={self.program.pid}",
                                               bundle, "wanted_function").stdout)
                    ["threads"][0]["hits"]) for bundle in (self.bundle + ".1", self.bundle)]
        self.assertEqual(hits, [1, 2])
        self.assert_goes_on()
        self.assert_saved_as_one()

    def assert_saved_as_one(self):
        """The snapshot and the end are one history in a bundle that needs neither of them."""
        end = self.about()
        whole = os.path.join(self.folder, "whole.tt")
        outcome = cases.tailtrace("save", self.bundle + ".1", self.bundle, whole)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        newest = self.newest(count=100)
        shutil.rmtree(self.bundle)
        shutil.rmtree(self.bundle + ".1")
        hits = json.loads(cases.tailtrace("hits", "--json", f"--thread={self.program.pid}", whole,
                                          "wanted_function").stdout)["threads"][0]
        self.assertEqual(len(hits["hits"]), 2)
        self.assertEqual(hits["gaps"], 0)
        self.assertEqual([item["function"] for item in self.newest(whole, count=100)],
                         [item["function"] for item in newest])
        about = self.about(whole)
        self.assertEqual(about["recorded"]["cause"], end["recorded"]["cause"])
        for thread, before in zip(about["threads"], end["threads"]):
            self.assertEqual(thread["registers"], before["registers"])
        self.assertEqual({module["path"] for module in about["modules"]},
                         {module["path"] for module in end["modules"]})
        for module in about["modules"]:
            self.assertTrue(os.path.exists(os.path.join(whole, module["file"])), module)

    def test_end_without_a_crash_is_no(self):
        recorder = self.attach()
        self.say("exit")
        self.assertEqual(self.program.wait(cases.HANG_S), 3)
        self.assertIn("without a crash", self.ended(recorder, status=1))
        self.assertFalse(os.path.exists(self.bundle))

    def test_program_that_was_replaced_is_in_the_bundle(self):
        for options in ([], ["--modules=ids"]):
            self.end_program()
            program = os.path.join(self.folder, "program")
            shutil.copy(PROGRAM, program)
            self.program = subprocess.Popen([program], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
            self.program.stdout.readline()
            os.remove(program)
            shutil.copy("/bin/true", program)
            recorder = self.attach("--on-call=wanted_function", *options)
            self.assert_goes_on()
            self.ended(recorder)
            newest = self.newest(tid=self.program.pid)[-1]
            self.assertEqual((newest["function"], newest["file"].split("/")[-1]),
                             ("main", "waits_for_words.c"))
            self.assertEqual(newest["module"].split("/")[-1], "program")
            about = self.about()
            copies = [module["file"] for module in about["modules"]
                      if module["path"] == program + " (deleted)"]
            self.assertEqual(len(copies), 1, about["modules"])
            self.assertGreater(len(about["threads"][0]["stack"]), 1, "its tables unwind it")
            shutil.rmtree(self.bundle)

    def test_place_that_went_away_has_a_second(self):
        self.bundle = os.path.join(self.folder, "gone", "end.tt")
        os.mkdir(os.path.dirname(self.bundle))
        recorder = self.attach("--modules=ids")
        os.rmdir(os.path.dirname(self.bundle))
        self.say("crash")
        said = self.ended(recorder)
        self.assertIn("error: cannot save a bundle at " + self.bundle, said)
        second = os.path.join(self.folder, "state/tailtrace/waits_for_words.1")
        self.assertIn(f"recorded: tailtrace history {second}\n", said)
        self.assert_ends_in_the_crash(second)

    def test_full_disk_is_an_error_and_the_program_goes_on(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))
        recorder = self.attach(limit=small_files)
        self.assert_goes_on()
        recorder.send_signal(signal.SIGUSR2)
        line = recorder.stderr.readline()
        self.assertRegex(line, r"error: cannot write .*/modules/\d+/")
        self.assertIn("File too large", recorder.stderr.readline())
        self.assert_goes_on()
        recorder.send_signal(signal.SIGTERM)
        self.ended(recorder, status=7)
        self.assert_goes_on()
        self.assertFalse([name for name in os.listdir(self.folder) if name != "state"])

    def test_what_cannot_be_recorded(self):
        pid = str(self.program.pid)
        for words, status, part in ((["--on-call=no_such_function"], 2, "no function"),
                                    (["--ring=1000"], 2, "1000"), (["--keep=1000"], 2, "1000"),
                                    (["--on-signal=NO"], 2, "no signal")):
            outcome = cases.tailtrace("attach", "--engine=step", f"--on-crash={self.bundle}",
                                      *words, pid)
            self.assertEqual(outcome.returncode, status, outcome.stderr)
            self.assertIn(part, outcome.stderr)
        self.assert_goes_on()
        self.end_program_early()
        outcome = cases.tailtrace("attach", f"--on-crash={self.bundle}", pid)
        self.assert_error(outcome, 8, f"cannot attach to process {pid}", "no such process",
                          "ps -e")

    def end_program_early(self):
        self.say("exit")
        self.program.wait(cases.HANG_S)


if __name__ == "__main__":
    cases.main()
