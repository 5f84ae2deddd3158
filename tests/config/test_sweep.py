from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fa4gen.config.find import find_sweep
from fa4gen.config.load import config_from_data
from fa4gen.config.sweep import MAX_CASES, Sweep, expand_sweep
from fa4gen.errors import ConfigError, Problem
from fa4gen.resources import data_root

BASE = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
INLINE = "base: {kernel: attention, arch: sm_90a, dtype: bf16, depth: 128}\n"

Expand = Callable[..., Sweep]
Refuse = Callable[..., tuple[Problem, ...]]


@pytest.fixture
def expand(here: Path) -> Expand:
    """expand(text) expands shapes.yaml, beside the config base.yaml."""

    def expand(text: str) -> Sweep:
        Path("base.yaml").write_text(BASE)
        Path("shapes.yaml").write_text(text)
        return expand_sweep("shapes.yaml")

    return expand


@pytest.fixture
def refuse(expand: Expand) -> Refuse:
    def refuse(text: str) -> tuple[Problem, ...]:
        with pytest.raises(ConfigError) as caught:
            expand(text)
        return caught.value.problems

    return refuse


def test_a_sweep_over_an_inline_base(expand: Expand) -> None:
    sweep = expand(INLINE + "matrix:\n  depth: [64, 256]\n  mask: [none, causal]\n")

    assert sweep.name == "shapes"
    assert [case.name for case in sweep.cases] == [
        "shapes_d64_mask_none",
        "shapes_d64_causal",
        "shapes_d256_mask_none",
        "shapes_d256_causal",
    ]
    assert not any(case.problems for case in sweep.cases)
    config = config_from_data(sweep.cases[1].config, "")
    assert (config.name, config.depth, config.mask) == ("shapes_d64_causal", 64, "causal")
    assert sweep.cases[1].varied == {"depth": 64, "mask": "causal"}


@pytest.mark.parametrize("base", ["base.yaml", "d128_causal_bf16"])
def test_a_base_can_be_a_file_beside_the_sweep_or_a_shipped_config(
    expand: Expand, base: str
) -> None:
    sweep = expand(f"name: mine\nbase: {base}\nmatrix: {{depth: [64]}}\n")

    [case] = sweep.cases
    assert case.name == "mine_d64"
    assert config_from_data(case.config, "").depth == 64


def test_a_base_is_looked_for_beside_the_sweep(here: Path) -> None:
    Path("sub").mkdir()
    Path("sub/base.yaml").write_text(BASE)
    Path("sub/shapes.yaml").write_text("base: base.yaml\nmatrix: {depth: [64]}\n")

    assert len(expand_sweep("sub/shapes.yaml").cases) == 1


def test_exclude_and_include(expand: Expand) -> None:
    sweep = expand(
        INLINE + "matrix: {depth: [64, 128], mask: [none, causal]}\n"
        "exclude: [{depth: 64, mask: none}]\n"
        "include: [{depth: 64, lse: false}, {depth: 256}]\n"
    )

    assert [dict(case.varied) for case in sweep.cases] == [
        {"depth": 64, "mask": "causal", "lse": False},
        {"depth": 128, "mask": "none"},
        {"depth": 128, "mask": "causal"},
        {"depth": 256},
    ]
    assert [case.line for case in sweep.cases] == [2, 2, 2, 4]


def test_a_case_that_the_schema_refuses_is_kept_with_the_place_of_its_value(
    expand: Expand,
) -> None:
    sweep = expand(INLINE + "matrix:\n  depth: [64, 100]\ninclude:\n  - {depth: 256, BN: on}\n")

    fine, wrong, included = sweep.cases
    assert fine.problems == ()
    [problem] = wrong.problems
    assert (problem.file, problem.line, problem.column) == ("shapes.yaml", 3, 15)
    assert problem.remedy == "The nearest is 96."
    [problem] = included.problems
    assert (problem.line, problem.column) == (5, 22)
    assert "YAML reads on as true" in problem.remedy


