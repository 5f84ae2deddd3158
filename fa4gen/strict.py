"""Base classes of the config models of every kernel family."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticKnownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Auto = Literal["auto"]


def _whole(value: object) -> object:
    """Refuse 128.0 and true, which Literal would accept as the number that they equal."""
    if isinstance(value, (bool, float)):
        raise PydanticKnownError("int_type")
    return value


Whole = BeforeValidator(_whole)

WORD = "word"
"""The branch of a word in a union of words and of mappings with one key each."""


def branch_by_key(*keys: str) -> Callable[[Any], str | None]:
    """Return the discriminator of a value's branch: that of its key, or of the nearest one.

    Errors within a mapping are then reported for the intended branch.
    """

    def branch(value: Any) -> str | None:
        if isinstance(value, BaseModel):
            return next(iter(type(value).model_fields))
        if not isinstance(value, dict):
            return WORD
        meant = [key for key in keys if key in value]
        if not meant:
            meant = [near for key in value for near in get_close_matches(str(key), keys, 1)]
        return meant[0] if meant else None

    return branch


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions."""

    # A run needs one or two of the models: each is built when it is first used.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    def data(self, *, only_given: bool = False, only_changed: bool = False) -> dict[str, Any]:
        """Return the keys and their values, models within them as mappings, too.

        ``only_given``: without keys that nobody wrote; ``only_changed``: without keys that have
        their default.

        Pydantic's ``model_dump`` would do, but that it drops exceptions of a union's discriminator,
        which Ctrl-C may be, and warns.
        """
        found: dict[str, Any] = {}
        for key, field in type(self).model_fields.items():
            value = getattr(self, key)
            if only_given and key not in self.model_fields_set:
                continue
            if only_changed and not field.is_required() and value == field.get_default():
                continue
            nested = isinstance(value, Strict)
            found[key] = (
                value.data(only_given=only_given, only_changed=only_changed) if nested else value
            )
        return found

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the keys by the docstrings after them.

        Pydantic's own ``use_attribute_docstrings`` would parse the source at every start.
        """
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema).get("properties", {})
        for key, text in _attribute_docstrings(cls).items():
            keys[key]["description"] = text
        return schema


def _attribute_docstrings(model: type[Strict]) -> dict[str, str]:
    """Return the docstrings after the keys of ``model`` and of the models above it."""
    import ast
    import inspect

    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if not issubclass(kind, Strict) or kind is Strict:
            continue
        (tree,) = ast.parse(inspect.getsource(kind)).body
        assert isinstance(tree, ast.ClassDef)
        for key, after in pairwise(tree.body):
            match key, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = inspect.cleandoc(text)
    return found
