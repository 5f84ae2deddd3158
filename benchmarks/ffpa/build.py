"""Compiles FFPA's Hopper forward of depth 512 ahead of time, into a library that C can call.

    python benchmarks/ffpa/build.py OUT.so

Needs no GPU: packages ffpa-attn (without what it depends on), nvidia-cutlass-dsl[cu13] and torch,
whose CPU build will do, and nvcc. The kernels are those that FFPA launches for bf16 with as many
key heads as heads and the log-sum-exp; the library is a MB and needs none of these packages.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import types
from pathlib import Path

HERE = Path(__file__).parent
MASKS = ("dense", "causal")
DEPTH = 512


def compile_object(mask: str, path: Path) -> None:
    """Compile one kernel with its host code; a process of its own for each."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "compat" / "cute"))
    import standin

    standin.install("sm_90a")
    import torch
    from tensors import on_device

    _import_without_init("ffpa_attn", "ffpa_attn.cute")
    from ffpa_attn.cute import _ffpa_fwd_sm90 as ffpa

    def not_called(function: object, *arguments: object, device: object) -> None:
        """Stand in for the launch: the kernel is only compiled."""

    ffpa._call_with_tvm_ffi_current_stream = not_called
    shape = (2, DEPTH, 2, DEPTH)
    tensors = [on_device(torch.zeros(shape, dtype=torch.bfloat16)) for _ in range(4)]
    lse = on_device(torch.zeros(2, 2, DEPTH))
    *inputs, out = tensors
    ffpa._ffpa_attn_forward_sm90(*inputs, causal=mask == "causal", out=out, lse=lse)
    (compiled,) = ffpa._ffpa_attn_forward_sm90.compile_cache.cache.values()
    compiled.export_to_c(str(path), function_name=f"ffpa_fwd_{mask}")


def _import_without_init(*packages: str) -> None:
    """Register packages by their folders: FFPA's own imports need far more than the kernel."""
    for name in packages:
        parent, _, last = name.rpartition(".")
        if parent:
            folder = Path(sys.modules[parent].__path__[0]) / last
        else:
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None:
                sys.exit(f"{name} is not installed")
            folder = Path(spec.origin).parent
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module


def main() -> None:
    """Compile both kernels and link them with the runtime."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mask", choices=MASKS, help="only this kernel's object, into OUT")
    arguments = parser.parse_args()
    if arguments.mask:
        compile_object(arguments.mask, arguments.out)
        return
    import tvm_ffi

    objects = [arguments.out.with_suffix(f".{mask}.o") for mask in MASKS]
    for mask, path in zip(MASKS, objects, strict=True):
        subprocess.run([sys.executable, "-W", "ignore", __file__, path, "--mask", mask], check=True)
    include = Path(tvm_ffi.__file__).parent / "include"
    options = ["-shared", "-Xcompiler", "-fPIC", "-O2", "-cudart", "static", f"-I{include}"]
    subprocess.run(
        ["nvcc", *options, "-o", arguments.out, HERE / "runtime.c", *objects], check=True
    )


if __name__ == "__main__":
    main()
