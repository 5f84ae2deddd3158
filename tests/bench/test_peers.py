from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from fa4gen.bench.peers import Fa3Peer, LeftOutError, SdpaPeer, find_peers
from fa4gen.errors import MissingCapabilityError
from fa4gen.masks import Causal, NoMask, SlidingWindow
from fa4gen.masks.mask import Mask
from fa4gen.scores import Score, Softcap

FA3_ARGUMENTS = frozenset(
    {"q", "k", "v", "is_causal", "window_size_left", "window_size_right", "softcap", "num_splits"}
)


@dataclass(frozen=True)
class OtherMask(Mask):
    """A mask or option that no peer supports."""

    name: str = field(default="other", init=False)


def plan(mask: Mask | None = None, softcap=None) -> SimpleNamespace:
    return SimpleNamespace(
        depth=128, mask=mask or NoMask(), score=Softcap(softcap) if softcap else Score()
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


def called(arguments: frozenset[str], the_plan: SimpleNamespace) -> dict:
    seen: dict = {}

    def operator(query, key, value, **options):
        seen.update(options)
        return ("out", "lse")

    run = Fa3Peer(operator, arguments).prepare(the_plan, "q", "k", "v")
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
        peer.prepare(plan(SlidingWindow(127, 0)), None, None, None)
    with pytest.raises(LeftOutError, match="no softcap"):
        peer.prepare(plan(softcap=30.0), None, None, None)


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
        peer.prepare(the_plan, None, None, None)
