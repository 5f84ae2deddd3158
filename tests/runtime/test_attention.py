"""The launcher as far as it goes without a GPU: parameters, and refusals before any launch."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import AttentionKernel, scalar_values
from fa4gen.runtime.schedule import plan_schedule
from tests.runtime.views import array, make_plan, packed_values


def plan_of(**keys):
    return make_plan(depth=64, **keys)


def checked_arguments(plan):
    lse = array((2, 8, 100), 5, "float32") if plan.lse else None
    queries, keys = (2, 100, 8, 64), (2, 70, 2, 64)
    tensors = [array(shape, at) for at, shape in enumerate((queries, keys, keys, queries), 1)]
    return check_arguments(plan, Arguments(*tensors, lse, 0.125, "bshd"))


@pytest.mark.parametrize("scheduler", ["static", "dynamic"])
@pytest.mark.parametrize("epilogue", ["direct", "tma_store"])
@pytest.mark.parametrize("softcap", [None, 30.0])
@pytest.mark.parametrize("lse", [False, True])
def test_every_parameter_of_every_plan_has_its_value(scheduler, epilogue, softcap, lse):
    plan = plan_of(
        scheduler=scheduler, epilogue=epilogue, overlap_epilogue=False, softcap=softcap, lse=lse
    )
    checked = checked_arguments(plan)
    schedule = plan_schedule(plan, checked.size, 132)
    values = packed_values(plan, {**scalar_values(checked, schedule), "tile_counter": 77})

    assert values["batch"] == 2
    assert values["query_heads"] == 8
    assert values["heads_per_key_head"] == 4
    assert values["query_rows"] == 100
    assert values["key_rows"] == 70
    assert values["tiles_per_head"] == schedule.tiles_per_head
    if epilogue == "direct":
        assert values["out"] == 4 << 32
        assert values["out_batch_stride"] == 100 * 8 * 64
        assert values["out_row_stride"] == 8 * 64
        assert values["out_head_stride"] == 64
    if lse:
        assert values["lse"] == 5 << 32
    if scheduler == "dynamic":
        assert values["tile_counter"] == 77
    if softcap is None:
        assert values["softmax_scale_log2"] == pytest.approx(0.125 * 1.4426950408889634)
    else:
        assert values["softmax_scale"] == 0.125


@pytest.mark.parametrize("call", ["__call__", "prepare"])
def test_arrays_of_the_cpu_are_refused(call):
    kernel = AttentionKernel(plan_of(dtype="fp16"), b"never loaded")
    array = np.zeros((1, 5, 2, 64), np.float16)
    with pytest.raises(ArgumentError) as caught:
        getattr(kernel, call)(array, array, array)
    assert [problem.message for problem in caught.value.problems] == [
        f"{name}: expected memory of a CUDA device, got memory of the CPU"
        for name in ("query", "key", "value")
    ]


def test_layout_and_scale_are_looked_at_first():
    kernel = AttentionKernel(plan_of(dtype="fp16"), b"never loaded")
    array = np.zeros((1, 5, 2, 64), np.float16)
    with pytest.raises(ArgumentError, match=r"^layout: "):
        kernel(array, array, array, layout="sbhd")
    with pytest.raises(ArgumentError, match=r"^softmax_scale: "):
        kernel(array, array, array, softmax_scale="wide")


def test_a_kernel_says_what_it_is():
    assert repr(AttentionKernel(plan_of(), b"")) == "AttentionKernel('probe', arch='sm_90a')"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("softmax_scal", "Did you mean softmax_scale?"),
        ("causal", "write mask: causal in its config"),
        ("window_size", "write mask: {sliding_window: N} in its config"),
        ("nonsense", "it has no parameters"),
    ],
)
def test_an_unknown_argument_is_refused_by_name_whatever_it_is(name, remedy):
    kernel = AttentionKernel(plan_of(), b"")
    for call in (kernel, kernel.prepare):
        with pytest.raises(ArgumentError, match=f"{name}: this kernel has no argument") as caught:
            call(None, None, None, **{name: 0.1})
        assert remedy in str(caught.value)
