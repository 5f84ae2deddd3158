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


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_without_keys_nothing_is_read_of_tensors_along_the_keys(arch) -> None:
    # Where no row sees a key, Hopper's pairs walk a block past the last one.
    keys = {"arch": arch, "dtype": "bf16", "depth": 512, "cta_group": 2, "mask": "documents"}
    verdict, _ = verify(kernel_of(keys), "empty/no_keys", 3)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1
