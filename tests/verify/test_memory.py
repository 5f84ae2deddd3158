from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.buffers import GUARD_BYTES
from fa4gen.verify.cases import Case
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.memory import place, read_lse, read_out, rows_before_heads
from fa4gen.verify.rounding import POISON_BITS, bits_dtype, from_bits, to_bits

LAYOUTS = ["bshd", "bhsd", "transposed", "padded", "packed"]
DEPTH = 64


def placed(layout: str, dtype: str = "bf16", *, lse: bool = True, rows: int = 7, keys: int = 7):
    case = Case("c", 2, 4, 2, rows, keys, layout)
    fp8 = dtype == "fp8_e4m3"
    value_depth = 96 if fp8 else DEPTH
    descaled = ("query", "key", "value") if fp8 else ()
    inputs = make_inputs(
        case, DEPTH, dtype, make_rng(1, "c"), value_depth=value_depth, descaled=descaled
    )
    return inputs, place(case, inputs, dtype, lse=lse, out_dtype="fp16" if fp8 else None)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8_e4m3"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_hold_the_inputs(layout, dtype) -> None:
    inputs, memory = placed(layout, dtype)
    for name in ("query", "key", "value"):
        view = memory.views[name]
        array = from_bits(view.bits(memory.buffers[view.buffer]), dtype)
        np.testing.assert_array_equal(rows_before_heads(memory, array), getattr(inputs, name))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_are_poisoned_and_everything_else_is_guarded(layout) -> None:
    _, memory = placed(layout)
    for name, shape in (("out", (2, 7, 4, DEPTH)), ("lse", (2, 4, 7))):
        view = memory.views[name]
        image = memory.buffers[view.buffer]
        bits = view.bits(image)
        assert (
            rows_before_heads(memory, bits).shape == shape if name == "out" else bits.shape == shape
        )
        assert (bits == POISON_BITS[view.dtype]).all()
        mask = memory.outside(name)
        assert (image[mask] == 0xA5).all()
        assert (~mask).sum() == bits.nbytes
        assert mask[:GUARD_BYTES].all()
        assert mask[-GUARD_BYTES:].all()


