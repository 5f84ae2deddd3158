"""Loads and stores of every space, and what is reported of bad ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Report
from tests.emulator import kernel

# %r20: the thread; %d20/%d21: element of `size` bytes of the first and second array
_PLACES = """
    mov.u32 %r20, %tid.x;
    mul.wide.u32 %d20, %r20, {size}; add.u64 %d21, %d1, %d20; add.u64 %d20, %d0, %d20;
"""


def launch(body: str, *arrays: Any, size: int = 4, **options: Any) -> Report:
    """Two arrays; the lanes of a block of 128 by default."""
    return kernel.launch(_PLACES.format(size=size) + body, *arrays, **{"block": 128, **options})


def clean(*arguments: Any, **options: Any) -> None:
    report = launch(*arguments, **options)
    assert report.verdict.value == "clean", report


def noise(count: int, dtype: Any = np.uint32) -> np.ndarray:
    bits = np.random.default_rng(count).integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8)
    return bits.view(dtype)


@pytest.mark.parametrize(
    ("kind", "registers", "size"),
    [
        ("b8", "%h1", 1), ("b16", "%h1", 2), ("b32", "%r1", 4), ("f32", "%r1", 4),
        ("b64", "%d5", 8), ("f64", "%d5", 8), ("b128", "%q1", 16),
        ("v2.b8", "{%h1,%h2}", 2), ("v4.u16", "{%h1,%h2,%h3,%h4}", 8), ("v2.b32", "{%r1,%r2}", 8),
        ("v4.f32", "{%r1,%r2,%r3,%r4}", 16), ("v2.u64", "{%d5,%d6}", 16),
    ],
)  # fmt: skip
@pytest.mark.parametrize("space", ["global", "shared", "generic", "local"])
def test_copies_bits(kind: str, registers: str, size: int, space: str) -> None:
    """Through every space, also with half of the lanes."""
    source = noise(128 * size, np.uint8)
    out = np.zeros_like(source)
    through = {
        "global": "",
        "generic": "",
        "shared": f"""mad.lo.u32 %r30, %r20, {size}, tile;
            st.shared.{kind} [%r30], {registers}; xor.b32 %r31, %r20, 1; bar.sync 0;
            mad.lo.u32 %r30, %r20, {size}, tile; ld.shared.{kind} {registers}, [%r30];""",
        "local": f""".local .align 16 .b8 mine[48]; mov.u32 %r30, mine;
            st.local.{kind} [%r30+16], {registers}; ld.local.{kind} {registers}, [mine+16];""",
    }[space]
    dotted = "" if space == "generic" else ".global"
    clean(
        f"""ld{dotted}.{kind} {registers}, [%d20]; {through}
        and.b32 %r40, %r20, 1; setp.eq.u32 %p1, %r40, 0;
        @%p1 st{dotted}.{kind} [%d21], {registers};""",
        source, out, size=size, shared=128 * size,
    )  # fmt: skip
    table, copied = source.reshape(128, size), out.reshape(128, size)
    np.testing.assert_array_equal(copied[::2], table[::2])
    assert not copied[1::2].any()


def test_wide_vectors_of_blackwell() -> None:
    source, out = noise(128 * 8), np.zeros(128 * 8, np.uint32)
    registers = "{" + ",".join(f"%r{n}" for n in range(1, 9)) + "}"
    swapped = "{" + ",".join(f"%r{n}" for n in range(8, 0, -1)) + "}"
    clean(
        f"ld.global.v8.b32 {registers}, [%d20]; st.global.v8.b32 [%d21], {swapped};",
        source, out, size=32, target="sm_100a",
    )  # fmt: skip
    np.testing.assert_array_equal(out.reshape(-1, 8), source.reshape(-1, 8)[:, ::-1])


@pytest.mark.parametrize(
    ("kind", "register", "dtype"),
    [("s8", "%r1", np.int8), ("u8", "%r1", np.uint8), ("b8", "%r1", np.uint8),
     ("s16", "%r1", np.int16), ("u16", "%r1", np.uint16)],
)  # fmt: skip
def test_extension_to_the_register(kind: str, register: str, dtype: Any) -> None:
    source = noise(128, dtype)
    size = source.itemsize
    out = np.zeros(128, np.int32)
    clean(
        f"ld.global.{kind} {register}, [%d20]; mul.wide.u32 %d2, %r20, 4; add.u64 %d2, %d1, %d2;"
        "st.global.b32 [%d2], %r1;",
        source, out, size=size,
    )  # fmt: skip
    np.testing.assert_array_equal(out, source.astype(np.int32))


def test_store_takes_low_bits_and_sinks_drop_elements() -> None:
    source, out = noise(512), np.zeros(512, np.uint8)
    clean(
        """mul.wide.u32 %d2, %r20, 16; add.u64 %d2, %d0, %d2;
        ld.global.v4.b32 {_, %r1, _, %r2}, [%d2];
        st.global.v4.b8 [%d21], {%r1, %r2, 7, %r1};""",
        source, out,
    )  # fmt: skip
    rows = source.view(np.uint8).reshape(128, 16)
    np.testing.assert_array_equal(out.reshape(128, 4)[:, [0, 1, 3]], rows[:, [4, 12, 4]])
    assert (out.reshape(128, 4)[:, 2] == 7).all()


@pytest.mark.parametrize(
    "words",
    ["weak.global.ca", "global.cg", "global.cs", "global.lu", "global.cv", "volatile.global",
     "relaxed.gpu.global", "acquire.cta.global", "mmio.relaxed.sys.global", "global.nc",
     "global.L1::evict_last.L2::128B", "global.nc.L1::no_allocate.L2::256B"],
)  # fmt: skip
def test_qualifiers_of_loads(words: str) -> None:
    source, out = noise(128), np.zeros(128, np.uint32)
    clean(f"ld.{words}.b32 %r1, [%d20]; st.global.b32 [%d21], %r1;", source, out)
    np.testing.assert_array_equal(out, source)


@pytest.mark.parametrize(
    "words",
    ["weak.global", "global.wb", "global.cs", "global.wt", "volatile.global", "relaxed.sys.global",
     "release.gpu.global", "global.L1::evict_first"],
)  # fmt: skip
def test_qualifiers_of_stores(words: str) -> None:
    out = np.zeros(128, np.uint32)
    clean(f"st.{words}.b32 [%d21], %r20;", noise(128), out)
    np.testing.assert_array_equal(out, np.arange(128))


def test_hints_change_nothing() -> None:
    source, out = noise(128), np.zeros(128, np.uint32)
    clean(
        """createpolicy.fractional.L2::evict_last.b64 %d5, 0.5;
        createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d5, [%d0], 64, 128;
        prefetch.global.L2 [%d20]; prefetchu.L1 [%d20]; prefetch.L1 [%d20];
        applypriority.global.L2::evict_normal [%d0], 128;
        ld.global.L2::cache_hint.b32 %r1, [%d20], %d5;
        st.global.L2::cache_hint.b32 [%d21], %r1, %d5;""",
        source, out,
    )  # fmt: skip
    np.testing.assert_array_equal(out, source)


def test_discard_loses_the_value() -> None:
    out = np.zeros(128, np.uint32)
    clean(
        "setp.ne.u32 %p1, %r20, 0; @%p1 bra END; discard.global.L2 [%d1], 128; END:",
        noise(128), out,
    )  # fmt: skip
    assert out[:32].all()
    assert not out[32:].any()


def test_constants_and_parameters_by_lane() -> None:
    """A constant array and the parameter buffer, each read at the lane's own place."""
    out = np.zeros(64, np.uint32)
    body = """
    mov.u32 %r20, %tid.x; and.b32 %r1, %r20, 1; shl.b32 %r1, %r1, 2;
    mov.u64 %d4, table; cvt.u64.u32 %d5, %r1; add.u64 %d4, %d4, %d5; ld.const.b32 %r2, [%d4];
    mov.u64 %d4, p1; add.u64 %d4, %d4, %d5; ld.param.b32 %r3, [%d4];
    mov.u64 %d4, p1; cvta.param.u64 %d4, %d4; add.u64 %d4, %d4, %d5; ld.b32 %r4, [%d4];
    sub.u32 %r4, %r4, %r3; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
    mul.wide.u32 %d5, %r20, 4; add.u64 %d5, %d0, %d5; st.global.b32 [%d5], %r2;
    """
    kernel.clean(body, out, np.uint64(5 << 32 | 3), module=TABLE, block=64)
    np.testing.assert_array_equal(out, [13, 25] * 32)


