"""Decode: masks whose bounds are computed by functions, which no member of the consumer hides."""

from __future__ import annotations

import pytest

from fa4gen.verify.cases import Case
from tests.kernels.attention.decode.test_launches import KEYS
from tests.kernels.attention.launches import failures
from tests.kernels.source_mutation import kernel_of

CASE = Case("test/masks", 1, 4, 2, 3, 129)
BOUNDED = "query - key < 70 and key // 32 == query // 32"


@pytest.mark.emulate
@pytest.mark.compile
@pytest.mark.parametrize("rows", [8, pytest.param(16, marks=pytest.mark.seeds)])
def test_a_mask_with_bounds_of_two_terms(rows: int) -> None:
    """The rows of a tile are in registers of another layout with 16 of them."""
    assert failures(kernel_of({**KEYS, "mask": BOUNDED, "packed_rows": rows}), CASE) == []
