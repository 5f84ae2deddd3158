"""The coverage of a plan by cases: rings, further cases for missing parts, and its description."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.find import find_configs
from fa4gen.designs.common.unreachable import Unreachable
from fa4gen.emulator.coverage.counts import (
    BarrierCoverage,
    BranchCoverage,
    Coverage,
    RingUse,
    Unrun,
    VoteCoverage,
)
from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.toolchain.ptx_places import Place
from fa4gen.toolchain.source_lines import Frame
from fa4gen.verify.attention import as_called
from fa4gen.verify.cases import Case
from fa4gen.verify.coverage import MAX_FURTHER, exercise_of, run_further, with_places
from fa4gen.verify.exercise import Exercise, rings_of
from fa4gen.verify.family import family_of
from fa4gen.verify.reference import AttentionProblem
from fa4gen.verify.report import (
    coverage_problems,
    exercise_cells,
    gaps,
    verdict_data,
    verdict_word,
)
from fa4gen.verify.ring_cases import TILES, attention_rings, gemm_rings, loads
from fa4gen.verify.score_tiles import score_tiles
from fa4gen.verify.verdict import CaseVerdict, Failure, Verdict
from tests.shipped import plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable

VOTE = VoteCoverage(9, "PTX line 9", taken=2, skipped=3)
TILE_RING, SUMS_RING = RingUse("tile_full", 2, 4), RingUse("accum_full", 1, 3)


def seen(
    plan,
    phases: int,
    *,
    short: str = "",
    not_run: tuple[int, ...] = (),
    behind: tuple[tuple[int, bool], ...] = (),
    **branch,
) -> Coverage:
    """A coverage with ``phases`` of every slot, and one fewer of the last slot of ``short``.

    Of instructions on ten lines of PTX, ``not_run`` did not run, all ``behind`` the same sides.
    """
    barriers = []
    for row in plan.barriers:
        for slot in range(row.slots):
            less = row.name == short and slot == row.slots - 1
            barriers.append(
                BarrierCoverage(row.offset + 8 * slot, f"{row.name}[{slot}]", phases - less)
            )
    one = BranchCoverage(7, "PTX line 7", "", **{"taken": True, "passed": True, **branch})
    never = tuple(Unrun(line, f"PTX line {line}", "", 1, behind) for line in not_run)
    names = {row.name for row in plan.barriers}
    uses = tuple(use for use in (TILE_RING, SUMS_RING) if use.name in names)
    return Coverage(
        "k", tuple(barriers), (one,), never, tuple(range(1, 11)), 1, 1, votes=(VOTE,), uses=uses
    )


def verdicts(plan, *coverages: Coverage) -> list[CaseVerdict]:
    cases = family_of(plan).emulated_cases()
    return [
        CaseVerdict(case, (), coverage=one) for case, one in zip(cases, coverages, strict=False)
    ]


def exercised(plan, *coverages: Coverage) -> Exercise:
    """Return the coverage by cases with these."""
    found = exercise_of(plan, verdicts(plan, *coverages), whole=True)
    assert found is not None
    return found


class Check:
    """Runs cases, each of which has the same coverage, and remembers their names."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.ran: list[str] = []

    def __call__(self, case) -> CaseVerdict:
        self.ran.append(case.name)
        return CaseVerdict(case, (), coverage=self.coverage)


def test_a_ring_is_its_slot_that_was_used_least(make_plan) -> None:
    plan = make_plan(arch="sm_100a")
    rings = {ring.name: ring for ring in rings_of(plan, seen(plan, 3, short="key_full"))}
    assert set(rings) == {row.name for row in plan.barriers}
    assert rings["key_full"].phases == 2
    assert not rings["key_full"].wrapped_twice
    assert all(ring.wrapped_twice for name, ring in rings.items() if name != "key_full")
    # what no launch initialised was not exercised
    assert {ring.phases for ring in rings_of(plan, Coverage("k"))} == {0}


def test_phases_of_different_launches_do_not_add_up(make_plan) -> None:
    plan = make_plan()
    found = exercised(plan, seen(plan, 2), seen(plan, 2))
    assert found.num_wrapped == 0
    found = exercised(plan, seen(plan, 2), seen(plan, 3))
    assert found.complete


def test_nothing_is_said_where_nothing_was_watched(make_plan) -> None:
    plan = make_plan()
    case = family_of(plan).emulated_cases()[0]
    assert exercise_of(plan, [None, CaseVerdict(case, ())], whole=True) is None


