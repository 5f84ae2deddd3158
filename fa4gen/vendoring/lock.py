"""fa4gen.lock: what a vendored folder was made from, the hash of each file, and what is proved.

One JSON document with sorted keys. Its last word, ``lock_sha256``, hashes all the rest, so that a
lock that was cut off, merged or edited is recognised before anything is believed of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fa4gen.config.expectations import Expectations
from fa4gen.config.file_kinds import refuse_path
from fa4gen.config.paths import shown_path
from fa4gen.config.project import Adapter
from fa4gen.counts import counted
from fa4gen.errors import ConfigError, Problem
from fa4gen.json_text import parse_json
from fa4gen.render.manifest import sha256
from fa4gen.strict import Fault, Field, ModelError, Read, Strict
from fa4gen.strict.json_schema import model_schema
from fa4gen.vendoring.names import check_prefix

if TYPE_CHECKING:
    from pathlib import Path

LOCK_NAME = "fa4gen.lock"
SCHEMA_VERSION = 1
_ROWS_DEPTH = 3
MAX_BYTES = 16 << 20
"""A lock is some kilobytes a kernel."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
ProofLevel = Literal["compiled", "partly emulated", "emulated", "ran"]
"""From the least to the most."""


def check_relative(path: str) -> str:
    """Return ``path`` if it stays inside the folder and is written in one way only; ValueError."""
    parts = path.split("/")
    if (
        not path
        or any(part in ("", ".", "..") for part in parts)
        or any(ord(char) < 32 or char in '\\:*?"<>|' for char in path)
        or path == LOCK_NAME
        or len(path) > 400
    ):
        raise ValueError(f"the path {path!r} does not name a file inside the folder")
    return path


def _check_prefix(prefix: str) -> str:
    try:
        return check_prefix(prefix)
    except ConfigError as error:
        raise ValueError(error.problems[0].message) from None


def _check_paths(files: dict[str, Any]) -> dict[str, Any]:
    for path in files:
        check_relative(path)
    return files


class Generator(Strict):
    """The fa4gen that wrote the folder."""

    name: Literal["fa4gen"] = "fa4gen"
    version: str
    commit: str | None
    """The commit of its checkout, None for an installed package."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}" + (f" ({self.commit[:12]})" if self.commit else "")


class Proof(Strict):
    """The proof of a kernel; counts as long as the files it was made with are the same."""

    level: ProofLevel
    device: str | None = None
    """A GPU's name, or "emulator"; None for "compiled"."""
    seed: int | None = None
    cases: int | None = None
    date: str | None = None
    """YYYY-MM-DD, in UTC."""
    files_sha256: Sha256
    """Over the paths and hashes of the files that the proof is about: see ``proof_sha256``."""

    def __str__(self) -> str:
        how = f"ran on {self.device}" if self.level == "ran" else self.level
        if self.cases is None:
            return how
        return f"{how}: {counted(self.cases, 'case')}, seed {self.seed}, {self.date}"


class LockedImage(Strict):
    """The compiled kernel."""

    sha256: Sha256
    cubin_bytes: int
    packed_bytes: int | None = None
    """Left by an older fa4gen, and not kept."""


class LockedRegion(Strict):
    """Problems for which a tuning table has a kernel."""

    kernel: Identifier
    """The config's name."""
    where: dict[str, tuple[int, int]]
    """By extent, the smallest and the largest."""


class LockedTable(Strict):
    """The regions that P_best follows; the first that holds a problem counts."""

    chip: str
    """The GPU that was measured, or meant."""
    regions: Annotated[tuple[LockedRegion, ...], Field(min_length=1)]


class LockedKernel(Strict):
    """One kernel of the folder."""

    name: Identifier
    """The config's name."""
    symbol: Identifier
    arch: str
    family: str
    source: str
    """The config as it was named: a shipped name, or a file's name without its folders."""
    config_text: str
    """The config file as the user wrote it."""
    config: dict[str, Any]
    """The config with all defaults."""
    config_sha256: Sha256
    compiler: str
    compiler_version: str
    options: tuple[str, ...]
    image: LockedImage
    proofs: tuple[Proof, ...]
    """One of each level at most, the lowest first."""


class Lock(Strict):
    """The content of fa4gen.lock."""

    schema_version: Literal[1] = 1
    generator: Generator
    license: str
    """SPDX identifier of every file of the folder."""
    prefix: Annotated[str, Read(_check_prefix)]
    adapters: tuple[Adapter, ...]
    templates_sha256: Sha256
    """Over the names and hashes of the templates that were read."""
    own_templates: dict[str, Sha256] | None = None
    """The hashes of the user's templates among them, by name; left out where there are none."""
    kernels: Annotated[tuple[LockedKernel, ...], Field(min_length=1)]
    """In the order in which they were asked for."""
    table: LockedTable | None = None
    """The regions of the tuning tables that were vendored; left out where there are none."""
    files: Annotated[dict[str, Sha256], Read(_check_paths)]
    """Hashes of all other files as fa4gen wrote them, by path."""


