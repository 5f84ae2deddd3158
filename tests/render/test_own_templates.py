"""A folder of own templates: what it overrides, what is refused in it, and its hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import ConfigError
from fa4gen.render.own_templates import (
    MOST_NAMED,
    check_folder,
    folder_sha256,
    nearest,
    overriding_files,
    shipped_templates,
)

if TYPE_CHECKING:
    from pathlib import Path

LOAD = "attention_sm90/load.cuh.j2"


def write(folder: Path, name: str, text: str = "// mine\n") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def problems(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        check_folder(folder)
    return [f"{one.file}: {one.message}: {one.remedy}" for one in caught.value.problems]


def test_all_shipped_templates_are_found() -> None:
    names = list(shipped_templates())
    assert LOAD in names
    assert "vendored/launcher.c.j2" in names
    assert names == sorted(names)
    assert len(names) > 400


def test_files_of_shipped_names_override(tmp_path: Path) -> None:
    path = write(tmp_path, LOAD)
    write(tmp_path, "attention_sm90/loader.cuh.j2")
    assert overriding_files(tmp_path) == {LOAD: path}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("attention_sm90/loader.cuh.j2", LOAD),
        ("attention_sm90/load.cuh", LOAD),
        ("attention_sm90/load.cuh.j2.j2", LOAD),
        ("load.cuh.j2", "gemm_sm90/load.cuh.j2"),
        ("attention_sm9/handovers.cuh.j2", "attention_sm90/handovers.cuh.j2"),
    ],
)
def test_a_file_without_effect_is_refused_with_the_nearest_name(
    tmp_path: Path, name: str, near: str
) -> None:
    path = write(tmp_path, name)
    assert problems(tmp_path) == [
        f"{path}: the file overrides no template, and none of yours includes it: "
        f"Did you mean {near}? `fa4gen templates list` shows all."
    ]
    assert nearest(name) == f"Did you mean {near}?"


def test_the_first_of_many_are_named(tmp_path: Path) -> None:
    for number in range(MOST_NAMED + 3):
        write(tmp_path, f"other/{number}.j2")
    *named, last = problems(tmp_path)
    assert len(named) == MOST_NAMED
    assert last.startswith(f"{tmp_path}: 3 more of its files override no template")


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_file_that_an_own_template_includes_has_an_effect(tmp_path: Path, quote: str) -> None:
    write(tmp_path, LOAD, f"{{% include {quote}own/a.j2{quote} %}}\n")
    write(tmp_path, "own/a.j2", "{% import 'own/b.j2' as b %}\n")
    write(tmp_path, "own/b.j2")
    check_folder(tmp_path)
    write(tmp_path, "own/a.j2")  # which includes b no more
    (problem,) = problems(tmp_path)
    assert problem.startswith(f"{tmp_path / 'own/b.j2'}: ")


def test_files_that_include_each_other_alone_have_none(tmp_path: Path) -> None:
    write(tmp_path, "own/a.j2", "{% include 'own/b.j2' %}\n")
    write(tmp_path, "own/b.j2", "{% include 'own/a.j2' %}\n")
    assert len(problems(tmp_path)) == 2


@pytest.mark.parametrize("name", [".git/config", "attention_sm90/.load.cuh.j2.swp", f"{LOAD}~"])
def test_hidden_files_and_copies_of_editors_are_passed_over(tmp_path: Path, name: str) -> None:
    write(tmp_path, LOAD)
    before = folder_sha256(tmp_path)
    write(tmp_path, name)
    check_folder(tmp_path)
    assert folder_sha256(tmp_path) == before


def test_the_hash_is_of_names_and_contents(tmp_path: Path) -> None:
    assert folder_sha256(None) == ""
    hashes = [folder_sha256(tmp_path)]
    path = write(tmp_path, LOAD, "{% include 'own.j2' %}\n")
    hashes.append(folder_sha256(tmp_path))
    write(tmp_path, "own.j2")
    hashes.append(folder_sha256(tmp_path))
    write(tmp_path, "own.j2", "// other\n")
    hashes.append(folder_sha256(tmp_path))
    path.rename(path.with_name("consume.cuh.j2"))
    hashes.append(folder_sha256(tmp_path))
    assert len(set(hashes)) == len(hashes)


def test_a_linked_folder_counts(tmp_path: Path) -> None:
    """The loader of templates follows links, and so do the hash and the list."""
    write(tmp_path / "elsewhere", "load.cuh.j2")
    mine = tmp_path / "mine"
    mine.mkdir()
    empty = folder_sha256(mine)
    (mine / "attention_sm90").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert list(overriding_files(mine)) == [LOAD]
    assert folder_sha256(mine) != empty
