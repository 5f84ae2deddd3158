"""Chunked: a row sees the keys of its own chunk, up to its diagonal; local layers of Llama 4."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from fa4gen.masks.mask import MAX_REACH, Mask, parameter
from fa4gen.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Iterator


class ChunkedValue(Strict):
    """The keys are cut into chunks of so many, from the first on; a row sees those of its own.

    Of its chunk it sees the keys up to its diagonal, which ends at the bottom right corner like
    that of ``causal``.
    """

    chunked: Annotated[int, Field(ge=1, le=MAX_REACH)]

    def mask(self) -> Chunked:
        """Return the mask."""
        return Chunked(self.chunked)


@dataclass(frozen=True)
class Chunked(Mask):
    """A row sees the keys of its own chunk, up to its diagonal."""

    name: str = field(default="chunked", init=False)
    chunk_keys: int = parameter("keys of a chunk, of which a row sees those up to its diagonal")

    WORD: ClassVar[str] = "chunked"
    MEANING: ClassVar[str] = "keys of the same chunk of chunk_keys, up to that one"
    # Positions before the first key see nothing, wherever C and Python round them to.
    FIRST: ClassVar[str | None] = "({position}) / {chunk_keys} * {chunk_keys}"
    LAST: ClassVar[str | None] = "{position}"

    def first(self, position: Any) -> Any:
        """See Mask."""
        return position // self.chunk_keys * self.chunk_keys

    def last(self, position: Any) -> Any:
        """See Mask."""
        return position

    @property
    def words(self) -> str:
        """See Mask."""
        return f"chunks of {self.chunk_keys} keys, causal within"

    @property
    def short(self) -> str:
        """See Mask."""
        return f"chunks of {self.chunk_keys}"

    @property
    def span(self) -> int:
        """See Mask."""
        return self.chunk_keys

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield sizes with the end of a chunk inside a tile of rows and inside a block of keys."""
        yield from self.small_sizes()
        for chunks in (1, 2, 3):
            yield 250, chunks * self.chunk_keys + 101
        if self.chunk_keys <= 1000:
            yield 2 * self.chunk_keys + 150, 2 * self.chunk_keys + 70
            yield 3 * self.chunk_keys + 1, self.chunk_keys + 1

    def small_sizes(self) -> Iterator[tuple[int, int]]:
        """Yield sizes with a chunk's end among the rows: of the last, of 30, of all but one."""
        for past in (1, 30, 69):
            yield 70, self.chunk_keys + past
