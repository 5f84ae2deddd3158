"""Parameters are in memory as the kernel reads them, in the plan's order."""

from __future__ import annotations

import ctypes
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.designs.common.model import Parameter
from fa4gen.runtime.parameters import SLOT_ALIGNMENT, pack, to_bytes
from tests.runtime.views import make_plan

MAP = bytes(range(128))


def test_values_are_found_by_name_and_laid_out_in_order():
    rows = [
        Parameter("a_map", "const __grid_constant__ TensorMap", ""),
        Parameter("data", "float* __restrict__", ""),
        Parameter("rows", "int32", ""),
        Parameter("stride", "int64", ""),
        Parameter("scale", "float", ""),
    ]
    values = {"scale": 0.5, "rows": -3, "a_map": MAP, "stride": -(2**40), "data": 2**47 + 16}
    block = pack(rows, {**values, "not asked for": 1})
    pointers = (ctypes.c_void_p * len(rows)).from_address(block.address)
    assert ctypes.string_at(pointers[0], 128) == MAP
    assert pointers[0] % SLOT_ALIGNMENT == 0
    assert struct.unpack("<Q", ctypes.string_at(pointers[1], 8)) == (2**47 + 16,)
    assert struct.unpack("<i", ctypes.string_at(pointers[2], 4)) == (-3,)
    assert struct.unpack("<q", ctypes.string_at(pointers[3], 8)) == (-(2**40),)
    assert struct.unpack("<f", ctypes.string_at(pointers[4], 4)) == (0.5,)
    assert block.value(4, 4) == struct.pack("<f", 0.5)


def test_a_parameter_without_a_value_is_an_error():
    with pytest.raises(KeyError, match="rows"):
        pack([Parameter("rows", "int32", "")], {})


@pytest.mark.parametrize(
    ("c_type", "value", "error"),
    [
        ("int32", 2**31, OverflowError),
        ("int64", 2**63, OverflowError),
        ("uint16* __restrict__", -1, OverflowError),
        ("const __grid_constant__ TensorMap", b"short", TypeError),
        ("const __grid_constant__ TensorMap", 7, TypeError),
        ("int32", MAP, TypeError),
        ("double", 1.0, TypeError),
    ],
)
def test_values_that_do_not_fit_are_refused(c_type, value, error):
    with pytest.raises(error):
        to_bytes(c_type, value)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers_come_back(small, large):
    assert struct.unpack("<i", to_bytes("int32", small)) == (small,)
    assert struct.unpack("<q", to_bytes("int64", large)) == (large,)


@pytest.mark.parametrize("epilogue", ["direct", "tma_store"])
@pytest.mark.parametrize("softcap", [None, 30.0])
def test_every_parameter_type_of_the_plans_is_known(epilogue, softcap):
    plan = make_plan(epilogue=epilogue, softcap=softcap, overlap_epilogue=False)
    sizes = {"TensorMap": 128, "*": 8, "int32": 4, "int64": 8, "float": 4}
    for row in plan.parameters:
        kind = next(
            word for word in ("TensorMap", "*", "int32", "int64", "float") if word in row.c_type
        )
        assert len(to_bytes(row.c_type, MAP if kind == "TensorMap" else 1)) == sizes[kind]
