"""Compiles a kernel of ``kernels.py`` with TileLang, without a GPU, and says how it is launched.

    python compile.py CASE OUTPUT

CASE is JSON: ``kernel``, ``arch`` and the kernel's sizes. OUTPUT is a pickle: PTX, entry, sizes of
the launch, and parameters, each a tensor's name or ("map", tensor, the driver's numbers).
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import tilelang
from kernels import KERNELS
from tilelang.env import CUTLASS_INCLUDE_DIR, TILELANG_TEMPLATE_PATH
from tvm import tirx
from tvm.target import Target

_ENCODE = "__tvm_tensormap_create_tiled"


def packed_calls(function: Any) -> list[list[Any]]:
    """The calls of TileLang's host code, each with the called name first: words and numbers."""
    found: list[list[Any]] = []

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Call) and node.op.name == "tirx.tvm_call_packed":
            found.append([plain(one) for one in node.args])

    tirx.stmt_functor.post_order_visit(function.body, visit)
    return found


def plain(value: Any) -> Any:
    return value.name if isinstance(value, tirx.Var) else value.value


def launch(kernel: Any, arch: str, nvcc: str, roles: bool) -> dict[str, Any]:
    """Compile, where ``roles`` says with a warpgroup of copies where TileLang sees fit."""
    target = Target({"kind": "cuda", "arch": arch})
    options = {"tl.disable_warp_specialized": not roles}
    with target, tilelang.transform.PassContext(config=options):
        built = tilelang.lower(kernel, target=target)
    [host] = built.host_mod.functions.values()
    [(_, device)] = built.device_mod.functions.items()
    entry = device.attrs["global_symbol"]
    calls = packed_calls(host)
    maps = {call[1]: call[2:] for call in calls if call[0] == _ENCODE}
    [arguments] = [call[1:] for call in calls if call[0] == entry]
    extents = {str(axis): int(size) for axis, size in device.attrs["thread_extent"].items()}
    launched = [str(one) for one in device.attrs["tirx.kernel_launch_params"]]
    return {
        "ptx": ptx(built.kernel_source, arch, nvcc),
        "entry": str(entry),
        "grid": tuple(extents.get(f"blockIdx.{axis}", 1) for axis in "xyz"),
        "block": tuple(extents.get(f"threadIdx.{axis}", 1) for axis in "xyz"),
        "shared": int(device.attrs.get("dyn_shared_memory_buf", 0)),
        "parameters": [
            ("map", maps[one][2], [*maps[one][:2], *maps[one][3:]]) if one in maps else one
            for one in arguments[: len(arguments) - len(launched)]
        ],
    }


def ptx(source: str, arch: str, nvcc: str) -> str:
    """Compile as TileLang does, but to PTX."""
    folders = [f"-I{TILELANG_TEMPLATE_PATH}", f"-I{CUTLASS_INCLUDE_DIR}"]
    done = subprocess.run(
        [nvcc, "-ptx", f"-arch={arch}", "-std=c++20", "-w", *folders, "-x", "cu", "-", "-o", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    case = json.loads(sys.argv[1])
    kernel = KERNELS[case.pop("kernel")]
    arch, nvcc, roles = case.pop("arch"), case.pop("nvcc"), case.pop("roles")
    Path(sys.argv[2]).write_bytes(pickle.dumps(launch(kernel(**case), arch, nvcc, roles)))
