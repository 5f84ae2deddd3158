"""A vendored folder with real kernels, built for the GPU tier."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.config.find import find_configs
from fa4gen.vendoring.folder_files import ADAPTER_ROOTS, folder_files
from fa4gen.vendoring.host_build import build_library
from fa4gen.vendoring.kernels import build_kernels
from fa4gen.vendoring.model import Request
from tests.vendoring.adapters.calls_of_kinds import (
    GATHERED,
    GROUPED,
    LARGEST,
    MASKED,
    MERGE,
    OF_C,
    QUANTISED,
    SCATTERED,
    SUMS,
    SWIGLU,
)
from tests.vendoring.adapters.folders import import_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

BF16, FP8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
PREFIX = "vend"
"""Other than that of the tests without a GPU, whose operators may be registered, too."""
CAUSAL = "d128_causal_bf16"
SMALL = "d64_dense_small_bf16"
RESIDUAL = "gemm_bf16_residual_sm90"
BIAS = "gemm_bf16_bias_gelu_sm90"
MAJORS = "gemm_bf16_mn_major_sm90"
RAGGED, PAGED = "d128_ragged_causal_bf16", "d64_paged64_window_sinks_bf16"
DECODE, ALIBI = "decode_d128_bf16", "d128_alibi_causal_bf16"
LISTED = "d128_documents_listed_bf16"
SCALED, SCALED_PAGES = "decode_d128_kv_fp8_bf16", "decode_d128_paged64_kv_fp8_page_bf16"
BLOCKS, BLOCKS_IN_BYTES = "gemm_fp8_scaled_sm90", "gemm_fp8_scaled_ue8m0_residual_sm90"
KERNELS = (
    CAUSAL, SMALL, RESIDUAL, BIAS, MAJORS, RAGGED, PAGED, DECODE, ALIBI, LISTED,
    SCALED, SCALED_PAGES, BLOCKS, BLOCKS_IN_BYTES, GROUPED, MASKED, GATHERED, SCATTERED, LARGEST,
    QUANTISED, OF_C, SUMS, SWIGLU, MERGE,
)  # fmt: skip


def write_gpu_folder(folder: Path) -> Path:
    """Write kernels, launcher and adapters, and build the launcher's shared library."""
    kernels = build_kernels(find_configs(KERNELS), PREFIX)
    files = folder_files(Request(PREFIX, tuple(ADAPTER_ROOTS)), kernels)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    build_library(folder, folder / f"lib{PREFIX}.so")
    return folder


def bits(array: Any) -> np.ndarray:
    """The bytes of an array of CuPy or a host's: of types that a framework may not have."""
    host = array.get() if hasattr(array, "get") else np.asarray(array)
    return np.ascontiguousarray(host).view(np.uint8)


def same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Assert that arrays have the shapes and bits of the others."""
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(bits(one), bits(other))


def import_once(path: Path) -> ModuleType:
    """Import an adapter, or return what was imported: it registers its operators in the process."""
    module = sys.modules.get(path.stem)
    return module if module and module.__file__ == str(path) else import_file(path)


def build_cpp(folder: Path, source: str, options: Sequence[str]) -> Path:
    """Build an adapter in C++ together with the launcher; skip where there is no compiler."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on this machine")
    place = folder / "adapters" / source
    library = folder / f"lib{place.stem}.so"
    if library.exists():  # and may be loaded
        return library
    sources = [*sorted((folder / "src").glob("*.c")), *sorted((folder / "cubins").glob("*.c"))]
    made = subprocess.run(
        [
            compiler, "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{folder / 'include'}",
            "-o", str(library), str(place), *map(str, sources), *options, "-ldl",
        ],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return library


def torch_with_cuda() -> Any:
    """Return PyTorch 2.9 or newer; skip where it is not, or has no CUDA."""
    torch = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return torch


def as_it_lies(make: Callable[[np.ndarray], Any], array: np.ndarray) -> Any:
    """An array of a framework by ``make``; transposed matrices stay transposed."""
    if array.flags.c_contiguous:
        return make(array)
    return make(np.ascontiguousarray(array.swapaxes(-2, -1))).swapaxes(-2, -1)


def to_cupy(array: np.ndarray) -> Any:
    import cupy

    return as_it_lies(cupy.asarray, array.view(np.uint8) if array.dtype == FP8 else array)


def to_torch(array: np.ndarray) -> Any:
    torch = torch_with_cuda()

    def make(array: np.ndarray) -> Any:
        types = {BF16: torch.bfloat16, FP8: torch.float8_e4m3fn}
        if array.dtype not in types:
            return torch.from_numpy(array).cuda()
        words = array.view(f"int{8 * array.itemsize}")
        return torch.from_numpy(words).cuda().view(types[array.dtype])

    return as_it_lies(make, array)


def load_torch_cpp(folder: Path) -> Any:
    """Build and load the operators on torch's stable ABI; return their namespace."""
    torch = torch_with_cuda()
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 10):
        pytest.skip("the stable ABI's adapter needs PyTorch 2.10")
    root = Path(torch.__file__).parent
    options = [
        "-isystem",
        str(root / "include"),
        f"-L{root / 'lib'}",
        "-ltorch_cpu",
        "-ltorch_cuda",
    ]
    library = build_cpp(folder, f"torch/{PREFIX}_torch.cpp", options)
    vend = import_once(folder / f"adapters/torch/{PREFIX}_torch.py")
    vend.load_cpp(library)
    vend.load_cpp(library)  # as two users of one process may
    return getattr(torch.ops, f"{PREFIX}_cpp")


def load_jax(folder: Path) -> tuple[Any, ModuleType]:
    """Build the handlers of JAX; return JAX and the adapter."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    try:
        jax.devices("gpu")
    except RuntimeError as error:
        pytest.skip(f"this JAX has no GPU: {error}")
    build_cpp(folder, f"jax/{PREFIX}_jax.cc", ["-isystem", jax.ffi.include_dir()])
    return jax, import_once(folder / f"adapters/jax/{PREFIX}_jax.py")


def load_tvm_ffi(folder: Path) -> Any:
    """Build and load the functions of TVM-FFI."""
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    root = Path(tvm_ffi.__file__).parent
    options = ["-isystem", str(root / "include"), f"-L{root / 'lib'}", "-ltvm_ffi"]
    return tvm_ffi.load_module(str(build_cpp(folder, f"tvm_ffi/{PREFIX}_tvm_ffi.cc", options)))
