"""How large the folder of one kernel is: every shipped config, assembled in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.find import find_configs
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.toolchain.model import CompiledKernel, Resources
from fa4gen.vendor.assemble import assemble
from fa4gen.vendor.image import Image
from fa4gen.vendor.kernels import build_kernels, render_kernels
from fa4gen.vendor.lock import lock_text
from fa4gen.vendor.model import Request, VendoredKernel
from tests.shipped import loaded
from tests.vendor.launcher.shipped import vendored_configs

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.vendor.kernels import PlannedKernel

BAR = 252_500
BESIDE_ATTENTION, BESIDE_SEQUENCES, BESIDE_GEMM = 139_700, 150_200, 126_600
BESIDE_TENSORS, BESIDE_SCALES, BESIDE_LISTS = 145_400, 139_600, 146_400
"""Of everything but the kernel's source, its headers and its machine code."""
PREFIX = "acme"


@lru_cache(maxsize=1)
def templates():
    return open_templates()


def without_code(planned: PlannedKernel) -> VendoredKernel:
    """The kernel with an empty image in the place of its machine code."""
    compiled = CompiledKernel(
        name=planned.plan.name, arch=planned.plan.arch, ptx="", cubin=b"", log="",
        compiler="nvrtc", compiler_version="13.0.88",
        options=(f"-arch={planned.plan.arch}", "-std=c++17", "--ptxas-options=-v", "--no-cache"),
        resources=Resources(0, 0, 0, 0, 0, 0), findings=(), cached=True, seconds=0.0, key="",
    )  # fmt: skip
    image = Image("0" * 64, 100_000, 20_000, ())
    return VendoredKernel(planned.loaded, planned.plan, planned.rendered, compiled, image)


def sizes(kernel: VendoredKernel) -> tuple[int, int]:
    """Bytes of the kernel's own files, and of all others."""
    assembled = assemble(Request(PREFIX, (kernel.name,)), [kernel], templates())
    own = sum(
        len(data)
        for path, data in assembled.files.items()
        if path.startswith(("kernels/", "cubins/")) and not path.endswith(".json")
    )
    everything = sum(map(len, assembled.files.values())) + len(lock_text(assembled.lock))
    return own, everything - own


@pytest.mark.parametrize("path", vendored_configs(), ids=lambda path: path.stem)
def test_what_comes_beside_a_kernel_is_small(path: Path) -> None:
    (planned,) = render_kernels([loaded(path)], PREFIX, templates())
    _, beside = sizes(without_code(planned))
    plan = planned.plan
    if plan.kernel == "gemm":
        assert beside <= BESIDE_GEMM
    else:
        bar = BESIDE_SEQUENCES if plan.has_tile_lengths else BESIDE_ATTENTION
        bar = BESIDE_SCALES if plan.has_descales and not plan.has_tile_lengths else bar
        of_tensors = BESIDE_LISTS if plan.lists_blocks else BESIDE_TENSORS
        assert beside <= (of_tensors if plan.declared_tensors else bar)


def test_values_that_are_columns_of_the_keys_have_no_adapter_of_jax() -> None:
    (planned,) = render_kernels([loaded(*find_configs(("decode_mla_bf16",)))], PREFIX, templates())
    kernel = without_code(planned)
    others = Request(PREFIX, (kernel.name,), ("python", "torch", "tvm-ffi"))
    example = assemble(others, [kernel], templates()).files["adapters/torch/example.py"]
    assert b"value = key[..., :512]" in example
    with pytest.raises(ConfigError, match="an array of JAX is no view of another"):
        assemble(Request(PREFIX, (kernel.name,), ("jax",)), [kernel], templates())


ALWAYS = (
    "gemm_bf16", "gemm_bf16_sm90", "d128_causal_bf16", "decode_d128_bf16", "decode_mla_bf16",
    "d128_ragged_causal_bf16", "d512_paged64_causal_bf16", "fa4_d128_alibi_causal_bf16",
    "decode_mla_paged64_bf16", "depth512_paged64_causal_bf16", "fa4_d128_paged64_causal_fp8",
    "fa4_d64_paged_window_sinks_bf16", "fa4_decode_mla_paged64_bf16",
)  # fmt: skip
"""Measured in every run: the largest, and one of each kind."""


@pytest.mark.compile
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem in ALWAYS else pytest.mark.seeds)
        for path in vendored_configs()
    ],
    ids=lambda path: path.stem,
)
def test_a_folder_with_its_machine_code(path: Path) -> None:
    (kernel,) = build_kernels([path], PREFIX)
    assert sum(sizes(kernel)) <= BAR
