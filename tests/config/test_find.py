from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.config.find import find_configs, portable_name, shipped_configs, shipped_name
from fa4gen.config.load import load_config
from fa4gen.config.project import find_project
from fa4gen.errors import ConfigError, Problem
from fa4gen.resources import data_root


@pytest.fixture
def tree(here: Path) -> Path:
    for name in ("b.yaml", "a/c.yml", "a/d.yaml", "sweeps/s.yaml", ".git/x.yaml", "notes.txt"):
        path = here / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (here / "empty").mkdir()
    return here


def names(*arguments: str) -> list[str]:
    return [str(path) for path in find_configs(arguments)]


def problem(*arguments: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        find_configs(arguments)
    [only] = caught.value.problems
    return only


def test_no_argument_means_every_shipped_config() -> None:
    found = find_configs([])

    assert found == shipped_configs()
    assert len(found) >= 1
    for path in found:
        load_config(path)


def test_a_folder_gives_its_configs_but_no_sweeps(tree: Path) -> None:
    assert names(".") == ["a/c.yml", "a/d.yaml", "b.yaml"]
    assert names("a") == ["a/c.yml", "a/d.yaml"]


def test_a_sweeps_folder_that_is_named_is_searched(tree: Path) -> None:
    assert names("sweeps") == ["sweeps/s.yaml"]


def test_a_file_of_any_name_counts_when_named(tree: Path) -> None:
    assert names("notes.txt") == ["notes.txt"]


def test_globs(tree: Path) -> None:
    assert names("*.yaml") == ["b.yaml"]
    assert names("**/*.y*ml") == ["a/c.yml", "a/d.yaml", "b.yaml", "sweeps/s.yaml"]
    assert names(str(tree / "a" / "*")) == [str(tree / "a/c.yml"), str(tree / "a/d.yaml")]


def test_each_config_comes_once_in_the_order_named(tree: Path) -> None:
    assert names("b.yaml", ".", "./b.yaml") == ["b.yaml", "a/c.yml", "a/d.yaml"]


def test_tiles_of_tables_are_no_shipped_configs() -> None:
    tuned = find_configs([data_root("configs") / "tuned"])

    assert tuned
    assert not set(tuned) & set(shipped_configs())
    assert {shipped_name(path) for path in tuned} == {""}


def test_the_project_of_this_repository_has_every_shipped_config(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    project = find_project()
    assert project is not None

    named = find_configs(project.content.configs)
    found = [path.resolve().relative_to(root / "configs") for path in named]

    here = data_root("configs").resolve()
    assert sorted(found) == sorted(path.resolve().relative_to(here) for path in shipped_configs())


def test_shipped_configs_by_name_and_by_last_part(here: Path) -> None:
    [path] = find_configs(["attention/sm_90a/d128_causal_bf16"])

    assert shipped_name(path) == "attention/sm_90a/d128_causal_bf16"
    assert find_configs(["d128_causal_bf16"]) == [path]
    assert find_configs(["d128_causal_bf16.yaml"]) == [path]
    assert path in find_configs(["attention/sm_90a"])


@pytest.fixture
def two_of_a_stem(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Shipped configs of which two differ only in the architecture."""
    monkeypatch.setattr("fa4gen.config.find.data_root", lambda name: here / "data" / name)
    for name in ("sm_90a/d64", "sm_100a/d64", "sm_100a/d64_fp8"):
        path = here / "data/configs/attention" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return here / "data/configs/attention"


def test_a_last_part_that_two_shipped_configs_share_is_refused(two_of_a_stem: Path) -> None:
    found = problem("d64")

    assert found.message == "'d64' names 2 shipped configs"
    assert found.remedy == "Say which: attention/sm_100a/d64 or attention/sm_90a/d64."


def test_enough_of_a_name_tells_them_apart(two_of_a_stem: Path) -> None:
    assert find_configs(["sm_90a/d64"]) == [two_of_a_stem / "sm_90a/d64.yaml"]
    assert find_configs(["attention/sm_100a/d64"]) == [two_of_a_stem / "sm_100a/d64.yaml"]
    assert find_configs(["d64_fp8"]) == [two_of_a_stem / "sm_100a/d64_fp8.yaml"]


def test_a_last_part_that_two_share_is_not_suggested(two_of_a_stem: Path) -> None:
    assert problem("d64_fp").remedy == "Did you mean the shipped config d64_fp8?"
    assert "config d64?" not in problem("d65").remedy


def test_last_parts_of_shipped_configs_differ() -> None:
    stems = [path.stem for path in shipped_configs()]

    assert len(set(stems)) == len(stems)


def test_a_local_file_wins_over_a_shipped_name(here: Path) -> None:
    Path("d128_causal_bf16").write_text("")

    assert names("d128_causal_bf16") == ["d128_causal_bf16"]


def test_a_path_that_is_no_shipped_config_has_no_shipped_name(tree: Path) -> None:
    assert shipped_name(tree / "b.yaml") == ""


@pytest.mark.parametrize(
    ("argument", "message", "remedy"),
    [
        ("empty", "no config in this folder", "end with .yaml or .yml"),
        ("z*.yaml", "'z*.yaml' matches no file", "**"),
        ("*.txt", "'*.txt' matches no config", "end with .yaml"),
        ("bb.yaml", "no such file", "Did you mean b.yaml?"),
        ("d128_casual_bf16", "no such file", "Did you mean the shipped config d128_causal_bf16?"),
        ("nowhere/x.yaml", "no such file", "There is no folder nowhere"),
        ("", "names no config", ""),
        ("a\0", "names no config", ""),
    ],
)
def test_what_names_nothing(tree: Path, argument: str, message: str, remedy: str) -> None:
    found = problem(argument)

    assert message in found.message
    assert remedy in found.remedy


def test_all_wrong_arguments_are_reported_at_once(tree: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_configs(["empty", "b.yaml", "nothing.yaml"])

    assert [p.file for p in caught.value.problems] == ["empty", "nothing.yaml"]


def test_configs_of_another_checkout_have_the_shipped_names(tmp_path: Path) -> None:
    """An installed fa4gen renders a checkout's configs to the texts that it keeps."""
    for place, name in (
        ("attention/sm_90a/d128_causal_bf16.yaml", "attention/sm_90a/d128_causal_bf16"),
        ("attention/sm_90a/mine.yaml", "mine.yaml"),
        ("tuned/mine.yaml", "mine.yaml"),
        ("sweeps/hopper_tuning.yaml", "hopper_tuning.yaml"),
        ("sweeps/gemm/sm_90a/gemm_hopper_tiles.yaml", "gemm_hopper_tiles.yaml"),
    ):
        assert portable_name(tmp_path / "configs" / place) == name
    for path in shipped_configs():
        relative = path.relative_to(data_root("configs"))
        copy = tmp_path / "configs" / "old" / "configs" / relative
        assert portable_name(copy) == portable_name(path) == shipped_name(path)


def test_a_name_of_a_lock_is_portable_already() -> None:
    name = "attention/sm_90a/d128_causal_bf16"
    assert portable_name(Path(name)) == name
    assert portable_name(Path("kernel")) == "kernel"
    assert portable_name(Path("/somewhere/mine.yaml")) == "mine.yaml"
