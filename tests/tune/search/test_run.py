"""Tuning with times that are looked up; kernels are chosen, checked and recorded as always."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config, load_mapping
from fa4gen.errors import CompileError, ConfigError, Fa4genError, Problem
from fa4gen.sweep.results import ResultsFile
from fa4gen.tune.family import family_called
from fa4gen.tune.search import run
from fa4gen.tune.search.record import read_record
from fa4gen.tune.search.run import TuneOptions, run_problem, run_tune, tasks_for
from fa4gen.workers import Done, Lost, run_tasks
from tests.tune.search.fakes import FakeTimer, inline

if TYPE_CHECKING:
    from pathlib import Path

BASE = "gemm_bf16_sm90"
GEMM = family_called("gemm")
FEW, WIDE = "16x4096x14336", "4104x4104x4104"
OPTIONS = TuneOptions(candidates=3)


def uncompiled(loaded: Any, **_: Any) -> Any:
    return SimpleNamespace(plan=loaded.config, kernel=None)


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "compile" not in request.keywords:
        monkeypatch.setattr(run, "compile_config", uncompiled)


def tuned(
    path: Path, timer: FakeTimer | None, *problems: str, options: TuneOptions = OPTIONS
) -> tuple[list[Any], list[str]]:
    """The records, and whether each was new or kept."""
    base = load_config(find_configs([BASE])[0])
    news: list[str] = []
    with ResultsFile(path, BASE, fresh=False, read=read_record, kind="tuning") as file:
        parsed = [GEMM.parse_problem(problem) for problem in problems]
        tasks = tasks_for(base, parsed, options, file.records)
        function = partial(run_problem, make_timer=lambda *_: timer)
        report = lambda _, what: news.append(what)  # noqa: E731
        return run_tune(tasks, file, inline, report, function=function), news


def test_the_measured_winner_not_the_predicted_one(tmp_path: Path) -> None:
    us = {"gemm_bf16_m16_split_sm90": 40.0, "gemm_bf16_m16_sm90": 36.0, BASE: 140.0, "cublas": 42.0}
    timer = FakeTimer(us)
    (record,), _ = tuned(tmp_path / "r.jsonl", timer, FEW)
    assert record.kernels[0].name == "gemm_bf16_m16_split_sm90"  # the model's choice
    assert (record.winner, record.clear) == ("gemm_bf16_m16_sm90", True)
    assert record.decided_by == "measurement"
    assert record.chosen.us == pytest.approx(36, rel=0.01)
    assert record.peers_us == {"cublas": pytest.approx(42, rel=0.01)}
    # the config itself is measured too, though it is none of the first three
    ((names, problem),) = timer.prepared
    assert names[0] == "gemm_bf16_m16_split_sm90"
    assert "gemm_bf16_m16_sm90" in names[1:3]
    assert names[-1] == BASE
    # and the first three with what the model does not weigh
    refined = [f"{name}_{what}" for name in names[:3] for what in ("evict_both", "short_ends")]
    assert names[3:-1] == tuple(refined)
    own = record.kernels[-1]
    assert (len(own.rounds_us), len(own.again_us)) == (1, 5)  # far behind, but in the table
    assert problem == GEMM.parse_problem(FEW)
    # a kernel with a wrong output is not chosen, and the record says why
    wrong = [one for one in record.kernels if one.left_out]
    assert {one.name for one in wrong} == set(names) - set(us)
    assert {(one.us, one.left_out) for one in wrong} == {(None, "its output is wrong")}
    assert read_record(record.line()) == record


def test_without_a_gpu_the_model_chooses(tmp_path: Path) -> None:
    (few, wide), _ = tuned(tmp_path / "r.jsonl", None, FEW, WIDE)
    assert (few.winner, wide.winner) == ("gemm_bf16_m16_split_sm90", "gemm_bf16_192x176_pair_sm90")
    assert {few.decided_by, wide.decided_by} == {"model"}
    assert few.chosen.us is None
    assert few.peers_us == {}


def test_it_resumes(tmp_path: Path) -> None:
    path, us = tmp_path / "r.jsonl", {"gemm_bf16_m16_split_sm90": 36.0, BASE: 140.0, "cublas": 42.0}
    first, news = tuned(path, FakeTimer(us), FEW)
    assert news == ["new"]
    timer = FakeTimer({**us, "gemm_bf16_192x176_pair_sm90": 200.0})
    records, news = tuned(path, timer, FEW, WIDE)
    assert news == ["kept", "new"]
    assert records[0] == first[0]
    assert [GEMM.word(problem) for _, problem in timer.prepared] == [WIDE]
    assert [read_record(line).problem for line in path.read_text().splitlines()] == [FEW, WIDE]
    for changed in (
        replace(OPTIONS, rounds=5),
        replace(OPTIONS, candidates=2),
    ):
        _, news = tuned(path, FakeTimer(us), FEW, options=changed)
        assert news == ["new"]
    own = tmp_path / "mine/gemm_sm90/load.cuh.j2"
    own.parent.mkdir(parents=True)
    by_own = replace(OPTIONS, templates=tmp_path / "mine")
    for text, wanted in (("", "new"), ("", "kept"), ("// new\n", "new")):
        own.write_text(text)
        (record,), news = tuned(path, FakeTimer(us), FEW, options=by_own)
        assert news == [wanted]
        assert record.versions["own templates"]
    _, news = tuned(path, None, FEW)
    assert news == ["new"]  # by the model: not what was measured
    _, news = tuned(path, replace(FakeTimer(us), chip="NVIDIA H100 80GB HBM3"), FEW)
    assert news == ["new"]


def test_a_kernel_that_does_not_compile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(loaded: Any, **options: Any) -> Any:
        if loaded.config.name != BASE:
            raise CompileError(Problem("it spills"))
        return uncompiled(loaded, **options)

    monkeypatch.setattr(run, "compile_config", refuse)
    (record,), _ = tuned(tmp_path / "r.jsonl", FakeTimer({BASE: 140.0, "cublas": 42.0}), FEW)
    assert record.winner == BASE
    assert {one.left_out for one in record.kernels} == {"", "it spills"}


def test_no_kernel_works(tmp_path: Path) -> None:
    (record,), _ = tuned(tmp_path / "r.jsonl", FakeTimer({}), FEW)
    assert record.winner == ""
    assert "its output is wrong" in str(record.problems[0])
    _, news = tuned(tmp_path / "r.jsonl", FakeTimer({}), FEW)
    assert news == ["new"]  # a failure is tried again


class Failing(FakeTimer):
    def prepare(self, kernels: Any, problem: Any) -> Any:
        raise Fa4genError(Problem("an illegal address"))


def test_a_gpu_that_fails_wears_its_worker() -> None:
    base = load_config(find_configs([BASE])[0])
    (task,) = tasks_for(base, [GEMM.parse_problem(FEW)], OPTIONS, {})
    done = run_problem(task, lambda *_: Failing({}))
    assert done.worn
    assert done.result.record is not None
    assert done.result.record.problems == (Problem("an illegal address"),)


def test_a_lost_worker_is_a_record_without_a_winner(tmp_path: Path) -> None:
    base = load_config(find_configs([BASE])[0])
    tasks = tasks_for(base, [GEMM.parse_problem(FEW), GEMM.parse_problem(WIDE)], OPTIONS, {})

    def lossy(function: Any, tasks: Any) -> Any:
        yield tasks[1], function(tasks[1])
        yield tasks[0], Lost("its process ended: killed by SIGSEGV")

    with ResultsFile(
        tmp_path / "r.jsonl", BASE, fresh=False, read=read_record, kind="tuning"
    ) as file:
        records = run_tune(tasks, file, lossy, lambda *_: None)
    assert [bool(record.winner) for record in records] == [False, True]
    assert "SIGSEGV" in str(records[0].problems[0])


def test_what_a_worker_refuses_is_a_message(tmp_path: Path) -> None:
    base = load_config(find_configs([BASE])[0])
    tasks = tasks_for(base, [GEMM.parse_problem(FEW)], replace(OPTIONS, chip="h99"), {})
    with ResultsFile(
        tmp_path / "r.jsonl", BASE, fresh=False, read=read_record, kind="tuning"
    ) as file:
        (record,) = run_tune(tasks, file, partial(run_tasks, jobs=1), lambda *_: None)
    assert not record.winner
    (problem,) = record.problems
    assert problem.message == "'h99' is no known chip for sm_90a"
    assert problem.remedy.startswith("Known are: NVIDIA H200")


def test_a_problem_that_no_candidate_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads that do not fill the tiles of several heads, and no other tiles to choose from."""
    keys = {"kernel": "attention", "arch": "sm_90a", "dtype": "fp16", "depth": 96,
            "softcap": 7.0, "tile_heads": 4}  # fmt: skip
    base = load_mapping(keys, "heads")
    family = family_called("attention")
    monkeypatch.setattr("fa4gen.tune.candidates._variants", lambda *_: ())
    (good, bad) = tasks_for(
        base, [family.parse_problem("1x8/2x300x300"), family.parse_problem("1x8/8x300x300")],
        OPTIONS, {},
    )  # fmt: skip
    assert run_problem(good, lambda *_: None).result.record
    with pytest.raises(ConfigError, match="1x8x300x300: heads does not take it"):
        run_problem(bad, lambda *_: None)


