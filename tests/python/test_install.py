"""`pip install ./python` gives a working package, without a network and without setuptools."""

import os
import pathlib
import re
import subprocess
import sys

import rings

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
import sys, tailtrace
h = tailtrace.open(sys.argv[1], code=[(0x1000, bytes.fromhex(sys.argv[2]))]).threads[0]
print(tailtrace.__file__, len(h), h.at(-1).text, len(h.records))
"""


def clean_environment(**more):
    return {name: value for name, value in (os.environ | more).items()
            if name not in ("LD_PRELOAD", "PYTHONPATH")}


def test_pip(tmp_path):
    # In the folder where all this is built: what is compiled there need not be compiled again.
    build = pathlib.Path(os.environ["TAILTRACE_BINARY_DIR"]).resolve()
    cache = (build / "CMakeCache.txt").read_text()
    kind = re.search(r"^CMAKE_BUILD_TYPE:\w+=(.*)$", cache, re.M)[1]
    target = tmp_path / "site"
    environment = clean_environment(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--root-user-action=ignore", "--target", target,
         "--config-settings", f"build-dir={build}", "--config-settings", f"build-type={kind}",
         ROOT / "python"],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    environment["PYTHONPATH"] = os.fspath(target)
    environment["LD_PRELOAD"] = os.environ["TAILTRACE_TEST_PRELOAD"]
    path = rings.write_example(tmp_path / "a.ring")
    said = subprocess.run([sys.executable, "-c", SCRIPT, path, rings.CODE.hex()], env=environment,
                          cwd=tmp_path, text=True, stdout=subprocess.PIPE, check=True).stdout
    assert said == f"{target}/tailtrace/__init__.py 6 ret 4\n"
    listed = subprocess.run([sys.executable, "-m", "pip", "list", "--path", target],
                            env=environment, text=True, stdout=subprocess.PIPE, check=True).stdout
    assert "tailtrace" in listed


def test_a_folder_of_its_own(tmp_path):
    """Where nothing was built before, everything that the module is made of will be compiled."""
    environment = clean_environment()
    for words in (["cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path,
                   f"-DPython_EXECUTABLE={sys.executable}",
                   "-DCMAKE_BUILD_TYPE=Debug"],  # which compiles each file alone
                  ["ninja", "-C", tmp_path, "-t", "commands", "tailtrace_core"]):
        result = subprocess.run(words, env=environment, text=True, check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert result.returncode == 0, result.stdout
    folders = [ROOT / "decoder", ROOT / "python" / "core"]
    sources = [path for folder in folders for path in folder.rglob("*.cpp")]
    assert len(sources) > 100
    for path in sources:
        assert path.name in result.stdout, path
