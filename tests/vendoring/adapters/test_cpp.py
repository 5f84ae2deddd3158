"""The adapters in C++ against the real headers of PyTorch, XLA and TVM-FFI, where these are."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.vendoring.adapters.folders import KERNELS, write_folder

FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fsyntax-only")
SETS = {
    "all": KERNELS,
    "attention with lse": ("d128_causal_bf16",),
    "attention without lse": ("d64_dense_small_bf16",),
    "sequences": ("d128_ragged_causal_bf16", "d64_paged64_window_sinks_bf16"),
    "decode": ("decode_d128_bf16",),
    "functions": ("d128_alibi_causal_bf16",),
    "scales of sequences": ("fa4_d128_paged64_causal_fp8",),
    "scales of keys": ("decode_d128_kv_fp8_bf16",),
    "scales of pages": ("decode_d128_paged64_kv_fp8_page_bf16",),
    "products with c": ("gemm_bf16_residual_sm90",),
    "products without c": ("gemm_fp8_sm90",),
    "products with scales": ("gemm_fp8_scaled_sm90", "gemm_fp8_scaled_ue8m0_residual_sm90"),
    "products with groups": ("gemm_grouped_bf16_sm90", "gemm_grouped_masked_fp8_scaled_sm90"),
    "products with an index of rows": ("gemm_gathered_bf16_sm90",),
    "products with scattered rows": ("gemm_scattered_bf16_sm90",),
    "quantised products": ("gemm_swiglu_fp8_out_sm90", "gemm_bf16_fp8_out_sm90"),
    "products with groups along k": ("gemm_weight_gradient_bf16_sm90",),
    "products with the largest magnitude": ("gemm_bf16_amax_sm90",),
    "merging": ("merge_d128_bf16",),
    "merging and attention": ("d128_causal_bf16", "merge_d128_bf16"),
}
"""The kernels of each folder: code that only some kernels need is in their folders alone, and
nothing there may be unused."""


def torch_headers() -> Path:
    torch = pytest.importorskip("torch", minversion="2.10", reason="no PyTorch 2.10 or newer")
    return Path(torch.__file__).parent / "include"


def jax_headers() -> Path:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    return Path(jax.ffi.include_dir())


def tvm_ffi_headers() -> Path:
    pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    found = importlib.util.find_spec("tvm_ffi")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "include"


ADAPTERS = {
    "torch/acme_torch.cpp": torch_headers,
    "jax/acme_jax.cc": jax_headers,
    "tvm_ffi/acme_tvm_ffi.cc": tvm_ffi_headers,
}


@pytest.fixture(scope="module")
def folders(folder, tmp_path_factory) -> dict[str, Path]:
    smaller = {
        words: write_folder(tmp_path_factory.mktemp("cpp"), names)
        for words, names in SETS.items()
        if names != KERNELS
    }
    return {"all": folder, **smaller}


@pytest.mark.parametrize("source", ADAPTERS)
@pytest.mark.parametrize("kernels", SETS)
def test_it_compiles_without_a_warning(folders, kernels, source) -> None:
    headers = ADAPTERS[source]()
    compilers = [found for name in ("g++", "clang++") if (found := shutil.which(name))]
    if not compilers:
        pytest.skip("no C++ compiler on this machine")
    folder = folders[kernels]
    options = [*FLAGS, "-isystem", str(headers), f"-I{folder / 'include'}"]
    for compiler in compilers if kernels == "all" else compilers[:1]:
        made = subprocess.run(
            [compiler, *options, str(folder / "adapters" / source)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
