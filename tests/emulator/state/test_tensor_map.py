from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import LaunchError, TensorMap
from fa4gen.emulator.recorder.driver_maps import encode
from fa4gen.emulator.state.decoded_map import decode
from fa4gen.emulator.state.map_bits import (
    ARRAY_FIELDS,
    FIELDS,
    MAP_BYTES,
    MapError,
    replace,
    unpack,
)

BASE = 0x10_0000_0000


def made(shape=(8, 64), dtype=np.uint16, box=(4, 64), **options) -> TensorMap:
    return TensorMap(np.zeros(shape, dtype), box, **options)


def six(box=(4, 128), **options) -> TensorMap:
    """Elements of 6 bits, 256 in each of eight rows."""
    return TensorMap(np.zeros((8, 192), np.uint8), box, **{"packed": "16u6_align16b", **options})


def images(box=(8, 64), im2col=((0, 0), (0, 0)), **options) -> TensorMap:
    """An im2col map of two images of 5 by 7 pixels."""
    return TensorMap(np.zeros((2, 5, 7, 64), np.uint16), box, im2col=im2col, **options)


@pytest.mark.parametrize(
    ("packed", "bits", "line", "name"),
    [
        ("16u4_align8b", 4, 64, "b4x16"),
        ("16u4_align16b", 4, 128, "b4x16_p64"),
        ("16u6_align16b", 6, 128, "b6x16_p32"),
    ],
)
def test_packed_elements_are_counted_one_by_one(packed, bits, line, name) -> None:
    """In arguments and in the bits of the map; what was decoded counts bytes."""
    made_one = made((8, 32 * bits), np.uint8, (4, 128), packed=packed)
    assert (made_one.dims, made_one.box) == ((256, 8), (128, 4))
    assert made_one.strides == (1, 32 * bits)
    raw = made_one.encode(BASE)
    fields = unpack(raw)
    assert (fields.dims, fields.box, fields.element) == ((256, 8), (128, 4), made_one.element)
    found = decode(raw)
    assert (found.element.name, found.dims, found.box) == (
        name, (32 * bits, 8), (16 * bits, 4)
    )  # fmt: skip
    assert (found.moved_bytes, found.inner_bytes) == (16 * bits, line)


@pytest.mark.parametrize(("data_type", "packed"), [(13, 0), (14, 1), (15, 2)])
def test_the_driver_function_makes_the_same_packed_maps(data_type, packed) -> None:
    name = ("16u4_align8b", "16u4_align16b", "16u6_align16b")[packed]
    rows = np.zeros((8, 192 if packed == 2 else 128), np.uint8)
    given = {
        "data_type": data_type, "address": BASE, "dims": (256, 8), "strides": rows.strides[:1],
        "box": (128, 4), "steps": (1, 1), "interleave": 0, "swizzle": 3, "l2": 0, "fill": 0,
    }  # fmt: skip
    made_one = TensorMap(rows, (4, 128), swizzle=128, packed=name)
    assert encode(**given, sm=100) == made_one.encode(BASE)
    with pytest.raises(MapError, match="does not exist on sm_90"):
        encode(**given, sm=90)
    for wrong in ({"fill": 1}, {"dims": (255, 8)}, {"box": (16, 4)}, {"address": BASE + 8}):
        with pytest.raises(MapError):
            encode(**given | wrong, sm=100)


