from __future__ import annotations

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.config.synonyms import KEYS, OF_KERNEL, VALUES, WITH_THE_CALL
from fa4gen.errors import ConfigError

ATTENTION = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
GEMM = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}


def remedies(config: dict[str, object]) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        load_mapping(config, "probe")
    return {problem.key: problem.remedy for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("heads", 32, "It comes with the call: no key is needed."),
        ("kv_heads", 8, "It comes with the call: no key is needed."),
        ("causal", True, "Write mask: causal."),
        ("causal", False, "Write mask: none."),
        ("window", 128, "Write mask: {sliding_window: 128}."),
        ("window_size", [128, 0], "Write mask: {sliding_window: {left: 128, right: 0}}."),
        ("bias", True, "Write score: {relative_bias: 128}."),
        ("BLOCK_M", 64, "Write BM: 64."),
        ("base", "a.yaml", "Write extends: a.yaml."),
        ("head_dim", 128, "It is depth here, which is also given. Remove one."),
    ],
)
def test_a_key_of_another_tool_is_answered_with_the_line_to_write(key, value, remedy) -> None:
    assert remedies({**ATTENTION, key: value}) == {key: remedy}


def test_the_missing_key_is_not_reported_beside_its_name_elsewhere() -> None:
    config = {**ATTENTION, "arch": "hopper", "dtype": "bfloat16", "head_dim": 128}
    del config["depth"]
    assert remedies(config) == {
        "arch": "The nearest is sm_90a.",
        "dtype": "The nearest is bf16.",
        "head_dim": "Write depth: 128.",
    }


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("residual", True, "The nearest is matrix."),
        ("bias", True, "Write residual: row."),
        ("activation", "swish(x)", "did you mean silu?"),
    ],
)
def test_products_have_their_own(key, value, words) -> None:
    with pytest.raises(ConfigError) as caught:
        load_mapping({**GEMM, key: value}, "probe")
    assert words in str(caught.value)


def test_no_synonym_is_a_key_or_a_value_itself() -> None:
    from fa4gen.config.json_schema import config_schema

    text = str(config_schema())
    for word in {*KEYS, *WITH_THE_CALL} - {"d", "m", "n", "k", "heads"}:  # heads: within blocks
        assert f"'{word}': {{" not in text, word
    for (kernel, word), line in OF_KERNEL.items():
        config = ATTENTION if kernel == "attention" else GEMM
        assert word in remedies({**config, word: 1})
        assert line
    for key, values in VALUES.items():
        assert set(values).isdisjoint(values.values()), key
