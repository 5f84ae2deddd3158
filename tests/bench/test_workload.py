from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from fa4gen.bench.workload import (
    DEFAULT_SIZES,
    count_flop,
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
        assert workload.elements == 16384 * 2048
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
    assert workload.shapes == ((16, 1024, 10, 192), (16, 1024, 10, 192), (16, 1024, 10, 128))
    assert workload.elements == 16 * 1024 * 10 * 192
    assert count_flop(plan(NoMask()), workload) == 2 * 16 * 10 * 1024 * 1024 * (192 + 128)


def test_sizes_are_read() -> None:
    assert parse_sizes(DEFAULT_SIZES) == (1024, 2048, 4096, 8192, 16384)
    assert parse_sizes(" 512, 1K,512") == (512, 1024)
    assert [size_word(rows) for rows in (512, 1024, 1500, 16384)] == ["512", "1k", "1500", "16k"]


@pytest.mark.parametrize("text", ["", "1k,", "0", "-1", "1.5k", "1m", "2000k", "99999999999"])
def test_sizes_that_are_none(text) -> None:
    with pytest.raises(ConfigError, match="is not a number of rows from 1 to 1048576"):
        parse_sizes(text)
