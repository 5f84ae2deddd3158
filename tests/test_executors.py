"""Tasks on a real cluster of dask's, of processes of this machine; skipped where it is missing."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.errors import ConfigError, MissingCapabilityError
from fa4gen.executors import executor_for
from fa4gen.workers import Done, Lost

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]


def square(number: int) -> Done[int]:
    return Done(number * number)


def raising(number: int) -> Done[int]:
    raise ValueError(f"no {number}")


def dies_once(task: tuple[int, str]) -> Done[int]:
    """Kill the worker the first time that a task of ``task[1]``, a file, is run."""
    number, marker = task
    if marker and not Path(marker).exists():
        Path(marker).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return Done(number)


def wears(number: int) -> Done[int]:
    return Done(os.getpid(), worn=number == 0)


@pytest.mark.parametrize("text", ["slurm", "dask:", "", "dask"])
def test_an_unknown_executor_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="neither local nor dask:ADDRESS"):
        executor_for(text, jobs=1)


def test_local_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # workers import by name: this module only where the checkout is on the path
    text = "from fa4gen.workers import Done\ndef square(number): return Done(number * number)\n"
    (tmp_path / "squares.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    square = importlib.import_module("squares").square
    found = dict(executor_for("local", jobs=2)(square, [1, 2, 3]))
    assert found == {1: Done(1), 2: Done(4), 3: Done(9)}


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingCapabilityError, match=r"pip install 'fa4gen\[dask\]'"):
        executor_for("dask:tcp://127.0.0.1:1", jobs=1)


# What dask's own threads leave open when they end, and its events' deprecated functions.
cluster_test = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip(
        "distributed", reason="dask.distributed is not installed: pip install 'fa4gen[dask]'"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as one:
            yield one


@cluster_test
def test_tasks_on_a_cluster(cluster: Any) -> None:
    execute = executor_for(f"dask:{cluster.scheduler_address}", jobs=1)
    assert dict(execute(square, range(20))) == {n: Done(n * n) for n in range(20)}


@cluster_test
def test_an_exception_loses_its_task_alone(cluster: Any) -> None:
    execute = executor_for(f"dask:{cluster.scheduler_address}", jobs=1)
    found = dict(execute(raising, [3, 4]))
    assert {type(outcome) for outcome in found.values()} == {Lost}
    assert "ValueError: no 3" in str(found[3])


@cluster_test
def test_tasks_of_a_lost_worker_run_again(cluster: Any, tmp_path: Path) -> None:
    marker = tmp_path / "killed"
    tasks = [(number, str(marker) if number == 2 else "") for number in range(6)]
    execute = executor_for(f"dask:{cluster.scheduler_address}", jobs=1)
    found = dict(execute(dies_once, tasks))
    assert marker.exists()  # a worker was killed
    assert sorted(done.result for done in found.values() if isinstance(done, Done)) == [*range(6)]


@cluster_test
def test_a_worn_worker_is_replaced(cluster: Any) -> None:
    execute = executor_for(f"dask:{cluster.scheduler_address}", jobs=1)
    ((_, first),) = execute(wears, [0])
    assert isinstance(first, Done)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        execute = executor_for(f"dask:{cluster.scheduler_address}", jobs=1)
        pids = {done.result for _, done in execute(wears, range(1, 7)) if isinstance(done, Done)}
        if first.result not in pids:
            return
    pytest.fail("the worker that was worn is still used")


@cluster_test
def test_nobody_answers() -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fa4gen.executors.CONNECT_S", 1)
        with pytest.raises(MissingCapabilityError, match="no scheduler of dask answers at"):
            executor_for("dask:tcp://127.0.0.1:9", jobs=1)


SWEEP = """\
base: {kernel: gemm, arch: sm_90a, dtype: bf16}
matrix:
  BM: [64, 128]
  BN: [64, 128, 300]
"""


@cluster_test
def test_sweep_and_tune_on_a_cluster(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SWEEP)
    where = ["--executor", f"dask:{cluster.scheduler_address}"]
    assert main(["sweep", "s.yaml", "--until", "rendered", *where]) == 0
    assert "6 cases: 4 passed, 2 skipped" in capsys.readouterr().out
    sizes = [part for m in (16, 512) for part in ("--problem", f"{m}x4096x4096")]
    assert main(["tune", "gemm_bf16_sm90", "--no-measure", *sizes, *where]) == 0
    assert "The cost model chose" in capsys.readouterr().out
    assert (tmp_path / "gemm_bf16_sm90.tuning.yaml").exists()
