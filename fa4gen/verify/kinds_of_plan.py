"""The kinds of numbers that a kernel is verified on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.input_kinds import CUT_KINDS, EQUAL_HIGH

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan


def takes_equal_high(plan: AttentionPlan) -> bool:
    """Return whether equal large logits stay equal in the kernel of ``plan``.

    A score function, a sink and the scale of a page add to a logit less than its rounding.
    """
    return not (plan.score.FUNCTION or plan.sinks or plan.has_page_scales)


def left_out(plan: AttentionPlan) -> set[str]:
    """Return the kinds that strain nothing in the kernel of ``plan``, or more than it is for."""
    names = {"normal", "far_apart"}  # the second is for keys that CTAs share
    if plan.score.IS_EXPRESSION:
        names |= {"huge", "tiny"}  # their scales exceed the limit of a launcher with a score
    if not plan.score.only_adds:
        names.add("high_peaks")
    if not takes_equal_high(plan):
        names.add(EQUAL_HIGH)
    if CutSums.of(plan) is None:
        names |= CUT_KINDS.keys()
    return names
