from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.render.manifest import sha256
from fa4gen.resources import data_root
from fa4gen.vendor.lock import Generator, lock_text, read_lock
from fa4gen.vendor.merge import Merged, merge
from fa4gen.vendor.originals import ORIGINALS, pack_originals, read_originals
from tests.vendor.folder.conftest import CONFIG, OTHER, Vendored

pytestmark = pytest.mark.compile

STATUS = "vendor/src/status.c.j2"
LAST = "src/launcher.c"


def vendor(*arguments: str) -> int:
    return main(["vendor", *arguments])


@pytest.fixture
def new_templates(vendored: Vendored) -> list[str]:
    """The fa4gen of another day: one template has a line more at its end."""
    path = Path("mine") / STATUS
    path.parent.mkdir(parents=True)
    text = (data_root("templates") / STATUS).read_text()
    path.write_text(text + "\n/* new at the end */\n")
    return ["--templates", "mine"]


def first_line_edited(vendored: Vendored, path: str = LAST) -> None:
    place = vendored.folder / path
    place.write_text("/* mine at the top */\n" + place.read_text())


def last_line_edited(vendored: Vendored, path: str = LAST) -> None:
    place = vendored.folder / path
    place.write_text(place.read_text() + "\n/* mine at the end */\n")


def test_nothing_changes_without_a_reason(vendored: Vendored) -> None:
    before = vendored.files()
    assert vendor("--update", "attn") == 0
    assert vendored.files() == before


def test_files_left_alone_are_replaced(vendored: Vendored, new_templates: list[str]) -> None:
    assert vendor("--check", "attn", *new_templates) == 3
    before = vendored.files()
    assert vendor("--update", "attn", *new_templates) == 0
    after = vendored.files()
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {LAST, "fa4gen.lock", ".fa4gen/originals.zip"}
    assert after[LAST].endswith(b"/* new at the end */\n")
    assert vendor("--check", "attn", *new_templates) == 0


def test_edits_are_merged(vendored: Vendored, new_templates: list[str]) -> None:
    first_line_edited(vendored)
    (vendored.folder / "src/mine.c").write_text("int mine;\n")
    assert vendor("--update", "attn", *new_templates) == 0
    files = vendored.files()
    assert files[LAST].startswith(b"/* mine at the top */\n")
    assert files[LAST].endswith(b"/* new at the end */\n")
    assert files["src/mine.c"] == b"int mine;\n"
    assert not [path for path in files if ".orig" in path]
    # Merging once more, from the new base: the edit is still an edit and nothing else.
    assert vendor("--update", "attn", *new_templates) == 0
    assert vendored.files() == files
    assert vendor("--update", "attn") == 0
    back = vendored.files()[LAST]
    assert back.startswith(b"/* mine at the top */\n")
    assert b"/* new at the end */" not in back


def test_conflicts_lose_nothing(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    last_line_edited(vendored)
    mine = (vendored.folder / LAST).read_bytes()
    capsys.readouterr()
    assert vendor("--update", "attn", *new_templates) == 3
    error = capsys.readouterr().err
    assert "attn/src/launcher.c:" in error
    assert "conflict: both sides changed the same lines in 1 place; yours is in " in error
    files = vendored.files()
    assert files[f"{LAST}.orig"] == mine
    assert b"<<<<<<< yours\n" in files[LAST]
    assert b"mine at the end" in files[LAST]
    assert b"new at the end" in files[LAST]
    # While the markers are there, check refuses and a further update touches nothing.
    assert vendor("--check", "attn", *new_templates) == 3
    assert "conflict  attn/src/launcher.c" in capsys.readouterr().out
    assert vendor("--update", "attn", *new_templates) == 3
    assert "conflicts of an earlier merge are unresolved" in capsys.readouterr().err
    assert vendored.files() == files
    text = "".join(
        line
        for line in files[LAST].decode().splitlines(keepends=True)
        if not line.startswith(("<<<<<<<", "=======", ">>>>>>>"))
    )
    (vendored.folder / LAST).write_text(text)
    assert vendor("--update", "attn", *new_templates) == 0
    assert vendored.files()[LAST] == text.encode()


def test_an_earlier_orig_is_not_overwritten(vendored: Vendored, new_templates: list[str]) -> None:
    last_line_edited(vendored)
    (vendored.folder / f"{LAST}.orig").write_text("older")
    assert vendor("--update", "attn", *new_templates) == 3
    files = vendored.files()
    assert files[f"{LAST}.orig"] == b"older"
    assert files[f"{LAST}.orig.2"].endswith(b"/* mine at the end */\n")


@pytest.mark.parametrize("damage", ["missing", "cut", "empty"])
def test_without_the_originals_an_edit_is_a_conflict(
    vendored: Vendored, new_templates: list[str], damage: str
) -> None:
    first_line_edited(vendored)
    archive = vendored.folder / ".fa4gen/originals.zip"
    if damage == "missing":
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[:500] if damage == "cut" else b"")
    mine = (vendored.folder / LAST).read_bytes()
    assert vendor("--update", "attn", *new_templates) == 3
    files = vendored.files()
    assert files[f"{LAST}.orig"] == mine
    assert b"<<<<<<< yours\n" in files[LAST]
    assert len(files[".fa4gen/originals.zip"]) > 500


