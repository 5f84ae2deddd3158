"""Rules of the cost model, on kernels whose cycles can be counted by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import NamedRange, NamedThreads, Names
from fa4gen.emulator.timeline.figures import Event, products, read_events
from tests.emulator.instructions.tcgen05.kernels import fill, launch, program, wait
from tests.emulator.instructions.tcgen05.products import (
    COMMIT,
    SYNC,
    TYPES,
    by_thread_0,
    idesc,
    issue,
    lay_out,
    random_matrix,
    read_back,
)
from tests.emulator.kernel import kernel, run


def events_of(text: str, tmp_path: Any, *args: Any, **options: Any) -> tuple[Event, ...]:
    trace = tmp_path / "trace.json"
    run(text, *args, trace=trace, checks=False, **options)
    return read_events(json.loads(trace.read_text()))


def cycles(body: str, tmp_path: Any, block: int = 32, target: str = "sm_100a") -> float:
    """When the last warp has done ``body``."""
    events = events_of(kernel(body, (), target=target), tmp_path, block=block)
    return max(event.end for event in events)


def many(line: str, count: int) -> str:
    """``line`` with %rN for D and %rM for an independent source, so often."""
    return "\n".join(line.replace("D", f"%r{10 + n}") for n in range(count))


EXP2 = many("ex2.approx.ftz.f32 D, %r0;", 128)


def test_a_warp_takes_eight_cycles_for_its_exponentials(tmp_path) -> None:
    assert cycles(EXP2, tmp_path) == pytest.approx(128 * 8, abs=1)


@pytest.mark.parametrize(("warps", "factor"), [(4, 1), (5, 2), (8, 2), (12, 3)])
def test_warps_of_a_quarter_share_its_exponential_unit(tmp_path, warps, factor) -> None:
    assert cycles(EXP2, tmp_path, 32 * warps) == pytest.approx(factor * 128 * 8, rel=0.01)


def test_issue_slots_are_shared_by_the_warps_of_a_quarter(tmp_path) -> None:
    body = many("fma.rn.f32 D, %r0, %r1, %r2;", 128)
    assert cycles(body, tmp_path, 128) == pytest.approx(128, abs=1)
    assert cycles(body, tmp_path, 384) == pytest.approx(3 * 128, rel=0.02)


def test_exponentials_leave_issue_slots_to_other_warps(tmp_path) -> None:
    """Warp 4 adds while warp 0 of the same quarter is at its exponentials."""
    adds = many("fma.rn.f32 D, %r0, %r1, %r2;", 128)
    body = f"""
    mov.u32 %r3, %tid.x;
    setp.ge.u32 %p1, %r3, 128;
    @%p1 bra ADD;
    {EXP2}
    bra.uni END;
ADD:
    {adds}
END:
    """
    events = events_of(kernel(body, (), target="sm_100a"), tmp_path, block=160)
    ends = {warp: max(e.end for e in events if e.track.warp == warp) for warp in (0, 4)}
    assert ends[0] == pytest.approx(1024, rel=0.02)
    assert ends[4] < 300


def test_a_chain_of_dependences_takes_its_latencies(tmp_path) -> None:
    chain = "\n".join(["fma.rn.f32 %r10, %r10, %r1, %r2;"] * 100)
    assert cycles(chain, tmp_path) == pytest.approx(400, abs=20)


def test_two_additions_in_one_instruction_save_a_slot_and_no_time(tmp_path) -> None:
    body = "\n".join(f"fma.rn.f32x2 %d{10 + n % 40}, %d0, %d1, %d2;" for n in range(64))
    assert cycles(body, tmp_path) == pytest.approx(128, abs=2)


def test_chains_of_maxima_take_half_as_many_instructions_on_blackwell(tmp_path) -> None:
    chain = "\n".join(f"max.f32 %r10, %r10, %r{11 + n};" for n in range(96))
    blackwell = cycles(chain, tmp_path)
    assert blackwell == pytest.approx(96 * 2.5, rel=0.05)
    assert cycles(chain, tmp_path, target="sm_90a") == pytest.approx(2 * blackwell, rel=0.05)


def test_a_wait_has_the_name_of_its_barrier_and_ends_after_the_arrival(tmp_path) -> None:
    body = f"""
    mov.u32 %r3, %tid.x;
    setp.eq.u32 %p1, %r3, 0;
    @%p1 mbarrier.init.shared::cta.b64 [tile], 32;
    bar.sync 0;
    setp.ge.u32 %p2, %r3, 32;
    @%p2 bra WAIT;
    {EXP2}
    mbarrier.arrive.shared::cta.b64 _, [tile];
    bra.uni END;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [tile], 0;
    @!%p3 bra WAIT;
