"""tcgen05.mma.sp: A is put together here from its elements and places, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.instructions.tcgen05.kernels import (
    fill,
    kinds,
    launch,
    program,
    registers,
    wait,
)
from tests.emulator.instructions.tcgen05.products import (
    COMMIT,
    SYNC,
    TYPES,
    before,
    by_thread_0,
    read_back,
)
from tests.emulator.instructions.tcgen05.test_pairs import BOTH, by_the_leader
from tests.emulator.instructions.tcgen05.test_pairs import COMMIT as COMMIT_TO_BOTH
from tests.emulator.instructions.tcgen05.test_scaled import FOUR_BITS, columns_of, scale_bytes
from tests.emulator.instructions.tcgen05.tiles import descriptor, expected, place

N = 64
META = N + 8  # columns behind D and A
WORDS = 16  # columns that are loaded there


def sparse_rows(rng: Any, rows: int, k: int, kind: str):
    """(places of elements or of pairs of them, codes of chunks) of each row."""
    unit = 2 if kind == "mxf4" else 1
    one_of_two = kind == "tf32"
    chunk = 2 if one_of_two else 4
    places = np.zeros((rows, k // unit // 2), int)
    codes = np.zeros((rows, k // unit // chunk), int)
    for row, number in np.ndindex(*codes.shape):
        if one_of_two:
            second = rng.integers(2)
            places[row, number] = 2 * number + second
            codes[row, number] = 0b1110 if second else 0b0100
        else:
            first, second = sorted(rng.choice(4, 2, replace=False))
            places[row, 2 * number : 2 * number + 2] = 4 * number + first, 4 * number + second
            codes[row, number] = first | second << 2
    return places, codes


def whole(stored: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A with its zeros."""
    rows, count = places.shape
    width = stored.shape[1] // count
    result = np.zeros((rows, 2 * count, width))
    for row, number in np.ndindex(rows, count):
        result[row, places[row, number]] = stored[row, number * width : (number + 1) * width]
    return result.reshape(rows, -1)


def metadata(codes: np.ndarray, wide: bool, columns: np.ndarray, at: int, copies: int = 1) -> None:
    """Write codes into ``columns`` (128, words) from column ``at`` on, bit by bit."""
    rows = len(codes)
    for row, number in np.ndindex(*codes.shape):
        if wide:  # eight chunks of a row: the first four in one lane, the others eight lanes on
            lane = row // 16 * 16 + number // 4 * 8 + row % 8
            column, bit = at, row // 8 % 2 * 16 + number % 4 * 4
        else:
            lane, column, bit = row, at + number // 8, number % 8 * 4
        for copy in range(copies):
            columns[lane + copy * rows, column] |= np.uint32(int(codes[row, number]) << bit)


def idesc(m: int, n: int, a: int, b: int, d: int = 1, selector: int = 0) -> int:
    return selector | 1 << 2 | d << 4 | a << 7 | b << 10 | (n >> 3) << 17 | (m >> 4) << 24


def load_columns(at: str = "%r10") -> str:
    """The first words of each thread's part of shared memory, to columns from META on."""
    loads = "\n".join(f"ld.shared.b32 %r{200 + c}, [%r12+{4 * c}];" for c in range(WORDS))
    return f"""
    mul.lo.u32 %r12, %r0, {4 * WORDS}; add.u32 %r12, %r12, %r2;
    {loads}
    tcgen05.st.sync.aligned.32x32b.x{WORDS}.b32 [{at}+{META}], {registers(200, WORDS)};
    tcgen05.wait::st.sync.aligned;
    """


def product(opcode: str, steps: list[str], more: str = "") -> str:
    """Products of thread 0; each step is its operands behind D."""
    lines = ["and.b32 %r20, %r2, 0x3ffff; shr.u32 %r20, %r20, 4; mov.u32 %r22, 0;",
             "mov.b64 %d6, {%r20, %r22}; setp.ne.u32 %p6, %r0, %r0;"]  # fmt: skip
    for number, step in enumerate(steps):
        if number:
            lines.append("setp.eq.u32 %p6, %r0, %r0;")
        lines.append(step.replace("ISSUE", f"tcgen05.{opcode} [%r9],").replace("MORE", more))
    return "\n".join(lines)


def step(a: Any, b: int, meta: int, bits: int) -> str:
    """One product; ``a`` is a descriptor or, as text, an address of tensor memory."""
    text = f"add.s64 %d8, %d6, {b}; mov.u32 %r21, {bits};"
    if not isinstance(a, str):
        text += f" add.s64 %d7, %d6, {a};"
        a = "%d7"
    return f"{text} ISSUE {a}, %d8, [%r9+{meta}], %r21MORE, %p6;"