def test_originals_of_another_time_count_for_nothing(
    vendored: Vendored, new_templates: list[str]
) -> None:
    archive = vendored.folder / ".fa4gen/originals.zip"
    older = archive.read_bytes()
    assert vendor("--update", "attn", *new_templates) == 0
    archive.write_bytes(older)
    last_line_edited(vendored)
    assert vendor("--update", "attn") == 3
    assert b"<<<<<<< yours\n" in (vendored.folder / LAST).read_bytes()


def test_a_lock_is_left_alone_where_only_the_generator_is_another(vendored: Vendored) -> None:
    path = vendored.folder / "fa4gen.lock"
    lock = read_lock(vendored.folder)
    older = Generator(version="0.0.1", commit="0" * 40)
    path.write_text(lock_text(lock.model_copy(update={"generator": older})))
    before = vendored.files()
    assert vendor("--update", "attn") == 0
    assert vendor(CONFIG, "--into", "attn", "--prefix", "acme") == 0
    assert vendored.files() == before


def test_an_edit_of_a_file_that_is_the_same_today_stays(vendored: Vendored) -> None:
    last_line_edited(vendored)
    before = vendored.files()
    assert vendor("--update", "attn") == 0
    assert vendored.files() == before


def test_an_edited_image_is_replaced_and_kept_beside(vendored: Vendored) -> None:
    path = f"cubins/acme_{CONFIG}.c"
    right = (vendored.folder / path).read_bytes()
    vendored.edit(path, "static const unsigned char", "static unsigned const char")
    mine = (vendored.folder / path).read_bytes()
    # The image itself came out the same: the edit alone is no reason to touch it.
    assert vendor("--update", "attn") == 0
    assert (vendored.folder / path).read_bytes() == mine
    new = Path("mine/vendor/cubin.c.j2")
    new.parent.mkdir(parents=True)
    new.write_text((data_root("templates") / "vendor/cubin.c.j2").read_text() + "/* new */\n")
    assert vendor("--update", "attn", "--templates", "mine") == 3
    assert (vendored.folder / path).read_bytes() == right + b"/* new */\n"
    assert (vendored.folder / f"{path}.orig").read_bytes() == mine


