"""Masks and scores with a name: an expression each, and the tensors that it reads.

A config that names one is the config that writes the expression and declares the parameters: the
kernel, the reference and the bounds are those of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.expressions.tensors import Tensor

if TYPE_CHECKING:
    from fa4gen.expressions.tensors import Dimension

NUMBER = "{number}"


@dataclass(frozen=True)
class Ready:
    """A name, with the text that it stands for."""

    key: str
    """The config's key whose value it is."""
    name: str
    text: str
    """The expression; ``{number}`` in it is that of the config."""
    tensors: tuple[Tensor, ...] = ()
    meaning: str = ""
    most_rows: int | None = None
    """Query rows of a call, where the expression cannot tell more of them apart."""

    def expression(self, number: int = 0) -> str:
        """Return the text with the config's number."""
        return self.text.replace(NUMBER, str(number))

    def parameters(self, number: int = 0) -> tuple[Tensor, ...]:
        """Return the tensors with the config's number in their shapes."""
        return tuple(
            Tensor(one.name, one.dtype, tuple(_extent(extent, number) for extent in one.shape))
            for one in self.tensors
        )


TWICE_AND_ONE = 0
"""In the table, an extent of twice the config's number and one."""


def _extent(extent: Dimension, number: int) -> Dimension:
    return 2 * number + 1 if extent == TWICE_AND_ONE else extent


READY = (
    Ready(
        "mask",
        "documents",
        "key <= query and document[batch, query] == document[batch, key]",
        (Tensor("document", "int32", ("batch", "keys")),),
        "packed documents, causal within: of each key the number of its document",
    ),
    Ready(
        "mask",
        "prefix",
        "key <= query or key < prefix[batch]",
        (Tensor("prefix", "int32", ("batch",)),),
        "all see the first keys, so many of each batch; causal after them",
    ),
    Ready(
        "mask",
        "tree",
        "key <= query and "
        "(key < query - row or bit(ancestors[batch, row], key - query + row) == 1)",
        (Tensor("ancestors", "int32", ("batch", "rows")),),
        "speculative tokens: all keys before the rows' own, and of those up to 32 the ones whose "
        "bit is set, the row's own included",
        most_rows=32,
    ),
    Ready(
        "mask",
        "dilated",
        "key <= query and (query - key) % {number} == 0",
        (),
        "every so many keys back from the row's own",
    ),
    Ready(
        "score",
        "alibi",
        "score - slope[head] * (query - key)",
        (Tensor("slope", "fp32", ("query_heads",)),),
        "ALiBi: the distance times the head's slope is subtracted",
    ),
    Ready(
        "score",
        "relative_bias",
        "score + bias[head, key - query + {number}]",
        (Tensor("bias", "fp32", ("query_heads", TWICE_AND_ONE)),),
        "T5: a bias of each head for distances from minus to plus the number; farther ones have "
        "that of the end",
    ),
)


def ready(key: str, name: str) -> Ready:
    """Return the entry of a key's name; StopIteration where there is none."""
    return next(one for one in READY if (one.key, one.name) == (key, name))


def most_rows_of(text: str) -> int | None:
    """Return the most query rows of a mask's expression, by its text; None without such a limit."""
    return next((one.most_rows for one in READY if (one.key, one.text) == ("mask", text)), None)
