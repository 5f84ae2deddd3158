"""The manifest N.json: a kernel's sources, its plan, and the hashes of its files.

It says nothing about when, where or by whom, and how far the kernel is proved only as far as
rendering goes: ``"proof": "rendered"``. ``recorded_proof`` has what verifying may add.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.json_text import parse_json
from fa4gen.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.plans import Plan

SCHEMA_VERSION = 1
SEAL = "manifest_sha256"
PROOF = "proof"
VERIFIED = "verified"
CHOICE = "choice"
"""See ``choice``: of the plan's first candidate, of which no compiler said anything, as it is."""
RENDERED = "rendered"
OWN_TEMPLATES = "own_templates"
HASHES = "hashes.json"
"""The file in an output folder that keeps hashes of kernels without files: see ``hashes``."""
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def sha256(data: str | bytes) -> str:
    """Return the hash in hexadecimal; of text, in UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


class _Named(Protocol):
    """A kernel or its config."""

    @property
    def arch(self) -> str:
        """Its architecture."""

    @property
    def name(self) -> str:
        """Its name."""


def folder_of(kernel: _Named) -> str:
    """Return the folder of a kernel's files, relative to the output folder."""
    return f"{kernel.arch}/{kernel.name}"


def config_sha256(config: KernelConfig) -> str:
    """Return the hash of the validated config as compact JSON with sorted keys.

    Comments, key order and spelled-out defaults do not change it; the manifest holds the hashed
    object.
    """
    return canonical_sha256(config_data(config))


def config_data(config: KernelConfig) -> dict[str, Any]:
    """Return the keys of the validated config that have another value than their default.

    JSON data in the model's order: keys that models get later change no hash.
    """
    return config.data(only_changed=True)


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON data, in the order of its fields."""
    return {name: json_data(value) for name, value in plan.recorded}


def manifest_text(
    plan: Plan,
    config: KernelConfig,
    generator: str,
    templates: Mapping[str, str],
    files: Mapping[str, str],
    own_templates: Mapping[str, str],
) -> str:
    """Return the text of N.json. ``templates``: hashes by name; ``files``: texts by name.

    Of the templates it has one hash, which changes with each that was read; of
    ``own_templates``, those among them that are the user's, it has each, and no key without any.
    """
    manifest: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "generator": generator,
        "name": plan.name,
        "config": config_data(config),
        "plan": plan_data(plan),
        "inputs": {
            "config_sha256": config_sha256(config),
            "templates_sha256": canonical_sha256(dict(templates)),
            **({OWN_TEMPLATES: dict(own_templates)} if own_templates else {}),
        },
        CHOICE: {"set": {}, "compiler": "", "left": []},
        "files": {name: sha256(text) for name, text in files.items()},
        PROOF: RENDERED,
    }
    return manifest_json(sealed(manifest))


def manifest_json(manifest: Mapping[str, Any]) -> str:
    """Return a manifest as the text of its file."""
    return json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``manifest`` with a last key that hashes all others: an edit of one shows."""
    others = {key: value for key, value in manifest.items() if key != SEAL}
    return {**others, SEAL: canonical_sha256(others)}


@dataclasses.dataclass(frozen=True)
class RecordedKernel:
    """The record of a manifest on disk about the files next to it."""

    name: str
    kernel: str
    arch: str
    files: Mapping[str, str]
    """SHA-256 by file name, the manifest itself not among them."""


def intact_manifest(data: bytes | None) -> dict[str, Any] | None:
    """Return the manifest in ``data`` without its seal; None where it is edited or not one."""
    try:
        manifest = parse_json(data or b"")
        claimed = manifest.pop(SEAL)
        intact = claimed == canonical_sha256(manifest)
        return manifest if intact and manifest["schema_version"] == SCHEMA_VERSION else None
    except (ValueError, KeyError, TypeError, AttributeError):  # not JSON, or not of this shape
        return None


def read_manifest(path: Path) -> RecordedKernel | None:
    """Return the record of the manifest at ``path``; None when absent, edited or not a manifest.

    A manifest counts only as written: one byte of its content changed, and it records nothing.
    """
    try:
        manifest = intact_manifest(path.read_bytes())
        if manifest is None:
            return None
        files = {str(name): str(digest) for name, digest in manifest["files"].items()}
        if not all(map(_FILE_NAME.fullmatch, files)):  # of the folder itself
            return None
        config = manifest["config"]
        return RecordedKernel(manifest["name"], config["kernel"], config["arch"], files)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (KeyError, TypeError, AttributeError):  # not of this shape
        return None


def json_data(value: Any) -> Any:
    """Return dataclasses, models, mappings and sequences as JSON data; TypeError for others."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value} cannot be written as JSON")
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: json_data(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): json_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_data(item) for item in value]
    if isinstance(value, Strict):
        return value.data()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def canonical_sha256(data: Any) -> str:
    """Return the hash of JSON data in compact form with sorted keys."""
    return sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False))


def with_proof_on_disk(rendered: str, on_disk: bytes | None) -> str:
    """Return the rendered manifest with the proof that the one on disk has for the same files."""
    found = intact_manifest(on_disk)
    if found is None or VERIFIED not in found:
        return rendered
    data = parse_json(rendered.encode())
    if data["files"] != found.get("files"):
        return rendered
    return with_proof_values(data, found.get(PROOF), found[VERIFIED])


def with_proof_values(manifest: Mapping[str, Any], proof: object, verified: object) -> str:
    """Return the text of ``manifest`` with these two values."""
    return manifest_json(sealed({**manifest, PROOF: proof, VERIFIED: verified}))
