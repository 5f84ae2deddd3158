"""tcgen05 with .cta_group::2: two CTAs of a cluster work as one."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Verdict
from tests.emulator.instructions.tcgen05.kernels import (
    fill,
    kinds,
    launch,
    program,
    save,
    wait,
)
from tests.emulator.instructions.tcgen05.products import (
    BOTH,
    CLUSTER,
    COMMIT_TO_BOTH,
    SYNC,
    TYPES,
    before,
    by_the_leader,
    columns_from_shared,
    idesc,
    issue,
    lay_out,
    outcome,
    random_matrix,
    times,
)
from tests.emulator.instructions.tcgen05.tiles import expected
from tests.emulator.kernel import kernel, run

NOTHING = np.zeros(2, np.uint32)


def halves(a, b, tb=0, columns=(None, None)):
    """The operands of both CTAs, and the steps of K, which are the same in both."""
    parts = []
    for rank in range(2):
        own = [x[rank * len(x) // 2 : (rank + 1) * len(x) // 2] for x in (a, b)]
        data, steps = lay_out(*own, tb=tb, columns=columns[rank])
        parts.append(data)
    return np.concatenate(parts), steps


@pytest.mark.parametrize(
    ("m", "n", "k", "flags"),
    [(256, 32, 64, {}), (128, 32, 64, {}), (256, 128, 32, {"tb": 1}), (128, 64, 32, {})],
)
def test_each_cta_gives_half_of_both_operands(m, n, k, flags) -> None:
    a, b = random_matrix((m, k), "bf16", 1), random_matrix((n, k), "bf16", 2)
    data, steps = halves(a, b, flags.get("tb", 0))
    width = min(n, 64)
    text = issue("f16", 2, idesc(m, n, 1, 1, **flags), steps, first=True)
    report, cells = outcome(text, width, data, group=2)
    assert report.verdict is Verdict.CLEAN, str(report)
    start = np.zeros((128, n), np.float32)
    start[:, :width] = before(width).view(np.float32)
    wanted = expected(times(a, b).astype(np.float32), start, 2)[:, :, :width]
    assert (cells.view(np.float32) == wanted).all()


@pytest.mark.parametrize("m", [128, 256])
def test_a_from_tensor_memory(m) -> None:
    """With M = 128 each CTA holds its 64 rows of A twice."""
    n, k = 32, 32
    a, b = random_matrix((m, k), "bf16", 1), random_matrix((n, k), "bf16", 2)
    lanes = [np.concatenate([a[r * m // 2 : (r + 1) * m // 2]] * (256 // m)) for r in range(2)]
    data, tiles = halves(a, b, columns=[one.view(np.uint32) for one in lanes])
    steps = [(n + 8 * number, tile) for number, (_, tile) in enumerate(tiles)]
    text = issue("f16", 2, idesc(m, n, TYPES["bf16"][1], 1), steps, tensor_a=True, first=True)
    report, cells = outcome(text, n, data, group=2, setup=columns_from_shared(k // 2, n))
    assert report.verdict is Verdict.CLEAN, str(report)
    exact = times(a, b).astype(np.float32)
    assert (cells.view(np.float32) == expected(exact, before(n).view(np.float32), 2)).all()


def test_a_pair_asks_for_the_same_sizes() -> None:
    body = """
    add.u32 %r51, %r50, 1; shl.b32 %r51, %r51, 5;
    @%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tile+EXTRA], %r51;
    """
    report = launch(program(body + CLUSTER, group=2), NOTHING, NOTHING, grid=2)
    assert "tensor-memory" in kinds(report)
    [sizes] = [str(one) for one in report.findings if "allocation 1 of the pair" in str(one)]
    assert {"32", "64"} <= set(sizes.split())


def test_columns_are_not_given_back_before_the_peer_has_its_own() -> None:
    """Without a cluster barrier one CTA can be through before the other has allocated."""
    text = program("", group=2).replace(CLUSTER, "")
    found = set()
    for seed in range(20):
        found |= set(kinds(launch(text, NOTHING, NOTHING, grid=2, seed=seed, schedule="starve")))
    assert "tensor-memory" in found
    for seed in range(20):
        report = launch(program("", group=2), NOTHING, NOTHING, grid=2, seed=seed)
        assert report.verdict is Verdict.CLEAN, str(report)


def test_a_pair_needs_two_ctas_and_one_kind_of_group() -> None:
    alone = program("", group=2, directives=" ").replace(CLUSTER, "")
    assert "illegal-instruction" in kinds(launch(alone, NOTHING, NOTHING))
    mixed = SYNC + "@%p1 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;"
    assert "illegal-instruction" in kinds(launch(program(mixed), NOTHING, NOTHING))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("between", [CLUSTER, ""])
def test_columns_are_given_back_after_both_have_allocated(between: str, schedule: str) -> None:
    """In every order: it is the missing order that is reported, not what the run came to."""
    text = f"""
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tile], 32;
    bar.warp.sync 0xffffffff;
    ld.shared.b32 %r9, [tile];
    {between}
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r9, 32;
"""
    cluster = ".reqnctapercluster 2, 1, 1"
    ptx = kernel(text, target="sm_100a", shared=16, directives=cluster)
    for seed in range(4):
        report = run(ptx, np.zeros(1), grid=2, seed=seed, schedule=schedule)
        assert ("tensor-memory" in kinds(report)) == (not between), str(report)
        assert (report.verdict is Verdict.CLEAN) == bool(between)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_allocation_of_a_pair_waits_for_the_peers(schedule: str) -> None:
    """The leader's product writes columns of both CTAs, and no barrier is between."""
    m, n, k = 256, 32, 16
    a, b = random_matrix((m, k), "bf16", 1), random_matrix((n, k), "bf16", 2)
    half, tile = lay_out(a[: m // 2], b[: n // 2])
    body = f"""
        setp.eq.u32 %p6, %r50, 0;
        @%p6 bra ALLOCATE;
        mov.u32 %r60, 0;
    LATE:
        add.u32 %r60, %r60, 1;
        setp.lt.u32 %p5, %r60, 300;
        @%p5 bra LATE;
    ALLOCATE:
        @%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tile+EXTRA], 32;
        {SYNC}
        mov.u32 %r61, %r9;
        ld.shared.b32 %r9, [tile+EXTRA];
        {by_the_leader(issue("f16", 2, idesc(m, n, 1, 1), tile, first=True) + COMMIT_TO_BOTH)}
        {wait()}
        {BOTH}
        @%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r9, 32;
        mov.u32 %r9, %r61;
    """
    text = program(body, size=len(half), group=2)
    data = np.concatenate([half, half])
    report = launch(text, data, NOTHING, grid=2, schedule=schedule, seed=3)
    assert report.verdict is Verdict.CLEAN, str(report)


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("relaxed", [True, False])
def test_columns_are_given_back_after_loads_whose_values_were_needed(relaxed, needed) -> None:
    """Without tcgen05.wait::ld: a load is over once what it loaded was needed."""
    barrier = CLUSTER.replace("arrive", "arrive.relaxed") if relaxed else CLUSTER
    parts = (save(1, 60), barrier) if needed else (barrier, save(1, 60))
    body = f"""
    {fill(1)}
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r60}}, [%r10];
    {"".join(parts)}
    @%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r9, 128;
    ret;
    """
    report = launch(program(body, group=2, out=512), NOTHING, np.zeros((2, 128), np.uint32), grid=2)
    found = {(one.kind, one.severity.value) for one in report.findings}
    own = ("missing-tcgen05-wait", "isa")  # the warp that gives back had needed its values
    others = ("tensor-memory" if relaxed else "missing-tcgen05-wait", "error")
    stored = {("tensor-memory", "isa")} if relaxed else set()
    assert found == {own} | stored | (set() if needed else {others}), str(report)
