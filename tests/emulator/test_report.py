"""Findings are grouped, counted, and none of them is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.emulator import Program, Severity, Verdict
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.ptx.syntax import Instruction, SourceLine
from fa4gen.emulator.report import FindingLog
from tests.emulator.kernel import kernel, run


def instruction(line: int, source: SourceLine | None = None) -> Instruction:
    return Instruction("bar.sync", "bar", ("sync",), (), line, source=source)


def test_an_error_after_many_reviews_is_kept_and_comes_first() -> None:
    log = FindingLog()
    for line in range(1000):
        log.add("proxy-war", Severity.REVIEW, "m", instruction(line), "w")
    log.add("race", Severity.ERROR, "the error", instruction(5000), "w")
    assert log.findings()[0].message == "the error"
    assert len(log.findings()) == 1001
    assert log.verdict() is Verdict.ERROR


def test_threads_and_ctas_are_counted_not_repeated() -> None:
    log = FindingLog()
    for cta in range(3):
        for thread in range(31):
            site, other = instruction(7), instruction(9)
            log.add("race", Severity.ERROR, f"{thread}", site, f"t{thread}", earlier=other, cta=cta)
    (one,) = log.findings()
    assert (one.message, one.who, one.count, one.ctas, one.earlier) == ("0", "t0", 93, 3, 9)
    assert str(one).endswith("(93 times, in 3 CTAs)")


@pytest.mark.parametrize("change", ["kind", "severity", "site", "earlier", "apart"])
def test_what_keeps_findings_apart(change: str) -> None:
    values = {
        "kind": "race", "severity": Severity.ERROR, "message": "m", "site": instruction(1),
        "who": "w", "earlier": instruction(2), "apart": "",
    }  # fmt: skip
    other = {
        "kind": "deadlock", "severity": Severity.ISA, "site": instruction(3),
        "earlier": instruction(4), "apart": "x",
    }  # fmt: skip
    log = FindingLog()
    log.add(**values)
    log.add(**values | {"message": "another", "who": "another"})
    log.add(**values | {change: other[change]})
    assert sorted(one.count for one in log.findings()) == [1, 2]


def test_copies_of_a_statement_share_a_group_calls_of_a_function_do_not() -> None:
    log = FindingLog()
    for line in range(20):
        log.add("race", Severity.ERROR, "m", instruction(line, SourceLine("k.cu", 5)), "w")
    for call in "k.cu:100:1", "k.cu:200:1":
        site = instruction(50, SourceLine("k.cu", 5, call))
        log.add("race", Severity.ERROR, "m", site, "w")
    assert sorted(one.count for one in log.findings()) == [1, 1, 20]


def test_the_message_is_made_once() -> None:
    log, made = FindingLog(), []

    def message() -> str:
        made.append(1)
        return "m"

    for _ in range(5):
        log.add("race", Severity.ERROR, message, instruction(1), message)
    assert len(made) == 2  # message and who


def test_where_code_was_inlined_is_read() -> None:
    text = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k() {
.loc 1 7 3, function_name $L_info0, inlined_at 1 40 5
bar.sync 0;
.loc 1 8 3
ret;
}
.file 1 "/some/where/a.cu"
.section .debug_str { $L_info0: .b8 95, 0 }
"""
    first, last = parse_module(text).functions["k"].instructions
    path = "/some/where/a.cu"
    calls = (SourceLine("a.cu", 40, path=path),)
    assert first.source == SourceLine("a.cu", 7, "a.cu:40:5", path, calls)
    assert (first.where, first.place) == ("a.cu:7", "a.cu:7 a.cu:40:5")
    assert (last.where, last.place) == ("a.cu:8", "a.cu:8")


SEVERITIES = st.lists(st.sampled_from(Severity), max_size=6)


