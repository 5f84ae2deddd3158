"""The table of a sweep's results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.cli.sweep_report import print_results
from fa4gen.errors import Problem
from fa4gen.sweep.record import CaseRecord

if TYPE_CHECKING:
    import pytest

FACTS = {
    "dynamic_shared_bytes": 91000, "num_stages": 4, "num_epi_stages": 2, "registers": 168,
    "spill_store_bytes": 4, "spill_load_bytes": 8, "static_shared_bytes": 312,
}  # fmt: skip
PASSED = CaseRecord(
    "s", "s_a", "passed", "verify", "emulated", seconds={"verify": 12.0}, facts=FACTS,
    verification={"seed": 1, "num_cases": 15, "num_passed": 15},
)  # fmt: skip
FAILED = replace(PASSED, case="s_b", outcome="failed", problems=(Problem("element 3 is wrong"),))
CRASHED = CaseRecord("s", "s_c", "failed", "worker", "not rendered", problems=(Problem("died"),))
OLDER = replace(PASSED, case="s_d", facts={"registers": 168}, verification={})


def test_what_was_found_out_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_results("s", [PASSED, FAILED, CRASHED, OLDER], Path("r.jsonl"), "text")
    table, reasons = capsys.readouterr().out.split("\n\n")
    assert [line.split("  ") for line in map(_gaps, table.splitlines()[1:])] == [
        ["s_a", "emulated", "15/15", "168", "12", "91312", "4, 2 epi", "12.0"],
        ["s_b", "failed to verify", "15/15", "168", "12", "91312", "4, 2 epi", "12.0"],
        ["s_c", "its worker failed", "-", "-", "-", "-", "-", "0.0"],
        ["s_d", "emulated", "-", "168", "-", "-", "-", "12.0"],
    ]
    assert "s_b   failed to verify   element 3 is wrong" in reasons
    assert reasons.splitlines()[-1] == "proved: 2 emulated"


def _gaps(line: str) -> str:
    return re.sub(" {2,}", "  ", line)
