"""Cases of sweeps that have names: FILE/NAME is the path of a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.config.sweep import expand_sweep
from fa4gen.errors import ConfigError

SWEEP = """\
base:
  kernel: attention
  arch: sm_90a
  depth: 128
include:
  - {name: one, dtype: bf16}
  # with a comment
  - name: two
    dtype: fp16
    depth: 64
"""


@pytest.fixture
def sweep(here: Path) -> Path:
    path = Path("some.yaml")
    path.write_text(SWEEP)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value)


def test_a_case_is_a_config(sweep: Path) -> None:
    loaded = load_config(sweep / "two")
    assert (loaded.config.name, loaded.config.dtype) == ("two", "fp16")
    assert loaded.config.data()["depth"] == 64
    assert loaded.place_of("depth") == "some.yaml:10"
    assert load_config(sweep / "one").place_of("depth") == "some.yaml:4"
    assert loaded.files == (sweep,)


def test_a_sweep_stands_for_its_named_cases(sweep: Path) -> None:
    both = [sweep / "one", sweep / "two"]
    assert find_configs([sweep]) == both
    assert find_configs([sweep / "two"]) == [sweep / "two"]
    Path("sweeps").mkdir()
    sweep.rename("sweeps/some.yaml")
    Path("sweeps/matrix.yaml").write_text("base: d128_causal_bf16\nmatrix: {depth: [64]}\n")
    assert find_configs(["sweeps"]) == [Path("sweeps/some.yaml/one"), Path("sweeps/some.yaml/two")]


def test_the_sweep_has_the_same_cases(sweep: Path) -> None:
    for case in expand_sweep(sweep).cases:
        assert case.problems == ()
        assert "name" not in case.varied
        assert dict(case.config) == {
            **load_config(sweep / case.name).config.data(only_changed=True)
        }


def test_a_base_in_a_file_counts(sweep: Path) -> None:
    Path("base.yaml").write_text("kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n")
    sweep.write_text("base: base.yaml\ninclude:\n  - {name: one, depth: 64}\n")
    loaded = load_config(sweep / "one")
    assert loaded.files == (sweep, Path("base.yaml"))
    assert loaded.place_of("dtype") == "base.yaml:3"
    assert loaded.place_of("depth") == "some.yaml:3"
    Path("base.yaml").write_text("kernel: attention\narch: sm_90a\ndtype: bf61\ndepth: 128\n")
    assert refusal(sweep / "one").startswith("base.yaml:3:8: dtype")


def test_other_configs_build_on_a_case(sweep: Path) -> None:
    Path("mine.yaml").write_text("extends: some.yaml/two\nlse: false\n")
    loaded = load_config("mine.yaml")
    assert (loaded.config.name, loaded.config.dtype) == ("mine", "fp16")
    assert loaded.place_of("dtype") == "some.yaml:9"
    assert loaded.files == (Path("mine.yaml"), sweep)


def test_a_wrong_value_has_its_place(sweep: Path) -> None:
    sweep.write_text(SWEEP.replace("fp16", "fp61"))
    assert refusal(sweep / "two").startswith("some.yaml:9:12: dtype")
    assert load_config(sweep / "one").config.name == "one"


def test_a_name_that_no_case_has(sweep: Path) -> None:
    with pytest.raises(ConfigError, match="no config called tow is in this file") as caught:
        find_configs([sweep / "tow"])
    assert "Did you mean some.yaml/two?" in str(caught.value)
    assert "no case called tow" in refusal(sweep / "tow")


def test_a_case_cannot_build_on_a_case(sweep: Path) -> None:
    sweep.write_text("base: some.yaml/one\ninclude:\n  - {name: one, depth: 64}\n")
    assert "the base of a case with a name is a file" in refusal(sweep / "one")


def test_names_vary_only_where_there_is_no_matrix(sweep: Path) -> None:
    sweep.write_text(SWEEP + "matrix: {depth: [64]}\n")
    with pytest.raises(ConfigError, match="name cannot vary"):
        expand_sweep(sweep)


def test_two_cases_of_one_name_are_refused(sweep: Path) -> None:
    sweep.write_text(SWEEP.replace("name: two", "name: one"))
    with pytest.raises(ConfigError, match="two cases are called one"):
        expand_sweep(sweep)


def test_commands_take_cases(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "some.yaml/two", "--no-compile"]) == 0
    assert Path("generated/sm_90a/two/two.cu").is_file()
    assert main(["check", "some.yaml/two"]) == 0
    assert main(["check", "some.yaml"]) == 3
    capsys.readouterr()
    Path("generated/sm_90a/two/two.cu").write_text("mine\n")
    assert main(["check", "some.yaml/two"]) == 3
    assert "fa4gen render --force some.yaml/two" in capsys.readouterr().out
