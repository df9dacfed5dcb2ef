"""A fuzzer's turn in `tests/run`.

    turn.py FUZZER FOLDER

The first turn of a fuzzer as it is built now has 30 seconds, each later one a second, with another
seed. Mutations start from the files of the folder, too, if there is one.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parents[1]))
import turns  # pylint: disable=wrong-import-position

FIRST_S, LATER_S = 30, 1


def main():
    fuzzer, folder = sys.argv[1:]
    files = sorted(path for path in pathlib.Path(folder).glob("*"))
    own = turns.Turns(fuzzer, "turns")
    status = subprocess.run([fuzzer, f"--seconds={LATER_S if own.had() else FIRST_S}",
                             f"--seed={own.had() + 1}", *files], check=False).returncode
    if status != 0:
        sys.exit(f"{os.path.basename(fuzzer)} ended with {status}")
    own.count()


if __name__ == "__main__":
    main()
