from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Verdict
from fa4gen.emulator.checks.observer import RaceObserver
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.instructions.tcgen05.kernels import (
    fill,
    kinds,
    launch,
    program,
    wait,
)
from tests.emulator.instructions.tcgen05.products import (
    CLUSTER,
    COMMIT,
    SYNC,
    TYPES,
    before,
    by_the_leader,
    by_thread_0,
    columns_from_shared,
    idesc,
    issue,
    lay_out,
    outcome,
    random_matrix,
    read_back,
    times,
)
from tests.emulator.instructions.tcgen05.tiles import descriptor, expected
from tests.emulator.kernel import vector

NOTHING = np.zeros(1, np.uint32)


def product(kind, a_kind, b_kind, m, n, k, *, group=1, span=128, base=0, d=1, first=False,
            setup="", schedule="uniform", seed=0, **options):  # fmt: skip
    """Run one product over K, which has to be clean; gives (cells, A B)."""
    a, b = random_matrix((m, k), a_kind, 1), random_matrix((n, k), b_kind, 2)
    flags = {name: options.pop(name) for name in ("ta", "tb", "negate_a", "negate_b", "saturate")
             if name in options}  # fmt: skip
    tiles, steps = lay_out(a, b, span, flags.get("ta", 0), flags.get("tb", 0))
    bits = idesc(m, n, TYPES[a_kind][1], TYPES[b_kind][1], d, **flags)
    where = f"add.u32 %r24, %r9, {base << 16};"
    text = where + issue(kind, group, bits, steps, d="%r24", first=first, **options)
    report, cells = outcome(text, n, tiles, setup=setup, schedule=schedule, seed=seed)
    assert report.verdict is Verdict.CLEAN, str(report)
    return cells[0], times(a, b)


@pytest.mark.parametrize(("between", "guard", "continued"), [
    ("", "", 3), ("", "@%p2", 3), ("add.u32 %r23, %r9, 1;", "", 3),
    ("tcgen05.fence::before_thread_sync;", "", 0),
])  # fmt: skip
def test_products_in_a_row_continue_each_other(between, guard, continued, monkeypatch) -> None:
    """Only those that nothing comes between: then what orders one of them orders all."""
    a, b = random_matrix((128, 64), "bf16", 1), random_matrix((32, 64), "bf16", 2)
    tiles, steps = lay_out(a, b)
    text = issue("f16", 1, idesc(128, 32, 1, 1), steps, first=True)
    text = text.replace("tcgen05.mma", f"{guard} tcgen05.mma")
    head, *rest = text.split("add.s64 %d8")
    text = head + "".join(f"{between}\nadd.s64 %d8{part}" for part in rest)
    found = []
    issued = RaceObserver.issued

    def note(observer, op) -> None:
        if op.kind == "tcgen05.mma":
            found.append(op.continues is not None)
        issued(observer, op)

    monkeypatch.setattr(RaceObserver, "issued", note)
    report, cells = outcome(text, 32, tiles, filled=False)
    assert report.verdict is Verdict.CLEAN, str(report)
    np.testing.assert_allclose(cells[0].view(np.float32), times(a, b), rtol=1e-5, atol=1e-4)
    assert (len(found), sum(found)) == (4, continued)


@pytest.mark.parametrize(
    ("kind", "a", "b", "m", "n", "k", "span", "flags"),
    [
        ("f16", "bf16", "bf16", 128, 64, 64, 128, {}),
        ("f16", "f16", "f16", 128, 32, 128, 128, {}),
        ("f16", "bf16", "bf16", 128, 32, 64, 64, {}),
        ("f16", "bf16", "bf16", 128, 32, 32, 32, {}),
        ("f16", "bf16", "bf16", 128, 32, 32, 0, {}),
        ("f16", "bf16", "bf16", 64, 16, 32, 128, {}),
        ("f16", "bf16", "bf16", 128, 64, 32, 128, {"ta": 1}),
        ("f16", "bf16", "bf16", 128, 64, 32, 128, {"tb": 1}),
        ("f16", "bf16", "bf16", 128, 64, 32, 0, {"ta": 1, "tb": 1}),
        ("f16", "bf16", "bf16", 128, 16, 16, 128, {"negate_a": 1}),
        ("f16", "bf16", "bf16", 128, 16, 16, 128, {"negate_a": 1, "negate_b": 1}),
        ("tf32", "tf32", "tf32", 128, 32, 32, 128, {}),
        ("f8f6f4", "e4m3", "e5m2", 128, 32, 128, 128, {}),
        ("f8f6f4", "e4m3", "e4m3", 128, 32, 64, 0, {"tb": 1}),
    ],
)
def test_products_from_shared_memory(kind, a, b, m, n, k, span, flags) -> None:
    cells, exact = product(kind, a, b, m, n, k, span=span, first=True, **flags)
    if flags.get("negate_a", 0) != flags.get("negate_b", 0):
        exact = -exact
    wanted = expected(exact.astype(np.float32), before(n).view(np.float32), 1)[0]
    assert (cells.view(np.float32) == wanted).all()


