from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.config.settings import parse_settings
from fa4gen.verify.build import build_kernels

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.compile
def test_settings_reach_the_processes_that_build(tmp_path: Path) -> None:
    configs = []
    for name in ("one", "two"):
        configs.append(str(tmp_path / f"{name}.yaml"))
        (tmp_path / f"{name}.yaml").write_text(
            "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
        )
    settings = parse_settings(["depth=64", "num_kv_stages=2"])
    built = list(build_kernels(configs, jobs=2, settings=settings))
    assert [(kernel.name, kernel.proof) for kernel in built] == [
        ("one", "compiled"),
        ("two", "compiled"),
    ]
    assert all(kernel.plan is not None and kernel.plan.depth == 64 for kernel in built)
