"""tcgen05.mma.sp: A is put together here from its elements and places, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.instructions.tcgen05.kernels import kinds, launch, program, wait
from tests.emulator.instructions.tcgen05.products import (
    COMMIT,
    SYNC,
    TYPES,
    before,
    by_thread_0,
    columns_from_shared,
    idesc,
    issue,
    lay_out,
    outcome,
    times,
)
from tests.emulator.instructions.tcgen05.test_pairs import halves
from tests.emulator.instructions.tcgen05.test_scaled import FOUR_BITS, columns_of, scale_bytes
from tests.emulator.instructions.tcgen05.tiles import descriptor, expected
from tests.emulator.instructions.tensor_cores import dense, sparse_places

N = 64
META = N + 8  # columns behind D and A
WORDS = 16  # columns that are loaded there
LOADED = columns_from_shared(WORDS, META)


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
    rng = np.random.default_rng(k + m)
    places, codes = sparse_places(rng, m, k, pairs=a_kind != "tf32")
    (a, a_values), (b, b_values) = numbers(a_kind, (m, k // 2), rng), numbers(b_kind, (N, k), rng)
    columns = np.zeros((128, WORDS), np.uint32)
    metadata(codes, kind in WIDE, columns, 2 + selector, 128 // m)
    data, steps = lay_out(a, b, span, columns=columns)
    d = 2 if kind == "i8" else 1
    bits = idesc(m, N, TYPES[a_kind][1], TYPES[b_kind][1], d, selector=selector, sparse=1)
    text = issue(kind, 0 if ws else 1, bits, steps, sparse=META + 2, first=True)
    report, cells = outcome(text, N, data, setup=LOADED)
    assert report.verdict is Verdict.CLEAN, str(report)
    number = np.int32 if kind == "i8" else np.float32
    exact = times(dense(a_values, places), b_values).astype(number)
    wanted = expected(exact, before(N).view(number), 1, ws=bool(ws))
    assert (cells.view(number) == wanted).all()


def test_steps_of_k_with_metadata_side_by_side() -> None:
    """Two steps, whose metadata are in neighbouring columns and selected by the descriptor."""
    rng = np.random.default_rng(2)
    parts = [sparse_places(rng, 128, 32) for _ in range(2)]
    (a, a_values), (b, b_values) = numbers("bf16", (128, 32), rng), numbers("bf16", (N, 64), rng)
    columns = np.zeros((128, WORDS), np.uint32)
    for number, (_, codes) in enumerate(parts):
        metadata(codes, True, columns, number)
    data, steps = lay_out(a, b, columns=columns)
    bits = [idesc(128, N, 1, 1, selector=n, sparse=1) for n in range(2)]
    text = issue("f16.collector::a::fill", 1, bits, steps, sparse=META, first=True)
    whole = np.concatenate(
        [dense(a_values[:, 16 * n : 16 * n + 16], parts[n][0]) for n in range(2)], axis=1
    )
    for schedule in ("uniform", "lazy", "eager"):
        report, cells = outcome(text, N, data, setup=LOADED, filled=False, schedule=schedule)
        assert report.verdict is Verdict.CLEAN, str(report)
        assert (cells[0].view(np.float32) == times(whole, b_values)).all()


def test_a_from_tensor_memory() -> None:
    rng = np.random.default_rng(4)
    places, codes = sparse_places(rng, 128, 32)
    (a, a_values), (b, b_values) = numbers("bf16", (128, 16), rng), numbers("bf16", (N, 32), rng)
    columns = np.zeros((128, WORDS), np.uint32)
    columns[:, 8:] = np.ascontiguousarray(a).view(np.uint32)
    metadata(codes, True, columns, 4)
    data, [(_, b_at)] = lay_out(a, b, columns=columns)
    text = issue("f16", 1, GOOD, [(META + 8, b_at)], sparse=META + 4, tensor_a=True, first=True)
    report, cells = outcome(text, N, data, setup=LOADED, filled=False)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert (cells[0].view(np.float32) == times(dense(a_values, places), b_values)).all()


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
    places, codes = sparse_places(rng, 128, k, unit=2 if element == "mxf4" else 1)
    (a, a_values), (b, b_values) = (
        numbers(element, (128, k // 2), rng),
        numbers(element, (N, k), rng),
    )
    a_codes, a_scales = scale_bytes(rng, scale, 128, count)
    b_codes, b_scales = scale_bytes(rng, scale, N, count)
    columns = np.zeros((128, WORDS), np.uint32)
    metadata(codes, False, columns, 0)
    columns[:, 4:8], columns[:, 8:10] = columns_of(a_codes, 0), columns_of(b_codes, 0)
    data, steps = lay_out(a, b, columns=columns)
    code = 0 if element == "e4m3" else 1
    bits = 1 << 2 | code << 7 | code << 10 | (N >> 3) << 17 | 1 << 27 | (scale == "ue8m0") << 23
    factors = f", [%r9+{META + 4}], [%r9+{META + 8}]"
    text = issue(f"{kind}.block_scale{words}", 1, bits, steps, sparse=META, words=factors,
                 first=True)  # fmt: skip
    report, cells = outcome(text, N, data, setup=LOADED, filled=False)
    assert report.verdict is Verdict.CLEAN, str(report)
    left = dense(a_values, places) * np.repeat(a_scales, k // count, 1)
    exact = times(left, b_values * np.repeat(b_scales, k // count, 1))
    assert np.allclose(cells[0].view(np.float32), exact, rtol=1e-6, atol=1e-5)


def test_a_pair_of_ctas() -> None:
    """Each CTA has the metadata of its own rows."""
    rng = np.random.default_rng(6)
    places, codes = sparse_places(rng, 256, 64)
    (a, a_values), (b, b_values) = numbers("e4m3", (256, 32), rng), numbers("e4m3", (N, 64), rng)
    columns = np.zeros((2, 128, WORDS), np.uint32)
    for rank in range(2):
        metadata(codes[rank * 128 : rank * 128 + 128], False, columns[rank], 2)
    data, steps = halves(a, b, columns=columns)
    bits = idesc(256, N, 0, 0, sparse=1)
    text = issue("f8f6f4", 2, bits, steps, sparse=META + 2, first=True)
    report, cells = outcome(text, N, data, group=2, setup=LOADED, filled=False)
    assert report.verdict is Verdict.CLEAN, str(report)
    exact = times(dense(a_values, places), b_values)
    assert (cells.view(np.float32).reshape(256, N) == exact).all()


# ---- what is wrong


A, B = descriptor(8192, 0, 1024, 128), descriptor(24576, 0, 1024, 128)
GOOD = idesc(128, N, 1, 1, sparse=1)


def one(
    bits: int = GOOD, a: int = A, b: int = B, at: int = META, group: int = 1, kind: str = "f16"
):
    return issue(kind, group, bits, [(a, b)], sparse=at, first=True)


def small(text: str, words: int = 0x44444444, setup: str = ""):
    """The kinds of findings of a product over zeros, whose metadata are all the same."""
    columns = np.full((128, WORDS), words, np.uint32)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), np.zeros(32768, np.uint8)])
    body = LOADED + setup + SYNC + by_thread_0(text + COMMIT) + wait()
    return kinds(launch(program(body, size=len(data)), data, np.zeros(1)))


def test_a_good_one_is_clean() -> None:
    assert small(one()) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (one(GOOD & ~4), "descriptor"),
        (one(at=META + 1), "tensor-memory"),
        (one(at=200), "tensor-memory"),
        (one(at=META + 20), "uninitialised"),
        (one(idesc(128, N, 0, 0, selector=1, sparse=1), kind="f8f6f4"), "descriptor"),
        (one(idesc(64, 256, 1, 1, sparse=1), group=0), "descriptor"),
        (one(b=descriptor(40000, 0, 1024, 128)), "out-of-bounds"),
    ],
)
def test_what_is_reported(text: str, kind: str) -> None:
    assert kind in small(text)


def test_metadata_without_a_meaning_are_reported() -> None:
    assert "illegal-instruction" in small(one(), words=0x44444440)


def spoiled(column: int) -> str:
    return f"""tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10+{column}], {{%r200}};
    tcgen05.wait::st.sync.aligned;"""


def test_copies_of_metadata_have_to_be_the_same() -> None:
    other = "setp.gt.u32 %p5, %r0, 63; @%p5 xor.b32 %r200, %r200, 12;" + spoiled(META)
    text = one(idesc(64, N, 1, 1, sparse=1), group=0)
    assert small(text, setup=other) == ["tensor-memory"]


def test_metadata_are_read_until_the_product_has_completed() -> None:
    """A store over them meanwhile is a race."""
    columns = np.full((128, WORDS), 0x44444444, np.uint32)
    data = np.concatenate([columns.view(np.uint8).reshape(-1), np.zeros(32768, np.uint8)])
    for column, races in ((META, True), (META + 4, False)):
        body = LOADED + SYNC + by_thread_0(one() + COMMIT) + SYNC + spoiled(column) + wait()
        found = kinds(launch(program(body, size=len(data)), data, np.zeros(1)))
        assert ("race" in found) == races, (column, found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (one(idesc(64, N, 1, 1, sparse=1)), "metadata of 64 rows"),
        (one(idesc(128, N, 1, 1, selector=2, sparse=1)), "selector 2"),
        (one(a=descriptor(8192, 0, 256, 32), b=descriptor(24576, 0, 256, 32)),
         "second half of K"),
    ],
)  # fmt: skip
def test_what_is_not_documented_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        small(text)