@given(SEVERITIES)
def test_the_worst_severity_is_the_verdict_and_strict_makes_errors_of_isa(
    severities: list[Severity],
) -> None:
    log = FindingLog()
    for number, severity in enumerate(severities):
        log.add("race", severity, "m", instruction(number), "w")
    order = [Severity.ERROR, Severity.ISA, Severity.REVIEW, Severity.INCOMPLETE]
    found = [one.severity for one in log.findings()]
    assert found == sorted(severities, key=order.index)
    assert log.verdict().value == (found[0].value if found else "clean")
    report = replace(EMPTY, verdict=log.verdict(), findings=log.findings())
    strict = report.strict()
    assert len(strict.findings) == len(severities)
    assert not any(one.severity is Severity.ISA for one in strict.findings)
    if Severity.ISA in severities:
        assert strict.verdict is Verdict.ERROR
    else:
        assert strict == report
    assert sum(times for _, times in report.totals().values()) == len(severities)


STORES = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>;
    .shared .align 128 .b8 tile[4096];
    ld.param.u64 %d0, [out];
    mov.u32 %r0, tile;
    mov.u32 %r1, 0;
    st.shared.v4.b32 [%r0], {%r1, %r1, %r1, %r1};
    fence.proxy.async.shared::cta;
LOOP:
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 16;
    add.u64 %d0, %d0, 16;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, COUNT;
    @%p0 bra LOOP;
    cp.async.bulk.commit_group;
    LAST
    cp.async.bulk.wait_group 0;
    ret;
}
"""
EMPTY = Program(STORES.replace("COUNT", "1").replace("LAST", "")).launch(
    block=1, args=[np.zeros(64, np.uint8)]
)


@pytest.mark.parametrize("count", [63, 64, 65, 300])
def test_a_read_stays_watched_however_many_operations_are_under_way(count: int) -> None:
    """The first store still reads the tile when the last is overtaken."""
    out = np.zeros(16 * count, np.uint8)
    text = STORES.replace("COUNT", str(count))
    report = Program(text.replace("LAST", "")).launch(block=1, args=[out], schedule="lazy")
    assert report.verdict is Verdict.CLEAN, report
    broken = Program(text.replace("LAST", "st.shared.b32 [%r0], %r1;"))
    for schedule in "lazy", "eager", "uniform":
        report = broken.launch(block=1, args=[out], schedule=schedule)
        assert report.verdict is Verdict.ERROR, report
        assert {one.kind for one in report.findings} == {"race"}


def test_operations_beyond_the_bound_are_said_to_be_unwatched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fa4gen.emulator.checks.order.cluster_threads.MAX_SLOTS_PER_CTA", 128)
    text = STORES.replace("COUNT", "200").replace("LAST", "")
    report = Program(text).launch(block=1, args=[np.zeros(3200, np.uint8)], schedule="lazy")
    assert report.verdict is Verdict.INCOMPLETE
    (one,) = report.findings
    assert one.kind == "not-watched"
    assert "more than 128 asynchronous operations" in one.message


INLINED = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    .loc 1 3 3
    .loc 2 8 5, function_name $L__info_string1, inlined_at 1 3 3
    @!%p1 mbarrier.init.shared::cta.b64 [tile], 1;
    setp.ne.u32 %p2, %r1, 32;
    .loc 1 4 3
    .loc 2 9 5, function_name $L__info_string1, inlined_at 1 4 3
    @!%p2 mbarrier.arrive.shared::cta.b64 _, [tile];
"""


def test_both_places_of_a_finding_are_followed_to_the_kernel() -> None:
    files = '.file 1 "k.cu"\n.file 2 "ring.h"'
    text = kernel(INLINED, shared=8) + files
    found = set()
    for seed in range(8):  # some begin with the arrival, which then finds no mbarrier
        found |= {str(one) for one in run(text, np.zeros(1), block=64, seed=seed).findings}
    assert any(
        "race at ring.h:9 (inlined at k.cu:4)" in one and "at ring.h:8 (inlined at k.cu:3)" in one
        for one in found
    ), found
