"""Schemas of models: what they allow is what the models take."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.strict import Auto, Field, ModelError, Strict
from fa4gen.strict.json_schema import model_schema


class Budget(Strict):
    """Registers of two roles.

    In all.
    """

    one: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    """The first."""
    two: Annotated[int, Field(ge=24)] = 32


class Window(Strict):
    window: Annotated[int, Field(ge=1)] | Budget


class Model(Strict):
    """A model."""

    word: Literal["a", "b"]
    mask: Literal["none"] | Window | Annotated[str, Field(pattern=" ")] = "none"
    budget: Budget | Auto = "auto"
    """The budget that may be used."""
    share: Annotated[float, Field(ge=0, le=1, description="Of one.")] | None = None
    names: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    flag: bool = False


def test_every_part_of_a_schema() -> None:
    assert model_schema(Model) == {
        "$defs": {
            "Budget": {
                "additionalProperties": False,
                "description": "Registers of two roles.\n\nIn all.",
                "properties": {
                    "one": {
                        "description": "The first.",
                        "minimum": 24,
                        "maximum": 256,
                        "multipleOf": 8,
                        "type": "integer",
                    },
                    "two": {"default": 32, "minimum": 24, "type": "integer"},
                },
                "required": ["one"],
                "type": "object",
            },
            "Window": {
                "additionalProperties": False,
                "properties": {
                    "window": {
                        "anyOf": [{"minimum": 1, "type": "integer"}, {"$ref": "#/$defs/Budget"}]
                    }
                },
                "required": ["window"],
                "type": "object",
            },
        },
        "additionalProperties": False,
        "description": "A model.",
        "properties": {
            "word": {"enum": ["a", "b"], "type": "string"},
            "mask": {
                "default": "none",
                "oneOf": [
                    {"const": "none", "type": "string"},
                    {"$ref": "#/$defs/Window"},
                    {"pattern": " ", "type": "string"},
                ],
            },
            "budget": {
                "anyOf": [{"$ref": "#/$defs/Budget"}, {"const": "auto", "type": "string"}],
                "default": "auto",
                "description": "The budget that may be used.",
            },
            "share": {
                "anyOf": [
                    {"description": "Of one.", "maximum": 1, "minimum": 0, "type": "number"},
                    {"type": "null"},
                ],
                "default": None,
            },
            "names": {"default": [], "items": {"minLength": 1, "type": "string"}, "type": "array"},
            "flag": {"default": False, "type": "boolean"},
        },
        "required": ["word"],
        "type": "object",
    }


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-8, 300)
    | st.floats(0, 2).filter(lambda number: number != int(number))
    | st.sampled_from(["a", "b", "none", "auto", "", "a b", "a-b"])
    | st.fixed_dictionaries({"window": st.integers(-1, 3)})
    | st.fixed_dictionaries(
        {"one": st.integers(2, 6).map(lambda n: 8 * n)}, optional={"two": st.integers(20, 30)}
    )
    | st.lists(st.sampled_from(["a", "", 1]), max_size=2)
)


@given(
    st.dictionaries(
        st.sampled_from([*Model.model_fields, "other"]), VALUES, min_size=1
    ).map(lambda data: {"word": "a", **data})
)  # fmt: skip
def test_a_document_fits_the_schema_where_the_model_takes_it(data: dict[str, Any]) -> None:
    try:
        Model.model_validate(data)
    except ModelError:
        taken = False
    else:
        taken = True
    validator = jsonschema.Draft202012Validator(model_schema(Model))
    assert validator.is_valid(data) == taken
