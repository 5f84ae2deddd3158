"""The one place that chooses by family, and how launchers are called: without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.config.find import shipped_configs
from fa4gen.verify.family import family_of
from fa4gen.verify.judge import judge
from tests.shipped import plan_of
from tests.verify.conftest import make_plan as attention_plan
from tests.verify.gemm.conftest import make_gemm_plan as gemm_plan

PLANS = {
    "attention": lambda: attention_plan(lse=True),
    "attention_fp8": lambda: attention_plan(arch="sm_100a", dtype="fp8_e4m3"),
    "gemm": lambda: gemm_plan(residual="matrix"),
    "gemm_plain": gemm_plan,
}


class Launcher:
    """Records its arguments."""

    def __call__(self, *arrays, **options):
        self.arrays, self.options = arrays, options


@pytest.mark.parametrize("path", shipped_configs(), ids=lambda path: path.stem)
def test_a_launcher_is_given_every_tensor_of_the_case(path) -> None:
    family = family_of(plan_of(path))
    launcher = Launcher()
    for case in family.emulated_cases()[:2]:
        memory = family.draw(case, 1).memory
        arrays = {tensor: object() for tensor in memory.views}
        family.call(launcher, arrays, memory)
        given = {*launcher.arrays, *launcher.options.values()}
        left = {tensor for tensor, array in arrays.items() if array not in given}
        assert not left


@pytest.mark.parametrize("name", PLANS)
def test_all_cases_can_be_told_apart_and_drawn(name) -> None:
    family = family_of(PLANS[name]())
    cases = family.emulated_cases()
    assert len({case.name for case in cases}) == len(cases)
    for case in cases[:2]:
        assert len(case.row()) == len(case.COLUMNS)
        assert case.data_items()["name"] == case.name
        problem = family.draw(case, 1)
        reference = problem.reference(np)
        assert reference.own.names() == reference.bounds.names()
        # What was never written is wrong.
        memory = problem.memory
        failures, _ = judge(memory, memory.buffers, memory.buffers, reference)
        assert {failure.check for failure in failures} == {"numbers", "unwritten"}
