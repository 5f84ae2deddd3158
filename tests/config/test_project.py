from __future__ import annotations

import os
from pathlib import Path

import pytest

from fa4gen.config.project import find_project, read_project
from fa4gen.config.toml_places import toml_places
from fa4gen.errors import ConfigError, Problem

ENTRY = '[[vendor]]\ninto = "third_party/attn"\nprefix = "acme"\nconfigs = ["a.yaml"]\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problems(text: str, name: str = "fa4gen.toml") -> list[Problem]:
    Path(name).write_text(text)
    with pytest.raises(ConfigError) as error:
        read_project(Path(name))
    return list(error.value.problems)


def test_a_file_without_anything_is_a_project(here: Path) -> None:
    Path("fa4gen.toml").write_text("")
    project = find_project()
    assert project is not None
    assert (project.root, project.vendored, project.content.configs) == (here, (), ())
    assert project.content.out == "generated"


def test_paths_are_relative_to_the_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("fa4gen.toml").write_text(
        f'configs = ["kernels"]\n{ENTRY}adapters = ["torch", "c"]\ntemplates = "mine"\n'
        'allow = ["README.md"]\n[[vendor]]\ninto = "other"\nprefix = "b"\n'
    )
    inside = here / "src/deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    project = find_project()
    assert project is not None
    first, second = project.vendored
    assert first.folder == here / "third_party/attn"
    assert first.templates == here / "mine"
    assert (first.prefix, first.configs, first.adapters) == ("acme", ("a.yaml",), ("torch", "c"))
    assert first.allow == ("README.md",)
    assert second.configs == ("kernels",)  # the project's
    assert project.entry_of(Path("../../third_party/attn")) == first
    assert project.entry_of(Path("third_party/attn")) is None
    assert project.templates is None


def test_templates_of_the_project_are_those_of_its_vendored_folders(here: Path) -> None:
    Path("fa4gen.toml").write_text(
        f'templates = "mine"\nconfigs = ["a.yaml"]\n{ENTRY}[[vendor]]\ninto = "other"\n'
        'prefix = "b"\ntemplates = "theirs"\n'
    )
    project = find_project()
    assert project is not None
    assert project.templates == here / "mine"
    first, second = project.vendored
    assert (first.templates, second.templates) == (here / "mine", here / "theirs")


def test_the_nearest_file_counts_and_the_own_name_before_pyproject(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = here / "a/b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert find_project() is None

    def found() -> str:
        project = find_project()
        assert project is not None
        return project.path.relative_to(here).as_posix()

    (here / "pyproject.toml").write_text("[tool.fa4gen]\n")
    assert found() == "pyproject.toml"
    (here / "fa4gen.toml").write_text("")
    assert found() == "fa4gen.toml"
    (here / "a/pyproject.toml").write_text("[tool.other]\n[project]\nname = 'x'\n")
    assert found() == "fa4gen.toml"  # the nearer file has no fa4gen section
    (here / "a/pyproject.toml").write_text("[tool.fa4gen]\n")
    assert found() == "a/pyproject.toml"


def test_nothing_above_the_home_folder_is_looked_at(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "fa4gen.toml").write_text("")
    home = here / "home"
    (home / "work").mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(home / "work")
    assert find_project() is None
    (home / "fa4gen.toml").write_text("")
    assert find_project() is not None


def test_unknown_keys_are_named_with_line_and_nearest(here: Path) -> None:
    first, second = problems(
        'confgs = ["a"]\n\n[[vendor]]\ninto = "x"\nprefix = "a"\nconfigs = ["a"]\n'
        '\n[[vendor]]\ninto = "y"\nprefix = "b"\n  adapter = ["torch"]\n'
    )
    assert (first.line, first.column, first.message) == (1, 1, "unknown key confgs")
    assert first.remedy == "Did you mean configs?"
    assert (second.line, second.column) == (11, 3)
    assert second.message == "unknown key adapter in vendor[1]"
    assert second.remedy == "Did you mean adapters?"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[[vendor]]\nprefix = "a"\nconfigs = ["a"]\n', 1, "the key into is missing in vendor[0]"),
        (ENTRY.replace("acme", "Acme"), 3, "lower-case letters, digits and single _"),
        (ENTRY.replace('"acme"', "3"), 3, "vendor[0].prefix: 3 is not possible"),
        (ENTRY + 'adapters = ["troch"]\n', 5, "troch is not possible; it must be c, cmake, torch"),
        (ENTRY.replace('["a.yaml"]', '"a.yaml"'), 4, "it must be a list"),
        (ENTRY.replace('configs = ["a.yaml"]\n', ""), 1, "no configs for third_party/attn"),
        (ENTRY + ENTRY.replace("attn", "b"), 7, "third_party/attn has the prefix acme, too"),
        (
            ENTRY + ENTRY.replace("acme", "b"),
            6,
            "third_party/attn and third_party/attn overlap",
        ),
        (
            ENTRY + ENTRY.replace("acme", "b").replace("attn", "attn/../attn/in"),
            6,
            "third_party/attn/../attn/in and third_party/attn overlap",
        ),
        ('out = ""\n', 1, "out"),
        ("vendor = 3\n", 1, "vendor: 3 is not possible"),
        ('a = "\n', 1, "not TOML: "),
        ("a = 1\na = 2\n", 2, "not TOML: Cannot overwrite a value"),
        (f"a = {'[' * 5000}{']' * 5000}\n", 0, "not TOML: hundreds of brackets"),
    ],
)
def test_mistakes_are_placed(here: Path, text: str, line: int, message: str) -> None:
    problem = problems(text)[0]
    assert (problem.file, problem.line) == ("fa4gen.toml", line)
    assert message in problem.message


