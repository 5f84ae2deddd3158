"""Scales that C arranges, next to ``fa4gen.scales.arrange``."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fa4gen.scales import arrange
from tests.vendoring.statuses import describe_status

SIZES = ((1, 1), (128, 4), (129, 5), (300, 27), (31, 64), (640, 2), (0, 4), (9, 0))


@pytest.fixture
def library(launcher):
    found = ctypes.CDLL(str(launcher.library))
    found.acme_arranged_bytes.restype = ctypes.c_int64
    found.acme_arranged_bytes.argtypes = [ctypes.c_int64] * 2
    found.acme_arrange_scales.argtypes = [
        ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p,
    ]  # fmt: skip
    return found


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize(("rows", "blocks"), SIZES)
def test_c_arranges_the_same_bytes(library, rows, blocks, gap) -> None:
    rng = np.random.default_rng(rows + blocks)
    lines = rng.integers(0, 256, (rows, blocks + gap), dtype=np.uint8)
    expected = arrange(lines[:, :blocks])
    assert library.acme_arranged_bytes(rows, blocks) == expected.size
    atoms = np.full(expected.size + 1, 77, np.uint8)  # the last byte is past the end
    status = library.acme_arrange_scales(
        lines.ctypes.data, rows, blocks, blocks + gap, atoms.ctypes.data
    )
    assert status == 0
    assert (atoms[:-1] == expected.ravel()).all()
    assert atoms[-1] == 77


@pytest.mark.parametrize(
    ("rows", "blocks", "data", "reason"),
    [(-1, 4, 16, "BAD_EXTENT"), (4, -1, 16, "BAD_EXTENT"), (4, 4, None, "IS_NULL")],
)
def test_wrong_arguments_are_refused(library, rows, blocks, data, reason) -> None:
    status = library.acme_arrange_scales(data, rows, blocks, 4, data)
    assert describe_status(status) == (reason, "ARGS")
