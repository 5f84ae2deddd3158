"""Plans and views that the tests of the runtime work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan


def make_plan(**keys: Any) -> AttentionPlan:
    config = {"kernel": "attention", "name": "probe", "arch": "sm_90a", "dtype": "bf16"}
    config |= {"depth": 128, **keys}
    return build_plan(validated(config))


@pytest.fixture(name="make_plan")
def make_plan_fixture() -> Callable[..., AttentionPlan]:
    return make_plan
