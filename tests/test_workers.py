"""Tasks get their results, crashes stay alone, and however a command ends, no process is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.workers import Done, Lost, LostWorkerError, map_tasks, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable

# Workers must find the function by name: eval is one that every process has, and tasks are code.
RETURN = "__import__('fa4gen.workers').workers.Done({})"
PID = RETURN.format("__import__('os').getpid()")
WORN_PID = RETURN.format("__import__('os').getpid(), worn=True")


def children() -> list[str]:
    """Processes that this one started and that have not ended."""
    mine = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                mine.append(stat.parent.name)
    return mine


@pytest.fixture
def started() -> Callable[[], set[str]]:
    """The processes that a test started."""
    before = set(children())
    return lambda: set(children()) - before


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


def test_a_task_that_hangs_is_given_up(started: Callable[[], set[str]]) -> None:
    hang = "__import__('time').sleep(600)"

    assert outcomes(hang, time_limit_s=1.0) == {hang: Lost("did not end within 1 s")}
    assert not started()


@pytest.mark.parametrize("limit", [1e300, float("inf")])
def test_a_limit_may_be_longer_than_the_system_can_wait(limit: float) -> None:
    assert outcomes(RETURN.format(3), time_limit_s=limit) == {RETURN.format(3): Done(3)}


def test_a_worn_worker_is_replaced() -> None:
    done = outcomes(WORN_PID, PID)

    assert done[WORN_PID].result != done[PID].result


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_workers_end_when_the_caller_stops(started: Callable[[], set[str]]) -> None:
    results = run_tasks(
        eval, [RETURN.format(1), "__import__('time').sleep(600)"], jobs=2, time_limit_s=600
    )
    next(results)
    assert len(started()) == 2

    results.close()  # type: ignore[attr-defined]

    assert not started()


def test_results_keep_their_order_and_errors_their_type(started: Callable[[], set[str]]) -> None:
    tasks = ["__import__('time').sleep(0.5) or 1", "2", "3"]
    assert list(map_tasks(eval, tasks, jobs=3)) == [1, 2, 3]
    with pytest.raises(ZeroDivisionError) as caught:
        list(map_tasks(eval, ["1", "1 / 0"], jobs=2))
    assert "in _serve" in str(caught.value.__cause__)
    with pytest.raises(LostWorkerError, match="exit status 3"):
        list(map_tasks(eval, ["__import__('os')._exit(3)"], jobs=1))
    assert not started()


def test_an_error_that_cannot_travel_comes_as_text() -> None:
    raises = "(_ for _ in ()).throw(type('Odd', (Exception,), {})('at home'))"
    with pytest.raises(LostWorkerError, match="Odd: at home"):
        list(map_tasks(eval, [raises], jobs=1))


# ---- no process is left

in_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="finds processes in /proc"
)
LIMIT_S = 120.0
PROGRAM = """
import subprocess, time
from fa4gen.termination import exit_on_sigterm
from fa4gen.workers import map_tasks
if __name__ == "__main__":
    exit_on_sigterm()
    print("started", flush=True)
    list(map_tasks({function}, {tasks}, jobs=2, inherit={inherit}))
"""


def processes(session: int) -> dict[int, str]:
    """Command lines of the processes of ``session``, those aside that ended."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text()
    return found


def running(session: int) -> list[str]:
    """Command lines of a program and its workers: without multiprocessing's own process."""
    return [line for line in processes(session).values() if "resource_tracker" not in line]


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def start(*arguments: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def end(process: subprocess.Popen[str], number: signal.Signals, workers: int) -> str:
    """Signal the parent alone once there are ``workers``; its stderr when all are gone."""
    session = process.pid
    try:
        wait_until(lambda: len(running(session)) > workers, "no workers")
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)
        wait_until(lambda: not processes(session), f"left behind: {processes(session)}")
    finally:
        for left in processes(session):
            os.kill(left, signal.SIGKILL)
        process.wait()
    return errors


