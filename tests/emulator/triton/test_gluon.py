"""Gluon: copies through slots, products with wgmma and with tcgen05 and roles."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES

kernels = pytest.importorskip("tests.emulator.triton.kernels_gluon", reason="needs Triton")
compiling = pytest.importorskip("tests.emulator.triton.compiling", reason="needs Triton")
launch, Descriptor = compiling.launch, compiling.Descriptor

pytestmark = pytest.mark.triton


def described(array: np.ndarray, tile: tuple[int, int]):
    from triton.experimental.gluon.language import NVMMASharedLayout

    span = min(128, tile[1] * array.itemsize)
    return Descriptor(array, tile, NVMMASharedLayout(span, 8 * array.itemsize, len(tile)))


@pytest.mark.parametrize("schedule", ["uniform", "starve", "lazy"])
def test_tiles_in_and_out(arch, rng, schedule) -> None:
    rows, columns, steps = 32, 64, 5
    source = rng.normal(size=(2 * steps * rows, columns)).astype(np.float16)
    out = np.full_like(source, np.nan)
    tile = (rows, columns)
    launch(
        kernels.scaled, arch, 2, (described(source, tile), described(out, tile), 0.5, steps),
        schedule=schedule, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip
    np.testing.assert_array_equal(out, source * np.float16(0.5))


PRODUCTS = {90: "product_wgmma", 100: "product_tcgen05"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_product(arch, rng, schedule) -> None:
    # more steps than the ring has stages, and rows outside of the tile
    m, n, k, rows, columns, depth = 200, 64, 5 * 64, 128 if arch == 100 else 64, 64, 64
    a, b = (rng.normal(size=(size, k)).astype(np.float16) for size in (m, n))
    c = np.full((m, n), np.nan, np.float16)
    launch(
        getattr(kernels, PRODUCTS[arch]), arch, (-(-m // rows), n // columns),
        (
            described(a, (rows, depth)),
            described(b, (columns, depth)),
            described(c, (rows, columns)),
            k // depth,
        ),
        schedule=schedule, known=compiling.ROLES if arch == 100 else (),
        ROWS=rows, COLUMNS=columns, DEPTH=depth, STAGES=2,
    )  # fmt: skip
    right = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.linalg.norm(c - right) < 2**-11 * np.linalg.norm(right)
