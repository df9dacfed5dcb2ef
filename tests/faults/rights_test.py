"""An ordinary user without any right of its own: what works then, and what is said of the rest.

Run by root, it becomes nobody; else it is the user who runs it. What `tailtrace doctor` says of the
machine is what happens: perf_event_paranoid up to 2 is enough for hits of places, and nothing is
readable by others.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))
import cases  # pylint: disable=wrong-import-position

NOBODY = 65534


def program(name):
    return os.path.join(cases.BINARY_DIR, "tests", "programs", name)


def as_user(*words, **options):
    """A command with no capabilities, by a user who is not root."""
    if os.getuid() == 0:
        words = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                 "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", *words)
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=cases.HANG_S, check=False, cwd="/", **options)


class OrdinaryUser(cases.CommandCase):
    def setUp(self):
        if as_user(cases.TAILTRACE, "version").returncode != 0:
            self.skipTest("the build folder is not for other users")
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        if os.getuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        places = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME")
        self.env = dict(os.environ, **{place: self.folder for place in places})
        self.verdicts = self.diagnose()

    def tailtrace(self, *words):
        return as_user(cases.TAILTRACE, *words, env=self.env)

    def diagnose(self):
        document = json.loads(self.tailtrace("doctor", "--json").stdout)
        return {one["name"]: one for one in document["engines"] + document["besides"]}

    def assert_private(self):
        found = 0
        for path, folders, files in os.walk(self.folder):
            for name in folders + files:
                mode = stat.S_IMODE(os.lstat(os.path.join(path, name)).st_mode)
                self.assertEqual(mode & 0o077, 0, os.path.join(path, name))
                found += 1
        self.assertGreater(found, 0)

    def test_has_no_rights(self):
        status = as_user("cat", "/proc/self/status").stdout
        self.assertEqual(int(re.search(r"CapEff:\s+([0-9a-f]+)", status)[1], 16), 0)

    def test_records_and_saves_with_qemu(self):
        if not self.verdicts["qemu"]["works"]:
            self.skipTest(self.verdicts["qemu"]["why"])
        session, bundle = self.folder + "/session", self.folder + "/saved.tt"
        for words in (("run", "--no-debugger", "--engine=qemu", "--keep=" + session, "--",
                       program("talks")), ("save", session, bundle), ("history", bundle, "-5,-1")):
            outcome = self.tailtrace(*words)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assert_private()

    def read_only_folder(self):
        path = os.path.join(self.folder, "closed")
        os.mkdir(path)
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        os.chmod(path, 0o500)
        self.addCleanup(os.chmod, path, 0o700)
        return path

    def test_read_only_folder_is_read_from_and_nothing_is_half_written_to(self):
        if not self.verdicts["qemu"]["works"]:
            self.skipTest(self.verdicts["qemu"]["why"])
        session, bundle = self.folder + "/session", self.folder + "/saved.tt"
        for words in (("run", "--no-debugger", "--engine=qemu", "--keep=" + session, "--",
                       program("talks")), ("save", session, bundle)):
            outcome = self.tailtrace(*words)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        closed = self.read_only_folder()
        for words in (("save", bundle, closed + "/saved.tt"),
                      ("run", "--no-debugger", "--engine=qemu", "--keep=" + closed + "/session",
                       "--", program("talks")),
                      ("run", "--on-crash=" + closed + "/crash.tt", "--", program("talks")),
                      ("export", "--format=html", "--output=" + closed + "/page.html", bundle),
                      ("export", "--format=perf-data", "--output=" + closed + "/perf.data",
                       bundle)):
            with self.subTest(words[:2]):
                outcome = self.tailtrace(*words)
                self.assertEqual(outcome.returncode, 4, outcome.stdout + outcome.stderr)
                self.assertRegex(outcome.stderr, r"error: cannot [^\n]*" + re.escape(closed))
                self.assertIn("Permission denied", outcome.stderr)
                self.assertEqual(os.listdir(closed), [])
        os.chmod(bundle, 0o500)
        self.addCleanup(os.chmod, bundle, 0o700)
        for words in (("history", bundle, "-5,-1"), ("info", bundle), ("stats", bundle)):
            outcome = self.tailtrace(*words)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)

    def test_watches_as_far_as_the_kernel_lets_users(self):
        outcome = self.tailtrace("watch", "counter", "--", program("counter"))
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            paranoid = int(file.read())
        if outcome.returncode == 7 and "error: " not in outcome.stderr:  # the program's own
            self.assertIn("counter: written 8 times", outcome.stderr)
            self.assertLessEqual(paranoid, 2)
            self.assertTrue(self.verdicts["perf events"]["works"])
            return
        self.assertRegex(outcome.stderr, r"error: [^\n]+\n  why:  .")
        if paranoid > 2:
            self.assertEqual(outcome.returncode, 4)
            self.assertIn(f"kernel.perf_event_paranoid is {paranoid}", outcome.stderr)
            self.assertIn("sudo sysctl kernel.perf_event_paranoid=2", outcome.stderr)
            self.assertFalse(self.verdicts["perf events"]["works"])

    def test_may_not_attach_to_what_is_roots(self):
        if os.stat("/proc/1").st_uid != 0:
            self.skipTest("the first process is not root's")
        outcome = self.tailtrace("attach", "1")
        self.assertNotEqual(outcome.returncode, 0)
        self.assertRegex(outcome.stderr, r"error: [^\n]+\n  why:  .")


if __name__ == "__main__":
    cases.main()