def test_rows_of_a_small_product_start_at_lane_16_of_each_quarter() -> None:
    cells, exact = product("f16", "bf16", "bf16", 64, 16, 32, base=16, first=True)
    wanted = expected(exact.astype(np.float32).view(np.uint32), before(16), 1, base=16)[0]
    assert (cells == wanted).all()


@pytest.mark.parametrize(("kind", "more"), [("f16", {}), ("f16", {"tail": ", 3"})])
def test_d_is_added_to(kind, more) -> None:
    """Without a first product that ignores it, D counts, scaled once by every product."""
    cells, exact = product(kind, "bf16", "bf16", 128, 16, 16, **more)
    scale = 0.125 if more else 1.0
    wanted = exact.astype(np.float32) + before(16).view(np.float32) * np.float32(scale)
    assert (cells == wanted.view(np.uint32)).all()


def test_d_in_half_precision_lies_in_low_halves() -> None:
    cells, exact = product("f16", "f16", "f16", 128, 16, 32, d=0, first=True)
    assert (cells == exact.astype(np.float16).view(np.uint16)).all()


@pytest.mark.parametrize(("a", "b"), [("u8", "s8"), ("s8", "s8"), ("u8", "u8")])
def test_integers(a, b) -> None:
    cells, exact = product("i8", a, b, 128, 32, 64, d=2)
    assert (cells.view(np.int32) == exact.astype(np.int64) + before(32)).all()


def test_lanes_can_be_left_out() -> None:
    """Bit i of the four words says that lane i stays as it is."""
    setup = "mov.u32 %r30, 5; mov.u32 %r31, 0; mov.u32 %r32, 0x80000000; mov.u32 %r33, -1;"
    cells, exact = product(
        "f16", "bf16", "bf16", 128, 16, 32, first=True, setup=setup,
        words=", {%r30, %r31, %r32, %r33}",
    )  # fmt: skip
    wanted = exact.astype(np.float32).view(np.uint32)
    kept = [0, 2, 95, *range(96, 128)]
    wanted[kept] = before(16)[kept]
    assert (cells == wanted).all()


