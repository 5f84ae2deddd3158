"""The launcher as far as it goes without a GPU: parameters, and refusals before any launch."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated
from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import AttentionKernel, scalar_values
from fa4gen.runtime.parameters import pack
from fa4gen.runtime.schedule import plan_schedule
from fa4gen.runtime.tensor_view import TensorView


def plan_of(**keys):
    config = {"kernel": "attention", "name": "probe", "arch": "sm_90a", "dtype": "bf16"}
    return build_plan(validated({**config, "depth": 64, **keys}))


def checked_arguments(plan):
    def tensor(rows, heads, pointer):
        strides = (rows * heads * 128, heads * 128, 128, 2)
        return TensorView(pointer, (2, rows, heads, 64), strides, "bfloat16", 0)

    lse = TensorView(5 << 32, (2, 8, 100), (3200, 400, 4), "float32", 0) if plan.lse else None
    return check_arguments(
        plan,
        Arguments(
            tensor(100, 8, 1 << 32), tensor(70, 2, 2 << 32), tensor(70, 2, 3 << 32),
            tensor(100, 8, 4 << 32), lse, 0.125, "bshd",
        ),
    )  # fmt: skip


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
    maps = {row.parameter: bytes(128) for row in plan.tensor_maps}
    block = pack(plan.parameters, {**scalar_values(checked, schedule), **maps, "tile_counter": 77})
    index = {row.name: i for i, row in enumerate(plan.parameters)}

    def read(name, kind):
        return struct.unpack(f"<{kind}", block.value(index[name], struct.calcsize(kind)))[0]

    assert read("batch", "i") == 2
    assert read("query_heads", "i") == 8
    assert read("heads_per_key_head", "i") == 4
    assert read("query_rows", "i") == 100
    assert read("key_rows", "i") == 70
    assert read("tiles_per_head", "i") == schedule.tiles_per_head
    if epilogue == "direct":
        assert read("out", "Q") == 4 << 32
        assert read("out_batch_stride", "q") == 100 * 8 * 64
        assert read("out_row_stride", "q") == 8 * 64
        assert read("out_head_stride", "q") == 64
    if lse:
        assert read("lse", "Q") == 5 << 32
    if scheduler == "dynamic":
        assert read("tile_counter", "Q") == 77
    if softcap is None:
        assert read("softmax_scale_log2", "f") == pytest.approx(0.125 * 1.4426950408889634)
    else:
        assert read("softmax_scale", "f") == 0.125


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
