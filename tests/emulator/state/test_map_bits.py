"""Tensor maps bit by bit, against what a driver and a GPU made (``driver_maps.json``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fa4gen.emulator.recorder.driver_maps import encode
from fa4gen.emulator.state.map_bits import MAP_BYTES, MapError, MapFields, pack, replace, unpack

RECORDED = json.loads((Path(__file__).parent / "driver_maps.json").read_text())
PTX_NUMBER = {8: 9, 9: 10, 10: 8}  # the driver and PTX count f64, bf16 and f32.ftz differently
SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)


def made() -> list[tuple[dict[str, Any], bytes]]:
    keys = RECORDED["columns"][:-1]
    return [
        (dict(zip(keys, row, strict=False)), bytes.fromhex(row[-1]).ljust(MAP_BYTES, b"\0"))
        for row in RECORDED["maps"]
        if isinstance(row[-1], str)
    ]


def fields(given: dict[str, Any]) -> MapFields:
    return MapFields(
        given["address"],
        PTX_NUMBER.get(given["data_type"], given["data_type"]),
        *(tuple(given[key]) for key in ("dims", "strides", "box", "steps")),
        interleave=given["interleave"],
        swizzle=given["swizzle"],
        fill=given["fill"],
        l2=given["l2"],
    )


def test_every_recorded_map_is_read_and_written_to_the_bit() -> None:
    maps = made()
    assert len(maps) > 250
    for given, raw in maps:
        assert unpack(raw) == fields(given)
        assert pack(fields(given), 8 * SIZES[given["data_type"]]) == raw


def test_the_driver_function_makes_and_refuses_what_the_driver_does() -> None:
    for row in RECORDED["maps"]:
        given = dict(zip(RECORDED["columns"][:-1], row, strict=False))
        if isinstance(row[-1], str):
            raw = encode(**given, sm=90)
            assert raw.hex().startswith(row[-1])
        else:
            with pytest.raises(MapError):
                encode(**given, sm=90)


def test_every_field_is_replaced_as_the_gpu_does() -> None:
    for field, axis, value, ones, changed in RECORDED["replace"]:
        words = np.full(MAP_BYTES // 4, 0xFFFFFFFF * ones, np.uint32)
        expected = words.copy()
        for index, raw in changed.items():
            expected[int(index)] = np.frombuffer(bytes.fromhex(raw), np.uint32)[0]
        # the fixture holds words as their bytes in memory
        replace(words, field, axis, value)
        assert words.tolist() == expected.tolist(), (field, axis, value)


def test_im2col_maps_of_a_driver_are_read_where_the_order_of_corners_does_not_matter() -> None:
    *plain, several = (bytes.fromhex(raw) for raw in RECORDED["im2col"])
    found = [unpack(raw) for raw in plain]
    assert [one.box for one in found] == [(64, 64), (64, 256), (16, 1)]
    assert all((one.lower, one.upper, one.dims) == ((-1,), (-1,), (256, 64, 32)) for one in found)
    for one, raw in zip(found, plain, strict=True):
        assert pack(one, 16)[:124] == raw[:124]
    with pytest.raises(MapError, match="order is not known"):
        unpack(several)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [((-32768,), (32767,)), ((-128, 127), (5, -1)), ((-16, 3, 15), (-1, -2, 0))],
)
def test_corners_of_our_own_im2col_maps(lower, upper) -> None:
    rank = len(lower) + 2
    whole = MapFields(
        1 << 40, 6, (64,) * rank, (1 << 20,) * (rank - 1), (32, 1024), (1,) * rank,
        lower=lower, upper=upper,
    )  # fmt: skip
    assert unpack(pack(whole, 16)) == whole


@pytest.mark.parametrize(
    ("word", "bit"),
    [(2, 2), (2, 3), (2, 23), (2, 31), (7, 16), (13, 15), (13, 23), (15, 0)],
)
def test_bits_that_nobody_knows_are_refused(word: int, bit: int) -> None:
    words = np.frombuffer(made()[0][1], np.uint32).copy()
    words[word] ^= np.uint32(1 << bit)
    with pytest.raises(MapError, match=f"of word {word} are set"):
        unpack(words.tobytes())


def test_what_cute_dsl_writes_is_read() -> None:
    """Two flags of its own, and whatever was in the memory of the second 64 bytes."""
    given, raw = made()[0]
    words = np.frombuffer(raw, np.uint32).copy()
    words[2] |= np.uint32(1 << 1 | 1 << 21)
    words[16:] = np.arange(16, dtype=np.uint32) * 0x01234567
    assert unpack(words.tobytes()) == fields(given)


@pytest.mark.parametrize(
    ("swizzle", "span", "atomicity"), [(4, 3, 1), (5, 3, 2), (6, 3, 3), (3, 3, 0)]
)
def test_swizzles_with_other_atoms_are_those_of_blackwell(swizzle, span, atomicity) -> None:
    given = made()[0][0] | {"swizzle": swizzle, "box": [8] * len(made()[0][0]["dims"])}
    given |= {"data_type": 6, "interleave": 0, "fill": 0, "steps": [1] * len(given["dims"])}
    found = unpack(encode(**given, sm=100))
    assert (found.swizzle, found.atomicity) == (span, atomicity)
    if atomicity:
        with pytest.raises(MapError, match="does not exist on sm_90"):
            encode(**given, sm=90)


def test_a_larger_swizzle_is_refused() -> None:
    words = np.frombuffer(made()[0][1], np.uint32).copy()
    replace(words, "swizzle_mode", 0, 4)
    with pytest.raises(MapError, match="beyond 128 bytes"):
        unpack(words.tobytes())
