"""A fuzzer's turn in `tests/run`.

    turn.py FUZZER FOLDER

The first turn of a fuzzer as it is built now has 15 seconds, one that has an independent decoder to
hold against ours 30; each later one a second, with another seed. Mutations start from the files of
the folder, too, if there is one.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1]))
import turns  # pylint: disable=wrong-import-position

FIRST_S, FIRST_WITH_PEER_S, LATER_S = 15, 30, 1
WITH_PEER = ("pt_differential_fuzz", "pt_legal_fuzz")  # libipt


def main():
    fuzzer, folder = sys.argv[1:]
    files = sorted(path for path in pathlib.Path(folder).glob("*"))
    own = turns.Turns(fuzzer, "turns")
    name = os.path.basename(fuzzer)
    first_s = FIRST_WITH_PEER_S if name in WITH_PEER else FIRST_S
    status = subprocess.run([fuzzer, f"--seconds={LATER_S if own.had() else first_s}",
                             f"--seed={own.had() + 1}", *files], check=False).returncode
    if status != 0:
        sys.exit(f"{name} ended with {status}")
    own.count()


if __name__ == "__main__":
    main()