def lock_text(lock: Lock) -> str:
    """Return the text of fa4gen.lock: the same for the same content.

    Each file, and each word of a kernel, is one line.
    """
    data = lock.data()
    if lock.table is None:
        del data["table"]
    if lock.own_templates is None:
        del data["own_templates"]
    for kernel in data["kernels"]:
        del kernel["image"]["packed_bytes"]
    data["lock_sha256"] = _canonical_sha256(data)
    return _rows(data, 0) + "\n"


def _rows(value: Any, depth: int) -> str:
    """Return sorted JSON with a line for each entry, at most three containers deep."""
    if not isinstance(value, (dict, list, tuple)) or not value or depth == _ROWS_DEPTH:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_rows(value[key], depth + 1)}" for key in sorted(value)]
    else:
        rows = [_rows(row, depth + 1) for row in value]
    inner = "\n" + " " * (depth + 1)
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}{inner}{f',{inner}'.join(rows)}\n{' ' * depth}{end}"


def read_lock(folder: Path) -> Lock:
    """Return the lock of the vendored ``folder``.

    Raises ConfigError when there is none, and when it is not intact or not of this fa4gen.
    """
    path = folder / LOCK_NAME
    try:
        if path.is_symlink():
            raise ConfigError(_problem(path, "is a symbolic link", "Put the file itself there."))
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(no_folder_of_ours(folder)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(_problem(path, f"cannot be read: {reason}")) from error
    return parse_lock(data, path)


def parse_lock(data: bytes, path: Path) -> Lock:
    """Return the lock in ``data``, read from ``path``; ConfigError."""
    restore = (
        "Restore it from version control. Failing that, vendor the kernels into the folder again "
        "with --force: files that were edited are overwritten then."
    )
    try:
        content = parse_json(data) if len(data) <= MAX_BYTES else None
    except ValueError as error:
        what = "is cut off" if _is_cut(data, error) else "is not JSON"
        raise ConfigError(_problem(path, f"{what}: {_json_place(error)}", restore)) from error
    if not isinstance(content, dict) or "schema_version" not in content:
        raise ConfigError(
            _problem(path, "is not the lock of a vendored folder", "Is the folder one of fa4gen's?")
        )
    version = content["schema_version"]
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigError(
            _problem(
                path,
                f"was written by a newer fa4gen ({_version_of(content)}; format {version}, this "
                f"one reads up to {SCHEMA_VERSION})",
                "Use that version or a later one on this folder.",
            )
        )
    claimed = content.pop("lock_sha256", None)
    try:
        lock = Lock.model_validate(content)
    except ModelError as error:
        raise ConfigError(_problem(path, _damage(error.faults[0], content), restore)) from error
    if claimed != _canonical_sha256(content):
        raise ConfigError(_problem(path, "was changed since fa4gen wrote it", restore))
    return lock


def no_folder_of_ours(folder: Path) -> Problem:
    """Return the problem that ``folder`` is not a vendored folder."""
    if other := refuse_path(folder, "vendored folder"):
        return other
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "there is no such folder"
    else:
        what = f"no vendored folder: it has no {LOCK_NAME}"
    return Problem(
        what, "fa4gen vendor add CONFIG --into DIR --prefix P makes one.", shown_path(folder)
    )


def made_with(lock: Lock) -> str:
    """Say that a folder was made with own templates, and with which; "" where it was not."""
    names = ", ".join(lock.own_templates or ())
    return f"the folder was made with own templates ({names})" if names else ""


def proof_sha256(symbol: str, files: dict[str, str]) -> str:
    """Return the hash that a proof of kernel ``symbol`` is bound to.

    ``files`` are hashes by path, of the files as they are on disk. What decides a run of the kernel
    counts: the launcher and its header, the kernel and its image; not the other kernels' own
    files, adapters, build files or texts.
    """
    ends = (".", "_barriers.", "_device.")
    own = (f"cubins/{symbol}.", *(f"kernels/{symbol}{end}" for end in ends))
    counted = {
        path: digest
        for path, digest in files.items()
        if path.startswith(("include/", "src/", *own))
    }
    return _canonical_sha256(counted)


def _canonical_sha256(data: Any) -> str:
    return sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True))


def _problem(path: Path, what: str, remedy: str = "") -> Problem:
    return Problem(f"{LOCK_NAME} {what}", remedy, shown_path(path))


def _is_cut(data: bytes, error: Exception) -> bool:
    """Whether the end of the document is missing: the text stops before an object ends."""
    if isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip()):
        return True
    return not data.rstrip().endswith(b"}")


def _json_place(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno} column {error.colno}: {error.msg}"
    return str(error)


def _version_of(content: dict[str, Any]) -> str:
    generator = content.get("generator")
    version = generator.get("version") if isinstance(generator, dict) else None
    return f"version {version}" if isinstance(version, str) else "of unknown version"


def _damage(fault: Fault, content: dict[str, Any]) -> str:
    expected = Expectations(model_schema(Lock), content).words(fault.path)
    cause = {
        "unknown": "there is no such key",
        "missing": "it is missing",
        "value": f"it must be {expected}",
    }.get(fault.kind, fault.message)
    return f"is damaged at {'.'.join(map(str, fault.path))}: {cause}"
