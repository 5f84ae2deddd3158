from __future__ import annotations

import json
import random
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import random_configs

from fa4gen.config.load import config_schema
from fa4gen.designs.registry import DESIGNS
from fa4gen.errors import ConfigError, Problem
from fa4gen.toolchain.cache import Cache

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = 27


@pytest.fixture(scope="module")
def sample() -> list[dict[str, Any]]:
    return [random_configs.draw_numbered(7, number) for number in range(SAMPLE)]


def test_accepted_configs_render(sample: list[dict[str, Any]]) -> None:
    records = list(random_configs.records(iter(sample), compiled=False))
    assert [r for r in records if r.verdict != "rendered"] == []
    assert {r.design for r in records} == {design.name for design in DESIGNS}


def test_they_compile_clean(sample: list[dict[str, Any]], tmp_path: Path) -> None:
    cheap = next(keys for keys in sample if keys["kernel"] == "gemm")
    [record] = random_configs.records(iter([cheap]), cache=Cache(tmp_path))
    assert record.verdict == "clean", record.findings
    assert record.registers > 0
    assert record.candidates >= 1


@pytest.mark.parametrize(
    ("remedy", "verdict"), [("Set BN: 64.", "refused"), ("Keep fewer values alive.", "stuck")]
)
def test_a_refusal_has_to_offer_something(
    sample: list[dict[str, Any]], remedy: str, verdict: str
) -> None:
    def refuse(loaded: Any) -> Any:
        problem = Problem("12 bytes are spilled", remedy)
        outcome = SimpleNamespace(problems=(problem,), is_final=False, kernel=None)
        return [
            SimpleNamespace(outcome=outcome, left=(), candidate=SimpleNamespace(changes={}))
            for _ in loaded
        ]

    [record] = random_configs.tried(sample[:1], refuse)
    assert record.verdict == verdict


def test_every_key_is_drawn() -> None:
    for name, schema in config_schema()["$defs"].items():
        for key, node in schema["properties"].items():
            if key != "name":
                drawn = {
                    str(random_configs.draw_value(node, random.Random(n), key)) for n in range(60)
                }
                assert "const" in node or len(drawn) > 1, (name, key)


def test_a_key_whose_values_cannot_be_drawn_is_not_left_out() -> None:
    with pytest.raises(ValueError, match="colour: how to draw"):
        random_configs.draw_value({"type": "string"}, random.Random(0), "colour")


def test_a_config_follows_from_its_number(sample: list[dict[str, Any]]) -> None:
    assert random_configs.draw_numbered(7, 11) == sample[11]
    assert len({json.dumps({**keys, "name": ""}) for keys in sample}) > SAMPLE * 0.8


def test_crashes_are_found(sample: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(config: object) -> None:
        raise KeyError(config)

    with monkeypatch.context() as patch:
        patch.setattr(random_configs, "build_plan", crash)
        keys = random_configs.draw_numbered(7, 0)
        [record] = random_configs.records(iter([keys]), compiled=False)
    assert record.verdict == "crash"
    assert "KeyError" in record.findings[0]


def test_what_is_refused_is_counted(
    sample: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    first = tmp_path / "first.jsonl"
    monkeypatch.setattr(sys, "argv", ["", "--plan-only", "--count", "2", "--json", str(first)])
    assert random_configs.main() == 0

    def refuse(config: object) -> None:  # as after a new limit
        raise ConfigError(Problem("no room", key="BN"))

    monkeypatch.setattr(random_configs, "build_plan", refuse)
    monkeypatch.setattr(sys, "argv", ["", "--plan-only", "--again", str(first)])
    assert random_configs.main() == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("refused: 2")


@pytest.mark.parametrize("design", [design.name for design in DESIGNS])
def test_every_design_is_drawn(design: str) -> None:
    for number in range(2):
        assert random_configs.draw_numbered(5204, number, design)["name"] == f"random_5204_{number}"
