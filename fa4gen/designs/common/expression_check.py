"""Mask and score as expressions, checked together with the tensors that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.expressions.words import ExpressionError
from fa4gen.masks import mask_of
from fa4gen.scores import score_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.expressions.tensors import Tensor


def check_expressions(mask: Any, values: Mapping[str, Any], tensors: Sequence[Tensor]) -> None:
    """Raise ExpressionError where mask or score is not possible with these tensors.

    ValueError for tensors that neither reads.
    """
    read: set[str] = set()
    try:
        score = score_of(values, tensors)
        read |= score.tensors_read
    except ExpressionError as error:
        raise ExpressionError(f"score: {error}", error.character) from None
    found = mask_of(mask)
    if found.IS_EXPRESSION:
        from fa4gen.masks.expression import check_tensors  # most masks have a name

        try:
            read |= check_tensors(found.name, tensors)
        except ExpressionError as error:
            raise ExpressionError(f"mask: {error}", error.character) from None
    unread = [tensor.name for tensor in tensors if tensor.name not in read]
    if unread:
        raise ValueError(f"parameters: neither mask nor score reads {', '.join(unread)}")
