"""perf.data files open as any recording does."""

import os
import subprocess

import tailtrace


def test_a_perf_data_file_gives_the_same_instructions(recorded, tmp_path):
    recorded.save(tmp_path / "kept")
    command = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "plugin/tailtrace")
    path = tmp_path / "perf.data"
    subprocess.run([command, "export", "--format=perf-data", "-o", path, tmp_path / "kept"],
                   check=True, env={**os.environ, "LD_PRELOAD": ""})
    opened = tailtrace.open(path)
    history, = opened.threads
    assert history.engine == "pt"
    before = recorded.threads[0]
    assert len(history) == len(before)
    assert [i.address for i in history[-200:]] == [i.address for i in before[-200:]]
