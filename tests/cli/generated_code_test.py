"""Functions that a program generates have the names that it told perf: live, in a session that is
kept, and in bundles on a machine that has neither of the program's files any more."""

import json
import os
import shutil
import signal
import tempfile

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/generates_code")
# As the program calls them, and as they are shown.
NAMES = {"by_map": "by_map", "by_dump": "jit::by_dump(int)", "later": "later ?[31mred"}


class Recorded(cases.EngineCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.recording = os.path.join(self.folder, "recording")

    def record(self):
        """Records, and takes away what the program wrote. Returns what it says of its functions."""
        if self.engine == "qemu":
            options, words, status = ["--no-debugger", "--keep=" + self.recording], [], 0
        else:
            options, words = ["--engine=step", "--on-crash=" + self.recording], ["crash"]
            status = 128 + signal.SIGABRT
        outcome = cases.tailtrace("run", *options, "--", PROGRAM, self.folder, *words)
        self.assertEqual(outcome.returncode, status, outcome.stderr)
        first, *lines = outcome.stdout.splitlines()
        self.pid = int(first.split()[1])
        self.dump = os.path.join(self.folder, f"jit-{self.pid}.dump")
        self.map = f"/tmp/perf-{self.pid}.map"
        self.addCleanup(lambda: os.path.exists(self.map) and os.remove(self.map))
        return {name: (int(address, 16), int(size), int(calls))
                for name, address, size, calls in map(str.split, lines)}

    def ask(self, verb, recording, *words):
        outcome = cases.tailtrace(verb, "--json", recording, *words)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return json.loads(outcome.stdout)

    def assert_named(self, recording, made):
        for name, (address, size, calls) in made.items():
            with self.subTest(name=name, recording=recording):
                hits = self.ask("hits", recording, NAMES[name])["threads"][0]
                at_address = self.ask("hits", recording, f"*{address:#x}")["threads"][0]
                # `by_dump` ran in the place of `later` before: each has its name for its time.
                first = made["later"][0]
                earlier = 2 if name == "by_dump" else 0
                there = 2 if name == "later" else 0
                self.assertEqual(hits["count"], calls + earlier)
                self.assertEqual({int(hit["address"], 16) for hit in hits["hits"]},
                                 {address, first} if earlier else {address})
                self.assertEqual(at_address["count"], calls + there)
                found = self.ask("find", recording, "--in=" + NAMES[name])["threads"][0]
                self.assertGreater(len(found["items"]), calls)
                places = set(range(address, address + size))
                if name == "by_dump":  # where it was at first
                    places |= set(range(first, first + size))
                for item in found["items"]:
                    self.assertEqual(item["function"], NAMES[name])
                    self.assertIn(int(item["address"], 16), places)
                last = self.ask("last", recording, NAMES[name])["threads"][0]
                self.assertEqual([frame["function"] for frame in last["hits"][0]["path"]][:3],
                                 [NAMES[name], "call", "main"])


class Generated(Recorded):
    def test_functions_have_the_names_that_the_program_told(self):
        made = self.record()
        self.assertEqual(set(made), set(NAMES))
        if self.engine == "qemu":
            os.remove(self.map)  # the session has it
        self.assert_named(self.recording, made)
        self.assert_shown(self.recording)
        if self.engine == "step":
            os.remove(self.map)
        else:
            bundle = os.path.join(self.folder, "saved.tt")
            outcome = cases.tailtrace("save", self.recording, bundle)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.recording = bundle
        os.remove(self.dump)
        moved = os.path.join(self.folder, "elsewhere.tt")
        os.rename(self.recording, moved)
        self.assert_named(moved, made)

    def assert_shown(self, recording):
        """In listings and exports, and nothing that commands a terminal."""
        calls = cases.tailtrace("calls", recording, "all")
        folded = cases.tailtrace("export", "--format=folded", recording)
        for outcome in calls, folded:
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            for name in NAMES.values():
                self.assertIn(name, outcome.stdout)
            self.assertNotIn("\33", outcome.stdout)
        # The line of the map that is none is told, once.
        self.assertEqual(calls.stderr.count("cannot read 1 line(s) of "), 1, calls.stderr)


class WithoutTheDump(Recorded):
    def test_a_jitdump_that_is_not_in_the_bundle_is_not_taken_from_elsewhere(self):
        made = self.record()
        bundle = os.path.join(self.folder, "saved.tt")
        self.assertEqual(cases.tailtrace("save", self.recording, bundle).returncode, 0)
        shutil.rmtree(os.path.join(bundle, "generated"))
        with open(os.path.join(bundle, "bundle.json"), encoding="utf-8") as file:
            about = json.load(file)
        about["modules"] = []
        with open(os.path.join(bundle, "bundle.json"), "w", encoding="utf-8") as file:
            json.dump(about, file)
        self.assertTrue(os.path.exists(self.dump))
        outcome = cases.tailtrace("hits", "--json", bundle, NAMES["by_dump"])
        self.assertEqual(outcome.returncode, 1, outcome.stdout)
        at_address = self.ask("hits", bundle, f"*{made['by_dump'][0]:#x}")["threads"][0]
        self.assertEqual(at_address["count"], made["by_dump"][2])


    def test_code_that_was_replaced_has_its_name_from_the_perf_map_alone(self):
        made = self.record()
        os.remove(self.dump)
        self.assert_named(self.recording, made)


cases.for_each_engine(globals(), Generated)
cases.for_each_engine(globals(), WithoutTheDump, engines=("qemu",))

if __name__ == "__main__":
    cases.main()
