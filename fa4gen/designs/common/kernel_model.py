"""The plan of every kernel, whichever family it belongs to: see ``model`` for its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.designs.common.model import (
        Barrier,
        Choice,
        LaunchGeometry,
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

    kernel: str
    """Kernel family: "attention" or "gemm"."""
    name: str
    entry_point: str
    arch: str
    feature_macro: str
    """Defined by the compilers only for exactly this architecture."""
    dtype: str
    """The type of the inputs: "bf16", "fp16" or "fp8_e4m3"."""
    element_bytes: int
    out_dtype: str
    """The type of the output: "bf16", "fp16" or "fp32"."""
    out_element_bytes: int
    cta_group: int
    scheduler: str
    """"static" or "dynamic"."""
    named_barriers: tuple[tuple[str, int], ...]
    """Constants of the hardware's named barriers: name and first id."""
    summary: tuple[str, ...]
    """The resolved parameters in words, for the head of the generated file."""
    roles: tuple[Role, ...]
    shared: tuple[SharedRegion, ...]
    barriers: tuple[Barrier, ...]
    tensor_maps: tuple[TensorMapPlan, ...]
    parameters: tuple[Parameter, ...]
    launch: LaunchGeometry
    choices: tuple[Choice, ...]
    tile_list: TileListPlan | None = None
    """The launch before the kernel's that lists the tiles of a ragged batch."""

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
    def ring_is_loaders(self) -> bool:
        """Whether the loader alone has a ring: consumers wait for halves by their barriers."""
        return False

    @property
    def has_tile_lengths(self) -> bool:
        """Whether rows or keys differ from tile to tile: a tile then brings its lengths along."""
        return False

    @property
    def has_tensor_memory(self) -> bool:
        """Whether accumulators are in tensor memory, not in registers."""
        return False

    @property
    def aligns_base(self) -> bool:
        """Whether the kernel rounds the base of shared memory up, for which it asks for room."""
        return True

    @property
    def barriers_by_warp(self) -> bool:
        """Whether a warp initialises the barriers, a lane each; else one thread does."""
        return False

    @property
    def keeps_addresses(self) -> bool:
        """Whether roles have registers to keep what the end of the kernel needs."""
        return False

    @property
    def tensor_regions(self) -> tuple[TensorMemoryRegion, ...]:
        """Regions of tensor memory; none on architectures without."""
        return ()

    @property
    def tensor_columns(self) -> int:
        """Columns of tensor memory that the kernel allocates."""
        return 0

    @property
    def shared_bytes_used(self) -> int:
        """Bytes up to the end of the last region, before the alignment slack."""
        return max(region.end for region in self.shared)


class TensorMemoryPlan(KernelPlan):
    """A plan whose kernel has tensor memory; each design orders its own fields."""

    tensor_memory: tuple[TensorMemoryRegion, ...]
    tensor_memory_columns: int
    """Columns to allocate: a power of two."""

    @property
    def has_tensor_memory(self) -> bool:
        """It has."""
        return True

    @property
    def scaled_kind(self) -> str:
        """The kind of tcgen05.mma that reads block scales; "" where none does."""
        return ""

    @property
    def tensor_regions(self) -> tuple[TensorMemoryRegion, ...]:
        """See ``tensor_memory``."""
        return self.tensor_memory

    @property
    def tensor_columns(self) -> int:
        """See ``tensor_memory_columns``."""
        return self.tensor_memory_columns
