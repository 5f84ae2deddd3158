"""Attention in bench, with NumPy instead of CuPy, of the kernel and of a peer."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from fa4gen.bench.batches import Batch
from fa4gen.bench.peers import AttentionOperands, LeftOutError, Peer
from fa4gen.bench.read_floor import ReadFloor
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Fa4genError
from fa4gen.verify.rounding import POISON_BITS
from tests.bench.fakes import COMPILED, put_on_numpy, tensor

UNEVEN = Batch("uneven", (3, 1, 2), (5, 40, 2))
EQUAL = Batch("equal", (4, 4), (9, 9))
KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "fp16", "depth": 256, "mask": "causal"}
RAGGED = {"batching": "ragged"}
PAGED = {"keys": "paged", "page_size": 16}


def plan_of(**keys: Any) -> Any:
    return build_plan(load_mapping({**KEYS, **keys}, "probe").config)


class FakeKernel:
    """Causal attention by the tables of the call; ``off_by`` is where a wrong one begins."""

    off_by = 0
    calls: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, plan: Any, cubin: bytes) -> None:
        self._plan = plan

    def prepare(self, query: Any, key: Any, value: Any, *, out: Any, **tables: Any) -> Any:
        self.calls.append(tables)
        assert (out.view(np.uint16) == POISON_BITS["fp16"]).all()
        out[...] = self.output(query, key, value, **tables)
        return lambda: None

    def output(self, query: Any, key: Any, value: Any, **tables: Any) -> Any:
        out = np.zeros((*query.shape[:-1], value.shape[-1]), np.float16)
        starts, ends = tables.get("query_offsets"), tables.get("key_offsets")
        pages, lengths = tables.get("page_table"), tables.get("key_lengths")
        for index in range(len(query) if starts is None else len(starts) - 1):
            rows = index if starts is None else slice(starts[index], starts[index + 1])
            keys, values = (self._keys(x, index, ends, pages) for x in (key, value))
            count = len(keys) if lengths is None else lengths[index]
            sinks = tables.get("sinks")
            out[rows] = attend(query[rows], keys[:count], values[:count], sinks)
        return out

    def _keys(self, x: Any, index: int, ends: Any, pages: Any) -> Any:
        if ends is not None:
            return x[ends[index] + self.off_by : ends[index + 1]]
        if pages is not None:
            return np.concatenate([x[page] for page in pages[index]])[self.off_by :]
        return x[index]


def attend(query: Any, keys: Any, values: Any, sinks: Any) -> Any:
    out = np.zeros((*query.shape[:2], values.shape[2]))
    shared = query.shape[1] // keys.shape[1]
    for row, head in np.ndindex(query.shape[:2]):
        seen = len(keys) - len(query) + row + 1
        if seen <= 0:
            continue
        of_head = head // shared
        q, k = query[row, head].astype(float), keys[:seen, of_head].astype(float)
        weights = np.exp(k @ q / math.sqrt(query.shape[2]))
        total = weights.sum() + (0 if sinks is None else math.exp(sinks[head]))
        out[row, head] = weights @ values[:seen, of_head].astype(float) / total
    return out


class FakePeer(Peer):
    """A peer that gives the kernel's results, by the tables of its own call."""

    name = "same"

    def __init__(self) -> None:
        self.sequences: list[Any] = []

    def prepare(self, plan: Any, operands: AttentionOperands) -> Any:
        sequences = operands.sequences
        self.sequences.append(sequences)
        tables = {} if sequences is None else sequences.tables
        of = operands.query, operands.key, operands.value
        out = FakeKernel(plan, b"").output(*of, **tables)
        return lambda: tensor(out)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    put_on_numpy(monkeypatch)
    monkeypatch.setattr("fa4gen.runtime.attention.AttentionKernel", FakeKernel)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda table: table))
    FakeKernel.calls.clear()

    def timed(batch: Batch, *peers: Any, **keys: Any) -> Any:
        options = BenchOptions((batch,), family="attention")
        [size] = Bench(options, peers).time_kernel(plan_of(**keys), COMPILED, "probe").sizes
        return size

    return timed


