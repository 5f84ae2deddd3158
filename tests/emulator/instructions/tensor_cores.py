"""Where the elements of matrix products are: bytes of shared memory, registers of lanes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
    "f64": np.float64, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip


def place(
    mn: int, k: int, *, k_major: bool, leading: int, stride: int, span: int, size: int
) -> int:
    """The byte of an element from the start of its operand, one formula per layout, unswizzled."""
    chunk = 16 // size
    if k_major and span:
        return mn % 8 * span + mn // 8 * stride + k * size
    if k_major:
        return mn % 8 * 16 + mn // 8 * stride + k % chunk * size + k // chunk * leading
    if span:
        per = span // size
        return mn % per * size + mn // per * leading + k % 8 * span + k // 8 * stride
    return mn % chunk * size + mn // chunk * stride + k % 8 * 16 + k // 8 * leading


def swizzled(at: int, span: int) -> int:
    """Where a byte of shared memory goes, in lines of ``span`` bytes; 0: where it is."""
    return at ^ ((at >> 7) & (span // 16 - 1)) << 4 if span else at


def lay_down(matrix: np.ndarray, buffer: np.ndarray, offset: int, **layout: Any) -> None:
    """Write a matrix (mn, k) into bytes, the first of which is aligned to 1024."""
    size = matrix.itemsize
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, size)
    for mn, k in np.ndindex(*matrix.shape):
        at = swizzled(offset + place(mn, k, size=size, **layout), layout["span"])
        buffer[at : at + size] = raw[mn, k]


def a_place(thread: int, index: int, rows: int, per: int) -> tuple[int, int]:
    """Row and column of element ``index`` of a thread's part of A; ``per`` to a register.

    Each warp has ``rows`` rows: 16, or the 8 of B transposed.
    """
    register, part = divmod(index, per)
    groups = rows // 8
    row = thread // 32 * rows + thread % 32 // 4 + 8 * (register % groups)
    return row, thread % 4 * per + part + 4 * per * (register // groups)


def c_place(thread: int, index: int) -> tuple[int, int]:
    """Row and column of an element of C or D; each warp has 16 rows."""
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index >> 1 & 1)
    return row, 8 * (index >> 2) + 2 * (thread % 4) + (index & 1)


def operand_registers(matrix: np.ndarray, rows: int = 16, threads: int = 32) -> np.ndarray:
    """The registers of each thread that hold A, or B transposed: (threads, count)."""
    size = matrix.itemsize
    word = np.dtype(np.uint64 if size == 8 else np.uint32)
    per = word.itemsize // size
    elements = matrix.size // threads
    places = [[a_place(t, i, rows, per) for i in range(elements)] for t in range(threads)]
    held = matrix[tuple(np.moveaxis(np.array(places), -1, 0))]
    return np.ascontiguousarray(held).view(word)


def accumulators(matrix: np.ndarray) -> np.ndarray:
    """C or D as threads hold it: (threads, elements)."""
    threads = max(32, 2 * len(matrix))  # a warp may have half of the rows
    elements = matrix.size // threads
    places = [[c_place(t, i) for i in range(elements)] for t in range(threads)]
    return np.ascontiguousarray(matrix[tuple(np.moveaxis(np.array(places), -1, 0))])


def sparse_places(
    rng: Any, rows: int, k: int, *, pairs: bool = True, ordered: bool = True, unit: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Where the elements of each row are (``unit`` of them together), and codes of its chunks.

    Two of four, in any order unless ``ordered``; or, without ``pairs``, one of two.
    """
    chunk = 4 if pairs else 2
    places = np.zeros((rows, k // unit // 2), int)
    codes = np.zeros((rows, k // unit // chunk), int)
    for row, number in np.ndindex(*codes.shape):
        if pairs:
            two = rng.choice(4, 2, replace=False)
            if ordered:
                two.sort()
            places[row, 2 * number : 2 * number + 2] = 4 * number + two
            codes[row, number] = two[0] | two[1] << 2
        else:
            second = rng.integers(2)
            places[row, number] = 2 * number + second
            codes[row, number] = 0b1110 if second else 0b0100
    return places, codes


def dense(stored: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A with its zeros; several elements may stand together at a place."""
    rows, count = places.shape
    width = stored.shape[1] // count
    result = np.zeros((rows, 2 * count, width))
    for row, number in np.ndindex(rows, count):
        result[row, places[row, number]] = stored[row, number * width : (number + 1) * width]
    return result.reshape(rows, -1)


def sparse_metadata(codes: np.ndarray, sharing: int, selector: int, rng: Any) -> np.ndarray:
    """A register of each thread; those of ``sharing`` in four that are not selected have noise."""
    found = rng.integers(0, 1 << 32, 2 * len(codes), np.uint32)
    for thread in range(len(found)):
        row, part = thread // 32 * 16 + thread % 32 // 4, thread % 4
        if sharing == 4:
            own = codes[row + 8 * (part % 2), 8 * (part // 2) : 8 * (part // 2) + 8]
        elif part // sharing == selector:
            first = 4 * (part % sharing)
            own = [*codes[row, first : first + 4], *codes[row + 8, first : first + 4]]
        else:
            continue
        found[thread] = sum(int(code) << 4 * n for n, code in enumerate(own))
    return found