def test_a_sweep_over_architectures(expand: Expand) -> None:
    sweep = expand(
        INLINE + "matrix:\n  arch: [sm_90a, sm_100a]\n  dtype: [bf16, fp8_e4m3]\n"
        "include:\n  - {arch: sm_100a, num_pv_stages: 2}\n  - {arch: sm_90a, kv_ring: fused}\n"
        "exclude: [{arch: sm_100a, dtype: bf16}]\n"
    )

    hopper, hopper_fp8, blackwell = sweep.cases
    assert [problem.message for problem in hopper.problems] == [
        "unknown key kv_ring for arch sm_90a"
    ]
    assert [problem.key for problem in hopper_fp8.problems] == ["kv_ring"]
    assert hopper_fp8.problems[0].place == "shapes.yaml:7:20"
    assert blackwell.problems == ()
    config = config_from_data(blackwell.config, "")
    assert (config.arch, config.data()["num_pv_stages"]) == ("sm_100a", 2)
    assert len({case.name for case in sweep.cases}) == 3


def test_a_key_of_the_base_that_one_architecture_lacks_is_placed_in_the_base(
    expand: Expand,
) -> None:
    Path("pingpong.yaml").write_text(BASE + "ping_pong: true\n")

    sweep = expand("base: pingpong.yaml\nmatrix: {arch: [sm_90a, sm_100a]}\n")

    hopper, blackwell = sweep.cases
    assert hopper.problems == ()
    [problem] = blackwell.problems
    assert problem.message == "unknown key ping_pong for arch sm_100a"
    assert (problem.file, problem.line) == ("pingpong.yaml", 5)


def test_a_matrix_that_gives_the_architecture(expand: Expand) -> None:
    sweep = expand(
        "base: {kernel: attention, dtype: bf16, depth: 128}\n"
        "matrix: {arch: [sm_90a, sm_103a, sm_90]}\n"
    )

    assert [len(case.problems) for case in sweep.cases] == [0, 0, 1]
    assert sweep.cases[2].problems[0].remedy == "The nearest is sm_90a."


def test_keys_of_every_architecture_are_known(refuse: Refuse) -> None:
    [problem] = refuse(INLINE + "matrix: {num_pv_stage: [1], ping_pong: [true], kv_ring: [x]}\n")

    assert problem.remedy == "Did you mean num_pv_stages?"


def test_a_wrong_key_of_a_base_file_is_placed_there(expand: Expand) -> None:
    Path("wrong.yaml").write_text(BASE + "BN: 17\n")

    sweep = expand("base: wrong.yaml\nmatrix: {depth: [64]}\ninclude: [{depth: 96, BN: 16}]\n")

    [problem] = sweep.cases[0].problems
    assert problem.place == "wrong.yaml:5:5"
    assert sweep.cases[1].problems == ()


