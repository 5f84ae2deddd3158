from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.render.explanation import explain

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 128
mask: causal
num_kv_stages: auto
BN: 96
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "k.yaml"
    path.write_text(CONFIG)
    return path


def test_every_key_with_who_chose_it(config: Path) -> None:
    loaded = load_config(config)
    plan = build_plan(loaded.config)
    values = {row[0]: row[1:] for row in explain(plan, loaded)[1].rows}
    keys = set(type(loaded.config).model_fields) - {"kernel", "name", "arch"}
    assert keys <= set(values)
    assert values["dtype"] == ("bf16", "config", "3", "")
    assert values["softcap"] == ("none", "default", "", "")
    assert values["BN"][:3] == ("96", "config", "7")
    value, source, line, why = values["num_kv_stages"]
    assert (value, source, line) == (str(plan.num_kv_stages), "auto", "6")
    assert why
    assert values["registers"][0].startswith("{producer: ")


GEMM = "kernel: gemm\narch: {}\ndtype: bf16\nresidual: matrix\nactivation: relu(x)\n"


@pytest.mark.parametrize(
    "text",
    [CONFIG, GEMM.format("sm_90a"), GEMM.format("sm_100a")],
    ids=["attention", "gemm on Hopper", "gemm on Blackwell"],
)
def test_text_tells_of_every_part_of_the_plan(
    config: Path,
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    config.write_text(text)
    assert main(["explain", str(config)]) == 0
    out = capsys.readouterr().out
    plan = build_plan(load_config(config).config)
    rows = [line.split() for line in out.splitlines()]
    for region in plan.shared:
        assert [region.name, str(region.offset), str(region.end), str(region.bytes)] in [
            row[:4] for row in rows
        ]
        assert f" {region.name}: " in out  # in the drawing
    for barrier in plan.barriers:
        assert [barrier.name, str(barrier.offset), str(barrier.slots), str(barrier.arrivals)] in [
            row[:4] for row in rows
        ]
        row_of_it = re.compile(rf" *{barrier.name}  +{re.escape(barrier.meaning)}  ")
        (line,) = [row for row in out.splitlines() if row_of_it.match(row)]
        assert barrier.arrived_by in line
        assert line.endswith(barrier.waited_by)
    for role in plan.roles:
        assert role.work in out
    for tensor_map in plan.tensor_maps:
        assert [tensor_map.parameter, tensor_map.tensor, tensor_map.direction] in [
            row[:3] for row in rows
        ]
    for part in getattr(plan, "tensor_memory", ()):
        assert part.holds in out
    for parameter in plan.parameters:
        assert parameter.meaning in out
    assert f"{plan.launch.dynamic_shared_bytes} of 232448 bytes" in out
    assert plan.launch.grid in out


def test_json_is_the_manifests_plan(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    assert main(["render", "k.yaml"]) == 0
    manifest = json.loads((config.parent / "generated/sm_90a/k/k.json").read_text())
    capsys.readouterr()
    assert main(["explain", "k.yaml", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    candidates, plan = manifest["choice"], manifest["plan"]
    assert data == {"kernels": [{"config": "k.yaml", "candidates": candidates, "plan": plan}]}


def test_a_config_that_cannot_work(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(CONFIG.replace("num_kv_stages: auto", "num_kv_stages: 16"))
    assert main(["explain", str(config)]) == 2
    assert f"{config}:6:" in capsys.readouterr().err