@pytest.mark.parametrize(
    ("keys", "batch", "tables"),
    [
        ({}, EQUAL, set()),
        (RAGGED, UNEVEN, {"query_offsets", "key_offsets"}),
        (RAGGED | PAGED, UNEVEN, {"query_offsets", "key_lengths", "page_table"}),
        (PAGED, EQUAL, {"key_lengths", "page_table"}),
        ({"key_lengths": True, "value_depth": 128}, EQUAL, {"key_lengths"}),
    ],
)
def test_a_kernel_and_its_peer_get_the_same_batch(
    bench: Any, keys: dict[str, Any], batch: Batch, tables: set[str]
) -> None:
    peer = FakePeer()
    size = bench(batch, peer, **keys)
    assert size.error < 1e-3
    assert size.distances == {"same": 0}
    assert set(FakeKernel.calls[0]) == tables
    [sequences] = peer.sequences
    assert (sequences is not None) == bool(tables)
    if sequences is not None:
        assert sequences.tables.keys() == tables
        assert (sequences.longest_query, sequences.longest_key) == (
            max(batch.query_rows),
            max(batch.key_rows),
        )
    assert size.size.word == batch.word
    assert size.size.extents["tokens"] == sum(batch.query_rows)


def test_sinks_are_drawn(bench: Any) -> None:
    size = bench(UNEVEN, sinks=True, **RAGGED)
    assert FakeKernel.calls[0]["sinks"].shape == (16,)
    assert size.error < 1e-3


DECODE = {"pack_heads": True}


class FakeFloor(ReadFloor):
    """Notes what is to be read."""

    asked: ClassVar[list[Any]] = []

    def launches(self, arch: str, memory: Any, size: int) -> Any:
        self.asked.append((arch, memory.nbytes, size))
        return {"floor 1x10": lambda: None, "floor 2x4": lambda: None}


def test_a_decode_kernel_is_timed_beside_the_floor(bench: Any) -> None:
    FakeFloor.asked.clear()
    size = bench(Batch("2x50@4/2", (1, 1), (50, 50), (4, 2)), FakePeer(), FakeFloor(), **DECODE)
    assert size.error < 1e-3
    assert size.read_bytes == 2 * 50 * 2 * (256 + 256) * 2
    assert FakeFloor.asked == [("sm_90a", size.read_bytes, size.read_bytes)]
    assert set(size.peers) == {"same", "floor"}
    assert set(size.distances) == {"same"}
    assert bench(EQUAL, FakeFloor()).peers == {}, "products set the speed of other kernels"
    assert len(FakeFloor.asked) == 1


@pytest.mark.parametrize("keys", [RAGGED, RAGGED | PAGED], ids=["ragged", "paged"])
def test_a_kernel_that_begins_at_the_wrong_key_is_not_timed(
    bench: Any, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
) -> None:
    monkeypatch.setattr(FakeKernel, "off_by", 1)
    with pytest.raises(Fa4genError, match="is wrong at uneven"):
        bench(UNEVEN, **keys)


def test_a_dense_kernel_does_not_take_sequences_that_differ(bench: Any) -> None:
    with pytest.raises(ConfigError, match="which needs batching: ragged"):
        bench(UNEVEN)


def test_candidates_are_prepared_on_the_same_inputs(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tuning needs them: one with a wrong output is left out, and peers have their say."""
    del bench
    plan, other, wrong = (replace(plan_of(), vendored_as=name) for name in ("one", "two", "wrong"))

    class Kernel(FakeKernel):
        def prepare(self, *arrays: Any, out: Any, **given: Any) -> Any:
            if self._plan.name == "wrong":  # it writes nothing
                return lambda: None
            return super().prepare(*arrays, out=out, **given)

    class Unable(FakePeer):
        name = "unable"

        def prepare(self, plan: Any, operands: Any) -> Any:
            raise LeftOutError("it has no mask")

    monkeypatch.setattr("fa4gen.runtime.attention.AttentionKernel", Kernel)
    peer = FakePeer()
    timer = Bench(BenchOptions((), family="attention"), (peer, Unable()))
    size = Batch("2x2/1x5x9", (5,) * 2, (9,) * 2, (2, 1))
    kernels = [(one, COMPILED) for one in (plan, wrong, other)]
    ours, peers, left_out = timer.prepare(kernels, size)
    assert list(ours) == ["one", "two"]
    assert list(peers) == ["same"]
    assert peer.sequences == [None]
    assert left_out.keys() == {"wrong", "unable"}
    assert "wrong is wrong at 2x2/1x5x9" in left_out["wrong"]
    assert left_out["unable"] == "it has no mask"
