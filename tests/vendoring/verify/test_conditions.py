"""A kernel whose mask is a condition, launched by the folder's own C code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.verify.cases import Case
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import LAUNCHER

if TYPE_CHECKING:
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

CASE = Case("keys", 1, 2, 1, 70, 200)


def test_the_launcher_as_it_is_passes(conditions: Builds) -> None:
    assert conditions.refusals("sinking", CASE) == []


def test_a_wrong_launcher_is_refused(conditions: Builds) -> None:
    rows = "values->key_rows = (int32_t)size->key_rows;"
    edit = Edit(LAUNCHER, rows, rows.replace(";", " - 1;"))
    assert "numbers" in "\n".join(conditions.refusals("sinking", CASE, edit))
