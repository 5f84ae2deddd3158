from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.instructions.copy.copies import (
    STORED,
    WAIT,
    clean,
    dump,
    expect,
    first,
    launch,
    noise,
    reported,
)
from tests.emulator.kernel import SYNC

LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
# the tile and the barrier of the other of two CTAs
PEER = """
    mov.u32 %r22, %cluster_ctarank; mov.u32 %r30, bar; xor.b32 %r24, %r22, 1;
    mapa.shared::cluster.u32 %r25, %r20, %r24; mapa.shared::cluster.u32 %r26, %r30, %r24;
"""
AGAIN = WAIT.replace("WAIT", "AGAIN").replace(", 0;", ", 1;")
# the place of this CTA's 1024 bytes of p0
OWN = "mul.lo.u32 %r23, %r22, 1024; cvt.u64.u32 %d5, %r23; add.u64 %d0, %d0, %d5;"


def fill(size: int, parameter: str = "%d1") -> str:
    """Load ``size`` bytes into the tile."""
    return first(f"{expect(size)} {LOAD} [tile], [{parameter}], {size}, [bar];", "FILLING") + WAIT


@pytest.mark.parametrize("schedule", ["uniform", "lazy", "eager"])
@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
def test_bytes_come_and_go(space: str, schedule: str) -> None:
    body = first(
        f"""{expect(1024)}
    add.u64 %d2, %d1, 16;
    cp.async.bulk.{space}.global.mbarrier::complete_tx::bytes [tile], [%d2], 1008, [bar];
    cp.async.bulk.{space}.global.mbarrier::complete_tx::bytes.L2::cache_hint
        [tile+1008], [%d1], 16, [bar], %d9;"""
    )
    out, source = np.zeros(1024, np.uint8), noise((1024,), np.uint8)
    clean(body + WAIT + dump(1024), out, source, schedule=schedule)
    assert np.array_equal(out, np.roll(source, -16))


@pytest.mark.parametrize(
    ("operands", "kind"),
    [
        ("[tile], [%d1], 24", "misaligned"),
        ("[tile+8], [%d1], 16", "misaligned"),
        ("[tile], [%d1+8], 16", "misaligned"),
        ("[tile], [%d1], 2048", "out-of-bounds"),
        ("[tile+1008], [%d1], 32", "out-of-bounds"),
    ],
)
def test_what_a_load_may_not_do(operands: str, kind: str) -> None:
    body = first(f"{LOAD} {operands}, [bar];")
    assert reported(body, np.zeros(4), np.zeros(1024, np.uint8), size=1024) == [kind]


def test_a_load_into_another_place_per_lane() -> None:
    body = f"""
    @%p8 {expect(512)}
    shl.b32 %r22, %r21, 4; add.u32 %r23, %r20, %r22; cvt.u64.u32 %d5, %r22; add.u64 %d6, %d1, %d5;
    {LOAD} [%r23], [%d6], 16, [bar];
    {WAIT}
    {dump(512)}
"""
    out, source = np.zeros(512, np.uint8), noise((512,), np.uint8)
    clean(body, out, source, checks=False)
    assert np.array_equal(out, source)


def test_a_wait_for_all_but_the_latest_group() -> None:
    """Two of three groups, each adding to the same word, have to be over."""
    add = """
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [tile], 16;
    cp.async.bulk.commit_group;"""
    body = fill(16) + first(
        f"""{add}{add}{add}
    cp.async.bulk.wait_group{{read}} {{left}};
    ld.global.u32 %r5, [%d0];
    st.global.u32 [%d0+16], %r5;"""
    )
    for left in (0, 1, 2):
        out, source = np.zeros(8, np.uint32), np.ones(4, np.uint32)
        launch(body.format(read="", left=left), out, source, schedule="lazy", checks=False)
        assert out.tolist() == [3, 3, 3, 3, 3 - left, 0, 0, 0]


