"""A matrix product with scales of blocks by its definition, in place of a launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fa4gen.scales import dequantize, form_of, restore
from fa4gen.scales.narrow import ELEMENTS, decode
from fa4gen.scales.quantize import Quantized

if TYPE_CHECKING:
    from collections.abc import Callable


def numbers_of(row: Any, element: str, bits: Any, scales: Any) -> Any:
    """The numbers (..., lines, k) of an operand and its scales, as a quantised tensor's."""
    lines, k = bits.shape[-2], bits.shape[-1] * (2 if element == "fp4_e2m1" else 1)
    if row.in_atoms:
        scales = restore(scales, lines, -(-k // row.columns))
    form = form_of(row.form, element=element, scale=row.dtype)
    return dequantize(Quantized(form, np.ascontiguousarray(bits), scales)).astype(np.float64)


class ScaledKernel:
    """Computes by the definition of ``fa4gen.scales``; ``mistake`` changes the scales first."""

    mistake: ClassVar[Callable[[dict[str, Any]], None]] = staticmethod(lambda scales: None)
    prepared: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, plan: Any, cubin: bytes) -> None:
        self._plan = plan

    def prepare(self, a, b, c=None, *, out, alpha, beta, **scales):
        self.prepared.append({"a": a, "b": b, "c": c, **scales})
        plan, used = self._plan, {name: array.copy() for name, array in scales.items()}
        type(self).mistake(used)
        if plan.gathers_rows:
            index = used.pop("row_index")
            a, used["scale_a"] = a[..., index, :], used["scale_a"][..., index, :]
        if plan.groups == "offsets":
            offsets, rows = used.pop("row_offsets"), a.shape[0] // b.shape[0]
            assert offsets.tolist() == [rows * group for group in range(len(b) + 1)]
            a, out, used["scale_a"] = (
                one.reshape(len(b), rows, -1) for one in (a, out, used["scale_a"])
            )
        elif plan.groups:
            assert used.pop("row_counts").tolist() == [a.shape[1]] * len(a)
        rows_of_b = b.swapaxes(-1, -2)
        if plan.scales:
            of_a, of_b = used["scale_a"], used["scale_b"]
            across = of_b if plan.scales[1].in_atoms else of_b.swapaxes(-1, -2)
            left = numbers_of(plan.scales[0], plan.dtype, a, of_a)
            right = numbers_of(plan.scales[1], plan.b_dtype, rows_of_b, across)
        else:
            left, right = (decode(one, ELEMENTS[plan.dtype]) for one in (a, rows_of_b))

        def launch() -> None:
            x = alpha * (left @ right.swapaxes(-1, -2))
            if c is not None:
                x += beta * c.astype(np.float64)
            out[:] = np.maximum(x, 0) if plan.activation else x

        return launch
