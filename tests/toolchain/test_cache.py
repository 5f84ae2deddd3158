from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.toolchain.cache import Cache, Entry, content_key, key_ingredients
from fa4gen.toolchain.model import Built, Unit

KEY = "ab" + "0" * 62
ENTRY = Entry(Built("ptx text", b"\x7fELF cubin\0", "log äöü\n"), 1.5)


class FakeCompiler:
    """Only what goes into a key."""

    name = "nvrtc"
    version = "13.0.1"

    def options(self, unit: Unit) -> tuple[str, ...]:
        return (f"-arch={unit.arch}", "-lineinfo") if unit.line_info else (f"-arch={unit.arch}",)

    def build(self, unit: Unit) -> Built:
        raise NotImplementedError

    def build_ptx(self, unit: Unit) -> str:
        raise NotImplementedError


class Newer(FakeCompiler):
    version = "13.0.2"


class Other(FakeCompiler):
    name = "nvcc"


def key(unit: Unit, compiler: FakeCompiler | None = None) -> str:
    return content_key(key_ingredients(unit, compiler or FakeCompiler()))


def test_everything_that_decides_the_result_is_in_the_key() -> None:
    unit = Unit("k", "source", {"a.h": "one", "b.h": "two"}, "sm_90a")
    others = [
        key(replace(unit, name="j")),
        key(replace(unit, source="Source")),
        key(replace(unit, headers={"a.h": "one"})),
        key(replace(unit, headers={"a.h": "two", "b.h": "one"})),
        key(replace(unit, headers={"a.h": "one", "c.h": "two"})),
        key(replace(unit, arch="sm_100a")),
        key(replace(unit, line_info=True)),
        key(unit, Newer()),
        key(unit, Other()),
    ]
    assert len({key(unit), *others}) == 1 + len(others)
    reordered = replace(unit, headers={"b.h": "two", "a.h": "one"})
    assert key(reordered) == key(unit)


@settings(max_examples=50, deadline=None)
@given(ptx=st.text(min_size=1), cubin=st.binary(min_size=1), log=st.text())
def test_what_goes_in_comes_out(
    ptx: str, cubin: bytes, log: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    entry = Entry(Built(ptx, cubin, log), 0.25)
    assert cache.load(KEY) is None
    assert cache.store(KEY, {}, entry) == ""
    assert cache.load(KEY) == entry


def test_nothing_but_the_entry_is_left(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    cache.store(KEY, {"arch": "sm_90a"}, ENTRY)
    cache.store(KEY, {"arch": "sm_90a"}, ENTRY)
    [file] = cache.file(KEY).parent.iterdir()
    assert file == cache.file(KEY)
    assert json.loads(file.read_text().partition("\n")[2])["ingredients"] == {"arch": "sm_90a"}


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "brackets", "gone"])
def test_a_damaged_entry_is_not_used_and_replaced(damage: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {}, ENTRY)
    file = cache.file(KEY)
    data = file.read_bytes()
    brackets = b"[" * 100_000
    written = {
        "empty": b"",
        "cut": data[:-3],
        "changed": data.replace(b"ptx text", b"ptx test"),
        "brackets": hashlib.sha256(brackets).hexdigest().encode() + b"\n" + brackets,
    }
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(written[damage])
    assert cache.load(KEY) is None
    assert cache.store(KEY, {}, ENTRY) == ""
    assert cache.load(KEY) == ENTRY


def test_an_entry_under_the_wrong_key_is_not_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {}, ENTRY)
    other = "ab" + "1" * 62
    cache.file(KEY).rename(cache.file(other))
    assert cache.load(other) is None


def test_an_empty_cubin_is_never_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {}, Entry(Built("ptx", b"", ""), 0.0))
    assert cache.load(KEY) is None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    note = Cache(tmp_path / "file" / "cache").store(KEY, {}, ENTRY)
    assert note.startswith("not kept in the cache: ")
    assert str(tmp_path / "file") in note


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("FA4GEN_CACHE_DIR", raising=False)
    assert Cache.default().root == Path("/home/someone/.cache/fa4gen")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Cache.default().root == Path("/home/someone/.cache/fa4gen")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert Cache.default().root == Path("/xdg/fa4gen")
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path))
    assert Cache.default().root == tmp_path


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("FA4GEN_CACHE_DIR", raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert "not kept" in Cache.default().store(KEY, {}, ENTRY)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps a user's folder from others")
def test_an_entry_that_others_can_write_is_not_used_but_replaced(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {}, ENTRY)
    for mode in (0o666, 0o664):
        cache.file(KEY).chmod(mode)
        assert cache.load(KEY) is None
        assert cache.store(KEY, {}, ENTRY) == ""
        assert cache.load(KEY) == ENTRY


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps a user's folder from others")
def test_an_entry_of_another_user_is_not_used(tmp_path: Path, monkeypatch) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {}, ENTRY)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache.load(KEY) is None


def test_entries_are_used_again_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Cache(tmp_path).store(KEY, {}, ENTRY)
    finally:
        os.umask(before)
    assert Cache(tmp_path).load(KEY) == ENTRY