def test_mistakes_in_pyproject_are_placed_in_its_own_lines(here: Path) -> None:
    text = '[project]\nname = "x"\nout = 1\n\n[tool.fa4gen]\nout = 3\n[[tool.fa4gen.vendor]]\n'
    first, *others = problems(text + 'into = "a"\nprefix = "b"\n', "pyproject.toml")
    assert (first.line, first.message.split(":")[0]) == (6, "out")
    assert others == []
    (only,) = problems(
        text.replace("out = 3\n", "") + 'into = "a"\nprefix = "b"\n', "pyproject.toml"
    )
    assert (only.line, only.message) == (6, "no configs for a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[tool]\nfa4gen = 3\n", "pyproject.toml:2:10: tool.fa4gen is not a table"),
        (
            '[tool.fa4gen]\nvendor = [{into="a", prfix="b"}]\n',
            "pyproject.toml:2:1: unknown key prf",
        ),
        ('[tool.fa4gen.vendor]\ninto="a"\n', "pyproject.toml:1:1: vendor: {into: a} is not"),
        ("[tool.fa4gen]\nvendor = [1]\n", "pyproject.toml:2:10: vendor[0]: 1 is not possible"),
        ("[tool.fa4gen]\nout = 1979-05-27\n", "pyproject.toml:2:7: out: 1979-05-27 is not"),
    ],
)
def test_other_shapes_are_refused(here: Path, text: str, expected: str) -> None:
    assert expected in str(problems(text, "pyproject.toml")[0])


def test_a_file_that_is_no_text_is_refused(here: Path) -> None:
    Path("fa4gen.toml").write_bytes(b'out = "\xff"\n')
    with pytest.raises(ConfigError, match="not UTF-8"):
        find_project()


def test_places_of_keys() -> None:
    places = toml_places(
        'a = 1\n[b."c.d"]\n  e.f = """\nx = 1\n"""\n[[g]]\nh = 1\n[[g.i]]\nj = 1\n[[g]]\n"h" = 2\n'
    )
    assert {path: place[:2] for path, place in places.items()} == {
        ("a",): (1, 1),
        ("b", "c.d"): (2, 1),
        ("b", "c.d", "e", "f"): (3, 3),
        ("g", 0): (6, 1),
        ("g", 0, "h"): (7, 1),
        ("g", 0, "i", 0): (8, 1),
        ("g", 0, "i", 0, "j"): (9, 1),
        ("g", 1): (10, 1),
        ("g", 1, "h"): (11, 1),
    }


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a folder of a project that is not the user's home."""
    monkeypatch.setattr(Path, "home", lambda: Path("/nowhere"))
    (tmp_path / "above/here").mkdir(parents=True)
    (tmp_path / "above").chmod(0o755)
    (tmp_path / "above/fa4gen.toml").write_text("")
    return tmp_path / "above/here"


def test_a_project_is_found_in_a_folder_above(tree: Path) -> None:
    project = find_project(tree)
    assert project is not None
    assert project.root == tree.parent


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps folders from others")
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_above_that_others_write_is_not_looked_in(tree: Path, mode: int) -> None:
    tree.parent.chmod(mode)
    assert find_project(tree) is None
    assert find_project(tree.parent) is not None  # where the user went is where they mean


def test_a_folder_above_of_another_owner_is_not_looked_in(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        found = list(real(path, **options))
        found[4] += path == tree.parent
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat)
    assert find_project(tree) is None


def test_a_repository_is_looked_through_to_its_root_and_no_further(tree: Path) -> None:
    tree.parent.chmod(0o775)
    (tree.parent / ".git").mkdir()
    assert find_project(tree) is not None
    (tree.parent / ".git").rmdir()
    (tree / ".git").mkdir()
    tree.parent.chmod(0o755)
    assert find_project(tree) is None