@pytest.mark.parametrize("left", [0, 1])
def test_a_wait_for_reads_lets_the_source_change(left: int) -> None:
    """Without one the source changes too early."""
    body = fill(16) + first(
        f"""
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [tile], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read {left};
    st.shared.u32 [tile], 77;
    cp.async.bulk.wait_group 0;"""
    )
    out, source = np.zeros(4, np.uint32), np.arange(1, 5, dtype=np.uint32)
    report = launch(body, out, source, schedule="lazy")
    assert bool(report.findings) == bool(left)
    assert out.tolist() == [77 if left else 1, 2, 3, 4]


REDUCTIONS = [
    ("add.u32", np.uint32, np.add),
    ("add.u64", np.uint64, np.add),
    ("add.f32", np.float32, np.add),
    ("add.f64", np.float64, np.add),
    ("add.noftz.f16", np.float16, np.add),
    ("add.noftz.bf16", ml_dtypes.bfloat16, np.add),
    ("min.s32", np.int32, np.minimum),
    ("max.s64", np.int64, np.maximum),
    ("max.f16", np.float16, np.maximum),
    ("and.b32", np.uint32, np.bitwise_and),
    ("or.b64", np.uint64, np.bitwise_or),
    ("xor.b32", np.uint32, np.bitwise_xor),
    ("inc.u32", np.uint32, lambda old, new: np.where(old >= new, 0, old + 1)),
    ("dec.u32", np.uint32, lambda old, new: np.where((old == 0) | (old > new), new, old - 1)),
]


@pytest.mark.parametrize(("operation", "dtype", "function"), REDUCTIONS)
def test_reductions_of_global_memory(operation: str, dtype, function) -> None:
    opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}"
    body = fill(256) + first(f"{opcode} [%d0], [tile], 256;{STORED}", "STORED")
    count = 256 // np.dtype(dtype).itemsize
    out, source = noise((count,), dtype, 4), noise((count,), dtype, 5)
    if np.dtype(dtype).kind == "i":
        out = -out
    expected = function(out, source).astype(dtype)
    clean(body, out, source)
    assert np.array_equal(out, expected)


def test_a_mask_of_bytes() -> None:
    body = fill(64) + first(
        f"""mov.b16 %h1, 0x8421;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [tile], 64, %h1; {STORED}""",
        "STORED",
    )
    out, source = np.zeros(64, np.uint8), noise((64,), np.uint8)
    clean(body, out, source, target="sm_100a")
    expected = source.copy().reshape(4, 16)
    expected[:, [n for n in range(16) if n not in (0, 5, 10, 15)]] = 0
    assert np.array_equal(out, expected.reshape(-1))


def test_an_array_that_may_not_be_written() -> None:
    source = noise((64,), np.uint8)
    source.flags.writeable = False
    body = fill(64) + first(
        f"cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], 64; {STORED}", "STORED"
    )
    assert reported(body, np.zeros(4), source) == ["out-of-bounds"]


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", None),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32",
            np.add,
        ),
    ],
)
def test_to_the_shared_memory_of_a_peer(opcode: str, function) -> None:
    """Each of two CTAs sends the first half of its tile to the second half of the other's."""
    body = f"""
    {PEER}
    {OWN.replace("%d0", "%d1")} {OWN}
    {fill(1024)}
    {SYNC}
    add.u32 %r25, %r25, 512;
    {first(expect(512) + f"{opcode} [%r25], [tile], 512, [%r26];", "SENT")}
    {AGAIN}
    {dump(1024)}
    {SYNC}
"""
    out, source = np.zeros((2, 256), np.uint32), noise((2, 256), np.uint32)
    clean(body, out, source, ctas=2, checks=False)
    expected = source.copy()
    for rank in range(2):
        sent, old = source[1 - rank, :128], source[rank, 128:]
        expected[rank, 128:] = function(old, sent) if function else sent
    assert np.array_equal(out, expected)


