from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fa4gen.config.settings import parse_settings
from fa4gen.errors import ArgumentError, Problem
from fa4gen.resources import data_root
from fa4gen.verify import run as run_module
from fa4gen.verify.backend import StoppedError
from fa4gen.verify.backends import make_backends, pick_backend
from fa4gen.verify.build import BuiltKernel, build_kernel, build_kernels
from fa4gen.verify.report import (
    error_cell,
    problems,
    repeat_command,
    verdict_data,
    verdict_word,
)
from fa4gen.verify.run import VerifyOptions, verify_built, verify_configs, verify_kernel

FEW = ("size/1", "size/8", "gqa/2", "layout/packed")


class Recording:
    """Passes runs on, and stops or refuses at the requested case."""

    def __init__(self, kernel, fail_at: int, error: Exception) -> None:
        self.kernel, self.fail_at, self.error = kernel, fail_at, error
        self.calls = 0

    def run(self, memory):
        self.calls += 1
        if self.calls == self.fail_at:
            raise self.error
        return self.kernel.run(memory)


def failing_backend(numpy_backend, fail_at, error):
    class Backend(numpy_backend):
        def load(self, plan, compiled):
            self.runnable = Recording(super().load(plan, compiled), fail_at, error)
            return self.runnable

    return Backend()


def test_a_verdict(make_plan, numpy_backend, compiled) -> None:
    options = VerifyOptions(5, FEW)
    verdict = verify_kernel(make_plan(), compiled, numpy_backend(), options, config="a.yaml")
    assert [case.case.name for case in verdict.cases] == list(FEW)
    assert verdict.passed
    assert (verdict.num_passed, verdict.num_cases) == (4, 4)
    assert verdict.proof == verdict_word(verdict) == "ran on NumPy"
    assert verdict.facts["registers"] == 168
    error, bound = verdict.worst("frobenius")
    assert 0 < error < bound
    assert error_cell(verdict, "frobenius").endswith(" %)")
    data = json.loads(json.dumps(verdict_data(verdict), allow_nan=False))
    assert data["passed"]
    assert data["cases"][2]["query_heads"] == 4
    assert data["cases"][2]["errors"].keys() == data["worst"].keys()
    assert list(problems(verdict)) == []


def test_the_same_seed_gives_the_same_errors_whichever_cases_run(
    make_plan, numpy_backend, compiled
) -> None:
    def errors(seed: int, patterns: tuple[str, ...]) -> dict:
        verdict = verify_kernel(
            make_plan(), compiled, numpy_backend(), VerifyOptions(seed, patterns)
        )
        return {case.case.name: case.errors for case in verdict.cases}

    alone, among = errors(5, ("gqa/2",)), errors(5, FEW)
    assert alone["gqa/2"] == among["gqa/2"]
    assert errors(6, ("gqa/2",)) != alone


def test_a_failure_names_the_kernel_the_case_the_seed_and_the_command(
    make_plan, numpy_backend, compiled
) -> None:
    verdict = verify_kernel(
        make_plan(), compiled, numpy_backend("scale"), VerifyOptions(7, FEW), config="my k.yaml"
    )
    assert not verdict.passed
    assert verdict_word(verdict) == "FAILED"
    problem = next(p for p in problems(verdict) if "gqa/2" in p.message)
    assert problem.message.startswith(
        "probe, gqa/2: batch 2, heads 4/2, rows 200/300, bshd, counting"
    )
    assert "expected" in problem.message
    assert problem.remedy == (
        "Seed 7. To reproduce it: fa4gen verify 'my k.yaml' --seed 7 --cases gqa/2"
    )
    assert problem.place == "my k.yaml:1:1"
    json.dumps(verdict_data(verdict), allow_nan=False)


def test_infinite_errors_are_valid_json(make_plan, numpy_backend, compiled) -> None:
    options = VerifyOptions(7, ("size/8",))
    verdict = verify_kernel(make_plan(), compiled, numpy_backend("unwritten"), options)
    data = verdict_data(verdict)
    json.dumps(data, allow_nan=False)
    assert data["worst"]["frobenius"] == "inf"
    assert error_cell(verdict, "frobenius") == "inf (above)"


