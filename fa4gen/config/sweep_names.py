"""Names of a sweep's cases, made of a prefix and of what varies; always the same, all different."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_LENGTH = 100
"""The longest name that the config schema allows."""
_DIGEST = 8
_SHORT = {
    "depth": "d",
    "cta_group": "cta",
    "num_consumer_warpgroups": "wg",
    "num_kv_stages": "kv",
    "num_stages": "stages",
    "num_epi_stages": "epi",
    "num_out_stages": "out",
    "num_accum_stages": "accum",
    "stage_stride_cols": "stride",
    "num_pv_chunks_in_flight": "pv",
    "rescale_threshold": "rescale",
    "sliding_window": "window",
}
_VAGUE = {"none", "auto", "null", "true", "false", "empty", "k", "m", "n"}
"""Words that mean nothing without their key."""


def case_names(base: str, varied: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each mapping of varied keys: hopper_d64_causal.

    All are kernel names (lower-case letters, digits, _). Where two would be alike, or one too
    long, a digest of the values is appended; equal mappings get equal names.
    """
    prefix = word(base)
    if not prefix[:1].isalpha():
        prefix = f"sweep_{prefix}".rstrip("_")
    plain = ["_".join([prefix, *(_part(key, value) for key, value in v.items())]) for v in varied]
    times = Counter(plain)
    return [
        name if len(name) <= MAX_LENGTH and times[name] == 1 else _with_digest(name, values)
        for name, values in zip(plain, varied, strict=True)
    ]


def word(text: str) -> str:
    """Return ``text`` in the characters of a name; may be empty."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _part(key: str, value: Any) -> str:
    """Return how ``value`` appears in a name: d64, bf16, no_overlap, mask_none."""
    key = _SHORT.get(key, word(key))
    if isinstance(value, bool):
        return key if value else f"no_{key}"
    text = _value_word(value)
    if text[:1].isdigit():
        return f"{key}{text}"
    alone = isinstance(value, str) or (isinstance(value, dict) and len(value) == 1)
    if alone and text not in _VAGUE:
        return text
    return f"{key}_{text}"


def _value_word(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)  # in a list
    if isinstance(value, (int, float)):
        number = f"{value:g}" if isinstance(value, float) else str(value)
        return word(number.replace("-", "m").replace(".", "p").replace("+", ""))
    if isinstance(value, dict):
        return "_".join(_part(key, item) for key, item in value.items()) or "empty"
    if isinstance(value, list):
        return "_".join(_value_word(item) for item in value) or "empty"
    return word(str(value)) or "empty"


def _with_digest(name: str, values: Mapping[str, Any]) -> str:
    content = json.dumps(values, sort_keys=True, default=str).encode()
    digest = hashlib.sha256(content).hexdigest()[:_DIGEST]
    return f"{name[: MAX_LENGTH - _DIGEST - 1].rstrip('_')}_{digest}"
