"""The read floor: its kernel reads every byte once, and its fastest launch counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fa4gen.bench import read_floor
from fa4gen.bench.read_floor import CHUNK, LAUNCHES, THREADS, ReadFloor, fastest_launch, unit_of
from fa4gen.bench.results import Series
from fa4gen.emulator import Program, Verdict
from fa4gen.toolchain.nvrtc import Nvrtc


def emulate(chunks: int, *, memory_bytes: int, ctas: int, copies: int) -> Any:
    memory = np.zeros(memory_bytes, np.uint8)
    return Program(Nvrtc().build_ptx(unit_of("sm_90a"))).launch(
        "read_floor",
        grid=ctas,
        block=THREADS,
        args=[memory, np.int64(chunks), np.int32(copies)],
        dynamic_shared=copies * CHUNK,
    )


@pytest.mark.compile
@pytest.mark.parametrize(("ctas", "chunks", "copies"), [(1, 7, 3), (2, 9, 4), (3, 2, 6)])
def test_every_chunk_is_read_once(ctas: int, chunks: int, copies: int) -> None:
    report = emulate(chunks, memory_bytes=chunks * CHUNK, ctas=ctas, copies=copies)
    assert report.verdict is Verdict.CLEAN, report
    phases = sum(barrier.phases for barrier in report.coverage.barriers)
    assert phases == -(-chunks // ctas), "the CTA with the most"


@pytest.mark.compile
def test_it_reads_to_the_last_byte() -> None:
    report = emulate(3, memory_bytes=3 * CHUNK - 16, ctas=2, copies=2)
    assert report.verdict is Verdict.ERROR


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A GPU of 132 multiprocessors whose kernels keep their launches."""
    made: list[Any] = []

    class Kernel:
        def __init__(self, cubin: bytes, entry: str, **options: Any) -> None:
            self.options, self.launched = options, []
            made.append(self)

        def launch(self, *arguments: Any) -> None:
            self.launched.append(arguments)

    device = SimpleNamespace(ordinal=0, multiprocessors=132)
    stream = SimpleNamespace(ptr=77)
    monkeypatch.setattr(read_floor, "LoadedKernel", Kernel)
    monkeypatch.setattr(read_floor, "require_device", lambda _: device)
    compiler = SimpleNamespace(build=lambda unit: SimpleNamespace(cubin=b""))
    monkeypatch.setattr(read_floor, "find_compiler", lambda: compiler)
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setattr(read_floor, "load_cupy", lambda: SimpleNamespace(cuda=cuda))
    return made


def memory_of(size: int) -> Any:
    return SimpleNamespace(nbytes=size, data=SimpleNamespace(ptr=1 << 40))


def test_each_launch_has_its_grid_and_its_slots(loaded: list[Any]) -> None:
    floor = ReadFloor()
    runs = floor.launches("sm_90a", memory_of(10 * CHUNK), 7 * CHUNK + 5)
    assert list(runs) == ["floor 1x10", "floor 2x4", "floor 2x6"]
    for run, kernel, (ctas, copies) in zip(runs.values(), loaded, LAUNCHES, strict=True):
        run()
        [(grid, stream, block)] = kernel.launched
        assert (grid, stream) == (132 * ctas, 77)
        assert kernel.options["dynamic_shared_bytes"] == copies * CHUNK
        assert block.value(0, 8) == (1 << 40).to_bytes(8, "little")
        assert block.value(1, 8) == (7).to_bytes(8, "little")
        assert block.value(2, 4) == copies.to_bytes(4, "little")
    floor.launches("sm_90a", memory_of(CHUNK), CHUNK)
    assert len(loaded) == len(LAUNCHES), "loaded once"


def test_less_than_a_chunk_has_no_floor(loaded: list[Any]) -> None:
    assert ReadFloor().launches("sm_90a", memory_of(CHUNK), CHUNK - 1) == {}
    assert loaded == []


def test_the_fastest_launch_is_the_floor() -> None:
    slow, fast = Series((2.0, 1.0, 3.0), (0.0,) * 3), Series((1.5, 1.5, 9.0), (0.0,) * 3)
    assert fastest_launch(iter([slow, fast])) is fast
