"""Checks of the tensors that a config declares, and of lists of the blocks of keys to walk."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_parameters import GIVEN_BLOCKS
from fa4gen.errors import Problem
from fa4gen.masks.block_lists import BLOCK_LISTS, ListSizes, list_shapes
from fa4gen.runtime.float32_arguments import check_words
from fa4gen.runtime.refusal import unwanted, wrong, wrong_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.runtime.tensor_view import TensorView

ALIGNMENTS = {"block_ranges": 16, "row_keys": 8}
"""Alignments in bytes: the sizes of single loads."""
AXES = {
    "block_ranges": "(batch or 1, query heads or 1, tiles, 6, 2)",
    "block_entries": "(entries)",
    "row_keys": "(batch or 1, query heads or 1, query rows, 2)",
}
DTYPES = {"fp32": "float32", "int32": "int32"}


KEYWORDS = (
    "out", "lse", "softmax_scale", "layout", "query_descale", "key_descale", "value_descale",
    "sinks", "query_offsets", "key_offsets", "key_lengths", "page_table", "workspace",
)  # fmt: skip
"""The arguments of every call after query, key and value; tensors that a config declares are
added."""
OF_THE_CONFIG = {
    "causal": "mask: causal",
    "is_causal": "mask: causal",
    "attn_mask": "a mask of the config, such as mask: causal",
    "mask": "a mask of the config, such as mask: causal",
    "window": "mask: {sliding_window: N}",
    "window_size": "mask: {sliding_window: N}",
    "softcap": "softcap: X",
    "alibi_slopes": "score: alibi",
    "bias": "score: {relative_bias: N}",
}
"""Arguments of calls in other libraries that are keys of a config here."""


def check_names(plan: AttentionPlan, given: Iterable[str]) -> Iterator[Problem]:
    """Find arguments that no kernel of this plan takes, whatever they are."""
    known = {tensor.name for tensor in plan.named_tensors} | set(BLOCK_LISTS) | set(GIVEN_BLOCKS)
    for name in given:
        if name in known:
            continue
        nearest = get_close_matches(name, [*KEYWORDS, *known], n=1)
        if name in OF_THE_CONFIG:
            remedy = f"a kernel is generated for it: write {OF_THE_CONFIG[name]} in its config"
        elif nearest:
            remedy = f"Did you mean {nearest[0]}?"
        else:
            declared = ", ".join(tensor.name for tensor in plan.named_tensors)
            remedy = f"its parameters are {declared}" if declared else "it has no parameters"
        yield Problem(f"{name}: this kernel has no argument of that name", remedy, key=name)


def check_declared(
    plan: AttentionPlan,
    given: dict[str, TensorView | None],
    query: TensorView,
    key: TensorView,
    sequences: int | None,
) -> list[Problem]:
    """Check the tensors by name; query and key are (batch, rows, heads, depth).

    ``sequences``: the batch, None where a ragged batch's offsets do not say it. The tensors'
    contents are on the GPU and are not checked.
    """
    declared = {tensor.name: tensor for tensor in plan.named_tensors}
    extents = {
        "batch": 0 if sequences is None else sequences,
        "query_heads": query.shape[2],
        "key_heads": key.shape[2],
        "rows": query.shape[1],
        "keys": key.shape[1],
    }
    problems: list[Problem] = []
    if plan.lists_blocks:
        problems += _check_lists(plan, given, query, key)
        given = {name: view for name, view in given.items() if name not in BLOCK_LISTS}
    if plan.takes_blocks:
        problems += _check_given_blocks(plan, given, query, key, sequences)
        given = {name: view for name, view in given.items() if name not in GIVEN_BLOCKS}
    problems += check_names(plan, given)
    for name in given:
        if name in BLOCK_LISTS or name in GIVEN_BLOCKS:
            words = "its own lists" if plan.takes_blocks or plan.lists_blocks else "blocks: walked"
            problems.append(unwanted(name, f"this kernel was generated with {words}"))
    for name, tensor in declared.items():
        shape = tuple(extents[one] if isinstance(one, str) else one for one in tensor.shape)
        view, axes = given.get(name), f"({tensor.axes})"
        if sequences is None and view is not None and len(view.shape) == len(shape):
            shape = tuple(
                got if one == "batch" else extent
                for one, extent, got in zip(tensor.shape, shape, view.shape, strict=True)
            )
        if view is None:
            problems.append(wrong(name, "nothing", f"{DTYPES[tensor.dtype]} {axes} = {shape}"))
        else:
            problems += check_words(name, view, query.device, shape, axes, DTYPES[tensor.dtype])
    return problems


def list_sizes(plan: AttentionPlan, query: tuple[int, ...], key: tuple[int, ...]) -> ListSizes:
    """Return the sizes that a plan's lists depend on, for shapes (batch, rows, heads, depth)."""
    return ListSizes(
        batch=query[0],
        query_heads=query[2],
        key_heads=key[2],
        query_rows=query[1],
        key_rows=key[1],
        tile_rows=plan.BM,
        part_rows=plan.part_rows,
        block_keys=plan.BN,
    )


def _check_lists(
    plan: AttentionPlan, given: dict[str, TensorView | None], query: TensorView, key: TensorView
) -> Iterator[Problem]:
    shapes = list_shapes(plan.mask, list_sizes(plan, query.shape, key.shape))
    remedy = "make the lists of this call by the kernel's list_blocks"
    for name, axes in AXES.items():
        view = given.get(name)
        if view is None:
            wanted = f"int32 {axes}" + (f" = {shapes[name]}" if name in shapes else "")
            yield wrong(name, "nothing", wanted, remedy)
            continue
        any_length = view.shape if len(view.shape) == 1 else (0,)
        yield from check_words(
            name, view, query.device, shapes.get(name, any_length), axes, "int32"
        )
        yield from wrong_address(name, view.pointer, ALIGNMENTS.get(name, 1))


def _check_given_blocks(
    plan: AttentionPlan,
    given: dict[str, TensorView | None],
    query: TensorView,
    key: TensorView,
    sequences: int | None,
) -> Iterator[Problem]:
    """Check the lists of a call that names its blocks; only the GPU knows what is in them."""
    blocks = plan.config.given_blocks
    assert blocks is not None
    heads = query.shape[2] if blocks.heads == "query" else key.shape[2]
    of_head = -(-query.shape[1] // blocks.rows)
    wanted = {
        "block_offsets": f"(batch * {blocks.heads} heads * blocks of {blocks.rows} query rows + 1)",
        "block_indices": "(entries)",
    }
    for name, axes in wanted.items():
        view = given.get(name)
        if view is None:
            yield wrong(name, "nothing", f"int32 {axes}", "make both by fa4gen.given_blocks")
            continue
        shape = view.shape if len(view.shape) == 1 else (0,)
        if name == "block_offsets" and not plan.is_ragged:
            shape = (query.shape[0] * heads * of_head + 1,)
        yield from check_words(name, view, query.device, shape, axes, "int32")
        most = heads * (of_head + (sequences or 0)) + 1
        if name == "block_offsets" and plan.is_ragged and not 0 < shape[0] <= most:
            yield wrong(name, f"{shape[0]} offsets", f"1 to {most}")
