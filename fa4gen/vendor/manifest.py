"""A kernel's manifest as a vendored folder holds it.

It has what the folder needs: the config, the hashes of the kernel's files, and the plan as far as
it shows what another fa4gen would plan otherwise. The launcher's C has the numbers that callers
need, the lock the hash of the templates.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fa4gen.config.load import config_from_data
from fa4gen.errors import ConfigError
from fa4gen.render.manifest import CHOICE, config_data, sealed, sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP = ""
"""Before a key of an inner mapping."""
CONFIG = "config"
LONGEST = 48
"""Characters of a value of the plan that stands there itself."""
HASH_CHARACTERS = 8
NAMES = ("name", "entry_point")
"""Of the plan."""
_USUAL_DEFAULTS = (None, "auto", "none", False)


def short_manifest(text: str) -> str:
    """Return the manifest ``text`` without what it was made from, its plan short; a key is a line.

    Of the config it has what is no default: the lock has all of it, and hashes.
    """
    manifest = json.loads(text)
    del manifest["inputs"]
    if not manifest.get(CHOICE, {}).get("set"):
        manifest.pop(CHOICE, None)  # the first candidate
    short = {
        **manifest,
        CONFIG: short_config(manifest[CONFIG]),
        "plan": short_plan(manifest["plan"], manifest[CONFIG]),
    }
    return _lines(sealed(short), 0) + "\n"


def short_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``config`` without the values that its defaults have."""
    short = {key: value for key, value in config.items() if value not in _USUAL_DEFAULTS}
    whole = config_data(config_from_data(short, config["name"], "manifest"))
    missing = {key: value for key, value in config.items() if whole.get(key, short) != value}
    short |= missing
    for key in [key for key in short if key != "name"]:
        fewer = {name: value for name, value in short.items() if name != key}
        with suppress(ConfigError):
            if config_data(config_from_data(fewer, config["name"], "manifest")) == config:
                short = fewer
    return short


def short_plan(plan: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``plan`` with hashes in the place of its tables and other long values.

    What it lacks (nothing, false, an empty list) is left out, what the config says alike, and the
    names that follow from the config's.
    """
    return {
        key: value if len(_flat(value)) <= LONGEST else f"sha256:{_digest(value)}"
        for key, value in plan.items()
        if value is not None and value is not False and value != [] and config.get(key) != value
        if key not in NAMES
    }


def _digest(value: Any) -> str:
    return sha256(_flat(value))[:HASH_CHARACTERS]


def _lines(value: Any, depth: int) -> str:
    """Return JSON with a line for each key of a mapping and of those that it holds.

    The config is one line: the lock has it with a line for each key.
    """
    if not isinstance(value, dict) or not value or depth > 1:
        return _flat(value)
    inner = "\n" + STEP * (depth + 1)
    rows = (
        f"{_flat(key)}: {_flat(row) if key == CONFIG else _lines(row, depth + 1)}"
        for key, row in value.items()
    )
    return f"{{{inner}{f',{inner}'.join(rows)}\n{STEP * depth}}}"


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of short plans are alike; older folders have longer hashes."""
    if isinstance(one, str) and isinstance(other, str) and one.startswith("sha256:"):
        length = min(len(one), len(other))
        return one[:length] == other[:length]
    return bool(one == other)
