"""The folder's own test program, unchanged, on the emulator: the recorder stands for the driver."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator.recorder.recorder import Options, recording
from fa4gen.emulator.report import Verdict
from tests.vendoring.verify.builds import Edit

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.emulator.recorder.recorder import Recorder
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorder")


def run(
    builds: Builds,
    arch: str,
    cache: Path,
    folder: Path,
    program: Path,
    *options: str,
    quick: tuple[str, ...] = ("--quick", "--seed", "5"),
) -> tuple[subprocess.CompletedProcess[str], Recorder]:
    ptx = folder / "ptx"
    ptx.mkdir()
    for kernel in builds.kernels.values():
        (ptx / f"{kernel.symbol}.ptx").write_text(kernel.compiled.ptx)
    how = Options(arch, (ptx,), record=False)
    command = [str(program), *quick, *options]
    with recording(folder / "launches", cache, how, say=lambda _: None) as recorder:
        environment = recorder.environment()
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return done, recorder


@pytest.mark.parametrize(
    ("arch", "kernels", "others"),
    [
        ("sm_90a", ("softmax", "heads", "product"), ("dynamic", "scaled")),
        ("sm_100a", ("dynamic", "scaled"), ("softmax", "heads", "product")),
    ],
)
def test_the_selftest_finds_the_numbers_right(
    builds: Builds, cache: Path, tmp_path: Path, arch: str, kernels, others
) -> None:
    done, recorder = run(builds, arch, cache, tmp_path, builds.selftest())
    assert done.returncode == 0, done.stdout + done.stderr
    for name in kernels:
        (line,) = [
            one for one in done.stdout.splitlines() if f"acme_{name}: passed on NVIDIA" in one
        ]
        assert line.endswith("6 launches")
    for name in others:
        assert f"acme_{name}: not run: no GPU here runs" in done.stdout
    assert f"passed: {len(kernels)} of 5 kernels were run" in done.stdout
    entries = {one.launch.entry for one in recorder.launches}
    assert entries == {builds.kernels[name].plan.entry_point for name in kernels}
    verdicts = {one.report.verdict for one in recorder.launches if one.report is not None}
    assert verdicts == {Verdict.CLEAN}


def test_graphs_and_threads(builds: Builds, cache: Path, tmp_path: Path) -> None:
    program, words = builds.stress(launches=8), ("3", "2")  # launches: each kind twice
    done, recorder = run(builds, "sm_90a", cache, tmp_path, program, *words, quick=())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        f"acme_{name}: passed: 3 graph replays, 2 threads"
        for name in ("softmax", "heads", "product")
    ]
    verdicts = {one.report.verdict for one in recorder.launches if one.report is not None}
    assert verdicts == {Verdict.CLEAN}


def test_the_selftest_knows_sequences_of_different_lengths(
    sequences: Builds, cache: Path, tmp_path: Path
) -> None:
    done, recorder = run(sequences, "sm_90a", cache, tmp_path, sequences.selftest())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed: 2 of 2 kernels were run" in done.stdout
    entries = {one.launch.entry for one in recorder.launches}
    listing = sequences.kernels["ragged"].plan.tile_list
    assert listing is not None
    expected = {kernel.plan.entry_point for kernel in sequences.kernels.values()}
    assert entries == expected | {listing.entry_point}
    verdicts = {one.report.verdict for one in recorder.launches if one.report is not None}
    assert verdicts == {Verdict.CLEAN}


def test_the_selftest_knows_kernels_whose_ctas_share_keys(
    shares: Builds, cache: Path, tmp_path: Path
) -> None:
    done, recorder = run(shares, "sm_90a", cache, tmp_path, shares.selftest())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed: 2 of 2 kernels were run" in done.stdout
    verdicts = {one.report.verdict for one in recorder.launches if one.report is not None}
    assert verdicts == {Verdict.CLEAN}


def test_the_selftest_knows_masks_that_are_conditions(
    conditions: Builds, cache: Path, tmp_path: Path
) -> None:
    done, _ = run(conditions, "sm_90a", cache, tmp_path, conditions.selftest())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed: 1 of 1 kernels were run" in done.stdout
    program = conditions.folder / "test" / "selftest.c"
    text = program.read_text()
    assert text.count("query - key < 60") == 1 + 1  # in words, and as C
    try:
        program.write_text(text.replace("query - key < 60 ||", "query - key < 59 ||"))
        wrong = conditions.selftest()
    finally:
        program.write_text(text)
    (tmp_path / "wrong").mkdir()
    done, _ = run(conditions, "sm_90a", cache, tmp_path / "wrong", wrong)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_selftest_knows_functions_that_read_tensors(
    functions: Builds, cache: Path, tmp_path: Path
) -> None:
    done, _ = run(functions, "sm_90a", cache, tmp_path, functions.selftest())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed: 2 of 2 kernels were run" in done.stdout


@pytest.mark.parametrize(
    ("kernel", "right", "wrong"),
    [
        ("sloping", "(double)(query - key)", "(double)(query - key + (key == query))"),
        ("documents", "key % 3 == 0 ? 0.5", "key % 3 == 0 ? 0.53"),
        ("documents", "|| head == 1", "|| head == 2"),
    ],
)
def test_the_selftest_has_the_functions_themselves(
    functions: Builds, cache: Path, tmp_path: Path, kernel: str, right: str, wrong: str
) -> None:
    program = functions.folder / "test" / "selftest.c"
    text = program.read_text()
    assert text.count(right) == 1
    try:
        program.write_text(text.replace(right, wrong))
        other = functions.selftest()
    finally:
        program.write_text(text)
    options = ("--kernel", f"acme_{kernel}")
    done, _ = run(functions, "sm_90a", cache, tmp_path, other, *options)
    assert done.returncode == 1, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kernel", "edit"),
    [
        (
            "paged",
            Edit("src/launcher.c", "values->sinks = args->sinks;", "values->sinks = args->lse;"),
        ),
        ("ragged", Edit("src/launcher.c", "WRAP - step;", "WRAP;")),
    ],
)
def test_the_selftest_refuses_a_wrong_launcher_of_sequences(
    sequences: Builds, cache: Path, tmp_path: Path, kernel: str, edit: Edit
) -> None:
    options = ("--kernel", f"acme_{kernel}")
    done, _ = run(sequences, "sm_90a", cache, tmp_path, sequences.selftest(edit), *options)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_selftest_refuses_a_wrong_launcher(builds: Builds, cache: Path, tmp_path: Path) -> None:
    wrong = Edit("src/launcher.c", "(float)args->alpha;", "(float)args->alpha * 1.25f;")
    options = ("--kernel", "acme_product")
    done, _ = run(builds, "sm_90a", cache, tmp_path, builds.selftest(wrong), *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "acme_product: FAILED on NVIDIA" in done.stdout
