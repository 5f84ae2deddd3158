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
    for word in ("", "1k", "1x2", "1x2x3x4", "0x1x1", "1x0x1", "1x1x0", "65537x1x1", "1x1x2000k"):
        assert parse_batch(word) is None


def test_query_heads_are_a_multiple_of_the_key_heads() -> None:
    assert [query_heads(depth) for depth in (64, 96, 128, 192, 256, 512)] == [64, 40, 32, 16, 16, 8]
