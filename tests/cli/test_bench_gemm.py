"""`fa4gen bench` of matrix products from the command line to its files, with fixed times."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from fa4gen.bench.results import ConfigResult, Series, SizeResult
from fa4gen.cli.main import main
from fa4gen.designs.build import build_plan
from fa4gen.errors import Fa4genError, Problem
from fa4gen.render.own_templates import folder_sha256
from fa4gen.runtime.device import DeviceInfo

CONFIGS = ["gemm_bf16_sm90", "gemm_bf16_residual_sm90"]


def time_kernel(options, plan, config: str) -> ConfigResult:
    if plan.residual == "row":
        raise Fa4genError(Problem(f"{plan.name} is wrong"))
    ours = 0.52 if plan.residual == "matrix" else 0.5
    plain = ("gemm_bf16_sm90", Series((0.5,), (0.0,)))
    sizes = tuple(
        SizeResult(
            size=size,
            flop=size.flop,
            ours=Series((ours,), (0.0,)),
            peers={"cublas": Series((1.0,), (0.0,))},
            left_out={},
            error=0.001,
            without=plain if plan.residual == "matrix" else None,
        )
        for size in options.sizes
    )
    facts = {
        name: getattr(plan, name)
        for name in ("dtype", "out_dtype", "a_major", "b_major", "residual", "activation")
    }
    return ConfigResult(config, plan.name, facts, sizes, family="gemm")


@pytest.fixture(autouse=True)
def _made_up(monkeypatch) -> None:
    from fa4gen.config.load import load_config

    def build_kernels(configs, jobs, compiler, settings, templates):
        del jobs, compiler, settings, templates
        for config in configs:
            plan = build_plan(load_config(config).config)
            yield SimpleNamespace(
                config=config, name=plan.name, plan=plan, compiled=object(), problems=()
            )

    def make_timer(options, peers, kernels):
        def time_one(plan, compiled, config):
            return time_kernel(options, plan, config)

        return SimpleNamespace(time_kernel=time_one)

    device = DeviceInfo(0, "NVIDIA H200", (9, 0), 132, 1 << 37, 60 << 20)
    monkeypatch.setattr("fa4gen.runtime.device.require_device", lambda _: device)
    monkeypatch.setattr("fa4gen.verify.build.build_kernels", build_kernels)
    monkeypatch.setattr("fa4gen.bench.run.Bench", make_timer)


def test_tables(capsys) -> None:
    assert main(["bench", *CONFIGS, "--sizes", "2k,64x128x256"]) == 0
    out = capsys.readouterr().out
    assert "gemm_bf16_sm90: bf16, no residual; TFLOP/s" in out
    assert "gemm_bf16_residual_sm90: bf16, residual; TFLOP/s" in out
    assert "ours / best peer" in out
    last = out.rstrip().splitlines()[-1]
    assert last.split() == ["gemm_bf16_residual_sm90", "gemm_bf16_sm90", *["+4.0", "%"] * 2]


def test_json_and_a_picture(capsys, tmp_path) -> None:
    files = ["--json", str(tmp_path / "b.json"), "--plot", str(tmp_path / "b.svg")]
    assert main(["bench", *CONFIGS, "--format", "json", *files]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "b.json").read_text())
    words = [size["word"] for size in document["configs"][0]["sizes"]]
    assert words == ["2k", "4k", "8k", "16k", "8kx28kx8k"], "default sizes"
    assert document["residual_costs"][0]["sizes"]["8k"] == 0.04
    assert "Matrix product: speed relative to the fastest peer" in (tmp_path / "b.svg").read_text()


def test_a_wrong_kernel_is_reported_and_the_others_are_timed(capsys) -> None:
    assert main(["bench", CONFIGS[0], "gemm_bf16_bias_gelu_sm90", "--sizes", "2k"]) == 1
    said = capsys.readouterr()
    assert "gemm_bf16_bias_gelu_sm90 is wrong" in said.err
    assert "gemm_bf16_sm90: bf16, no residual" in said.out


def test_results_say_that_own_templates_were_used(capsys, tmp_path) -> None:
    own = tmp_path / "gemm_sm90/load.cuh.j2"
    own.parent.mkdir()
    own.write_text("// mine\n")
    options = ["--sizes", "2k", "--format", "json"]
    assert main(["bench", CONFIGS[0], *options, "--templates", str(tmp_path)]) == 0
    (text,) = [one for one in json.loads(capsys.readouterr().out)["notes"] if "own" in one]
    assert text == f"own templates: {tmp_path}, SHA-256 {folder_sha256(tmp_path)}"
    assert main(["bench", CONFIGS[0], *options]) == 0
    assert "own templates" not in capsys.readouterr().out
