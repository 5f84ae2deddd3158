from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.designs.common.model import SharedRegion
from fa4gen.render.memory_picture import bytes_per_line, kibibytes, shared_memory_picture

LIMIT = 232448


def region(name: str, offset: int, size: int, slots: int = 1) -> SharedRegion:
    return SharedRegion(name, offset, size, 1, slots, "")


@pytest.mark.parametrize(
    ("count", "text"), [(8, "8 B"), (1024, "1 KiB"), (23040, "22.5 KiB"), (LIMIT, "227 KiB")]
)
def test_kibibytes(count: int, text: str) -> None:
    assert kibibytes(count) == text


def test_the_drawing_is_to_scale() -> None:
    assert bytes_per_line(LIMIT) == 8192
    lines = shared_memory_picture([region("key", 0, 65536, 2), region("flag", 65536, 16)], LIMIT)
    labels = {line.split()[2].rstrip(":"): i for i, line in enumerate(lines[:-1]) if "─" in line}
    assert labels["flag"] - labels["key"] == 8
    assert labels["free"] - labels["flag"] == 1
    assert len(lines) - 1 - labels["free"] == round((LIMIT - 65552) / 8192)
    assert re.search(r"32768 ├╌ \[1\] ", lines[4])
    assert lines[0].lstrip().startswith("0 ┌─ key: 2 x 32 KiB ")
    assert lines[-1].lstrip().startswith("232448 └")


def test_a_gap_shows() -> None:
    lines = shared_memory_picture([region("a", 0, 8), region("b", 1024, 8)], LIMIT)
    assert [line.split()[2] for line in lines[:3]] == ["a:", "(gap)", "b:"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60000), st.integers(1, 20)), min_size=1, max_size=8))
def test_every_region_is_there_and_all_lines_are_as_wide(parts: list[tuple[int, int]]) -> None:
    regions, offset = [], 0
    for i, (size, slots) in enumerate(parts):
        regions.append(region(f"r{i}", offset, size * slots, slots))
        offset += size * slots
    lines = shared_memory_picture(regions, max(LIMIT, offset))
    assert len({len(line) for line in lines}) == 1
    for r in regions:
        assert any(line.startswith(f"{r.offset:>9} ") and f" {r.name}: " in line for line in lines)
