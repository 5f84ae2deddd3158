"""A fixture for tests of attention in the emulator."""

from __future__ import annotations

import pytest

from fa4gen.emulator.instructions.tcgen05 import product
from fa4gen.emulator.instructions.wgmma import products


@pytest.fixture
def each_product_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the schedule the emulator decides which products of a chain it sums together, and so their
    rounding. Alone they give the same bits in every run, as on hardware."""
    for kind in (product.Product, products.Product):
        monkeypatch.setattr(kind, "joins", lambda self, chain: False)
