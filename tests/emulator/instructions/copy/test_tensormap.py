from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.instructions.copy.copies import (
    WAIT,
    clean,
    dump,
    expect,
    first,
    noise,
    reported,
)

# what a compiler emits for a descriptor made on the device: zeros, then every field
FIELDS = """
    tensormap.replace.tile.global_address.{space}.b1024.b64 [{map}], %d1;
    tensormap.replace.tile.rank.{space}.b1024.b32 [{map}], 1;
    tensormap.replace.tile.box_dim.{space}.b1024.b32 [{map}], 0, 64;
    tensormap.replace.tile.box_dim.{space}.b1024.b32 [{map}], 1, 8;
    tensormap.replace.tile.global_dim.{space}.b1024.b32 [{map}], 0, 64;
    tensormap.replace.tile.global_dim.{space}.b1024.b32 [{map}], 1, 40;
    tensormap.replace.tile.global_stride.{space}.b1024.b64 [{map}], 0, 128;
    tensormap.replace.tile.element_stride.{space}.b1024.b32 [{map}], 0, 1;
    tensormap.replace.tile.element_stride.{space}.b1024.b32 [{map}], 1, 1;
    tensormap.replace.tile.elemtype.{space}.b1024.b32 [{map}], 1;
    tensormap.replace.tile.interleave_layout.{space}.b1024.b32 [{map}], 0;
    tensormap.replace.tile.swizzle_mode.{space}.b1024.b32 [{map}], 0;
    tensormap.replace.tile.fill_mode.{space}.b1024.b32 [{map}], 0;
"""
ZERO = """
    shl.b32 %r22, %r21, 2; add.u32 %r23, %r20, %r22; mov.u32 %r24, 0;
    st.shared.u32 [%r23], %r24;
    bar.warp.sync 0xffffffff;
"""
PUBLISH = """
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
        [%d2], [tile], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;
"""
LOAD = first(
    f"""{expect(1024)}
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
        [tile+1024], [%d2, {{0, 37}}], [bar];""",
    "LOADED",
)
SHOW = WAIT + dump(2048)


def test_a_map_made_in_shared_memory() -> None:
    fields = first(FIELDS.format(space="shared::cta", map="%d5"), "MADE")
    body = ZERO + "cvt.u64.u32 %d5, %r20;" + fields + PUBLISH + LOAD + SHOW
    out, array = np.zeros((2, 8, 64), np.uint16), noise((40, 64))
    space = np.zeros(128, np.uint8)
    clean(body, out, array, space, checks=False)
    assert np.array_equal(out[1, :3], array[37:])
    assert not out[1, 3:].any()


@pytest.mark.parametrize("space", [".global", ""])
def test_a_map_changed_in_global_memory(space: str) -> None:
    fields = FIELDS.replace(".{space}", "{space}").format(space=space, map="%d2")
    body = first(fields, "MADE") + LOAD + SHOW
    out, array = np.zeros((2, 8, 64), np.uint16), noise((40, 64))
    clean(body, out, array, np.zeros(128, np.uint8), checks=False)
    assert np.array_equal(out[1, :3], array[37:])


def test_a_field_that_does_not_fit_is_noticed() -> None:
    fields = FIELDS.format(space="global", map="%d2").replace("[%d2], 0, 64;", "[%d2], 0, 4;", 1)
    body, space = first(fields, "MADE") + LOAD, np.zeros(128, np.uint8)
    assert reported(body, np.zeros(4), noise((40, 64)), space) == ["tensor-map"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tensormap.replace.tile.rank.global.b1024.b32 [%d0+64], 1;", "misaligned"),
        ("tensormap.replace.tile.rank.global.b1024.b32 [%d0+256], 1;", "out-of-bounds"),
        ("mov.u64 %d5, 1088; tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d5], 1;",
         "misaligned"),
    ],
)  # fmt: skip
def test_where_a_map_may_not_be(text: str, kind: str) -> None:
    assert reported(first(text), np.zeros(32)) == [kind]