END:
    """
    names = Names(
        (NamedRange("ready", 0, 8),),
        (NamedThreads("worker", 0, 32), NamedThreads("waiter", 32, 64)),
    )
    text = kernel(body, (), target="sm_100a").replace(
        ".address_size 64", ".address_size 64\n.extern .shared .align 1024 .b8 tile[];"
    )
    events = events_of(text, tmp_path, block=64, names=names, dynamic_shared=16)
    waits = [e for e in events if e.kind == "wait" and e.name == "wait for ready"]
    worked = max(e.end for e in events if e.name == "exp2")
    assert {event.track.role for event in waits} == {"waiter"}
    assert waits[-1].end - worked == pytest.approx(29 + 32, abs=15)


def product_events(kind, element, m, n, k, tmp_path, *, tensor_a=False) -> tuple[Event, ...]:
    a, b = random_matrix((m, k), element, 1), random_matrix((n, k), element, 2)
    tiles, steps = lay_out(a, b)
    bits = idesc(m, n, TYPES[element][1], TYPES[element][1])
    if tensor_a:
        steps = [(0, b) for _, b in steps]
    code = issue(kind, 1, bits, steps, first=True, tensor_a=tensor_a, d="%r24")
    body = fill(64) + "add.u32 %r24, %r9, 128;" + SYNC + by_thread_0(code + COMMIT) + wait()
    trace = tmp_path / "trace.json"
    text = program(body, size=len(tiles), columns=512)
    launch(text, tiles, np.zeros(16, np.uint32), trace=trace, checks=False)
    return read_events(json.loads(trace.read_text()))


@pytest.mark.parametrize(
    ("kind", "element", "m", "n", "tensor_a", "each"),
    [
        ("f16", "bf16", 128, 256, False, 128),  # 8192 operations a cycle
        ("f16", "bf16", 128, 128, False, 64),
        ("f16", "bf16", 128, 64, False, 48),  # 6144 bytes of shared memory at 128 a cycle
        ("f16", "bf16", 128, 64, True, 32),
        ("f16", "bf16", 64, 64, False, 32),  # half the rows, half the rate
        ("f8f6f4", "e4m3", 128, 128, False, 64),  # with twice as much of K
    ],
)
def test_products_take_the_measured_cycles(tmp_path, kind, element, m, n, tensor_a, each) -> None:
    depth = 128 if element == "e4m3" else 64
    found = products(product_events(kind, element, m, n, depth, tmp_path, tensor_a=tensor_a))
    assert [event.end - event.begin for event in found] == pytest.approx([each] * 4)
    ends = [event.end for event in found]
    assert [event.begin for event in found[1:]] == pytest.approx(ends[:-1])  # in order, no gaps
    where = "tensor memory" if tensor_a else "shared memory"
    assert {event.args["a"] for event in found} == {where}


@pytest.mark.parametrize(("tensor_a", "latency"), [(False, 136), (True, 104)])
def test_a_commit_is_seen_after_the_measured_latency(tmp_path, tensor_a, latency) -> None:
    """One product of 128 columns takes 64 cycles more than these."""
    events = product_events("f16", "bf16", 128, 128, 16, tmp_path, tensor_a=tensor_a)
    (product,) = products(events)
    waits = [e for e in events if e.kind == "wait" and e.begin < product.end < e.end]
    assert waits
    assert max(e.end for e in waits) - product.end == pytest.approx(latency, abs=1)


def test_a_load_of_tensor_memory_takes_a_cycle_a_column(tmp_path) -> None:
    def length(columns: int) -> float:
        trace = tmp_path / "trace.json"
        text = program(fill(columns) + read_back(columns))
        cells = np.zeros((128, columns), np.uint32)
        launch(text, cells, cells, trace=trace, checks=False)
        events = read_events(json.loads(trace.read_text()))
        return sum(
            e.end - e.begin for e in events if e.track.warp == 0 and e.name == "tensor memory load"
        )

    assert length(64) - length(16) == pytest.approx(48, abs=1)
