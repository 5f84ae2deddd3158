"""The problems that a matrix product is verified on: sizes, strides, batches, factors, data.

Cases follow the plan: sizes around its tile, the extents of a stage and of the ring are among them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.verify.cases import COUNTING, TURNS, unique
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.group_cases import group_cases, in_groups
from fa4gen.verify.gemm.input_kinds import (
    GROUP_KINDS,
    KINDS,
    QUANTISED_KINDS,
    SCALED_KINDS,
)
from fa4gen.verify.rounding import WITHOUT_NAN
from fa4gen.verify.sequences import around

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.common.gemm_model import GemmPlan


ACCURATE_K = 4096


def default_cases(plan: GemmPlan) -> tuple[GemmCase, ...]:
    """Return the cases of a kernel, in the order they run: plain ones first."""
    return unique(
        [
            *_sizes(),
            *_tile_edges(plan),
            *_depths(plan),
            *_batches(plan),
            *_factors(plan),
            *_residuals(plan),
            *_data(plan),
            *_quantised(plan),
            *_plain_scales(plan),
            *_many_tiles(plan, ARCHITECTURES[plan.arch].most_multiprocessors),
            *group_cases(plan),
            *_indices(plan),
        ]
    )


def emulated_cases(plan: GemmPlan) -> tuple[GemmCase, ...]:
    """Return the cases for the emulator: the same edges on little work."""
    rows, n, k = plan.tile_rows, plan.tile_columns, plan.BK
    ring = (plan.num_stages + 1) * k
    cases = [
        GemmCase("size/1x1x1", 1, 1, 1, padded=True),
        GemmCase("size/33x24x40", 33, 24, 40, padded=True, data=COUNTING),
        GemmCase(f"tile/{rows}x{n}x{k}", rows, n, k),
        GemmCase(
            f"tile/{rows + 1}x{n - 1}x{k + 1}", rows + 1, n - 1, k + 1, alpha=-1.5, data=COUNTING
        ),
        GemmCase(
            f"tile/{rows - 1}x{n + 1}x{k - 1}", rows - 1, n + 1, k - 1, beta=-2.0, data=COUNTING
        ),
        GemmCase("depth/0", 40, 72, 0),
        GemmCase(f"depth/{ring + 8}", 40, 40, ring + 8, padded=True, data=COUNTING),
        GemmCase("empty/no_rows", 0, 40, 40),
        GemmCase("batch/shared", 20, 40, 24, batch=3, shared=("b", "c"), data=COUNTING),
        GemmCase("factor/alpha_0", 40, 40, 40, alpha=0.0),
        GemmCase("data/scaled", 70, 72, k + 16, data="scaled"),
        # At least three tiles per CTA, where the emulator has four CTAs.
        GemmCase(
            "tiles/many",
            rows + 5,
            2 * n + 9,
            k + 8,
            batch=2 if plan.cta_group == 2 else 3,
            data=COUNTING,
        ),
    ]
    if plan.c.exists:
        cases += [
            GemmCase("factor/beta_0", 40, 40, 40, beta=0.0, nan_in_c=True),
            GemmCase("residual/positions", rows + 7, n + 24, 16, beta=1.0, data="positions"),
        ]
    if plan.may_write_in_place:
        cases.append(GemmCase("residual/in_place", rows + 3, n + 9, 40, in_place=True))
    if plan.scales:
        cases += [
            GemmCase(f"scales/{kind}", rows + 9, 2 * n + 24, 3 * k + 40, data=kind)
            for kind in SCALED_KINDS
        ]
        if not any(scales.in_atoms for scales in plan.scales):
            sizes = (70, 2 * n + 24, k + 130)
            if plan.scales[0].in_tensor_cores:  # fewer, since a row has many scales
                sizes = (5, 9, 3 * plan.scales[0].columns)
            cases.append(GemmCase("scales/far", *sizes, batch=2, far=True))
    further = (*_quantised(plan), *_plain_scales(plan), *_indices(plan))
    return unique([*cases, *further, *group_cases(plan)])


def _quantised(plan: GemmPlan) -> Iterable[GemmCase]:
    """Blocks with scales far from their neighbours', infinities, NaN: for quantised outputs."""
    if plan.output_scales is None:
        return
    m, n, k = plan.BM + 9, plan.tile_columns + 136, 40
    yield GemmCase("quantised/apart", m, n, k, data="scaled")
    if plan.b_dtype not in WITHOUT_NAN:  # their scales may be NaN: see scales/nan_scales
        yield GemmCase("quantised/nan", m, n, k, data="nan_columns")
    if plan.activation is None:  # sums of 256 and more, or larger ones with scales, are infinite
        counted = bool(plan.scales) and plan.scales[0].dtype == "fp32"
        alpha = 2.0 ** (108 if counted else 120)
        yield GemmCase("quantised/infinite", m, n, k, alpha=alpha, data=COUNTING)


