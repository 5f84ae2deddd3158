"""``render`` asks a compiler once, and believes the manifest afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.cli.main import main

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 64\nmask: causal\n"
MANIFEST = Path("generated/sm_90a/k/k.json")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FA4GEN_NO_COMPILE")
    Path("k.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str = "auto") -> None:
        raise MissingCapabilityError(Problem("NVRTC is not installed"))

    from fa4gen.errors import MissingCapabilityError, Problem

    monkeypatch.setattr("fa4gen.toolchain.compile.find_compiler", missing)


def choice() -> dict[str, object]:
    found: dict[str, object] = json.loads(MANIFEST.read_text())["choice"]
    return found


def test_without_a_compiler_the_first_candidate_is_written(work, no_compiler, capsys) -> None:
    assert main(["render", "k.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "rendered 1 kernel, not compiled;" in out
    assert "rendered, not compiled: NVRTC is not installed" in err
    assert choice() == {"set": {}, "compiler": "", "left": []}
    assert main(["check", "k.yaml"]) == 0


@pytest.mark.compile
def test_what_a_compiler_took_is_rendered_again_without_one(work, capsys, request) -> None:
    assert main(["render", "k.yaml"]) == 0
    assert "rendered 1 kernel; files: 4 created" in capsys.readouterr().out
    assert str(choice()["compiler"]).startswith("nvrtc ")
    before = MANIFEST.read_bytes()
    request.getfixturevalue("no_compiler")
    assert main(["check", "k.yaml"]) == 0
    assert main(["render", "k.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "rendered 1 kernel; files: 4 unchanged" in out
    assert "not compiled" not in err
    assert MANIFEST.read_bytes() == before
    assert main(["explain", "k.yaml"]) == 0
    assert "compiles clean (nvrtc" in capsys.readouterr().out


def test_a_recorded_candidate_stays_as_long_as_the_config(work, no_compiler, capsys) -> None:
    record("k.yaml", {"BN": 80}, "nvrtc 1.2.3")
    assert main(["check", "k.yaml"]) == 3  # the texts are those of another candidate
    assert main(["render", "k.yaml", "--force"]) == 0
    assert choice() == {"set": {"BN": 80}, "compiler": "", "left": []}  # no compiler took these
    assert "kBN = 80;" in MANIFEST.with_suffix(".cu").read_text()
    Path("k.yaml").write_text(CONFIG + "softcap: 30.0\n")
    assert main(["render", "k.yaml"]) == 0
    assert choice()["set"] == {}


def record(config: str, keys: dict[str, object], compiler: str) -> None:
    """Write the generated files of ``config`` with a manifest that says ``keys`` were taken."""
    from fa4gen.render.manifest import intact_manifest, manifest_json, sealed

    assert main(["render", config, "--no-compile"]) == 0
    manifest = intact_manifest(MANIFEST.read_bytes())
    assert manifest is not None
    manifest["choice"] = {"set": keys, "compiler": compiler, "left": []}
    MANIFEST.write_text(manifest_json(sealed(manifest)))


@pytest.mark.parametrize("keys", [{"BN": 7}, {"nonsense": 1}, {"depth": 128}])
def test_a_record_that_sets_what_it_must_not_is_ignored(keys, work, no_compiler, capsys) -> None:
    record("k.yaml", keys, "nvrtc 1.2.3")
    assert main(["render", "k.yaml", "--force"]) == 0
    assert choice()["set"] == {}
    assert "Traceback" not in capsys.readouterr().err


def test_explain_says_that_no_compiler_was_asked(work, capsys) -> None:
    assert main(["explain", "k.yaml"]) == 0
    out = capsys.readouterr().out
    assert "Candidates, in order" in out
    assert "not asked: --compile asks it" in out


@pytest.mark.compile
def test_explain_shows_what_was_left_and_why(work, capsys) -> None:
    Path("k.yaml").write_text(CONFIG.replace("64", "128").replace("causal", "documents"))
    assert main(["explain", "k.yaml", "--compile", "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["candidates"]["left"][0]["set"] == {}
    assert kernel["candidates"]["left"][0]["why"].startswith("spill: ")
    assert kernel["candidates"]["set"]