@in_proc
@pytest.mark.parametrize("inherit", [False, True])
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, -2), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_workers_amid_their_work_end_with_the_parent(
    tmp_path: Path, number: signal.Signals, status: int, inherit: bool
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(function="time.sleep", tasks=[600] * 2, inherit=inherit))
    process = start(str(program))
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)  # some workers idle or importing, some asleep
    errors = end(process, number, 1)
    assert process.returncode == status
    if number != signal.SIGKILL:
        assert "Traceback" not in errors.replace("Traceback (most recent call last)", "", 1)


@in_proc
def test_a_program_that_a_worker_runs_ends_with_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    commands = [["sleep", "600"]] * 2
    program.write_text(PROGRAM.format(function="subprocess.run", tasks=commands, inherit=False))
    process = start(str(program))
    wait_until(
        lambda: sum("sleep\0" in line for line in processes(process.pid).values()) == 2, "no sleep"
    )
    end(process, signal.SIGKILL, 3)


@in_proc
@pytest.mark.compile
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command", ["compile", "verify"])
def test_commands(tmp_path: Path, command: str, number: signal.Signals) -> None:
    process = start(
        "-m", "fa4gen", command, "d128_dense_bf16", "fa4_d64_dense_bf16", "-j", "2",
        cwd=tmp_path, env={**os.environ, "FA4GEN_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    errors = end(process, number, 1)
    expected = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
    assert process.returncode == expected[number]
    if number != signal.SIGKILL:  # a worker that was about to start may say that its parent is gone
        assert "Traceback" not in errors


@in_proc
def test_a_closed_stdin_changes_nothing() -> None:
    code = "from fa4gen.workers import Done, run_tasks; print(list(run_tasks(Done, [1], jobs=1)))"
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -c '{code}' <&-"], capture_output=True, text=True,
        check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.stdout == "[(1, Done(result=1, worn=False))]\n", done.stderr


MASKS = """
import os, signal, _posixsubprocess
from fa4gen.workers import Done, run_tasks
start = _posixsubprocess.fork_exec
def started(*args):
    if any(b"spawn_main" in os.fsencode(word) for word in args[0]):
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        print(sorted(int(s) for s in blocked & {signal.SIGINT, signal.SIGTERM}))
    return start(*args)
_posixsubprocess.fork_exec = started
list(run_tasks(Done, [1, 2], jobs=2))
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_every_worker_starts_with_its_signals_held() -> None:
    done = subprocess.run([sys.executable, "-c", MASKS], capture_output=True, text=True, check=True)
    assert done.stdout == "[2, 15]\n" * 2, done.stderr


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """A worker that ran the user's script again would start workers of its own."""
    program = tmp_path / "program.py"
    program.write_text(
        "from fa4gen.workers import map_tasks\nprint(*map_tasks(abs, [-1], jobs=1))\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


ABANDONED = """
import sys
from fa4gen.workers import Done, run_tasks
sys.kept = run_tasks(Done, [1, 2], jobs=1)
print(next(sys.kept))
"""


def test_workers_that_nobody_ended_do_not_hold_up_the_exit() -> None:
    """An interactive session keeps the frames of its last error, and with them workers."""
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_longest_task_begins_first_and_each_is_counted() -> None:
    begun = "__import__('time').monotonic()"
    done: list[int] = []
    times = list(
        map_tasks(eval, [begun, f"{begun} ", f" {begun}  "], jobs=1, cost=len,
                  on_done=lambda: done.append(len(done)))
    )  # fmt: skip
    assert times == sorted(times, reverse=True)
    assert done == [0, 1, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems copy no process")
def test_workers_inherit_what_was_loaded_where_no_other_thread_runs() -> None:
    code = """
import sys, threading
from fa4gen.workers import map_tasks
sys.loaded = 1
task = "getattr(__import__('sys'), 'loaded', 0)"
found = [next(map_tasks(eval, [task], jobs=1, inherit=inherit)) for inherit in (True, False)]
over = threading.Event()
threading.Thread(target=over.wait).start()
print(*found, *map_tasks(eval, [task], jobs=1, inherit=True))
over.set()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 0 0\n"
