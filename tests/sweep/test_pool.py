from __future__ import annotations

import multiprocessing
import os
from typing import Any

import pytest

from fa4gen.sweep.pool import Done, Lost, run_tasks

# Workers must find the function by name: eval is one that every process has, and tasks are code.
RETURN = "__import__('fa4gen.sweep.pool').sweep.pool.Done({})"
PID = RETURN.format("__import__('os').getpid()")
WORN_PID = RETURN.format("__import__('os').getpid(), worn=True")


def outcomes(*tasks: str, jobs: int = 1, time_limit_s: float = 60.0) -> dict[str, Any]:
    return dict(run_tasks(eval, tasks, jobs=jobs, time_limit_s=time_limit_s))


def test_every_task_gets_its_result_from_one_worker() -> None:
    tasks = [PID, f" {PID}", RETURN.format("6 * 7")]

    done = outcomes(*tasks)

    assert done[tasks[2]] == Done(42)
    assert done[tasks[0]] == done[tasks[1]]
    assert done[tasks[0]].result != os.getpid()


def test_as_many_workers_as_jobs() -> None:
    nap = "(__import__('time').sleep(0.5), {})[1]"
    pids = outcomes(*(" " * i + nap.format(PID) for i in range(4)), jobs=2)

    assert len({done.result for done in pids.values()}) == 2


def test_no_task_no_worker() -> None:
    assert outcomes() == {}


@pytest.mark.parametrize(
    ("crash", "reason"),
    [
        ("__import__('os')._exit(3)", "its process ended: exit status 3"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "killed by SIGKILL"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_crash_costs_one_task_only(crash: str, reason: str) -> None:
    done = outcomes(RETURN.format(1), crash, RETURN.format(2))

    assert done[RETURN.format(1)] == Done(1)
    assert done[RETURN.format(2)] == Done(2)
    lost = done[crash]
    assert isinstance(lost, Lost)
    assert reason in lost.reason
    assert ("Traceback" in lost.details) == ("/" in crash)


def test_a_task_that_hangs_is_given_up() -> None:
    hang = "__import__('time').sleep(600)"

    assert outcomes(hang, time_limit_s=1.0) == {hang: Lost("did not end within 1 s")}
    assert not multiprocessing.active_children()


def test_a_worn_worker_is_replaced() -> None:
    done = outcomes(WORN_PID, PID)

    assert done[WORN_PID].result != done[PID].result


def test_workers_end_when_the_caller_stops() -> None:
    results = run_tasks(
        eval, [RETURN.format(1), "__import__('time').sleep(600)"], jobs=2, time_limit_s=600
    )
    next(results)
    assert multiprocessing.active_children()

    results.close()  # type: ignore[attr-defined]

    assert not multiprocessing.active_children()
