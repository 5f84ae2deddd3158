"""Checks of the float32 arrays of a call: the log-sum-exp, the scales of fp8, and sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import unwanted, wrong, wrong_address, wrong_device

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

FLOAT32_BYTES = 4


def check_lse(plan: AttentionPlan, lse: TensorView | None, query: TensorView) -> list[Problem]:
    """Check the log-sum-exp against a query (batch, rows, heads, depth)."""
    if not plan.lse:
        if lse is None:
            return []
        return [unwanted("lse", "this kernel was generated with lse: false")]
    batch, rows, heads, _ = query.shape
    shape: tuple[int, ...] = (batch, heads, rows)
    axes = "(batch, query heads, query rows)"
    if plan.is_ragged:
        shape, axes = shape[1:], "(query heads, rows of all sequences)"
    if lse is None:  # none could be made for a query on the CPU, which is reported already
        return [wrong("lse", "nothing", f"float32 {shape}")] if query.device >= 0 else []
    return check_words("lse", lse, query.device, shape, axes, "float32")


def check_descales(
    plan: AttentionPlan,
    descales: dict[str, TensorView | None],
    query: TensorView,
    key: TensorView,
    sequences: int | None,
) -> list[Problem]:
    """Check the scales by argument name; query and key are (batch, rows, heads, depth).

    ``sequences``: how many there are, None where it is not known. Scales of pages are those of all
    pages of the cache; a query has none of these. The values of the scales are on the GPU and are
    not checked.
    """
    of_queries = "(sequences, key heads)" if plan.is_ragged else "(batch, key heads)"
    problems = []
    for name, view in descales.items():
        if view is None:
            continue
        tensor = name.removesuffix("_descale")
        if tensor not in plan.descaled:
            dtype = plan.dtype if tensor == "query" else plan.kv_dtype
            remedy = f"tensors of fp8_e4m3 take scales, and the {tensor} of this kernel is {dtype}"
            problems.append(unwanted(name, remedy))
        else:
            axes, count = of_queries, sequences
            if plan.has_page_scales and tensor != "query":
                axes, count = "(pages, key heads)", key.shape[0]
            batch = next(iter(view.shape), 0) if count is None else count
            shape = (batch, key.shape[2])
            problems += check_words(name, view, query.device, shape, axes, "float32")
    return problems


def check_sinks(plan: AttentionPlan, sinks: TensorView | None, query: TensorView) -> list[Problem]:
    """Check the sinks against a query (batch, rows, heads, depth).

    Their values are on the GPU and are not checked.
    """
    shape = (query.shape[2],)
    if not plan.sinks:
        if sinks is None:
            return []
        return [unwanted("sinks", "this kernel was generated with sinks: false")]
    if sinks is None:
        return [wrong("sinks", "nothing", f"float32 (query heads) = {shape}")]
    return check_words("sinks", sinks, query.device, shape, "(query heads)", "float32")


def check_words(
    name: str, view: TensorView, device: int, shape: tuple[int, ...], axes: str, dtype: str
) -> list[Problem]:
    """Check a contiguous array of elements of 4 bytes."""
    problems = list(wrong_device(name, view.device, device))
    if view.device < 0:  # its address and strides are not known
        return problems
    if view.dtype != dtype:
        problems.append(wrong(name, view.dtype, dtype))
    if view.shape != shape:
        problems.append(wrong(name, f"shape {view.shape}", f"{axes} = {shape}"))
    elif view.dtype == dtype and not _is_contiguous(view.shape, view.strides):
        problems.append(wrong(name, f"strides of {view.strides} bytes", "a contiguous array"))
    problems += wrong_address(name, view.pointer, FLOAT32_BYTES)
    return problems


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:
        return True
    expected = FLOAT32_BYTES
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True
