"""Shared by tests of other projects' kernels. They need these packages, and no GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compat.recordings import Recording, load

_RECORD = Path(__file__).parent / "cute" / "record.py"
_ATTENTION = ("torch", "cutlass", "flash_attn.cute", "quack", "triton")
_PRODUCT = ("torch", "cutlass", "quack", "triton")
_NEEDED = {
    "attention": _ATTENTION,
    "backward": _ATTENTION,
    "gemm": _PRODUCT,
    "scaled": _PRODUCT,
}


def _missing(names: tuple[str, ...]) -> list[str]:
    def found(name: str) -> bool:
        try:
            return importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    return [name for name in names if not found(name)]


@pytest.fixture
def cute(tmp_path: Path) -> Callable[..., Recording]:
    """A function that records a case of ``cute/record.py``, given as keywords."""

    def record(**case: Any) -> Recording:
        missing = _missing(_NEEDED[case["what"]])
        if missing:
            pytest.skip(f"no package has {', '.join(missing)}: pip install -e '.[compat]'")
        if shutil.which(os.environ.get("CC", "cc")) is None:
            pytest.skip("there is no C compiler to build the stand-in for CuTe DSL's runtime")
        output = tmp_path / "recording"
        # A process of its own: the architecture is fixed when CuTe DSL is imported.
        done = subprocess.run(
            [sys.executable, "-W", "ignore", _RECORD, json.dumps(case), output],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{case} was not recorded:\n{done.stdout}{done.stderr}"
        return load(output)

    return record
