"""Base classes of the config models of every kernel family."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticKnownError

if TYPE_CHECKING:
    from collections.abc import Callable

Auto = Literal["auto"]


def _whole(value: object) -> object:
    """Refuse 128.0 and true, which Literal would accept as the number that they equal."""
    if isinstance(value, (bool, float)):
        raise PydanticKnownError("int_type")
    return value


Whole = BeforeValidator(_whole)

WORD = "word"
"""The branch of a word in a union of words and of mappings with one key each."""


def branch_by_key(*keys: str) -> Callable[[Any], str | None]:
    """Return the discriminator of a value's branch: that of its key, or of the nearest one.

    Errors within a mapping are then reported for the intended branch.
    """

    def branch(value: Any) -> str | None:
        if isinstance(value, BaseModel):
            return next(iter(type(value).model_fields))
        if not isinstance(value, dict):
            return WORD
        meant = [key for key in keys if key in value]
        if not meant:
            meant = [near for key in value for near in get_close_matches(str(key), keys, 1)]
        return meant[0] if meant else None

    return branch


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )
