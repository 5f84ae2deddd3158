"""JSON Schemas of models: what editors show, and what messages about wrong values say."""

from __future__ import annotations

from itertools import pairwise
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_origin

from fa4gen.strict.kinds import (
    Anything,
    ByName,
    Choice,
    Converted,
    Either,
    Field,
    Kind,
    Listing,
    Scalar,
)
from fa4gen.strict.kinds import Mapping as Keys
from fa4gen.strict.model import Strict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Node = dict[str, Any]
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}
_LIMITS = {
    "ge": "minimum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
    "description": "description",
}


def model_schema(model: type[Strict]) -> Node:
    """Return the schema of ``model``, the models within it as ``$defs``."""
    definitions: dict[str, Node] = {}
    own = _object(model, definitions)
    del definitions[model.__name__]
    return {**({"$defs": dict(sorted(definitions.items()))} if definitions else {}), **own}


def union_schema(families: Mapping[str, Sequence[type[Strict]]]) -> Node:
    """Return the schema of any model of ``families``."""
    definitions: dict[str, Node] = {}
    branches: list[Node] = [
        {"oneOf": [_reference(model, definitions) for model in models]}
        for models in families.values()
    ]
    return {"$defs": dict(sorted(definitions.items())), "oneOf": branches}


def _reference(model: type[Strict], definitions: dict[str, Node]) -> Node:
    if model.__name__ not in definitions:
        _object(model, definitions)
    return {"$ref": f"#/$defs/{model.__name__}"}


def _object(model: type[Strict], definitions: dict[str, Node]) -> Node:
    import inspect

    found: Node = {"additionalProperties": False}
    definitions[model.__name__] = found
    if model.__doc__:
        found["description"] = inspect.cleandoc(model.__doc__)
    docstrings = _attribute_docstrings(model)
    properties = {}
    for key, field in model.model_fields.items():
        node = _schema(field.kind, definitions)
        node |= _description(field.annotation)
        if key in docstrings:
            node["description"] = docstrings[key]
        if not field.is_required():
            node["default"] = _plain(field.get_default())
        properties[key] = dict(sorted(node.items()))
    for row in model.FIXED:
        allowed = {"const": row.values[0]} if len(row.values) == 1 else {"enum": list(row.values)}
        properties[row.key] = {"description": f"Fixed: {row.because}.", **allowed}
    found["properties"] = properties
    required = [key for key, field in model.model_fields.items() if field.is_required()]
    if required:
        found["required"] = required
    found["type"] = "object"
    return found


def _description(annotation: Any) -> Node:
    """Return the description that an ``Annotated`` brings along."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    texts = [extra.description for extra in extras if isinstance(extra, Field)]
    return {"description": texts[-1]} if any(texts[-1:]) else {}


def _schema(kind: Kind, definitions: dict[str, Node]) -> Node:
    match kind:
        case Choice(values=(value,)):
            return {"const": value, "type": _TYPES[type(value)]}
        case Choice(values=values):
            (kind_of_all,) = {_TYPES[type(value)] for value in values}
            return {"enum": list(values), "type": kind_of_all}
        case Scalar(type=python, limits=limits):
            given = {name: getattr(limits, key) for key, name in _LIMITS.items()}
            return _sorted({name: v for name, v in given.items() if v not in (None, "")}, python)
        case Listing(item=item, limits=limits):
            lengths = {"minItems": limits.min_length, "maxItems": limits.max_length}
            given = {name: n for name, n in lengths.items() if n is not None}
            return {"items": _schema(item, definitions), **given, "type": "array"}
        case ByName(item=item):
            return {"additionalProperties": _schema(item, definitions), "type": "object"}
        case Keys(model=model):
            return _reference(cast("type[Strict]", model), definitions)
        case Converted(kind=inner, by=by):
            node = _schema(inner, definitions)
            others = [{"type": _TYPES[also]} for also in by.also]
            return {"anyOf": [node, *others]} if others else node
        case Anything():
            return {}
        case Either(kinds=kinds):
            word = "oneOf" if kind.by_key else "anyOf"
            return {word: [_schema(one, definitions) for one in kinds]}
    raise TypeError(f"{kind} has no schema")


def _plain(default: Any) -> Any:
    if isinstance(default, Strict):
        return default.data()
    return list(default) if isinstance(default, tuple) else default


def _sorted(limits: Node, python: type) -> Node:
    return dict(sorted({**limits, "type": _TYPES[python]}.items()))


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
