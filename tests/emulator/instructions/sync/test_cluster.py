from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator import kernel
from tests.emulator.instructions.copy.copies import clean, reported
from tests.emulator.kernel import SYNC

# the place of this thread's word of this CTA's 128 bytes of p0
OWN = """
    mov.u32 %r22, %ctaid.x; shl.b32 %r23, %r22, 7; shl.b32 %r24, %r21, 2; add.u32 %r23, %r23, %r24;
    cvt.u64.u32 %d5, %r23; add.u64 %d6, %d0, %d5;
"""


def ranks(body: str) -> np.ndarray:
    """Return %r5 after ``body``, of the 32 threads of four CTAs of a cluster."""
    out = np.zeros((4, 32), np.uint32)
    text = f"{OWN}{SYNC}{body} st.global.u32 [%d6], %r5; {SYNC}"
    clean(text, out, size=1024, ctas=4, checks=False)
    return out


def test_the_rank_bits_of_shared_addresses() -> None:
    found = ranks("mapa.shared::cluster.u32 %r5, %r20, 2;")
    assert (found == (2 << 24 | found[0, 0] & 0xFFFFFF)).all()
    own = ranks("mov.u32 %r5, tile;")
    assert np.array_equal(own[:, 0] >> 24, np.arange(4))
    assert len(set((own & 0xFFFFFF).reshape(-1).tolist())) == 1


def test_each_lane_may_name_another_rank() -> None:
    body = """
    and.b32 %r6, %r21, 3;
    mapa.shared::cluster.u32 %r7, %r20, %r6;
    getctarank.shared::cluster.u32 %r5, %r7;"""
    assert np.array_equal(ranks(body), np.broadcast_to(np.arange(32) % 4, (4, 32)))


def test_generic_addresses() -> None:
    body = """
    cvt.u64.u32 %d7, %r20; cvta.shared.u64 %d7, %d7;
    mapa.u64 %d8, %d7, 3;
    getctarank.u64 %r5, %d8;"""
    assert (ranks(body) == 3).all()


def test_64_bit_shared_addresses() -> None:
    body = """
    cvt.u64.u32 %d7, %r20;
    mapa.shared::cluster.u64 %d8, %d7, 1;
    getctarank.shared::cluster.u64 %r5, %d8;"""
    assert (ranks(body) == 1).all()


@pytest.mark.parametrize(
    "text",
    [
        "mapa.shared::cluster.u32 %r5, %r20, 2; st.shared::cluster.u32 [%r5], 0;",
        "mapa.shared::cluster.u32 %r5, %r20, -1; mbarrier.arrive.shared::cluster.b64 _, [%r5];",
        "cvt.u64.u32 %d7, %r20; cvta.shared.u64 %d7, %d7; mapa.u64 %d8, %d7, 2; ld.u32 %r5, [%d8];",
        "mov.u64 %d7, 64; getctarank.u64 %r5, %d7;",
    ],
)
def test_outside_the_cluster(text: str) -> None:
    assert reported(text, np.zeros(4), size=1024, ctas=2) == ["out-of-bounds"]


def test_addresses_beyond_the_cluster_may_be_formed() -> None:
    body = """
    mapa.shared::cluster.u32 %r7, %r20, %r21;
    setp.ge.u32 %p1, %r21, 4;
    @%p1 mov.u32 %r7, %r20;
    getctarank.shared::cluster.u32 %r5, %r7;"""
    own = np.broadcast_to(np.arange(4)[:, None], (4, 32))
    assert np.array_equal(ranks(body), np.where(np.arange(32) < 4, np.arange(32), own))


MEET = "barrier.cluster.arrive{}.aligned; barrier.cluster.wait.aligned;"
FENCE = "fence.mbarrier_init.release.cluster;"
EARLY = ["barrier-misuse"]  # there is no mbarrier yet


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("order", ["release", "relaxed"])
@pytest.mark.parametrize(("fence", "meet", "found"), [
    (FENCE, MEET.format(""), [[]]),
    (FENCE, MEET.format(".relaxed"), [[]]),
    ("", MEET.format(""), [[]]),
    ("", MEET.format(".relaxed"), [["race"]]),
    (FENCE, "bar.sync 0;", [["race"], EARLY]),
    ("", "bar.sync 0;", [["race"], EARLY]),
])  # fmt: skip
def test_an_arrival_at_a_peer_comes_after_its_initialisation(
    fence: str, meet: str, found: list[list[str]], order: str, schedule: str
) -> None:
    """In every schedule: in some the peer is late, in others it happens to be done."""
    body = f"""
    mov.u32 %r20, tile; mov.u32 %r21, %tid.x; mov.u32 %r22, %cluster_ctarank;
    xor.b32 %r22, %r22, 1;
    setp.eq.u32 %p1, %r21, 0;
    @!%p1 bra MADE;
    mbarrier.init.shared.b64 [%r20], 1;
    {fence}
MADE:
    {meet}
    @!%p1 bra OVER;
    mapa.shared::cluster.u32 %r23, %r20, %r22;
    mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [%r23];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r20], 0;
    @!%p2 bra WAIT;
OVER:
    {MEET.format("")}
"""
    assert kernel.reported(body, np.zeros(1), ctas=2, shared=8, schedule=schedule) in found


def test_dependent_grids_change_nothing() -> None:
    body = "griddepcontrol.wait; griddepcontrol.launch_dependents;"
    clean(body, np.zeros(4))
