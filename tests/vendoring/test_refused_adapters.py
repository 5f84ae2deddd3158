"""Adapters that cannot pass the tensors of a kernel, and examples that pass some."""

from __future__ import annotations

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.settings import parse_settings
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.vendoring.assemble import text_files
from fa4gen.vendoring.kernels import load_configs, render_kernels
from fa4gen.vendoring.model import Request

KERNEL = "decode_mla_bf16"
SCALED = "gemm_fp8_scaled_sm90"


def test_values_that_are_columns_of_the_keys_have_no_adapter_of_jax() -> None:
    templates = open_templates()
    planned = render_kernels(load_configs(find_configs((KERNEL,))), "acme", templates)
    others = Request("acme", ("python", "torch", "tvm-ffi"))
    example = text_files(others, planned, templates)["adapters/torch/example.py"]
    assert b"value = key[..., :512]" in example
    with pytest.raises(ConfigError, match="an array of JAX cannot be a view of another"):
        text_files(Request("acme", ("jax",)), planned, templates)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gemm_mxfp8", "gemm_mxfp8: adapters pass no scales in atoms yet"),
        ("gemm_nvfp4_row_major", "gemm_nvfp4_row_major: adapters pass no elements of fp4 yet"),
    ],
)
def test_atoms_and_fp4_have_no_adapters(name: str, what: str) -> None:
    templates = open_templates()
    planned = render_kernels(load_configs(find_configs((name,))), "acme", templates)
    with pytest.raises(ConfigError, match=what):
        text_files(Request("acme", ("python",)), planned, templates)
    assert "include/acme.h" in text_files(Request("acme", ()), planned, templates)


def test_written_atoms_have_no_adapters() -> None:
    templates = open_templates()
    orders = parse_settings(("output_scale_order=arranged", "scale_order=row_major"))
    loaded = load_configs(find_configs(("gemm_mxfp8_out",)), orders)
    planned = render_kernels(loaded, "acme", templates)
    with pytest.raises(ConfigError, match="gemm_mxfp8_out: adapters pass no scales in atoms yet"):
        text_files(Request("acme", ("torch",)), planned, templates)
    files = text_files(Request("acme", ()), planned, templates)
    assert b"acme_arranged_bytes" in files["include/acme.h"]
    assert b"one for 1 of m x 32 of n, in atoms" in files["include/acme.h"]


def test_functions_for_atoms_are_there_where_a_kernel_takes_them() -> None:
    templates = open_templates()
    for name, expected in (("gemm_mxfp8", True), ("gemm_nvfp4_row_major", False)):
        planned = render_kernels(load_configs(find_configs((name,))), "acme", templates)
        files = text_files(Request("acme", ()), planned, templates)
        for path in ("include/acme.h", "src/launcher.c"):
            assert (b"acme_arrange_scales" in files[path]) == expected


def test_examples_pass_scales_of_blocks() -> None:
    templates = open_templates()
    planned = render_kernels(load_configs(find_configs((SCALED,))), "acme", templates)
    adapters = ("python", "torch", "jax", "tvm-ffi")
    files = text_files(Request("acme", adapters), planned, templates)
    for name in adapters[:3]:
        assert b"b, scale_a=scale_a, scale_b=scale_b)" in files[f"adapters/{name}/example.py"]
    assert b"(a, b, out, scale_a, scale_b, 1.0)" in files["adapters/tvm_ffi/example.py"]
