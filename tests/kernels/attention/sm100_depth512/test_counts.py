"""The document's counts, of one CTA's arrivals, in the kernel of depth 512: the errors.

``docs/how-it-works/attention-blackwell-512.md`` quotes the report; run with ``-s`` to see it whole.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator import SCHEDULES
from fa4gen.errors import CompileError
from tests.emulator.mutations.mutant import Edit
from tests.kernels.attention.sm100_depth512.mutants import PEER_STORED, depth512, edited
from tests.kernels.source_mutation import ptx_of, verify

if TYPE_CHECKING:
    from fa4gen.emulator import Report

PAGE = Path(__file__).parents[4] / "docs/how-it-works/attention-blackwell-512.md"
CASE = "scale/1"  # 100 rows, 150 keys: a block, and both CTAs have rows
SEED = 0
QUOTED = re.compile(r"^error: ([\w-]+) at [^,]+, (\w+) \(CTA (\d)[^)]*\): (.*)$", re.MULTILINE)

LOCAL = (
    # the counts of the document: 256, 128, 128, 128
    Edit("mbarrier_init(at(lane_idx), arrivals(lane_idx));",
         "mbarrier_init(at(lane_idx), arrivals(lane_idx) > 128 ? arrivals(lane_idx) / 2"
         " : arrivals(lane_idx));"),
    # arrivals on the CTA's own barriers: S consumers, PO_lo and PO_hi
    Edit("    mbarrier_arrive_leader<cta_group>(barrier);", "    mbarrier_arrive(barrier);"),
    Edit(PEER_STORED, "      mbarrier_arrive(po_lo);\n"),
    Edit("mbarrier_arrive_leader<kCtaGroup>(mbars.po_lo_mbar());",
         "mbarrier_arrive(mbars.po_lo_mbar());"),
    Edit("mbarrier_arrive_leader<kCtaGroup>(mbars.po_hi_mbar());",
         "mbarrier_arrive(mbars.po_hi_mbar());"),
)  # fmt: skip


@cache
def report_of(case: str, seed: int) -> Report:
    """The report of the launch that was refused."""
    verdict, reports = verify(edited(depth512("causal"), LOCAL), case, seed)
    assert not verdict.passed
    return reports[-1]


@pytest.mark.compile
@pytest.mark.parametrize(
    ("case", "seed"),
    [
        *((CASE, seed) for seed in range(len(SCHEDULES))),
        ("data/rising", 0),
        *(pytest.param("data/rising", seed, marks=pytest.mark.seeds) for seed in range(1, 8)),
    ],
)
def test_local_counts_are_a_race_on_what_the_peer_writes(case: str, seed: int) -> None:
    report = report_of(case, seed)
    assert report.verdict.value == "error"
    races = [
        finding
        for finding in report.findings
        if finding.kind in ("race", "uninitialised") and "of rank 1" in finding.message
    ]
    assert any("mma (CTA 0" in finding.who for finding in races), str(report)
    # what the leader writes is counted: nothing is wrong there
    assert not any("probabilities[0] of rank 0" in finding.message for finding in report.findings)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (Edit("PO_lo_offset = 0, PO_hi_offset = 1;", "PO_lo_offset = 1, PO_hi_offset = 0;"),
         "PO_lo is as the table of barriers has it"),
        (Edit("KV_offset = 10;", "KV_offset = 11;"),
         "The barriers of KV are where the table of barriers has them"),
    ],
)  # fmt: skip
def test_a_struct_that_differs_from_the_table_does_not_compile(edit: Edit, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        ptx_of(edited(depth512("causal"), (edit,)))


@pytest.mark.compile
def test_the_page_quotes_a_run() -> None:
    """Line numbers and bytes may move: kinds, roles, CTAs and places have to be those of a run."""
    report = report_of(CASE, SEED)
    print(report)
    findings = [str(finding) for finding in report.findings]
    quotes = QUOTED.findall(PAGE.read_text(encoding="utf-8"))
    assert {kind for kind, *_ in quotes} == {f.kind for f in report.findings}
    for kind, role, cta, words in quotes:
        place = re.match(r"[^(]*", words)
        assert place
        assert any(
            finding.startswith(f"error: {kind} at ")
            and f", {role} (CTA {cta}" in finding
            and place[0].strip() in finding
            for finding in findings
        ), words
