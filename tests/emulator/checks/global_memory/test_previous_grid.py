"""Programmatic dependent launch: what the grid before writes is for after griddepcontrol.wait."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, LaunchError, Program
from fa4gen.emulator.launch_file.arrays import prepare
from fa4gen.emulator.launch_file.problems import LaunchFileError
from fa4gen.emulator.launch_file.run import run_launch
from fa4gen.errors import ConfigError
from tests.emulator.instructions.copy.copies import WAIT, copy_kernel, dump, expect, first, kinds
from tests.emulator.kernel import kernel, run
from tests.emulator.launch_file.reading import parse_launch_file

# 64 threads: each its own word of p0, plus one, to p1
WORD = """
    mov.u32 %r1, %tid.x; mul.wide.u32 %d4, %r1, 4; add.u64 %d5, %d0, %d4; add.u64 %d6, %d1, %d4;
    setp.lt.u32 %p1, %r1, 32;
"""
READ = "ld.global.u32 %r2, [%d5];"
USE = "add.u32 %r2, %r2, 1; st.global.u32 [%d6], %r2;"
ALL_WAIT = "griddepcontrol.wait;"
UNWAITED = "missing-grid-wait"
FIRST_WARP_WAITS = "@!%p1 bra OVER; griddepcontrol.wait; OVER:"


def launch(*body: str, pending: tuple[int, ...] = (0,), reads: tuple[int, ...] = (), **options):
    arrays = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)]
    ptx = kernel("\n".join([WORD, *body]), ("u64", "u64"))
    options.setdefault("pending_writes", [arrays[index] for index in pending])
    options["pending_reads"] = [arrays[index] for index in reads]
    report = run(ptx, *arrays, block=64, **options)
    assert np.array_equal(arrays[1], np.arange(1, 65))
    return report


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ((ALL_WAIT, READ, USE), []),
        ((READ, ALL_WAIT, USE), ["race"]),
        ((READ, USE), ["race", UNWAITED]),
        ((FIRST_WARP_WAITS, READ, USE), ["race"]),
        ((FIRST_WARP_WAITS, "bar.sync 0;", READ, USE), []),
        (("bar.sync 0;", FIRST_WARP_WAITS, READ, USE), ["race"]),
        (("griddepcontrol.launch_dependents;", READ, USE), ["race", UNWAITED]),
        (("griddepcontrol.launch_dependents;", ALL_WAIT, READ, USE), []),
    ],
)
def test_reads_come_after_a_wait(body, found, schedule) -> None:
    assert kinds(launch(*body, schedule=schedule)) == found


def test_who_reads_and_what_is_named() -> None:
    (finding,) = launch(FIRST_WARP_WAITS, READ, USE).findings
    assert finding.who == "CTA 0, thread 32"
    assert "p0 + 128, which the grid before may still be writing" in finding.message


def test_writes_come_after_it_too() -> None:
    assert kinds(launch(READ, USE, pending=(1,))) == ["race", UNWAITED]
    assert kinds(launch(READ, ALL_WAIT, USE, pending=(1,))) == []


def test_what_the_grid_before_reads_may_be_read() -> None:
    assert kinds(launch(READ, ALL_WAIT, USE, pending=(), reads=(0, 1))) == []


def test_what_the_grid_before_reads_may_not_be_written() -> None:
    (finding,) = launch(READ, USE, ALL_WAIT, pending=(), reads=(1,)).findings
    assert "write of p1 + 0, which the grid before may still be reading" in finding.message


def test_all_memory_may_be_written_by_the_grid_before() -> None:
    assert kinds(launch(READ, ALL_WAIT, USE, pending_writes="all")) == ["race"]
    assert kinds(launch(ALL_WAIT, READ, USE, pending_writes="all")) == []


def test_a_grid_in_which_nobody_waits_orders_no_later_grid_after_the_one_before() -> None:
    (finding,) = launch(READ, USE, pending=(), reads=(0,)).findings
    assert (finding.kind, finding.severity.value) == (UNWAITED, "review")
    assert kinds(launch(READ, USE, FIRST_WARP_WAITS, pending=(), reads=(0,))) == []


def test_other_arrays_need_no_wait() -> None:
    assert kinds(launch(READ, USE, pending=())) == []


@pytest.mark.parametrize("waits", [True, False])
def test_bulk_copies(waits: bool) -> None:
    load = f"""{"griddepcontrol.wait;" if waits else ""} {expect(1024)}
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%d1], 1024, [bar];"""
    source, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    ptx = copy_kernel(first(load) + WAIT + dump(1024), ("u64", "u64"))
    report = run(ptx, out, source, pending_writes=[source])
    assert kinds(report) == ([] if waits else ["race", UNWAITED])


@pytest.mark.parametrize("flag", [True, False])
def test_another_cluster_learns_it_through_global_memory(flag: bool) -> None:
    body = """
    mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra READER;
    griddepcontrol.wait; mov.u32 %r2, 1; st.release.gpu.global.u32 [%d1], %r2; bra DONE;
