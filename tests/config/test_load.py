from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.config.load import config_from_data, load_config, load_mapping, locate
from fa4gen.config.sweep import expand_sweep
from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
from fa4gen.designs.registry import MODELS
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from tests.config.conftest import Refuse

HEAD = "kernel: attention\narch: sm_90a\ndtype: bf16\n"
VALID = HEAD + "depth: 128\n"
BLACKWELL = VALID.replace("sm_90a", "sm_100a")
BLACKWELL_GEMM = "kernel: gemm\narch: sm_100a\ndtype: bf16\n"
FIELDS = list(dict.fromkeys(key for model in MODELS for key in model.load().model_fields))


def test_a_config_without_a_name_is_called_like_its_file(here: Path) -> None:
    Path("d128.yaml").write_text(VALID + "mask: causal\n")

    loaded = load_config("d128.yaml")

    assert loaded.config.name == "d128"
    assert loaded.config.mask == "causal"
    assert loaded.path == Path("d128.yaml")
    assert loaded.positions["mask",][:2] == (5, 1)
    assert ("lse",) not in loaded.positions


def test_a_name_in_the_file_wins(here: Path) -> None:
    Path("d128.yaml").write_text(VALID + "name: other\n")

    assert load_config("d128.yaml").config.name == "other"


def test_a_byte_order_mark_is_no_content(here: Path) -> None:
    Path("a.yaml").write_bytes(b"\xef\xbb\xbf" + VALID.encode())

    assert load_config("a.yaml").positions["kernel",][:2] == (1, 1)


@pytest.mark.parametrize(
    ("line", "column", "message", "remedy"),
    [
        ("depth: 100", 8, "depth: 100 is not possible; it must be 64, 96, 128, 192, 256, 512 or",
         "The nearest is 96."),
        ("depth: 80", 8, "depth: 80 is not", "The nearest are 64 and 96."),
        ('depth: "128"', 8, 'depth: "128" is not possible', "Write 128 without quotes."),
        ("depth:", 7, "depth: null is not possible", "Nothing was written after the colon."),
        ("depth: on", 8, "depth: true is not possible", "YAML reads on as true; in quotes"),
        ("depth: 0100", 8, "0100 is octal in YAML 1.1 (64)", "64 or 100"),
        ("depht: 128", 1, "unknown key depht", "Did you mean depth?"),
    ],
)  # fmt: skip
def test_one_wrong_key(refuse: Refuse, line: str, column: int, message: str, remedy: str) -> None:
    [problem] = refuse(f"{HEAD}{line}\n")

    assert (problem.line, problem.column) == (4, column)
    assert message in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("line", "column", "message", "remedy"),
    [
        ("mask: casual", 7, "it must be none, causal, documents, prefix, tree, {sliding_window",
         "is causal."),
        ("mask: no", 7, "mask: false is not possible", "YAML reads no as false"),
        ("mask: {sliding_windw: 3}", 8, "unknown key sliding_windw in mask", "sliding_window?"),
        ("mask: {sliding_window: {left: 3}}", 8, "the key right is missing in mask.sliding_window",
         "a whole number from 0 to 1073741824"),
        ("mask: {sliding_window: 0}", 24, "mask.sliding_window: 0", "The nearest is 1."),
        ("registers: {producer: 25, consumer: 160}", 23, "registers.producer: 25", "is 24."),
        ("registers: 32", 12, "it must be {producer: ..., consumer: ...} or auto", ""),
        ("overlap: 1", 10, "overlap: 1 is not possible; it must be true or false", ""),
        ("foo: 1", 1, "unknown key foo", "Known keys: kernel, name,"),
        ("Depth: 64", 1, "unknown key Depth", "Did you mean depth, which is also given?"),
        ("depth: 64", 1, "the key depth is given twice: first at line 4, column 1", "Remove"),
        ("name: My-Kernel", 7, "lower-case letters, digits and _", ""),
        ("softcap: .inf", 10, "softcap: inf", ""),
    ],
)  # fmt: skip
def test_one_wrong_key_beside_valid_ones(
    refuse: Refuse, line: str, column: int, message: str, remedy: str
) -> None:
    [problem] = refuse(f"{VALID}{line}\n")

    assert (problem.line, problem.column) == (5, column)
    assert message in problem.message
    assert remedy in problem.remedy


def test_all_mistakes_are_reported_at_once_from_top_to_bottom(refuse: Refuse) -> None:
    problems = refuse("arch: sm_90\ndtype: bf16\ndepth: 100\nBN: 010\nBN: 16\nmaks: causal\n")

    assert [(p.line, p.column, p.key) for p in problems] == [
        (1, 1, "kernel"),
        (1, 7, "arch"),
        (3, 8, "depth"),
        (4, 5, "BN"),
        (5, 1, "BN"),
        (6, 1, "maks"),
    ]


def test_a_config_for_blackwell(here: Path) -> None:
    Path("a.yaml").write_text(BLACKWELL + "num_pv_stages: 2\n")

    config = load_config("a.yaml").config

    assert isinstance(config, BlackwellAttentionConfig)
    assert (config.name, config.num_pv_stages) == ("a", 2)


def test_a_matrix_product_for_blackwell(here: Path) -> None:
    Path("a.yaml").write_text(BLACKWELL_GEMM + "activation: relu( x )\n")

    config = load_config("a.yaml").config

    assert isinstance(config, BlackwellGemmConfig)
    assert (config.name, config.activation) == ("a", "relu( x )")


