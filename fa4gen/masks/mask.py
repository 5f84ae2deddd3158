"""The definition of a mask: the interval of keys that each query row sees, and its keys in it.

A row's position is the key on its diagonal: row + key_rows - query_rows, so that the last row and
the last key meet. It is negative where there are more rows than keys. A mask says which keys a
position sees, from ``first`` to ``last``; neither end may decrease from one position to the next.
Where a row does not see all of them, ``TEST`` says which. Everything else is derived: the blocks
of keys that a tile sees, the blocks that need the mask, the keys to hide in them, the pairs that
are left.

An entry defines it twice, side by side: in Python for the reference, and in C for kernels and for
the self-test of a vendored folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.expressions.places import Places

MAX_REACH = 2**30
"""Keys: so that the sum of a mask's numbers, rows and a tile fits 32 bits for as many rows."""


@dataclass(frozen=True)
class Constant:
    """A number of a mask in the C of FIRST and LAST."""

    name: str
    """In C of kernels kWindowLeft for window_left."""
    value: int
    note: str


def parameter(note: str) -> Any:
    """Return the dataclass field of a mask's number; ``note`` names the thing counted."""
    return field(metadata={"note": note})


@dataclass(frozen=True)
class Mask:
    """The keys that a query row sees. Fields after the name are the mask's numbers."""

    name: str = field(default="", init=False)
    """The config's word."""

    WORD: ClassVar[str] = ""
    """Short, for the names of cases."""
    MEANING: ClassVar[str] = ""
    """For a comment in C."""
    IS_EXPRESSION: ClassVar[bool] = False
    """Its name is a condition on query and key."""
    FIRST: ClassVar[str | None] = None
    """C for the first key that ``{position}`` sees, with the mask's numbers by name; None is the
    first of all. It is evaluated as a signed integer."""
    LAST: ClassVar[str | None] = None
    """C for the last key that ``{position}`` sees; None is the last of all."""
    FIXED: ClassVar[tuple[Constant, ...]] = ()
    """Numbers in FIRST and LAST that are the same for all masks of the kind."""
    IN_ORDER: ClassVar[bool] = False
    """Later rows see more keys: tiles are processed from the last to the first."""
    ENDS_AT_QUERY: ClassVar[bool] = False
    """No row sees a key past its position."""
    TEST: ClassVar[str | None] = None
    """C for whether position ``{query}`` sees ``{key}``; None where it sees all from first to
    last."""
    CERTAIN: ClassVar[str | None] = None
    """C for whether ``{first_query}`` to ``{last_query}`` see all of ``{first_key}`` to
    ``{last_key}`` that TEST is about; it may be false where they do."""

    def first(self, position: Any) -> Any:
        """Return the first key that a position sees, which may be below 0; not without FIRST.

        Works on whole numbers and on arrays of them alike, like ``last``.
        """
        raise NotImplementedError

    def last(self, position: Any) -> Any:
        """Return the last key that a position sees, maybe past the keys; not without LAST."""
        raise NotImplementedError

    def sees_within(self, position: Any, key: Any, xp: Any) -> Any:
        """Return TEST for arrays of positions and keys that broadcast; ``xp`` is their module."""
        del position, key, xp
        return True

    def sees_all(self, positions: range, keys: range) -> bool:
        """Return CERTAIN."""
        del positions, keys
        return True

    def is_by_blocks(self, rows: int, keys: int) -> bool:
        """Return whether each block of keys is seen as a whole, or not, by each tile of rows.

        Tiles have ``rows`` and begin at multiples of it, as blocks do at multiples of ``keys``.
        """
        del rows, keys
        return False

    @property
    def has_left_end(self) -> bool:
        """Whether a row may not see the first keys."""
        return self.FIRST is not None

    @property
    def has_right_end(self) -> bool:
        """Whether a row may not see the last keys."""
        return self.LAST is not None

    @property
    def tests_keys(self) -> bool:
        """Whether keys between the ends that a row sees are tested one by one."""
        return self.TEST is not None

    @property
    def last_follows_row(self) -> bool:
        """Whether the last key that a row sees depends on the row."""
        return "{position}" in (self.LAST or "")

    @property
    def follows_row(self) -> bool:
        """Whether the first or the last key that a row sees depends on the row."""
        return "{position}" in (self.FIRST or "") or self.last_follows_row

    @property
    def tile_names(self) -> frozenset[str]:
        """The names among head, key_head and batch that TEST and CERTAIN use."""
        return frozenset()

    @property
    def reads_places(self) -> bool:
        """Whether a row's keys depend on more than query and key, or on declared tensors."""
        return False

    @property
    def tensors_read(self) -> frozenset[str]:
        """Names of the declared tensors that TEST reads."""
        return frozenset()

    @property
    def reads_by_key(self) -> bool:
        """Whether TEST reads declared tensors key by key."""
        return False

    def sees_at(self, places: Places, xp: Any) -> Any:
        """Return TEST at places (rows, keys)."""
        return self.sees_within(places.query, places.key, xp)

    @property
    def most_rows(self) -> int | None:
        """The most query rows of a call; None where the mask sets no limit."""
        return None

    @property
    def floor_functions(self) -> tuple[str, ...]:
        """Functions of a kernel that its C calls: divisions that round down."""
        return ()

    @property
    def explained(self) -> tuple[str, ...]:
        """The kernel's form of the mask, for ``fa4gen explain``; empty where the name says it."""
        return ()

    @property
    def words(self) -> str:
        """The mask with its numbers, for summaries."""
        return self.name

    @property
    def short(self) -> str:
        """The mask with its numbers, for labels."""
        return self.words

    @property
    def reach(self) -> int:
        """The most that ``first`` and ``last`` are from the position, outside the keys."""
        return 0

    @property
    def span(self) -> int | None:
        """The most keys that a row sees; None where that is all of them."""
        return None

    def pairs(self, rows: int) -> float:
        """Count the (query, key) pairs that are visible of ``rows`` times ``rows``.

        Peers count the operations of a benchmark by it, too.
        """
        return float(sum(len(self.seen(row, rows, rows)) for row in range(rows)))

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield further query and key rows, which are hard for this mask."""
        yield from ()

    def small_sizes(self) -> Iterator[tuple[int, int]]:
        """Yield fewer and smaller sizes, for the emulator."""
        yield from ()

    # ---- derived ----

    @classmethod
    def number_names(cls) -> tuple[str, ...]:
        """Return the names of the mask's numbers."""
        return tuple(row.name for row in fields(cls) if row.name != "name")

    @classmethod
    def in_c(cls, text: str, position: str, owner: str = "") -> str:
        """Return the C of FIRST or LAST for a position.

        The mask's numbers are members of ``owner``, such as ``traits.``; else a kernel's constants.
        """
        names = cls.number_names()
        written = {name: f"{owner}{name}" if owner else kernel_name(name) for name in names}
        for row in cls.FIXED:
            written[row.name] = str(row.value) if owner else kernel_name(row.name)
        return text.format(position=position, **written)

    def numbers(self) -> Mapping[str, int]:
        """Return the mask's numbers by name."""
        return {name: getattr(self, name) for name in self.number_names()}

    def constants(self) -> tuple[Constant, ...]:
        """Return the mask's numbers as a kernel has them."""
        own = (
            Constant(row.name, getattr(self, row.name), row.metadata["note"])
            for row in fields(self)
            if row.name != "name"
        )
        return (*self.FIXED, *own)

    def first_key(self, position: str) -> str:
        """Return C of a kernel for the first key that ``position`` sees."""
        assert self.FIRST is not None
        return self.in_c(self.FIRST, position)

    def last_key(self, position: str) -> str:
        """Return C of a kernel for the last key that ``position`` sees."""
        assert self.LAST is not None
        return self.in_c(self.LAST, position)

    def sees_key(self, query: str, key: str) -> str:
        """Return C of a kernel for TEST."""
        assert self.TEST is not None
        return self.TEST.format(query=query, key=key)

    def sees_block(self, queries: tuple[str, str], keys: tuple[str, str]) -> str:
        """Return C of a kernel for CERTAIN, of the first and the last query and key."""
        assert self.CERTAIN is not None
        ends = {"first_query": queries[0], "last_query": queries[1]}
        return self.CERTAIN.format(first_key=keys[0], last_key=keys[1], **ends)

    def bounds(self, position: Any, key_rows: int) -> tuple[Any, Any]:
        """Return the first key that a position sees and one past the last, within the keys.

        Whole numbers or arrays; where no key is seen, the second is at most the first.
        """
        first = 0 * position if self.FIRST is None else self.first(position)
        end = 0 * position + key_rows if self.LAST is None else self.last(position) + 1
        return first, end

    def seen(self, row: int, query_rows: int, key_rows: int) -> range:
        """Return the keys that a row sees."""
        first, end = self.bounds(row + key_rows - query_rows, key_rows)
        return range(max(first, 0), min(end, key_rows))


def kernel_name(name: str) -> str:
    """Return the name of a mask's number in a kernel: kWindowLeft for window_left."""
    return "k" + "".join(word[:1].upper() + word[1:] for word in name.split("_"))
