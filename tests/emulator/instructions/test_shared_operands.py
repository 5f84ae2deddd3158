"""Instructions of shared state spaces whose operand is a generic address in a 64-bit register."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.instructions.copy.copies import WAIT, clean, expect, first, reported
from tests.emulator.instructions.tcgen05.kernels import fill, launch, program, save
from tests.emulator.kernel import SYNC

# %d10 and %d11: generic addresses of the tile and of the barrier
GENERIC = """
    cvt.u64.u32 %d10, %r20; cvta.shared.u64 %d10, %d10;
    mov.u32 %r22, bar; cvt.u64.u32 %d11, %r22; cvta.shared.u64 %d11, %d11;
    mul.wide.u32 %d5, %r21, 4; add.u64 %d6, %d0, %d5; add.u64 %d12, %d10, %d5;
"""
OWN = "mov.u32 %r23, %ctaid.x; mul.wide.u32 %d7, %r23, 128; add.u64 %d0, %d0, %d7;"
LOADED = WAIT + "ld.shared.u32 %r5, [%d12];"
BULK = "mbarrier::complete_tx::bytes"
WORDS = np.arange(100, 164, dtype=np.uint32).reshape(2, 32)


def result(body: str) -> np.ndarray:
    """Return %r5 after ``body``, of the threads of two CTAs of a cluster; %d1 is WORDS[rank]."""
    text = f"{OWN} add.u64 %d1, %d1, %d7; {GENERIC} {SYNC} {body} st.global.u32 [%d6], %r5; {SYNC}"
    out = np.zeros((2, 32), np.uint32)
    clean(text, out, WORDS.copy(), size=1024, ctas=2)
    return out


OWN_WORD = "add.u64 %d13, %d1, %d5; ld.global.u32 %r5, [%d13];"


@pytest.mark.parametrize(
    "body",
    [
        f"{OWN_WORD} st.shared.u32 [%d12], %r5; mov.u32 %r5, 0; ld.shared.u32 %r5, [%d12];",
        f"{OWN_WORD} st.shared::cta.u32 [%d12+128], %r5; ld.shared::cluster.u32 %r5, [%d12+128];",
        f"{OWN_WORD} st.shared.u32 [%d12], 0; atom.shared.add.u32 %r6, [%d12], %r5;"
        "ld.shared.u32 %r5, [%d12];",
        "add.u64 %d13, %d1, %d5; cp.async.ca.shared.global [%d12], [%d13], 4;"
        "cp.async.wait_all; ld.shared.u32 %r5, [%d12];",
        first(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%d11], 128;"
              f"cp.async.bulk.shared::cluster.global.{BULK} [%d10], [%d1], 128, [%d11];")
        + LOADED.replace("[bar]", "[%d11]"),
        first(f"{expect(128)} cp.async.bulk.shared::cta.global.{BULK} [%d10], [%d1], 128, [%d11];")
        + LOADED,
        f"{OWN_WORD} st.shared.u32 [%d12], %r5; fence.proxy.async.shared::cta; bar.warp.sync -1;"
        + first("cp.async.bulk.global.shared::cta.bulk_group [%d0], [%d10], 128;"
                "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;")
        + "bar.warp.sync -1; ld.global.u32 %r5, [%d6];",
    ],
    ids=["ld st", "cluster", "atom", "cp.async", "bulk", "bulk cta", "bulk store"],
)  # fmt: skip
def test_the_lower_half_is_the_shared_address(body: str) -> None:
    assert np.array_equal(result(body), WORDS)


def test_the_address_of_a_peer() -> None:
    body = f"""{OWN_WORD}
    st.shared.u32 [%d12], %r5; {SYNC}
    xor.b32 %r24, %r23, 1; mapa.u64 %d13, %d12, %r24; ld.shared::cluster.u32 %r5, [%d13]; {SYNC}"""
    assert np.array_equal(result(body), WORDS[::-1])
    body = "mapa.u64 %d13, %d12, 1; getctarank.shared::cluster.u64 %r5, %d13;"
    assert (result(body) == 1).all()


def test_offsets_wrap_like_32_bit_addresses() -> None:
    body = f"""{OWN_WORD}
    st.shared.u32 [%d12], %r5;
    and.b64 %d13, %d12, 0xffffffff; sub.u64 %d13, %d13, 64; add.u64 %d13, %d13, 0x500000000;
    ld.shared.u32 %r5, [%d13+64];"""
    assert np.array_equal(result(body), WORDS)


def test_a_mbarrier_that_is_not_in_shared_memory_is_still_found() -> None:
    assert reported("mbarrier.arrive.b64 _, [%d0];", np.zeros(4, np.uint32)) == ["out-of-bounds"]


def test_an_allocation_of_tensor_memory() -> None:
    body = f"""
    mov.u32 %r50, tile; cvt.u64.u32 %d10, %r50; cvta.shared.u64 %d10, %d10;
    @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%d10+EXTRA], 32;
    bar.sync 0; ld.shared.b32 %r60, [%d10+EXTRA];
    @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r60, 32;
    {fill(1)}
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%d10+BARRIER];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%d10+BARRIER], 0;
    @!%p4 bra WAIT;
    {save(1, 60)}
    """
    out = np.zeros(128, np.uint32)
    report = launch(program(body), np.zeros(1, np.uint32), out)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert (out == 352).all()