@pytest.mark.parametrize(
    ("kind", "a", "m", "n", "k", "group"),
    [
        ("f16", "bf16", 128, 16, 32, 1),
        ("f16", "f16", 64, 16, 32, 1),
        ("tf32", "tf32", 128, 16, 16, 1),
        ("f8f6f4", "e4m3", 128, 16, 64, 1),
        ("i8", "s8", 128, 16, 64, 1),
        ("f16", "bf16", 64, 64, 16, 0),
        ("f16", "bf16", 32, 64, 16, 0),
    ],
)
def test_a_from_tensor_memory(kind, a, m, n, k, group) -> None:
    """Rows of A lie on all lanes that hold their row of D, packed along the columns behind D."""
    rows = random_matrix((m, k), a, 1)
    raw = np.ascontiguousarray(rows).view(np.uint32)
    lanes = np.zeros((128, raw.shape[1]), np.uint32)
    for copy in range(128 // m if group == 0 else 1):
        for row in range(m):
            lane = row + copy * m if group == 0 or m == 128 else 32 * (row // 16) + row % 16
            lanes[lane] = raw[row]
    b = random_matrix((n, k), a, 2)
    data, steps = lay_out(rows, b, columns=lanes)
    moved = [(n + 8 * number, tile) for number, (_, tile) in enumerate(steps)]
    value = idesc(m, n, TYPES[a][1], TYPES[a][1], 2 if kind == "i8" else 1)
    text = issue(kind, group, value, moved, tensor_a=True, first=True)
    report, cells = outcome(text, n, data, setup=columns_from_shared(lanes.shape[1], n))
    assert report.verdict is Verdict.CLEAN, str(report)
    number = np.int32 if kind == "i8" else np.float32
    exact = times(rows, b).astype(number)
    wanted = expected(exact, before(n).view(number), 1, ws=group == 0)
    assert (cells.view(number) == wanted).all()


@pytest.mark.parametrize(
    ("m", "tail"), [(32, ""), (64, ""), (128, ""), (64, ", 0"), (128, ", %d9")]
)
def test_ws(m, tail) -> None:
    """A zero-column mask without its bit 39 masks nothing, whatever its spans."""
    setup = "mov.u64 %d9, 0x0003020f04030201;"
    cells, exact = product(
        "f16", "bf16", "bf16", m, 64, 32, group=0, first=True, setup=setup, tail=tail
    )
    wanted = expected(exact.astype(np.float32).view(np.uint32), before(64), 1, ws=True)[0]
    assert (cells == wanted).all()


@pytest.mark.parametrize("schedule", ["uniform", "priority", "eager", "lazy"])
def test_every_schedule_gives_the_same(schedule) -> None:
    for seed in range(3):
        cells, exact = product(
            "f16", "bf16", "bf16", 128, 16, 128, first=True, schedule=schedule, seed=seed
        )
        assert (cells.view(np.float32) == exact).all()


def test_saturation_is_done_by_every_product() -> None:
    """Without it sums wrap around."""
    a, b = np.ones((128, 64), np.int8), np.ones((8, 64), np.int8)
    a[:, 32:] = -1
    tiles, steps = lay_out(a, b)
    most = f"""{"".join(f"mov.u32 %r{100 + c}, 0x7fffffff;" for c in range(8))}
        tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], {vector(100, 8)};
        tcgen05.wait::st.sync.aligned;
    """
    for saturate in (0, 1):
        text = issue("i8", 1, idesc(128, 8, 1, 1, 2, saturate=saturate), steps)
        _, cells = outcome(text, 8, tiles, setup=most)
        assert (cells == 0x7FFFFFFF - 32 * saturate).all()


# ---- what is wrong


def small(body: str, *, data: int = 16384, schedule: str = "uniform", columns: int = 128) -> list:
    """The kinds of findings of a kernel with so many bytes of zeros in shared memory."""
    report = launch(
        program(body, size=data, columns=columns), np.zeros(data, np.uint8),
        np.zeros((128, 64), np.uint32), schedule=schedule,
    )  # fmt: skip
    return kinds(report)


A = descriptor(0, 0, 1024, 128)
B = descriptor(8192, 0, 1024, 128)
GOOD = idesc(64, 64, 1, 1)


def one(bits: int = GOOD, a: int = A, b: int = B, **options) -> str:
    return issue("f16", 1, bits, [(a, b)], first=True, **options)


def test_a_good_one_is_clean() -> None:
    assert small(by_thread_0(one() + COMMIT) + wait()) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (one(bits=idesc(64, 264, 1, 1)), "descriptor"),
        (one(bits=idesc(64, 64, 1, 1) | 1 << 6), "descriptor"),
        (one(bits=idesc(64, 64, 1, 1) | 1 << 2), "descriptor"),
        (one(a=A & ~(1 << 46)), "descriptor"),
        (one(a=A & ~(7 << 61) | 3 << 61), "descriptor"),
        (one(a=A & ~(7 << 61) | 1 << 61), "descriptor"),
        (one(b=descriptor(15360, 0, 1024, 128)), "out-of-bounds"),
        ("add.u32 %r24, %r9, 65;" + one(d="%r24"), "tensor-memory"),
        ("add.u32 %r24, %r9, 480;" + one(d="%r24"), "tensor-memory"),
        ("add.u32 %r24, %r9, 0x200000;" + one(d="%r24"), "tensor-memory"),
        (one().replace("cta_group::1", "cta_group::2"), "illegal-instruction"),
        (issue("f16", 1, GOOD, [(A, B)]), "uninitialised"),
    ],
)
def test_products_that_are_refused_at_run_time(text, kind) -> None:
    assert kind in small(by_thread_0(text + COMMIT) + wait())


def test_every_lane_issues() -> None:
    body = f"@!%p1 bra ISSUED; mov.u32 %r22, 0; {one()} ISSUED: {SYNC}"
    body += by_thread_0("").replace("ISSUED", "OTHER") + "@%p2 " + COMMIT + wait()
    assert "illegal-instruction" in small(body)


@pytest.mark.parametrize("schedule", ["uniform", "lazy", "eager"])
def test_a_result_that_nobody_has_waited_for(schedule) -> None:
    body = fill(64) + SYNC + by_thread_0(one() + COMMIT) + read_back(64)
    assert "race" in small(body, schedule=schedule)