READER:
    ld.acquire.gpu.global.u32 %r3, [%d1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra READER;
    ld.global.u32 %r4, [%d0]; st.global.u32 [%d1+128], %r4;
DONE:
"""
    if not flag:
        poll = body[body.index("    ld.acquire") : body.index("    ld.global.u32 %r4")]
        body = body.replace(poll, "")
    data, words = np.zeros(8, np.uint32), np.zeros(64, np.uint32)
    report = run(
        kernel(body, ("u64", "u64")), data, words,
        block=1, grid=2, resident_clusters=2, pending_writes=[data],
    )  # fmt: skip
    assert kinds(report) == ([] if flag else ["race"])


def test_an_array_that_is_not_there() -> None:
    with pytest.raises(LaunchError, match="not among them"):
        run(kernel("ret;"), np.zeros(4), pending_writes=[np.zeros(4)])


FILE = """
block: 64
arguments:
- {{name: source, make: arange, shape: [64], dtype: uint32}}
- {{name: target, make: zeros, shape: [64], dtype: uint32}}
pending_writes: [{}]
"""


def test_the_launch_file(tmp_path) -> None:
    program = Program(kernel("\n".join([WORD, READ, USE]), ("u64", "u64")))
    launched = prepare(parse_launch_file(FILE.format("source")), tmp_path)
    (done,) = run_launch(program, launched)
    assert kinds(done.report) == ["race", UNWAITED]
    with pytest.raises(LaunchFileError, match="no array is called 'sauce'"):
        prepare(parse_launch_file(FILE.format("sauce")), tmp_path)


@pytest.mark.parametrize(
    ("part", "found"),
    [("[0:4]", ["race", UNWAITED]), ("[252:256]", ["race", UNWAITED]), ("[0:0]", [UNWAITED])],
)
def test_parts_of_arrays_in_the_launch_file(part: str, found: list[str], tmp_path) -> None:
    program = Program(kernel("\n".join([WORD, READ, USE]), ("u64", "u64")))
    launched = prepare(parse_launch_file(FILE.format(f"'source{part}'")), tmp_path)
    (done,) = run_launch(program, launched)
    assert kinds(done.report) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pending_writes: all", ["race", "race", UNWAITED]),
        ("pending_reads: [target]", ["race", UNWAITED]),
        ("pending_reads: [source]", [UNWAITED]),
    ],
)
def test_all_memory_and_reads_in_the_launch_file(line: str, found: list[str], tmp_path) -> None:
    program = Program(kernel("\n".join([WORD, READ, USE]), ("u64", "u64")))
    text = FILE.format("").replace("pending_writes: []", line)
    (done,) = run_launch(program, prepare(parse_launch_file(text), tmp_path))
    assert kinds(done.report) == found


def test_a_part_that_cannot_be_read(tmp_path) -> None:
    with pytest.raises(ConfigError, match="NAME\\[FIRST:STOP\\]"):
        parse_launch_file(FILE.format("'source[1]'"))
