"""The key ``parameters``: tensors of a call in addition to query, key and value."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Annotated, Literal

from fa4gen.expressions.places import INDICES, SCORE
from fa4gen.expressions.words import FUNCTIONS, OF_FLOATS
from fa4gen.masks import ready_name as mask_name
from fa4gen.scores import ready_name as score_name
from fa4gen.strict import Field, Strict, rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.expressions.tensors import Tensor
    from fa4gen.masks import MaskValue
    from fa4gen.scores import ScoreValue

MOST_TENSORS = 8
MOST_AXES = 4
Extent = Literal["batch", "query_heads", "key_heads", "rows", "keys"]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAKEN = {
    *INDICES, SCORE, *FUNCTIONS, *OF_FLOATS, "query", "key", "value", "out", "lse", "layout",
    "max_logits",
    "softmax_scale", "sinks", "workspace", "query_descale", "key_descale", "value_descale",
    "query_offsets", "key_offsets", "key_lengths", "page_table", "block_ranges", "block_entries",
    "row_keys",
}  # fmt: skip
"""The names in expressions, and the launcher's other arguments."""


class TensorValue(Strict):
    """A contiguous tensor."""

    dtype: Literal["fp32", "int32"]
    """Type of the elements. Those of fp32 are at most 2^20, which is not checked."""
    shape: tuple[Extent | Annotated[int, Field(ge=1, le=2**28)], ...]
    """Extents: batch, query_heads, key_heads, rows or keys, which are the call's; or numbers."""

    @rule
    def _has_few_axes(self) -> None:
        if not 1 <= len(self.shape) <= MOST_AXES:
            raise ValueError(f"shape has {len(self.shape)} extents, and there are 1 to {MOST_AXES}")


def all_tensors(
    values: Mapping[str, TensorValue] | None, mask: MaskValue, score: ScoreValue | None
) -> tuple[Tensor, ...]:
    """Return the tensors of the key, and those of a mask and a score with names.

    ValueError for a name that cannot be, or that comes with the mask or the score.
    """
    named = {
        key: found
        for key, found in (("mask", mask_name(mask)), ("score", score_name(score)))
        if found is not None
    }
    found = declared(values)
    if not named:
        return found
    from fa4gen.expressions.ready import ready  # of few configs

    own = {tensor.name for tensor in found}
    for key, (name, number) in named.items():
        for tensor in ready(key, name).parameters(number):
            if tensor.name in own:
                raise ValueError(
                    f"parameters: {tensor.name} comes with {key}: {name}, as {tensor.dtype} "
                    f"({tensor.axes}); leave it out"
                )
            found += (tensor,)
    return found


def declared(values: Mapping[str, TensorValue] | None) -> tuple[Tensor, ...]:
    """Return the tensors of the key; ValueError for a name that cannot be."""
    if not values:
        return ()
    from fa4gen.expressions.tensors import Tensor  # not for configs without any

    found = []
    for name, value in values.items():
        if _NAME.fullmatch(name) is None or keyword.iskeyword(name):
            raise ValueError(
                f"parameters: {name!r} is not a name: write small letters, digits and _, at most 40"
            )
        if name in _TAKEN:
            raise ValueError(f"parameters: {name} has a meaning already; choose another name")
        found.append(Tensor(name, value.dtype, value.shape))
    if len(found) > MOST_TENSORS:
        raise ValueError(f"parameters: {len(found)} tensors, at most {MOST_TENSORS}")
    return tuple(found)
