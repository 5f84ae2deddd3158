"""The output through the ring of A and B, in the emulator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.gemm.emulation import Problem, check
from tests.kernels.gemm.sm90.test_clean import HOPPER

Keys = dict[str, Any]


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 128, "BN": 192},
        {"BM": 64, "BN": 80, "num_epi_stages": 1, "short_ends": True},
        {"BM": 64, "BN": 64, "num_epi_stages": 4, "short_ends": True},
        {"BM": 128, "BN": 128, "out_dtype": "fp32", "num_stages": 3},
        {"BM": 64, "BN": 80, "cta_group": 2, "share": "a", "residual": "row"},
        {"BM": 128, "BN": 64, "cta_group": 2, "b_major": "n", "residual": "column"},
        {"BM": 64, "BN": 80, "cta_group": 4, "short_ends": True},
        {"BM": 72, "BN": 64, "BK": 64, "cta_group": 4, "swap_operands": True, "num_stages": 3},
        {"BM": 136, "BN": 128, "BK": 64, "swap_operands": True, "short_ends": True},
        {"dtype": "fp8_e4m3", "BM": 64, "BN": 64, "cta_group": 2, "num_consumer_warpgroups": 1},
    ],
    ids=str,
)
def test_output_in_ring(keys: Keys) -> None:
    """Several tiles for each CTA, whose loader waits for the output of the last; one; no block."""
    kernel = {**HOPPER, "output_in_ring": True, "num_stages": 2, **keys}
    rows, columns = keys["BM"], keys["BN"]
    check(kernel, Problem(3 * rows - 5, 5 * columns + 24, 300, batch=2, multiprocessors=4), 1)
    check(kernel, Problem(rows - 3, columns + 8, 40, beta=1.0, multiprocessors=4), 2)
    check(kernel, Problem(5 * rows, 3 * columns, 0, multiprocessors=4), 3)
