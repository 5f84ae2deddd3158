"""A case of a sweep, taken as far as it asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fa4gen.runtime.device import find_device
from fa4gen.sweep.stages import CaseTask, _templates, run_case
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


def test_a_result_is_kept_for_as_long_as_own_templates_are_the_same(tmp_path) -> None:
    """All of them count: a candidate that the compiler takes may be made from other ones."""
    own = tmp_path / "attention_sm90/load.cuh.j2"
    unused = tmp_path / "merge/kernel.cu.j2"
    for path in (own, unused):
        path.parent.mkdir()
        path.write_text("// mine\n")
    task = CaseTask(
        sweep="s", path=Path("s.yaml"), line=1, column=1, name="c", config=CONFIG, varied={},
        until="rendered", compiler="nvrtc", seed=9, patterns=(), strict=False, known_key="",
    )  # fmt: skip
    record = run_case(task).result.record
    assert record is not None
    keys = [record.key]
    task = replace(task, templates=tmp_path)
    for path in (None, own, unused):
        if path is not None:
            path.write_text("// new\n")
            _templates.cache_clear()  # which another process has not
        record = run_case(task).result.record
        assert record is not None
        assert record.outcome == "passed"
        keys.append(record.key)
        assert run_case(replace(task, known_key=record.key)).result.record is None
    assert len(set(keys)) == 4
