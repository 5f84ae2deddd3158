"""The plan of a latent kernel on Blackwell, in addition to that of any decode kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.decode_model import SharedKeysPlan
from fa4gen.designs.common.kernel_model import TensorMemoryPlan
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMemoryRegion


@dataclass(frozen=True, kw_only=True)
class LatentPairPlan(TensorMemoryPlan, SharedKeysPlan):
    """Attention forward of packed heads over a pair, with the values in the keys."""

    tile_rows: int
    """Packed rows of a tile that a CTA has: half of them."""
    num_qk_stages: int
    """Parts along the depth in which keys arrive."""
    line_bytes: int
    """The bytes of the line of the sequences, in the query's place before the first one."""
    line_sums_bytes: int
    tensor_memory: tuple[TensorMemoryRegion, ...]
    tensor_memory_columns: int
    """Columns to allocate: a power of two."""

    @property
    @override
    def values_in_keys(self) -> bool:
        return True

    @property
    def ctas_per_tile(self) -> int:
        """Both CTAs of the pair, with half of the rows each."""
        return self.cta_group

    @property
    def fma_keys(self) -> int:
        """No exponentials on the FMA pipe: memory is the limit."""
        return 0

    @property
    def out_panel_columns(self) -> int:
        """The columns of a panel of the output, which goes straight to memory without one."""
        return self.panel_columns

    @property
    def quads_at_once(self) -> int:
        """The most quads that loads on their way have registers for: the output has none."""
        return 8

    @property
    def partials_at_once(self) -> int:
        """Two: a tile rarely has more pieces, where sequences are many."""
        return 2