def test_a_map_comes_back_as_it_was_encoded() -> None:
    array = np.zeros((3, 5, 64), ml_dtypes.bfloat16)[:, :, :48]
    tensor_map = TensorMap(array, (2, 4, 32), swizzle=64, element_strides=(1, 3, 1), fill="nan")
    raw = tensor_map.encode(BASE + 16)
    assert len(raw) == MAP_BYTES
    found = decode(raw)
    assert found.address == BASE + 16
    assert found.element.name == "bf16"
    assert found.dims == (48, 5, 3)
    assert found.strides == (2, 128, 640)
    assert found.box == (32, 4, 2)
    assert found.counts == (32, 2, 2)
    assert (found.span, found.atom, found.nan_fill) == (64, 16, True)
    assert (found.inner_bytes, found.pitch) == (64, 64)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.uint8, "u8"),
        (ml_dtypes.float8_e4m3fn, "u8"),
        (np.uint16, "u16"),
        (np.int32, "s32"),
        (np.uint64, "u64"),
        (np.int64, "s64"),
        (np.float16, "f16"),
        (np.float32, "f32"),
        (np.float64, "f64"),
        (ml_dtypes.bfloat16, "bf16"),
    ],
)
def test_every_element_type_has_its_number(dtype, name: str) -> None:
    found = decode(made((16, 16), dtype, (1, 16)).encode(BASE))
    assert found.element.name == name
    assert found.element.size == np.dtype(dtype).itemsize


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made(box=(4, 60)), "no multiple of 16"),
        (lambda: made(box=(4, 72), shape=(8, 128), swizzle=128), "more than the swizzle"),
        (lambda: made(box=(257, 64), shape=(300, 64)), "257 elements"),
        (lambda: made(box=(0, 64)), "0 elements"),
        (lambda: made(box=(64,)), "1 entries for 2"),
        (lambda: made(swizzle=48), "swizzle is"),
        (lambda: made(swizzle=64, box=(4, 32), atom=32), "atoms of 32"),
        (lambda: made(element_strides=(9, 1)), "element stride 9"),
        (lambda: made(element_strides=(0, 1)), "element stride 0"),
        (lambda: made(shape=(8, 60), box=(4, 32)), "stride of dimension 1 is 120"),
        (lambda: made(fill="nan"), "NaN fill needs"),
        (lambda: made(fill="ones"), "fill is"),
        (lambda: made(dtype=np.complex128), "no element type"),
        (lambda: made(interleave="16B"), "at least three"),
        (lambda: made((2, 8, 64), box=(1, 4, 64), interleave="32B"), "needs a swizzle of 32"),
        (lambda: made((2, 8, 64), box=(1, 4, 64), interleave="16B"), "not modelled"),
        (lambda: made((2, 2, 2, 2, 2, 8), box=(1, 1, 1, 1, 1, 8)), "6 dimensions"),
        (lambda: made((0, 64)), "0 elements"),
        (lambda: TensorMap(np.zeros((8, 64), np.uint16).T, (4, 8)), "not contiguous"),
        (lambda: TensorMap(np.zeros((8, 64), np.uint16)[::-1], (4, 64)), "stride of dimension 1"),
        (lambda: made().encode(BASE + 8), "not a multiple of 16"),
        (lambda: six().encode(BASE + 16), "not a multiple of 32"),
        (lambda: six(box=(4, 64)), "64 elements of b6x16_p32"),
        (lambda: six(swizzle=64), "does not go with a swizzle of 64"),
        (lambda: six(shape=(8, 192), strides=(192, 1)), "no multiple of 128"),
        (lambda: six(strides=(208, 1)), "stride of dimension 1 is 208"),
        (lambda: six(fill="nan"), "NaN fill needs"),
        (lambda: six(packed="16u4_align16b", swizzle=128, atom=64), "in atoms of 64"),
        (lambda: six(packed="16u5"), "packed is one of"),
        (lambda: images(box=(8, 300)), "up to (256, 1024) are possible"),
        (lambda: images(box=(8, 1, 64)), "3 entries"),
        (lambda: images(im2col=((0,), (0,))), "two less of each corner"),
        (lambda: images(im2col=((0, 200), (0, 0))), "corners 200 and 0 in dimension 1"),
        (lambda: images(im2col=((0, 3), (0, -4))), "the bounding box is empty"),
        (lambda: made(packed="16u4_align8b"), "over uint16"),
        (lambda: six(packed="16u4_align8b", box=(4, 16)), "no multiple of 16"),
        (
            lambda: TensorMap(np.zeros(8, np.uint8), (1, 16), shape=(2, 16), strides=(1 << 40, 1)),
            "below 2^40",
        ),
    ],
)
def test_what_the_driver_refuses_is_refused(make, message: str) -> None:
    with pytest.raises(LaunchError, match="tensor map: ") as refusal:
        make()
    assert message in str(refusal.value)


def test_an_extent_of_one_may_have_any_stride() -> None:
    array = np.zeros((8, 1, 64), np.uint16)
    odd = np.lib.stride_tricks.as_strided(array, strides=(128, 6, 2))
    assert decode(TensorMap(odd, (4, 1, 64)).encode(BASE)).dims == (64, 1, 8)


def test_the_memory_may_be_seen_otherwise_than_as_the_array() -> None:
    array = np.zeros(4096, np.uint8)
    plain = decode(TensorMap(array, (4, 16), dtype=np.float32, shape=(8, 32)).encode(BASE))
    assert (plain.element.name, plain.dims, plain.strides) == ("f32", (32, 8), (4, 128))
    strided = TensorMap(array, (4, 16), dtype=np.float32, shape=(8, 32), strides=(256, 4))
    assert decode(strided.encode(BASE)).strides == (4, 256)


def test_zeros_are_a_map_once_every_field_is_replaced() -> None:
    values = {
        "global_address": [BASE],
        "rank": [1],
        "elemtype": [6],
        "interleave_layout": [0],
        "swizzle_mode": [3],
        "swizzle_atomicity": [0],
        "fill_mode": [1],
        "global_stride": [256],
        "global_dim": [100, 7],
        "box_dim": [64, 4],
        "element_stride": [1, 1],
    }
    assert set(values) == set(FIELDS)
    words = np.zeros(MAP_BYTES // 4, np.uint32)
    for field, entries in values.items():
        assert len(entries) == 1 or field in ARRAY_FIELDS
        for index, value in enumerate(entries):
            replace(words, field, index, value)
    found = decode(words.tobytes())
    assert (found.dims, found.box, found.steps) == ((100, 7), (64, 4), (1, 1))
    assert (found.strides, found.span, found.nan_fill) == ((2, 256), 128, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", 5),
        ("elemtype", 8),
        ("elemtype", 12),
        ("elemtype", 14),
        ("elemtype", 15),
        ("swizzle_mode", 4),
        ("swizzle_atomicity", 2),
        ("swizzle_atomicity", 5),
        ("interleave_layout", 3),
    ],
)
def test_unknown_codes_are_errors(field: str, value: int) -> None:
    words = np.frombuffer(made().encode(BASE), np.uint32).copy()
    replace(words, field, 0, value)
    with pytest.raises(MapError):
        decode(words.tobytes())


def test_zeros_alone_are_no_map() -> None:
    with pytest.raises(MapError):
        decode(bytes(MAP_BYTES))