def test_generic_addresses_in_several_windows_at_once() -> None:
    source, out = np.arange(1000, 1128, dtype=np.uint32), np.zeros(128, np.uint32)
    clean(
        """.local .align 4 .b8 mine[4];
        add.u32 %r1, %r20, 7; st.local.b32 [mine], %r1;
        mov.u64 %d5, mine; cvta.local.u64 %d5, %d5;
        mov.u64 %d6, tile; cvta.shared.u64 %d6, %d6; mul.wide.u32 %d7, %r20, 4;
        add.u64 %d6, %d6, %d7; st.b32 [%d6], %r20;
        rem.u32 %r2, %r20, 3;
        setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1;
        mov.u64 %d8, %d20; @%p1 mov.u64 %d8, %d5; @%p2 mov.u64 %d8, %d6;
        ld.b32 %r3, [%d8]; st.global.b32 [%d21], %r3;""",
        source, out, shared=512,
    )  # fmt: skip
    lane = np.arange(128)
    np.testing.assert_array_equal(
        out, np.select([lane % 3 == 0, lane % 3 == 1], [lane + 7, lane], source)
    )


def test_shared_memory_of_the_cluster() -> None:
    """Every lane reads from the CTA of rank lane % 4; a few lanes write to the next CTA."""
    out = np.zeros((4, 128), np.uint32)
    clean(
        """mov.u32 %r1, %cluster_ctarank; mad.lo.u32 %r2, %r20, 4, tile;
        mad.lo.u32 %r3, %r1, 1000, %r20; st.shared.b32 [%r2], %r3;
        barrier.cluster.arrive; barrier.cluster.wait;
        and.b32 %r4, %r20, 3; mapa.shared::cluster.u32 %r5, %r2, %r4;
        ld.shared::cluster.b32 %r6, [%r5];
        mul.wide.u32 %d5, %r1, 512; add.u64 %d5, %d21, %d5; st.global.b32 [%d5], %r6;
        barrier.cluster.arrive; barrier.cluster.wait;""",
        noise(128), out, shared=512, ctas=4,
    )  # fmt: skip
    lane = np.arange(128)
    np.testing.assert_array_equal(out, np.broadcast_to(lane % 4 * 1000 + lane, (4, 128)))


