from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan

if TYPE_CHECKING:
    from pathlib import Path

CAUSAL = "name: causal\nkernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\nmask: causal\n"
CAUSAL += "BN: 96\nBM: 192\n"


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(CAUSAL)
    (tmp_path / "b.yaml").write_text(CAUSAL.replace("BN: 96", "BN: 64"))
    return tmp_path


def differences(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], Any]:
    """Return the pairs of values by part and name, and the whole document."""
    capsys.readouterr()
    assert main(["diff", *words, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    return {f"{d['part']}: {d['name']}": (d["a"], d["b"]) for d in data["differences"]}, data


def test_keys_derived_values_and_lines(configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plans = [build_plan(load_config(configs / name).config) for name in ("a.yaml", "b.yaml")]
    found, data = differences(capsys, "a.yaml", "b.yaml")
    assert found["keys: BN"] == (96, 64)
    assert "keys: name" not in found
    shared = tuple(plan.launch.dynamic_shared_bytes for plan in plans)
    assert found["totals: shared memory, bytes"] == shared
    assert found["barriers: key_full.transaction_bytes"] == (96 * 256, 64 * 256)
    assert found["shared: key.bytes"] == tuple(
        next(region.bytes for region in plan.shared if region.name == "key") for plan in plans
    )
    assert not [name for name in found if name.endswith((".offset", ".holds", "summary"))]
    assert data["a"] == "a.yaml"
    assert 0 < data["source_lines"]["only_a"] < 100


def test_set_changes_b_which_is_a_by_default(
    configs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed, data = differences(capsys, "a.yaml", "--set", "BN=64")
    of_files, _ = differences(capsys, "a.yaml", "b.yaml")
    assert changed == of_files
    assert data["b"] == "a.yaml"


def test_rows_of_one_kernel_alone_and_all_arguments(
    configs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = differences(capsys, "a.yaml", "gemm_bf16_sm90")
    assert found["roles: transfer 0"] == (None, {"num_warps": 1, "registers": 40})
    assert found["parameters: b_map"] == (None, {"c_type": "const __grid_constant__ TensorMap"})
    assert found["keys: depth"] == (128, None)


def test_the_lines_themselves(configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "a.yaml", "b.yaml", "--diff"]) == 0
    out = capsys.readouterr().out.splitlines()
    removed = [line for line in out if line.startswith("-") and not line.startswith("---")]
    added = [line for line in out if line.startswith("+") and not line.startswith("+++")]
    assert out[-1] == (
        f"A: a.yaml; B: b.yaml; {len(removed)} lines only in A, {len(added)} only in B"
    )
    assert any("96" in line for line in removed)
    assert ["keys", "A", "B"] in [line.split() for line in out]


def test_tables_in_markdown(configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "a.yaml", "b.yaml", "--format", "github"]) == 0
    assert "| keys | A | B |\n| --- | --- | --- |\n| BN | 96 | 64 |\n" in capsys.readouterr().out


@pytest.mark.parametrize(("other", "status"), [("a.yaml", 0), ("b.yaml", 1)])
def test_exit_code_as_git_has_it(
    configs: Path, other: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "a.yaml", other]) == 0
    assert main(["diff", "a.yaml", other, "--exit-code"]) == status
    assert ("the same source" in capsys.readouterr().out) == (status == 0)


def test_a_folder_is_more_than_one(configs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", ".", "a.yaml"]) == 2
    assert ". names 2 configs" in capsys.readouterr().err
