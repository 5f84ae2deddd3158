"""One mistake in a call is one line: no other check complains about what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.tensor_view import TensorView
from tests.runtime.views import GAP, array, make_plan

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

PLANS = {
    "ragged": make_plan(sinks=True, batching="ragged"),
    "paged": make_plan(
        sinks=True, keys="paged", page_size=16, pack_heads=True, kv_dtype="fp8_e4m3"
    ),
    "declared": make_plan(sinks=True, score="alibi", mask="documents"),
}


def as_dtype(view: TensorView, dtype: str) -> TensorView:
    """The view of an array of another type."""
    return array(view.shape, view.pointer // GAP, dtype)


def good(kind: str) -> Arguments:
    """Arguments without a mistake."""
    sinks = array((8,), 9, "float32")
    if kind == "ragged":
        return Arguments(
            array((100, 8, 128), 1), array((70, 2, 128), 2), array((70, 2, 128), 3),
            array((100, 8, 128), 4), array((8, 100), 5, "float32"), 0.1, "bshd",
            sinks=sinks, query_offsets=array((6,), 6, "int32"), key_offsets=array((6,), 7, "int32"),
        )  # fmt: skip
    operands = array((5, 1, 8, 128), 1), array((5, 1, 8, 128), 4), array((5, 8, 1), 5, "float32")
    query, out, lse = operands
    if kind == "paged":
        cache = (array((9, 16, 2, 128), 2, "uint8"), array((9, 16, 2, 128), 3, "uint8"))
        return Arguments(
            query, *cache, out, lse, 0.1, "bshd", sinks=sinks,
            key_descale=array((5, 2), 10, "float32"), value_descale=array((5, 2), 11, "float32"),
            key_lengths=array((5,), 12, "int32"), page_table=array((5, 3), 13, "int32"),
            workspace=array((1 << 24,), 14, "int32"),
        )  # fmt: skip
    keys = (array((5, 70, 2, 128), 2), array((5, 70, 2, 128), 3))
    tensors = (("document", array((5, 70), 15, "int32")), ("slope", array((8,), 16, "float32")))
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
