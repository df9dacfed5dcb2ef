"""`pip install ./python` gives a working package, without a network and without setuptools."""

import os
import pathlib
import subprocess
import sys

import rings

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
import sys, tailtrace
h = tailtrace.open(sys.argv[1], code=[(0x1000, bytes.fromhex(sys.argv[2]))]).threads[0]
print(tailtrace.__file__, len(h), h.at(-1).text, len(h.records))
"""


def test_pip(tmp_path):
    # Kept between runs: only what has changed is compiled again; fast code is not what it is about.
    build = pathlib.Path(os.environ["TAILTRACE_BINARY_DIR"]).resolve() / "wheel"
    target = tmp_path / "site"
    no_network = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment = {**os.environ, **no_network}
    for name in ["LD_PRELOAD", "PYTHONPATH"]:
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--root-user-action=ignore", "--target", target,
         "--config-settings", f"build-dir={build}", "--config-settings", "build-type=Debug",
         ROOT / "python"],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    environment["PYTHONPATH"] = os.fspath(target)
    path = rings.write_example(tmp_path / "a.ring")
    said = subprocess.run([sys.executable, "-c", SCRIPT, path, rings.CODE.hex()], env=environment,
                          cwd=tmp_path, text=True, stdout=subprocess.PIPE, check=True).stdout
    assert said == f"{target}/tailtrace/__init__.py 6 ret 4\n"
    listed = subprocess.run([sys.executable, "-m", "pip", "list", "--path", target],
                            env=environment, text=True, stdout=subprocess.PIPE, check=True).stdout
    assert "tailtrace" in listed
