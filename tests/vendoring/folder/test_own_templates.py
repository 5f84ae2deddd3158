"""Vendored folders that are made with own templates: lock, check, update, recompile."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from fa4gen.resources import data_root
from fa4gen.vendoring.lock import lock_text, made_with
from tests.vendoring.folder.conftest import CONFIG, Vendored

pytestmark = pytest.mark.compile
LOAD = "attention_sm90/load.cuh.j2"
CUBIN = "vendored/cubin.c.j2"
KERNEL = f"kernels/acme_{CONFIG}.cu"
WORDS = f"the folder was made with own templates ({LOAD}), and none are given"


def override(name: str, folder: str = "mine") -> str:
    """Write an own template with a line more; its hash."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((data_root("templates") / name).read_text() + "// mine\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def mine(vendored: Vendored, monkeypatch: pytest.MonkeyPatch) -> str:
    """The hash of the own template that the vendored folder is made with."""
    monkeypatch.setattr(Path, "home", Path.cwd)
    sha256 = override(LOAD)
    assert vendored.run("update", "attn", "--templates", "mine").status == 0
    assert "// mine" in (vendored.folder / KERNEL).read_text()
    return sha256


def test_a_folder_without_own_templates_says_nothing_of_them(vendored: Vendored) -> None:
    lock = vendored.lock()
    assert lock.own_templates is None
    assert made_with(lock) == ""
    assert "own_templates" not in lock_text(lock)


def test_the_lock_and_the_manifest_name_them_by_hash(vendored: Vendored, mine: str) -> None:
    override("gemm_sm90/load.cuh.j2")  # of which no kernel of the folder is made
    assert vendored.run("update", "attn", "--templates", "mine").status == 0
    assert vendored.lock().own_templates == {LOAD: mine}
    manifest = json.loads((vendored.folder / KERNEL).with_suffix(".json").read_text())
    assert manifest["inputs"]["own_templates"] == {LOAD: mine}
    before = vendored.files()
    assert vendored.run("check", "attn", "--templates", "mine").status == 0
    assert vendored.run("update", "attn", "--templates", "mine").status == 0
    assert vendored.files() == before


def test_check_says_that_none_are_given(vendored: Vendored, mine: str) -> None:
    ran = vendored.run("check", "attn")
    assert ran.status == 3
    assert f"attn: {WORDS}\n" in ran.out
    (folder,) = json.loads(vendored.run("check", "attn", "--format", "json").out)["folders"]
    assert folder["request"] == [WORDS]


def test_the_hint_of_check_repeats_them(vendored: Vendored, mine: str) -> None:
    override("attention_sm90/consume.cuh.j2")
    ran = vendored.run("check", "attn", "--templates", "mine")
    assert ran.status == 3
    assert "To do: fa4gen vendor update attn --templates mine." in ran.out
    Path("fa4gen.toml").write_text('templates = "mine"\n')
    for words in ((), ("--templates", "mine")):
        assert "To do: fa4gen vendor update attn." in vendored.run("check", "attn", *words).out


def test_update_and_add_do_not_drop_them_unasked(vendored: Vendored, mine: str) -> None:
    assert f"attn: {WORDS}\n" in vendored.refused("update", "attn")
    assert WORDS in vendored.refused("add", "--adapter", "python", "--into", "attn", "--force")
    Path("empty").mkdir()
    assert vendored.run("update", "attn", "--templates", "empty").status == 0
    assert vendored.lock().own_templates is None
    assert "// mine" not in (vendored.folder / KERNEL).read_text()
    assert vendored.run("check", "attn").status == 0


def test_those_of_the_project_are_taken_unless_the_folder_has_its_own(
    vendored: Vendored, mine: str
) -> None:
    project = Path("fa4gen.toml")
    project.write_text('templates = "mine"\n')
    assert vendored.run("check", "attn").status == 0
    assert vendored.run("update", "attn").status == 0
    project.write_text(
        f'templates = "mine"\n[[vendor]]\ninto = "attn"\nprefix = "acme"\nconfigs = ["{CONFIG}"]\n'
    )
    assert vendored.run("check").status == 0
    override("attention_sm90/consume.cuh.j2", "other")
    project.write_text(f'{project.read_text()}templates = "other"\n')
    assert vendored.run("check").status == 3
    assert vendored.run("update").status == 0
    assert list(vendored.lock().own_templates or ()) == ["attention_sm90/consume.cuh.j2"]


def test_a_file_without_effect_is_refused(vendored: Vendored) -> None:
    override(LOAD)
    Path("mine/load.cuh.j2").write_text("")
    for words in (["check", "attn"], ["update", "attn"], ["recompile", "attn"]):
        error = vendored.refused(*words, "--templates", "mine")
        assert "mine/load.cuh.j2: the file overrides no template" in error


def test_recompile_writes_by_own_templates(vendored: Vendored) -> None:
    override(CUBIN)
    (vendored.folder / f"cubins/acme_{CONFIG}.c").unlink()
    assert vendored.run("recompile", "attn", "--templates", "mine").status == 0
    assert (vendored.folder / f"cubins/acme_{CONFIG}.c").read_text().endswith("// mine\n")