def test_multicast() -> None:
    body = f"""
    {SYNC}
    mov.u32 %r22, %cluster_ctarank;
    @!%p8 bra ISSUED;
    {expect(1024)}
    setp.eq.u32 %p1, %r22, 1;
    @!%p1 bra ISSUED;
    mov.b16 %h1, 3;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [tile], [%d1], 1024, [bar], %h1;
ISSUED:
    {WAIT}
    {OWN}
    {dump(1024)}
    {SYNC}
"""
    out, source = np.zeros((2, 1024), np.uint8), noise((1024,), np.uint8)
    clean(body, out, source, ctas=2, checks=False)
    assert np.array_equal(out, np.stack([source, source]))


@pytest.mark.parametrize("schedule", ["uniform", "lazy", "eager"])
def test_asynchronous_stores_and_reductions(schedule: str) -> None:
    """Every lane of one CTA writes 16 bytes of the other, then adds 7 to the first word."""
    body = f"""
    {PEER}
    st.bulk.weak.shared::cta [tile], 0, 0;
    {SYNC}
    shl.b32 %r27, %r21, 4; add.u32 %r27, %r25, %r27;
    shl.b32 %r28, %r22, 8; add.u32 %r28, %r28, %r21;
    {first(expect(32 * 16), "EXPECTED")}
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32
        [%r27], {{%r28, %r21, %r22, %r28}}, [%r26];
    {WAIT}
    {first(expect(32 * 4), "EXPECTED2")}
    {SYNC}
    mov.u32 %r31, 7;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32
        [%r27], %r31, [%r26];
    {AGAIN}
    fence.proxy.async.shared::cta;
    bar.sync 0;
    {OWN}
    {dump(512)}
    {SYNC}
"""
    out = np.zeros((2, 256), np.uint32)
    clean(body, out, ctas=2, target="sm_100a", checks=False, schedule=schedule)
    for rank in range(2):
        rows = out[rank, :128].reshape(32, 4)
        peer, lane = 1 - rank, np.arange(32)
        own = peer * 256 + lane
        assert np.array_equal(rows, np.stack([own + 7, lane, np.full(32, peer), own], axis=1))


@pytest.mark.parametrize(
    ("fence", "kinds"), [("", ["missing-proxy-fence"]), ("fence.proxy.async.shared::cta;", [])]
)
def test_bulk_copies_see_what_st_async_wrote_after_a_fence(fence: str, kinds: list[str]) -> None:
    """The wait orders the stores for threads; the async proxy needs a fence after it."""
    body = f"""
    mov.u32 %r22, %cluster_ctarank; mov.u32 %r30, bar;
    shl.b32 %r27, %r21, 4; add.u32 %r27, %r20, %r27;
    {first(expect(32 * 16), "EXPECTED")}
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32
        [%r27], {{%r21, %r21, %r21, %r21}}, [%r30];
    {WAIT}
    {fence}
    {SYNC}
    {OWN}
    {dump(512)}
    {SYNC}
"""
    out = np.zeros((2, 256), np.uint32)
    assert reported(body, out, ctas=2, target="sm_100a") == kinds


def test_zeros_in_bulk() -> None:
    body = (
        fill(1024)
        + first("mov.u64 %d5, 256; st.bulk.weak.shared::cta [tile+128], %d5, 0;", "FILLED")
        + "fence.proxy.async.shared::cta; bar.sync 0;"
        + dump(1024)
    )
    out, source = np.zeros(1024, np.uint8), noise((1024,), np.uint8)
    clean(body, out, source, target="sm_100a")
    source[128:384] = 0
    assert np.array_equal(out, source)


def test_a_prefetch_is_checked() -> None:
    for size, kinds in ((512, []), (528, ["out-of-bounds"])):
        body = first(f"cp.async.bulk.prefetch.L2.global [%d0], {size};")
        assert reported(body, np.zeros(64)) == kinds
