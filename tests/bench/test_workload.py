from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from fa4gen.bench.batches import Batch
from fa4gen.bench.workload import (
    DEFAULT_SIZES,
    count_flop,
    count_read_bytes,
    default_sizes,
    make_workload,
    parse_sizes,
    size_word,
)
from fa4gen.errors import ConfigError
from fa4gen.masks import Causal, NoMask, SlidingWindow

if TYPE_CHECKING:
    from fa4gen.masks.mask import Mask


def plan(mask: Mask) -> SimpleNamespace:
    return SimpleNamespace(mask=mask)


def test_the_number_of_tokens_stays() -> None:
    for rows in (1024, 2048, 16384):
        workload = make_workload(rows, 128)
        assert workload.batch * workload.rows == 16384
        assert workload.heads == 16
    assert make_workload(32768, 128).batch == 1
    assert make_workload(1024, 96).heads == 21
    assert make_workload(1024, 4096).heads == 1


def test_flop_by_mask() -> None:
    workload = make_workload(2048, 64)
    dense = 4 * 8 * 32 * 2048 * 2048 * 64
    assert count_flop(plan(NoMask()), workload) == dense
    assert count_flop(plan(Causal()), workload) == dense / 2
    window = count_flop(plan(SlidingWindow(0, 0)), workload)
    assert window == dense / 2048, "each query sees its own key"


def test_values_of_another_depth() -> None:
    workload = make_workload(1024, 192, 128)
    assert (workload.batch, workload.rows, workload.heads, workload.key_heads) == (16, 1024, 10, 10)
    assert count_flop(plan(NoMask()), workload) == 2 * 16 * 10 * 1024 * 1024 * (192 + 128)


@pytest.mark.parametrize(
    ("mask", "pairs"),
    [(NoMask(), 15 + 14), (Causal(), 3 + 4 + 5 + 1 + 2), (SlidingWindow(1, 0), 6 + 1 + 2)],
)
def test_pairs_of_a_batch_are_those_that_are_seen(mask: Mask, pairs: int) -> None:
    batch = Batch("uneven", (3, 7), (5, 2))  # of seven rows over two keys the last two see one
    workload = make_workload(batch, 256, 128)
    assert (workload.heads, workload.key_heads, workload.word) == (16, 8, "uneven")
    assert count_flop(plan(mask), workload) == 2 * 16 * (256 + 128) * pairs


def test_a_kernel_is_timed_with_what_it_is_for() -> None:
    def words(*, ragged: bool, kept: bool, splits: bool = False, tile_heads: int = 1) -> list[str]:
        plan = SimpleNamespace(
            has_tile_lengths=ragged or kept,
            key_lengths=kept,
            splits_keys=splits,
            values_in_keys=False,
            tile_heads=tile_heads,
        )
        return [make_workload(size, 128).word for size in default_sizes(plan)]

    assert words(ragged=False, kept=False) == DEFAULT_SIZES.split(",")
    assert words(ragged=True, kept=False) == ["lognormal", "equal", "giant", "dwarfs"]
    assert words(ragged=True, kept=True) == ["2x512x16k", "2x4kx4k"]
    decode = words(ragged=True, kept=True, splits=True)
    short = words(ragged=False, kept=False, tile_heads=8)
    assert all(word.endswith("@64/8") for word in short)
    assert decode == ["1x8k", "1x128k", "16x8k", "64x4k", "8x4x16k"]


def test_a_batch_may_have_heads_of_its_own() -> None:
    [batch] = parse_sizes("3x1k@16/1")
    assert isinstance(batch, Batch)
    workload = make_workload(batch, 128)
    assert (workload.heads, workload.key_heads, workload.rows, workload.batch) == (16, 1, 1, 3)
    assert workload.word == "3x1k@16/1"


@pytest.mark.parametrize(
    ("mask", "keys"),
    [
        (NoMask(), 100 + 100 + 3),
        (Causal(), 100 + 100 + 3),  # the last row sees all
        (SlidingWindow(9, 0), 12 + 12 + 3),  # ten keys of each of three rows
    ],
)
def test_bytes_of_the_keys_that_are_seen_count_once(mask: Mask, keys: int) -> None:
    batch = Batch("few", (3, 3, 3), (100, 100, 3), (16, 2))
    the_plan = SimpleNamespace(mask=mask, kv_element_bytes=2, values_in_keys=False)
    assert count_read_bytes(the_plan, make_workload(batch, 192, 128)) == keys * 2 * (192 + 128) * 2


def test_values_in_keys_are_read_once() -> None:
    latent = SimpleNamespace(
        mask=NoMask(), kv_element_bytes=2, values_in_keys=True, splits_keys=True
    )
    (batch,) = parse_sizes("4x300@128/1")
    workload = make_workload(batch, 576, 512)
    assert count_read_bytes(latent, workload) == 4 * 300 * 576 * 2
    sizes = default_sizes(latent)
    assert all(isinstance(size, Batch) and size.heads and size.heads[1] == 1 for size in sizes)


def test_sizes_are_read() -> None:
    assert parse_sizes(DEFAULT_SIZES) == (1024, 2048, 4096, 8192, 16384)
    assert parse_sizes(" 512, 1K,512") == (512, 1024)
    assert parse_sizes("AUTO") == ()
    batch, rows = parse_sizes("2x512x16K,3")
    assert rows == 3
    assert batch == Batch("2x512x16k", (512, 512), (16384, 16384))
    assert [size_word(rows) for rows in (512, 1024, 1500, 16384)] == ["512", "1k", "1500", "16k"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1k,",
        "0",
        "-1",
        "1.5k",
        "1m",
        "2000k",
        "99999999999",
        "1x0",
        "1x2@8/3",
        "0x1x1",
        "1x1x2m",
        "drawn",
    ],
)
def test_sizes_that_are_none(text) -> None:
    with pytest.raises(ConfigError, match="is not a number of rows from 1 to 1048576"):
        parse_sizes(text)
