"""The self-test and the example where they belong: on a GPU."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.vendoring.stranger.conftest import vendor
from tests.vendoring.stranger.tools import C99, Objects, call, need

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.gpu("sm_90a")
SHIPPED = (
    "d128_causal_bf16",
    "d128_window_fp16",
    "d512_causal_bf16",
    "gemm_bf16_bias_gelu_sm90",
    "gemm_fp8_residual_sm90",
    "gemm_bf16_pair_residual_sm90",
    "d128_ragged_causal_bf16",
    "d64_paged64_window_sinks_bf16",
    "decode_d128_bf16",
    "d128_alibi_causal_bf16",
    "decode_mla_bf16",
    "decode_mla_paged64_bf16",
)


MERGING = ("merge_d128_bf16", "d128_causal_bf16")


@pytest.fixture(scope="module")
def selftest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("on-gpu")
    folder = vendor(there / "acme", "acme", *SHIPPED)
    return Objects(folder, there / "objects", need("cc"), (*C99, "-O2")).selftest()


def test_all_cases(selftest: Path) -> None:
    said = call(selftest, cwd=selftest.parent)
    for name in SHIPPED:
        assert re.findall(rf"^acme_{name}: passed on .*$", said, re.MULTILINE)
    assert f"passed: {len(SHIPPED)} of {len(SHIPPED)} kernels were run" in said


def test_merging(tmp_path: Path) -> None:
    """The C call of merging: a folder has its code only with such a kernel."""
    folder = vendor(tmp_path / "acme", "acme", *MERGING)
    program = Objects(folder, tmp_path / "objects", need("cc"), (*C99, "-O2")).selftest()
    said = call(program, cwd=program.parent)
    for name in MERGING:
        assert re.findall(rf"^acme_{name}: passed on .*$", said, re.MULTILINE)
    assert "passed: 2 of 2 kernels were run" in said


def test_memcheck_is_clean(selftest: Path) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not on this machine")
    words = ("--tool", "memcheck", "--error-exitcode", "9", selftest, "--quick", "--seed", "3")
    assert "ERROR SUMMARY: 0 errors" in call(sanitizer, *words, cwd=selftest.parent)


def test_the_example(example: tuple[Path, Path]) -> None:
    program, _ = example
    said = call(program, cwd=program.parent)
    assert said.splitlines() == [
        "attention by d128_causal_bf16 (sm_90a): 0 of 51200 elements are wrong",
        "product by gemm_bf16_sm90 (sm_90a): 0 of 13600 elements are wrong",
    ]
