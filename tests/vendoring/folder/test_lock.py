from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.vendoring.lock import check_relative, lock_text, parse_lock, proof_sha256, read_lock
from tests.vendoring.folder.conftest import CONFIG, OTHER, Vendored

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.compile


def test_a_lock_survives_writing_and_reading(vendored: Vendored) -> None:
    lock = read_lock(vendored.folder)
    text = lock_text(lock)
    assert text.encode() == (vendored.folder / "fa4gen.lock").read_bytes()
    assert parse_lock(text.encode(), vendored.folder) == lock
    assert list(json.loads(text)) == sorted(json.loads(text))


def rewritten(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """A lock with ``change`` made and the hash over it made right."""

    def rewrite(data: bytes) -> bytes:
        from fa4gen.vendoring.lock import _canonical_sha256

        content = json.loads(data)
        del content["lock_sha256"]
        change(content)
        content["lock_sha256"] = _canonical_sha256(content)
        return json.dumps(content).encode()

    return rewrite


HASH = "0" * 64
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda data: data[: len(data) // 2], "is cut off: line "),
    "truncated after a bracket": (
        lambda data: data[: data.index(b"}", len(data) // 2) + 1],
        "is cut off: line ",
    ),
    "empty": (lambda data: b"", "is cut off: line 1 column 1"),
    "binary": (lambda data: b"\x00\xff}", "is not JSON"),
    "merged by git": (lambda data: b"<<<<<<< HEAD\n" + data, "is not JSON: line 1"),
    "too deep": (lambda data: b"[" * 200_000 + b"]" * 199_999 + b"}", "JSON"),
    "too large": (lambda data: data + b" " * (17 << 20), "is not the lock"),
    "a list": (lambda data: b"[]", "is not the lock of a vendored folder"),
    "of others": (lambda data: b'{"version": 3}', "is not the lock of a vendored folder"),
    "newer": (
        rewritten(lambda c: c.update(schema_version=2, generator={"version": "3.1"}, new=1)),
        "was written by a newer fa4gen (version 3.1; format 2, this one reads up to 1)",
    ),
    "edited": (
        lambda data: data.replace(b'"prefix": "acme"', b'"prefix": "acne"'),
        "was changed since fa4gen wrote it",
    ),
    "without its hash": (
        lambda data: data.replace(b"lock_sha256", b"lock_sha255"),
        "is damaged at lock_sha255: there is no such key",
    ),
    "outside": (
        rewritten(lambda c: c["files"].update({"../x": HASH})),
        "is damaged at files: the path '../x' does not name a file inside the folder",
    ),
    "absolute": (rewritten(lambda c: c["files"].update({"/etc/x": HASH})), "inside the folder"),
    "of another drive": (rewritten(lambda c: c["files"].update({"C:x": HASH})), "inside"),
    "no hash": (
        rewritten(lambda c: c["files"].update({"x": "abc"})),
        "damaged at files.x: it must",
    ),
    "no prefix": (rewritten(lambda c: c.update(prefix="A-b")), "is damaged at prefix"),
    "no kernels": (rewritten(lambda c: c.pop("kernels")), "is damaged at kernels: it is missing"),
    "no kernel": (
        rewritten(lambda c: c.update(kernels=[])),
        "must be a list of at least 1 entry",
    ),
    "an unknown adapter": (rewritten(lambda c: c.update(adapters=["x"])), "at adapters.0"),
    "a symbol outside": (
        rewritten(lambda c: c["kernels"][0].update(symbol="../x")),
        "is damaged at kernels.0.symbol",
    ),
    "older": (rewritten(lambda c: c.update(schema_version=0)), "is damaged at schema_version"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("action", ["check", "update", "write"])
def test_a_lock_that_cannot_be_used_is_refused(
    vendored: Vendored, damage: str, action: str
) -> None:
    spoil, expected = DAMAGES[damage]
    path = vendored.folder / "fa4gen.lock"
    path.write_bytes(spoil(path.read_bytes()))
    add = ("add", OTHER, "--into", "attn", "--prefix", "acme")
    error = vendored.refused(*(add if action == "write" else (action, "attn")))
    assert expected in error
    assert error.count("attn/fa4gen.lock: fa4gen.lock ") == 1


def test_force_vendors_over_a_damaged_lock(vendored: Vendored) -> None:
    right = vendored.files()
    (vendored.folder / "fa4gen.lock").write_bytes(b"{")
    (vendored.folder / "src/launcher.c").write_text("mine")
    assert vendored.run("add", CONFIG, "--into", "attn", "--prefix", "acme", "--force").status == 0
    assert vendored.files() == right


@pytest.mark.parametrize("action", ["check", "update", "recompile"])
def test_actions_need_a_folder_of_ours(vendored: Vendored, action: str) -> None:
    (vendored.folder.parent / "file").write_text("")
    (vendored.folder.parent / "empty").mkdir()
    for name, words in {
        "nothing": "there is no such folder",
        "file": "is not a folder",
        "empty": "no vendored folder: it has no fa4gen.lock",
    }.items():
        assert f"{name}: {words}" in vendored.refused(action, name)


@pytest.mark.parametrize(
    "path",
    ["", "/x", "../x", "a/../b", "a//b", "./a", "a/", "a\\b", "C:a", "a\0b", "fa4gen.lock", "a?"],
)
def test_paths_outside_or_ambiguous_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="does not name a file inside the folder"):
        check_relative(path)


def test_a_proof_is_bound_to_what_decides_a_run() -> None:
    files = {
        "include/acme.h": "1",
        "src/launcher.c": "2",
        "cubins/acme_one.c": "3",
        "kernels/acme_one.cu": "4",
        "kernels/acme_one_barriers.h": "5",
        "kernels/acme_one_device.cuh": "5",
        "kernels/acme_one_more.cu": "6",
        "README.md": "7",
        "adapters/torch/acme_torch.py": "8",
    }
    whole = proof_sha256("acme_one", files)
    for path in files:
        changed = proof_sha256("acme_one", files | {path: "other"})
        counts = not path.startswith(("README", "adapters", "kernels/acme_one_more"))
        assert (changed != whole) == counts, path


def test_a_config_that_is_not_valid_today_is_named(vendored: Vendored) -> None:
    def older(content: dict[str, Any]) -> None:
        content["kernels"][0]["config_text"] += "old_key: 1\n"

    path = vendored.folder / "fa4gen.lock"
    path.write_bytes(rewritten(older)(path.read_bytes()))
    error = vendored.refused("update", "attn")
    assert f"attention/sm_90a/{CONFIG} (in fa4gen.lock):" in error
    assert "unknown key old_key" in error
    assert "fa4gen vendor add CONFIG --into DIR" in error
