"""Values that are columns of the keys, of kernels that read only the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView


def check_values_in_keys(plan: AttentionPlan, key: TensorView, value: TensorView) -> list[Problem]:
    """Refuse values elsewhere than in the first columns of the keys, where a kernel needs that.

    Both (batch, rows, heads, depth) in shapes that fit the kernel.
    """
    if not plan.values_in_keys or 0 in key.shape:
        return []
    strides = zip(key.shape[:3], key.strides[:3], value.strides[:3], strict=True)
    if value.pointer == key.pointer and all(n == 1 or of == its for n, of, its in strides):
        return []
    got = f"memory at {value.pointer:#x} with strides of {value.strides} bytes"
    expected = (
        f"the first {plan.value_depth} columns of key: {key.pointer:#x}, strides {key.strides}"
    )
    return [wrong("value", got, expected, f"pass key[..., :{plan.value_depth}]")]
