"""Models of what users write: typed classes that refuse unknown keys and silent conversions.

A class below ``Strict`` names its keys by annotations, of which ``kinds`` makes what checks a
value and ``json_schema`` what editors read. Only what a document gives is checked, and only the
annotations of those keys are looked at: a run starts quickly.
"""

from __future__ import annotations

from typing import Literal

from fa4gen.strict.kinds import Fault, Field, FixedKey, KeyPath, Named, Read
from fa4gen.strict.model import ModelError, ModelField, Strict, rule

__all__ = [
    "Auto",
    "Fault",
    "Field",
    "FixedKey",
    "KeyPath",
    "ModelError",
    "ModelField",
    "Named",
    "Read",
    "Strict",
    "rule",
]

Auto = Literal["auto"]
