"""The machine of the figures: the GPU, the driver, the libraries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from fa4gen.version import __version__

if TYPE_CHECKING:
    from fa4gen.runtime.device import DeviceInfo

PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "nvidia-cuda-nvrtc", "numpy", "torch")
SMI_FIELDS = {
    "driver_version": "driver",
    "clocks.sm": "sm_clock_mhz",
    "clocks.max.sm": "max_sm_clock_mhz",
    "power.limit": "power_limit_w",
    "temperature.gpu": "temperature_c",
}
"""Fields of nvidia-smi, and their names in the results."""


def describe_gpu(device: DeviceInfo) -> dict[str, Any]:
    """Return the GPU's name and state; less where nvidia-smi does not answer."""
    major, minor = device.compute_capability
    return {
        "name": device.name,
        "compute_capability": f"{major}.{minor}",
        "multiprocessors": device.multiprocessors,
        "memory_bytes": device.memory_bytes,
        **_ask_smi(device.ordinal),
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the software that was used."""
    versions = {"fa4gen": __version__, "python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    torch = sys.modules.get("torch")  # irrelevant where no peer needed it
    if torch is not None:
        versions["cudnn"] = str(torch.backends.cudnn.version())
        versions["torch_cuda"] = str(torch.version.cuda)
    return versions


def _ask_smi(ordinal: int) -> dict[str, str]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    query = ",".join(SMI_FIELDS)
    try:
        answer = subprocess.run(
            [tool, f"--id={ordinal}", f"--query-gpu={query}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in answer.strip().split(",")]
    if len(values) != len(SMI_FIELDS):
        return {}
    return dict(zip(SMI_FIELDS.values(), values, strict=True))