def test_lanes_that_store_to_one_place() -> None:
    """One of them wins."""
    out = np.full(128, 999, np.uint32)
    launch("st.global.b32 [%d1], %r20;", noise(128), out)
    assert out[0] < 128
    assert (out[1:] == 999).all()


# ---- what is wrong


TABLE = ".const .align 4 .b32 table[2] = {10, 20};"
SHARED = {"shared": 64, "block": 1}


@pytest.mark.parametrize(
    ("text", "count", "options", "kind", "message", "who"),
    [
        ("ld.global.b32 %r1, [%d20];", 100, {}, "out-of-bounds", "0 bytes past the end",
         "thread 100"),
        ("ld.global.v2.b32 {%r1, %r2}, [%d20];", 9, {"size": 8, "block": 5}, "out-of-bounds",
         "+ 32", "thread 4"),
        ("ld.global.v2.b32 {%r1, %r2}, [%d20];", 256, {}, "misaligned", "multiple of 8",
         "thread 1"),
        ("mov.u32 %r1, tile; ld.shared.b32 %r2, [%r1-4];", 1, SHARED, "out-of-bounds", "4", ""),
        ("mov.u32 %r1, tile; ld.shared.b32 %r2, [%r1+64];", 1, SHARED, "out-of-bounds", "4", ""),
        ("mov.u32 %r1, tile; ld.shared.b32 %r2, [%r1+2];", 1, SHARED, "misaligned", "4", ""),
        (".local .align 4 .b8 mine[16]; mov.u32 %r1, mine; mad.lo.u32 %r1, %r20, 4, %r1;"
         "ld.local.b32 %r2, [%r1];", 1, {"block": 8}, "out-of-bounds", "", "thread 4"),
        # another CTA's window needs shared::cluster
        ("mov.u32 %r1, 0x1000400; ld.shared.b32 %r2, [%r1];", 1, SHARED, "out-of-bounds", "", ""),
        ("mov.u64 %d5, table; st.b32 [%d5], %r20;", 1, {"block": 1, "module": TABLE},
         "out-of-bounds", "table", ""),
    ],
)  # fmt: skip
def test_bad_places(text: str, count: int, options: Any, kind: str, message: str, who: str) -> None:
    (finding,) = launch(text, noise(count), noise(128), **options).findings
    assert finding.kind == kind
    assert message in finding.message
    assert who in finding.who


def test_touching_an_mbarrier() -> None:
    body = "mbarrier.init.shared.b64 [tile], 1; ld.shared.b32 %r1, [tile+4];"
    assert set(kernel.kinds(launch(body, noise(1), noise(1), **SHARED))) == {"barrier-misuse"}
