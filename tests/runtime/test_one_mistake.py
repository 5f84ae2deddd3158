"""One mistake in a call is one line: no other check complains about what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.tensor_view import TensorView

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

GAP = 1 << 32
SIZES = {"int32": 4, "float32": 4, "int64": 8, "float64": 8, "bfloat16": 2, "uint8": 1}
BASE = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128, "sinks": True}
PLANS = {
    "ragged": build_plan(load_mapping({**BASE, "batching": "ragged"}, "probe").config),
    "paged": build_plan(
        load_mapping(
            {**BASE, "keys": "paged", "page_size": 16, "pack_heads": True, "kv_dtype": "fp8_e4m3"},
            "probe",
        ).config
    ),
    "declared": build_plan(
        load_mapping({**BASE, "score": "alibi", "mask": "documents"}, "probe").config
    ),
}


def array(at: int, shape: tuple[int, ...], dtype: str = "bfloat16") -> TensorView:
    """A contiguous view."""
    strides, size = [], SIZES[dtype]
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return TensorView(at * GAP, shape, tuple(reversed(strides)), dtype, 0)


def as_dtype(view: TensorView, dtype: str) -> TensorView:
    """The view of an array of another type."""
    return array(view.pointer // GAP, view.shape, dtype)


def good(kind: str) -> Arguments:
    """Arguments without a mistake."""
    sinks = array(9, (8,), "float32")
    if kind == "ragged":
        return Arguments(
            array(1, (100, 8, 128)), array(2, (70, 2, 128)), array(3, (70, 2, 128)),
            array(4, (100, 8, 128)), array(5, (8, 100), "float32"), 0.1, "bshd",
            sinks=sinks, query_offsets=array(6, (6,), "int32"), key_offsets=array(7, (6,), "int32"),
        )  # fmt: skip
    operands = array(1, (5, 1, 8, 128)), array(4, (5, 1, 8, 128)), array(5, (5, 8, 1), "float32")
    query, out, lse = operands
    if kind == "paged":
        cache = (array(2, (9, 16, 2, 128), "uint8"), array(3, (9, 16, 2, 128), "uint8"))
        return Arguments(
            query, *cache, out, lse, 0.1, "bshd", sinks=sinks,
            key_descale=array(10, (5, 2), "float32"), value_descale=array(11, (5, 2), "float32"),
            key_lengths=array(12, (5,), "int32"), page_table=array(13, (5, 3), "int32"),
            workspace=array(14, (1 << 24,), "int32"),
        )  # fmt: skip
    keys = (array(2, (5, 70, 2, 128)), array(3, (5, 70, 2, 128)))
    tensors = (("document", array(15, (5, 70), "int32")), ("slope", array(16, (8,), "float32")))
    return Arguments(query, *keys, out, lse, 0.1, "bshd", sinks=sinks, tensors=tensors)


def lines(plan: AttentionPlan, arguments: Arguments) -> list[str]:
    """Return the messages of a refusal."""
    with pytest.raises(ArgumentError) as caught:
        check_arguments(plan, arguments)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("kind", PLANS)
def test_the_arguments_without_a_mistake_are_taken(kind) -> None:
    check_arguments(PLANS[kind], good(kind))


SMALL = ("lse", "sinks", "key_descale", "value_descale", "query_offsets", "key_offsets",
         "key_lengths", "page_table", "workspace", "document", "slope")  # fmt: skip


def small_arrays(kind: str) -> dict[str, TensorView]:
    """The arrays of a call beside its tensors, by name."""
    arguments = good(kind)
    named = {**arguments._asdict(), **dict(arguments.tensors)}
    return {name: named[name] for name in SMALL if isinstance(named.get(name), TensorView)}


def with_array(kind: str, name: str, view: TensorView | None) -> Arguments:
    """The arguments with one other array."""
    arguments = good(kind)
    if name in dict(arguments.tensors):
        tensors = {**dict(arguments.tensors), name: view}
        return arguments._replace(tensors=tuple(tensors.items()))
    more: dict[str, Any] = {name: view}
    return arguments._replace(**more)


EACH = [(kind, name) for kind in PLANS for name in small_arrays(kind)]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_elements_of_8_bytes_are_one_line(kind, name) -> None:
    view = small_arrays(kind)[name]
    wide = view.dtype.replace("32", "64")
    found = lines(PLANS[kind], with_array(kind, name, as_dtype(view, wide)))
    assert [line.partition(":")[0] for line in found] == [name]
    assert f", got {wide}" in found[0]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_memory_of_the_cpu_is_one_line(kind, name) -> None:
    """NumPy's arrays have no address and no strides here."""
    view = small_arrays(kind)[name]
    host = view._replace(pointer=0, strides=(0,) * len(view.shape), device=-1)
    found = lines(PLANS[kind], with_array(kind, name, host))
    assert found == [f"{name}: expected memory of a CUDA device, got memory of the CPU"]


@pytest.mark.parametrize("kind", PLANS)
def test_a_query_on_the_cpu_is_one_line(kind) -> None:
    arguments = good(kind)
    found = lines(PLANS[kind], arguments._replace(query=arguments.query._replace(device=-1)))
    assert found == ["query: expected memory of a CUDA device, got memory of the CPU"]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_another_gpu_is_one_line(kind, name) -> None:
    view = small_arrays(kind)[name]._replace(device=1)
    found = lines(PLANS[kind], with_array(kind, name, view))
    assert found == [f"{name}: expected the query's device, 0, got device 1"]
