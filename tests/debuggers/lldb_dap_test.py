#!/usr/bin/env python3
"""The call stack of the past in an IDE: what stock lldb-dap answers to one, over our server and
plugin.

    lldb_dap_test.py --tailtrace PROGRAM --programs FOLDER
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys

import hosts
import lldb_stock

SKIPPED = 77
TIMEOUT_S = float(os.environ.get("TAILTRACE_HANG_S", 120))
FIRST = 22  # whose scripts can provide frames


class Ide:
    """Asks as an IDE does: by the Debug Adapter Protocol."""

    def __init__(self, command, env):
        # It ends by itself should it ever not answer.
        self.process = subprocess.Popen(["timeout", str(TIMEOUT_S), *hosts.BEFORE, command],
                                        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.numbers = itertools.count(1)
        self.stops = 0

    def message(self):
        headers = {}
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            headers[name] = value
        if not headers:
            sys.exit("lldb-dap has ended")
        message = json.loads(self.process.stdout.read(int(headers[b"Content-Length"])))
        self.stops += message.get("event") == "stopped"
        return message

    def send(self, command, **arguments):
        number = next(self.numbers)
        text = json.dumps({"seq": number, "type": "request", "command": command,
                           "arguments": arguments}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()
        return number

    def wait_for(self, wanted):
        while not wanted(message := self.message()):
            pass
        return message

    def ask(self, command, **arguments):
        number = self.send(command, **arguments)
        answer = self.wait_for(lambda message: message.get("request_seq") == number)
        if not answer["success"]:
            sys.exit(f"{command}: {answer}")
        return answer.get("body", {})

    def run_to_breakpoint(self):
        """The thread that stops there."""
        before = self.stops
        if not before:
            self.send("configurationDone")
        else:
            self.ask("continue", threadId=self.ask("threads")["threads"][0]["id"])
        while self.stops == before:
            self.message()
        return self.ask("threads")["threads"][0]["id"]

    def say(self, command):
        return self.ask("evaluate", expression=f"`{command}", context="repl")["result"]

    def stack(self, thread):
        """(function, line) of its frames, innermost first."""
        frames = self.ask("stackTrace", threadId=thread)["stackFrames"]
        return [(frame["name"].split("(")[0], frame["line"]) for frame in frames]


def check(ide, program, plugin):
    """What is wrong; None: nothing."""
    ide.ask("initialize", adapterID="test", linesStartAt1=True)
    # By the file's name alone: its folder is known where it was compiled.
    ide.send("launch", program=program, disableASLR=True,
             initCommands=[*hosts.LLDB_FIRST, f"plugin load {plugin}"],
             preRunCommands=["breakpoint set --file stairs.c --line 9 --one-shot true",
                             "breakpoint set --file stairs.c --line 18"])
    ide.wait_for(lambda message: message.get("event") == "initialized")
    ide.run_to_breakpoint()
    ide.say("tailtrace start")
    thread = ide.run_to_breakpoint()
    present = ide.stack(thread)
    if present[0] != ("main", 18):
        return f"the program stands elsewhere: {present}"
    ide.say("tailtrace goto -14")
    past = ide.stack(thread)
    if past[:4] != [("top", 4), ("middle", 10), ("main", 17), present[1]]:
        return f"the stack of the past is {past}"
    ide.say("tailtrace live")
    if ide.stack(thread) != present:
        return f"the stack of the present is {ide.stack(thread)}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tailtrace", required=True)
    parser.add_argument("--programs", required=True)
    options = parser.parse_args()
    dap = shutil.which(f"lldb-dap-{lldb_stock.version()}") if lldb_stock.path() else None
    plugin = lldb_stock.plugin(options.tailtrace)
    if dap is None or lldb_stock.version() < FIRST or not plugin.exists():
        print(f"skipped: there is no lldb-dap {FIRST} (sudo apt install lldb-22)")
        return SKIPPED
    ide = Ide(dap, lldb_stock.debug_server(options.tailtrace, "step"))
    try:
        wrong = check(ide, f"{options.programs}/stairs", plugin)
    finally:
        ide.process.terminate()
        ide.process.wait()
    print(wrong or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