@pytest.mark.parametrize("family", ["attention", "gemm"])
def test_cases_are_added_for_rings_until_they_wrapped(family, make_plan) -> None:
    plan = plan_called("gemm_bf16_pair") if family == "gemm" else make_plan(arch="sm_100a")
    before = verdicts(plan, seen(plan, 2))
    check = Check(seen(plan, 3))
    more = run_further(plan, before, check)
    assert len(more) == len(check.ran) == 1
    assert check.ran[0].startswith("rings/12x" if family == "gemm" else "rings/1x")
    assert not run_further(plan, [*before, *more], check)


def test_cases_are_added_for_branches_but_not_for_loops_that_are_always_entered(make_plan) -> None:
    plan = make_plan()
    check = Check(seen(plan, 3, passed=False))
    always = seen(plan, 3, taken=False, skips=True)
    assert not run_further(plan, verdicts(plan, always), check)
    run_further(plan, verdicts(plan, seen(plan, 3, passed=False)), check)
    assert check.ran
    assert len(check.ran) == len(set(check.ran)) <= MAX_FURTHER
    assert all(name.startswith("further/") for name in check.ran)


NEVER_TAKEN = "rescaling was never taken: errors in it would not show"
NEVER_SKIPPED = "rescaling was never skipped: it was taken at every block"
NO_DECISION = "no block reached the branch that decides on rescaling"
NEVER_SEVERAL = "no CTA took more than one tile: errors between tiles would not show"


@pytest.mark.parametrize(
    ("vote", "least", "most", "name", "gap"),
    [
        ((0, 3), 2, 4, "further/growing", NEVER_TAKEN),
        ((2, 0), 2, 4, "further/growing_little", NEVER_SKIPPED),
        ((0, 0), 2, 4, "further/growing", NO_DECISION),
        ((2, 3), 2, 2, "rings/6x", NEVER_SEVERAL),
        ((2, 3), 3, 4, "further/one_tile", "every CTA took more than one tile"),
    ],
)
def test_cases_are_added_for_work_that_was_always_or_never_done(
    vote, least: int, most: int, name: str, gap: str, make_plan
) -> None:
    plan = make_plan(arch="sm_100a")
    lacking = replace(
        seen(plan, 3),
        votes=(replace(VOTE, taken=vote[0], skipped=vote[1]),),
        uses=(RingUse("tile_full", least, most),),
    )
    before = verdicts(plan, lacking)
    found = exercise_of(plan, before, whole=True)
    assert found is not None
    assert not found.complete
    assert list(gaps(verdict_with(found))) == [(True, f"k: {gap}")]
    assert verdict_data(verdict_with(found))["exercise"]["work_not_seen"] == [gap]
    check = Check(seen(plan, 3))
    more = run_further(plan, before, check)
    assert len(check.ran) == 1
    assert check.ran[0].startswith(name)
    found = exercise_of(plan, [*before, *more], whole=True)
    assert found is not None
    assert found.complete
    # and without effect
    check = Check(lacking)
    run_further(plan, before, check)
    assert len(check.ran) == len(set(check.ran)) <= MAX_FURTHER


def test_a_kernel_without_lazy_rescaling_or_tiles_in_rings_has_no_figures(make_plan) -> None:
    plan = make_plan(rescale_threshold=0.0)
    assert plan.arch == "sm_90a"
    found = exercised(plan, replace(seen(plan, 3), uses=()))
    assert (found.rescales, found.tiles) == (None, None)
    assert found.complete
    assert "rescales" not in found.summary()
    assert "tiles a CTA" not in found.summary()
    assert (found.data()["rescales"], found.data()["tiles_a_cta"]) == (None, None)


def test_no_case_is_added_after_a_failure(make_plan) -> None:
    plan = make_plan()
    failed = replace(verdicts(plan, seen(plan, 1))[0], failures=(Failure("numbers", "wrong"),))
    assert not run_further(plan, [failed], lambda case: pytest.fail(case.name))


def plan_called(name: str):
    return plan_of(find_configs([name])[0])


