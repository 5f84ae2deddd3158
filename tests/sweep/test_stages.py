"""A case of a sweep, taken as far as it asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.runtime.device import find_device
from fa4gen.sweep.stages import CaseTask, run_case
from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}


@pytest.mark.compile
@pytest.mark.skipif(find_device("sm_90a") is not None, reason="this machine has a GPU")
@pytest.mark.parametrize("strict", [False, True])
def test_a_kernel_that_is_partly_emulated_fails_where_that_is_asked_for(
    strict: bool, monkeypatch
) -> None:
    cases = (Case("size/1", 1, 2, 2, 1, 1),)
    monkeypatch.setattr(AttentionFamily, "emulated_cases", lambda self: cases)
    monkeypatch.setattr(AttentionFamily, "further_cases", lambda self, wanted: ())
    task = CaseTask(
        sweep="s", path=Path("s.yaml"), line=1, column=1, name="c", config=CONFIG, varied={},
        until="verified", compiler="nvrtc", seed=9, patterns=(), strict=strict, known_key="",
    )  # fmt: skip
    record = run_case(task).result.record
    assert record is not None
    assert record.proof.startswith("partly emulated (")
    assert record.outcome == ("failed" if strict else "passed")
    assert [problem.message.split(":")[1] for problem in record.problems] == (
        [" partly emulated"] if strict else []
    )
