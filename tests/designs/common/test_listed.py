"""The keys that ``blocks: listed`` can be combined with."""

from __future__ import annotations

import re

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError

CONFIG = {
    "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128, "blocks": "listed",
    "mask": "key <= query and (query - key) // 128 % 2 == 0",
}  # fmt: skip


def plan_of(**keys):
    return build_plan(load_mapping({**CONFIG, **keys}, "probe").config)


def test_a_plan_says_whether_blocks_are_listed() -> None:
    assert plan_of().lists_blocks
    assert not plan_of(blocks="walked").lists_blocks
    assert not plan_of().mixed_tile_heights


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"mask": "causal"}, "of mask: causal the blocks are known without lists"),
        ({"mask": "key <= query and query - key < 300"}, "the blocks are known without lists"),
        (
            {"arch": "sm_100a", "depth": 512, "cta_group": 2},
            "the two CTAs of a pair load the same blocks",
        ),
        ({"cta_group": 2}, "with cta_group: 2 is not supported yet"),
        ({"depth": 512, "cta_group": 2}, "the two CTAs of a pair load the same blocks"),
        ({"pack_heads": True}, "CTAs share a line of all blocks"),
        ({"key_lengths": True}, "with key_lengths: true is not supported yet"),
        ({"batching": "ragged"}, "with batching: ragged and keys: ragged is not supported yet"),
        ({"keys": "paged", "page_size": 64}, "with keys: paged is not supported yet"),
    ],
)
def test_what_lists_do_not_go_with_is_refused_with_the_reason(keys, words) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(**keys)
    assert words in str(caught.value)
    assert re.search("(use|Set) blocks: walked", str(caught.value))


def test_each_reason_is_given_once() -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(cta_group=2, batching="ragged")
    text = str(caught.value)
    assert text.count("the two CTAs of a pair load the same blocks") == 1
    assert text.count("each sequence has its own, read on the device") == 1


def test_the_plan_explains_what_lists_do() -> None:
    (_, lines), *_ = plan_of().explained
    assert lines[0] == "blocks of keys that the call's lists do not name are not loaded"
    (_, lines), *_ = plan_of(blocks="walked").explained
    assert any("each score is kept if" in line for line in lines)
