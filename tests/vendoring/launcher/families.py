"""The launcher's tests for each kernel family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.vendoring.launcher import (
    attention_problems,
    attention_traits,
    gemm_problems,
    gemm_traits,
    merge_problems,
    merge_traits,
)

if TYPE_CHECKING:
    from types import ModuleType

    from fa4gen.designs.common.plans import Plan

PROBLEMS: Final = {"attention": attention_problems, "gemm": gemm_problems, "merge": merge_problems}
"""Random problems: ``sound_problems``, ``any_problems``, ``empty_problem``."""
TRAITS: Final = {"attention": attention_traits, "gemm": gemm_traits, "merge": merge_traits}
"""The properties that select a kernel, and a problem's costs."""


def problems_of(plan: Plan) -> ModuleType:
    """Return the module of random problems of ``plan``'s family."""
    return PROBLEMS[plan.kernel]


def traits_of(plan: Plan) -> ModuleType:
    """Return the module of traits of ``plan``'s family."""
    return TRAITS[plan.kernel]
