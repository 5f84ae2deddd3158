"""The tiles that tuning tries for each kernel design; the registry's row of a design names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from fa4gen.designs import registry
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.tune.model.gemm import FEW_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.plans import Plan

Changes = dict[str, Any]
"""Keys of a config with their values in a variant."""
NARROWEST, WIDEST = 64, 256
SHARED_BY_FOUR = 32
"""Columns of which each of four CTAs loads whole groups of 8."""
DIVIDED = 128
"""Rows up to which tiles with operands exchanged are worth a try with k divided."""
HIGH = 96
"""Rows from which tiles of 192 and 256 columns with operands exchanged are worth a try."""
SHORT_ENDS: Final[Changes] = {"short_ends": True}
"""Measured: 0.4 to 1.6 us less, of 22 to 60, where a CTA has one tile."""
ACROSS: Final[Changes] = {"share": "a", **SHORT_ENDS}
IN_RING: Final[Changes] = {"output_in_ring": True, **SHORT_ENDS}
"""The output in the ring: 0.5 to 9 % faster than one slot of the output next to it, where that
gives a fourth or fifth stage and a CTA has one tile; a seventh stage was up to 5 % slower."""
LARGE = 300
"""Rows and columns of a tile from which a ring has five stages at most."""
PACKED_BLOCKS = (64, 80, 96, 112, 128)
"""Keys of blocks that are tried with tiles of several heads."""
WIDEST_BLOCKS: Mapping[int, Mapping[int, int]] = {
    64: {192: 144},
    96: {192: 128},
    128: {192: 96},
    192: {192: 0, 128: 160, 64: 176},
    256: {192: 0, 128: 96, 64: 96},
}
"""The widest blocks of keys by columns of the output and rows of a tile: wider blocks of plain
attention spill (NVRTC 13, November 2026), and are not tried. The further registers of masks and
scores show when compiling."""
MOST_SUMS = 192
"""The most sums of a thread of a product: tiles with more spill (NVRTC 13, November 2026), and are
not tried."""
EVICTING: Final[Changes] = {"evict_first": "both", "num_epi_stages": 2}
"""Measured with tiles of 40 shapes: up to 17 % faster where few row tiles read the weights."""


class Tiles(Protocol):
    """The tiles of a design. The plan may refuse some of them."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """Yield tiles to try for ``config``, alone: all that hangs on them is left to the plan."""

    def is_worth_it(self, plan: Any) -> bool:
        """Return whether a variant's plan is worth its costs: else it is left out."""

    def refinements(self, plan: Any) -> Iterator[Changes]:
        """Yield changes that the model does not weigh, to be timed with its preferred tiles."""


class OneTile:
    """A design with one tile, and nothing to time against it."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """Yield nothing: there is one tile."""
        del config
        yield from ()

    def is_worth_it(self, plan: Any) -> bool:
        """Return True: nothing is given up."""
        del plan
        return True

    def refinements(self, plan: Any) -> Iterator[Changes]:
        """Yield nothing."""
        del plan
        yield from ()


class HopperAttentionOrders(OneTile):
    """One tile, and two orders of tiles."""

    def refinements(self, plan: AttentionPlan) -> Iterator[Changes]:
        """Yield the other order of tiles."""
        yield {"scheduler": "dynamic" if plan.scheduler == "static" else "static"}


class HopperAttentionTiles(HopperAttentionOrders):
    """Attention of Hopper up to depth 256."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """Yield tiles to try for ``config``."""
        depth = config["depth"] if config["value_depth"] == "auto" else config["value_depth"]
        widest = {64: 192, 128: 192, 192: 192} | dict(WIDEST_BLOCKS[depth])
        for rows, most in widest.items():
            for keys in range(48, most + 1, 16):
                for cta_group in (1, 2):
                    yield {"BM": rows, "BN": keys, "cta_group": cta_group}
        for heads in (2, 4, 8):
            for rows, most in widest.items():
                for keys in PACKED_BLOCKS:
                    if keys <= most:
                        yield {"BM": rows, "BN": keys, "tile_heads": heads}


class HopperGemmTiles:
    """Matrix products of Hopper."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """Yield tiles to try for ``config``.

        Where rows begin inside a sector of L2, reading fewer bytes from it decides: larger tiles of
        pairs, whose slots of the output become a stage of the ring, and four CTAs that share.
        """
        if config.get("scales"):
            yield from _scaled()
            return
        panel = 16 if config.get("b_major", "k") == "k" else 64
        for rows in (64, 128, 192, 256):
            for columns in range(NARROWEST, WIDEST + 1, panel):
                tile: Changes = {"BM": rows, "BN": columns}
                yield {**tile, "cta_group": 1}
                yield {**tile, **EVICTING}
                if rows > 64:
                    yield {**tile, "cta_group": 2}
                    yield {**tile, "cta_group": 2, "num_epi_stages": 1}
                    yield {**tile, "cta_group": 2, "num_epi_stages": 1, **ACROSS}
                if rows <= 128 and columns % SHARED_BY_FOUR == 0:
                    evicting = EVICTING if rows == 64 else {"num_epi_stages": 2}
                    yield {**tile, "cta_group": 4, **evicting}
        for rows in FEW_ROWS:
            for columns in (64, 128, 192):
                for parts in (1, 2):
                    yield {"swap_operands": True, "BM": rows, "BN": columns, "split_k": parts}
        block = 128 if config["dtype"] == "fp8_e4m3" else 64
        yield from _side_by_side(block)
        yield from _through_the_ring(panel, block)
        yield from _grids(panel, block)
        for columns in range(112, 193, 16):
            tile = {"ping_pong": True, "BM": 128, "BN": columns}
            for cta_group in (1, 2):
                yield {**tile, "cta_group": cta_group}
                yield {**tile, "cta_group": cta_group, "num_epi_stages": 2}

    def is_worth_it(self, plan: Any) -> bool:
        """Whether a thread's sums fit, and an output in the ring, if so planned, saves a stage."""
        rows = plan.wgmma_columns[0]
        if plan.warpgroup_rows * rows > MOST_SUMS * WARPGROUP:
            return False
        if not plan.output_in_ring:
            return True
        slots = plan.num_consumer_warpgroups * plan.region("epi").slot_bytes
        room = ARCHITECTURES[plan.arch].shared_bytes
        return bool(plan.launch.dynamic_shared_bytes + slots > room)

    def refinements(self, plan: Any) -> Iterator[Changes]:
        """Yield eviction of both operands, fewer slots of the output, and short ends."""
        del plan
        yield {"evict_first": "both"}
        for slots in (2, 1):
            yield {"num_epi_stages": slots}
        yield dict(SHORT_ENDS)