def suited(plan: GemmPlan, cases: Iterable[GemmCase]) -> tuple[GemmCase, ...]:
    """Return the cases as a kernel takes them.

    k fills bytes, where elements share them, columns are what gate and up can share, and rows are
    in groups, where the kernel has some.
    """
    share, unit = plan.elements_per_byte, plan.column_unit
    whole = (
        replace(case, k=-(-case.k // share) * share, n=-(-case.n // unit) * unit) for case in cases
    )
    return in_groups(plan, whole)


def large_cases() -> tuple[GemmCase, ...]:
    """Return large matrices, with a reference computed on the GPU."""
    return unique(
        [
            GemmCase("large/2k", 2048, 2048, 2048),
            GemmCase("large/4k", 4096, 4096, 4096),
            GemmCase("large/odd_4k", 4001, 3989, 4099),
            GemmCase("large/deep", 600, 520, 40_000),
            GemmCase("large/batch", 700, 500, 300, batch=64),
            GemmCase("large/8k_scaled", 8192, 2048, 1024, data="scaled"),
        ]
    )


def _sizes() -> Iterable[GemmCase]:
    for size in (1, 2, 8, 64, 128, 256, 520):
        yield GemmCase(f"size/{size}", size, size, size)
    for m, n, k in ((1, 777, 129), (777, 1, 129), (333, 555, 1), (77, 193, 1000), (129, 257, 65)):
        yield GemmCase(f"odd/{m}x{n}x{k}", m, n, k, padded=m % 4 == 1, data=COUNTING)
    yield GemmCase("empty/no_rows", 0, 100, 64)
    yield GemmCase("empty/no_columns", 100, 0, 64)
    yield GemmCase("empty/no_batch", 100, 64, 64, batch=0)


def _tile_edges(plan: GemmPlan) -> Iterable[GemmCase]:
    """One below, at and above the tile in rows and columns, of a CTA and of a pair."""
    rows = plan.tile_rows
    pairs = [(m, n) for m in around(rows) for n in around(plan.tile_columns)]
    pairs += [(m, plan.BN + 8) for m in (plan.BM - 1, plan.BM, plan.BM + 1, plan.BM // 2 + 1)]
    pairs += [(2 * rows + 1, n) for n in around(2 * plan.tile_columns)]
    for index, (m, n) in enumerate(pairs):
        k = 2 * plan.BK + (-8, 0, 8, 3)[index % 4]
        data = TURNS[index // 2 % 2]  # padding has turns of its own
        yield GemmCase(f"tile/{m}x{n}", m, n, k, padded=index % 2 == 1, data=data)


def _depths(plan: GemmPlan) -> Iterable[GemmCase]:
    """Return k of 0, around a stage, less than the ring, around it, and much more."""
    ring = plan.num_stages * plan.BK
    depths = [0, 1, plan.mma_k, *around(plan.BK), *around(ring), 2 * ring + plan.BK + 8]
    for index, k in enumerate(depths):
        rows, columns, data = plan.BM + 9, plan.BN + 16, TURNS[index // 2 % 2]
        yield GemmCase(f"depth/{k}", rows, columns, k, padded=index % 2 == 1, data=data)
    yield GemmCase("depth/long", 200, 264, ACCURATE_K)
    yield GemmCase("depth/longer", 65, 40, 3 * ACCURATE_K + 24)


def _batches(plan: GemmPlan) -> Iterable[GemmCase]:
    yield GemmCase("batch/1", 100, 136, 72, batch=1)
    yield GemmCase("batch/5", 130, 72, 200, batch=5)
    yield GemmCase("batch/3_padded", plan.BM + 1, 99, 77, batch=3, padded=True)
    yield GemmCase("batch/33", 40, 40, 40, batch=33, data=COUNTING)
    yield GemmCase("batch/no_k", 40, 48, 0, batch=3)
    yield GemmCase("batch/shared_b", 130, 136, 100, batch=4, shared=("b",), data=COUNTING)
    if plan.c.exists:
        yield GemmCase("batch/shared_c", 130, 136, 100, batch=4, shared=("c",))
        both = GemmCase("batch/shared_b_c", 65, 100, 100, batch=3, shared=("b", "c"), padded=True)
        yield replace(both, data=COUNTING)


def _factors(plan: GemmPlan) -> Iterable[GemmCase]:
    m, n, k = plan.BM + 33, plan.BN + 40, plan.BK + 24
    yield GemmCase("factor/alpha_0", m, n, k, alpha=0.0)
    yield GemmCase("factor/negative", m, n, k, alpha=-0.7, beta=-1.3)
    yield GemmCase("factor/small", m, n, k, alpha=2.0**-9, beta=2.0**-9)
    if plan.c.exists:
        yield GemmCase("factor/beta_0", m, n, k, beta=0.0)
        yield GemmCase("factor/beta_0_nan", m, n, k, beta=0.0, nan_in_c=True)
        yield GemmCase("factor/beta_1", m, n, k, beta=1.0)
        yield GemmCase("factor/both_0", m, n, k, alpha=0.0, beta=0.0, nan_in_c=True)


def _residuals(plan: GemmPlan) -> Iterable[GemmCase]:
    """C whose elements identify their position; C that is overwritten."""
    if not plan.c.exists:
        return
    rows = plan.tile_rows
    for index, (m, n) in enumerate(
        ((rows, plan.tile_columns), (2 * rows + 7, 2 * plan.tile_columns + 24), (77, 1000))
    ):
        positions = GemmCase(
            f"residual/positions_{m}x{n}", m, n, 16, beta=1.0, data="positions", padded=index == 1
        )
        yield positions
    yield replace(positions, name="residual/positions_batch", m=rows + 1, n=99, batch=3)
    if plan.may_write_in_place:
        yield GemmCase("residual/in_place", rows + 3, plan.tile_columns + 9, 200, in_place=True)
        yield GemmCase("residual/in_place_batch", 100, 72, 64, batch=3, in_place=True, padded=True)


def _data(plan: GemmPlan) -> Iterable[GemmCase]:
    """Every kind of data on several stages, aligned to the tile and not."""
    for kind in KINDS:
        if kind in SCALED_KINDS and not plan.scales:
            continue
        if kind not in ("normal", "positions", *GROUP_KINDS, *QUANTISED_KINDS):
            yield GemmCase(f"data/{kind}", 2 * plan.BM, plan.BN, 5 * plan.BK, data=kind)
            yield GemmCase(f"data/{kind}_odd", 133, plan.BN + 7, 4 * plan.BK + 7, data=kind)


def _indices(plan: GemmPlan) -> Iterable[GemmCase]:
    """Every kind of index, over more than a tile of rows, and one that a batch shares."""
    if not plan.gathers_rows:
        return
    m, n, k = plan.tile_rows + 7, 40, plan.BK + 8
    yield GemmCase("index/permutation", m, n, k, index="permutation", data=COUNTING)
    yield GemmCase("index/one_row", m, n, k, index="one_row")
    yield GemmCase("index/absent", m, n, k, index="absent", data=COUNTING)
    yield GemmCase("index/no_rows", 40, n, k, index="no_rows")
    shared = GemmCase("index/shared", 70, n, k, batch=3, shared=("row_index",), padded=True)
    yield replace(shared, data=COUNTING)


def _plain_scales(plan: GemmPlan) -> Iterable[GemmCase]:
    """Yield rows of scales that a kernel loads 16 and 4 at once, and with any strides."""
    if not any(row.in_tensor_cores and not row.in_atoms for row in plan.scales):
        return
    rows, columns, scale = plan.tile_rows + 9, plan.tile_columns + 24, plan.scales[0].columns
    for scales, padded in ((48, False), (36, False), (48, True)):
        name = f"scales/{scales}_a_row" + "_padded" * padded
        yield GemmCase(name, rows, columns, scales * scale, data="blocks_apart", padded=padded)


def _many_tiles(plan: GemmPlan, multiprocessors: int) -> Iterable[GemmCase]:
    """More tiles than three waves of CTAs: the order of work, and state left by earlier tiles."""
    rows = plan.tile_rows
    tiles = 3 * multiprocessors // plan.cta_group + 5
    columns, batch = plan.tile_columns, -(-tiles // 4)
    yield GemmCase("tiles/batch", rows + 1, columns + 8, 40, batch=batch, data=COUNTING)
    yield GemmCase("tiles/tall", tiles * rows // 3 + 1, 2 * columns + 8, plan.BK, data=COUNTING)
    yield GemmCase("tiles/wide", 2 * rows + 8, tiles * columns // 3 + 1, 40, data=COUNTING)
    yield GemmCase("tiles/no_k", rows + 1, plan.tile_columns + 8, 0, batch=-(-tiles // 4))
    if plan.c.exists:
        side = (2 * rows + 8, tiles * plan.tile_columns // 3 + 8)
        yield GemmCase("tiles/positions", *side, 16, beta=1.0, data="positions")