def test_until_a_failure_the_cheapest_go_first_and_none_after_it(
    make_plan, numpy_backend, compiled
) -> None:
    error = ArgumentError(Problem("query: expected this, got that"))

    class Backend(numpy_backend):
        emulates = True

        def load(self, plan, compiled):
            kernel = Recording(super().load(plan, compiled), 3, error)
            kernel.take_coverage = lambda: None
            return kernel

    cases = ("size/1", "scale/1", "ring/*")
    options = VerifyOptions(5, cases, until_failure=True)
    verdict = verify_kernel(make_plan(), compiled, Backend(), options)
    assert [(case.case.name, case.passed) for case in verdict.cases] == [
        ("scale/1", True),
        ("size/1", False),
    ]
    assert (verdict.num_cases, verdict.stopped, verdict.passed) == (3, False, False)


def test_large_cases_are_repeated_with_large(make_plan, numpy_backend, compiled) -> None:
    verdict = verify_kernel(make_plan(), compiled, numpy_backend(), VerifyOptions(7, ("size/1",)))
    case = verdict.cases[0]
    large = replace(case, case=replace(case.case, name="large/4k"))
    assert repeat_command(verdict, large).endswith("--seed 7 --large --cases large/4k")


def test_a_refused_call_fails_its_case_alone(make_plan, numpy_backend, compiled) -> None:
    error = ArgumentError(Problem("query: expected this, got that"))
    backend = failing_backend(numpy_backend, 1, error)
    verdict = verify_kernel(make_plan(), compiled, backend, VerifyOptions(5, FEW))
    bad = [case for case in verdict.cases if not case.passed]
    assert len(bad) == 1
    assert bad[0].failures[0].check == "stopped"
    assert bad[0].failures[0].message == "query: expected this, got that"
    assert not verdict.stopped


@pytest.mark.parametrize(("mistake", "runs"), [("", 2), ("scale", 1)])
def test_what_is_wrong_in_one_schedule_is_not_run_in_another(
    make_plan, numpy_backend, compiled, mistake, runs
) -> None:
    class Backend(numpy_backend):
        same_bits = False

        def load(self, plan, compiled):
            self.runnable = Recording(super().load(plan, compiled), 0, Exception())
            return self.runnable

    backend = Backend(mistake)
    verdict = verify_kernel(make_plan(), compiled, backend, VerifyOptions(5, ("gqa/2",)))
    assert backend.runnable.calls == runs
    assert verdict.passed == (runs == 2)


def test_after_a_crash_nothing_more_is_run(make_plan, numpy_backend, compiled, monkeypatch) -> None:
    monkeypatch.setattr(run_module, "MAX_THREADS", 1)
    backend = failing_backend(numpy_backend, 4, StoppedError(Problem("the kernel crashed: why")))
    verdict = verify_kernel(make_plan(), compiled, backend, VerifyOptions(5, FEW))
    assert verdict.stopped
    assert backend.runnable.calls == 4
    assert [case.passed for case in verdict.cases] == [True, False]
    assert not verdict.passed
    messages = [problem.message for problem in problems(verdict)]
    assert "the kernel crashed: why" in messages[0]
    assert messages[1] == "probe: 2 of 4 cases not run after that"


def test_kernels_after_a_crash_are_compiled_but_not_run(
    make_plan, numpy_backend, compiled, monkeypatch
) -> None:
    built = [
        BuiltKernel(f"{name}.yaml", replace(make_plan(), vendored_as=name), compiled, "compiled")
        for name in ("a", "b")
    ]
    monkeypatch.setattr("fa4gen.verify.build.build_kernels", lambda *_: iter(built))
    monkeypatch.setattr("fa4gen.verify.build.asdict", lambda _: {"registers": 1})
    backend = failing_backend(numpy_backend, 1, StoppedError(Problem("hangs")))
    first, second = verify_configs(["a", "b"], VerifyOptions(1, FEW), pick=lambda arch: backend)
    assert first.stopped
    assert second.proof == "compiled"
    assert not second.passed
    assert second.exit_status == 1
    assert "not run, because a left the backend unusable" in second.problems[0].message


