"""Sums of products in the tensor cores that keep few bits: those of wgmma with 8-bit elements.

The emulator follows them bit for bit (``emulator.instructions.mma.cut_sums``): an instruction
aligns 32 products and the sum so far, and cuts off what is below 2^-13 of the largest, towards
zero. So the more keys there are whose values have a mean, the more of every product is lost:
promotion of the sums to float32 every few blocks of keys bounds that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.emulator.instructions.mma.cut_sums import SUM_BITS, add_products

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

SMALLEST = (-126, -126)
"""The exponents of the least factors: a factor's scale may have moved that of subnormal numbers."""
DEVIATIONS = 4.0
"""Standard deviations of independent errors that are allowed: see ``gemm.tolerance``."""
SCORE_UNITS = 4.0
"""Units of |query row| |key row| that such sums may move a score by, unlike in NumPy: more than the
deviation of 128 cuts below one large product, sqrt(128 / 12)."""
RESCALES = 2
"""Rescales of a row that a cut of one unit follows, of data that have few different maxima."""
E4M3_BITS = 3
"""Bits of a mantissa after the point: a number is a multiple of 2^-3 of any that is not larger."""


@dataclass(frozen=True)
class CutSums:
    """The sums of one kernel."""

    step: int = 32
    """Products of an instruction."""
    part_keys: int | None = None
    """The keys after which an output is promoted to float32; None: never."""

    @classmethod
    def of(cls, plan: AttentionPlan) -> CutSums | None:
        """Return the sums of the kernel of ``plan``; None where they are as good as float32."""
        if plan.operand_dtype != "fp8_e4m3" or plan.has_tensor_memory:
            return None
        return cls(plan.mma_k, part_keys=plan.promoted_keys)

    @property
    def score_units(self) -> float:
        """Units of 2^-23 of |query row| |key row| by which a score may be off."""
        return SCORE_UNITS * 2.0 ** (23 - SUM_BITS)

    def products(
        self, a: Any, b: Any, xp: Any, *, part: int | None = None, backwards: bool = False
    ) -> Any:
        """Return a . b as such sums give it, every cut made.

        ``part``: of k, before they are promoted; ``backwards``: from the end of k, as keys are
        walked.
        """
        total, promoted = (xp.zeros((a.shape[0], b.shape[1]), xp.float64) for _ in range(2))
        left, right = a.astype(xp.float32), b.T.astype(xp.float32)
        in_part, starts = 0, range(0, a.shape[1], self.step)
        for start in reversed(starts) if backwards else starts:
            step = slice(start, start + self.step)
            total = add_products(total, left[:, step], right[:, step], xp, SMALLEST)
            in_part += self.step
            if part is not None and in_part >= part:
                promoted, total, in_part = promoted + total, xp.zeros_like(total), 0
        return promoted + total

    def room(self, weights: Any, values: Any, sums: Any, xp: Any) -> Any:
        """Return by how much ``sums`` = weights . values may be short; nothing is negative.

        Where all products are multiples of the unit of the whole sum, by the cuts after rescales,
        whose factors are not quite powers of two.
        """
        count = (weights > 0).astype(xp.float64) @ (values > 0).astype(xp.float64)
        part = count if self.part_keys is None else xp.minimum(count, self.part_keys)
        units = xp.ceil(part / self.step) + 1 + part / 2 + DEVIATIONS * xp.sqrt(part)
        whole = 1.0 if _is_whole(values, xp) else _grain(values, 0, xp)
        grain = _least(weights, 1, xp)[:, None] * whole
        cut = sums >= 2.0**SUM_BITS * grain
        return xp.where(cut, units, RESCALES) * sums * 2.0**-SUM_BITS

    def score_room(self, query: Any, key: Any, xp: Any) -> Any:
        """Return how far each product of a query and a key may be from the exact one.

        0 where all terms are multiples of the unit of the sum of their magnitudes.
        """
        sizes = xp.abs(query) @ xp.abs(key.T)
        whole = _is_whole(query, xp) and _is_whole(key, xp)
        grain = 1.0 if whole else _grain(query, 1, xp) * _grain(key.T, 0, xp)
        drift = xp.abs(self.products(query, key.T, xp) - query @ key.T)
        chance = DEVIATIONS * (query.shape[1] / 12) ** 0.5 * 2.0**-SUM_BITS * sizes
        return xp.where(sizes >= 2.0**SUM_BITS * grain, drift + chance, 0.0)


def _is_whole(array: Any, xp: Any) -> bool:
    """Return whether all are whole numbers."""
    return bool((array == xp.rint(array)).all())


def _least(array: Any, axis: int, xp: Any) -> Any:
    """Return the least magnitude above zero of each line; 0 for lines of zeros."""
    sizes = xp.where(array == 0, xp.inf, xp.abs(array)).min(axis=axis)
    return xp.where(xp.isfinite(sizes), sizes, 0.0)


def _grain(array: Any, axis: int, xp: Any) -> Any:
    """Return a number of which those of a line are multiples, of each line along ``axis``."""
    least = _least(array, axis, xp) * 2.0**-E4M3_BITS
    return least[:, None] if axis else least
