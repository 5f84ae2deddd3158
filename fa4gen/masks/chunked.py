"""Chunked: a row sees the keys of its own chunk, up to its diagonal; local layers of Llama 4."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from fa4gen.masks.mask import MAX_REACH, Mask, parameter
from fa4gen.overriding import override
from fa4gen.strict import Field, Strict

if TYPE_CHECKING:
    from collections.abc import Iterator


class ChunkedValue(Strict):
    """Chunks of this number of keys, from the first key on; a row sees the keys of its own chunk.

    It sees the keys of its chunk up to its diagonal, which ends at the bottom right corner like
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
    keys_per_chunk: int = parameter("a row sees those of its own chunk")

    WORD: ClassVar[str] = "chunked"
    MEANING: ClassVar[str] = "keys of the same chunk of keys_per_chunk, up to that one"
    # Positions before the first key see nothing, wherever C and Python round them to.
    FIRST: ClassVar[str | None] = "({position}) / {keys_per_chunk} * {keys_per_chunk}"
    LAST: ClassVar[str | None] = "{position}"
    ENDS_AT_QUERY: ClassVar[bool] = True

    @override
    def first(self, position: Any) -> Any:
        return position // self.keys_per_chunk * self.keys_per_chunk

    @override
    def last(self, position: Any) -> Any:
        return position

    @property
    @override
    def words(self) -> str:
        return f"chunks of {self.keys_per_chunk} keys, causal within"

    @property
    @override
    def short(self) -> str:
        return f"chunks of {self.keys_per_chunk}"

    @property
    @override
    def span(self) -> int:
        return self.keys_per_chunk

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield sizes with the end of a chunk inside a tile of rows and inside a block of keys."""
        yield from self.small_sizes()
        for chunks in (1, 2, 3):
            yield 250, chunks * self.keys_per_chunk + 101
        if self.keys_per_chunk <= 1000:
            yield 2 * self.keys_per_chunk + 150, 2 * self.keys_per_chunk + 70
            yield 3 * self.keys_per_chunk + 1, self.keys_per_chunk + 1

    def small_sizes(self) -> Iterator[tuple[int, int]]:
        """Yield sizes with a chunk's end among the rows: of the last, of 30, of all but one."""
        for past in (1, 30, 69):
            yield 70, self.keys_per_chunk + past
