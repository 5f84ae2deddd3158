"""Mutants by rule: what rules find in a text, and a few mutants from the source to the verdict."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
CONFIG = str(ROOT / "configs/gemm/sm_90a/gemm_bf16_m16_sm90.yaml")
TEXT = """\
// min(a, b) in a comment
#pragma unroll
static_assert(kM < 4, "max(1, 2)");
constexpr int32 kSlots = 2;
__device__ __forceinline__ float scaled(float sum, int32 key_row) { return sum * 2.f; }
__device__ __forceinline__ void work(int32 value_row, const Tensors& t) {
  asm volatile("fence.acquire.gpu.x;" ::"r"(t.key_stride) : "memory");
  float sums[kSlots];
  for (int32 i = 0; i < kSlots; ++i) sums[i] = min(t.key_row, value_row - 1);
  if (t.key_stride > 0 && value_row >= t.value_stride || t.last) ring.arrive(full<0>(), 3);
  mbarrier_wait(t.full, phase);  // until it is full
  phase ^= 1;
  t.count = 0;
  const bool far = t.last ? value_row < 3 : false;
  while (*at) ++at;
  const int64 far_row = static_cast<int64>(key_row);
}
"""
EDITS = {
    "min_max_arm": {"(t.key_row)", "(value_row - 1)"},
    "comparison": {"i <= kSlots", "t.key_stride >= 0", "value_row > t.value_stride",
                   "value_row <= 3"},
    "bound": {"i < (kSlots) - 1", "t.key_stride > (0) + 1", "value_row >= (t.value_stride) - 1",
              "value_row < (3) - 1"},
    "index": {"sums[(i) + 1]", "sums[(i) - 1]", "int32 i = (0) + 1", "int32 i = (0) - 1",
              "t.count = (0) + 1", "t.count = (0) - 1",
              "(static_cast<int64>(key_row)) + 1", "(static_cast<int64>(key_row)) - 1"},
    "term": {"min(t.key_row, value_row)", "min(t.key_row, -1)"},
    "stride": {"t.value_stride > 0", "value_row >= t.key_stride"},
    "offset": set(),
    "name": {"min(t.value_row, value_row", "key_row - 1", "if (t.key_stride > 0 && key_row",
             "= t.last ? key_row", "static_cast<int64>(value_row)"},
    "dropped": {"  ;\n  float", "t.last) ;", "  ;  // until"},
    "reset": {"  ;\n  const bool", "while (*at) ;"},
    "phase": {"(phase) ^ 1", "  ;\n  t.count"},
    "mask": {"if (value_row >= t.value_stride || t.last)", "if (t.key_stride > 0 || t.last)",
             "if (t.last)", "if (t.key_stride > 0 && value_row >= t.value_stride) ring",
             "if (true)", "if (false)", "= true ?", "= false ?",
             "far = true;", "far = false;", "while (true)", "while (false)"},
    "loop": {"if (int32 i = 0; i < kSlots) sums", "if (*at) ++at"},
    "width": {"int far_row = static_cast<int64>", "= static_cast<int32>(key_row)"},
    "order": {"fence.relaxed.gpu", "fence.acquire.cta"},
    "bf16": {"rounded_to_bf16(sum * 2.f)", "= rounded_to_bf16(min("},
}  # fmt: skip


@pytest.fixture
def mutation(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the program."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from types import SimpleNamespace

    import mutate
    from mutation import equivalents, mutants, rules, text, trial

    return SimpleNamespace(
        mutate=mutate, equivalents=equivalents, mutants=mutants, rules=rules, text=text,
        trial=trial,
    )  # fmt: skip


def test_every_rule_makes_its_changes_and_no_others(mutation: Any) -> None:
    text = mutation.text.CText(TEXT)
    assert {rule.name for rule in mutation.rules.RULES} == EDITS.keys()
    for rule in mutation.rules.RULES:
        made = [edit.of(TEXT) for edit in rule.edits(text)]
        expected = EDITS[rule.name]
        assert len(made) == len(expected), (rule.name, [e.new for e in rule.edits(text)])
        for new in expected:
            assert [new in one for one in made].count(True) == 1, (rule.name, new)


@pytest.mark.compile
def test_mutants_from_source_to_verdict(mutation: Any) -> None:
    found = mutation.mutants.find_mutants(CONFIG)

    def status(rule: str, before: str, after: str, number: int = 1) -> Any:
        (mutant,) = (
            one for one in found if one.change == (rule, before, after) and one.number == number
        )
        candidate = mutation.trial.compile_mutant(mutant)
        if candidate.discarded:
            return candidate.discarded
        return mutation.trial.verify_mutant(mutation.trial.Task(mutant, seeds=2)).result

    caught = status("phase", "phase ^= 1;", ";")
    assert caught.status == "caught"
    assert [(run.seed, run.caught, run.case) for run in caught.runs] == [
        (1, True, caught.runs[0].case),
        (2, True, caught.runs[0].case),
    ]
    prefetch = status("mask", "if (threadIdx.x == 0) {", "if (true) {")
    assert (prefetch.status, [run.caught for run in prefetch.runs]) == ("survived", [False])
    entries = mutation.equivalents.read_equivalents()
    assert mutation.mutate.status_of(prefetch, entries) == "equivalent"
    assert mutation.mutate.status_of(prefetch, []) == "survived"
    rows = mutation.mutate.counts_by([(prefetch, "equivalent"), (caught, "caught")], "rule")
    assert rows == [
        ("mask", 1, 0, 0, 1, 0, 0),
        ("phase", 1, 0, 1, 0, 0, 0),
        ("all", 2, 0, 1, 1, 0, 0),
    ]
    fence = next(one for one in found if "fence.mbarrier_init" in one.before)
    edit = replace(fence.edit, new='asm volatile("fence.mbarrier_init.relaxed.cluster;")')
    unknown = mutation.trial.verify_mutant(
        mutation.trial.Task(replace(fence, edit=edit), seeds=1)
    ).result
    assert (unknown.status, unknown.why) == ("discarded", "ptxas refuses it")
    changed = mutation.mutants.mutated(next(one for one in found if one.rule == "bf16"))
    assert changed.device.count("float rounded_to_bf16(float x)") == 1
    assert mutation.trial.Record.read(caught.data()) == caught


def test_an_entry_that_fits_nothing_is_found(mutation: Any, tmp_path: Path) -> None:
    found = mutation.mutants.find_mutants(CONFIG)
    entry = {"kernels": "gemm_*", "rule": "phase", "before": "phase ^= 1;", "after": ";"}
    reason = {"because": "a test"}
    path = tmp_path / "list.yaml"
    other = {**entry, "before": "phase ^= 2;"}
    elsewhere = {**other, "kernels": "d64_*"}
    path.write_text(yaml.safe_dump([one | reason for one in (entry, other, elsewhere)]))
    entries = mutation.equivalents.read_equivalents(path)
    assert mutation.equivalents.stale(entries, found) == [entries[1]]
    path.write_text(yaml.safe_dump([entry]))
    with pytest.raises(ValueError, match="because"):
        mutation.equivalents.read_equivalents(path)


def test_a_sample_has_every_rule_and_kernel_and_each_change_once(mutation: Any) -> None:
    found = mutation.mutants.find_mutants(CONFIG)
    order = mutation.mutants.in_order(found, random.Random(1))
    assert order == mutation.mutants.in_order(found, random.Random(1))
    assert order != mutation.mutants.in_order(found, random.Random(2))
    rules = {mutant.rule for mutant in found}
    assert {mutant.rule for mutant in order[: len(rules)]} == rules
    assert {mutant.change for mutant in order} == {mutant.change for mutant in found}
    assert len(order) == len({mutant.change for mutant in order})
    assert mutation.mutants.shares(7, ["a", "b"]) == {"a": 4, "b": 3}
