"""Rings: slots of shared memory that one role fills and others read, each declared once.

A declaration gives the region, the rows of the barrier table and, where a config key says how many
slots there are, what to suggest when they do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.model import Barrier
from fa4gen.designs.common.shared_memory import SWIZZLE_ALIGNMENT, slots_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.common.attention_config import AttentionKeys
    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.model import ArriveHow, Ctas, SharedRegion

TILE_SLOTS = 2
"""Tiles on their way from the loader to the other roles."""
TILE_ALIGNMENT = 16


@dataclass(frozen=True, kw_only=True)
class End:
    """The barriers at one end of a ring: see ``Barrier`` for the fields."""

    arrivals: int = 1
    how: ArriveHow = "thread"
    arrived_by: str
    waited_by: str
    meaning: str
    bytes: int = 0
    """Bytes that TMA adds to each phase."""
    cta: Ctas = "own"
    parts: int = 1
    """Barriers of a slot."""
    name: str = ""
    """The name of the row, where it is not the ring's with ``_full`` or ``_empty``."""


def loaded(
    arrived_by: str,
    waited_by: str,
    meaning: str,
    size: int,
    *,
    arrivals: int = 1,
    cta: Ctas = "own",
    parts: int = 1,
) -> End:
    """Return the end that TMA fills with ``size`` bytes; ``arrived_by``: the thread, then these."""
    return End(
        arrivals=arrivals,
        how="tma_bytes",
        arrived_by=arrived_by,
        waited_by=waited_by,
        meaning=meaning,
        bytes=size,
        cta=cta,
        parts=parts,
    )


def freed(
    arrivals: int,
    arrived_by: str,
    meaning: str,
    *,
    how: ArriveHow = "thread",
    cta: Ctas = "own",
    parts: int = 1,
) -> End:
    """Return the end that the loader waits for before it fills a slot again."""
    return End(
        arrivals=arrivals,
        how=how,
        arrived_by=arrived_by,
        waited_by="the loader",
        meaning=meaning,
        cta=cta,
        parts=parts,
    )


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Slots with a barrier that says when each is full, and one that says when it is empty."""

    name: str
    slots: int
    slot_bytes: int = 0
    holds: str = ""
    """The content of a slot, with its shape."""
    alignment: int = SWIZZLE_ALIGNMENT
    key: str = ""
    """The config key with the number of slots."""
    full: End
    empty: End

    @property
    def region(self) -> SharedRegion:
        """The region of its slots, not yet placed."""
        return slots_of(
            self.name, self.slots, self.slot_bytes, self.holds, alignment=self.alignment
        )

    @property
    def rows(self) -> tuple[Barrier, Barrier]:
        """Full and empty, not yet placed; a slot is empty at first."""
        return self._row(self.full, "full", 0), self._row(self.empty, "empty", 1)

    def _row(self, end: End, word: str, first_wait: Literal[0, 1]) -> Barrier:
        return Barrier(
            end.name or f"{self.name}_{word}",
            self.slots * end.parts,
            end.arrivals,
            end.how,
            end.arrived_by,
            end.waited_by,
            end.meaning,
            first_wait_parity=first_wait,
            transaction_bytes=end.bytes,
            cta=end.cta,
        )

    def fewer(self, config: KernelConfig) -> list[dict[str, object]]:
        """Return changes of ``config``, where it says how many slots there are, to fewer."""
        if getattr(config, self.key) == "auto":
            return []
        return [{self.key: slots} for slots in range(self.slots - 1, 0, -1)]


def rows_of(rings: Iterable[Ring]) -> tuple[Barrier, ...]:
    """Return full and empty of each of ``rings`` in turn."""
    return tuple(row for ring in rings for row in ring.rows)


def given_tile_bytes(config: AttentionKeys) -> int:
    """Return the bytes of a tile over blocks that a call names: twelve words, and its lengths."""
    return 64 if config.has_tile_lengths else 48


def tile_ring(
    config: AttentionKeys,
    warps: int,
    *,
    shared: bool,
    readers: str,
    reader_warps: str,
    both: str,
    holds: str,
    loader: str = "the leader's loader",
) -> Ring:
    """Return the slots that tiles pass through, to ``warps`` of a CTA.

    ``shared``: in a pair with a dynamic scheduler the leader's loader, or ``loader`` in full words,
    hands out the tiles of both CTAs; ``both`` then follows ``reader_warps``. ``holds``: whom tiles
    go to, and what is known of each.
    """
    lengths = ", and where the sequence's rows and keys begin and end" * config.has_tile_lengths
    if config.lists_blocks:
        lengths = ", and where its entries in the list of blocks begin and end"
    slot_bytes = 48 if config.lists_blocks else 32 if config.has_tile_lengths else 16
    if config.given_blocks is not None:
        holds = "consumers: of each warpgroup rows, head and number of blocks; batch and bits"
        slot_bytes = given_tile_bytes(config)
    return Ring(
        name="tile",
        slots=TILE_SLOTS,
        slot_bytes=slot_bytes,
        holds=f"Tiles on their way from the loader to the {holds}{lengths}",
        alignment=TILE_ALIGNMENT,
        full=End(
            arrived_by=loader if shared else "the loader",
            waited_by=f"{readers}, the peer's loader" if shared else readers,
            meaning="the next tile is in its slot",
            cta="pair" if shared else "own",
        ),
        empty=End(
            arrivals=2 * warps + 1 if shared else warps,
            arrived_by=f"{reader_warps} {both}, and the peer's loader" if shared else reader_warps,
            waited_by="the leader's loader" if shared else "the loader",
            meaning="the tile has been read",
            cta="leader" if shared else "own",
        ),
    )
