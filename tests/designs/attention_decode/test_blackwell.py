"""Decode on Blackwell: the kernel of Hopper, with another guard."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.registry import BLACKWELL, design_of
from fa4gen.render.render import render

KEYS: dict[str, Any] = {
    "kernel": "attention", "dtype": "bf16", "depth": 128, "mask": "causal", "pack_heads": True
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "paged": {"keys": "paged", "page_size": 16, "sinks": True},
    "splits": {"key_lengths": True, "split_keys": {"keys": 1024}, "packed_rows": 16},
}


def text_of(arch: str, keys: dict[str, Any]) -> list[str]:
    """Lines of a kernel, without what names its architecture and its config's hash."""
    loaded = load_mapping({**KEYS, **keys, "arch": arch}, "probe")
    source = render(build_plan(loaded.config), loaded).files["probe.cu"]
    number = arch.removeprefix("sm_")
    for word in (ARCHITECTURES[arch].another_target, f"sm_{number}", f"compute_{number}"):
        assert word in source
        source = source.replace(word, "ARCH")
    source = source.replace("a pass for another target", "another target")  # families: shorter
    return [line for line in source.splitlines() if "sha256" not in line]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arch", BLACKWELL)
def test_it_is_the_same_kernel(kind: str, arch: str) -> None:
    assert text_of(arch, KINDS[kind]) == text_of("sm_90a", KINDS[kind])


@pytest.mark.parametrize("arch", BLACKWELL)
def test_the_plan_has_no_tensor_memory(arch: str) -> None:
    plan: Any = build_plan(load_mapping({**KEYS, "arch": arch}, "probe").config)
    hopper: Any = build_plan(load_mapping({**KEYS, "arch": "sm_90a"}, "probe").config)
    assert design_of(plan).name == "attention_decode"
    assert not plan.has_tensor_memory
    assert plan.parameters == hopper.parameters
    assert plan.workspace_bytes(148) == plan.ticket_bytes + 148 * 2 * 8 * (128 + 4) * 4
    assert plan.rescale_threshold == hopper.rescale_threshold == 8.0


def test_other_kernels_of_blackwell_are_as_they_were() -> None:
    keys = {**KEYS, "arch": "sm_100a", "pack_heads": False}
    plan = build_plan(load_mapping(keys, "probe").config)
    assert design_of(plan).name == "attention_sm100"
