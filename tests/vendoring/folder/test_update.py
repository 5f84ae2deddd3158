from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.render.manifest import sha256
from fa4gen.resources import data_root
from fa4gen.vendoring.lock import Generator, lock_text, read_lock
from tests.vendoring.folder.conftest import CONFIG, Vendored

pytestmark = pytest.mark.compile

STATUS, README = "vendored/src/status.c.j2", "vendored/build/README.md.j2"
LAUNCHER = "src/launcher.c"


def vendor(*arguments: str) -> int:
    return main(["vendor", *arguments])


@pytest.fixture
def new_templates(vendored: Vendored) -> list[str]:
    """The fa4gen of another day: two templates have a line more at their ends."""
    for name in (STATUS, README):
        path = Path("mine") / name
        path.parent.mkdir(parents=True)
        path.write_text((data_root("templates") / name).read_text() + "\n/* new at the end */\n")
    return ["--templates", "mine"]


def edited(vendored: Vendored, path: str) -> bytes:
    place = vendored.folder / path
    place.write_bytes(b"/* mine at the top */\n" + place.read_bytes())
    return place.read_bytes()


def test_nothing_changes_without_a_reason(vendored: Vendored) -> None:
    before = {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")}
    assert vendor("update", "attn") == 0
    assert {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")} == before


def test_files_left_alone_are_replaced(vendored: Vendored, new_templates: list[str]) -> None:
    (vendored.folder / "src/mine.c").write_text("int mine;\n")
    assert vendor("check", "attn", *new_templates) == 3
    before = vendored.files()
    assert vendor("update", "attn", *new_templates) == 0
    after = vendored.files()
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {LAUNCHER, "README.md", "fa4gen.lock"}
    assert after[LAUNCHER].endswith(b"/* new at the end */\n")
    (vendored.folder / "src/mine.c").unlink()
    assert vendor("check", "attn", *new_templates) == 0


def test_an_edited_document_is_named_and_the_rest_is_written(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = edited(vendored, "README.md")
    capsys.readouterr()
    for _ in range(2):  # the second time as well: nothing was decided
        assert vendor("update", "attn", *new_templates) == 3
        error = capsys.readouterr().err
        assert "attn/README.md: not overwritten: changed since fa4gen wrote it" in error
        files = vendored.files()
        assert files["README.md"] == mine
        assert files[LAUNCHER].endswith(b"/* new at the end */\n")
    assert vendor("check", "attn", *new_templates) == 3
    assert "edited   attn/README.md" in capsys.readouterr().out
    assert vendor("update", "attn", *new_templates, "--force") == 0
    assert vendor("check", "attn", *new_templates) == 0


@pytest.mark.parametrize("path", [LAUNCHER, "include/acme.h"])
def test_an_edited_part_of_the_library_stops_everything(
    vendored: Vendored, new_templates: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files fit only together: a launcher of before would launch kernels of today wrongly."""
    header = Path("mine/vendored/launcher.h.j2")
    header.write_text(
        (data_root("templates") / "vendored/launcher.h.j2").read_text() + "/* new */\n"
    )
    edited(vendored, path)
    edited(vendored, "README.md")
    before = vendored.files()
    capsys.readouterr()
    assert vendor("update", "attn", *new_templates) == 3
    error = capsys.readouterr().err
    for name in (path, "README.md"):
        assert f"attn/{name}: not overwritten: changed since fa4gen wrote it" in error
    assert vendored.files() == before
    assert vendor("update", "attn", *new_templates, "--force") == 0
    assert b"mine" not in vendored.files()[path]
    assert vendor("check", "attn", *new_templates) == 0


def test_an_edit_of_a_file_that_is_the_same_today_stays(vendored: Vendored) -> None:
    edited(vendored, LAUNCHER)
    before = vendored.files()
    assert vendor("update", "attn") == 0
    assert vendor("update", "attn", "--force") == 0
    assert vendored.files() == before


def test_an_edit_that_today_s_fa4gen_writes_itself_is_none(
    vendored: Vendored, new_templates: list[str]
) -> None:
    place = vendored.folder / LAUNCHER
    place.write_text(place.read_text() + "\n/* new at the end */\n")
    assert vendor("update", "attn", *new_templates) == 0
    assert vendor("check", "attn", *new_templates) == 0


def test_a_lock_is_left_alone_where_only_the_generator_is_another(vendored: Vendored) -> None:
    path = vendored.folder / "fa4gen.lock"
    lock = read_lock(vendored.folder)
    older = Generator(version="0.0.1", commit="0" * 40)
    path.write_text(lock_text(lock.changed(generator=older)))
    before = vendored.files()
    assert vendor("update", "attn") == 0
    assert vendor("add", CONFIG, "--into", "attn", "--prefix", "acme") == 0
    assert vendored.files() == before


def test_a_deleted_file_stays_deleted_but_for_force(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (vendored.folder / LAUNCHER).unlink()
    assert vendor("update", "attn", *new_templates) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["missing", "attn/src/launcher.c", "you", "deleted"] in [x.split()[:4] for x in lines]
    assert not (vendored.folder / LAUNCHER).exists()
    assert vendor("check", "attn", *new_templates) == 3
    assert vendor("update", "attn", *new_templates, "--force") == 0
    assert (vendored.folder / LAUNCHER).read_text().endswith("/* new at the end */\n")
    assert vendor("check", "attn", *new_templates) == 0


def test_a_dry_run_shows_and_writes_nothing(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    edited(vendored, "README.md")
    before = vendored.files()
    capsys.readouterr()
    assert vendor("update", "attn", *new_templates, "--dry-run", "--diff") == 3
    assert vendored.files() == before
    out = capsys.readouterr().out
    assert "+/* new at the end */\n" in out
    assert "dry run, nothing written: 1 kernel in attn" in out
    assert vendor("update", "attn", *new_templates, "--dry-run", "--format", "json") == 3
    data = json.loads(capsys.readouterr().out)
    actions = {f["path"]: f["action"] for f in data["folders"][0]["files"]}
    assert actions["attn/README.md"] == "refused"
    assert actions["attn/src/launcher.c"] == "updated"
    assert actions["attn/include/acme.h"] == "unchanged"


def test_the_config_of_the_lock_counts_when_the_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "# mine\nkernel: gemm\narch: sm_90a\ndtype: bf16\n"
    Path("my_kernel.yaml").write_text(text)
    assert vendor("add", "my_kernel.yaml", "--into", "attn", "--prefix", "acme") == 0
    Path("my_kernel.yaml").unlink()
    lock = json.loads(Path("attn/fa4gen.lock").read_text())
    assert lock["kernels"][0]["config_text"] == text
    assert lock["kernels"][0]["source"] == "my_kernel.yaml"
    assert vendor("update", "attn") == 0
    assert vendor("check", "attn") == 0
    assert json.loads(Path("attn/fa4gen.lock").read_text()) == lock


def relisted(folder: Path, *paths: str) -> None:
    """List files of the user's in the lock, with their hashes and a hash of it that is right."""
    lock = read_lock(folder)
    listed = {path: sha256((folder / path).read_bytes()) for path in paths}
    lock = lock.changed(files={**lock.files, **listed})
    (folder / "fa4gen.lock").write_text(lock_text(lock))


@pytest.mark.parametrize("path", ["notes.txt", "src/mine.c", "docs/README.md"])
@pytest.mark.parametrize("words", [("update", "attn"), ("add", CONFIG, "--into", "attn")])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_lock_leads_to_no_file_of_the_users(vendored: Vendored, path, words, force) -> None:
    mine = vendored.folder / path
    mine.parent.mkdir(exist_ok=True, parents=True)
    mine.write_text("int mine;\n")
    relisted(vendored.folder, path)
    assert vendor(*words, *force) == 0
    assert mine.read_text() == "int mine;\n"
    assert path not in read_lock(vendored.folder).files


def test_files_of_an_older_fa4gen_go(vendored: Vendored) -> None:
    """Merges had hashes of lines in an archive; a file of the C may have another name."""
    (vendored.folder / ".fa4gen").mkdir()
    (vendored.folder / ".fa4gen/originals.zip").write_bytes(b"PK")
    (vendored.folder / "src/status.c").write_text("/* Generated by fa4gen 0.0.9. */\n")
    relisted(vendored.folder, "src/status.c", ".fa4gen/originals.zip")
    assert vendor("update", "attn") == 0
    assert not (vendored.folder / ".fa4gen").exists()
    assert not (vendored.folder / "src/status.c").exists()


def test_a_file_that_the_lock_calls_ours_is_not_overwritten(
    vendored: Vendored, new_templates: list[str]
) -> None:
    (vendored.folder / LAUNCHER).write_text("int mine;\n")
    relisted(vendored.folder, LAUNCHER)
    assert vendor("update", "attn", *new_templates) == 3
    assert (vendored.folder / LAUNCHER).read_text() == "int mine;\n"
