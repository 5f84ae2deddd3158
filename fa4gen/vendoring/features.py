"""What the kernels of a folder need of its C code: the templates leave out all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.config.declared import MOST_TENSORS
from fa4gen.designs.registry import ATTENTION, FAMILIES, GEMM
from fa4gen.masks import MASKS
from fa4gen.runtime.arguments import DESCALES, TABLES
from fa4gen.scores import SCORES
from fa4gen.vendoring.launcher_facts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.vendoring.kernel_facts import KernelFacts
    from fa4gen.vendoring.launcher_facts import LauncherFacts


@dataclass(frozen=True)
class Features:
    """Facts about all kernels of a folder; each is there where one kernel has it.

    With one kernel of a kind the C is about this kind alone; nothing asks for others.
    """

    families: tuple[str, ...]
    """Of kernels, in the order of the registry."""
    choice: bool
    """There are several kernels, one of which may be faster than another."""
    values: frozenset[str]
    """The parameters of kernels, and of the launches that list tiles, by name."""
    arrays: tuple[str, ...]
    """The small arrays of attention kernels, in the order of ARRAYS."""
    masks: frozenset[str]
    """With names, also beside score functions."""
    conditions: bool
    """A mask is a condition on query and key."""
    row_limits: bool
    """A mask sets a limit to the query rows of a call."""
    expressions: bool
    """A score function is an expression."""
    tensors: int
    """The most that a kernel's mask and score read."""
    scores: frozenset[str]
    block_lists: bool
    """A kernel walks lists of blocks of keys, which come with the call."""
    lists: bool
    """A launch before the kernel's own lists the tiles of a ragged batch."""
    shares: bool
    """CTAs share the keys of a tile: decode kernels."""
    tiles: bool
    """CTAs take tiles that the host has counted: neither shared ones nor listed ones."""
    by_split: bool
    """Partial results are counted by splits of a fixed number of keys."""
    values_in_keys: bool
    """Values are the first columns of the keys: latent attention."""
    other_keys: bool
    """Keys and values are of another type than the query."""
    page_scales: bool
    """Keys and values have scales for each page."""
    stepped_places: bool
    """Boxes of tensor maps that end at any row have several panels."""
    tile_heads: bool
    """Rows of several heads share a tile."""
    mixed_tile_heights: bool
    """Some of the tiles that the host counts leave the last warpgroup out."""
    grouped: bool
    """Likewise, heads are worked on in groups that fit L2."""
    workspace: bool

    @property
    def attention(self) -> bool:
        """Whether there is an attention kernel."""
        return ATTENTION.name in self.families

    @property
    def gemm(self) -> bool:
        """Whether there is a matrix product."""
        return GEMM.name in self.families

    @property
    def both(self) -> bool:
        """Whether there are both."""
        return self.attention and self.gemm

    @property
    def places(self) -> bool:
        """Whether masks or scores are functions of where a score is."""
        return self.conditions or self.expressions

    @property
    def descales(self) -> int:
        """How many kinds of factors of fp8 tensors the kernels take."""
        return sum(name in self.arrays for name in DESCALES)

    @property
    def sinks(self) -> bool:
        """Whether a kernel takes sinks."""
        return "sinks" in self.arrays

    @property
    def tables(self) -> bool:
        """Whether a kernel takes what says where sequences are."""
        return any(name in self.arrays for name in TABLES)

    @property
    def packed(self) -> bool:
        """Whether a kernel takes sequences one after the other in one tensor."""
        return "query_offsets" in self.arrays or "key_offsets" in self.arrays

    @property
    def lengths(self) -> bool:
        """Whether a kernel takes numbers of keys."""
        return "key_lengths" in self.arrays

    @property
    def paged(self) -> bool:
        """Whether keys of a kernel are in pages."""
        return "page_table" in self.arrays

    @property
    def absent_arrays(self) -> tuple[str, ...]:
        """The arrays that no kernel takes."""
        return tuple(name for name in ARRAYS if name not in self.arrays)

    def array_bits(self, kernel: LauncherFacts) -> int:
        """Return which of ``arrays`` the kernel takes, the first one as the lowest bit."""
        return sum(1 << i for i, name in enumerate(self.arrays) if kernel.takes(name))

    def takes(self, name: str) -> bool:
        """Whether a kernel has the parameter, or the array, called ``name``."""
        return name in self.values or name in self.arrays


def features_of(facts: Sequence[KernelFacts]) -> Features:
    """Return the features of a folder with the kernels of ``facts``."""
    launchers = [fact.launcher for fact in facts]
    of_attention = [fact.launcher for fact in facts if fact.family == ATTENTION.name]
    counted = [one for one in of_attention if not (one.share_limit or one.list_entry)]
    masks = [fact.selftest.mask for fact in facts]
    return Features(
        families=tuple(name for name in FAMILIES if any(fact.family == name for fact in facts)),
        choice=len(facts) > 1,
        values=frozenset(name for one in launchers for name in one.all_parameters),
        arrays=tuple(name for name in ARRAYS if any(one.takes(name) for one in launchers)),
        masks=frozenset(mask.removeprefix("MASK_").lower() for mask in masks if mask),
        conditions=any(fact.selftest.condition for fact in facts),
        row_limits=any(one.max_query_rows for one in launchers),
        expressions=any(one.score_is_expression for one in launchers),
        tensors=max((len(one.tensors) for one in launchers), default=0),
        scores=frozenset(one.score for one in of_attention),
        block_lists=any(one.lists_blocks for one in launchers),
        lists=any(one.list_entry for one in launchers),
        shares=any(one.share_limit for one in launchers),
        tiles=bool(counted),
        by_split=any(one.by_split for one in launchers),
        values_in_keys=any(one.values_in_keys for one in launchers),
        other_keys=any(one.other_keys for one in launchers),
        page_scales=any(one.page_scales for one in launchers),
        stepped_places=any(row.has_stepped_places for one in launchers for row in one.maps),
        tile_heads=any(one.tile_heads > 1 for one in launchers),
        mixed_tile_heights=any(one.mixed_tile_heights for one in counted),
        grouped=any(one.grouped for one in counted),
        workspace=any(one.workspace_bytes or one.share_limit for one in launchers),
    )


def every_feature() -> Features:
    """Return the features of a folder with kernels of every kind, by no parameter of theirs."""
    return Features(
        families=tuple(FAMILIES),
        choice=True,
        values=frozenset(),
        arrays=ARRAYS,
        masks=frozenset(mask.name for mask in MASKS),
        conditions=True,
        row_limits=True,
        expressions=True,
        tensors=MOST_TENSORS,
        scores=frozenset(score.name for score in SCORES),
        block_lists=True,
        lists=True,
        shares=True,
        tiles=True,
        by_split=True,
        values_in_keys=True,
        other_keys=True,
        page_scales=True,
        stepped_places=True,
        tile_heads=True,
        mixed_tile_heights=True,
        grouped=True,
        workspace=True,
    )
