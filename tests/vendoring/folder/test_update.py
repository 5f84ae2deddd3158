from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.render.manifest import sha256
from fa4gen.resources import data_root
from fa4gen.vendoring.lock import Generator, lock_text
from tests.vendoring.folder.conftest import CONFIG, Vendored, files_in

pytestmark = pytest.mark.compile

STATUS, README = "vendored/src/status.c.j2", "vendored/build/README.md.j2"
LAUNCHER = "src/launcher.c"
TODAY = ("--templates", "mine")


@pytest.fixture(autouse=True)
def _new_templates(vendored: Vendored) -> None:
    """The fa4gen of another day: two templates have a line more at their ends."""
    for name in (STATUS, README):
        path = Path("mine") / name
        path.parent.mkdir(parents=True)
        path.write_text((data_root("templates") / name).read_text() + "\n/* new at the end */\n")


def update(vendored: Vendored, *words: str) -> int:
    return vendored.run("update", "attn", *words).status


def check(vendored: Vendored, *words: str) -> int:
    return vendored.run("check", "attn", *words).status


def test_nothing_changes_without_a_reason(vendored: Vendored) -> None:
    before = {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")}
    assert update(vendored) == 0
    assert {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")} == before


def test_files_left_alone_are_replaced(vendored: Vendored) -> None:
    (vendored.folder / "src/mine.c").write_text("int mine;\n")
    assert check(vendored, *TODAY) == 3
    before = vendored.files()
    assert update(vendored, *TODAY) == 0
    after = vendored.files()
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {LAUNCHER, "README.md", "fa4gen.lock"}
    assert after[LAUNCHER].endswith(b"/* new at the end */\n")
    (vendored.folder / "src/mine.c").unlink()
    assert check(vendored, *TODAY) == 0


def test_an_edited_document_is_named_and_the_rest_is_written(vendored: Vendored) -> None:
    vendored.append("README.md")
    mine = vendored.files()["README.md"]
    for _ in range(2):  # the second time as well: nothing was decided
        ran = vendored.run("update", "attn", *TODAY)
        assert ran.status == 3
        assert "attn/README.md: not overwritten: changed since fa4gen wrote it" in ran.err
        files = vendored.files()
        assert files["README.md"] == mine
        assert files[LAUNCHER].endswith(b"/* new at the end */\n")
    assert "edited   attn/README.md" in vendored.run("check", "attn", *TODAY).out
    assert update(vendored, *TODAY, "--force") == 0
    assert check(vendored, *TODAY) == 0


@pytest.mark.parametrize("path", [LAUNCHER, "include/acme.h"])
def test_an_edited_part_of_the_library_stops_everything(vendored: Vendored, path: str) -> None:
    """Its files fit only together: a launcher of before would launch kernels of today wrongly."""
    header = "vendored/launcher.h.j2"
    (Path("mine") / header).write_text((data_root("templates") / header).read_text() + "/* new */")
    for name in (path, "README.md"):
        vendored.append(name)
    error = vendored.refused("update", "attn", *TODAY, status=3)
    for name in (path, "README.md"):
        assert f"attn/{name}: not overwritten: changed since fa4gen wrote it" in error
    assert update(vendored, *TODAY, "--force") == 0
    assert b"mine" not in vendored.files()[path]
    assert check(vendored, *TODAY) == 0


def test_an_edit_of_a_file_that_is_the_same_today_stays(vendored: Vendored) -> None:
    vendored.append(LAUNCHER)
    before = vendored.files()
    assert update(vendored) == update(vendored, "--force") == 0
    assert vendored.files() == before


def test_an_edit_that_today_s_fa4gen_writes_itself_is_none(vendored: Vendored) -> None:
    vendored.append(LAUNCHER, "\n/* new at the end */\n")
    assert update(vendored, *TODAY) == check(vendored, *TODAY) == 0


def test_a_lock_is_left_alone_where_only_the_generator_is_another(vendored: Vendored) -> None:
    older = Generator(version="0.0.1", commit="0" * 40)
    text = lock_text(vendored.lock().changed(generator=older))
    (vendored.folder / "fa4gen.lock").write_text(text)
    before = vendored.files()
    assert update(vendored) == 0
    assert vendored.run("add", CONFIG, "--into", "attn", "--prefix", "acme").status == 0
    assert vendored.files() == before


def test_a_deleted_file_stays_deleted_but_for_force(vendored: Vendored) -> None:
    place = vendored.folder / LAUNCHER
    place.unlink()
    ran = vendored.run("update", "attn", *TODAY)
    assert ran.status == 0
    rows = [line.split()[:4] for line in ran.out.splitlines()]
    assert ["missing", "attn/src/launcher.c", "you", "deleted"] in rows
    assert not place.exists()
    assert check(vendored, *TODAY) == 3
    assert update(vendored, *TODAY, "--force") == 0
    assert place.read_text().endswith("/* new at the end */\n")
    assert check(vendored, *TODAY) == 0


def test_a_dry_run_shows_and_writes_nothing(vendored: Vendored) -> None:
    vendored.append("README.md")
    before = files_in(Path())
    ran = vendored.run("update", "attn", *TODAY, "--dry-run", "--diff")
    assert ran.status == 3
    assert "+/* new at the end */\n" in ran.out
    assert "dry run, nothing written: 1 kernel in attn" in ran.out
    ran = vendored.run("update", "attn", *TODAY, "--dry-run", "--format", "json")
    assert ran.status == 3
    actions = {f["path"]: f["action"] for f in json.loads(ran.out)["folders"][0]["files"]}
    assert actions["attn/README.md"] == "refused"
    assert actions["attn/src/launcher.c"] == "updated"
    assert actions["attn/include/acme.h"] == "unchanged"
    assert files_in(Path()) == before


def test_the_config_of_the_lock_counts_when_the_file_is_gone(vendored: Vendored) -> None:
    text = "# mine\nkernel: gemm\narch: sm_90a\ndtype: bf16\n"
    config, lock = Path("my_kernel.yaml"), Path("other/fa4gen.lock")
    config.write_text(text)
    assert vendored.run("add", "my_kernel.yaml", "--into", "other", "--prefix", "acme").status == 0
    config.unlink()
    before = lock.read_text()
    (kernel,) = json.loads(before)["kernels"]
    assert (kernel["config_text"], kernel["source"]) == (text, "my_kernel.yaml")
    assert vendored.run("update", "other").status == vendored.run("check", "other").status == 0
    assert lock.read_text() == before


def relisted(vendored: Vendored, *paths: str) -> None:
    """List files of the user's in the lock, with their hashes and a hash of it that is right."""
    lock, folder = vendored.lock(), vendored.folder
    listed = {path: sha256((folder / path).read_bytes()) for path in paths}
    (folder / "fa4gen.lock").write_text(lock_text(lock.changed(files={**lock.files, **listed})))


@pytest.mark.parametrize("path", ["notes.txt", "src/mine.c", "docs/README.md"])
@pytest.mark.parametrize("words", [("update", "attn"), ("add", CONFIG, "--into", "attn")])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_lock_leads_to_no_file_of_the_users(vendored: Vendored, path, words, force) -> None:
    mine = vendored.folder / path
    mine.parent.mkdir(exist_ok=True, parents=True)
    mine.write_text("int mine;\n")
    relisted(vendored, path)
    assert vendored.run(*words, *force).status == 0
    assert mine.read_text() == "int mine;\n"
    assert path not in vendored.lock().files


def test_files_of_an_older_fa4gen_go(vendored: Vendored) -> None:
    """A file of the C may have had another name."""
    (vendored.folder / "src/status.c").write_text("/* Generated by fa4gen 0.0.9. */\n")
    relisted(vendored, "src/status.c")
    assert update(vendored) == 0
    assert not (vendored.folder / "src/status.c").exists()


def test_a_file_that_the_lock_calls_ours_is_not_overwritten(vendored: Vendored) -> None:
    (vendored.folder / LAUNCHER).write_text("int mine;\n")
    relisted(vendored, LAUNCHER)
    vendored.refused("update", "attn", *TODAY, status=3)
