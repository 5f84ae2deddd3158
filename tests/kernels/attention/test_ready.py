"""Kernels whose mask or score has a name that stands for an expression: right on both chips."""

from __future__ import annotations

import pytest

from tests.kernels.source_mutation import kernel_of, verify

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
ARCHITECTURES = {
    "hopper": {"arch": "sm_90a", "dtype": "bf16", "depth": 64},
    "blackwell": {"arch": "sm_100a", "dtype": "bf16", "depth": 64},
}
NAMES = {
    "documents, alibi": {"mask": "documents", "score": "alibi"},
    "tree, relative_bias": {"mask": "tree", "score": {"relative_bias": 40}},
    "prefix, softcap": {"mask": "prefix", "softcap": 20.0},
    "dilated, sinks": {"mask": {"dilated": 4}, "sinks": True},
}
CASE = "more_keys/5x*"
"""Few rows, which are the last of more keys: a tree's tokens after their context."""


@pytest.mark.parametrize("keys", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("arch", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_the_kernel_is_right(arch, keys) -> None:
    verdict, _ = verify(kernel_of({**arch, **keys}), CASE, 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1
