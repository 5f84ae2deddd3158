"""The plan of an attention kernel on Hopper, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.designs.attention_sm90.memory import HopperMemory
from fa4gen.designs.common.attention_parameters import attention_parameters, out_map, out_pointer
from fa4gen.designs.common.roles import WARPGROUP_ROWS, consumer_roles
from fa4gen.designs.common.tensor_maps import KEYS_FIRST_DIMS, operand_maps, tensor_map
from fa4gen.designs.common.unreachable import Unreachable
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import (
        NamedBarriers,
        Parameter,
        Role,
        TensorMapPlan,
    )
    from fa4gen.designs.common.score_distance import DistanceText
    from fa4gen.designs.common.tensor_maps import Tensor


@dataclass(frozen=True, kw_only=True)
class HopperAttentionPlan(HopperMemory):
    """Attention forward by wgmma, accumulators in registers (sm_90a)."""

    RECORDED = (
        *HopperMemory.RECORDED, "num_consumer_warpgroups", "overlap", "num_pv_chunks_in_flight",
        "ping_pong", "overlap_epilogue", "promote_every", "producer_registers",
        "consumer_registers",
    )  # fmt: skip

    @property
    @override
    def named_barriers(self) -> NamedBarriers:
        # A constant has an id for each warpgroup, but the last one.
        has = {
            "turn_barrier": self.ping_pong,
            "epilogue_barrier": self.epilogue == "tma_store",
            "far_barrier": self.skips_far_blocks,
        }
        names = [name for name, is_there in has.items() if is_there]
        return tuple((name, 1 + i * self.num_consumer_warpgroups) for i, name in enumerate(names))

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        rows = WARPGROUP_ROWS
        consumers = consumer_roles(
            self.registers,
            self.num_consumer_warpgroups,
            lambda i: f"Q.K, softmax, P.V and output of rows {rows * i} to {rows * i + rows - 1}",
        )
        return (self._producer_role, *consumers)

    @property
    def _producer_role(self) -> Role:
        """The producer warpgroup: the loader, and the warps that transpose values."""
        if not self.transposes_values:
            return self.loader_role
        work = f"{self.loader_role.work}; the other warps transpose values"
        return replace(self.loader_role, work=work)

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # Q: 64 rows; K and V: a block, of which each CTA of a pair brings half of the rows, a
        # panel at a time; O if stored by TMA.
        rows = self.key_source.box_rows(self.BN // self.cta_group)
        boxes: dict[Tensor, tuple[int, int]] = {
            "query": (WARPGROUP_ROWS, self.num_panels),
            "key": (rows, 1 if self.is_pair else self.num_panels),
            "value": (rows, 1 if self.is_pair else self.num_value_panels),
        }
        if self.epilogue == "tma_store":
            boxes["out"] = (WARPGROUP_ROWS, self.num_value_panels)
        if self.has_lines_of_keys:
            del boxes["value"]
        maps = operand_maps(
            boxes,
            self.panel_columns,
            self.element_bytes,
            self.clipped_tensors,
            tile_heads=self.tile_heads,
        )
        if not self.has_lines_of_keys:
            return maps
        box = (self.value_panel_keys, self.value_depth, 1, 1)
        return (*maps, tensor_map("value", KEYS_FIRST_DIMS, box, self.element_bytes))

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        staged = self.epilogue == "tma_store"
        return attention_parameters(
            self,
            out_map("output") if staged else out_pointer(f"output, {self.out_dtype}"),
            has_strides=not staged,
            has_short_tiles=True,
        )

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        output = "output from registers" if self.epilogue == "direct" else "output by TMA store"
        scales = "; keys and values with a scale for each page and key head"
        lines = [
            self.types_line + scales * self.has_page_scales,
            f"tiles of {self.BM} query rows x {self.BN} keys, "
            f"{counted(self.num_consumer_warpgroups, 'consumer warpgroup')}, {self.stages}",
            f"{self.scheduler} scheduler, {output}",
            *self.feature_lines,
        ]
        if self.tile_heads > 1:
            lines.append(f"the rows of {self.tile_heads} query heads of a key head share a tile")
        if self.is_pair:
            lines.append("a pair of CTAs shares keys and values by multicast")
        return tuple(lines)

    @property
    @override
    def unreachable(self) -> tuple[Unreachable, ...]:
        return (*self._blocks_in_part, *self._tiles_unseen_after_others)

    @property
    def _tiles_unseen_after_others(self) -> tuple[Unreachable, ...]:
        sees_all = (
            not self.mask.has_left_end and not self.mask.has_right_end and not self.lists_blocks
        )
        if not self.mixed_tile_heights or self.has_tile_lengths or not sees_all:
            return ()
        reason = (
            "all tiles have the same number of keys: where it is 0, the first call of next_tile "
            "takes all of them"
        )
        call = f"if (!next_tile(tile, own)) {'{' if self.overlap_epilogue else 'break;'}"
        within = (("Consumer::run", call),)
        return (
            Unreachable("Consumer::next_tile", "if (!active) continue;", reason, within=within),
        )

    @property
    def _blocks_in_part(self) -> tuple[Unreachable, ...]:
        if not self.lists_blocks or not self.mask.is_by_blocks(self.BM, self.BN):
            return ()
        reason = (
            "the mask shows whole blocks of keys to whole tiles: a tile's warpgroups see the same "
            "blocks, and mask only the one that the keys end in, which is their first"
        )
        branches = (
            ("Consumer::compute_tile", "next.needs_mask("),
            ("seen_keys", "__any_sync(0xffffffffu, tested)"),
            ("Consumer::next_tile", "block > own.end"),
            ("Consumer::skip_blocks_before", "block > loaded.begin"),
        )
        return tuple(Unreachable(function, text, reason) for function, text in branches)

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Columns of the sums of each kind of wgmma: scores and output."""
        return tuple(dict.fromkeys((self.BN, self.value_depth)))

    @property
    def distance_text(self) -> DistanceText | None:
        """C++ of a score function in blocks whose keys are all before a row's query; else None.

        With a threshold of 0 maxima are exact, and rows cannot share them.
        """
        ends_at_query = self.mask.ENDS_AT_QUERY and not self.mask.tests_keys
        if not self.score.IS_EXPRESSION or not ends_at_query or not self.votes_on_rescaling:
            return None
        if self.element_bytes == 1:  # what a column adds has no range to spare
            return None
        from fa4gen.designs.common.score_terms import distance_text_of  # of few kernels
        from fa4gen.scores.expression import ExpressionScore

        assert isinstance(self.score, ExpressionScore)
        return distance_text_of(self.score)

    @property
    def compares_own_maxima(self) -> bool:
        """Whether each thread compares its own maxima before those of rows are formed.

        With 8 bits 0 to 8 % faster on an H200. It needs a threshold: without, all blocks rescale.
        It compares scores as integers, right for maxima that are not negative: most are where the
        logarithms of values' scales have joined them.
        """
        return self.element_bytes == 1 and self.votes_on_rescaling and not self.has_page_scales

    @property
    def skips_far_blocks(self) -> bool:
        """Whether blocks are left out in which nothing is left of all probabilities.

        With both ends of a window, in pairs, with narrow panels, and with more columns of keys than
        of values, that spilled.
        """
        roomy = self.cta_group == 1 and self.panel_columns == 64 and self.depth == self.value_depth
        return roomy and not self.mask.has_left_end and self.distance_text is not None

    @property
    @override
    def _computed(self) -> tuple[str, ...]:
        lines, apart = super()._computed, self.distance_text
        if apart is None:
            return lines
        return (
            *lines,
            f"where rows see all keys of a block, by column: scores[i] = {apart.of_score}, of the "
            f"distance to the last column, and for a row {apart.of_row}, of the distance from it",
        )

    @property
    def hands_out_early(self) -> bool:
        """Whether the loader hands out the next tile before the last values of a tile, not after.

        In a warp for pages no register is left for it. In dense causal batches of depth 192 with
        blocks of 112 keys it took 1.5 % longer on an H200 from 8192 rows on.
        """
        shares_counter = self.cta_group == 2 and self.scheduler == "dynamic"
        loses = self.longest_first and not self.is_ragged and (self.depth, self.BN) == (192, 112)
        return not (self.is_paged or shares_counter or loses)

    @property
    def ties_rows(self) -> bool:
        """Whether both rows of a thread share the exponents that such a score function adds.

        Probabilities are small then, and one row's still smaller: fp16 does not hold them. Largest
        logits need maxima of every row.
        """
        overlaps = self.overlap and self.num_pv_chunks_in_flight > 0 and not self.max_logits
        return self.dtype == "bf16" and overlaps and self.distance_text is not None
