"""Tensors far apart: elements go there and come back, strides are wide, memory is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fa4gen.config.find import find_configs
from fa4gen.emulator.state.budget import process_bytes
from fa4gen.verify.edges.specials import specials
from fa4gen.verify.family import family_of
from fa4gen.verify.far_memory import FAR_ELEMENTS, SCALES, TENSORS, far_memory
from fa4gen.verify.gemm.cases import emulated_cases
from fa4gen.verify.memory import APART
from tests.shipped import plan_of

CONFIGS = ["d128_causal_bf16", "d128_ragged_causal_bf16", "decode_d128_paged64_bf16",
           "decode_mla_bf16", "fa4_d128_causal_fp8"]  # fmt: skip


def special(name: str, words: str):
    plan = plan_of(find_configs([name])[0])
    return plan, next(one for one in specials(plan) if words in one.name).make(plan)


@pytest.mark.parametrize("name", CONFIGS)
def test_strides_are_far_and_memory_is_not_touched(name: str) -> None:
    plan, case = special(name, "2^31 elements")
    memory = family_of(plan).draw(case, 1).memory
    before = process_bytes()
    far = far_memory(memory, {key: image.copy() for key, image in memory.buffers.items()})
    assert process_bytes() - before < 64 << 20
    for tensor in TENSORS:
        near, wide = memory.views[tensor], far.memory.views[tensor]
        np.testing.assert_array_equal(
            wide.bits(far.buffers[wide.buffer]), near.bits(memory.buffers[near.buffer])
        )
        steps = [
            stride
            for stride, extent in zip(wide.strides[:-1], wide.shape[:-1], strict=True)
            if extent > 1
        ]
        assert max(steps) >= FAR_ELEMENTS * wide.strides[-1]
        assert len(set(steps)) == len(steps)


def test_scales_of_a_product_are_far_apart_and_its_matrices_are_not() -> None:
    plan = plan_of(find_configs(["gemm_fp8_scaled_sm90"])[0])
    case = next(one for one in emulated_cases(plan) if one.far)
    memory = family_of(plan).draw(case, 1).memory
    far = far_memory(memory, {key: image.copy() for key, image in memory.buffers.items()})
    for name in SCALES:
        near, wide = memory.views[name], far.memory.views[name]
        assert min(wide.strides) >= FAR_ELEMENTS * 4
        np.testing.assert_array_equal(
            wide.bits(far.buffers[wide.buffer]), near.bits(memory.buffers[near.buffer])
        )
    assert far.moved == set(SCALES)
    assert far.memory.views["a"] == memory.views["a"]


def test_what_a_launch_writes_comes_back() -> None:
    plan, case = special("d128_causal_bf16", "2^31 elements")
    memory = family_of(plan).draw(case, 1).memory
    buffers = {key: image.copy() for key, image in memory.buffers.items()}
    far = far_memory(memory, buffers)
    out = far.memory.views["out"]
    out.bits(far.buffers["out"])[1, 4, 1, 3] = 7
    far.bring_back(buffers)
    near = memory.views["out"].bits(buffers["out"])
    assert near[1, 4, 1, 3] == 7
    assert (near == 7).sum() == 1


@pytest.mark.parametrize("name", CONFIGS)
def test_strides_of_the_layout_apart_are_all_different(name: str) -> None:
    plan, case = special(name, "no other tensor")
    memory = family_of(plan).draw(case, 1).memory
    views = [memory.views[tensor] for tensor in APART]
    if plan.values_in_keys:
        views = [memory.views[tensor] for tensor in APART if tensor != "value"]
    steps = [step for view in views for step in view.strides[:-1]]
    assert len(set(steps)) == len(steps)
    other = replace(case, layout="padded")
    padded = family_of(plan).draw(other, 1).memory
    assert padded.views["out"].strides != memory.views["out"].strides
