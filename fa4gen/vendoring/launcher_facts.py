"""Numbers of a kernel's plan for the C launcher, in the words of C."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.masks import mask_numbers
from fa4gen.runtime.arguments import DESCALES, TABLES
from fa4gen.runtime.tile_counter import COUNTER_BYTES
from fa4gen.scores import score_numbers

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.designs.common.plans import Plan
    from fa4gen.vendoring.passed_scales import PassedScales
    from fa4gen.vendoring.passed_tensors import PassedTensor

MAX_RANK = 5
DTYPES = {
    "bf16": "BF16",
    "fp16": "FP16",
    "fp8_e4m3": "FP8_E4M3",
    "fp32": "FP32",
    "fp4_e2m1": "FP4_E2M1",
}
MAP_DTYPES = {"fp8_e4m3": 0, "fp4_e2m1": 0, "atoms": 2, "fp16": 6, "fp32": 7, "bf16": 9}
"""CUtensorMapDataType; TMA moves bytes, and has no type for fp8; two of fp4 are one, and atoms of
scales are words."""
ARRAYS = (*DESCALES, "sinks", *TABLES)
"""Small arrays that only some attention kernels take, as the launcher numbers them."""
MAP_PROMOTIONS = {64: 1, 128: 2, 256: 3}
"""CUtensorMapL2promotion."""
MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""CUtensorMapSwizzle."""


@dataclass(frozen=True)
class MapFacts:
    """The encoding of a tensor map."""

    tensor: str
    parameter: str
    dtype: int
    swizzle: int
    rank: int
    dims: tuple[str, ...]
    """Names of ``rank`` dimensions; like the box, filled up to MAX_RANK."""
    box: tuple[int, ...]
    panel_bytes: int
    """Bytes of a row of the box."""
    panels: int = 0
    """Attention: that make up the depth; else 0."""
    l2_promotion: int = 3
    """CUtensorMapL2promotion."""


