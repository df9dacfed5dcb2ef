#!/usr/bin/env python3
"""The instructions that stock LLDB shows of a trace are those that single-stepping sees.

    TAILTRACE=PROGRAM lldb_truth_test.py --programs FOLDER --engine step|qemu|debug-server NAME...

With `debug-server` LLDB starts tailtrace-lldb-server for the trace and its own server for the
steps. With `step` both are held by the same server, so that program and libraries take the same
path; where it is single-stepped nothing is recorded, and gdbserver does the steps, without LLDB,
which takes its time for each. Under qemu its own log says what was executed.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import lldb_stock
import stepped_pcs
from stepped_pcs import rsp

SKIPPED = 77
TIMEOUT_S = float(os.environ.get("TAILTRACE_HANG_S", 300))
DEBUG_SERVER = "debug-server"
PCS = pathlib.Path(__file__).resolve().parent / "lldb_pcs.py"


def serve(engine, program):
    return rsp.Server("--once", f"--engine={engine}", "127.0.0.1:0", program)


def steps(engine, program):
    """The program counters that single-stepping finds."""
    if engine == "qemu":
        return [f"{pc:#x}" for pc in stepped_pcs.under_qemu(program)]
    server = serve(engine, program)
    try:
        return [f"{pc:#x}" for pc in stepped_pcs.under_gdbserver(program, server.port)]
    finally:
        server.close()


def pcs(engine, program, function):
    """What a function of lldb_pcs.py finds."""
    server = serve(engine, program) if engine != DEBUG_SERVER else None
    with tempfile.TemporaryDirectory(prefix="tailtrace-truth-") as folder:
        path = f"{folder}/pcs"
        if engine == DEBUG_SERVER:
            before = [f"target create {program}", "settings set target.inherit-env false"]
        else:
            before = lldb_stock.connecting(engine, program, server.port)
        commands = ["breakpoint set --skip-prologue false --one-shot true --name main "
                    f"--shlib {os.path.basename(program)}",
                    "run" if engine == DEBUG_SERVER else "process continue",
                    f"command script import {PCS}",
                    f'script lldb_pcs.{function}(lldb.debugger, "{path}")', "process kill"]
        try:
            output = subprocess.run(lldb_stock.command(), input=lldb_stock.script(before, commands),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    timeout=TIMEOUT_S, check=False,
                                    env=environment(engine, function)).stdout
            ended = server.process.poll() if server else None
        finally:
            if server:
                server.close()
        if not os.path.exists(path):
            sys.exit(f"{function} found nothing, the server's status is {ended}:\n{output}")
        return pathlib.Path(path).read_text(encoding="utf-8").split()


def environment(engine, function):
    """Where LLDB finds our debug server, and where it does not."""
    if engine == DEBUG_SERVER and function == "by_trace":
        return lldb_stock.debug_server(os.environ["TAILTRACE"], "step")
    return {name: value for name, value in os.environ.items() if name != "LLDB_DEBUGSERVER_PATH"}


def difference(program, engine):
    """What is wrong with the history of a program; None if nothing is."""
    if engine == DEBUG_SERVER:
        wanted = pcs(engine, program, "by_steps")
    else:
        wanted = steps(engine, program)
    shown = pcs(engine, program, "by_trace")
    print(f"{os.path.basename(program)}: {len(wanted)} instructions")
    if len(wanted) < 10:
        return "nothing was executed"
    for number, (want, show) in enumerate(zip(wanted, shown)):
        if want != show:
            return f"instruction {number} is shown as {show}, and was {want}"
    return None if len(wanted) == len(shown) else f"{len(shown)} instructions are shown"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    tool = {"step": "gdbserver", "qemu": "qemu-x86_64", DEBUG_SERVER: "lldb-server-22"}
    missing = lldb_stock.why_not()
    if not missing and not shutil.which(tool[options.engine]):
        missing = f"{tool[options.engine]} is not installed"
    if missing:
        print(f"skipped: {missing}")
        return SKIPPED
    failed = 0
    for name in options.names:
        wrong = difference(f"{options.programs}/{name}", options.engine)
        if wrong:
            print(f"{name}: {wrong}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
