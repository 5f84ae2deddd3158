"""Plans that the tests of the runtime work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.views import make_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan


@pytest.fixture(name="make_plan")
def make_plan_fixture() -> Callable[..., AttentionPlan]:
    return make_plan


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")