@dataclass(frozen=True)
class LauncherFacts:
    """A kernel's row in the table of the launcher; what the other family has is 0 or empty.

    Words of C are those of the header without the prefix; empty where an enumeration has none.
    """

    entry_point: str
    capabilities: tuple[tuple[int, int], ...]
    """The GPUs that run it, with one major version, and minor versions below 32."""
    threads: int
    dynamic_shared_bytes: int
    element_bytes: int
    out_element_bytes: int
    kv_element_bytes: int
    """Attention: of key and value."""
    workspace_bytes: int
    BM: int
    BN: int
    cta_group: int
    static_scheduler: bool
    dependent_launch: bool
    dtype: str
    out_dtype: str
    maps: tuple[MapFacts, ...]
    parameters: tuple[str, ...]
    tensors: tuple[PassedTensor, ...] = ()
    """Attention: read ones, a raised one, then lists; ``parameters``: given[0], ..."""
    lists_blocks: bool = False
    """Attention: the last tensors are lists of the blocks of keys that tiles see."""
    score_is_expression: bool = False
    max_extent: int = 0
    max_query_rows: int = 0
    """Attention: the most query rows of a call, where the mask sets a limit; else 0."""
    ctas_per_tile: int = 1
    tile_heads: int = 1
    """Attention: query heads of a key head whose rows share a tile."""
    mixed_tile_heights: bool = False
    grouped: bool = False
    arrays: int = 0
    """Attention: those of ARRAYS that the kernel takes, one bit each from the lowest on."""
    page_size: int = 0
    """Attention: keys of a page; 0 without pages."""
    list_entry: str = ""
    """Attention: the launch before that of a ragged batch; empty without one."""
    list_threads: int = 0
    list_rows: int = 0
    group_keys: int = 0
    """Query rows of an entry of the list."""
    list_parameters: tuple[str, ...] = ()
    share_limit: int = 0
    """Attention: the most CTAs of a kernel whose CTAs share keys; 0 for others."""
    share_blocks: int = 0
    """Blocks of keys that no two CTAs share."""
    share_keys: int = 0
    """Keys of a place of the line that the kernel counts."""
    share_bytes: int = 0
    """Bytes of workspace for each CTA, or for each split, after the tickets."""
    by_split: bool = False
    """Partial results are counted by splits of a fixed number of keys."""
    sequence_limit: int = 0
    """Attention: the most sequences of a call with lengths; 0 without a limit."""
    page_scales: bool = False
    """Attention: each page has scales, not each sequence."""
    values_in_keys: bool = False
    """Attention: the values are the first columns of the keys, and are not passed."""
    default_scale: float = 0.0
    depth: int = 0
    value_depth: int = 0
    mask: str = ""
    in_order: bool = False
    """Later rows see more keys."""
    mask_numbers: tuple[int, ...] = tuple(0 for _ in mask_numbers())
    """Numbers of all masks; those of other masks are 0."""
    score_numbers: tuple[float, ...] = tuple(0.0 for _ in score_numbers())
    """Numbers of all score functions; those of others are 0."""
    score: str = "none"
    lse: bool = False
    tile_rows: int = 0
    """Matrix product: of the CTAs of a cluster."""
    tile_columns: int = 0
    a_m_major: bool = False
    b_n_major: bool = False
    residual: str = ""
    c_axes: tuple[str, ...] = ()
    """The axes of C among "m" and "n"."""
    activation: str = "NULL"
    """A C string, or NULL."""
    gate: int = 0
    """With a gated activation, 1 where gate's columns of B come before up's, 2 where in turn."""
    groups: str = ""
    """Matrix product: "offsets", "masked" or "k_offsets"; empty without groups."""
    most_groups: int = 0
    """Groups of a call; 0 for any number."""
    gathers_rows: bool = False
    """Matrix product: an index names the rows of A."""
    scatters_rows: bool = False
    """Matrix product: an index names the rows of the output, which have weights."""
    c_dtype: str = ""
    """Matrix product: of C; empty where it is that of the output."""
    c_element_bytes: int = 0
    out_scales: PassedScales | None = None
    """Matrix product: of the output."""
    finds_amax: bool = False
    """Matrix product: a call raises the largest magnitude of the output."""
    column_unit: int = 1
    """Columns of B are a multiple of it."""
    scales: tuple[PassedScales, ...] = ()
    """Matrix product: of blocks."""
    elements_per_byte: int = 1
    """Matrix product: of A and B, along k."""
    out_elements_per_byte: int = 1
    """Matrix product: of the output, along n."""
    has_tensor_scale: bool = False
    """Matrix product: a call passes the scale of the whole output."""

    @property
    def scale_rows(self) -> tuple[int, int]:
        """Rows of a block of A with a scale, columns of one of B; 0 without scales."""
        rows = {one.operand: one.rows for one in self.scales}
        return rows.get("a", 0), rows.get("b", 0)

    @property
    def scale_depth(self) -> int:
        """Elements along k of such a block."""
        return max((one.depth for one in self.scales), default=0)

    @property
    def scale_bytes(self) -> int:
        """Bytes of a scale."""
        return max((one.element_bytes for one in self.scales), default=0)

    @property
    def scales_ue8m0(self) -> bool:
        """Whether scales are powers of two in a byte."""
        return any(one.dtype == "ue8m0" for one in self.scales)

    @property
    def scales_in_atoms(self) -> bool:
        """Whether scales are in the order of Blackwell's tensor cores."""
        return any(one.in_atoms for one in self.scales)

    @property
    def has_atoms(self) -> bool:
        """Whether scales that are read or written are in that order."""
        of_output = self.out_scales is not None and self.out_scales.in_atoms
        return self.scales_in_atoms or of_output

    @property
    def raised(self) -> int | None:
        """The number of the tensor that a launch raises; None where it raises none."""
        return next((i for i, one in enumerate(self.tensors) if one.raised), None)

    @property
    def row_arguments(self) -> tuple[str, ...]:
        """The arrays with an element for each row, or group, of a call."""
        arrays = {
            "row_offsets": self.groups in ("offsets", "k_offsets"),
            "row_counts": self.groups == "masked",
            "row_index": self.gathers_rows,
            "out_index": self.scatters_rows,
            "row_weights": self.scatters_rows,
            "out_amax": self.finds_amax,
        }
        return tuple(name for name, taken in arrays.items() if taken)

    @property
    def other_keys(self) -> bool:
        """Whether keys and values are of another type than the query."""
        return self.kv_element_bytes != self.element_bytes

    @property
    def major(self) -> int:
        """The major version of the compute capabilities that run it."""
        return self.capabilities[0][0]

    @property
    def minors(self) -> int:
        """A bit for each of their minor versions."""
        return sum(1 << minor for _, minor in self.capabilities)

    @property
    def taken_arrays(self) -> tuple[str, ...]:
        """The names of the small arrays that the kernel takes."""
        return tuple(name for name in ARRAYS if self.takes(name))

    def takes(self, array: str) -> bool:
        """Whether the kernel takes the one of ARRAYS that is called ``array``."""
        return bool(self.arrays >> ARRAYS.index(array) & 1)


def shared_facts(plan: Plan) -> LauncherFacts:
    """Return the facts that every family has."""
    parameters = tuple(row.name for row in plan.parameters)
    return LauncherFacts(
        entry_point=plan.entry_point,
        capabilities=ARCHITECTURES[plan.arch].runs_on,
        threads=plan.launch.threads,
        dynamic_shared_bytes=plan.launch.dynamic_shared_bytes,
        element_bytes=plan.element_bytes,
        out_element_bytes=plan.out_element_bytes,
        kv_element_bytes=plan.element_bytes,
        workspace_bytes=COUNTER_BYTES if "tile_counter" in parameters else 0,
        BM=plan.BM,
        BN=plan.BN,
        cta_group=plan.launch.cluster,
        static_scheduler=plan.scheduler == "static",
        dependent_launch=plan.launch.dependent_launch,
        dtype=DTYPES[plan.dtype],
        out_dtype=DTYPES[plan.out_dtype],
        maps=tuple(_map_facts(plan, row) for row in plan.tensor_maps),
        parameters=parameters,
    )


def _map_facts(plan: Plan, row: TensorMapPlan) -> MapFacts:
    dtype = plan.dtype if row.tensor in ("query", "key", "value", "a", "b") else plan.out_dtype
    dtype = "atoms" if row.tensor in ("scale_a", "scale_b") else dtype
    padding = MAX_RANK - len(row.dims)
    return MapFacts(
        tensor=row.tensor,
        parameter=row.parameter,
        dtype=MAP_DTYPES[dtype],
        swizzle=MAP_SWIZZLES[row.swizzle],
        l2_promotion=MAP_PROMOTIONS[row.l2_promotion],
        rank=len(row.dims),
        dims=row.dims + row.dims[-1:] * padding,
        box=row.box + (0,) * padding,
        panel_bytes=row.box_bytes // math.prod(row.box) * row.box[0],
    )
