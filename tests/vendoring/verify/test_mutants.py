"""Launchers with one mistake each are refused, by the numbers or by the emulator's checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from fa4gen.verify.cases import Case
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.merge.case import MergeCase
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.conftest import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.verify.verdict import NamedCase
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

TINY = Case("tiny", 1, 1, 1, 40, 40)
ONES = Case("ones", 1, 1, 1, 40, 40, "padded")
HEADS = Case("heads", 1, 2, 1, 5, 70, "padded")
BATCHES = Case("batches", 2, 1, 1, 33, 40, "padded")
FAR = Case("far", 2, 2, 2, 5, 40, far=True)
TILES = Case("tiles", 1, 1, 1, 225, 20)
FULL = Case("full", 1, 1, 1, 192, 40)
TILES_OF_FOUR = Case("of_four", 2, 8, 2, 60, 70, "padded")
SCALE = Case("scale", 1, 1, 1, 40, 40, softmax_scale=0.5)
PRODUCT = GemmCase("product", 33, 24, 40, padded=True)
PRODUCTS = GemmCase("products", 20, 40, 24, batch=2)
WIDE = GemmCase("wide", 70, 136, 16)
TALL = GemmCase("tall", 300, 40, 16)
SCALED = GemmCase("scaled", 33, 140, 300, batch=2, padded=True)
SCALED_ONCE = GemmCase("scaled_once", 33, 140, 130, batch=2, shared=("b",))
FAR_SCALES = GemmCase("far", 33, 140, 300, batch=2, far=True)
GROUPS = GemmCase("groups", 70, 40, 136, batch=4, padded=True, counts=(70, 0, 3, 20), apart=(3, 5))
TALL_GROUPS = GemmCase(
    "tall", 130, 300, 136, batch=4, padded=True, counts=(130, 0, 3, 129), apart=(3, 5)
)
GATED_GROUPS = GemmCase("gated", 70, 128, 136, batch=4, padded=True, counts=(70, 0, 3, 20))
QUANTISED = GemmCase("quantised", 33, 300, 72, batch=2, padded=True)
DIVIDED = GemmCase("divided", 70, 40, 0, batch=4, padded=True, counts=(70, 0, 3, 20), apart=(3, 5))
RAGGED = Case("ragged", 3, 2, 1, 40, 60, lengths=((5, 20), (40, 60), (3, 33)))
ROWS = Case("rows", 2, 1, 1, 140, 20, lengths=((140, 20), (140, 20)))
PAGED = Case("paged", 2, 2, 1, 5, 33, lengths=((5, 33), (5, 20)))
PIECES = Case("pieces", 1, 2, 1, 1, 1000, multiprocessors=4)
LONG = Case("long", 1, 2, 1, 1, 5000, multiprocessors=4)
SHARED = Case("shared", 2, 4, 2, 3, 300, "padded", multiprocessors=3)
SPLITS = Case("splits", 2, 2, 1, 1, 700, lengths=((1, 700), (1, 300)), multiprocessors=3)
PAGES = Case("pages", 2, 4, 2, 1, 90, "padded", lengths=((1, 90), (1, 33)), multiprocessors=3)
KEYS = Case("keys", 2, 4, 2, 70, 130)
PARTS = MergeCase("parts", 3, 35, 3, batch=2, lse="empty", padded=True)
OVER_A_PART = MergeCase("over", 3, 11, 2, batch=2, lse="empty", in_place=1)
NO_PARTS = MergeCase("none", 0, 5, 2)

DEPENDENT = "add_attribute(&config, attributes, PROGRAMMATIC_STREAM_SERIALIZATION);"

SOUND: dict[str, tuple[NamedCase, ...]] = {
    "softmax": (TINY, HEADS, BATCHES, TILES, FULL, SCALE),
    "heads": (TILES_OF_FOUR,),
    "product": (PRODUCT, PRODUCTS, WIDE),
    "dynamic": (TALL,),
    "scaled": (TINY,),
    "ragged": (RAGGED, ROWS),
    "paged": (PAGED,),
    "decode": (PIECES, SHARED),
    "splits": (SPLITS,),
    "scaled_keys": (SHARED,),
    "scaled_pages": (PAGES,),
    "prefilled_pages": (PAGES,),
    "by_blocks": (SCALED, SCALED_ONCE, FAR_SCALES),
    "offset_groups": (GROUPS,),
    "masked_blocks": (GROUPS,),
    "gathered_groups": (GROUPS,),
    "gathered_blocks": (SCALED,),
    "masked_index": (GROUPS,),
    "scattered_rows": (GROUPS,),
    "scattered_blocks": (GROUPS,),
    "quantised_rows": (QUANTISED,),
    "quantised_groups": (GATED_GROUPS,),
    "quantised_fours": (QUANTISED,),
    "gated_fours": (GATED_GROUPS,),
    "quantised_atoms": (QUANTISED, TALL),
    "atoms_of_offsets": (GROUPS, TALL_GROUPS),
    "atoms_of_fours": (GROUPS, TALL_GROUPS),
    "atoms_of_masked": (GROUPS, TALL_GROUPS),
    "sums_by_group": (DIVIDED,),
    "largest_of_all": (PRODUCTS,),
    "largest_of_groups": (GROUPS,),
    "largest_of_blackwell": (GROUPS,),
    "by_columns": (SCALED, SCALED_ONCE),
    "arranged": (SCALED, SCALED_ONCE),
    "fours": (SCALED,),
    "row_major": (SCALED, SCALED_ONCE),
    "merged": (PARTS, OVER_A_PART, NO_PARTS),
    "merged_floats": (PARTS, NO_PARTS),
    "last_step": (PARTS, OVER_A_PART),
    "sinking": (KEYS,),
    "sloping": (KEYS,),
    "documents": (KEYS,),
    "listed_documents": (KEYS,),
    "blocks": (KEYS,),
}
"""Cases that each kernel passes."""
ATTENTION, PRODUCTS_OF = "/* ---- A call of an attention kernel", "/* ---- A call of a matrix"
ZEROING = "driver.cuMemsetD8Async((uint64_t)(uintptr_t)workspace, 0, bytes, stream)"
GRID = "packed->grid = (uint32_t)schedule.grid;"
SIZED = "size = get_size(kernel, args);\n  "
PLANNED = "plan_attention(kernel, &size, device.multiprocessors, &schedule);"
GIVEN = "args->tensors, sizeof packed->values.attention.given);"
ROW_STRIDE = "values->out_row_stride = args->out.row_stride;"
PREPARED = "packed.mark = mark();\n  memcpy(prepared->words, &packed, sizeof packed);"


class Mutant(NamedTuple):
    """``refused`` is in the words of verify for the kernel and the case."""

    name: str
    refused: str
    old: str
    new: str
    anchor: str = ""
    """Text of the launcher before ``old``, which is there more than once."""


MUTANTS: dict[tuple[str, NamedCase], tuple[Mutant, ...]] = {
    ("softmax", TINY): (
        Mutant("a map one row long", "out-of-bounds", "is_empty(of) ? 1 : of->extents[dim];",
               "is_empty(of) ? 1 : of->extents[dim] + (dim == DIM_ROW);"),
        Mutant("lse dropped", "emulator", "values->lse = args->lse;", "values->lse = NULL;"),
        Mutant("the tile counter elsewhere", "out-of-bounds",
               "values->tile_counter = args->workspace;",
               "values->tile_counter = (char *)args->workspace + args->workspace_bytes - 4;"),
        Mutant("workspace not zeroed", "workspace", ZEROING,
               f"0 * {ZEROING.replace('bytes', '0')}"),
        Mutant("workspace filled with something else", "workspace", ZEROING,
               ZEROING.replace(" 0,", " 1,")),
        Mutant("more than the workspace zeroed", "cuMemsetD8Async of 33 bytes", ZEROING,
               ZEROING.replace("bytes", "bytes + 1")),
        Mutant("another stream", "on the streams 0x0", "config.stream = stream;",
               "config.stream = NULL;"),
        Mutant("half of the shared memory", "emulator",
               "config.dynamic_shared_bytes = kernel->dynamic_shared_bytes;",
               "config.dynamic_shared_bytes = kernel->dynamic_shared_bytes / 2;"),
        Mutant("the shared memory is not asked for", "refused the call",
               "(int)kernel->dynamic_shared_bytes, *function, device)",
               "49152, *function, device)"),
        Mutant("a prepared launch forgets its last values", "emulator", PREPARED,
               PREPARED.replace("sizeof packed", "offsetof(packed_launch, values) + 512")),
        Mutant("the graph of one forgets its last values", "emulator",
               "    status = enqueue(&packed, stream);\n",
               "    memset((char *)&packed.values + 512, 0, sizeof packed.values - 512);\n"
               "    status = enqueue(&packed, stream);\n"),
        Mutant("less workspace than the kernel uses", "out-of-bounds", "32, /* workspace bytes */",
               "4, /* workspace bytes */", '"softmax",'),
        Mutant("no swizzle", "numbers", "AT(key_map), 9, 3, ", "AT(key_map), 9, 0, ",
               '"softmax",'),
    ),
    ("softmax", HEADS): (
        Mutant("swapped strides", "numbers", "extents.stride[dim] = of->strides[dim]; ",
               "extents.stride[dim] = of->strides[dim ? 3 - dim : 0]; "),
        Mutant("query_rows and key_rows swapped", "emulator",
               "values->query_rows = (int32_t)size->query_rows;",
               "values->query_rows = (int32_t)size->key_rows;"),
        Mutant("the output's head stride as its row stride", "race", ROW_STRIDE,
               ROW_STRIDE.replace("out.row", "out.head")),
    ),
    ("softmax", FAR): (
        Mutant("a stride of the output of 32 bits", "", ROW_STRIDE,
               ROW_STRIDE.replace("= ", "= (int32_t)")),
        Mutant("strides of tensor maps of 32 bits", "",
               "view->strides[i] = strides[i] * element_bytes;",
               "view->strides[i] = (int32_t)(strides[i] * element_bytes);"),
    ),
    ("softmax", ONES): (
        Mutant("strides of axes with one element looked at", "refused the call",
               "if (extents[i] <= 1) continue;", "if (extents[i] < 1) continue;"),
    ),
    ("softmax", SCALE): (
        Mutant("the default softmax scale for all", "numbers",
               "args->softmax_scale == 0 ? kernel->default_scale : args->softmax_scale",
               "kernel->default_scale"),
    ),
    ("softmax", TILES): (
        Mutant("one tile too few", "unwritten", "values->num_tiles = (int32_t)schedule->num_tiles;",
               "values->num_tiles = (int32_t)schedule->num_tiles - 1;"),
    ),
    ("softmax", FULL): (
        Mutant("a warpgroup is missing", "emulator", "config.block_x = kernel->threads;",
               "config.block_x = kernel->threads - 128;"),
    ),
    ("heads", TILES_OF_FOUR): (
        Mutant("tiles for the rows of one head", "unwritten", SIZED + PLANNED,
               f"{SIZED}size.query_rows /= 4; {PLANNED} size.query_rows *= 4;"),
    ),
    ("by_blocks", SCALED): (
        Mutant("the scales of the first batch for all", "numbers",
               "step_of(&views[0], 0, a->batch_stride)", "0"),
        Mutant("strides of scales exchanged", "", "step_of(&views[0], 1, a->stride)",
               "step_of(&views[0], 1, a->k_stride)"),
        Mutant("the scales of A for B", "", "values->scale_b = b->data;",
               "values->scale_b = a->data;"),
        Mutant("a stride of scales in bytes", "", "step_of(&views[1], 1, b->stride)",
               "step_of(&views[1], 1, 4 * b->stride)"),
    ),
    ("arranged", SCALED): (
        Mutant("the atoms of A for B", "", "SCALE_B: return &scales[1]",
               "SCALE_B: return &scales[0]"),
        Mutant("atoms along k where those of rows are", "",
               "extents->extent[DIM_K_ATOMS] = of->extents[2]",
               "extents->extent[DIM_K_ATOMS] = of->extents[1]"),
        Mutant("the atoms of the first batch for all", "numbers",
               "extents.stride[DIM_BATCH] = of->strides[0];",
               "extents.stride[DIM_BATCH] = of->axes == 4 ? 0 : of->strides[0];"),
    ),
    ("fours", SCALED): (
        Mutant("maps of elements for maps of pairs", "",
               "extents.extent[DIM_K] = args->k / kernel->elements_per_byte",
               "extents.extent[DIM_K] = args->k"),
        Mutant("k in pairs", "numbers", "values->k = (int32_t)size.k;",
               "values->k = (int32_t)(size.k / kernel->elements_per_byte);"),
    ),
    ("offset_groups", GROUPS): (
        Mutant("the rows of the group after", "",
               "row_offsets = args->row_offsets;", "row_offsets = args->row_offsets + 1;"),
        Mutant("one group too few", "", "values->groups = (int32_t)args->batch",
               "values->groups = (int32_t)args->batch - 1"),
        Mutant("places end with the first row", "",
               "extents->extent[DIM_PLACE] = of->extents[1] + 1;",
               "extents->extent[DIM_PLACE] = 1;"),
    ),
    ("masked_blocks", GROUPS): (
        Mutant("A of the first group for all", "", "return has_offsets(kernel) ||", "return 1 ||"),
        Mutant("rows of the output do not end", "", "GROUP_WRAP - step;", "GROUP_WRAP;"),
    ),
    ("gathered_blocks", SCALED): (
        Mutant("one row of A too few", "numbers", "a_rows = (int32_t)args->a_rows;",
               "a_rows = (int32_t)args->a_rows - 1;"),
        Mutant("an index for all of the batch", "",
               "index->strides[0] / (int64_t)", "0 * (int64_t)"),
    ),
    ("scattered_rows", GROUPS): (
        Mutant("rows stored in the product's order", "", "out_index = args->out_index;",
               "out_index = args->row_offsets;"),
        Mutant("weights of the rows after", "", "row_weights = args->row_weights;",
               "row_weights = args->row_weights + 1;"),
        Mutant("rows of the output next to each other", "",
               "(int32_t)(out->strides[1] / ALIGNMENT)", "(int32_t)(args->n * 2 / ALIGNMENT)"),
        Mutant("one row of the output too few", "", ": (int32_t)args->out_rows;",
               ": (int32_t)args->out_rows - 1;"),
    ),
    ("quantised_rows", QUANTISED): (
        Mutant("scales of the first matrix for all", "",
               "step_of(&views[OF_OUT], 0, out->batch_stride)", "0"),
        Mutant("strides of the output's scales exchanged", "",
               "step_of(&views[OF_OUT], 1, out->stride)",
               "step_of(&views[OF_OUT], 1, out->k_stride)"),
        Mutant("blocks of scales on one another", "",
               "step_of(&views[OF_OUT], 2, out->k_stride)", "0"),
        Mutant("a map of C with elements of the output", "", "AT_GEMM(c_map), 9, ",
               "AT_GEMM(c_map), 0, ", '{ "quantised_rows"'),
    ),
    ("quantised_fours", QUANTISED): (
        Mutant("the scale of the output is the first of its blocks'", "",
               "out_tensor_scale = args->out_tensor_scale;",
               "out_tensor_scale = (const float *)args->scale_a.data;"),
        Mutant("a map of as many bytes as columns", "out-of-bounds",
               "extents.extent[DIM_N] /= kernel->out_elements_per_byte;", "{}"),
        Mutant("scales of all blocks on one another", "",
               "step_of(&views[OF_OUT], 2, out->k_stride)", "0"),
    ),
    ("quantised_atoms", QUANTISED): (
        Mutant("atoms of the first matrix for all", "",
               "step_of(&views[OF_OUT], 0, out->batch_stride)", "0"),
        Mutant("atoms of columns on one another", "",
               "step_of(&views[OF_OUT], 2, out->k_stride)", "0"),
        Mutant("a step to the next atom in words", "",
               "step_of(&views[OF_OUT], 2, out->k_stride)",
               "step_of(&views[OF_OUT], 2, out->k_stride / WORD_BYTES)"),
    ),
    ("quantised_atoms", TALL): (
        Mutant("atoms of rows on one another", "", "step_of(&views[OF_OUT], 1, out->stride)",
               "0"),
    ),
    ("atoms_of_offsets", TALL_GROUPS): (
        Mutant("groups begin no atoms", "", "rows / ATOM_ROWS + args->batch :",
               "rows / ATOM_ROWS :"),
        Mutant("a map of A's atoms with those of B", "", "SCALE_A: return &scales[0]",
               "SCALE_A: return &scales[1]"),
        Mutant("strides of atoms exchanged", "", "step_of(&views[OF_OUT], 1, out->stride)",
               "step_of(&views[OF_OUT], 1, out->k_stride)"),
    ),
    ("atoms_of_masked", GROUPS): (
        Mutant("atoms of the first group for all", "",
               "step_of(&views[OF_OUT], 0, out->batch_stride)", "0"),
    ),
    ("sums_by_group", DIVIDED): (
        Mutant("sums of the group after", "", "row_offsets = args->row_offsets;",
               "row_offsets = args->row_offsets + 1;"),
        Mutant("sums do not end with a group", "",
               "extents->stride[DIM_WRAP] = GROUP_WRAP - step;",
               "extents->stride[DIM_WRAP] = GROUP_WRAP;"),
        Mutant("one output for all groups", "", "return has_offsets(kernel) ? 1 : args->batch;",
               "return 1;"),
    ),
    ("largest_of_groups", GROUPS): (
        Mutant("the largest of the group after", "", "written.out_amax = args->out_amax;",
               "written.out_amax = args->out_amax + 1;"),
    ),
    ("by_blocks", SCALED_ONCE): (
        Mutant("a step from batch to batch of shared scales", "",
               "step_of(&views[1], 0, b->batch_stride)", "views[1].extents[2]"),
    ),
    ("product", PRODUCT): (
        Mutant("the residual with the output's strides", "out-of-bounds",
               "extents.stride[plan->dims[1]] = of->strides[1];",
               "extents.stride[plan->dims[1]] = "
               "of == &matrices[2] ? matrices[3].strides[1] + 16 : of->strides[1];"),
        Mutant("alpha and beta swapped", "numbers", "values->alpha = (float)args->alpha;",
               "values->alpha = (float)args->beta;"),
    ),
    ("product", PRODUCTS): (
        Mutant("the same matrix for the whole batch", "numbers",
               "extents.stride[DIM_BATCH] = of->strides[0];",
               "extents.stride[DIM_BATCH] = of == &matrices[1] ? 0 : of->strides[0];"),
    ),
    ("product", WIDE): (
        Mutant("no rows of tiles in a group", "negative coordinates",
               "values->group_rows = (int32_t)schedule.group_rows;", "values->group_rows = 0;"),
    ),
    ("dynamic", TALL): (
        Mutant("a cluster too many", "emulator", GRID, GRID.replace(";", " + 2;"), PRODUCTS_OF),
        Mutant("half a cluster", "invalid cluster size", GRID, GRID.replace(";", " + 1;"),
               PRODUCTS_OF),
    ),
    ("scaled", TINY): (
        Mutant("scales of keys and values swapped", "numbers",
               "values->key_descale = args->key_descale;",
               "values->key_descale = args->value_descale;"),
    ),
    ("ragged", RAGGED): (
        Mutant("rows are not taken back", "out-of-bounds", "] = WRAP - step;", "] = WRAP;"),
        Mutant("the list over the counter", "",
               "(uintptr_t)args->workspace + (uintptr_t)kernel->workspace_bytes",
               "(uintptr_t)args->workspace + 0 * (uintptr_t)kernel->workspace_bytes"),
        Mutant("a batch for each sequence's output", "refused the call",
               "const int packed = of_queries ? traits->query_offsets : traits->key_offsets;",
               "const int packed = of_queries ? 0 : traits->key_offsets;"),
        Mutant("no list", "expected 2", "if (kernel->list_entry != NULL) { /*", "if (0) { /*"),
        Mutant("a list that waits for the launch before", "is not dependent",
               "before.grid_x = 1;", "before.grid_x = 1;\n    before.attribute_count = 0;"),
        Mutant("the list on another stream", "on the streams 0x0", "before.grid_x = 1;",
               "before.grid_x = 1;\n    before.stream = NULL;"),
    ),
    ("ragged", ROWS): (
        Mutant("a list for half of the tiles", "unwritten",
               "values->max_tiles = (int32_t)schedule->tiles_per_head;",
               "values->max_tiles = (int32_t)schedule->tiles_per_head / 4;"),
    ),
    ("paged", PAGED): (
        Mutant("sinks of no head", "race", "values->sinks = args->sinks;",
               "values->sinks = args->lse;"),
        Mutant("a row of the page table one entry short", "",
               "values->page_table_stride = (int32_t)args->page_table_stride;",
               "values->page_table_stride = (int32_t)args->page_table_stride - 1;"),
        Mutant("keys of a page for those of a sequence", "numbers",
               "size.key_rows = args->most_pages * kernel->traits.page_size;",
               "size.key_rows = args->key_rows;"),
    ),
    ("decode", PIECES): (
        Mutant("workspace not zeroed", "", ZEROING, f"0 * {ZEROING.replace('bytes', '0')}"),
        Mutant("a launch that is not cooperative", "no cooperative one",
               "add_attribute(&config, attributes, COOPERATIVE);", ";"),
        Mutant("a launch that is not dependent", "is not dependent", DEPENDENT, ";"),
        Mutant("partial results over the tickets", "",
               "(char *)args->workspace + kernel->workspace_bytes",
               "(char *)args->workspace + 0 * kernel->workspace_bytes"),
        Mutant("room for partial results of one CTA", "out-of-bounds",
               "(shares > 1 ? shares : 1) * kernel->share_bytes;", "1 * kernel->share_bytes;"),
    ),
    ("decode", LONG): (
        Mutant("more CTAs than have room", "out-of-bounds", GRID, GRID.replace(";", " + 1;"),
               ATTENTION),
    ),
    ("splits", SPLITS): (
        Mutant("room for partial results of one split", "out-of-bounds",
               "schedule->num_tiles * kernel->share_bytes;", "1 * kernel->share_bytes;"),
        Mutant("lengths of the next sequence", "", "values->key_lengths = args->key_lengths;",
               "values->key_lengths = args->key_lengths + 1;"),
    ),
    ("scaled_keys", SHARED): (
        Mutant("strides in elements of the query", "", ": kernel->kv_element_bytes,",
               ": kernel->element_bytes,"),
    ),
    ("scaled_pages", PAGES): (
        Mutant("scales of keys for values", "", "values->value_descale = args->value_descale;",
               "values->value_descale = args->key_descale;"),
    ),
    ("merged", PARTS): (
        Mutant("a part too few", "numbers", "num_parts = (int32_t)args->num_parts;",
               "num_parts = (int32_t)args->num_parts - 1;"),
        Mutant("strides of rows and heads exchanged", "",
               "part_lse_head_stride = args->part_lse.head_stride;",
               "part_lse_head_stride = args->part_lse.row_stride;"),
        Mutant("the parts of the first batch for all", "numbers",
               "parts_batch_stride = args->parts.batch_stride;", "parts_batch_stride = 0;"),
        Mutant("a stride in bytes", "", "parts_row_stride = args->parts.row_stride;",
               "parts_row_stride = args->parts.row_stride * 2;"),
        Mutant("a CTA too few", "unwritten",
               "divide_up((int64_t)rows_to_merge(args), kernel->BM)",
               "((int64_t)rows_to_merge(args) / kernel->BM)"),
    ),
    ("merged", OVER_A_PART): (
        Mutant("parts are never overwritten", "refused the call",
               "return apart % step == 0 &&", "return 0 && apart % step == 0 &&"),
    ),
    ("last_step", PARTS): (
        Mutant("a log-sum-exp that nobody writes", "refused the call",
               "if (!kernel->traits.lse) return lse->data == NULL ?",
               "if (!kernel->traits.lse) return lse->data != NULL ?"),
    ),
    ("sinking", KEYS): (
        Mutant("a key too few", "numbers", "values->key_rows = (int32_t)size->key_rows;",
               "values->key_rows = (int32_t)size->key_rows - 1;"),
    ),
    ("documents", KEYS): (
        Mutant("the first tensor for the second", "", GIVEN,
               f"{GIVEN}\n  packed->values.attention.given[1] = args->tensors[0];"),
    ),
    ("listed_documents", KEYS): (
        Mutant("ranges for the keys of rows", "", GIVEN,
               f"{GIVEN}\n  packed->values.attention.given[3] = args->tensors[1];"),
    ),
}  # fmt: skip


def folder_of(kernel: str) -> str:
    """The name of the folder with a kernel."""
    (name,) = [name for name, kernels in FOLDERS.items() if kernel in kernels]
    return name


@pytest.mark.parametrize("kernel", SOUND)
def test_the_launcher_as_it_is_passes(build: Callable[[str], Builds], kernel: str) -> None:
    for case in SOUND[kernel]:
        assert build(folder_of(kernel)).refusals(kernel, case) == [], case.name


@pytest.mark.parametrize(
    ("kernel", "case", "mutant"),
    [(*key, mutant) for key, mutants in MUTANTS.items() for mutant in mutants],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_wrong_launcher_is_refused(
    build: Callable[[str], Builds], kernel: str, case: NamedCase, mutant: Mutant
) -> None:
    edit = Edit("src/launcher.c", mutant.old, mutant.new, mutant.anchor)
    found = build(folder_of(kernel)).refusals(kernel, case, edit)
    assert found, "it passes"
    assert mutant.refused in "\n".join(found)
