"""Products with scattered rows for Hopper: variants are clean in verify's cases, mutants not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.memory import place, read_out
from tests.kernels.gemm.reported import MutantTests, VariantTests, product
from tests.kernels.gemm.sm90.scattered_mutants import CONFIGS, MUTANTS, SMALL
from tests.kernels.source_mutation import Kernel, RecordingBackend, compiled_of

VARIANTS: dict[str, dict[str, Any]] = {
    "gathered, too": {"rows": "gathered", "BN": 128},
    "a pair": {"cta_group": 2, "dtype": "fp16"},
    "a pair of columns, in turn": {"cta_group": 2, "share": "a", "ping_pong": True},
    "swapped, 24 rows": {"swap_operands": True, "BM": 24, "activation": "relu(x)"},
    "swapped, 64 rows, split": {"swap_operands": True, "BN": 128, "split_k": 2},
    "scales": {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}, "BN": 128},
}
FIRST = (
    "the_index_is_out_of_step",
    "the_rows_of_the_next_group_are_stored",
    "both_rows_of_a_lane_have_one_weight",
    "a_slot_is_handed_back_before_all_lanes_have_read",
    "weights_of_neighbouring_rows_are_exchanged",
)
"""Mutants of every run; all of them with --many-seeds."""


class TestVariants(VariantTests):
    common = SMALL
    variants = VARIANTS
    cases = ("groups/*",)


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_a_row_has_the_bits_of_the_plain_product_times_its_weight(config: str) -> None:
    """With weights of 1, also beside NaN; the order of rows changes nothing."""
    kernel = product(CONFIGS[config])
    plain = product({**CONFIGS[config], "out_rows": "contiguous"})
    counts = (9, 70, 3)
    case = GemmCase("some", 70, 72, 200, len(counts), counts=counts, apart=(3, 5))
    inputs = make_inputs(case, kernel.plan, np.random.default_rng(3))
    assert inputs.scatter is not None
    inputs.a[:, 3:12] = np.nan  # the first group
    scatter = replace(inputs.scatter, weights=np.ones_like(inputs.scatter.weights))

    def rows(of: Kernel, own: Any) -> Any:
        backend = RecordingBackend(of.plan.arch, 0)
        memory = place(case, own, of.plan)
        emulated = backend.load(of.plan, compiled_of(of))
        return read_out(memory, emulated.run(memory))[0, 9:].view(np.uint32)

    got = rows(kernel, replace(inputs, scatter=scatter))
    expected = rows(plain, replace(inputs, scatter=None))
    written = scatter.places[9:] >= 0
    assert written.sum() > 40
    assert np.array_equal(got[written], expected[written])


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = FIRST