def lay_out(a: np.ndarray, b: np.ndarray, span: int, offset: int):
    """(bytes, descriptors of A and B): rows of 32 and of 64 bytes of K for each step."""
    buffer = np.zeros(65536, np.uint8)
    found, at = [], 0
    for matrix in (a, b):
        leading, stride = (0, 8 * span) if span else (len(matrix) * 16, 128)
        place(matrix, buffer, at, k_major=True, leading=leading, stride=stride, span=span)
        found.append(descriptor(at + offset, leading, stride, span))
        at += -(-max(matrix.nbytes, span * len(matrix)) // 1024) * 1024
    return buffer[:at], found


def numbers(kind: str, shape: tuple[int, int], rng: Any):
    """(bytes as they are stored, values)."""
    if kind == "mxf4":
        codes = rng.integers(0, 16, shape, np.uint8)
        return codes[:, ::2] | codes[:, 1::2] << 4, FOUR_BITS[codes]
    low = 0 if kind == "u8" else -3
    values = rng.integers(low, 4, shape).astype(TYPES[kind][0])
    return values, values.astype(np.float64)


# kind, types of A and B, K, span, M, .ws
PLAIN = [
    ("f16", "bf16", "bf16", 32, 128, 128, ""), ("f16", "f16", "f16", 32, 64, 128, ""),
    ("f16", "bf16", "bf16", 32, 0, 128, ""), ("tf32", "tf32", "tf32", 16, 128, 128, ""),
    ("f8f6f4", "e4m3", "e5m2", 64, 128, 128, ""), ("i8", "s8", "u8", 64, 128, 128, ""),
    ("f16", "bf16", "bf16", 32, 128, 128, ".ws"), ("f16", "bf16", "bf16", 32, 128, 64, ".ws"),
    ("tf32", "tf32", "tf32", 16, 128, 32, ".ws"), ("f8f6f4", "e4m3", "e4m3", 64, 128, 64, ".ws"),
    ("i8", "u8", "u8", 64, 128, 32, ".ws"),
]  # fmt: skip


WIDE = ("f16", "tf32")  # those with a selector


@pytest.mark.parametrize(
    ("kind", "a_kind", "b_kind", "k", "span", "m", "ws", "selector"),
    [(*one, selector) for one in PLAIN for selector in range(1 + (one[0] in WIDE))],
)
def test_products(kind, a_kind, b_kind, k, span, m, ws, selector: int) -> None:
    wide = kind in WIDE
    rng = np.random.default_rng(k + m)
    places, codes = sparse_rows(rng, m, k, a_kind)
    (a, a_values), (b, b_values) = numbers(a_kind, (m, k // 2), rng), numbers(b_kind, (N, k), rng)
    columns = np.zeros((128, WORDS), np.uint32)
    metadata(codes, wide, columns, 2 + selector, 128 // m)
    tiles, (a_at, b_at) = lay_out(a, b, span, columns.nbytes)
    d = 2 if kind == "i8" else 1
    bits = idesc(m, N, TYPES[a_kind][1], TYPES[b_kind][1], d, selector)
    text = product(f"mma{ws}.sp.cta_group::1.kind::{kind}", [step(a_at, b_at, META + 2, bits)])
    body = fill(N) + load_columns() + SYNC + by_thread_0(text + COMMIT) + wait() + read_back(N)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), tiles])
    cells = np.zeros((128, N), np.uint32)
    report = launch(program(body, size=len(data)), data, cells)
    assert report.verdict is Verdict.CLEAN, str(report)
    number = np.int32 if kind == "i8" else np.float32
    exact = (whole(a_values, places) @ b_values.T).astype(number)
    wanted = expected(exact, before(N).view(number), 1, ws=bool(ws))[0]
    assert (cells.view(number) == wanted).all()


def test_steps_of_k_with_metadata_side_by_side() -> None:
    """Two steps, whose metadata are in neighbouring columns and selected by the descriptor."""
    rng = np.random.default_rng(2)
    parts = [sparse_rows(rng, 128, 32, "bf16") for _ in range(2)]
    (a, a_values), (b, b_values) = numbers("bf16", (128, 32), rng), numbers("bf16", (N, 64), rng)
    columns = np.zeros((128, WORDS), np.uint32)
    for number, (_, codes) in enumerate(parts):
        metadata(codes, True, columns, number)
    tiles, (a_at, b_at) = lay_out(a, b, 128, columns.nbytes)
    steps = [step(a_at + 2 * n, b_at + 4 * n, META, idesc(128, N, 1, 1, selector=n))
             for n in range(2)]  # fmt: skip
    text = product("mma.sp.cta_group::1.kind::f16.collector::a::fill", steps)
    body = load_columns() + SYNC + by_thread_0(text + COMMIT) + wait() + read_back(N)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), tiles])
    for schedule in ("uniform", "lazy", "eager"):
        cells = np.zeros((128, N), np.float32)
        report = launch(program(body, size=len(data)), data, cells, schedule=schedule)
        assert report.verdict is Verdict.CLEAN, str(report)
        dense = np.concatenate([whole(a_values[:, :16], parts[0][0]),
                                whole(a_values[:, 16:], parts[1][0])], axis=1)  # fmt: skip
        assert (cells == dense @ b_values.T).all()


