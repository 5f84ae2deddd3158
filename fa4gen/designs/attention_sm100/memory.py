"""The memory of attention on Blackwell: sizes, barriers, shared and tensor memory.

A row with a slot for each query tile holds tile 0's first; with parts, those of tile 0 go before
those of tile 1. In a pair, rows that the leader's MMA warp waits for count the arrivals of both
CTAs, and its commits arrive on the rows of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.blackwell_model import BlackwellAttentionPlan
from fa4gen.designs.common.model import Barrier, TensorMemoryRegion
from fa4gen.designs.common.rings import Ring, freed, loaded, rows_of
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.common.model import ArriveHow, Ctas, SharedRegion

TILE_ROWS = 128
"""Query rows of a query tile: lanes of tensor memory."""
SCORE_BUFFERS = 2
"""One for each of two query tiles; for one query tile, blocks take turns."""
KEY_STEP = 32
"""Keys come in multiples of this many: what one tcgen05.st of probabilities packs."""
KvRing = Literal["separate", "fused"]
OutputStaging = Literal["query", "own"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class FA4Memory(BlackwellAttentionPlan):
    """Sizes, barriers and regions."""

    config: BlackwellAttentionConfig
    part_rows: int = TILE_ROWS
    num_qo: int = 2
    """Query tiles of 128 rows that a CTA works on at once: 2, or 1 with two score buffers."""
    kv_ring: KvRing
    output_staging: OutputStaging

    @property
    @override
    def BM(self) -> int:  # noqa: N802
        return self.num_qo * TILE_ROWS

    @property
    @override
    def BK1(self) -> int:  # noqa: N802
        return self.BN

    @property
    def padded_depth(self) -> int:
        """Depth of a query and key slot: whole swizzled panels."""
        return self.depth

    @property
    def pv_parts(self) -> tuple[int, ...]:
        """Keys of each part of P, in order; of two, the first has some three quarters."""
        if self.num_pv_stages == 2:
            first = max(KEY_STEP, self.BN * 3 // 4 // KEY_STEP * KEY_STEP)
            return first, self.BN - first
        return (self.BN // self.num_pv_stages,) * self.num_pv_stages

    @property
    @override
    def panel_columns(self) -> int:
        return panel_columns(self.depth, self.element_bytes)

    @property
    def value_panel_columns(self) -> int:
        """Columns of a swizzled panel of values; in a pair each CTA has whole panels."""
        return panel_columns(self.value_depth // self.cta_group, self.element_bytes)

    @property
    @override
    def out_panel_columns(self) -> int:
        return panel_columns(self.value_depth, self.out_element_bytes)

    @property
    def query_bytes(self) -> int:
        """Bytes of a query tile."""
        return TILE_ROWS * self.depth * self.element_bytes

    @property
    def out_bytes(self) -> int:
        """Bytes of the output of a query tile."""
        return TILE_ROWS * self.value_depth * self.out_element_bytes

    @property
    def key_bytes(self) -> int:
        """Bytes of a block of keys in one CTA."""
        return self.BN * self.depth * self.element_bytes // self.cta_group

    @property
    def value_bytes(self) -> int:
        """Bytes of a block of values in one CTA."""
        return self.BN * self.value_depth * self.element_bytes // self.cta_group

    @property
    def slot_bytes(self) -> tuple[int, ...]:
        """Bytes of the slots that one stage takes: a K slot and a V slot, or a slot for either."""
        if self.kv_ring == "fused":
            return (max(self.key_bytes, self.value_bytes),)
        return self.key_bytes, self.value_bytes

    @property
    def probability_columns(self) -> int:
        """Columns of tensor memory that hold the probabilities of a block."""
        return self.BN * self.element_bytes // 4

    @property
    def has_wide_queries(self) -> bool:
        """Two query tiles of depth 256: values and output are narrower."""
        return self.num_qo == 2 and self.depth == 256

    @property
    @override
    def threads(self) -> int:
        # Softmax warpgroups, one for corrections, one for the other roles.
        return 128 * (self.num_qo + 2)

    @property
    def columns_needed(self) -> int:
        """Columns of the smallest map of tensor memory: probabilities over their scores."""
        return SCORE_BUFFERS * self.BN + self.num_qo * self.value_depth

    @property
    def has_columns_for_probabilities(self) -> bool:
        """Whether P has columns of its own: its MMA then may run on under the next Q.K."""
        apart = self.columns_needed + SCORE_BUFFERS * self.probability_columns
        return apart <= self.hardware.tensor_memory_columns

    @property
    def _commit(self) -> ArriveHow:
        return "multicast_commit" if self.is_pair else "mma_commit"

    @property
    def _waited(self) -> Ctas:
        """The CTA with the barrier that the MMA warp waits for."""
        return "leader" if self.is_pair else "own"

    @property
    def _both(self) -> str:
        return " in both CTAs" if self.is_pair else ""

    @cached_property
    def query_ring(self) -> Ring:
        """The query tiles, and what stages their outputs."""
        parts, staged = self.num_qk_stages, self.output_staging == "query"
        holds = f"Query tiles: {TILE_ROWS} x {self.depth} {self.dtype}, {self.swizzle}"
        return Ring(
            name="query",
            slots=self.num_qo,
            slot_bytes=self.query_bytes,
            holds=holds + "; then its output" * staged,
            full=loaded(
                "the loader, then the bytes of a part of Q" + self._both,
                "the MMA warp",
                "a part of a query tile has landed",
                self.query_bytes // parts * self.cta_group,
                cta=self._waited,
                parts=parts,
            ),
            empty=freed(
                1,
                "the thread whose TMA store has read the slot"
                if staged
                else "commit of the tile's last Q.K",
                "a query slot may be overwritten",
                how="thread" if staged else self._commit,
            ),
        )

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """The blocks of keys and of values: two rings, or one."""
        share = " (this CTA's half)" if self.is_pair else ""
        key = f"{self.BN} x {self.depth} {self.dtype}{share}, K-major"
        value = f"{self.BN} x {self.value_depth} {self.dtype}{share}, MN-major"
        if self.kv_ring == "fused":
            holds = f"Ring of blocks, keys and values in turn: {key}; {value}"
            copied = self.key_bytes if self.key_bytes == self.value_bytes else 0
            return (self._ring("kv", "block", 1, self.slot_bytes[0], copied, holds),)
        parts, sizes = self.num_qk_stages, self.slot_bytes
        keys, values = f"Ring of key blocks: {key}", f"Ring of value blocks: {value}"
        return (
            self._ring("key", "part of a key block", parts, sizes[0], sizes[0], keys),
            self._ring("value", "block of values", 1, sizes[1], sizes[1], values),
        )

    def _ring(
        self, name: str, what: str, parts: int, slot_bytes: int, copied: int, holds: str
    ) -> Ring:
        """Return a ring; ``copied``: bytes of each phase of a slot, 0 where they differ."""
        half = ", half of them the peer's" if self.is_pair else ""
        return self.block_ring(
            name,
            slot_bytes,
            holds,
            loaded(
                f"the loader, then the bytes of the {what}{half}",
                "the MMA warp",
                f"a {what} has landed",
                copied // parts * self.cta_group,
                cta=self._waited,
                parts=parts,
            ),
            freed(
                1,
                f"commit of the last product that reads the {what}",
                f"the slot of a {what} may be overwritten",
                how=self._commit,
                parts=parts,
            ),
        )

    @cached_property
    def scale_ring(self) -> Ring:
        """C_prod and C_cons of the published kernels."""
        return self.scales("every softmax thread of the tile", self.num_qo)

    @cached_property
    def tile_ring(self) -> Ring:
        """The slots that tiles pass through; every warp but the loader's reads."""
        shared = self.is_pair and self.scheduler == "dynamic"
        return self.tiles_to(4 * self.num_qo + 4 + 1, shared=shared)

    @property
    def _score_rows(self) -> tuple[Barrier, Barrier]:
        """S_prod and S_cons of the published kernels; a slot for each buffer of scores."""
        full = Barrier(
            "scores_full",
            SCORE_BUFFERS,
            1,
            self._commit,
            "commit of Q.K",
            "the softmax",
            "a block's scores are in tensor memory",
        )
        probabilities = Barrier(
            "probabilities_full",
            SCORE_BUFFERS * self.num_pv_stages,
            TILE_ROWS * self.cta_group,
            "thread",
            f"every softmax thread of the tile{self._both}",
            "the MMA warp",
            "a part of P is in tensor memory, and the scores have been read",
            cta=self._waited,
        )
        return full, probabilities

    @property
    def _output_rows(self) -> tuple[Barrier, Barrier]:
        """O_prod and O_cons of the published kernels."""
        waits = "; the MMA warp, before scores go where P was read"
        full = Barrier(
            "output_full",
            self.num_qo,
            1,
            self._commit,
            "commit of P.V",
            "the correction" + waits * (not self.has_columns_for_probabilities),
            "a block's P.V has been added to the output",
        )
        ready = Barrier(
            "output_ready",
            self.num_qo,
            TILE_ROWS * self.cta_group,
            "thread",
            f"every thread of the correction{self._both}",
            "the MMA warp",
            "the output has been rescaled, or read at the end of a tile",
            first_wait_parity=1,
            cta=self._waited,
        )
        return full, ready

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        return (
            *rows_of((self.query_ring, *self.rings)),
            *self._score_rows,
            *self.scale_ring.rows,
            *self._output_rows,
            *self.tile_ring.rows,
        )

    @property
    @override
    def regions(self) -> list[SharedRegion]:
        regions = [self.query_ring.region]
        if self.output_staging == "own":
            holds = f"Outputs on their way out: {TILE_ROWS} x {self.value_depth} {self.out_dtype}"
            holds += f", {self.out_panel_columns * self.out_element_bytes}-byte swizzle"
            regions.append(slots_of("output", self.num_qo, self.out_bytes, holds))
        return [
            *regions,
            *(ring.region for ring in self.rings),
            barrier_region(self.barrier_rows),
            self.scale_ring.region,
            self.tile_ring.region,
            self.address_region,
        ]

    @cached_property
    @override
    def tensor_memory(self) -> tuple[TensorMemoryRegion, ...]:
        # Scores, outputs and probabilities, each with its first column.
        rows, dtype = TILE_ROWS, self.dtype
        whose = "query tile" if self.num_qo == 2 else "every other block, from"
        scores = [
            TensorMemoryRegion(
                f"scores_{i}", i * self.BN, self.BN,
                f"scores of {whose} {i}: {rows} x {self.BN} float32",
            )
            for i in range(SCORE_BUFFERS)
        ]  # fmt: skip
        column = SCORE_BUFFERS * self.BN
        outputs = [
            TensorMemoryRegion(
                f"output_{i}", column + i * self.value_depth, self.value_depth,
                f"output of query tile {i}: {rows} x {self.value_depth} float32",
            )
            for i in range(self.num_qo)
        ]  # fmt: skip
        apart = self.has_columns_for_probabilities
        after = outputs[-1].end
        probabilities = [
            TensorMemoryRegion(
                f"probabilities_{i}",
                after + i * self.probability_columns if apart else scores[i].column,
                self.probability_columns,
                f"probabilities of {whose} {i}: {rows} x {self.BN} {dtype}"
                + ("" if apart else ", over the scores they came from"),
            )
            for i in range(SCORE_BUFFERS)
        ]
        return (*scores, *outputs, *probabilities)


def panel_columns(depth: int, element_bytes: int) -> int:
    """Return the most columns, in a row of 128, 64 or 32 bytes, that tile ``depth``; 0 if none."""
    fitting = (row for row in (128, 64, 32) if depth * element_bytes % row == 0)
    return next(fitting, 0) // element_bytes


def are_parts_of(block: int, parts: int) -> bool:
    """Whether ``block`` keys can be divided into ``parts`` parts; two may differ in size."""
    steps = block // KEY_STEP
    return steps >= 2 if parts == 2 else steps % parts == 0
