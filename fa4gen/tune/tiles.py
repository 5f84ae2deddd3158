"""What tuning tries of each kernel design; the registry's row of a design names its object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from fa4gen.designs import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.designs.shared.plans import Plan

Changes = dict[str, Any]
"""Keys of a config with the values that a variant gives them."""
NARROWEST, WIDEST = 64, 256
SHARED_BY_FOUR = 32
"""Columns of which each of four CTAs loads whole groups of 8."""
FEW_ROWS = (16, 32, 64)
"""BM with ``swap_operands``."""
EVICTING: Final[Changes] = {"evict_first": "both", "num_epi_stages": 2}
"""Measured with tiles of 40 shapes: up to 17 % faster where few row tiles read the weights."""


class Tiles(Protocol):
    """The tiles of a design. The plan may refuse some of what is yielded."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """Yield tiles to try for ``config``, alone: all that hangs on them is left to the plan."""

    def refinements(self, plan: Any) -> Iterator[Changes]:
        """Yield what the model does not weigh, to be measured with the tiles that it likes most."""


class OneTile:
    """A design with one tile, and nothing to measure beside it."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """See Tiles: none."""
        del config
        yield from ()

    def refinements(self, plan: Any) -> Iterator[Changes]:
        """See Tiles: none."""
        del plan
        yield from ()


class HopperAttentionOrders(OneTile):
    """One tile, and two orders of tiles."""

    def refinements(self, plan: AttentionPlan) -> Iterator[Changes]:
        """See Tiles: the other order."""
        yield {"scheduler": "dynamic" if plan.scheduler == "static" else "static"}


class HopperAttentionTiles(HopperAttentionOrders):
    """Attention of Hopper up to depth 256."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """See Tiles."""
        del config
        for rows in (64, 128, 192):
            for keys in range(48, 193, 16):
                for cta_group in (1, 2):
                    yield {"BM": rows, "BN": keys, "cta_group": cta_group}


class HopperGemmTiles:
    """Matrix products of Hopper."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """See Tiles.

        Where rows begin inside a sector of L2, reading less of it is all: larger tiles of pairs,
        whose slots of the output become a stage of the ring, and four CTAs that share.
        """
        panel = 16 if config.get("b_major", "k") == "k" else 64
        for rows in (64, 128, 192, 256):
            for columns in range(NARROWEST, WIDEST + 1, panel):
                tile: Changes = {"BM": rows, "BN": columns}
                yield {**tile, "cta_group": 1}
                yield {**tile, **EVICTING}
                if rows > 64:
                    yield {**tile, "cta_group": 2}
                    yield {**tile, "cta_group": 2, "num_epi_stages": 1}
                if rows <= 128 and columns % SHARED_BY_FOUR == 0:
                    evicting = EVICTING if rows == 64 else {"num_epi_stages": 2}
                    yield {**tile, "cta_group": 4, **evicting}
        for rows in FEW_ROWS:
            for columns in (64, 128, 192):
                for parts in (1, 2):
                    yield {"swap_operands": True, "BM": rows, "BN": columns, "split_k": parts}

    def refinements(self, plan: Any) -> Iterator[Changes]:
        """See Tiles: who leaves L2 first, and stages of A and B for slots of the output."""
        del plan
        yield {"evict_first": "both"}
        for slots in (2, 1):
            yield {"num_epi_stages": slots}


class BlackwellGemmTiles(OneTile):
    """Matrix products of Blackwell."""

    def variants(self, config: Mapping[str, Any]) -> Iterator[Changes]:
        """See Tiles."""
        del config
        for rows in (64, 128):
            for columns in (64, 128, 192, 256):
                for cta_group in (1, 2):
                    yield {"BM": rows, "BN": columns, "cta_group": cta_group}


def tiles_of(plan: Plan) -> Tiles:
    """Return what there is to try of a plan's design."""
    tiles: Tiles = registry.design_of(plan).tiles.load()
    return tiles


ONE_TILE = OneTile()
HOPPER_ATTENTION_ORDERS = HopperAttentionOrders()
HOPPER_ATTENTION = HopperAttentionTiles()
HOPPER_GEMM = HopperGemmTiles()
BLACKWELL_GEMM = BlackwellGemmTiles()
