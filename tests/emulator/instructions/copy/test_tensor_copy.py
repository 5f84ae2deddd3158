from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fa4gen.emulator import Severity, TensorMap
from fa4gen.emulator.instructions.copy.boxes import pieces
from fa4gen.emulator.state.decoded_map import decode
from tests.emulator.instructions.copy.copies import (
    STORED,
    WAIT,
    clean,
    copy_kernel,
    dump,
    expect,
    first,
    kinds,
    laid_down,
    launch,
    noise,
    reported,
)
from tests.emulator.instructions.tensor_cores import swizzled
from tests.emulator.kernel import SYNC, run

LOAD = "cp.async.bulk.tensor.{n}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.{n}d.global.shared::cta.tile.bulk_group"
SIZE = 16384


def load(at, *, offset: int = 0, expected: int, opcode: str = LOAD) -> str:
    """Load a box; ``at`` in the array's axis order."""
    coordinates = ", ".join(map(str, reversed(at)))
    opcode = opcode.format(n=len(at))
    copy = f"{opcode} [tile+{offset}], [%d1, {{{coordinates}}}], [bar];"
    return first(expect(expected) + copy) + WAIT


def loaded(tensor_map: TensorMap, at, *, offset: int = 0, expected: int | None = None, **options):
    """Return the shared memory after a load (bytes), and the report."""
    counts = [-(-b // s) for b, s in zip(tensor_map.box, tensor_map.steps, strict=True)]
    size = int(np.prod(counts)) * tensor_map.array.itemsize
    out = np.zeros(SIZE, np.uint8)
    body = load(at, offset=offset, expected=expected or size) + dump(SIZE)
    report = launch(body, out, tensor_map, **{"checks": False, **options})
    return out, report


def reference(array, box, at, fill=0, steps=None):
    """The elements of a box, one by one."""
    steps = steps or (1,) * array.ndim
    result = np.full([-(-b // s) for b, s in zip(box, steps, strict=True)], fill, array.dtype)
    for index in np.ndindex(*result.shape):
        place = tuple(a + i * s for a, i, s in zip(at, index, steps, strict=True))
        if all(0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            result[index] = array[place]
    return result


@pytest.mark.parametrize("schedule", ["uniform", "lazy", "eager"])
@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_a_tile_is_swizzled_by_its_address(span: int, schedule: str) -> None:
    array = noise((64, 96))
    box = (24, span // 2 or 64)
    out, report = loaded(
        TensorMap(array, box, swizzle=span), (7, 16), offset=384, schedule=schedule
    )
    assert np.array_equal(out, laid_down(reference(array, box, (7, 16)), span, 384))
    assert not report.findings


BOXES = st.tuples(
    st.sampled_from([np.uint8, np.uint16, np.float32, np.float64]),
    st.sampled_from([0, 32, 64, 128]),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(-6, 9)), max_size=4),
    st.tuples(st.integers(1, 30), st.integers(1, 2), st.integers(-3, 4)),
)


@settings(max_examples=60, deadline=None)
@given(BOXES)
def test_any_box_anywhere(case) -> None:
    dtype, span, outer, (width, chunks, at) = case
    each = 16 // np.dtype(dtype).itemsize
    width = width * 16 // each if each > 1 else width * 2
    shape = (*[size for size, _, _ in outer], width)
    padded = noise((*shape[:-1], -(-width // each) * each), dtype)
    array = padded[..., :width]
    box = (*[size for _, size, _ in outer], chunks * each)
    assume(math.prod(box[:-1]) * max(span, chunks * 16) <= SIZE)
    place = (*[start for _, _, start in outer], at * each)
    out, report = loaded(TensorMap(array, box, swizzle=span), place)
    assert np.array_equal(out, laid_down(reference(array, box, place), span))
    assert not report.findings


def clipping_map(array, box_rows: int) -> TensorMap:
    """A map of (rows, columns) that can clip at any row: (wrap, place, row, column)."""
    rows, columns = array.shape
    stride = array.strides[0]
    return TensorMap(
        array,
        (1, 1, box_rows, columns),
        shape=((1 << 30) + 1, rows + 1, 1 << 30, columns),
        strides=((1 << 34) - stride, stride, stride, array.itemsize),
    )


CLIPS = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 70), st.integers(1, 40))


@settings(max_examples=40, deadline=None)
@given(CLIPS)
def test_addresses_wrap_around_so_a_box_is_clipped_at_any_row(case) -> None:
    start, valid, row, box_rows = case
    assume(start + valid <= 60)
    array = noise((60, 8), np.float32)
    at = (1 << 30, start + valid, (1 << 30) - valid + row, 0)
    out, report = loaded(clipping_map(array, box_rows), at)
    sequence = array[start : start + valid]
    assert np.array_equal(out, laid_down(reference(sequence, (box_rows, 8), (row, 0)), 0))
    assert not report.findings


def test_a_wrapped_address_outside_the_tensor_is_reported() -> None:
    array = noise((60, 8), np.float32)
    at = (1 << 30, 2, (1 << 30) - 10, 0)  # ten rows that end at row 2
    _, report = loaded(clipping_map(array, 4), at)
    assert kinds(report) == ["out-of-bounds"]


def test_element_strides_take_every_nth_row() -> None:
    array = noise((40, 64))
    tensor_map = TensorMap(array, (9, 64), element_strides=(2, 1))
    out, _ = loaded(tensor_map, (5, 0))
    assert np.array_equal(out, laid_down(reference(array, (9, 64), (5, 0), steps=(2, 1)), 0))


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(np.float16, 0x7FF7), (ml_dtypes.bfloat16, 0x7FF7), (np.float32, 0x7FF7_7FF7)],
)
def test_nan_fill(dtype, bits: int) -> None:
    array = noise((4, 16), dtype)
    out, _ = loaded(TensorMap(array, (8, 16), fill="nan"), (2, 0))
    raw = array.view(f"u{array.itemsize}")
    expected = reference(raw, (8, 16), (2, 0), fill=bits)
    assert np.array_equal(out, laid_down(expected, 0))


def test_what_nan_fill_means_for_products_is_for_review() -> None:
    array = noise((4, 16), np.float16)
    _, report = loaded(TensorMap(array, (8, 16), fill="nan"), (2, 0), checks=True)
    found = [one for one in report.findings if one.kind == "tensor-map"]
    assert [one.severity for one in found] == [Severity.REVIEW]
    assert "NAN_REQUEST_ZERO_FMA" in found[0].message
    for tensor_map in (TensorMap(array, (2, 16), fill="nan"), TensorMap(array, (8, 16))):
        _, report = loaded(tensor_map, (2, 0), checks=True)
        assert not [one for one in report.findings if one.kind == "tensor-map"]


def test_a_strided_view_of_an_array() -> None:
    whole = noise((20, 4, 64))
    array = whole[:, 2, :]
    out, _ = loaded(TensorMap(array, (8, 64), swizzle=128), (3, 0))
    assert np.array_equal(out, laid_down(array[3:11], 128))


@pytest.mark.parametrize(
    ("at", "offset", "kind"),
    [
        ((0, 4), 0, "illegal-instruction"),
        ((0, -3), 0, "illegal-instruction"),
        ((0, 0), 64, "misaligned"),
        ((0, 0), SIZE - 128, "out-of-bounds"),
    ],
)
def test_what_a_load_may_not_do(at, offset: int, kind: str) -> None:
    _, report = loaded(TensorMap(noise((16, 64)), (8, 64)), at, offset=offset)
    assert kinds(report) == [kind]


@pytest.mark.parametrize("span", [32, 64, 128])
@pytest.mark.parametrize("offset", [0, 128, 1024 + 384])
def test_a_narrow_box_leaves_out_what_is_between_its_lines(span: int, offset: int) -> None:
    for columns in range(8, span // 2 + 1, 8):
        tensor_map = TensorMap(np.zeros((16, 256), np.uint16), (9, columns), swizzle=span)
        taken = np.zeros(SIZE, bool)
        found = pieces(decode(tensor_map.encode(1 << 20)), offset, 9)
        for start, stop in found:
            assert not taken[start:stop].any()
            taken[start:stop] = True
        expected = laid_down(np.ones((9, 2 * columns), np.uint8), span, offset)
        assert (taken == expected.astype(bool)).all()
        assert (len(found) == 1) == (columns * 2 == span)


@pytest.mark.parametrize(("writers", "expected"), [(8, []), (7, ["uninitialised"])])
def test_a_store_reads_the_lines_of_a_narrow_box_alone(writers: int, expected: list[str]) -> None:
    """Thread i writes 16 bytes, line i of the box; what is between the lines is never written."""
    tensor_map = TensorMap(np.zeros((8, 8), np.uint16), (8, 8), swizzle=128)
    body = f"""
    setp.lt.u32 %p1, %r21, {writers};
    @!%p1 bra WRITTEN;
    mad.lo.u32 %r1, %r21, 144, %r20;
    st.shared.v4.b32 [%r1], {{%r21, %r21, %r21, %r21}};
    fence.proxy.async.shared::cta;
WRITTEN:
    bar.sync 0;
""" + first(f"{STORE.format(n=2)} [%d0, {{0, 0}}], [%r20];{STORED}", "STORED")
    assert reported(body, tensor_map, block=32) == expected


def test_the_bytes_of_the_whole_box_are_counted() -> None:
    """A kernel that expects only what lies in the tensor waits for ever."""
    tensor_map = TensorMap(noise((16, 64)), (8, 64))
    _, report = loaded(tensor_map, (12, 0), expected=4 * 128)
    assert "deadlock" in kinds(report)


@pytest.mark.parametrize("start", [0, 4])
def test_a_map_of_tf32_rounds_to_the_nearest(start: int) -> None:
    bits = {
        0x3F800FFF: 0x3F800000,
        0x3F801000: 0x3F800000,  # half way: the even one
        0x3F803000: 0x3F804000,
        0x3F801001: 0x3F802000,
        0xBF801001: 0xBF802000,
        0x7F7FF000: 0x7F800000,
        0x7FC01234: 0x7FC01234,
    }
    array = np.resize(np.array(list(bits), np.uint32), (8, 32))
    tensor_map = TensorMap(array.view(np.float32), (8, 32))
    tensor_map.element = 11
    out, report = loaded(tensor_map, (start, 0))
    assert not report.findings
    expected = np.zeros_like(array)
    expected[: 8 - start] = np.vectorize(bits.get)(array[start:])
    assert np.array_equal(out[:1024].view(np.uint32).reshape(8, 32), expected)


def test_a_map_of_another_rank() -> None:
    tensor_map = TensorMap(noise((16, 64)), (8, 64))
    _, report = loaded(tensor_map, (0, 0, 0), expected=1024)
    assert kinds(report) == ["tensor-map"]


def test_a_map_whose_strides_leave_the_array() -> None:
    tensor_map = TensorMap(noise((16, 64)), (8, 64), shape=(32, 64), strides=(128, 2))
    _, report = loaded(tensor_map, (12, 0))
    assert kinds(report) == ["out-of-bounds"]


def test_a_parameter_that_is_no_map() -> None:
    assert reported(load((0, 0), expected=16), np.zeros(16, np.uint8), bytes(128)) == ["tensor-map"]


def test_every_lane_issues() -> None:
    body = """
    @%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32768;
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
        [tile], [%d1, {0, 0}], [bar];
""" + WAIT  # fmt: skip
    report = launch(body, np.zeros(16), TensorMap(noise((16, 64)), (8, 64)), block=32, checks=False)
    assert [(f.kind, f.severity) for f in report.findings] == [
        ("illegal-instruction", Severity.REVIEW)
    ]


def stored(tensor_map: TensorMap, at, tile, opcode: str = STORE):
    """Load ``tile`` into shared memory and store it as a box."""
    coordinates = ", ".join(map(str, reversed(at)))
    fill = first(
        expect(SIZE)
        + f"""cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes
        [tile], [%d0], {SIZE}, [bar];"""
    )
    body = (
        fill
        + WAIT
        + first(f"{opcode.format(n=len(at))} [%d1, {{{coordinates}}}], [%r20];{STORED}", "STORED")
    )
    return launch(body, tile, tensor_map, block=32)


@pytest.mark.parametrize("span", [0, 64, 128])
def test_a_store_undoes_the_swizzle_and_clips_rows(span: int) -> None:
    array, box = noise((40, 96)), (16, span // 2 or 64)
    expected = array.copy()
    tile = noise((SIZE,), np.uint8, 8)
    values = np.zeros(box, np.uint16)
    for index in np.ndindex(*box):
        byte = swizzled(index[0] * (span or 128) + index[1] * 2, span)
        values[index] = tile[byte:].view(np.uint16)[0]
    columns = min(96 - 16, box[1])
    expected[33:, 16 : 16 + columns] = values[:7, :columns]
    report = stored(TensorMap(array, box, swizzle=span), (33, 16), tile)
    assert not report.findings
    assert np.array_equal(array, expected)


def test_a_store_is_clipped_to_whole_chunks_in_dimension_0() -> None:
    """As seen on an H200: of 99 columns of 16 bits, a box at 64 writes 64 to 103."""
    array, tile = noise((16, 104)), noise((SIZE,), np.uint8, 8)
    before = array.copy()
    stored(TensorMap(array, (8, 64), shape=(16, 99), strides=(208, 2)), (0, 64), tile)
    assert np.array_equal(array[:, :64], before[:, :64])
    rows = tile[: 8 * 128].view(np.uint16).reshape(8, 64)
    assert np.array_equal(array[:8, 64:], rows[:, :40])
    assert np.array_equal(array[8:], before[8:])


def test_a_store_in_three_dimensions() -> None:
    array = noise((3, 8, 32), np.float32)
    expected, tile = array.copy(), noise((4096,), np.float32, 8)
    stored(TensorMap(array, (2, 8, 32)), (1, 4, 0), tile)
    expected[1:3, 4:8] = tile[:512].reshape(2, 8, 32)[:, :4]
    assert np.array_equal(array, expected)


def test_negative_coordinates_of_a_store() -> None:
    report = stored(TensorMap(noise((16, 64)), (8, 64)), (-1, 0), np.zeros(SIZE, np.uint8))
    assert kinds(report) == ["illegal-instruction"]


@pytest.mark.parametrize(
    ("operation", "dtype", "function"),
    [
        ("add", np.uint32, np.add),
        ("add", np.float32, np.add),
        ("add", np.float16, np.add),
        ("add", ml_dtypes.bfloat16, np.add),
        ("min", np.int32, np.minimum),
        ("max", ml_dtypes.bfloat16, np.maximum),
        ("and", np.uint64, np.bitwise_and),
        ("or", np.uint32, np.bitwise_or),
        ("xor", np.int32, np.bitwise_xor),
        ("inc", np.uint32, lambda old, new: np.where(old >= new, 0, old + 1)),
        ("dec", np.uint32, lambda old, new: np.where((old == 0) | (old > new), new, old - 1)),
    ],
)
def test_reductions(operation: str, dtype, function) -> None:
    array = noise((16, 32), dtype)
    expected = array.copy()
    tile = noise((SIZE // array.itemsize,), dtype, 8)
    width = 32 // array.itemsize * 2
    new = tile[: 8 * width].reshape(8, width)
    expected[10:, :width] = function(expected[10:, :width], new[:6])
    opcode = "cp.reduce.async.bulk.tensor.{n}d.global.shared::cta." + operation + ".bulk_group"
    report = stored(TensorMap(array, (8, width)), (10, 0), tile, opcode)
    assert not report.findings
    assert np.array_equal(array.view(np.uint8), expected.view(np.uint8))


def test_a_reduction_that_the_type_does_not_have() -> None:
    opcode = "cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.inc.bulk_group"
    array = noise((16, 32), np.float32)
    report = stored(TensorMap(array, (8, 32)), (0, 0), np.zeros(SIZE, np.uint8), opcode)
    assert kinds(report) == ["illegal-instruction"]


def test_multicast_fills_the_ctas_of_the_mask() -> None:
    body = f"""
    {SYNC}
    mov.u32 %r22, %ctaid.x;
    @!%p8 bra ISSUED;
    setp.eq.u32 %p1, %r22, 1;
    @%p1 bra ISSUE;
    {expect(1024)}
    bra ISSUED;
ISSUE:
    {expect(0)}
    mov.b16 %h1, 13;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r20], [%d1, {{0, 3}}], [bar], %h1;
ISSUED:
{WAIT}
    mul.lo.u32 %r23, %r22, 1024; cvt.u64.u32 %d5, %r23; add.u64 %d0, %d0, %d5;
    {dump(1024)}
    {SYNC}
"""
    array, out = noise((40, 64)), np.zeros((4, 8, 64), np.uint16)
    clean(body, out, TensorMap(array, (8, 64)), ctas=4, checks=False)
    for rank in (0, 2, 3):
        assert np.array_equal(out[rank], array[3:11])
    assert not out[1].any()


@pytest.mark.parametrize("mask", [0, 16])
def test_a_mask_that_names_no_cta(mask: int) -> None:
    body = first(
        f"""{expect(1024)} mov.b16 %h1, {mask};
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r20], [%d1, {{0, 3}}], [bar], %h1;"""
    )
    tensor_map = TensorMap(noise((40, 64)), (8, 64))
    assert reported(SYNC + body, np.zeros(16), tensor_map, ctas=2) == ["illegal-instruction"]


PAIR = """
    mov.u32 %r22, %cluster_ctarank;
    @!%p8 bra ISSUED;
    mov.u32 %r24, bar;
    and.b32 %r24, %r24, 0xFEFFFFFF;
    setp.eq.u32 %p1, %r22, 1;
    @%p1 bra ISSUE;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048;
ISSUE:
    cp.async.bulk.tensor.2d{group}.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r20], [%d1, {{0, 8}}], [%r24];
ISSUED:
    setp.eq.u32 %p2, %r22, 0;
    @!%p2 bra DONE;
"""


def test_a_pair_may_signal_its_leader() -> None:
    body = SYNC + PAIR.format(group=".cta_group::2") + WAIT + dump(1024) + "DONE:\n" + SYNC
    array, out = noise((40, 64)), np.zeros((8, 64), np.uint16)
    clean(body, out, TensorMap(array, (8, 64)), ctas=2, target="sm_100a", checks=False)
    assert np.array_equal(out, array[8:16])


@pytest.mark.parametrize("rank", [0, 1])
def test_the_leaders_address_stands_for_the_own_mbarrier_without_a_pair(rank: int) -> None:
    body = f"""
    mov.u32 %r22, %cluster_ctarank;
    @!%p8 bra ISSUED;
    mov.u32 %r24, bar; and.b32 %r24, %r24, 0xFEFFFFFF;
    {expect(1024)}
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r20], [%d1, {{0, 8}}], [%r24];
ISSUED:
    {WAIT}
    setp.ne.u32 %p1, %r22, {rank};
    @%p1 bra DONE;
    {dump(1024)}
DONE:
"""
    array, out = noise((40, 64)), np.zeros((8, 64), np.uint16)
    report = launch(SYNC + body + SYNC, out, TensorMap(array, (8, 64)), ctas=2, checks=False)
    [finding] = report.findings  # of the CTA that has rank 1
    assert (finding.kind, finding.severity) == ("barrier-misuse", Severity.ISA)
    assert np.array_equal(out, array[8:16])


def test_the_mbarrier_of_another_cta_is_refused_without_a_pair() -> None:
    body = PAIR.format(group="")
    body = body.replace("and.b32 %r24, %r24, 0xFEFFFFFF", "mapa.shared::cluster.u32 %r24, %r24, 1")
    array, out = noise((40, 64)), np.zeros((8, 64), np.uint16)
    body = SYNC + body + WAIT + dump(1024) + "DONE:\n" + SYNC
    options = {"ctas": 2, "target": "sm_100a", "checks": False}
    assert reported(body, out, TensorMap(array, (8, 64)), **options) == ["barrier-misuse"]


def test_rows_are_gathered_and_scattered() -> None:
    rows = (7, -1, 39, 2)
    gather = """
    cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
        [tile], [%d0, {8, 7, -1, 39, 2}], [bar];"""
    scatter = """
    cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
        [%d1, {0, 0, 6, 3, 50}], [tile];"""
    body = first(expect(512) + gather) + WAIT + first(scatter + STORED, "STORED")
    ptx = copy_kernel(body, ("tensor_map", "tensor_map"), target="sm_100a")
    source, target = noise((40, 96)), np.zeros((8, 64), np.uint16)
    maps = (TensorMap(array, (1, 64), swizzle=128) for array in (source, target))
    report = run(ptx, *maps, checks=False)
    assert not report.findings
    expected = np.zeros((8, 64), np.uint16)
    for row, place in zip(rows, (0, 6, 3, 50), strict=True):
        if row >= 0 and place < 8:
            expected[place] = source[row, 8:72]
    assert np.array_equal(target, expected)


def test_a_prefetch_changes_nothing_and_is_checked() -> None:
    tensor_map = TensorMap(noise((40, 64)), (8, 64))
    for column, expected in ((8, []), (3, ["illegal-instruction"])):
        body = first(f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d0, {{{column}, 0}}];")
        assert reported(body, tensor_map) == expected


# ---- every lane of a warp issues the same store

EVERY_LANE = """
    mul.lo.u32 %r22, %r21, 16; add.u32 %r22, %r20, %r22;
    st.shared.v4.u32 [%r22], {%r21, %r21, %r21, %r21};
    fence.proxy.async.shared::cta; bar.sync 0;
    ISSUE
    cp.async.bulk.commit_group; WAITS
    bar.sync 0;
    st.shared.v4.u32 [%r22], {%r20, %r21, %r21, %r21};
"""
TENSOR = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {0, 0}], [tile];"
BULK = "cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], 512;"
ALL_WAIT = "cp.async.bulk.wait_group 0;"


@pytest.mark.parametrize("schedule", ["uniform", "lazy", "eager"])
@pytest.mark.parametrize("issue", [TENSOR, BULK])
@pytest.mark.parametrize("waits", [ALL_WAIT, first(ALL_WAIT)], ids=["all wait", "one waits"])
def test_a_store_that_every_lane_issues_is_for_review(issue: str, schedule: str, waits) -> None:
    """One remark; the lanes, which store the same bytes, do not race with one another."""
    out, other = np.zeros((8, 16), np.uint32), np.zeros((8, 16), np.uint32)
    body = EVERY_LANE.replace("ISSUE", issue).replace("WAITS", waits)
    report = launch(body, TensorMap(out, (8, 16)), other, size=512, schedule=schedule)
    assert [(one.kind, one.severity) for one in report.findings] == [
        ("illegal-instruction", Severity.REVIEW)
    ]
    expected = np.arange(32).repeat(4).reshape(8, 16)
    assert np.array_equal(out if issue is TENSOR else other, expected)


@pytest.mark.parametrize("issue", [TENSOR, BULK])
def test_a_store_that_every_lane_issues_has_to_be_waited_for(issue: str) -> None:
    body = EVERY_LANE.replace("ISSUE", issue).replace("WAITS", "")
    out, other = np.zeros((8, 16), np.uint32), np.zeros((8, 16), np.uint32)
    assert "race" in reported(body + ALL_WAIT, TensorMap(out, (8, 16)), other, size=512)


def test_a_reduction_that_every_lane_issues_counts_32_times() -> None:
    out = np.zeros((8, 16), np.uint32)
    issue = (
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d0, {0, 0}], [tile];"
    )
    body = EVERY_LANE.replace("ISSUE", issue).replace("WAITS", ALL_WAIT)
    assert reported(body, TensorMap(out, (8, 16)), size=512) == ["illegal-instruction"]
    assert np.array_equal(out, 32 * np.arange(32).repeat(4).reshape(8, 16))
