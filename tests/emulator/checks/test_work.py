"""Outputs that stay unwritten."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import Report, TensorMap
from fa4gen.emulator.errors import LaunchError
from tests.emulator.instructions.copy.copies import STORED, copy_kernel, first
from tests.emulator.kernel import kernel, run

# thread t stores to word t, two words on from there for odd threads
STORE = """
    mov.u32 %r20, %tid.x; mul.wide.u32 %d5, %r20, 4; add.u64 %d5, %d5, %d0;
    setp.lt.u32 %p1, %r20, COUNT;
    @%p1 st.global.u32 [%d5], %r20;
"""


def unwritten(report: Report) -> list[str]:
    assert {one.kind for one in report.findings} <= {"unwritten-output"}, str(report)
    assert {one.severity.value for one in report.findings} <= {"review"}
    return [one.message for one in report.findings]


@pytest.mark.parametrize(("count", "missing"), [(32, 0), (31, 1), (5, 27)])
def test_elements_that_nobody_writes(count: int, missing: int) -> None:
    """A written zero is written."""
    out = np.zeros(32, np.uint32)
    messages = unwritten(run(kernel(STORE.replace("COUNT", str(count))), out, outputs=[out]))
    expected = f"{missing} of 32 elements of p0 were never written, the first at index {count}"
    assert messages == ([expected] if missing else [])


def test_only_what_is_called_an_output_is_watched() -> None:
    ptx = kernel(STORE.replace("COUNT", "3"))
    assert unwritten(run(ptx, np.zeros(32, np.uint32))) == []
    out = np.zeros(32, np.uint32)
    assert unwritten(run(ptx, out, outputs=[out], checks=["races"])) == []
    with pytest.raises(LaunchError, match="very objects"):
        run(ptx, out, outputs=[out.copy()])


def test_a_view_has_to_be_written_where_it_is() -> None:
    """Every other element, from the end; what lies between may stay as it is."""
    base = np.zeros(64, np.uint32)
    view = base[62::-2]
    body = """
    mov.u32 %r20, %tid.x; mul.wide.u32 %d5, %r20, 8; sub.u64 %d5, %d0, %d5;
    st.global.u32 [%d5], %r20;
"""
    assert unwritten(run(kernel(body), view, outputs=[view])) == []
    assert base[62] == 0
    assert base[60] == 1
    short = unwritten(run(kernel(body), view, outputs=[view], block=30))
    assert short == ["2 of 32 elements of p0 were never written, the first at index 30"]


@pytest.mark.parametrize(
    "store",
    [
        "st.global.v4.u32 [%d5], {%r20, %r20, %r20, %r20};",
        "red.global.add.u32 [%d5], 1; red.global.add.u32 [%d5+4], 1;"
        "red.global.max.u32 [%d5+8], 1; atom.global.exch.b32 %r1, [%d5+12], 1;",
    ],
    ids=["vector", "atomic"],
)
def test_every_way_to_write(store: str) -> None:
    body = f"mov.u32 %r20, %tid.x; mul.wide.u32 %d5, %r20, 16; add.u64 %d5, %d5, %d0; {store}"
    out = np.zeros(128, np.uint32)
    assert unwritten(run(kernel(body), out, outputs=[out])) == []
    assert unwritten(run(kernel(body), out, outputs=[out], block=31)) == [
        "4 of 128 elements of p0 were never written, the first at index 124"
    ]


@pytest.mark.parametrize("schedule", ["lazy", "eager"])
def test_bulk_and_tensor_stores(schedule: str) -> None:
    """A tensor of 20 by 40 in boxes of 8 by 16: the last of the second row is left out."""
    fill = "st.shared.u32 [%r22], 7; fence.proxy.async.shared::cta; bar.sync 0;"
    places = "mad.lo.u32 %r22, %r21, 4, %r20;"
    boxes = [(x, y) for y in (0, 8, 16) for x in (0, 16, 32) if (x, y) != (32, 8)]
    stores = "".join(
        f"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {{{x}, {y}}}], [tile];"
        for x, y in boxes
    )
    out, other = np.zeros((20, 40), np.uint32), np.zeros(128, np.uint32)
    stores += "cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], 256;"
    body = places + fill + first(stores + STORED)
    ptx = copy_kernel(body, ("tensor_map", "u64"), 512)
    report = run(
        ptx, TensorMap(out, (8, 16)), other, block=128, outputs=[out, other], schedule=schedule
    )
    assert unwritten(report) == [
        "64 of 800 elements of p0 were never written, the first at index (8, 32)",
        "64 of 128 elements of p1 were never written, the first at index 64",
    ]
    assert (out == 0).sum() == 64