def test_a_deleted_file_stays_deleted_but_for_force(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (vendored.folder / LAST).unlink()
    assert vendor("--update", "attn", *new_templates) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["missing", "attn/src/launcher.c", "you", "deleted"] in [x.split()[:4] for x in lines]
    assert not (vendored.folder / LAST).exists()
    assert vendor("--check", "attn", *new_templates) == 3
    assert vendor("--update", "attn", *new_templates, "--force") == 0
    assert (vendored.folder / LAST).read_text().endswith("/* new at the end */\n")
    assert vendor("--check", "attn", *new_templates) == 0


def test_other_configs_prefix_and_adapters_add_and_remove(vendored: Vendored) -> None:
    first_line_edited(vendored)
    assert vendor("--update", "attn", CONFIG, OTHER) == 0
    assert f"kernels/acme_{OTHER}.cu" in vendored.files()
    assert vendored.files()[LAST].startswith(b"/* mine at the top */\n")
    assert vendor("--update", "attn", OTHER) == 0
    files = vendored.files()
    assert not [path for path in files if CONFIG in path]
    assert [k["name"] for k in json.loads(files["fa4gen.lock"])["kernels"]] == [OTHER]
    assert vendor("--update", "attn", OTHER, "--prefix", "other", "--adapter", "python") == 0
    lock = json.loads(vendored.files()["fa4gen.lock"])
    assert lock["prefix"] == "other"
    assert lock["adapters"] == ["python"]
    assert [k["symbol"] for k in lock["kernels"]] == [f"other_{OTHER}"]
    assert not [path for path in vendored.files() if "acme" in path]


def test_an_edited_file_that_goes_is_kept(vendored: Vendored) -> None:
    first_line_edited(vendored, f"kernels/acme_{CONFIG}.cu")
    assert vendor("--update", "attn", OTHER) == 0
    files = vendored.files()
    assert files[f"kernels/acme_{CONFIG}.cu"].startswith(b"/* mine at the top */\n")
    assert f"kernels/acme_{CONFIG}.json" not in files


def test_an_edited_c_file_that_goes_is_set_aside(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    """Left where it is, it would be compiled beside what is there in its place."""
    path = f"cubins/acme_{CONFIG}.c"
    first_line_edited(vendored, path)
    edited = vendored.files()[path]
    assert vendor("--update", "attn", OTHER) == 3
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith(f"conflict  attn/{path} ")]
    assert "fa4gen has no such file any more: " in line
    assert line.endswith(f"yours is in {path}.orig")
    files = vendored.files()
    assert path not in files
    assert files[f"{path}.orig"] == edited
    assert vendor("--check", "attn") == 3  # until the user has taken what is wanted from it
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("foreign")]
    assert f"attn/{path}.orig" in line
    assert "your file as it was before a merge" in line
    (vendored.folder / f"{path}.orig").rename(vendored.folder / "notes.original")
    assert vendor("--check", "attn") == 3
    assert "before a merge" not in capsys.readouterr().out
    (vendored.folder / "notes.original").unlink()
    assert vendor("--check", "attn") == 0


