"""``fa4gen verify --record``: the manifest says how far the kernel is proved, and stays current."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.runtime.device import find_device
from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 64\n"
VERIFY = ["verify", "k.yaml", "--seed", "9", "--record"]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.yaml").write_text(CONFIG)
    cases = (Case("size/1", 1, 2, 2, 1, 1),)
    monkeypatch.setattr(AttentionFamily, "emulated_cases", lambda self: cases)
    monkeypatch.setattr(AttentionFamily, "further_cases", lambda self, wanted: ())
    return tmp_path


def manifest() -> dict:
    return json.loads(Path("out/sm_90a/k/k.json").read_text("utf-8"))


@pytest.mark.compile
@pytest.mark.skipif(find_device("sm_90a") is not None, reason="this machine has a GPU")
def test_the_manifest_says_how_far_with_date_and_seed(work, capsys) -> None:
    assert main(["render", "k.yaml", "-o", "out"]) == 0
    assert manifest()["proof"] == "rendered"
    assert main([*VERIFY, "-o", "out"]) == 0
    assert "recorded in the manifests below out" in capsys.readouterr().err
    assert manifest()["proof"].startswith("partly emulated (")
    verified = manifest()["verified"]
    assert (verified["seed"], verified["cases"]) == (9, 1)
    age = datetime.now(UTC).date() - date.fromisoformat(verified["date"])
    assert 0 <= age.days < 2
    assert main(["check", "k.yaml", "-o", "out"]) == 0
    assert main(["render", "k.yaml", "-o", "out"]) == 0
    assert manifest()["verified"] == verified
    assert main([*VERIFY, "-o", "out", "--strict"]) == 1  # it fails, and loses what was proved
    assert manifest()["proof"] == "rendered"


def test_what_cannot_be_recorded_is_refused_before_anything_runs(work, capsys) -> None:
    assert main(VERIFY) == 3
    err = capsys.readouterr().err
    assert "generated/sm_90a/k/k.cu: no proof of k can be recorded: this file is missing" in err
    assert "fa4gen render CONFIG -o generated" in err
    assert "verifying" not in err
    assert main([*VERIFY, "--cases", "size/1"]) == 2
    assert "proves nothing that can be recorded" in capsys.readouterr().err
    assert main(["verify", "k.yaml", "-o", "out"]) == 2
    assert "give both" in capsys.readouterr().err