def test_tasks_and_outcomes_pickle() -> None:
    import pickle

    base = load_config(find_configs([BASE])[0])
    (task,) = tasks_for(base, [GEMM.parse_problem(FEW)], OPTIONS, {})
    done = run_problem(pickle.loads(pickle.dumps(task)))
    assert isinstance(pickle.loads(pickle.dumps(done)), Done)


@pytest.mark.compile
def test_with_kernels_that_are_compiled(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(cache))
    us = {"gemm_bf16_m16_split_sm90": 36.0, BASE: 140.0, "cublas": 42.0}
    (record,), _ = tuned(
        tmp_path / "r.jsonl", FakeTimer(us), FEW, options=TuneOptions(candidates=1)
    )
    assert record.winner == "gemm_bf16_m16_split_sm90"
    assert sum(path.is_file() for path in cache.rglob("*")) >= 2


@pytest.mark.parametrize(
    ("base", "problem", "winner", "peer"),
    [
        ("d128_causal_bf16", "2x16x8k", "d128_causal_bf16_192x80", "fa3"),
        ("d256_dense_bf16", "32x8x512", "d256_dense_bf16_128x64_pair", "cudnn"),
    ],
)
def test_attention_is_measured_as_products_are(
    base: str, problem: str, winner: str, peer: str
) -> None:
    attention = family_called("attention")
    (task,) = tasks_for(
        load_config(find_configs([base])[0]), [attention.parse_problem(problem)], OPTIONS, {}
    )
    timer = FakeTimer({base: 120.0, winner: 100.0, "fa3": 110.0, "cudnn": 105.0}, (peer,))
    done = run_problem(task, lambda *_: timer)
    assert done.result.record is not None
    assert done.result.record.winner == winner
    assert done.result.record.decided_by == "measurement"
    assert done.result.record.peers_us.keys() == {peer}
    ((names, _),) = timer.prepared
    assert base in names
    assert any(name.endswith(("_static", "_dynamic")) for name in names)  # the other order
