from __future__ import annotations

import json
import re

import pytest

from fa4gen.cli.main import main
from fa4gen.runtime.device import find_device
from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.family import family_of
from fa4gen.verify.run import verify_configs

no_gpu = pytest.mark.skipif(find_device("sm_90a") is not None, reason="this machine has a GPU")
CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: {}\n"


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "k.yaml"
    path.write_text(CONFIG.format(64))
    return path


@no_gpu
@pytest.mark.compile
def test_without_a_gpu_kernels_are_emulated_and_it_says_so(config, capsys) -> None:
    assert main(["verify", "k.yaml", "--seed", "9", "--cases", "size/*"]) == 0
    output = capsys.readouterr()
    row = output.out.splitlines()[1].split()
    assert row[:3] == ["k", "emulated", "2/2"]
    assert "ran on" not in output.out
    assert "1 kernel was emulated on the CPU: no GPU here runs sm_90a" in output.err
    assert "seed 9" in output.err
    assert "its share of that bound" in output.err


@no_gpu
@pytest.mark.compile
def test_json_and_the_report_file(config, capsys, tmp_path) -> None:
    command = ["verify", "k.yaml", "--format", "json", "--cases", "size/1"]
    assert main([*command, "--report", "out/r.json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "out" / "r.json").read_text())
    assert document["exit_status"] == 0
    (kernel,) = document["kernels"]
    assert (kernel["name"], kernel["proof"], kernel["passed"]) == ("k", "emulated", True)
    assert [case["name"] for case in kernel["cases"]] == ["size/1"]
    assert kernel["config"] == "k.yaml"
    assert kernel["compiled"]["spill_store_bytes"] == 0


@no_gpu
@pytest.mark.compile
def test_a_kernel_that_did_not_run_as_a_whole_is_partly_emulated(
    config, capsys, monkeypatch
) -> None:
    cases = (Case("size/1", 1, 2, 2, 1, 1),)
    monkeypatch.setattr(AttentionFamily, "emulated_cases", lambda self: cases)
    monkeypatch.setattr(AttentionFamily, "further_cases", lambda self, wanted: ())
    assert main(["verify", "k.yaml", "--seed", "9", "--format", "json"]) == 0
    output = capsys.readouterr()
    (kernel,) = json.loads(output.out)["kernels"]
    proof = re.fullmatch(r"partly emulated \((\d+) instructions not run\)", kernel["proof"])
    assert proof is not None
    covered = kernel["exercise"]
    unreachable = sum(covered["instructions_unreachable"].values())
    number = covered["instructions"] - covered["instructions_run"] - unreachable
    assert unreachable
    assert int(proof[1]) == number > 0
    assert f"warning: k: {number} instructions not run in any case, the first at k" in output.err
    (line,) = [one for one in output.err.splitlines() if "always taken the same way" in one]
    assert re.fullmatch(r"\d+ branches were .*: --show-coverage lists them", line)
    assert "not exercised" not in output.err
    assert main(["verify", "k.yaml", "--seed", "9", "--strict", "--show-coverage"]) == 1
    output = capsys.readouterr()
    assert "FAILED" in output.out
    assert f"k: partly emulated: {number} instructions not run in any case" in output.err
    listed = re.findall(r"warning: k: (\d+) instructions? not run: k\S+:\d+", output.err)
    assert sum(map(int, listed)) == number
    assert "not exercised: k: branch" in output.err
    assert "always taken the same way" not in output.err
    # a part of the cases says nothing of the whole kernel
    assert main(["verify", "k.yaml", "--strict", "--cases", "size/1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["k", "emulated"]


@no_gpu
def test_require_gpu(config, capsys) -> None:
    assert main(["verify", "k.yaml", "--require-gpu"]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert "kernels for sm_90a need a GPU" in output.err


@no_gpu
@pytest.mark.compile
def test_a_new_seed_each_time_that_can_be_given_again(config, capsys) -> None:
    def seed(*arguments: str) -> int:
        command = ["verify", "k.yaml", "--format", "json", "--cases", "size/1"]
        assert main([*command, *arguments]) == 0
        output = capsys.readouterr()
        found: int = json.loads(output.out)["seed"]
        assert f"seed {found}" in output.err
        return found

    assert seed() != seed()
    assert seed("--seed", "17") == 17
    assert main(["verify", "k.yaml", "--seed", "-1"]) == 2
    assert main(["verify", "k.yaml", "--seed", str(2**32)]) == 2


@no_gpu
def test_cases_are_listed_and_chosen(config, capsys) -> None:
    assert main(["verify", "k.yaml", "--list-cases", "--cases", "gqa/*", "--cases", "size/*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("k: 3 cases")
    assert [line.split()[0] for line in lines[2:]] == ["size/1", "size/64", "gqa/3"]
    # cases that the emulator leaves out can be asked for
    assert main(["verify", "k.yaml", "--list-cases", "--cases", "odd/77"]) == 0
    assert capsys.readouterr().out.startswith("k: 1 case\n")
    assert main(["verify", "k.yaml", "--list-cases", "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    from fa4gen.config.load import load_config
    from fa4gen.designs.build import build_plan

    expected = family_of(build_plan(load_config(config).config)).emulated_cases()
    assert [case["name"] for case in kernel["cases"]] == [case.name for case in expected]


def test_large_cases_are_asked_for(config, capsys) -> None:
    assert main(["verify", "k.yaml", "--list-cases", "--cases", "large/*"]) == 2
    assert "no case is named large/*" in capsys.readouterr().err
    assert main(["verify", "k.yaml", "--list-cases", "--large", "--cases", "large/*"]) == 0


def test_all_mistakes_in_configs_are_reported_before_anything_is_run(
    config, capsys, tmp_path
) -> None:
    (tmp_path / "bad.yaml").write_text(CONFIG.format(100))
    assert main(["verify", "k.yaml", "bad.yaml"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "bad.yaml:4:" in output.err


def test_the_report_replaces_nothing_else(config, capsys, tmp_path) -> None:
    assert main(["verify", "k.yaml", "--report", "k.yaml"]) == 2
    assert "--report would replace a file that is not json" in capsys.readouterr().err
    assert config.read_text() == CONFIG.format(64)


@pytest.mark.gpu
def test_on_a_gpu(config, capsys, gpu) -> None:
    assert main(["verify", "k.yaml", "--cases", "size/*", "--require-gpu"]) == 0
    assert f"ran on {gpu.name}" in capsys.readouterr().out


@no_gpu
@pytest.mark.compile
@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(143)], ids=["INT", "TERM"])
@pytest.mark.parametrize("shown", ["text", "json"])
def test_a_verify_that_is_stopped_shows_what_it_proved(
    config, capsys, monkeypatch, ending, shown
) -> None:
    def stopped(configs, *args, **options):
        yield from verify_configs(configs[:1], *args, **options)
        raise ending

    config.with_name("later.yaml").write_text(CONFIG.format(128))
    monkeypatch.setattr("fa4gen.verify.run.verify_configs", stopped)
    arguments = ["k.yaml", "later.yaml", "--cases", "size/1", "--format", shown]
    try:
        status = main(["verify", *arguments, "--report", "r.json"])
    except SystemExit as error:
        status = error.code
    assert status == (130 if isinstance(ending, KeyboardInterrupt) else 143)
    output = capsys.readouterr()
    assert ("k  " in output.out) == (shown == "text")
    assert "stopped: 1 kernel has no result, and no file was written" in output.err
    assert not config.with_name("r.json").exists()
