from __future__ import annotations

import os
from typing import TYPE_CHECKING

import jinja2
import pytest

from fa4gen.render import environment as environment_module
from fa4gen.render.compiled import CompiledTemplates
from fa4gen.render.environment import KernelEnvironment, TemplateSet, open_templates
from fa4gen.render.line_map import LineTags

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the templates that Jinja has compiled, in order."""
    names: list[str] = []
    compile_it = KernelEnvironment.compile

    def note(self, source, name=None, filename=None, *more, **options):
        names.append(name)
        return compile_it(self, source, name, filename, *more, **options)

    monkeypatch.setattr(KernelEnvironment, "compile", note)
    return names


@pytest.fixture
def kept(tmp_path: Path) -> CompiledTemplates:
    return CompiledTemplates(tmp_path / "cache", "as made today")


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "t.j2").write_text("one {{ x }}")
    return folder


def text_of(roots: Path | tuple[Path, ...], kept: CompiledTemplates, **options) -> str:
    """Return the text of t.j2, rendered by a process that has compiled nothing yet."""
    roots = roots if isinstance(roots, tuple) else (roots,)
    templates = TemplateSet(roots, compiled=kept, **options)
    return templates.environment().get_template("t.j2").render(x=7)


def entry(kept: CompiledTemplates) -> Path:
    (file,) = kept.folder.iterdir()
    return file


def test_a_template_is_compiled_in_the_first_run_alone(shipped, kept, made) -> None:
    assert [text_of(shipped, kept), text_of(shipped, kept)] == ["one 7", "one 7"]
    assert made == ["t.j2"]


def test_an_edited_template_is_compiled_again_and_the_old_code_replaced(
    shipped, kept, made
) -> None:
    text_of(shipped, kept)
    before = (shipped / "t.j2").stat()
    (shipped / "t.j2").write_text("two {{ x }}")  # as long as the first, and not newer
    os.utime(shipped / "t.j2", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [text_of(shipped, kept), text_of(shipped, kept)] == ["two 7", "two 7"]
    assert made == ["t.j2", "t.j2"]
    assert entry(kept).is_file()  # the only one


def test_code_of_another_environment_is_not_used(shipped, kept, made) -> None:
    text_of(shipped, kept)
    assert text_of(shipped, CompiledTemplates(kept.folder, "as made tomorrow")) == "one 7"
    assert made == ["t.j2", "t.j2"]


def test_code_is_kept_in_the_cache_folder(monkeypatch, tmp_path, made) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        open_templates().environment().get_template("device/rings/barriers.h.j2")
    assert made == ["device/rings/barriers.h.j2"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["templates"]


def test_nothing_is_kept_where_the_code_s_origin_is_not_known(monkeypatch, shipped, made) -> None:
    monkeypatch.setattr(environment_module, "__file__", "/nowhere/environment.py")
    for _ in range(2):
        open_templates().environment().get_template("device/rings/barriers.h.j2")
    assert made == ["device/rings/barriers.h.j2"] * 2


def test_templates_of_the_user_are_not_kept(shipped, kept, made, tmp_path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / "t.j2").write_text("mine {{ x }}")
    assert [text_of((user, shipped), kept) for _ in range(2)] == ["mine 7", "mine 7"]
    assert made == ["t.j2", "t.j2"]
    assert not kept.folder.exists()


def test_code_with_line_tags_is_not_kept(shipped, kept) -> None:
    text_of(shipped, kept)
    tagged = TemplateSet((shipped,), extensions=(LineTags,)).environment().get_template("t.j2")
    assert tagged.render(x=7) != "one 7"
    assert text_of(shipped, kept) == "one 7"


@pytest.mark.parametrize("size", [0, 3, 60, -1])
def test_a_file_that_is_cut_off_is_not_used_but_replaced(size, shipped, kept, made) -> None:
    text_of(shipped, kept)
    file = entry(kept)
    file.write_bytes(file.read_bytes()[:size])
    assert [text_of(shipped, kept) for _ in range(2)] == ["one 7", "one 7"]
    assert made == ["t.j2", "t.j2"]
    assert entry(kept) == file  # no temporary one is left


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_not_executed(mode, shipped, kept, made) -> None:
    text_of(shipped, kept)
    entry(kept).chmod(mode)
    text_of(shipped, kept)
    assert made == ["t.j2", "t.j2"]
    assert entry(kept).stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners of POSIX")
def test_a_file_of_another_user_is_not_executed(shipped, kept, made, monkeypatch) -> None:
    text_of(shipped, kept)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    text_of(shipped, kept)
    assert made == ["t.j2", "t.j2"]


def test_without_a_place_to_keep_code_the_text_is_the_same(shipped, made) -> None:
    kept = CompiledTemplates(shipped / "t.j2" / "cache", "")
    assert [text_of(shipped, kept) for _ in range(2)] == ["one 7", "one 7"]
    assert made == ["t.j2", "t.j2"]


def test_errors_have_their_line_in_code_that_was_kept(shipped, kept, made) -> None:
    (shipped / "t.j2").write_text("one\n{{ 1 // (x - 7) }}\n")
    lines = []
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as raised:
            text_of(shipped, kept)
        lines += [(t.path, t.lineno + 1) for t in raised.traceback if t.path == shipped / "t.j2"]
    assert lines == [(shipped / "t.j2", 2)] * 2
    assert made == ["t.j2"]


def test_a_wrong_template_is_refused_every_time(shipped, kept) -> None:
    (shipped / "t.j2").write_text("{% if %}")
    for _ in range(2):
        with pytest.raises(jinja2.TemplateSyntaxError):
            text_of(shipped, kept)
    assert not kept.folder.exists()