@pytest.mark.parametrize(
    ("text", "place", "message", "remedy"),
    [
        ("- a\n", (1, 1), "a sweep is a mapping", "base:"),
        ("", (1, 1), "a sweep is a mapping", "base:"),
        (INLINE, (0, 0), "expands to nothing: it has neither", "matrix"),
        (INLINE + "matrix: {depth: []}\n", (2, 17), "must be a list of at least 1 entry", ""),
        (INLINE + "matrix: {depth: [64]}\nexclude: [{depth: 64}]\n", (3, 1),
         "exclude drops all 1 combinations", "Remove or narrow"),
        (INLINE + "matrix: {depth: 64}\n", (2, 17), "matrix.depth: 64 is not possible; it must be",
         ""),
        (INLINE + "matrix: [64]\n", (2, 9), "matrix: [64] is not possible; it must be a map", ""),
        (INLINE + "matrix: {depht: [64]}\n", (2, 10), "unknown key depht", "Did you mean depth?"),
        (INLINE + "matrx: {depth: [64]}\nmatrix: {depth: [64]}\n", (2, 1), "unknown key matrx",
         "Did you mean matrix, which is also given?"),
        (INLINE + "matrix: {depth: [64, 0x40]}\n", (2, 22), "64 is in matrix.depth twice", ""),
        (INLINE + "matrix: {depth: [064]}\n", (2, 18), "064 is octal", "52 or 64"),
        (INLINE + "matrix: {depth: [64]}\nexclude: [{depth: 65}]\n", (3, 11),
         "exclude[0] {depth: 65} matches no combination", ""),
        (INLINE + "matrix: {depth: [64]}\nexclude: [{mask: none}]\n", (3, 12),
         "mask, which is not a key of the matrix", "Keys of the matrix: depth."),
        (INLINE + "matrix: {depth: [64]}\ninclude: {depth: 65}\n", (3, 10),
         "include: {depth: 65} is not possible; it must be a list", ""),
        (INLINE + "matrix: {depth: [64]}\ninclude: [1]\n", (3, 11), "must be a mapping", ""),
        (INLINE + "matrix: {depth: [64]}\ninclude: [{depth: 96}, {depth: 96}]\n", (3, 24),
         "the same case twice: depth: 96", "Remove"),
        (INLINE + "matrix: {name: [a]}\n", (2, 10), "name cannot vary", ""),
        ("matrix: {depth: [64]}\n", (1, 1), "the key base is missing", "Add base"),
        ("base: 7\nmatrix: {depth: [64]}\n", (1, 7), "base: 7 is not possible; it must be", ""),
        ("base: bse.yaml\nmatrix: {depth: [64]}\n", (1, 7), "no such file", "base.yaml?"),
        ("base: {depht: 64}\nmatrix: {mask: [none]}\n", (1, 8), "unknown key depht in base",
         "depth"),
        ("name: [a]\n" + INLINE + "matrix: {depth: [64]}\n", (1, 7), "name: [a] is not", ""),
    ],
)  # fmt: skip
def test_a_sweep_that_is_refused(
    refuse: Refuse, text: str, place: tuple[int, int], message: str, remedy: str
) -> None:
    [problem] = refuse(text)

    assert message in problem.message
    assert remedy in problem.remedy
    assert (problem.line, problem.column) == place
    assert problem.file == "shapes.yaml"


def test_all_mistakes_of_a_sweep_are_reported_at_once(refuse: Refuse) -> None:
    problems = refuse("base: nothing\nmatrix: {depth: [], maks: [none]}\nincldue: []\n")

    assert [problem.line for problem in problems] == [1, 2, 2, 3]


def test_a_sweep_without_one_valid_case_is_refused_with_the_reasons(refuse: Refuse) -> None:
    summary, *reasons = refuse(INLINE + "matrix: {depth: [100, 101], mask: [none, causal]}\n")

    assert "none of the sweep's 4 cases is a valid config" in summary.message
    assert [reason.message.split(";")[0] for reason in reasons] == [
        "depth: 100 is not possible",
        "depth: 101 is not possible",
    ]


def test_a_matrix_that_explodes_is_refused_before_it_does(refuse: Refuse) -> None:
    values = ", ".join(map(str, range(200)))

    [problem] = refuse(INLINE + f"matrix: {{BM: [{values}], BN: [{values}], depth: [{values}]}}\n")

    assert f"200 * 200 * 200 = 8000000 combinations; {MAX_CASES}" in problem.message


def test_shipped_sweeps_expand_to_valid_configs() -> None:
    shipped = sorted((data_root("configs") / "sweeps").glob("*.yaml"))

    assert shipped
    for path in shipped:
        assert find_sweep(path.stem) == path
        sweep = expand_sweep(path)
        assert not [problem for case in sweep.cases for problem in case.problems]


def test_a_sweep_that_is_not_there(here: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean the shipped sweep hopper_tuning"):
        find_sweep("hoper_tuning")
    Path("mine.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"Did you mean mine\.yaml"):
        find_sweep("mime.yaml")
    assert find_sweep("mine.yaml") == Path("mine.yaml")


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\\b", ".hidden", "..", "x" * 101, "a b"])
def test_a_name_that_is_no_files(refuse: Refuse, name: str) -> None:
    [problem] = refuse(f"{INLINE}matrix: {{depth: [64]}}\nname: {name!r}\n")
    assert "is not possible; it must be letters, digits, _, - and dots" in problem.message
    assert (problem.line, problem.key) == (3, "name")
