"""The plan of a kernel that merges partial results: see ``fa4gen.designs.common.model``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.designs.common.model import Parameter, Role
from fa4gen.designs.common.values import ELEMENT_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Barrier, SharedRegion, TensorMapPlan
    from fa4gen.designs.merge.config import MergeConfig

THREADS = 256
CHUNK_BYTES = 16
"""The widest load or store of a thread."""
CTAS_AT_ONCE = {1: {1: 5, 2: 4, 4: 2}, 2: {1: 4, 2: 3, 4: 1}}
"""CTAs that a multiprocessor has registers for, by chunks that a thread loads of a row of a part,
and by rows in flight: ptxas spills at none of them (NVRTC 13.0)."""
CTAS_AT_ONCE_ON_BLACKWELL = {**CTAS_AT_ONCE, 2: {1: 4, 2: 2, 4: 1}}
"""There ptxas spills with 3 CTAs of two rows that take two chunks each."""
PARTS_IN_FLIGHT = 2
ELEMENT_TYPES = {"bf16": "uint16", "fp16": "uint16", "fp32": "float"}


@dataclass(frozen=True, kw_only=True)
class MergePlan(KernelPlan):
    """The plan of a kernel in which each thread merges a chunk of a row."""

    RECORDED = (
        *KernelPlan.RECORDED, "depth", "lse", "rows_in_flight", "parts_in_flight", "elements",
        "chunks", "rows_at_once", "BM",
    )  # fmt: skip

    config: MergeConfig
    parts_in_flight: int = PARTS_IN_FLIGHT
    """Parts whose loads are issued before the first is used."""

    @property
    @override
    def out_dtype(self) -> str:
        return self.config.resolved_out_dtype

    @property
    def depth(self) -> int:
        """Columns of a row."""
        return self.config.depth

    @property
    def lse(self) -> bool:
        """Whether the merged log-sum-exp is written, too."""
        return self.config.lse

    @property
    def rows_in_flight(self) -> int:
        """Rows that a thread merges at once."""
        return self.config.rows_in_flight

    @property
    def ctas_at_once(self) -> int:
        """CTAs that a multiprocessor has registers for."""
        table = CTAS_AT_ONCE if self.config.arch == "sm_90a" else CTAS_AT_ONCE_ON_BLACKWELL
        return table[self.part_loads][self.rows_in_flight]

    @property
    def elements(self) -> int:
        """Elements of a row that a thread merges: of the narrower type they are a chunk."""
        return CHUNK_BYTES // min(self.element_bytes, self.out_element_bytes)

    @property
    def chunks(self) -> int:
        """Threads that share a row."""
        return self.depth // self.elements

    @property
    def rows_at_once(self) -> int:
        """Rows that the threads of a CTA have one each of."""
        return THREADS // self.chunks

    @property
    def BM(self) -> int:  # noqa: N802
        """Rows of a CTA."""
        return self.rows_at_once * self.rows_in_flight

    @property
    def BN(self) -> int:  # noqa: N802
        """Columns of a CTA: those of a row."""
        return self.depth

    @property
    def part_loads(self) -> int:
        """Chunks of a part that a thread loads of a row."""
        return self.elements * self.element_bytes // CHUNK_BYTES

    @property
    def out_stores(self) -> int:
        """Chunks of the output that a thread stores of a row."""
        return self.elements * self.out_element_bytes // CHUNK_BYTES

    @property
    def packed_dtype(self) -> str:
        """The type that device functions convert from and to: of parts, or of a narrower output."""
        return self.dtype if self.element_bytes < ELEMENT_BYTES["fp32"] else self.out_dtype

    @property
    @override
    def operation(self) -> str:
        return "parts of attention merged by their log-sum-exps"

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        output = "" if self.out_dtype == self.dtype else f" to {self.out_dtype}"
        return (
            f"{self.dtype}{output}, sums in float32; depth {self.depth}",
            f"{self.chunks} chunks a row, a thread for each; {self.BM} rows a CTA; a thread has "
            f"{self.rows_in_flight} rows of {self.parts_in_flight} parts in flight",
        )

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        registers = self.hardware.registers // (THREADS * self.ctas_at_once) // 8 * 8
        return (Role("merge", 0, THREADS // 32, registers, "a chunk of each of its rows"),)

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        return ()

    @property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        return ()

    @property
    @override
    def barriers(self) -> tuple[Barrier, ...]:
        return ()

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        return ()

    @property
    @override
    def threads(self) -> int:
        return THREADS

    @property
    @override
    def grid(self) -> str:
        return "a CTA for each BM rows"

    @property
    @override
    def dynamic_shared_bytes(self) -> int:
        return 0

    @property
    @override
    def shared_bytes_used(self) -> int:
        return 0

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        part, out = ELEMENT_TYPES[self.dtype], ELEMENT_TYPES[self.out_dtype]
        rows = [
            Parameter("parts", f"const {part}*", "(parts, batch, rows, heads, depth); may be out"),
            Parameter("part_lse", "const float*", "log-sum-exp, (parts, batch, heads, rows)"),
            Parameter("out", f"{out}*", "(batch, rows, heads, depth)"),
            *([Parameter("lse", "float*", "(batch, heads, rows)")] * self.lse),
            Parameter("num_parts", "int32", "parts"),
            Parameter("batch", "int32", "batches"),
            Parameter("rows", "int32", "rows of a head"),
            Parameter("heads", "int32", "heads"),
        ]
        axes = {
            "parts": ("part", "batch", "row", "head"),
            "part_lse": ("part", "batch", "head", "row"),
            "out": ("batch", "row", "head"),
            **({"lse": ("batch", "head", "row")} if self.lse else {}),
        }
        rows += [
            Parameter(f"{tensor}_{axis}_stride", "int64", f"of the {axis} of {tensor}, in elements")
            for tensor, names in axes.items()
            for axis in names
        ]
        return tuple(rows)
