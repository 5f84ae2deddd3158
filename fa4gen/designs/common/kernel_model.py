"""The plan of every kernel, whichever family it belongs to: see ``model`` for its parts.

A plan is a config with every key decided. What is decided is a field of the class; all that
follows from it is a property, computed when it is first asked for. There is no second object: the
functions that lay out memory, find faults and choose stages read the plan that they are part of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.designs.common.hardware import ARCHITECTURES, Architecture
from fa4gen.designs.common.model import LaunchGeometry
from fa4gen.designs.common.shared_memory import (
    dynamic_shared_bytes,
    lay_out,
    lay_out_barriers,
)
from fa4gen.designs.common.values import ELEMENT_BYTES, MMA_K_BYTES, SHARED_BYTE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.model import (
        Barrier,
        Choice,
        NamedBarriers,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
        TensorMemoryRegion,
        TileListPlan,
    )
    from fa4gen.designs.common.unreachable import Unreachable


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class KernelPlan:
    """The plan of a kernel: read by launcher, emulator, header, manifest and reports."""

    RECORDED: ClassVar[tuple[str, ...]] = (
        "kernel", "name", "entry_point", "arch", "feature_macro", "dtype", "element_bytes",
        "out_dtype", "out_element_bytes", "cta_group", "scheduler", "named_barriers", "summary",
        "roles", "shared", "barriers", "tensor_maps", "parameters", "launch", "choices",
        "tile_list",
    )  # fmt: skip
    """The names of the facts that manifests have, in their order."""

    config: KernelConfig
    choices: tuple[Choice, ...] = ()
    vendored_as: str = ""
    """The name in a vendored folder, which begins with the folder's prefix."""
    cta_group: int
    scheduler: str
    """"static" or "dynamic"."""
    ring_is_loaders: bool = False
    """Whether the loader alone has a ring: consumers wait for halves by their barriers."""
    aligns_base: bool = True
    """Whether the kernel rounds the base of shared memory up, for which it asks for room."""
    barriers_by_warp: bool = False
    """Whether a warp initialises the barriers, a lane each; else one thread does."""
    keeps_addresses: bool = False
    """Whether roles have registers to keep what the end of the kernel needs."""

    @property
    def recorded(self) -> Iterator[tuple[str, Any]]:
        """The facts that manifests have: names and values."""
        return ((name, getattr(self, name)) for name in self.RECORDED)

    @property
    def kernel(self) -> str:
        """Kernel family: "attention" or "gemm"."""
        return self.config.kernel

    @property
    def name(self) -> str:
        """The name of the kernel, its files and its namespace."""
        return self.vendored_as or self.config.name

    @property
    def entry_point(self) -> str:
        """The name of the kernel's function.

        A program that compiles a vendored .cu as part of itself also links the C function, which
        has the kernel's name.
        """
        return f"{self.vendored_as}_entry" if self.vendored_as else f"fa4gen_{self.name}"

    @property
    def arch(self) -> str:
        """Architecture that the kernel is written for."""
        return self.config.arch

    @property
    def hardware(self) -> Architecture:
        """The limits of the architecture."""
        return ARCHITECTURES[self.config.arch]

    @property
    def feature_macro(self) -> str:
        """A macro of the compiler: the source finds its target by it."""
        return self.hardware.feature_macro

    @property
    def another_target(self) -> str:
        """A condition of the preprocessor: the pass is for GPUs that cannot run the kernel."""
        return self.hardware.another_target

    @property
    def dtype(self) -> str:
        """The type of the inputs: "bf16", "fp16" or "fp8_e4m3"."""
        return self.config.dtype

    @property
    def mma_dtypes(self) -> tuple[str, str]:
        """The types of a matrix instruction's two operands, in its order."""
        return self.dtype, self.dtype

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the inputs, or of those that share a byte."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def elements_per_byte(self) -> int:
        """Elements of the inputs that share a byte; 1 where none do."""
        return SHARED_BYTE.get(self.dtype, 1)

    @property
    def out_dtype(self) -> str:
        """The type of the output: "bf16", "fp16" or "fp32"."""
        return self.dtype

    @property
    def out_element_bytes(self) -> int:
        """Bytes of an element of the output."""
        return ELEMENT_BYTES[self.out_dtype]

    @property
    def mma_k(self) -> int:
        """Elements along the reduced extent of one matrix instruction: 32 bytes of them."""
        return MMA_K_BYTES // self.element_bytes * self.elements_per_byte

    @property
    def is_pair(self) -> bool:
        """Whether two CTAs work together."""
        return self.cta_group == 2

    @property
    def named_barriers(self) -> NamedBarriers:
        """Constants of the hardware's named barriers: name and first id; 0 is __syncthreads."""
        return ()

    @property
    def summary(self) -> tuple[str, ...]:
        """The resolved parameters in words, for the head of the generated file."""
        raise NotImplementedError

    @property
    def roles(self) -> tuple[Role, ...]:
        """The warps, by what they do."""
        raise NotImplementedError

    @property
    def regions(self) -> Sequence[SharedRegion]:
        """The regions of shared memory in their order, not yet placed."""
        raise NotImplementedError

    @property
    def barrier_rows(self) -> Sequence[Barrier]:
        """The rows of the barrier table in their order, not yet placed in shared memory."""
        raise NotImplementedError

    @property
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        """The tensor maps of a launch."""
        raise NotImplementedError

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters, in order."""
        raise NotImplementedError

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        raise NotImplementedError

    @property
    def grid(self) -> str:
        """The rule for the grid, in words."""
        raise NotImplementedError

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        return self.cta_group

    @property
    def cooperative(self) -> bool:
        """Whether CTAs wait for one another: all have to run at once."""
        return False

    @property
    def dependent_launch(self) -> bool:
        """Whether the kernel starts before the previous one ends, and waits for it by itself."""
        return self.config.dependent_launch

    @property
    def tile_list(self) -> TileListPlan | None:
        """The launch before the kernel's that lists the tiles of a ragged batch."""
        return None

    @cached_property
    def shared(self) -> tuple[SharedRegion, ...]:
        """The regions of shared memory at their offsets from an aligned base."""
        return lay_out(self.regions)

    @cached_property
    def barriers(self) -> tuple[Barrier, ...]:
        """The rows of the barrier table, placed in the region of that name."""
        return lay_out_barriers(self.barrier_rows, self.region("barriers").offset)

    @property
    def dynamic_shared_bytes(self) -> int:
        """Bytes of shared memory that a launch asks for."""
        return dynamic_shared_bytes(self.shared, aligns_base=self.aligns_base)

    @cached_property
    def launch(self) -> LaunchGeometry:
        """The geometry of a launch."""
        return LaunchGeometry(
            threads=self.threads,
            cluster=self.cluster,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            grid=self.grid,
            cooperative=self.cooperative,
            dependent_launch=self.dependent_launch,
        )

    def region(self, name: str) -> SharedRegion:
        """Return the shared-memory region called ``name``; KeyError when there is none."""
        return {region.name: region for region in self.shared}[name]

    def barrier(self, name: str) -> Barrier:
        """Return the row of the barrier table called ``name``; KeyError when there is none."""
        return {barrier.name: barrier for barrier in self.barriers}[name]

    def role(self, name: str) -> Role:
        """Return the warp role called ``name``; KeyError when there is none."""
        return {role.name: role for role in self.roles}[name]

    def tensor_map(self, name: str) -> TensorMapPlan:
        """Return the tensor map called ``name``; KeyError when there is none."""
        return {row.name: row for row in self.tensor_maps}[name]

    @property
    def operation(self) -> str:
        """The kernel's function, in a line."""
        raise NotImplementedError

    @property
    def operand_dtype(self) -> str:
        """The type of the operands of the tensor cores."""
        return self.dtype

    @property
    def panel_element_bytes(self) -> int:
        """Bytes of an element of what rings of panels hold."""
        return self.element_bytes

    @property
    def explained(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Sections of ``fa4gen explain`` on what the config says in a language: title, lines."""
        return ()

    @property
    def unreachable(self) -> tuple[Unreachable, ...]:
        """Code that no problem reaches: verify does not ask for it, and refuses it if it runs."""
        return ()

    @property
    def is_paged(self) -> bool:
        """Whether a warp copies rows of pages together, where one thread copies what is dense."""
        return False

    @property
    def has_tile_lengths(self) -> bool:
        """Whether rows or keys differ from tile to tile: a tile then brings its lengths along."""
        return False

    @property
    def has_tensor_memory(self) -> bool:
        """Whether accumulators are in tensor memory, not in registers."""
        return self.tensor_memory_columns > 0

    @property
    def scaled_kind(self) -> str:
        """The kind of tcgen05.mma that reads block scales; "" where none does."""
        return ""

    @property
    def tensor_memory(self) -> tuple[TensorMemoryRegion, ...]:
        """Regions of tensor memory; none on architectures without."""
        return ()

    @property
    def tensor_memory_columns(self) -> int:
        """Columns to allocate: the power of two that holds every region; 0 for no region."""
        if not self.tensor_memory:
            return 0
        end = max(region.end for region in self.tensor_memory)
        return max(32, 1 << (end - 1).bit_length())

    @property
    def shared_bytes_used(self) -> int:
        """Bytes up to the end of the last region, before the alignment slack."""
        return max(region.end for region in self.shared)
