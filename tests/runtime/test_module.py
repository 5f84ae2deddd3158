"""The attributes of launches that may start before the previous one ends; no GPU is needed."""

from __future__ import annotations

from ctypes import string_at

import pytest

from fa4gen.runtime.module import launch_attributes

COOPERATIVE, DEPENDENT = 2, 6
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION."""


@pytest.mark.parametrize(
    ("cooperative", "ids"), [(False, [DEPENDENT]), (True, [DEPENDENT, COOPERATIVE])]
)
def test_each_attribute_is_set(cooperative: bool, ids: list[int]) -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    found = launch_attributes(driver, cooperative=cooperative)
    words = [string_at(one.getPtr(), 12) for one in found]
    assert [int.from_bytes(word[:4], "little") for word in words] == ids
    assert [int.from_bytes(word[8:], "little") for word in words] == [1] * len(ids)