def test_a_from_tensor_memory() -> None:
    rng = np.random.default_rng(4)
    places, codes = sparse_rows(rng, 128, 32, "bf16")
    (a, a_values), (b, b_values) = numbers("bf16", (128, 16), rng), numbers("bf16", (N, 32), rng)
    columns = np.zeros((128, WORDS), np.uint32)
    columns[:, 8:] = np.ascontiguousarray(a).view(np.uint32)
    metadata(codes, True, columns, 4)
    tiles, (_, b_at) = lay_out(a, b, 128, columns.nbytes)
    one = step(f"[%r9+{META + 8}]", b_at, META + 4, idesc(128, N, 1, 1))
    text = product("mma.sp.cta_group::1.kind::f16", [one])
    body = load_columns() + SYNC + by_thread_0(text + COMMIT) + wait() + read_back(N)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), tiles])
    cells = np.zeros((128, N), np.float32)
    report = launch(program(body, size=len(data)), data, cells)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert (cells == whole(a_values, places) @ b_values.T).all()


@pytest.mark.parametrize(
    ("kind", "words", "k", "count", "scale"),
    [
        ("mxf8f6f4", "", 64, 1, "ue8m0"),
        ("mxf4", ".scale_vec::2X", 128, 2, "ue8m0"),
        ("mxf4nvf4", ".scale_vec::4X", 128, 4, "ue4m3"),
    ],
)
def test_block_scaled_products(kind, words, k, count, scale) -> None:
    """Each factor covers twice the elements of K."""
    rng = np.random.default_rng(5)
    element = "e4m3" if kind == "mxf8f6f4" else "mxf4"
    places, codes = sparse_rows(rng, 128, k, element)
    (a, a_values), (b, b_values) = (
        numbers(element, (128, k // 2), rng),
        numbers(element, (N, k), rng),
    )
    a_codes, a_scales = scale_bytes(rng, scale, 128, count)
    b_codes, b_scales = scale_bytes(rng, scale, N, count)
    columns = np.zeros((128, WORDS), np.uint32)
    metadata(codes, False, columns, 0)
    columns[:, 4:8], columns[:, 8:10] = columns_of(a_codes, 0), columns_of(b_codes, 0)
    tiles, (a_at, b_at) = lay_out(a, b, 128, columns.nbytes)
    code = 0 if element == "e4m3" else 1
    bits = 1 << 2 | code << 7 | code << 10 | (N >> 3) << 17 | 1 << 27 | (scale == "ue8m0") << 23
    more = f", [%r9+{META + 4}], [%r9+{META + 8}]"
    opcode = f"mma.sp.cta_group::1.kind::{kind}.block_scale{words}"
    text = product(opcode, [step(a_at, b_at, META, bits)], more)
    body = load_columns() + SYNC + by_thread_0(text + COMMIT) + wait() + read_back(N)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), tiles])
    cells = np.zeros((128, N), np.float32)
    report = launch(program(body, size=len(data)), data, cells)
    assert report.verdict is Verdict.CLEAN, str(report)
    left = whole(a_values, places) * np.repeat(a_scales, k // count, 1)
    exact = left @ (b_values * np.repeat(b_scales, k // count, 1)).T
    assert np.allclose(cells, exact, rtol=1e-6, atol=1e-5)


def test_a_pair_of_ctas() -> None:
    """Each CTA has the metadata of its own rows."""
    rng = np.random.default_rng(6)
    places, codes = sparse_rows(rng, 256, 64, "e4m3")
    (a, a_values), (b, b_values) = numbers("e4m3", (256, 32), rng), numbers("e4m3", (N, 64), rng)
    parts = []
    for rank in range(2):
        columns = np.zeros((128, WORDS), np.uint32)
        metadata(codes[rank * 128 : rank * 128 + 128], False, columns, 2)
        tiles, (a_at, b_at) = lay_out(
            a[rank * 128 : rank * 128 + 128], b[rank * 32 : rank * 32 + 32], 128, columns.nbytes
        )
        parts += [columns.view(np.uint8).reshape(-1), tiles]
    data = np.concatenate(parts)
    text = product("mma.sp.cta_group::2.kind::f8f6f4",
                   [step(a_at, b_at, META + 2, idesc(256, N, 0, 0))])  # fmt: skip
    body = load_columns() + BOTH + by_the_leader(text + COMMIT_TO_BOTH) + wait() + read_back(N)
    cells = np.zeros((2, 128, N), np.float32)
    kernel = program(body, size=len(data) // 2, group=2, out=128 * N * 4)
    report = launch(kernel, data, cells, grid=2)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert (cells.reshape(256, N) == whole(a_values, places) @ b_values.T).all()


# ---- what is wrong


def small(one: str, kind: str = "f16", words: int = 0x44444444, ws: str = "", setup: str = ""):
    """The kinds of findings of a product over zeros, whose metadata are all the same."""
    columns = np.full((128, WORDS), words, np.uint32)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), np.zeros(32768, np.uint8)])
    text = product(f"mma{ws}.sp.cta_group::1.kind::{kind}", [one])
    body = load_columns() + setup + SYNC + by_thread_0(text + COMMIT) + wait()
    return kinds(launch(program(body, size=len(data)), data, np.zeros(1)))


A, B = descriptor(8192, 0, 1024, 128), descriptor(24576, 0, 1024, 128)
GOOD = idesc(128, N, 1, 1)


def test_a_good_one_is_clean() -> None:
    assert small(step(A, B, META, GOOD)) == []


@pytest.mark.parametrize(
    ("one", "options", "kind"),
    [
        (step(A, B, META, GOOD), {"words": 0x44444440}, "illegal-instruction"),
        (step(A, B, META, GOOD & ~4), {}, "descriptor"),
        (step(A, B, META + 1, GOOD), {}, "tensor-memory"),
        (step(A, B, 200, GOOD), {}, "tensor-memory"),
        (step(A, B, META + 20, GOOD), {}, "uninitialised"),
        (step(A, B, META, idesc(128, N, 0, 0, selector=1)), {"kind": "f8f6f4"}, "descriptor"),
        (step(A, B, META, idesc(64, 256, 1, 1)), {"ws": ".ws"}, "descriptor"),
        (step(A, descriptor(40000, 0, 1024, 128), META, GOOD), {}, "out-of-bounds"),
    ],
)
def test_what_is_reported(one: str, options: dict[str, Any], kind: str) -> None:
    assert kind in small(one, **options)


def test_copies_of_metadata_have_to_be_the_same() -> None:
    other = "setp.gt.u32 %p5, %r0, 63; @%p5 xor.b32 %r200, %r200, 12;"
    spoil = other + (
        f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10+{META}], {{%r200}};"
        "tcgen05.wait::st.sync.aligned;"
    )
    assert small(step(A, B, META, idesc(64, N, 1, 1)), ws=".ws", setup=spoil) == ["tensor-memory"]


def test_metadata_are_read_until_the_product_has_completed() -> None:
    """A store over them meanwhile is a race."""
    columns = np.full((128, WORDS), 0x44444444, np.uint32)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), np.zeros(32768, np.uint8)])
    text = product("mma.sp.cta_group::1.kind::f16", [step(A, B, META, GOOD)])
    for column, races in ((META, True), (META + 4, False)):
        late = f"""tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10+{column}], {{%r200}};
        tcgen05.wait::st.sync.aligned;"""
        body = load_columns() + SYNC + by_thread_0(text + COMMIT) + SYNC + late + wait()
        found = kinds(launch(program(body, size=len(data)), data, np.zeros(1)))
        assert ("race" in found) == races, (column, found)


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (step(A, B, META, idesc(64, N, 1, 1)), "metadata of 64 rows"),
        (step(A, B, META, idesc(128, N, 1, 1, selector=2)), "selector 2"),
        (step(descriptor(8192, 0, 256, 32), descriptor(24576, 0, 256, 32), META, GOOD),
         "second half of K"),
    ],
)  # fmt: skip
def test_what_is_not_documented_is_refused(one: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        small(one)