def _scaled() -> Iterator[Changes]:
    """Yield tiles whose products of a block are scaled and added: they need registers for both.

    Weights leave L2 first, and k is divided, for few rows.
    """
    for rows in (64, 128, 192, 256):
        for columns in (32, 64, 96, 128, 160, 192):
            tile: Changes = {"BM": rows, "BN": columns}
            yield tile
            if rows > 64:
                yield {**tile, "cta_group": 2}
                yield {**tile, "cta_group": 2, **ACROSS}
            if rows <= 128 and columns <= 128:
                yield {**tile, **EVICTING}
                yield {**tile, **EVICTING, "split_k": 2}


def _side_by_side(block: int) -> Iterator[Changes]:
    """Yield tiles with operands exchanged for more rows than ``FEW_ROWS``: a row tile or several.

    Blocks of one panel leave room for more slots. The weights are read once if the rows are one
    tile, and leave L2 first; several CTAs then share the rows.
    """
    for rows in range(40, 257, 8):
        tile: Changes = {"swap_operands": True, "BM": rows, "BK": block}
        yield {**tile, "BN": 64, "evict_first": "none"}
        if rows <= DIVIDED:
            yield {**tile, "BN": 64, "evict_first": "none", "split_k": 2, **SHORT_ENDS}
        for columns in (64, 128):
            for cta_group in (1, 2, 4):
                yield {**tile, "BN": columns, "cta_group": cta_group}
        if rows >= HIGH:
            for cta_group in (1, 2, 4):
                narrow: Changes = {"evict_first": "none", "num_epi_stages": 1, **SHORT_ENDS}
                yield {**tile, **narrow, "BN": 128, "cta_group": cta_group}
        if rows >= HIGH and rows % 16 == 0:
            for columns in (192, 256):
                for cta_group in (1, 2):
                    tile = {**tile, "evict_first": "none", "num_epi_stages": 1}
                    yield {**tile, "BN": columns, "cta_group": cta_group}


def _grids(panel: int, block: int) -> Iterator[Changes]:
    """Yield tiles of clusters that share both operands, of four CTAs and of eight.

    A CTA requests the fewest bytes for its tile: up to 18 % faster than other tiles where rows
    begin inside a sector and a CTA has one tile. Elsewhere they are behind.
    """
    for cta_group in (4, 8):
        both: Changes = {"cta_group": cta_group, "share": "both", **SHORT_ENDS}
        for output in ({"num_epi_stages": 1}, IN_RING):
            for rows in (64, 128, 192):
                for columns in range(NARROWEST, 193, panel):
                    yield {"BM": rows, "BN": columns, **both, **output}
            for rows in range(32, 193, 16):
                tile: Changes = {"swap_operands": True, "BM": rows, "BK": block, **both}
                for columns in (64, 128) if rows % 64 else ():
                    yield {**tile, "BN": columns, "evict_first": "none", **output}


def _through_the_ring(panel: int, block: int) -> Iterator[Changes]:
    """Yield large tiles with their output in the ring: alone, and in clusters.

    Tiles with exchanged operands come first.
    """
    for columns in (128, 192, 256):
        for rows in range(max(HIGH, LARGE - columns) // 8 * 8, 257, 8):
            tile: Changes = {"swap_operands": True, "BM": rows, "BN": columns, "BK": block}
            for cta_group in (1, 2, 4) if columns == 128 else (1, 2):
                yield {**tile, "evict_first": "none", "cta_group": cta_group, **IN_RING}
    for rows in (128, 192, 256):
        for columns in range(max(NARROWEST, LARGE - rows) // panel * panel, WIDEST + 1, panel):
            tile = {"BM": rows, "BN": columns, **IN_RING}
            yield {**tile, "cta_group": 1}
            yield {**tile, "cta_group": 2}
            yield {**tile, "cta_group": 2, "share": "a"}
            if rows == 128 and columns % SHARED_BY_FOUR == 0:
                yield {**tile, "cta_group": 4}


class BlackwellGemmTiles(OneTile):
    """Matrix products of Blackwell."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """Yield tiles to try for ``config``."""
        del config
        for rows in (64, 128):
            for columns in (64, 128, 192, 256):
                for cta_group in (1, 2):
                    yield {"BM": rows, "BN": columns, "cta_group": cta_group}


def tiles_of(plan: Plan) -> Tiles:
    """Return the tiles of a plan's design."""
    tiles: Tiles = registry.design_of(plan).tiles.load()
    return tiles


ONE_TILE = OneTile()
HOPPER_ATTENTION_ORDERS = HopperAttentionOrders()
HOPPER_ATTENTION = HopperAttentionTiles()
HOPPER_GEMM = HopperGemmTiles()
BLACKWELL_GEMM = BlackwellGemmTiles()