def test_padded_axes_of_one_element_have_odd_strides() -> None:
    case = Case("c", 1, 2, 1, 7, 9, "padded")
    inputs = make_inputs(case, DEPTH, "bf16", make_rng(1, "c"))
    memory = place(case, inputs, "bf16", lse=True)
    for name in ("query", "key", "value", "out"):
        view = memory.views[name]
        steps = dict(zip(("batch", "row", "head", "column"), view.strides, strict=True))
        assert steps["batch"] % 16, name
        assert bool(steps["head"] % 16) is (view.shape[2] == 1), name
        assert (steps["row"] % 16, steps["column"]) == (0, 2), name
    for name in ("query", "key", "value"):
        view = memory.views[name]
        array = from_bits(view.bits(memory.buffers[view.buffer]), "bf16")
        np.testing.assert_array_equal(array, getattr(inputs, name))


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_are_surrounded_by_nan(layout, dtype) -> None:
    _, memory = placed(layout, dtype)
    inputs = [view for name, view in memory.views.items() if name not in ("out", "lse")]
    for one in inputs:
        image = memory.buffers[one.buffer].copy()
        for view in memory.views.values():
            if view.buffer == one.buffer:
                view.bits(image)[...] = POISON_BITS[one.dtype]
        assert (image.view(bits_dtype(one.dtype)) == POISON_BITS[one.dtype]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_of_fp8_have_the_depth_of_values_and_a_type_of_their_own(layout) -> None:
    _, memory = placed(layout, "fp8_e4m3")
    view = memory.views["out"]
    bits = view.bits(memory.buffers["out"])
    assert rows_before_heads(memory, bits).shape == (2, 7, 4, 96)
    assert view.dtype == "fp16"
    assert (bits == POISON_BITS["fp16"]).all()
    assert (~memory.outside("out")).sum() == 2 * 7 * 4 * 96 * 2


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_launcher_takes_the_views(layout, dtype, make_plan) -> None:
    """The launcher's own checks, on the addresses that these views have in aligned buffers."""
    from fa4gen.runtime.arguments import DESCALES, DTYPE_NAMES, Arguments, check_arguments
    from fa4gen.runtime.tensor_view import TensorView

    _, memory = placed(layout, dtype)
    starts = {name: 1 << 20 << number for number, name in enumerate(memory.buffers)}
    names = {**DTYPE_NAMES, "fp32": "float32"}
    views = {
        name: TensorView(starts[v.buffer] + v.offset, v.shape, v.strides, names[v.dtype], 0)
        for name, v in memory.views.items()
    }
    arguments = Arguments(
        views["query"],
        views["key"],
        views["value"],
        views["out"],
        views["lse"],
        0.125,
        memory.layout,
        *(views.get(name) for name in DESCALES),
    )
    plan = make_plan()
    if dtype == "fp8_e4m3":
        plan = make_plan(arch="sm_100a", dtype=dtype, out_dtype="fp16", value_depth=96)
    checked = check_arguments(plan, arguments)
    assert checked.size.query_rows == 7
    assert checked.size.query_heads == 4


def test_layouts_are_what_they_say() -> None:
    strides = {layout: placed(layout)[1].views["query"].strides for layout in LAYOUTS}
    row = 2 * 4 * DEPTH
    assert strides["bshd"] == (7 * row, row, 2 * DEPTH, 2)
    assert strides["bhsd"] == (7 * row, 7 * 2 * DEPTH, 2 * DEPTH, 2)
    assert strides["transposed"] == (7 * row, 2 * DEPTH, 7 * 2 * DEPTH, 2)
    assert strides["padded"][1] > row
    assert strides["padded"][0] > 7 * strides["padded"][1]
    assert strides["packed"][1] == 2 * (4 + 2 + 2) * DEPTH
    assert placed("padded")[1].views["query"].offset % 32 == 16
    packed = placed("packed")[1].views
    assert packed["query"].buffer == packed["key"].buffer == packed["value"].buffer


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_written_is_read_back(layout) -> None:
    inputs, memory = placed(layout)
    after = {name: image.copy() for name, image in memory.buffers.items()}
    bits = memory.views["out"].bits(after["out"])
    wanted = to_bits(inputs.query, "bf16")
    bits[...] = rows_before_heads(memory, wanted) if memory.layout == "bhsd" else wanted
    np.testing.assert_array_equal(read_out(memory, after), inputs.query)
    lse = np.arange(2 * 4 * 7, dtype=np.float32).reshape(2, 4, 7)
    memory.views["lse"].bits(after["lse"]).view(np.float32)[...] = lse
    np.testing.assert_array_equal(read_lse(memory, after), lse)


def test_as_many_rows_as_heads_are_still_swapped() -> None:
    case = Case("x", 2, 3, 3, 3, 3, "bhsd")
    inputs = make_inputs(case, DEPTH, "bf16", make_rng(1, "x"))
    memory = place(case, inputs, "bf16", lse=False)
    for name in ("query", "key", "value"):
        view = memory.views[name]
        held = from_bits(view.bits(memory.buffers[view.buffer]), "bf16")
        np.testing.assert_array_equal(held.swapaxes(1, 2), getattr(inputs, name))


def test_without_lse() -> None:
    _, memory = placed("bshd", lse=False)
    assert "lse" not in memory.views
    assert read_lse(memory, memory.buffers) is None


@pytest.mark.parametrize("layout", ["bshd", "bhsd", "padded"])
@pytest.mark.parametrize(("rows", "keys"), [(0, 5), (5, 0), (0, 0)])
def test_empty_tensors(layout, rows, keys) -> None:
    _, memory = placed(layout, rows=rows, keys=keys)
    for view in memory.views.values():
        assert view.bits(memory.buffers[view.buffer]).shape == view.shape
    assert memory.outside("out").sum() >= 2 * GUARD_BYTES


def test_packed_tensors_have_the_same_rows() -> None:
    with pytest.raises(ValueError, match="same number of rows"):
        placed("packed", rows=7, keys=8)


def test_the_default_scale_is_left_to_the_launcher() -> None:
    assert placed("bshd")[1].softmax_scale is None
    case = Case("c", 1, 1, 1, 2, 2, softmax_scale=0.5)
    inputs = make_inputs(case, DEPTH, "bf16", make_rng(1, "c"))
    assert place(case, inputs, "bf16", lse=True).softmax_scale == 0.5