def test_a_file_of_the_users_is_in_the_way(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"kernels/acme_{OTHER}.cu"
    (vendored.folder / path).write_text("mine")
    before = vendored.files()
    assert vendor("--update", "attn", CONFIG, OTHER) == 3
    assert "a file of yours is where a new one of fa4gen's belongs" in capsys.readouterr().err
    assert vendored.files() == before
    assert vendor("--update", "attn", CONFIG, OTHER, "--force") == 3
    assert vendored.files()[f"{path}.orig"] == b"mine"
    assert b"__global__" in vendored.files()[path]


def test_a_dry_run_shows_and_writes_nothing(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    last_line_edited(vendored)
    before = vendored.files()
    capsys.readouterr()
    assert vendor("--update", "attn", *new_templates, "--dry-run", "--diff") == 3
    assert vendored.files() == before
    out = capsys.readouterr().out
    assert "+<<<<<<< yours\n" in out
    assert "dry run, nothing written: 1 kernel in attn" in out
    assert vendor("--update", "attn", *new_templates, "--dry-run", "--format", "json") == 3
    data = json.loads(capsys.readouterr().out)
    actions = {f["path"]: f["action"] for f in data["folders"][0]["files"]}
    assert actions["attn/src/launcher.c"] == "conflict"
    assert actions["attn/include/acme.h"] == "unchanged"


def test_the_config_of_the_lock_counts_when_the_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "# mine\nkernel: gemm\narch: sm_90a\ndtype: bf16\n"
    Path("my_kernel.yaml").write_text(text)
    assert vendor("my_kernel.yaml", "--into", "attn", "--prefix", "acme") == 0
    Path("my_kernel.yaml").unlink()
    lock = json.loads(Path("attn/fa4gen.lock").read_text())
    assert lock["kernels"][0]["config_text"] == text
    assert lock["kernels"][0]["source"] == "my_kernel.yaml"
    assert vendor("--update", "attn") == 0
    assert vendor("--check", "attn") == 0
    assert json.loads(Path("attn/fa4gen.lock").read_text()) == lock


def archive_of_16_bits(files: dict[str, bytes]) -> bytes:
    """Originals as the first folders have them: a key is two bytes."""
    counts, keys = {}, b""
    for path, data in sorted(files.items()):
        lines = [*data.splitlines(keepends=True), b""]
        counts[path] = len(lines)
        for before, line in zip([b"", *lines], lines, strict=False):
            keys += hashlib.sha256(before + b"\0" + line).digest()[:2]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("files.json", json.dumps(counts))
        archive.writestr("pairs16", keys)
    return buffer.getvalue()


def archive_of_statements(files: dict[str, bytes]) -> bytes:
    """Originals as the folders before today's have them: the numbers of keys are a member."""
    today = zipfile.ZipFile(io.BytesIO(pack_originals(files)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        counts = dict(zip(sorted(files), json.loads(today.comment), strict=True))
        archive.writestr("files.json", json.dumps(counts))
        archive.writestr("statements10", today.read("blocks10"))  # none begins a block
    return buffer.getvalue()


def archive_of_10_bits(files: dict[str, bytes]) -> bytes:
    """Originals as later folders have them: a key counts for closing lines, too."""
    counts, bits = {}, ""
    for path, data in sorted(files.items()):
        lines = [*data.splitlines(keepends=True), b""]  # none of which is a closing one
        counts[path] = len(lines)
        for before, line in zip([b"", *lines], lines, strict=False):
            first = int.from_bytes(hashlib.sha256(before + b"\0" + line).digest()[:2], "big")
            bits += f"{first:016b}"[:10]
    size = -(-len(bits) // 8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("files.json", json.dumps(counts))
        archive.writestr("joined10", int(bits.ljust(8 * size, "0"), 2).to_bytes(size, "big"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "pack", [pack_originals, archive_of_statements, archive_of_10_bits, archive_of_16_bits]
)
def test_originals_of_every_kind_are_read(pack, tmp_path: Path) -> None:
    files = {"src/a.c": b"a\nb\nc\nd\n", "src/b.c": b"one\n", "src/c.c": b"x\ny"}
    place = tmp_path / ORIGINALS
    place.parent.mkdir()
    place.write_bytes(pack(files))
    originals = read_originals(tmp_path, sha256(place.read_bytes()), files)
    assert {path: len(keys.keys) for path, keys in originals.items()} == {
        "src/a.c": 5, "src/b.c": 2, "src/c.c": 3,
    }  # fmt: skip
    merged = merge(originals["src/a.c"], b"a\nb\nc\nD\n", b"A\nb\nc\nd\n")
    assert merged == Merged(b"A\nb\nc\nD\n", 0)
    merged = merge(originals["src/c.c"], b"x\ny", b"w\nx\ny")
    assert merged == Merged(b"w\nx\ny", 0)


def relisted(folder: Path, **files: str) -> None:
    """List files of the user's in the lock, with their hashes and a hash of it that is right."""
    lock = read_lock(folder)
    listed = {path: sha256((folder / path).read_bytes()) for path in files.values()}
    lock = lock.model_copy(update={"files": {**lock.files, **listed}})
    (folder / "fa4gen.lock").write_text(lock_text(lock))


@pytest.mark.parametrize("path", ["notes.txt", "src/mine.c", "docs/README.md"])
@pytest.mark.parametrize(
    "words", [("--update", "attn"), (CONFIG, "--into", "attn", "--prefix", "acme")]
)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_lock_leads_to_no_file_of_the_users(vendored: Vendored, path, words, force) -> None:
    mine = vendored.folder / path
    mine.parent.mkdir(exist_ok=True, parents=True)
    mine.write_text("int mine;\n")
    relisted(vendored.folder, mine=path)
    assert vendor(*words, *force) == 0
    assert mine.read_text() == "int mine;\n"
    assert path not in read_lock(vendored.folder).files


def test_a_file_of_ours_that_goes_is_deleted(vendored: Vendored) -> None:
    old = vendored.folder / "src/status.c"
    old.write_text("/* Generated by fa4gen 0.0.9. */\n")
    relisted(vendored.folder, old="src/status.c")
    assert vendor("--update", "attn") == 0
    assert not old.exists()


def test_a_file_that_the_lock_calls_ours_is_kept_aside(vendored: Vendored, new_templates) -> None:
    path = vendored.folder / LAST
    path.write_text("int mine;\n")
    relisted(vendored.folder, mine=LAST)
    assert vendor("--update", "attn", *new_templates) == 3
    assert (vendored.folder / f"{LAST}.orig").read_text() == "int mine;\n"