def test_columns_given_back_too_early() -> None:
    early = "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 128; exit;"
    assert "tensor-memory" in small(by_thread_0(one()) + early)


@pytest.mark.parametrize("mask", ["0003028000000000", "0200000000000000"])
def test_masks_of_columns_that_are_not_modelled(mask) -> None:
    text = f"mov.u64 %d9, 0x{mask};" + issue("f16", 0, GOOD, [(A, B)], tail=", %d9")
    with pytest.raises(UnsupportedError):
        small(by_thread_0(text))


def test_collector_hints_change_nothing() -> None:
    text = one().replace(".kind::f16", ".kind::f16.collector::a::fill")
    assert small(by_thread_0(text + COMMIT) + wait()) == []


# ---- commit


def test_a_commit_without_work_arrives() -> None:
    assert small(by_thread_0(COMMIT) + wait()) == []


def test_a_generic_address_will_do() -> None:
    generic = """
    cvt.u64.u32 %d9, %r2; cvta.shared.u64 %d9, %d9; add.s64 %d9, %d9, BARRIER;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d9];
    """
    assert small(by_thread_0(one() + generic) + wait()) == []


def test_a_commit_speaks_for_everything_before_it() -> None:
    """Only the second commit is waited for; it covers the product before the first one too."""
    start = """
    @%p2 mbarrier.init.shared::cta.b64 [tile+EXTRA], 1;
    fence.mbarrier_init.release.cluster;
    """
    body = start + fill(64) + SYNC
    body += by_thread_0(one() + COMMIT.replace("BARRIER", "EXTRA") + COMMIT)
    assert small(body + wait() + read_back(64)) == []


def test_commits_tell_the_barriers_of_a_cluster() -> None:
    """One commit arrives at the barrier of both CTAs of a cluster."""
    multicast = """
    mov.u16 %h0, 3;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [tile+BARRIER], %h0;
    """
    body = CLUSTER + "mov.u32 %r50, %cluster_ctarank;" + by_the_leader(multicast) + wait() + CLUSTER
    text = program(body, directives=".reqnctapercluster 2, 1, 1")
    report = launch(text, NOTHING, NOTHING, grid=2)
    assert report.verdict is Verdict.CLEAN, str(report)
    one_only = launch(text.replace("mov.u16 %h0, 3;", "mov.u16 %h0, 1;"), NOTHING, NOTHING, grid=2)
    assert "deadlock" in kinds(one_only)
    nobody = launch(text.replace("mov.u16 %h0, 3;", "mov.u16 %h0, 4;"), NOTHING, NOTHING, grid=2)
    assert "illegal-instruction" in kinds(nobody)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("order", "threads", "expected"), [
    (("EXTRA", "BARRIER"), (0, 0), []),
    (("BARRIER", "EXTRA"), (0, 0), ["error: early-exit", "isa: early-exit"]),
    (("EXTRA", "BARRIER"), (32, 0), ["error: early-exit", "isa: early-exit"]),
])  # fmt: skip
def test_commits_of_one_thread_complete_in_order(
    order: tuple[str, str], threads: tuple[int, int], expected: list[str], schedule: str
) -> None:
    """A CTA that has waited for a later commit of a thread may leave, not after an earlier one."""
    text = """
    setp.ne.u32 %p6, %r0, THREAD;
    @%p6 bra NEXT;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [tile+PLACE], %h0;
NEXT:
    """
    body = "@%p2 mbarrier.init.shared::cta.b64 [tile+EXTRA], 1;"
    body += "fence.mbarrier_init.release.cluster;" + CLUSTER
    body += "mov.u32 %r50, %cluster_ctarank; setp.ne.u32 %p7, %r50, 0; @%p7 bra ISSUED;"
    body += "mov.u16 %h0, 3;"
    for number, (place, thread) in enumerate(zip(order, threads, strict=True)):
        commit = text.replace("PLACE", place).replace("NEXT", f"NEXT{number}")
        body += commit.replace("THREAD", str(thread))
    ptx = program(body + "ISSUED:" + wait(), directives=".reqnctapercluster 2, 1, 1")
    report = launch(ptx, NOTHING, NOTHING, grid=2, schedule=schedule)
    found = [f"{finding.severity.value}: {finding.kind}" for finding in report.findings]
    assert sorted(found) == expected, str(report)
