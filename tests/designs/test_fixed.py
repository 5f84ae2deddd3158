"""Keys that a design has no choice for: the value that follows may be given, others are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import MODELS
from fa4gen.errors import ConfigError
from tests.designs.values import some_values

if TYPE_CHECKING:
    from fa4gen.designs.registry import ConfigModel
    from fa4gen.strict import FixedKey

DEPTHS = {"attention_sm90": 128, "attention_sm100": 128, "attention_decode": 128}
FIXED = [(row, fixed) for row in MODELS for fixed in row.load().FIXED]
IDS = [f"{row.design.name}-{row.archs[0]}-{fixed.key}" for row, fixed in FIXED]


def base(row: ConfigModel) -> dict[str, Any]:
    """A config of the model with its required keys alone."""
    keys = {"kernel": row.design.family.name, "arch": row.archs[0], "dtype": "bf16"}
    for key, field in row.load().model_fields.items():
        if field.is_required() and key not in (*keys, "name"):
            values = some_values(field.kind)
            keys[key] = DEPTHS.get(row.design.name, values[0]) if key == "depth" else values[0]
    return keys


def others(row: ConfigModel, fixed: FixedKey) -> list[Any]:
    """Values that a sibling gives the key, and that it may not have here."""
    fields = (
        other.load().model_fields.get(fixed.key) for other in MODELS if other.archs == row.archs
    )
    values = (value for field in fields if field for value in some_values(field.kind))
    return [value for value in values if not fixed.takes(value)]


@pytest.mark.parametrize(("row", "fixed"), FIXED, ids=IDS)
def test_the_fixed_value_may_be_given_and_changes_nothing(
    row: ConfigModel, fixed: FixedKey
) -> None:
    plain = load_mapping(base(row), "any").config
    for value in fixed.values:
        assert load_mapping({**base(row), fixed.key: value}, "any").config == plain
    assert build_plan(plain)


@pytest.mark.parametrize(("row", "fixed"), FIXED, ids=IDS)
def test_another_value_is_refused_with_the_reason(row: ConfigModel, fixed: FixedKey) -> None:
    found = others(row, fixed)
    assert found
    for value in found:
        with pytest.raises(ConfigError) as caught:
            load_mapping({**base(row), fixed.key: value}, "any")
        [problem] = caught.value.problems
        assert problem.key == fixed.key
        assert problem.message.startswith(row.load().WHAT)
        assert problem.message.endswith(f": {fixed.because}")
        assert problem.remedy.startswith(f"Set {fixed.key}: ")
