"""Merging of partial results in vendoring: an object for the protocol in ``family``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.runtime.merge_arguments import MergeArguments
from fa4gen.vendoring.call_structs import merge_args
from fa4gen.vendoring.selftest_facts import SelftestFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.merge.model import MergePlan
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.vendoring.binding import MergeArgs
    from fa4gen.vendoring.launcher_facts import LauncherFacts
    from fa4gen.verify.merge.memory import MergeMemory


class MergeFamily:
    """Merging of partial results of attention."""

    IN_EVERY_FOLDER = False

    def refuse(self, plan: MergePlan) -> None:
        """Refuse nothing: the C launcher calls every merging kernel."""

    def launcher_facts(self, plan: MergePlan, facts: LauncherFacts) -> LauncherFacts:
        """Return ``facts`` with those of merging."""
        return replace(facts, depth=plan.depth, lse=plan.lse)

    def selftest_facts(self, plan: MergePlan) -> SelftestFacts:
        """Return the facts of a kernel for the self-test: the rows of a CTA."""
        return SelftestFacts(
            rows=plan.BM,
            columns=plan.depth,
            stage_depth=0,
            ring=0,
            descales=False,
            kv_dtype="",
            operand="",
            rescale_threshold=0.0,
            probability_shift=0,
            exp2_error=0.0,
            products_per_step=0,
            alignment_bits=0,
            activation=None,
            activation_float=None,
            condition=None,
        )

    def case_args(
        self, plan: MergePlan, views: Mapping[str, TensorView], memory: MergeMemory
    ) -> MergeArgs:
        """Return the arguments of a call with the tensors of one of verify's cases."""
        del memory
        return self.peer_args(plan, views, alpha=1.0, beta=0.0)

    def peer_args(
        self, plan: MergePlan, views: Mapping[str, TensorView], *, alpha: float, beta: float
    ) -> MergeArgs:
        """Return the arguments of a call for bench."""
        del alpha, beta
        lse = views.get("lse")
        arguments = MergeArguments(views["parts"], views["part_lse"], views["out"], lse)
        return merge_args(plan, arguments)


MERGE = MergeFamily()
