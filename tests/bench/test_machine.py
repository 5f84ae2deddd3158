from __future__ import annotations

import stat

from fa4gen.bench.machine import SMI_FIELDS, describe_gpu, describe_versions
from fa4gen.runtime.device import DeviceInfo
from fa4gen.version import __version__

DEVICE = DeviceInfo(3, "NVIDIA H200", (9, 0), 132, 1 << 37, 60 << 20)


def put_smi(folder, script: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def test_versions() -> None:
    versions = describe_versions()
    assert versions["fa4gen"] == __version__
    assert versions["numpy"][0].isdigit()
    assert versions["python"].startswith("3.")


def test_the_gpu_with_what_nvidia_smi_says(tmp_path, monkeypatch) -> None:
    put_smi(tmp_path, 'echo "$1" >&2; test "$1" = --id=3 && echo "580.1, 1980, 1980, 700.00, 41"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gpu = describe_gpu(DEVICE)
    assert gpu["name"] == "NVIDIA H200"
    assert gpu["compute_capability"] == "9.0"
    assert gpu["driver"] == "580.1"
    assert gpu["temperature_c"] == "41"
    assert set(SMI_FIELDS.values()) <= set(gpu)


def test_the_gpu_where_nvidia_smi_is_absent_or_fails(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "driver" not in describe_gpu(DEVICE)
    put_smi(tmp_path, "exit 9")
    assert "driver" not in describe_gpu(DEVICE)
    put_smi(tmp_path, "echo 'Unable to determine'")
    assert "driver" not in describe_gpu(DEVICE)
