"""Memory for lists of tiles: one a stream, kept, larger where needed, none made in a capture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime import tile_counter, tile_list
from fa4gen.runtime.tile_counter import NO_CAPTURE
from fa4gen.runtime.tile_list import LEAST_BYTES, TileLists


@pytest.fixture
def buffers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what was allocated; streams from 100 on are being captured."""
    sizes: list[int] = []
    waits: list[int] = []

    def zeros(size: int, dtype: Any) -> Any:
        del dtype
        sizes.append(size)
        return SimpleNamespace(data=SimpleNamespace(ptr=len(sizes) << 32), nbytes=size)

    stream = SimpleNamespace(synchronize=lambda: waits.append(len(sizes)))
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    cupy = SimpleNamespace(zeros=zeros, uint8="uint8", cuda=cuda)
    monkeypatch.setattr(tile_counter, "load_cupy", lambda: cupy)
    monkeypatch.setattr(
        tile_list, "stream_key", lambda stream: (stream, stream if stream >= 100 else NO_CAPTURE)
    )
    return sizes


def test_a_stream_keeps_its_list_and_has_it_alone(buffers: list[int]) -> None:
    lists = TileLists("the tiles of a ragged batch")
    first, second = lists.address(1, 1000), lists.address(2, 1000)
    assert abs(second - first) >= 1000
    assert first % 32 == 0
    assert lists.address(1, 700) == first
    assert lists.address(2, 1000) == second
    assert buffers == [LEAST_BYTES]


def test_a_longer_list_does_not_take_the_place_of_one_in_use(buffers: list[int]) -> None:
    lists = TileLists("the tiles of a ragged batch")
    short = lists.address(1, 1000)
    long = lists.address(1, 3 * LEAST_BYTES)
    assert lists.address(1, 1000) == long != short
    other = lists.address(2, 1000)
    assert other >= long + 3 * LEAST_BYTES or other + 1000 <= long
    assert len(buffers) == 2


def test_a_capture_finds_room_after_a_call_of_its_size(buffers: list[int]) -> None:
    lists = TileLists("the tiles of a ragged batch")
    with pytest.raises(ArgumentError, match="no memory is left for the tiles"):
        lists.address(100, 64)
    eager = lists.address(1, 5 * LEAST_BYTES)
    captured = lists.address(100, 5 * LEAST_BYTES)
    assert captured >= eager + 5 * LEAST_BYTES
    assert lists.address(100, 64) == captured
    assert len(buffers) == 1
