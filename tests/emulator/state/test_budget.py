"""The memory that a launch may use: what is refused before it, and what stops it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from fa4gen.emulator import LaunchError, Limits
from fa4gen.emulator.state import budget
from fa4gen.emulator.state.budget import Budget, default_budget, process_bytes, shown_bytes
from tests.emulator.kernel import clean, kernel, launch, run

LOOP = """
    mov.u32 %r1, 0;
AGAIN:
    add.u32 %r1, %r1, 1;
    st.global.u32 [%d0], %r1;
    setp.lt.u32 %p0, %r1, 20000;
    @%p0 bra AGAIN;
"""


def test_what_the_process_uses_is_below_its_default_limit() -> None:
    used = process_bytes()
    assert 10 << 20 < used < 1 << 40
    block = np.ones(64 << 20, np.uint8)
    assert process_bytes() - used > block.nbytes // 2
    assert default_budget().limit > process_bytes()


def test_a_launch_that_grows_is_stopped_and_never_clean(monkeypatch) -> None:
    calls = itertools.count()
    monkeypatch.setattr(budget, "process_bytes", lambda: 0 if next(calls) < 4 else 3 << 30)
    report = launch(
        LOOP, np.zeros(1, np.uint32), block=1, checks=False, limits=Limits(memory=1 << 30)
    )
    (finding,) = report.findings
    assert finding.kind == "memory-limit"
    assert report.verdict.value == "incomplete"
    assert "the process uses 3 GiB, its limit is 1 GiB" in finding.message
    assert "max_memory" in finding.message


def test_the_same_launch_ends_below_its_limit() -> None:
    out = np.zeros(1, np.uint32)
    clean(LOOP, out, block=1)
    assert out[0] == 20000


def test_arrays_above_the_limit_are_refused_before_the_launch() -> None:
    with pytest.raises(LaunchError, match="global memory of 64 MiB in 1 arrays"):
        launch("", np.zeros(64 << 20, np.uint8), limits=Limits(memory=process_bytes() + (8 << 20)))


def test_need_counts_what_is_in_use() -> None:
    Budget(process_bytes() + (1 << 30)).need(1 << 20, "a part")
    with pytest.raises(LaunchError, match=r"^a part: 2 GiB more than the process uses now"):
        Budget(process_bytes() + (1 << 30)).need(2 << 30, "a part")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1536, "1.5 KiB"), (3 << 30, "3 GiB"), (1 << 60, "1 EiB")
    ],
)  # fmt: skip
def test_sizes_as_people_write_them(size: int, text: str) -> None:
    assert shown_bytes(size) == text


def test_memory_that_the_system_refuses_below_the_budget_is_an_error_of_the_launch() -> None:
    resource = pytest.importorskip("resource")
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("how much address space the process has is read from /proc")
    ptx = kernel(".local .b8 much[1048576]; st.local.u8 [much+1048575], 1;")
    out = np.zeros(1024, np.uint64)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(statm.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), hard))
    try:
        with pytest.raises(LaunchError, match="the system gives no more memory: ") as caught:
            run(ptx, out, block=1024, limits=Limits(memory=8 << 30))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert "max_memory" in caught.value.remedy
