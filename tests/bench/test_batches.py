from __future__ import annotations

import pytest

from fa4gen.bench.batches import Batch, named_batches, parse_batch, query_heads


def test_lengths_that_are_drawn_are_the_same_every_time() -> None:
    drawn = named_batches()["lognormal"].query_rows
    assert drawn == named_batches()["lognormal"].query_rows
    assert drawn[:3] == (1504, 146, 619)
    assert 33_000 <= sum(drawn) <= 36_000
    assert all(20 <= rows <= 8192 for rows in drawn)


@pytest.mark.parametrize(
    ("name", "sequences", "tokens"),
    [("equal", 16, 32768), ("giant", 401, 29584), ("dwarfs", 1024, 49152)],
)
def test_batches_by_name(name: str, sequences: int, tokens: int) -> None:
    batch = parse_batch(f" {name.upper()} ")
    assert batch is not None
    assert batch.key_rows == batch.query_rows
    assert (batch.word, len(batch.query_rows), sum(batch.query_rows)) == (name, sequences, tokens)


def test_batches_by_numbers() -> None:
    assert parse_batch("3x1Kx20") == Batch("3x1kx20", (1024,) * 3, (20,) * 3)
    assert parse_batch("2x1k") == Batch("2x1k", (1, 1), (1024, 1024))
    assert parse_batch("2x3x5@16/1") == Batch("2x3x5@16/1", (3, 3), (5, 5), (16, 1))
    assert parse_batch("1x5@64/8") == Batch("1x5@64/8", (1,), (5,), (64, 8))
    for heads in ("16", "16/0", "16/3", "1/2", "0/0", "2048/8", "16/8/4", ""):
        assert parse_batch(f"1x2x3@{heads}") is None
    for word in ("", "1k", "1k@8/8", "1x", "1x2x3x4", "0x1x1", "1x0x1", "1x1x0", "1x0"):
        assert parse_batch(word) is None
    for word in ("65537x1x1", "1x1x2000k", "1x2000k"):
        assert parse_batch(word) is None


def test_query_heads_are_a_multiple_of_the_key_heads() -> None:
    assert [query_heads(depth) for depth in (64, 96, 128, 192, 256, 512)] == [64, 40, 32, 16, 16, 8]
