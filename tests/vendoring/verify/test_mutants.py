"""Launchers with one mistake each are refused, by the numbers or by the emulator's checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fa4gen.verify.cases import Case
from fa4gen.verify.gemm.cases import GemmCase
from tests.vendoring.verify.builds import Edit

if TYPE_CHECKING:
    from fa4gen.verify.verdict import NamedCase
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

TINY = Case("tiny", 1, 1, 1, 40, 40)
ONES = Case("ones", 1, 1, 1, 40, 40, "padded")
HEADS = Case("heads", 1, 2, 1, 5, 70, "padded")
BATCHES = Case("batches", 2, 1, 1, 33, 40, "padded")
APART = Case("apart", 2, 4, 2, 5, 70, "apart")
FAR = Case("far", 2, 2, 2, 5, 40, far=True)
TILES = Case("tiles", 1, 1, 1, 225, 20)
PAIRS = Case("pairs", 1, 2, 1, 193, 20)
FULL = Case("full", 1, 1, 1, 192, 40)
TILES_OF_FOUR = Case("of_four", 2, 8, 2, 60, 70, "padded")
SCALE = Case("scale", 1, 1, 1, 40, 40, softmax_scale=0.5)
PRODUCT = GemmCase("product", 33, 24, 40, padded=True)
ONE_ROW = GemmCase("one_row", 1, 24, 40, padded=True)
PRODUCTS = GemmCase("products", 20, 40, 24, batch=2)
WIDE = GemmCase("wide", 70, 136, 16)
TALL = GemmCase("tall", 300, 40, 16)

LAUNCHER = "src/launcher.c"
SIZED = "size = get_size(kernel, args);\n  "
PLANNED = "plan_attention(kernel, &size, device.multiprocessors, &schedule);"
ATTENTION = "/* ---- A call of an attention kernel"
PRODUCTS_OF = "/* ---- A call of a matrix product"


@dataclass(frozen=True)
class Mutant:
    """``refused`` is in what verify says of ``kernel`` on ``case``."""

    name: str
    kernel: str
    edit: Edit
    case: NamedCase
    refused: str


def attention(
    name: str, old: str, new: str, case: NamedCase, refused: str, kernel: str = "softmax"
) -> Mutant:
    return Mutant(name, kernel, Edit(LAUNCHER, old, new, ATTENTION), case, refused)


def product(
    name: str, old: str, new: str, case: NamedCase, refused: str, kernel: str = "product"
) -> Mutant:
    return Mutant(name, kernel, Edit(LAUNCHER, old, new, PRODUCTS_OF), case, refused)


def launch(name: str, old: str, new: str, case: NamedCase, refused: str) -> Mutant:
    return Mutant(name, "softmax", Edit(LAUNCHER, old, new), case, refused)


def facts(name: str, old: str, new: str, case: NamedCase, refused: str) -> Mutant:
    return Mutant(name, "softmax", Edit(LAUNCHER, old, new, '"softmax",'), case, refused)


MUTANTS = (
    attention(
        "swapped strides",
        "extents.stride[dim] = of->strides[dim]; ",
        "extents.stride[dim] = of->strides[dim ? 3 - dim : 0]; ",
        HEADS,
        "numbers",
    ),
    attention(
        "values with the strides of the keys",
        "extents.stride[dim] = of->strides[dim]; ",
        "extents.stride[dim] = tensors[i == 2 ? 1 : i].strides[dim]; ",
        APART,
        "numbers",
    ),
    attention(
        "the output with the row stride of the query",
        "values->out_row_stride = args->out.row_stride;",
        "values->out_row_stride = args->query.row_stride;",
        APART,
        "",
    ),
    attention(
        "the output with the head stride of the query",
        "values->out_head_stride = args->out.head_stride;",
        "values->out_head_stride = args->query.head_stride;",
        APART,
        "",
    ),
    attention(
        "a stride of the output of 32 bits",
        "values->out_row_stride = args->out.row_stride;",
        "values->out_row_stride = (int32_t)args->out.row_stride;",
        FAR,
        "",
    ),
    launch(
        "strides of tensor maps of 32 bits",
        "view->strides[i] = strides[i] * element_bytes;",
        "view->strides[i] = (int32_t)(strides[i] * element_bytes);",
        FAR,
        "",
    ),
    attention(
        "a tensor map one row short",
        "is_empty(of) ? 1 : of->extents[dim];",
        "is_empty(of) ? 1 : of->extents[dim] - (dim == DIM_ROW);",
        TINY,
        "numbers",
    ),
    attention(
        "a tensor map one row long",
        "is_empty(of) ? 1 : of->extents[dim];",
        "is_empty(of) ? 1 : of->extents[dim] + (dim == DIM_ROW);",
        TINY,
        "out-of-bounds",
    ),
    attention(
        "a tensor map over the wrong tensor",
        "is_empty(of) ? tensors[0].address : of->address;",
        "tensors[i == 2 ? 1 : i].address;",
        TINY,
        "numbers",
    ),
    attention(
        "heads_per_key_head 1",
        "values->heads_per_key_head = (int32_t)size->heads_per_key_head;",
        "values->heads_per_key_head = 1;",
        HEADS,
        "numbers",
    ),
    attention(
        "query_rows and key_rows swapped",
        "values->query_rows = (int32_t)size->query_rows;\n"
        "  values->key_rows = (int32_t)size->key_rows;",
        "values->query_rows = (int32_t)size->key_rows;\n"
        "  values->key_rows = (int32_t)size->query_rows;",
        HEADS,
        "emulator",
    ),
    attention("lse dropped", "values->lse = args->lse;", "values->lse = NULL;", TINY, "emulator"),
    attention(
        "softmax scale without log2(e)", "(float)(scale * LOG2_E)", "(float)scale", TINY, "numbers"
    ),
    attention(
        "the default softmax scale for all",
        "args->softmax_scale == 0 ? kernel->default_scale : args->softmax_scale",
        "kernel->default_scale",
        SCALE,
        "numbers",
    ),
    attention(
        "no default softmax scale",
        "args->softmax_scale == 0 ? kernel->default_scale : args->softmax_scale",
        "args->softmax_scale == 0 ? 1.0 : args->softmax_scale",
        TINY,
        "numbers",
    ),
    attention(
        "the batch stride of the output",
        "values->out_batch_stride = args->out.batch_stride;",
        "values->out_batch_stride = args->out.row_stride;",
        BATCHES,
        "race",
    ),
    attention(
        "the output's head stride as its row stride",
        "values->out_row_stride = args->out.row_stride;",
        "values->out_row_stride = args->out.head_stride;",
        HEADS,
        "race",
    ),
    attention(
        "one tile too few",
        "values->num_tiles = (int32_t)schedule->num_tiles;",
        "values->num_tiles = (int32_t)schedule->num_tiles - 1;",
        TILES,
        "unwritten",
    ),
    attention(
        "one tile of a head too few",
        "values->tiles_per_head = (int32_t)schedule->tiles_per_head;",
        "values->tiles_per_head = (int32_t)schedule->tiles_per_head - 1;",
        TILES,
        "out-of-bounds",
    ),
    attention(
        "the tile counter elsewhere",
        "values->tile_counter = args->workspace;",
        "values->tile_counter = (char *)args->workspace + args->workspace_bytes - 4;",
        TINY,
        "out-of-bounds",
    ),
    launch(
        "strides of axes with one element looked at",
        "if (extents[i] <= 1) continue;",
        "if (extents[i] < 1) continue;",
        ONES,
        "refused the call",
    ),
    Mutant(
        "strides of matrices with one row looked at",
        "product",
        Edit(LAUNCHER, "if (extents[i] <= 1) continue;", "if (extents[i] < 1) continue;"),
        ONE_ROW,
        "refused the call",
    ),
    launch(
        "workspace not zeroed",
        "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, bytes, stream)",
        "0 * driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, 0, stream)",
        TINY,
        "workspace",
    ),
    launch(
        "workspace filled with something else",
        "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, bytes, stream)",
        "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 1, bytes, stream)",
        TINY,
        "workspace",
    ),
    launch(
        "more than the workspace zeroed",
        "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, bytes, stream)",
        "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, bytes + 1, stream)",
        TINY,
        "cuMemsetD8Async of 33 bytes",
    ),
    launch(
        "another stream",
        "config.stream = stream;",
        "config.stream = NULL;",
        TINY,
        "on the streams 0x0",
    ),
    launch(
        "half of the shared memory",
        "config.dynamic_shared_bytes = kernel->dynamic_shared_bytes;",
        "config.dynamic_shared_bytes = kernel->dynamic_shared_bytes / 2;",
        TINY,
        "emulator",
    ),
    launch(
        "the shared memory is not asked for",
        "(int)kernel->dynamic_shared_bytes, *function, device)",
        "49152, *function, device)",
        TINY,
        "refused the call",
    ),
    launch(
        "a warpgroup is missing",
        "config.block_x = kernel->threads;",
        "config.block_x = kernel->threads - 128;",
        FULL,
        "emulator",
    ),
    launch(
        "a prepared launch forgets its last values",
        "packed.mark = mark();\n  memcpy(prepared->words, &packed, sizeof packed);",
        "packed.mark = mark();\n"
        "  memcpy(prepared->words, &packed, offsetof(packed_launch, values) + 512);",
        TINY,
        "emulator",
    ),
    launch(
        "the graph of a prepared launch forgets its last values",
        "    status = enqueue(&packed, stream);\n",
        "    memset((char *)&packed.values + 512, 0, sizeof packed.values - 512);\n"
        "    status = enqueue(&packed, stream);\n",
        TINY,
        "emulator",
    ),
    facts(
        "less workspace than the kernel uses",
        "32, /* workspace bytes */",
        "4, /* workspace bytes */",
        TINY,
        "out-of-bounds",
    ),
    facts(
        "the box of another tile",
        "{ 64, 64, 1, 1, 1 }",
        "{ 64, 32, 1, 1, 1 }",
        TINY,
        "emulator",
    ),
    facts(
        "no swizzle",
        "AT(key_map), 9, 3, ",
        "AT(key_map), 9, 0, ",
        TINY,
        "numbers",
    ),
    facts(
        "parameters in another order",
        "AT(query_rows), AT(key_rows),",
        "AT(key_rows), AT(query_rows),",
        HEADS,
        "emulator",
    ),
    product(
        "the residual with the output's strides",
        "extents.stride[plan->dims[1]] = of->strides[1];",
        "extents.stride[plan->dims[1]] = "
        "of == &matrices[2] ? matrices[3].strides[1] + 16 : of->strides[1];",
        PRODUCT,
        "out-of-bounds",
    ),
    product(
        "alpha and beta swapped",
        "values->alpha = (float)args->alpha;",
        "values->alpha = (float)args->beta;",
        PRODUCT,
        "numbers",
    ),
    product(
        "no beta",
        "? 0.0f : (float)args->beta;",
        "? 0.0f : 0.0f;",
        PRODUCT,
        "numbers",
    ),
    product(
        "the same matrix for the whole batch",
        "extents.stride[DIM_BATCH] = of->strides[0];",
        "extents.stride[DIM_BATCH] = of == &matrices[1] ? 0 : of->strides[0];",
        PRODUCTS,
        "numbers",
    ),
    product(
        "k one element short",
        "extents.extent[DIM_K] = args->k;",
        "extents.extent[DIM_K] = args->k - 1;",
        PRODUCT,
        "numbers",
    ),
    product(
        "one tile too few",
        "values->num_tiles = (int32_t)schedule.num_tiles;",
        "values->num_tiles = (int32_t)schedule.num_tiles - 1;",
        WIDE,
        "unwritten",
    ),
    product(
        "one row of tiles",
        "values->row_tiles = (int32_t)schedule.row_tiles;",
        "values->row_tiles = 1;",
        WIDE,
        "unwritten",
    ),
    product(
        "no rows of tiles in a group",
        "values->group_rows = (int32_t)schedule.group_rows;",
        "values->group_rows = 0;",
        WIDE,
        "negative coordinates",
    ),
    product(
        "a cluster too few",
        "packed->grid = (uint32_t)schedule.grid;",
        "packed->grid = (uint32_t)schedule.grid - 2;",
        TALL,
        "unwritten",
        kernel="dynamic",
    ),
    product(
        "a cluster too many",
        "packed->grid = (uint32_t)schedule.grid;",
        "packed->grid = (uint32_t)schedule.grid + 2;",
        TALL,
        "emulator",
        kernel="dynamic",
    ),
    product(
        "half a cluster",
        "packed->grid = (uint32_t)schedule.grid;",
        "packed->grid = (uint32_t)schedule.grid + 1;",
        TALL,
        "invalid cluster size",
        kernel="dynamic",
    ),
    attention(
        "scales of keys and values swapped",
        "values->key_descale = args->key_descale;",
        "values->key_descale = args->value_descale;",
        TINY,
        "numbers",
        kernel="scaled",
    ),
    attention(
        "tiles for the rows of one head",
        SIZED + PLANNED,
        f"{SIZED}size.query_rows /= 4; {PLANNED} size.query_rows *= 4;",
        TILES_OF_FOUR,
        "unwritten",
        kernel="heads",
    ),
    attention(
        "tiles for every fourth of the tiles' heads",
        SIZED + PLANNED,
        f"{SIZED}size.query_heads /= 4; {PLANNED} size.query_heads *= 4;",
        TILES_OF_FOUR,
        "unwritten",
        kernel="heads",
    ),
    attention(
        "heads behind rows in the map",
        "TRY(encode_map(plan, address, &extents, plan->promotion, packed));",
        "{ map_plan other = *plan; if (i == 0) { other.dims[1] = plan->dims[2]; "
        "other.dims[2] = plan->dims[1]; } "
        "TRY(encode_map(&other, address, &extents, plan->promotion, packed)); }",
        TILES_OF_FOUR,
        "numbers",
        kernel="heads",
    ),
)


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        *(("softmax", case) for case in (TINY, HEADS, BATCHES, TILES, PAIRS, FULL, SCALE)),
        *(("product", case) for case in (PRODUCT, PRODUCTS, WIDE)),
        ("dynamic", TALL),
        ("heads", TILES_OF_FOUR),
        ("scaled", TINY),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_the_launcher_as_it_is_passes(builds: Builds, kernel: str, case: NamedCase) -> None:
    assert builds.refusals(kernel, case) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.kernel}-{mutant.name}")
def test_a_wrong_launcher_is_refused(builds: Builds, mutant: Mutant) -> None:
    found = builds.refusals(mutant.kernel, mutant.case, mutant.edit)
    assert found, "it passes"
    assert mutant.refused in "\n".join(found)
