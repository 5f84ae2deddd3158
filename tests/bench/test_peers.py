from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from fa4gen.bench.peers import (
    AttentionOperands,
    Fa3Peer,
    LeftOutError,
    SdpaPeer,
    Sequences,
    find_peers,
)
from fa4gen.errors import MissingCapabilityError
from fa4gen.masks import Causal, NoMask, SlidingWindow
from fa4gen.masks.mask import Mask
from fa4gen.scores import Score, Softcap

NOTHING = AttentionOperands(None, None, None)
FA3_ARGUMENTS = frozenset(
    {"q", "k", "v", "is_causal", "window_size_left", "window_size_right", "softcap", "num_splits"}
)


@dataclass(frozen=True)
class OtherMask(Mask):
    """A mask or option that no peer supports."""

    name: str = field(default="other", init=False)


def plan(
    mask: Mask | None = None, softcap=None, *, sinks: bool = False, splits: bool = False
) -> SimpleNamespace:
    return SimpleNamespace(
        depth=128,
        mask=mask or NoMask(),
        score=Softcap(softcap) if softcap else Score(),
        sinks=sinks,
        splits_keys=splits,
    )


def test_without_torch_there_are_no_peers_and_a_note(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    peers = find_peers()
    assert peers.found == ()
    assert "PyTorch, which provides them, cannot be imported" in peers.notes[0]


def test_fa3_without_torch_is_an_error(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingCapabilityError, match="--fa3 needs PyTorch"):
        find_peers(Path("fa3.so"))


def called(
    arguments: frozenset[str], the_plan: SimpleNamespace, sequences: Sequences | None = None
) -> dict:
    seen: dict = {}

    def operator(query, key, value, **options):
        seen.update(options)
        return ("out", "lse")

    run = Fa3Peer(operator, arguments).prepare(
        the_plan, AttentionOperands("q", "k", "v", sequences)
    )
    assert run() == "out"
    return seen


def test_fa3_is_asked_for_what_our_kernel_does() -> None:
    assert called(FA3_ARGUMENTS, plan(Causal())) == {"is_causal": True, "num_splits": 1}
    assert called(FA3_ARGUMENTS, plan(SlidingWindow(127, 0))) == {
        "is_causal": False,
        "num_splits": 1,
        "window_size_left": 127,
        "window_size_right": 0,
    }
    capped = called(FA3_ARGUMENTS, plan(softcap=30.0))
    assert capped == {"is_causal": False, "num_splits": 1, "softcap": 30.0}
    assert called(frozenset({"is_causal"}), plan()) == {"is_causal": False}


def test_fa3_chooses_its_splits_where_our_kernel_splits_keys() -> None:
    assert called(FA3_ARGUMENTS, plan(splits=True)) == {"is_causal": False, "num_splits": 0}


SEQUENCE_ARGUMENTS = FA3_ARGUMENTS | {
    "cu_seqlens_q", "cu_seqlens_k", "seqused_k", "max_seqlen_q", "max_seqlen_k", "page_table"
}  # fmt: skip


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (
            {"query_offsets": 1, "key_offsets": 2},
            {"cu_seqlens_q": 1, "max_seqlen_q": 30, "cu_seqlens_k": 2, "max_seqlen_k": 40},
        ),
        (
            {"query_offsets": 1, "key_lengths": 2, "page_table": 3},
            {"cu_seqlens_q": 1, "max_seqlen_q": 30, "seqused_k": 2, "page_table": 3},
        ),
        ({"key_lengths": 2}, {"seqused_k": 2}),
    ],
)
def test_fa3_gets_the_same_lengths_and_pages(tables: dict, expected: dict) -> None:
    sequences = Sequences(30, 40, tables)
    options = called(SEQUENCE_ARGUMENTS, plan(Causal()), sequences)
    assert options == {"is_causal": True, "num_splits": 1, **expected}
    with pytest.raises(LeftOutError, match="this library has no"):
        called(FA3_ARGUMENTS, plan(Causal()), sequences)


def test_no_peer_has_sinks_and_sdpa_no_lengths() -> None:
    sdpa = SdpaPeer("fa2", "FLASH_ATTENTION")
    for peer in (sdpa, Fa3Peer(None, FA3_ARGUMENTS)):
        with pytest.raises(LeftOutError, match="it has no sinks"):
            peer.prepare(plan(sinks=True), NOTHING)
    with pytest.raises(LeftOutError, match="lengths of sequences or pages"):
        sdpa.prepare(plan(), AttentionOperands(None, None, None, Sequences(1, 1)))


def test_the_diagonal_of_sdpa_begins_at_the_first_key() -> None:
    query, key = SimpleNamespace(shape=(1, 2, 1, 64)), SimpleNamespace(shape=(1, 3, 1, 64))
    with pytest.raises(LeftOutError, match="diagonal begins at the first key"):
        SdpaPeer("fa2", "FLASH_ATTENTION").prepare(
            plan(Causal()), AttentionOperands(query, key, key)
        )


def test_what_fa3_cannot_do() -> None:
    with pytest.raises(LeftOutError, match="no sliding window"):
        called(frozenset({"is_causal"}), plan(SlidingWindow(127, 0)))
    with pytest.raises(LeftOutError, match="no softcap"):
        called(frozenset({"is_causal"}), plan(softcap=30.0))


@pytest.mark.parametrize(
    "peer", [SdpaPeer("cudnn", "CUDNN_ATTENTION"), SdpaPeer("fa2", "FLASH_ATTENTION")]
)
def test_what_sdpa_cannot_do(peer) -> None:
    with pytest.raises(LeftOutError, match="no mask sliding_window"):
        peer.prepare(plan(SlidingWindow(127, 0)), NOTHING)
    with pytest.raises(LeftOutError, match="no softcap"):
        peer.prepare(plan(softcap=30.0), NOTHING)


@pytest.mark.parametrize(
    ("peer", "depth"),
    [
        (SdpaPeer("fa2", "FLASH_ATTENTION"), 512),
        (SdpaPeer("efficient", "EFFICIENT_ATTENTION", range(257, 1024)), 128),
    ],
)
def test_peers_are_timed_for_depths_that_suit_them(peer, depth: int) -> None:
    the_plan = plan()
    the_plan.depth = depth
    with pytest.raises(LeftOutError, match=f"not timed at depth {depth}"):
        peer.prepare(the_plan, NOTHING)
