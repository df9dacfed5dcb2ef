"""Makes a wheel of the package, as PEP 517 has it, with what the distribution ships: CMake, a
compiler, Python's headers and pybind11. Nothing is fetched, so `pip install ./python` needs no
network.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SUMMARY = "The tail of a program's execution, as data"


def version():
    cmake = (HERE.parent / "CMakeLists.txt").read_text()
    return re.search(r"project\(tailtrace VERSION ([0-9.]+)", cmake).group(1)


def tag():
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[^0-9A-Za-z]", "_", sysconfig.get_platform())
    return f"{interpreter}-{interpreter}-{platform}"


def metadata():
    return {
        "METADATA": (f"Metadata-Version: 2.1\nName: tailtrace\nVersion: {version()}\n"
                     f"Summary: {SUMMARY}\nLicense: MIT\nRequires-Python: >=3.11\n"),
        "WHEEL": ("Wheel-Version: 1.0\nGenerator: tailtrace\nRoot-Is-Purelib: false\n"
                  f"Tag: {tag()}\n"),
    }


def run(*command):
    try:
        # What pip sets up for its own build must not lead CMake to another Python.
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        subprocess.run(command, check=True, env=environment)
    except FileNotFoundError:
        raise SystemExit(f"error: cannot build the package\n  why:  there is no {command[0]}\n"
                         f"  fix:  tests/install build")


def build(folder, kind):
    """Compiles into the folder and returns the files of the package."""
    run("cmake", "-S", str(HERE.parent), "-B", folder, f"-DCMAKE_BUILD_TYPE={kind}",
        f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "--build", folder, "--target", "tailtrace_core", "--parallel",
        str(os.cpu_count() or 1))
    package = pathlib.Path(folder, "python", "tailtrace")
    files = [path for path in sorted(package.iterdir()) if path.is_file()]
    if not any(path.name.startswith("_core.") and path.suffix == ".so" for path in files):
        raise SystemExit("error: cannot build the package\n  why:  Python's headers or pybind11 "
                         "are missing\n  fix:  tests/install build")
    return files


class Wheel:
    """A zip file that lists what it holds."""

    def __init__(self, path):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
        info.external_attr = mode << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.file.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, record_name):
        self.file.writestr(record_name, "".join(self.record) + f"{record_name},,\n")
        self.file.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. Settings: build-dir=FOLDER, a folder of CMake's that is used and kept;
    build-type=NAME, CMake's, RelWithDebInfo unless said."""
    name = f"tailtrace-{version()}-{tag()}.whl"
    info = f"tailtrace-{version()}.dist-info"
    settings = config_settings or {}
    kept = settings.get("build-dir")
    with tempfile.TemporaryDirectory() as folder:
        files = build(kept or folder, settings.get("build-type", "RelWithDebInfo"))
        wheel = Wheel(pathlib.Path(wheel_directory, name))
        for path in files:
            wheel.add(f"tailtrace/{path.name}", path.read_bytes(),
                      0o755 if path.suffix == ".so" else 0o644)
        for part, text in metadata().items():
            wheel.add(f"{info}/{part}", text.encode())
        wheel.close(f"{info}/RECORD")
    return name