def test_without_a_backend_the_proof_is_compiled(make_plan, compiled) -> None:
    built = BuiltKernel("a.yaml", make_plan(), compiled, "compiled")
    verdict = verify_built(built, VerifyOptions(1), None)
    assert (verdict.proof, verdict.passed, verdict.num_cases) == ("compiled", True, 0)
    assert error_cell(verdict, "lse") == "-"
    assert verdict_data(verdict)["worst"] == {}


def test_without_a_chosen_case_nothing_is_said_to_have_run(
    make_plan, numpy_backend, compiled
) -> None:
    verdict = verify_kernel(make_plan(), compiled, numpy_backend(), VerifyOptions(1, ("window/*",)))
    assert verdict.proof == "compiled"


CONFIG = """kernel: attention
arch: sm_90a
dtype: bf16
depth: {depth}
"""


def test_a_config_that_cannot_be_built_is_a_verdict(tmp_path) -> None:
    path = tmp_path / "k.yaml"
    path.write_text(CONFIG.format(depth=100))
    built = build_kernel(str(path))
    assert built.compiled is None
    verdict = built.verdict(3)
    assert (verdict.name, verdict.proof, verdict.exit_status) == ("k", "not rendered", 2)
    assert not verdict.passed
    assert verdict.problems[0].line == 4


@pytest.mark.compile
def test_configs_are_built_by_several_processes_in_order(tmp_path) -> None:
    paths = []
    for name, depth in (("one", 64), ("two", 99), ("three", 96)):
        path = tmp_path / f"{name}.yaml"
        path.write_text(CONFIG.format(depth=depth))
        paths.append(str(path))
    built = list(build_kernels(paths, jobs=2))
    assert [kernel.name for kernel in built] == ["one", "two", "three"]
    assert [kernel.proof for kernel in built] == ["compiled", "not rendered", "compiled"]
    assert built[0].compiled.cubin[:4] == b"\x7fELF"
    assert built[1].problems[0].key == "depth"


@pytest.mark.compile
def test_settings_reach_the_processes_that_build(tmp_path) -> None:
    paths = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    for path in paths:
        path.write_text(CONFIG.format(depth=128))
    settings = parse_settings(["depth=64", "num_kv_stages=2"])
    built = list(build_kernels([str(path) for path in paths], jobs=2, settings=settings))
    assert [(kernel.name, kernel.proof) for kernel in built] == [
        ("one", "compiled"),
        ("two", "compiled"),
    ]
    assert all(kernel.plan is not None and kernel.plan.depth == 64 for kernel in built)


@pytest.mark.compile
@pytest.mark.parametrize("jobs", [1, 2])
def test_own_templates_reach_what_builds(tmp_path, jobs: int) -> None:
    name = "attention_sm90/load.cuh.j2"
    own = tmp_path / "mine" / name
    own.parent.mkdir(parents=True)
    own.write_text((data_root("templates") / name).read_text() + "// mine\n")
    paths = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    for path in paths:
        path.write_text(CONFIG.format(depth=64))
    built = list(build_kernels([*map(str, paths)], jobs, templates=tmp_path / "mine"))
    assert [kernel.proof for kernel in built] == ["compiled", "compiled"]
    assert all(kernel.unit is not None and "// mine" in kernel.unit.source for kernel in built)
    assert "// mine" not in build_kernel(str(paths[0])).unit.source


def test_the_gpu_is_the_first_backend() -> None:
    assert make_backends()[0].__name__ == "GpuBackend"


def test_the_emulator_stands_in_for_a_gpu_that_is_not_there(monkeypatch) -> None:
    monkeypatch.setattr("fa4gen.verify.gpu.find_device", lambda arch: None)
    backend = pick_backend("sm_90a")
    assert backend is not None
    assert (backend.name, backend.proof) == ("emulator", "emulated")
    assert pick_backend("sm_70") is None
