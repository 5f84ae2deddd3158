"""wgmma of 8-bit floats with operands that show which bits of a sum are kept.

Every pair of types, accumulators of 32 and 16 bits, and factors of three kinds: of every size;
near the smallest normal number, so that the largest product may have subnormal factors; and few
sizes, so that many sums differ by their last bits only.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tests.emulator.hardware.async_probes import wgmma_probe
from tests.emulator.hardware.family_probes import FamilyProbe

TYPES = {"e4m3": (3, 14), "e5m2": (2, 30)}
"""Bits of the mantissa, and the largest exponent field that has no NaN."""
DATA = ("any", "small", "near_one")
WORDS_OF_B = 8192
"""Where B begins."""


def _codes(rng: np.random.Generator, kind: str, data: str, count: int) -> np.ndarray:
    """Bit patterns of finite numbers."""
    mantissa, most = TYPES[kind]
    middle = most // 2
    first, last = {"any": (0, most), "small": (0, 2), "near_one": (middle - 1, middle + 1)}[data]
    field = rng.integers(first, last, count, endpoint=True)
    sign, low = rng.integers(0, 2, count), rng.integers(0, 1 << mantissa, count)
    return (sign << 7 | field << mantissa | low).astype(np.uint8)


def _arguments(a: str, b: str, d: str, data: str) -> list[Any]:
    """Accumulators from far below the products to above them; operands; A in registers, unused."""
    rng = np.random.default_rng([*a.encode(), *b.encode(), DATA.index(data)])
    of_b = _codes(rng, b, data, 4 * WORDS_OF_B)
    shared = np.concatenate([_codes(rng, a, data, 4 * WORDS_OF_B), of_b]).view(np.uint32)
    size = {"any": (-4, 12), "small": (-34, -10), "near_one": (-8, 8)}[data]
    start = rng.standard_normal((128, 16)) * 2.0 ** rng.integers(*size, (128, 16))
    if d == "f16":
        halves = np.stack([start, start[::-1]], axis=-1).astype(np.float16)
        return [halves.view(np.uint32).reshape(128, 16), shared, np.zeros(512, np.uint32)]
    return [start.astype(np.float32).view(np.uint32), shared, np.zeros(512, np.uint32)]


def _probe(a: str, b: str, d: str, data: str) -> FamilyProbe:
    probe = wgmma_probe(f"sum_{d}_{a}_{b}_{data}", "e4m3", 32)
    shape = f"m64n{32 if d == 'f32' else 64}k32.{d}.{a}.{b}"
    ptx = probe.ptx.replace("m64n32k32.f32.e4m3.e4m3", shape)
    return replace(probe, ptx=ptx, arguments=lambda: _arguments(a, b, d, data))


@cache
def probes() -> tuple[FamilyProbe, ...]:
    """All probes of this module."""
    kinds = [("f32", data) for data in DATA] + [("f16", "near_one")]
    return tuple(_probe(a, b, d, data) for d, data in kinds for a in TYPES for b in TYPES)
