"""Debug information that is not installed comes from a server when that is asked for, and nothing
is sent to anybody when it is not."""

import ctypes.util
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

import cases

SOURCE = """
volatile int total;
__attribute__((noinline)) static void add(int n) {
  total += n;  // line 4
}
int main(void) {
  add(3);
  return total != 3;
}
"""


class Server(http.server.ThreadingHTTPServer):
    """Debug files by their build ids, as debuginfod(8) serves them."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked = {}, []

    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        path = self.server.files.get(self.path)
        if path is None:
            self.send_error(404)
            return
        with open(path, "rb") as file:
            data = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Debuginfod(cases.CommandCase):
    @classmethod
    def setUpClass(cls):
        cases.needs_engine(cls("hits"), "qemu")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        program, debug = (os.path.join(cls.folder, name) for name in ("program", "elsewhere.debug"))
        with open(program + ".c", "w", encoding="utf-8") as file:
            file.write(SOURCE)
        for command in (["gcc", "-g", "-Wl,--build-id", "-o", program, program + ".c"],
                        ["objcopy", "--only-keep-debug", program, debug],
                        ["objcopy", "--strip-debug", program]):
            subprocess.run(command, check=True)
        notes = subprocess.run(["readelf", "-n", program], check=True, stdout=subprocess.PIPE,
                               text=True).stdout
        cls.place = f"/buildid/{notes.split('Build ID: ')[1].split()[0]}/debuginfo"
        cls.debug = debug
        cls.session = os.path.join(cls.folder, "session")
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + cls.session, "--", program)
        assert outcome.returncode == 0, outcome.stderr

    def setUp(self):
        self.server = Server()
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.cache = tempfile.mkdtemp(dir=self.folder)

    def hits(self, *options, **environment):
        environment = dict(os.environ, DEBUGINFOD_CACHE_PATH=self.cache, **environment)
        return cases.tailtrace("hits", "--json", *options, self.session, "program.c:4",
                               env=environment)

    def test_nothing_is_asked_of_anybody_by_itself(self):
        self.server.files[self.place] = self.debug
        outcome = self.hits(DEBUGINFOD_URLS=self.server.url())
        self.assertEqual(outcome.returncode, 1, outcome.stderr)
        self.assertEqual(self.server.asked, [])

    def test_lines_come_from_the_server(self):
        if ctypes.util.find_library("debuginfod") is None:
            self.skipTest("libdebuginfod1 is not installed")
        self.server.files[self.place] = self.debug
        outcome = self.hits("--debuginfod", DEBUGINFOD_URLS=self.server.url())
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        hit, = json.loads(outcome.stdout)["threads"][0]["hits"]
        self.assertEqual((hit["function"], hit["line"]), ("add", 4))
        self.assertIn(self.place, self.server.asked)
        # What was fetched is kept.
        self.server.asked.clear()
        outcome = self.hits("--debuginfod", DEBUGINFOD_URLS=self.server.url())
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertNotIn(self.place, self.server.asked)

    def test_a_server_that_has_nothing_changes_nothing(self):
        if ctypes.util.find_library("debuginfod") is None:
            self.skipTest("libdebuginfod1 is not installed")
        without = self.hits(DEBUGINFOD_URLS=self.server.url())
        outcome = self.hits("--debuginfod", DEBUGINFOD_URLS=self.server.url())
        self.assertEqual((outcome.returncode, outcome.stderr), (1, without.stderr))
        self.assertIn(self.place, self.server.asked)

    def test_no_server_is_an_error(self):
        outcome = self.hits("--debuginfod", DEBUGINFOD_URLS="")
        self.assert_error(outcome, 2, "cannot fetch debug information", "DEBUGINFOD_URLS",
                          "export DEBUGINFOD_URLS=")


cases.main()