@pytest.mark.parametrize("path", find_configs([]), ids=lambda path: path.stem)
def test_all_tiles_of_the_case_for_rings_go_to_one_cluster(path) -> None:
    plan = plan_of(path)
    if plan.kernel == "merge":  # without rings
        return
    if plan.kernel == "gemm":
        gemm = gemm_rings(plan)
        size = GemmSize(1, gemm.m, gemm.n, gemm.k)
        schedule = plan_gemm_schedule(plan, size, gemm.multiprocessors)
        tiles = TILES * plan.ctas_per_tile
        assert schedule.num_tiles == tiles
        # the dynamic scheduler starts CTAs for all tiles, which take each other's
        if plan.scheduler == "static":
            assert schedule.grid == plan.launch.cluster
        blocks = -(-gemm.k // plan.BK) // plan.ctas_per_tile
        assert blocks * tiles >= 3 * plan.num_stages
        return
    cases = as_called(plan, attention_rings(plan))
    for case in cases:
        group = case.query_heads // case.key_heads
        size = ProblemSize(1, case.query_heads, group, case.query_rows, case.key_rows)
        schedule = plan_schedule(plan, size, case.multiprocessors)
        assert schedule.grid == (plan.launch.cluster or 1)
    assert schedule.num_tiles * plan.ctas_per_tile // plan.cta_group >= TILES
    # keys enough for each slot to be used three times
    blocks = cases[0].query_heads // plan.tile_heads * -(-cases[0].key_rows // plan.BN)
    assert all(blocks * a_block >= 3 * slots for slots, a_block in loads(plan))
    assert {slots for slots, _ in loads(plan)} <= {row.slots for row in plan.barriers}
    if plan.mask.span is None:  # within a tile
        assert cases[0].query_heads == plan.tile_heads


# ---- blocks of keys by what the mask leaves

MASKS = st.sampled_from(
    ["none", "causal", {"sliding_window": 70}, {"sliding_window": {"left": 300, "right": 40}}]
)


@given(MASKS, st.integers(0, 300), st.integers(0, 500))
def test_blocks_are_counted_as_the_reference_masks_them(mask, rows: int, keys: int) -> None:
    from tests.verify.conftest import make_plan

    plan = make_plan(mask=mask)
    case = Case("x", 2, 3, 3, rows, keys)
    first, end = AttentionProblem.of(plan, 1.0).visible_keys(rows, keys)
    at = np.arange(-(-keys // plan.BN) * plan.BN)
    visible = (at >= first[:, None]) & (at < end[:, None])
    counts = {"full": 0, "partial": 0, "empty": 0}
    for row in range(0, rows, plan.BM):
        for start in range(0, keys, plan.BN):
            block = visible[row : row + plan.BM, start : start + plan.BN]
            kind = "full" if block.all() else "partial" if block.any() else "empty"
            counts[kind] += 6
    assert score_tiles(plan, case) == counts


# ---- in words


def verdict_with(exercise: Exercise) -> Verdict:
    return Verdict("k.yaml", "k", "sm_90a", "emulated", 1, num_cases=0, exercise=exercise)


def test_words_for_what_was_reached_and_what_was_not(make_plan) -> None:
    plan = make_plan()
    coverage = seen(plan, 3, short="key_full", not_run=(8,), passed=False, roles=("softmax",))
    found = exercised(plan, coverage)
    found = with_places(found, (), places)
    verdict = verdict_with(found)
    wanted = [
        (True, f"k: ring key_full ({plan.barrier('key_full').slots} slots) did not wrap twice: "
               "a slot completed 2 phases, 3 are required"),
        (True, "k: 1 instruction not run in any case, the first at k.cu:8 (f): if (x) y8();"),
        (False, "k: branch always the same way [softmax]: k.cu:7 (f): if (x) y7();"),
    ]  # fmt: skip
    assert list(gaps(verdict)) == wanted
    number = len(plan.barriers)
    assert exercise_cells(verdict) == (f"{number - 1}/{number}", "0/1")
    data = verdict_data(verdict)["exercise"]
    assert data["summary"] == (
        f"rings wrapped twice: {number - 1} of {number}; branches both ways: 0 of 1; "
        "instructions run: 9 of 10; score tiles: 0 full, 2 partial, 0 empty; "
        "rescales: 2 taken, 3 skipped; tiles a CTA: 1 to 3"
    )
    assert [ring["name"] for ring in data["rings"] if not ring["wrapped_twice"]] == ["key_full"]
    assert data["not_reached"] == ["branch always the same way [softmax]: k.cu:7 (f): if (x) y7();"]
    assert data["instructions_not_run"] == ["1 instruction not run: k.cu:8 (f): if (x) y8();"]
    # cases chosen by name do not cover the whole kernel
    assert not list(gaps(verdict_with(replace(found, whole=False))))
    assert exercise_cells(replace(verdict, exercise=None)) == ("-", "-")


def test_loops_choices_and_unreached_branches_have_words_of_their_own(make_plan) -> None:
    plan = make_plan()
    for branch, words in (
        ({"taken": False, "skips": True}, "loop that was always entered"),
        ({"taken": False, "passed": False}, "branch that was not reached"),
        ({"taken": False, "choice": "min"}, "min that always gave the same value"),
        ({"passed": False, "choice": "selp"}, "selection that always gave the same value"),
        ({"taken": False, "passed": False, "choice": "max"}, "max that decided nothing"),
    ):
        found = exercised(plan, seen(plan, 3, **branch))
        assert [text for _, text in gaps(verdict_with(found))] == [f"k: {words}: PTX line 7"]


def places(lines: Iterable[int]) -> dict[int, Place]:
    """Each line of PTX is from the line of the same number of function ``f``."""
    return {
        line: Place(
            (Frame("f", "k.cu", line), Frame("", "k.cu", 90)), (f"if (x) y{line}();", "f();")
        )
        for line in lines
    }


def unreachable_in(coverage: Coverage, *entries: Unreachable) -> Exercise:
    """Judge ``entries``; the branch on line n of PTX is ``if (x) y<n>();`` of function ``f``."""
    return with_places(Exercise((), coverage), entries, places)


def test_code_that_the_plan_calls_unreachable_is_not_asked_for(make_plan) -> None:
    plan = make_plan()
    one_way = seen(plan, 3, not_run=(8, 9), behind=((7, False),), passed=False)
    assert unreachable_in(one_way).not_run == (8, 9)
    named = unreachable_in(one_way, Unreachable("f", "y7()", "x is 0"))
    assert (named.not_run, named.reasons, named.judged.refuted) == ((), {"x is 0": 2}, ())
    elsewhere = unreachable_in(one_way, Unreachable("g", "y7()", "x is 0"))
    assert elsewhere.not_run == (8, 9)
    # what is behind the side that was taken has another cause
    other_side = seen(plan, 3, not_run=(8, 9), behind=((7, True),), passed=False)
    assert unreachable_in(other_side, Unreachable("f", "y7()", "x is 0")).not_run == (8, 9)


def test_an_unreachable_entry_whose_branch_went_both_ways_is_refused(make_plan) -> None:
    found = unreachable_in(seen(make_plan(), 3), Unreachable("f", "y7()", "x is 0"))
    (problem,) = coverage_problems("k", "k.yaml", found, strict=False)
    assert problem.message == (
        "k: the plan says that 1 of 1 copies of a branch of f always go one way (x is 0), "
        "and 1 of them went both ways: k.cu:7 (f): if (x) y7();"
    )
    # the line where the function was called counts as one of its lines
    found = unreachable_in(seen(make_plan(), 3), Unreachable("", "f();", "x is 0"))
    assert len(found.judged.refuted) == 1


def test_of_copies_of_a_branch_the_last_ones_may_be_unreachable(make_plan) -> None:
    plan = make_plan()

    def exercise(*both_ways: bool) -> Exercise:
        """Four copies of the branch on line 7, on lines 1 to 4; line 10 is behind the last."""
        whole = seen(plan, 3, not_run=(9, 10), behind=((4, False),))
        (branch,) = whole.branches
        copies = tuple(
            replace(branch, line=line, passed=both) for line, both in enumerate(both_ways, 1)
        )
        found = Exercise((), replace(whole, branches=copies))
        entry = Unreachable("f", "y7()", "few parts", (2, 4))
        return with_places(found, (entry,), lambda lines: {line: places([7])[7] for line in lines})

    right = exercise(True, True, False, False)
    assert (right.not_run, right.judged.refuted) == ((), ())
    fewer = exercise(True, False, False, False)
    assert (fewer.not_run, fewer.judged.refuted) == ((), ())
    (refuted,) = exercise(True, True, True, False).judged.refuted
    assert "2 of 4 copies" in refuted
    assert "1 of them went both ways" in refuted
    assert exercise(False, False, False, True).not_run == (9, 10)


def test_copies_of_an_inlined_function_are_told_apart_by_their_callers(make_plan) -> None:
    """Function ``f`` is inlined twice into ``g``: by its lines 20 and 30."""
    plan = make_plan()

    def judge(not_run: int, entry: Unreachable, *, second_passes: bool = False) -> Exercise:
        whole = seen(plan, 3, not_run=(not_run,), behind=((not_run, False),))
        (branch,) = whole.branches
        copies = tuple(
            replace(branch, line=line, passed=line != not_run or second_passes) for line in (7, 8)
        )
        calls = {
            line: Place(
                (Frame("f", "k.cu", 5), Frame("g", "k.cu", call), Frame("", "k.cu", 90)),
                ("if (x) y();", f"while (f({call})) continue;", "g();"),
            )
            for line, call in ((7, 20), (8, 30))
        }
        return with_places(Exercise((), replace(whole, branches=copies)), (entry,), lambda _: calls)

    second = Unreachable("f", "y()", "x is 0", within=(("g", "f(30)"),))
    named = judge(8, second)
    assert (named.not_run, named.reasons, named.judged.refuted) == ((), {"x is 0": 1}, ())
    assert judge(7, second).not_run == (7,)  # the first copy, which it does not name
    (refuted,) = judge(8, second, second_passes=True).judged.refuted
    assert "1 of them went both ways" in refuted
    # without callers both copies are meant, and the one that went both ways refutes it
    assert len(judge(8, Unreachable("f", "y()", "x is 0")).judged.refuted) == 1
    # callers in turn, the innermost first; one between may be left out
    outermost = Unreachable("f", "y()", "x is 0", within=(("g", "f(30)"), ("", "g();")))
    assert judge(8, outermost).not_run == ()
    between = Unreachable("f", "y()", "x is 0", within=(("", "g();"),))
    assert len(judge(8, between).judged.refuted) == 1
    turned = Unreachable("f", "y()", "x is 0", within=(("", "g();"), ("g", "f(30)")))
    assert judge(8, turned).not_run == (8,)


def test_an_unreachable_entry_that_names_no_branch_fails_a_strict_verify(make_plan) -> None:
    one_way = seen(make_plan(), 3, not_run=(8, 9), behind=((7, False),), passed=False)
    within = Unreachable("f", "y7()", "x is 0", within=(("", "elsewhere"),))
    for entry, words in (
        (Unreachable("g", "y7()", "x is 0"), "g: y7()"),
        (within, "f: y7() < : elsewhere"),
    ):
        found = unreachable_in(one_way, entry)
        assert not list(coverage_problems("k", "k.yaml", found, strict=False))
        problem, _ = coverage_problems("k", "k.yaml", found, strict=True)
        assert problem.message == (
            "k: the plan calls a branch unreachable that the kernel does not have "
            f"(x is 0): {words}"
        )
    # where lines of PTX are not known, nothing is said
    unknown = with_places(Exercise((), one_way), (within,), lambda _: {})
    assert not unknown.judged.idle


def test_only_strict_fails_for_code_that_did_not_run(make_plan) -> None:
    plan = make_plan()
    found = exercised(plan, seen(plan, 3, not_run=(8, 9)))
    assert not list(coverage_problems("k", "k.yaml", found, strict=False))
    (problem,) = coverage_problems("k", "k.yaml", found, strict=True)
    assert problem.message == (
        "k: partly emulated: 2 instructions not run in any case, the first at PTX line 8"
    )
    everything = exercised(plan, seen(plan, 3))
    assert not list(coverage_problems("k", "k.yaml", everything, strict=True))


def test_verify_watches_rings_of_the_emulated_kernel_only(
    make_plan, compiled, numpy_backend
) -> None:
    from fa4gen.verify.run import VerifyOptions, verify_kernel

    plan = make_plan()
    verdict = verify_kernel(plan, compiled, numpy_backend(), VerifyOptions(1, ("size/8",)))
    assert verdict.passed
    assert verdict.exercise is None

    class Emulating(numpy_backend):
        emulates = True

        def load(self, plan, compiled):
            kernel = super().load(plan, compiled)
            return SimpleNamespace(
                run=kernel.run, take_coverage=lambda: seen(plan, 2, not_run=(8,))
            )

    options = VerifyOptions(1)
    verdict = verify_kernel(plan, compiled, Emulating(), options)
    assert verdict.passed
    assert verdict.proof == "partly emulated (1 instruction not run)"
    names = [case.case.name for case in verdict.cases]
    # added without effect: the stand-in always reports the same
    assert [name.split("x")[0] for name in names[-3:]] == ["rings/1", "rings/12", "further/long"]
    assert verdict.num_cases == len(names) == len(family_of(plan).emulated_cases()) + 3
    assert len(list(gaps(verdict))) == len(plan.barriers) + 1
    strict = verify_kernel(plan, compiled, Emulating(), replace(options, strict=True))
    assert not strict.passed
    assert verdict_word(strict) == "FAILED"
    assert strict.num_passed == strict.num_cases
    # of chosen cases nothing is said
    few = replace(options, patterns=("size/8",), strict=True)
    assert verify_kernel(plan, compiled, Emulating(), few).passed
