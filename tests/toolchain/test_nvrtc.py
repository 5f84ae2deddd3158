from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.model import Unit
from fa4gen.toolchain.nvrtc import Nvrtc, _release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.toolchain.model import Compiler


class NoLibrary:
    def nvrtcVersion(self) -> tuple[int, int]:  # noqa: N802 (NVIDIA's name)
        raise RuntimeError("libnvrtc.so.13 cannot be loaded\nwith many details")


@pytest.mark.parametrize(
    ("release", "without"), [((12, 8), False), ((12, 9), True), ((13, 0), True)]
)
def test_its_own_cache_is_off_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, release: tuple[int, int], without: bool
) -> None:
    """Results from that cache have no log, and the lint would refuse them."""
    compiler = Nvrtc()
    monkeypatch.setattr(compiler, "release", release)
    assert ("--no-cache" in compiler.options(Unit("any", "", {}, "sm_90a"))) is without


def test_a_missing_library_is_one_line_with_a_remedy() -> None:
    with pytest.raises(MissingCapabilityError) as caught:
        _release(NoLibrary())
    (problem,) = caught.value.problems
    assert problem.message == "NVRTC is not found: libnvrtc.so.13 cannot be loaded"
    assert "pip install" in problem.remedy


@pytest.mark.compile
def test_the_full_version(nvrtc: Compiler) -> None:
    assert isinstance(nvrtc, Nvrtc)
    major, minor, patch = map(int, nvrtc.version.split("."))
    assert (major, minor) == nvrtc.release
    assert patch > 0


@pytest.mark.compile
def test_the_cubin_is_whole(nvrtc: Compiler, sources: Mapping[str, str]) -> None:
    cubin = nvrtc.build(Unit("clean", sources["clean"], {}, "sm_90a")).cubin
    assert cubin.startswith(b"\x7fELF")
    (sections,) = struct.unpack_from("<Q", cubin, 40)
    size, count = struct.unpack_from("<HH", cubin, 58)
    assert sections + size * count <= len(cubin)


@pytest.mark.compile
@pytest.mark.parametrize("home", ["", "/proc/nowhere"])
def test_without_toolkit_driver_or_warnings(home: str, tmp_path: Path, nvrtc: Compiler) -> None:
    script = (
        "from fa4gen.toolchain.compile import compile_kernel\n"
        "source = 'extern \"C\" __global__ void k() {}'\n"
        "print(len(compile_kernel(source, {}, 'sm_90a', name='k').cubin))\n"
    )
    environment = {
        "PATH": str(tmp_path),
        "HOME": home or str(tmp_path),
        "PYTHONPATH": str(Path.cwd()),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert int(done.stdout) > 1000
