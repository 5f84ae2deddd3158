from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.buffers import GUARD_BYTES
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.memory import place, read_out
from fa4gen.verify.inputs import make_rng
from fa4gen.verify.rounding import POISON_BITS, from_bits

CASE = GemmCase("c", 13, 21, 9, batch=3)


def laid_out(plan, case=CASE):
    inputs = make_inputs(case, plan, make_rng(1, "c"))
    return inputs, place(case, inputs, plan)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("majors", [("k", "k"), ("m", "n"), ("m", "k")], ids="".join)
def test_tensors_lie_as_the_launcher_wants_them(make_plan, majors, padded) -> None:
    plan = make_plan(a_major=majors[0], b_major=majors[1], residual="matrix")
    case = GemmCase("c", 13, 21, 9, batch=3, padded=padded)
    inputs, memory = laid_out(plan, case)
    contiguous = {"a": 2 if majors[0] == "k" else 1, "b": 1 if majors[1] == "k" else 2}
    for name, view in memory.views.items():
        axis = contiguous.get(name, 2)
        assert view.strides[axis] == 2
        assert all(s % 16 == 0 for i, s in enumerate(view.strides) if i != axis)
        assert view.offset % 32 == (16 if padded else 0)
        assert view.offset >= GUARD_BYTES
    for name in ("a", "b", "c"):
        view = memory.views[name]
        found = from_bits(view.bits(memory.buffers[name]), view.dtype)
        assert np.array_equal(found, getattr(inputs, name))
        # Padding between the elements is NaN.
        image = from_bits(memory.buffers[name].view(np.uint16), view.dtype)
        assert np.isfinite(image).sum() == found.size


def test_padded_axes_of_one_element_have_odd_strides(make_plan) -> None:
    plan = make_plan(a_major="m", residual="matrix")
    inputs, memory = laid_out(plan, GemmCase("c", 1, 21, 1, batch=1, padded=True))
    odd = {"a": {0, 2}, "b": {0}, "c": {0, 1}, "out": {0, 1}}  # m is contiguous in A, k in B
    for name, axes in odd.items():
        strides = memory.views[name].strides
        assert {axis for axis, stride in enumerate(strides) if stride % 16 == 14} == axes, name
    for name in ("a", "b", "c"):
        view = memory.views[name]
        found = from_bits(view.bits(memory.buffers[name]), view.dtype)
        assert np.array_equal(found, getattr(inputs, name))


def test_the_output_is_poisoned_and_guarded_up_to_whole_chunks(make_plan) -> None:
    _, memory = laid_out(make_plan())
    view = memory.views["out"]
    assert (view.bits(memory.buffers["out"]) == POISON_BITS["bf16"]).all()
    assert np.isnan(read_out(memory, memory.buffers)).all()
    # 21 columns of 2 bytes: TMA may write 48 bytes of each row.
    assert (~memory.outside("out")).sum() == 3 * 13 * 48


def test_what_is_shared_or_has_no_batch_has_an_axis_less(make_plan) -> None:
    plan = make_plan(residual="row")
    _, memory = laid_out(plan, GemmCase("c", 13, 21, 9, batch=3, shared=("b", "c")))
    shapes = {name: view.shape for name, view in memory.views.items()}
    assert shapes == {"a": (3, 13, 9), "b": (9, 21), "c": (21,), "out": (3, 13, 21)}
    _, memory = laid_out(plan, GemmCase("c", 13, 21, 9))
    shapes = {name: view.shape for name, view in memory.views.items()}
    assert shapes == {"a": (13, 9), "b": (9, 21), "c": (21,), "out": (13, 21)}
    assert read_out(memory, memory.buffers).shape == (1, 13, 21)


def test_in_place_the_output_begins_as_c(make_plan) -> None:
    inputs, memory = laid_out(make_plan(residual="matrix"), GemmCase("c", 13, 21, 9, in_place=True))
    assert memory.views["c"] == memory.views["out"]
    assert np.array_equal(read_out(memory, memory.buffers), inputs.c)


def test_no_rows_at_all(make_plan) -> None:
    _, memory = laid_out(make_plan(), GemmCase("c", 0, 21, 9))
    assert read_out(memory, memory.buffers).shape == (1, 0, 21)
