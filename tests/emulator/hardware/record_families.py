"""Run the family and asynchronous probes on the GPU of this machine and store what they leave.

python -m tests.emulator.hardware.record_families FILE.npz [sums]

``sums``: only the probes of sum_probes.py, for wgmma_sums_h200.npz.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fa4gen.emulator import TensorMap
from tests.emulator.hardware import async_probes, family_probes, sum_probes
from tests.emulator.hardware.family_probes import FamilyProbe


def all_probes() -> tuple[FamilyProbe, ...]:
    """Every probe of both modules."""
    return (*family_probes.probes(), *async_probes.probes())


def dynamic_shared(probe: FamilyProbe) -> int:
    """Bytes of dynamic shared memory that a probe asks for."""
    return async_probes.DYNAMIC_SHARED.get(probe.name.split(".")[0], 0)


def arrays_of(arguments: list[Any]) -> list[np.ndarray]:
    """The arrays behind the arguments, those of tensor maps too."""
    return [
        argument.array if isinstance(argument, TensorMap) else argument
        for argument in arguments
        if isinstance(argument, (TensorMap, np.ndarray))
    ]


def bits(array: np.ndarray) -> np.ndarray:
    """An array as unsigned integers, which every file format can hold."""
    return array.view(f"u{array.dtype.itemsize}")


def encode(tensor_map: TensorMap, pointer: int) -> bytes:
    """Let the driver encode a tensor map."""
    import ctypes

    from cuda.bindings import driver

    array = tensor_map.array
    kinds = driver.CUtensorMapDataType
    kind = {
        "uint8": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        "uint16": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        "uint32": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        "int32": kinds.CU_TENSOR_MAP_DATA_TYPE_INT32,
        "float32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        "float16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        "bfloat16": kinds.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    }[array.dtype.name]
    swizzles = driver.CUtensorMapSwizzle
    fills = driver.CUtensorMapFloatOOBfill
    error, encoded = driver.cuTensorMapEncodeTiled(
        kind,
        len(tensor_map.dims),
        pointer,
        [driver.cuuint64_t(n) for n in tensor_map.dims],
        [driver.cuuint64_t(n) for n in tensor_map.strides[1:] or (16,)],
        [driver.cuuint32_t(n) for n in tensor_map.box],
        [driver.cuuint32_t(n) for n in tensor_map.steps],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        {
            0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE,
            32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
            64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
            128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B,
        }[tensor_map.span],
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        fills.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
        if tensor_map.nan_fill
        else fills.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver refuses the map: {error}")
    return ctypes.string_at(int(encoded.getPtr()), 128)


def run(probe: FamilyProbe, folder: Path) -> list[np.ndarray]:
    """Return the arrays of a probe after its run."""
    import cupy

    path = folder / f"{probe.name}.ptx"  # CuPy remembers modules by their path
    path.write_text(probe.ptx)
    module = cupy.RawModule(path=str(path))
    kernel = module.get_function("k")
    kernel.max_dynamic_shared_size_bytes = dynamic_shared(probe)
    kept, values = [], []
    for argument in probe.arguments():
        if isinstance(argument, TensorMap):
            device = cupy.asarray(bits(argument.array))
            kept.append(device)
            values.append(np.frombuffer(encode(argument, device.data.ptr), "V128")[0])
        elif isinstance(argument, np.ndarray):
            kept.append(cupy.asarray(bits(argument)))
            values.append(kept[-1])
        else:
            values.append(argument)
    kernel((probe.grid,), (probe.block,), tuple(values), shared_mem=dynamic_shared(probe))
    cupy.cuda.runtime.deviceSynchronize()
    return [cupy.asnumpy(device) for device in kept]


def main() -> None:
    """Record everything; a probe that fails ends the context, so it ends the program."""
    results = {}
    probes = sum_probes.probes() if sys.argv[2:] == ["sums"] else all_probes()
    with tempfile.TemporaryDirectory() as folder:
        for probe in probes:
            print(probe.name, flush=True)
            try:
                arrays = run(probe, Path(folder))
            except RuntimeError as error:
                print(f"  {error}")
                continue
            for index, array in enumerate(arrays):
                if not np.array_equal(array, bits(arrays_of(probe.arguments())[index])):
                    results[f"{probe.name}/{index}"] = array
    np.savez_compressed(sys.argv[1], **results)


if __name__ == "__main__":
    main()
