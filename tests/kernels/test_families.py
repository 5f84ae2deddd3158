"""Kernels for a family of architectures: the code that its members share, compiled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.registry import BLACKWELL
from fa4gen.render.render import render
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from fa4gen.render.render import RenderedKernel
    from fa4gen.toolchain.model import Built

SCALED = {"kernel": "gemm", "dtype": "fp4_e2m1"}
ATTENTION = {"kernel": "attention", "dtype": "bf16", "depth": 128}
SAMPLE = {
    "mxfp8": {"kernel": "gemm", "dtype": "fp8_e4m3", "scales": "mxfp8"},
    "mxfp4": {**SCALED, "scales": "mxfp4"},
    "nvfp4": {**SCALED, "scales": "nvfp4", "scale_order": "row_major", "cta_group": 2},
    "grouped": {"kernel": "gemm", "dtype": "bf16", "groups": "offsets"},
    "pair": {**ATTENTION, "cta_group": 2, "mask": "causal"},
    "paged_fp8": {**ATTENTION, "dtype": "fp8_e4m3", "keys": "paged", "page_size": 64},
    "depth512": {**ATTENTION, "depth": 512, "cta_group": 2},
    "decode": {**ATTENTION, "pack_heads": True, "kv_dtype": "fp8_e4m3"},
    "latent": {**ATTENTION, "depth": 576, "value_depth": 512, "pack_heads": True}
    | {"cta_group": 2},
    "merge": {"kernel": "merge", "dtype": "bf16", "depth": 128},
}
"""Configs of each design of Blackwell, and each form of scales."""


def rendered(name: str, arch: str) -> RenderedKernel:
    loaded = load_mapping({**SAMPLE[name], "arch": arch}, "probe")
    return render(build_plan(loaded.config), loaded)


def compiled(kernel: RenderedKernel, arch: str) -> Built:
    return find_compiler("nvrtc").build(Unit("probe", kernel.source, kernel.headers, arch))


@pytest.mark.compile
@pytest.mark.parametrize("name", SAMPLE)
def test_every_design_compiles_for_the_family(name: str) -> None:
    built = compiled(rendered(name, "sm_100f"), "sm_100f")
    assert ".target sm_100f" in built.ptx
    assert "trap;" not in built.ptx


@pytest.mark.compile
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_103f", "sm_90a", "sm_120f"])
def test_compiled_for_another_target_it_traps_where_it_could_not_run(arch: str) -> None:
    ptx = compiled(rendered("mxfp8", "sm_100f"), arch).ptx
    assert ("trap;" in ptx) == ("tcgen05" not in ptx) == (not arch.startswith("sm_10"))


@pytest.mark.parametrize("form", ["mxfp8", "mxfp4", "nvfp4"])
def test_scales_are_spelled_as_the_target_takes_them(form: str) -> None:
    for arch in BLACKWELL:
        text = rendered(form, arch).files["probe_device.cuh"]
        family = ARCHITECTURES[arch].is_family
        assert bool(re.search(r"\.block_scale\.block\d\d\b", text)) == family
        assert ("scale_vec::" in text) != family


@pytest.mark.compile
@pytest.mark.parametrize("form", ["mxfp8", "mxfp4", "nvfp4"])
def test_both_spellings_of_scales_make_the_same_machine_code(form: str) -> None:
    kernel = rendered(form, "sm_100a")
    block = 16 if form == "nvfp4" else 32
    headers = {
        name: re.sub(r"scale_vec::\dX", f"block{block}", text)
        for name, text in kernel.headers.items()
    }
    assert headers != kernel.headers
    other = Unit("probe", kernel.source, headers, "sm_100a")
    assert find_compiler("nvrtc").build(other).cubin == compiled(kernel, "sm_100a").cubin
