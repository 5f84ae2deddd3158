"""The plan of a latent kernel on Blackwell, in addition to that of any decode kernel."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.designs.attention_latent_sm100.memory import LatentPairMemory
from fa4gen.designs.common.model import NamedBarriers, Role
from fa4gen.overriding import override


@dataclass(frozen=True, kw_only=True)
class LatentPairPlan(LatentPairMemory):
    """Attention forward of packed heads over a pair, with the values in the keys."""

    RECORDED = (
        *LatentPairMemory.RECORDED, "tile_rows", "num_qk_stages", "line_bytes", "line_sums_bytes",
        "tensor_memory", "tensor_memory_columns",
    )  # fmt: skip

    quads_at_once: int = 8
    """The most that loads on their way have registers for: the output has none."""
    partials_at_once: int = 2
    """A tile rarely has more pieces, where sequences are many."""
    fma_keys: int = 0
    """No exponentials on the FMA pipe: memory is the limit."""

    @property
    @override
    def named_barriers(self) -> NamedBarriers:
        ids = (("consumer_barrier", 1), ("exchange_barrier", 2), ("line_barrier", 3))
        return ids if self.has_tile_lengths else ids[:2]

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        registers = self.hardware.max_registers_per_thread
        consumers = self.num_consumer_warps
        return (
            Role(
                "consume", 0, consumers, registers,
                "query; scores to probabilities, two threads a row; the output and its combining",
            ),
            Role(
                "mma", consumers, 1, registers,
                "in the leader issues Q.K and P.V; has the tensor memory",
            ),
            Role(
                "load", consumers + 1, 2, registers,
                "one thread of each issues this CTA's TMA loads, of keys and of value columns",
            ),
        )  # fmt: skip

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        return (
            self.types_line,
            f"packed heads: a pair of CTAs takes tiles of {self.packed_rows} rows of a key head x "
            f"{self.BN} keys, {self.stages}",
            self.split_line,
            *self.feature_lines,
        )

    @property
    def out_panel_columns(self) -> int:
        """The columns of a panel of the output, which goes straight to memory without one."""
        return self.panel_columns