def test_a_rule_between_keys_is_placed_at_one_of_them(refuse: Refuse) -> None:
    [problem] = refuse(VALID + "page_size: 64\n")

    assert (problem.line, problem.column, problem.key) == (5, 12, "page_size")
    assert "is for keys: paged" in problem.message


def test_a_file_name_that_is_no_kernel_name(refuse: Refuse) -> None:
    [problem] = refuse(VALID, "D128-causal (2).yaml")

    assert "'D128-causal (2)'" in problem.message
    assert problem.remedy == "Add name: d128_causal_2, or rename the file to d128_causal_2.yaml."


def test_a_file_name_without_any_letter_gets_a_usable_suggestion(refuse: Refuse) -> None:
    [problem] = refuse(VALID, "128.yaml")

    assert "Add name: kernel_128," in problem.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the config is empty"),
        ("# only a comment\n", "the config is empty"),
        ("- depth: 64\n", "not a list"),
        ("attention\n", "not a single value"),
    ],
)
def test_what_is_not_a_mapping(refuse: Refuse, text: str, message: str) -> None:
    [problem] = refuse(text)

    assert message in problem.message
    assert "kernel: attention" in problem.remedy


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (VALID.encode() + b"# caf\xe9\n", (5, 6), "not UTF-8: byte 0xe9"),
        (VALID.encode("utf-16"), (1, 1), "UTF-16"),
        (b"#" * (1 << 21), (0, 0), "larger than"),
        (b"a: \x00", (1, 4), "U+0000"),
    ],
)
def test_what_is_no_text_file(
    refuse: Refuse, data: bytes, place: tuple[int, int], message: str
) -> None:
    [problem] = refuse(data)

    assert (problem.line, problem.column) == place
    assert message in problem.message


def test_a_missing_file_names_the_most_similar_one(here: Path) -> None:
    Path("d128_causal.yaml").write_text(VALID)

    with pytest.raises(ConfigError) as caught:
        load_config("d128_casual.yaml")

    [problem] = caught.value.problems
    assert problem.message == "no such file"
    assert problem.remedy == "Did you mean d128_causal.yaml?"


def test_a_folder_is_no_config(here: Path) -> None:
    with pytest.raises(ConfigError, match="this is a folder"):
        load_config(here)


@pytest.mark.parametrize("path", ["a\0b.yaml", "x" * 300 + ".yaml", "small.yaml/inside.yaml"])
def test_a_path_that_cannot_be(here: Path, path: str) -> None:
    Path("small.yaml").write_text(VALID)

    with pytest.raises(ConfigError, match=r"cannot be read|no such file"):
        load_config(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_not_waited_for(here: Path) -> None:
    os.mkfifo("pipe.yaml")
    for load in (load_config, expand_sweep):
        with pytest.raises(ConfigError, match="a pipe or device, not a file"):
            load("pipe.yaml")


def test_locate_adds_the_place_of_the_key(here: Path) -> None:
    Path("a.yaml").write_text(VALID + "registers:\n  producer: 24\n  consumer: 240\n")
    loaded = load_config("a.yaml")
    error = ConfigError(
        Problem("one", key="registers.consumer"),
        Problem("two", key="num_kv_stages"),
        Problem("three", key="registers.other"),
        Problem("four", file="else.yaml", line=3, key="depth"),
        Problem("five"),
    )

    located = locate(error, loaded)

    assert [(p.message, p.file, p.line, p.column) for p in located.problems] == [
        ("one", "a.yaml", 7, 13),
        ("two", "a.yaml", 0, 0),
        ("three", "a.yaml", 6, 3),
        ("four", "else.yaml", 3, 0),
        ("five", "a.yaml", 0, 0),
    ]


def test_a_mapping_is_validated_like_a_file() -> None:
    data = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}

    loaded = load_mapping(data, "small", Path("sweep.yaml"))

    assert loaded.config == config_from_data({**data, "name": "small"}, "")
    assert loaded.path == Path("sweep.yaml")
    with pytest.raises(ConfigError, match="The nearest is 64"):
        load_mapping({**data, "depth": 63}, "small")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.dictionaries(st.sampled_from([*FIELDS, "junk"]), JUNK),
    st.none() | st.sampled_from(["sm_90a", "sm_100a"]),
)
def test_any_junk_gives_messages_and_nothing_else(
    here: Path, junk: dict[str, object], arch: str | None
) -> None:
    import yaml

    if arch is not None:
        junk["arch"] = arch

    path = Path("junk.yaml")
    path.write_text(yaml.safe_dump(junk, allow_unicode=True), encoding="utf-8")

    with pytest.raises(ConfigError) as caught:  # kernel, dtype and depth never all fit
        load_config(path)

    assert all(p.message and p.file == "junk.yaml" and p.line for p in caught.value.problems)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"softcap": 10**400}, "it must be a number from 0.0001 to 10000.0 or null"),
        ({"softcap": -(10**400)}, "it must be a number from 0.0001 to 10000.0 or null"),
        (
            {"mask": {"chunked": 8, "sliding_window": 8}},
            "mask: chunked cannot be given beside sliding_window",
        ),
    ],
)
def test_values_that_no_file_can_hold_and_two_at_a_time(
    keys: dict[str, object], message: str
) -> None:
    data = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
    with pytest.raises(ConfigError, match=message):
        config_from_data({**data, **keys}, "x")
