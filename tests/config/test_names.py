from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_config
from fa4gen.config.names import is_device_name, is_sweep_name
from fa4gen.config.sweep import expand_sweep
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

KEYS = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
SWEEP = """\
base: {{kernel: attention, arch: sm_90a, dtype: bf16}}
matrix: {{depth: [64]}}
name: {}
"""


@pytest.mark.parametrize("name", ["con", "AUX", "nul", "com1", "lpt9", "con.bf16", "Prn.x.y"])
def test_devices_of_windows(name: str) -> None:
    assert is_device_name(name)
    assert not is_sweep_name(name)


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\\b", "", ".hidden", "..", "x" * 101, "a b"])
def test_what_names_no_results_file(tmp_path: Path, name: str) -> None:
    assert not is_sweep_name(name)
    if name:
        path = tmp_path / "s.yaml"
        path.write_text(SWEEP.format(repr(name)))
        with pytest.raises(ConfigError, match="cannot name a results file") as caught:
            expand_sweep(path)
        assert [(p.line, p.key) for p in caught.value.problems] == [(3, "name")]


@pytest.mark.parametrize("name", ["a", "gemm_2.1-rc", "X", "console", "x" * 100])
def test_what_does(tmp_path: Path, name: str) -> None:
    assert is_sweep_name(name)
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP.format(name))
    assert expand_sweep(path).name == name


def test_a_kernel_is_not_called_like_a_device(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(f"{KEYS}name: aux\n")
    with pytest.raises(ConfigError, match="aux is the name of a device on Windows") as caught:
        load_config(path)
    assert [(p.line, p.column) for p in caught.value.problems] == [(5, 7)]
    (tmp_path / "con.yaml").write_text(KEYS)
    with pytest.raises(ConfigError, match="con is the name of a device"):
        load_config(tmp_path / "con.yaml")
    path.write_text(f"{KEYS}name: auxiliary\n")
    assert load_config(path).config.name == "auxiliary"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for load in (load_config, expand_sweep):
        with pytest.raises(ConfigError, match="a pipe or device, not a file"):
            load(tmp_path / "pipe.yaml")
