"""Tensors that a config declares: a kernel reads their elements in masks and scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fa4gen.expressions.tree import Kind

Dimension = Literal["batch", "query_heads", "key_heads", "rows", "keys"] | int


@dataclass(frozen=True)
class Tensor:
    """A contiguous tensor that a call gets by its name."""

    name: str
    dtype: Literal["fp32", "int32"]
    shape: tuple[Dimension, ...]
    """Extents: numbers, or by name those of the call."""

    @property
    def kind(self) -> Kind:
        """The kind of an element."""
        return Kind.REAL if self.dtype == "fp32" else Kind.WHOLE

    @property
    def axes(self) -> str:
        """The shape in words, such as "batch, rows"."""
        return ", ".join(str(extent).replace("_", " ") for extent in self.shape)
