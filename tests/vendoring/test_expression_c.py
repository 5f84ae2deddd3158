"""Conditions as C for the self-test: each gives what its definition gives in NumPy."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.masks.expression import parse_mask
from fa4gen.vendoring.expression_c import HELPERS, expression_in_c, helpers_of
from fa4gen.vendoring.host_build import compile_c, find_c_compiler

if TYPE_CHECKING:
    from pathlib import Path

CONDITIONS = (
    "key <= query and (query - key < 60 or key < 4)",
    "key <= query or key < 256",
    "abs(query - key) < 9 or key % 7 == 2 and query // 3 > key // 5",
    "min(key, query) % 5 < max(2, query - key) % 3",
    "not (key == query or key > query + 8)",
    "query % 4 == key % 4 and query // 4 >= key // 4",
)
FLAGS = ("-std=c99", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Werror")


@pytest.mark.parametrize("text", CONDITIONS)
def test_the_c_is_the_definition(text: str, tmp_path: Path) -> None:
    mask = parse_mask(text)
    condition = expression_in_c(mask.tree)
    helpers = [
        f"static int64_t {name}(int64_t x{', int64_t y' if name != 'size_of' else ''}) "
        f"{{ return {HELPERS[name]}; }}\n"
        for name in helpers_of([condition])
    ]
    source = tmp_path / "sees.c"
    source.write_text(
        f"#include <stdint.h>\n{''.join(helpers)}"
        "int sees(int64_t query, int64_t key);\n"
        f"int sees(int64_t query, int64_t key) {{ return {condition}; }}\n"
    )
    try:
        compile_c(find_c_compiler(), FLAGS, [source], tmp_path / "sees.so")
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    sees = ctypes.CDLL(str(tmp_path / "sees.so")).sees
    sees.argtypes = (ctypes.c_int64, ctypes.c_int64)
    queries, keys = np.arange(-40, 90), np.arange(300)
    expected = np.broadcast_to(
        mask.sees_within(queries[:, None], keys, np), (len(queries), len(keys))
    )
    found = np.array([[sees(int(query), int(key)) for key in keys] for query in queries])
    assert (found.astype(bool) == expected).all()
    assert 0 < found.sum() < found.size
