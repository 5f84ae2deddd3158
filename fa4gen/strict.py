"""What the config models of every kernel family are made of."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticKnownError

Auto = Literal["auto"]


def _whole(value: object) -> object:
    """Refuse 128.0 and true, which Literal would accept as the number that they equal."""
    if isinstance(value, (bool, float)):
        raise PydanticKnownError("int_type")
    return value


Whole = BeforeValidator(_whole)


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )
