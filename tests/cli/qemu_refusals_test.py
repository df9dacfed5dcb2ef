"""What is said when qemu is there and cannot record: another interface, no space, limits."""

import os
import resource
import subprocess
import tempfile
import unittest

import cases

FAKE_QEMU = os.path.join(cases.BINARY_DIR, "tests/fake_qemu")
PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/nothing")
MIB = 1 << 20


class Refusal(cases.CommandCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.kept = os.path.join(self.folder, "deep/er/kept")

    def command(self, *options):
        return [cases.TAILTRACE, "run", "--no-debugger", "--engine=qemu", "--keep=" + self.kept,
                *options, "--", PROGRAM]

    def record(self, *options, limits=(), **environment):
        def limit():
            for what, value in limits:
                resource.setrlimit(what, (value, value))
        return subprocess.run(self.command(*options), capture_output=True, text=True, check=False,
                              timeout=cases.HANG_S, env={**os.environ, **environment},
                              preexec_fn=limit)

    def assert_refused(self, outcome, what, why, fix):
        # qemu itself has its say before.
        outcome.stderr = outcome.stderr[outcome.stderr.find("error: "):]
        self.assert_error(outcome, 3, what, why, fix)
        self.assertIn("now:  --engine=step under a debugger", outcome.stderr)
        self.assertFalse(os.path.exists(self.kept))
        self.assertNotIn("deep", os.listdir(self.folder))


class OtherQemu(Refusal):
    def assert_unfit(self, why, **environment):
        outcome = self.record(TAILTRACE_QEMU=FAKE_QEMU, **environment)
        self.assert_refused(outcome, "cannot record with", why, "TAILTRACE_QEMU")

    def test_plugin_interface_of_another_version(self):
        for version in ("0", "2", "99"):
            self.assert_unfit(f"its plugin interface has version {version}, the recorder knows "
                              "version 1 only", FAKE_QEMU_INTERFACE=version)

    def test_qemu_that_takes_no_plugin_of_our_version(self):
        self.assert_unfit("requires API version 1, but this QEMU supports only a minimum version "
                          "of 4", FAKE_QEMU_INTERFACE="4", FAKE_QEMU_MINIMUM="4")

    def test_qemu_that_ends_without_a_word(self):
        outcome = self.record(TAILTRACE_QEMU="/bin/false")
        self.assert_refused(outcome, "cannot record with", "it ended with status 1",
                            "TAILTRACE_QEMU")

    def test_qemu_for_another_processor(self):
        self.assert_unfit("it runs programs for aarch64", FAKE_QEMU_TARGET="aarch64")


class Limits(Refusal):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        super().setUp()

    def test_files_may_not_be_as_large(self):
        outcome = self.record(limits=[(resource.RLIMIT_FSIZE, MIB)])
        self.assert_refused(outcome, "cannot record in the folder", "File too large", "ulimit -f")

    def test_a_small_stack_is_enough(self):
        small = 2 * MIB if cases.IS_SANITIZED else MIB // 4
        outcome = self.record(limits=[(resource.RLIMIT_STACK, small)])
        self.assertEqual(outcome.returncode, 0, outcome.stderr)

    @unittest.skipIf(cases.IS_SANITIZED, "a sanitizer takes terabytes of addresses")
    def test_few_addresses_are_enough(self):
        outcome = self.record(limits=[(resource.RLIMIT_AS, 1024 * MIB)])
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        shown = cases.tailtrace("info", "--strict", self.kept)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("from the beginning", shown.stdout)

    @unittest.skipIf(cases.IS_SANITIZED, "a sanitizer takes terabytes of addresses")
    def test_too_few_addresses_for_qemu_itself(self):
        outcome = self.record(limits=[(resource.RLIMIT_AS, 128 * MIB)])
        # A thread of qemu takes many at times: then the recorder is the one that has too few.
        self.assert_refused(outcome, "cannot record ", "Cannot allocate memory", "ulimit -v")

    @unittest.skipIf(cases.IS_SANITIZED, "a sanitizer takes terabytes of addresses")
    def test_too_few_addresses_for_the_ring(self):
        outcome = self.record("--ring=512MiB", limits=[(resource.RLIMIT_AS, 1024 * MIB)])
        self.assert_refused(outcome, "cannot record in the folder", "Cannot allocate memory",
                            "ulimit -v")


class FullDisk(Refusal):
    """On a file system of 3 MiB of its own, in a name space where it may be mounted."""

    def setUp(self):
        cases.needs_engine(self, "qemu")
        super().setUp()
        self.kept = os.path.join(self.folder, "disk", "kept")
        os.mkdir(os.path.dirname(self.kept))
        if self.shell("true").returncode != 0:
            self.skipTest("no file system can be mounted here")

    def shell(self, script, *words):
        mount = 'mount -t tmpfs -o size=3m,mode=0700 none "$0" || exit 99\n'
        return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                               mount + script, os.path.dirname(self.kept), *words],
                              capture_output=True, text=True, check=False, timeout=cases.HANG_S,
                              stdin=subprocess.DEVNULL)

    def test_ring_has_no_space(self):
        outcome = self.shell('exec "$@"', *self.command("--ring=64MiB"))
        self.assert_refused(outcome, "cannot record in the folder", "No space left",
                            "free some space there, or record in another folder")

    def test_nothing_has_space(self):
        outcome = self.shell('dd if=/dev/zero of="$0/all" bs=64k status=none 2>&-; exec "$@"',
                             *self.command())
        self.assert_refused(outcome, "cannot record in the folder", "no space is left",
                            "free some space there, or record in another folder")

    def test_threads_without_space_for_their_rings_run_on(self):
        threads = os.path.join(cases.BINARY_DIR, "tests/programs/three_workers")
        command = self.command("--ring=2MiB")[:-1] + [threads]
        outcome = self.shell('"$@" && "$BINARY" info "$0/kept"'.replace("$BINARY", cases.TAILTRACE),
                             *command)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        # Two rings of 2 MiB are more than there is.
        self.assertEqual(outcome.stdout.count("\n  engine "), 1, outcome.stdout)
        self.assertIn("  state         exited\n", outcome.stdout)
        self.assertRegex(outcome.stderr, r"error: 2 threads of process \d+ are missing\n"
                         r"  why:  they found no space for a ring\n")


if __name__ == "__main__":
    cases.main()
