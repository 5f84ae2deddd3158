"""Every adapter on a GPU with kernels of other kinds: sequences, pages, decode, lists of blocks,
keys and values of fp8. The outputs are those of fa4gen.load to the bit, again and again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import (
    ALIBI,
    DECODE,
    LISTED,
    PAGED,
    RAGGED,
    SCALED,
    SCALED_PAGES,
    build_cpp,
    import_once,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Arrays = dict[str, np.ndarray]
    Call = Callable[[str, tuple[np.ndarray, ...], Arrays, list[np.ndarray]], Any]

pytestmark = [pytest.mark.gpu("sm_90a"), pytest.mark.filterwarnings("default")]

CALLS = 5
BF16, FP8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)


def random(*shape: int, seed: int = 0, dtype: Any = BF16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def scales(*shape: int) -> Arrays:
    rng = np.random.default_rng(7)
    names = ("key_descale", "value_descale")
    return {name: rng.uniform(0.25, 2, shape).astype(np.float32) for name in names}


def integers(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


def keys(*shape: int, dtype: Any = BF16) -> tuple[np.ndarray, np.ndarray]:
    return random(*shape, seed=1, dtype=dtype), random(*shape, seed=2, dtype=dtype)


TABLE = integers([4, 0, 2, 9, 10], [1, 1, 1, 1, 1], [7, 3, 0, 0, 0])
LENGTHS = integers(300, 64, 100)
DOCUMENT = np.cumsum(np.random.default_rng(3).random((2, 700)) < 0.02, axis=1).astype(np.int32)
CASES: dict[str, Callable[[], tuple[tuple[np.ndarray, ...], Arrays]]] = {
    RAGGED: lambda: (
        (random(700, 8, 128), *keys(900, 2, 128)),
        {
            "query_offsets": integers(0, 1, 301, 301, 700),
            "key_offsets": integers(0, 5, 400, 600, 900),
        },
    ),
    PAGED: lambda: (
        (random(30, 8, 64), *keys(11, 64, 2, 64)),
        {
            "sinks": random(8, seed=3, dtype=np.float32),
            "query_offsets": integers(0, 10, 11, 30),
            "key_lengths": LENGTHS,
            "page_table": TABLE,
        },
    ),
    DECODE: lambda: ((random(3, 1, 16, 128), *keys(3, 4900, 2, 128)), {}),
    ALIBI: lambda: (
        (random(2, 300, 8, 128), *keys(2, 290, 2, 128)),
        {"slope": random(8, seed=3, dtype=np.float32)},
    ),
    LISTED: lambda: ((random(2, 700, 8, 128), *keys(2, 700, 2, 128)), {"document": DOCUMENT}),
    SCALED: lambda: (
        (random(3, 1, 16, 128), *keys(3, 4900, 2, 128, dtype=FP8)),
        scales(3, 2),
    ),
    SCALED_PAGES: lambda: (
        (random(3, 1, 16, 128), *keys(11, 64, 2, 128, dtype=FP8)),
        {**scales(11, 2), "key_lengths": LENGTHS, "page_table": TABLE},
    ),
}
"""Makers of inputs, and of arrays by name in the order of the C struct."""


def bits(array: np.ndarray) -> np.ndarray:
    """The bytes of an array: of types that a framework may not have."""
    return np.ascontiguousarray(array).view(np.uint8)


def to_cupy(array: np.ndarray) -> Any:
    import cupy

    return cupy.asarray(array.view(np.uint8) if array.dtype == FP8 else array)


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return found


def to_torch(torch: Any, array: np.ndarray) -> Any:
    types = {BF16: torch.bfloat16, FP8: torch.float8_e4m3fn}
    if array.dtype not in types:
        return torch.from_numpy(array).cuda()
    words = array.view(f"int{8 * array.itemsize}")
    return torch.from_numpy(words).cuda().view(types[array.dtype])


def from_torch(torch: Any, tensor: Any) -> np.ndarray:
    return tensor.contiguous().view(torch.uint8).cpu().numpy()


@pytest.fixture(scope="module")
def by_python(gpu_folder: Path) -> Call:
    vend = import_once(gpu_folder / "adapters/python/vend.py")

    def call(name: str, inputs: Any, arrays: Arrays, expected: Any) -> Any:
        given = {key: to_cupy(array) for key, array in arrays.items()}
        made = getattr(vend, name)(*map(to_cupy, inputs), **given)
        return [bits(one.get()) for one in (made if isinstance(made, tuple) else (made,))]

    return call


@pytest.fixture(scope="module")
def by_torch(torch: Any, gpu_folder: Path) -> Call:
    vend = import_once(gpu_folder / "adapters/torch/vend_torch.py")

    def call(name: str, inputs: Any, arrays: Arrays, expected: Any) -> Any:
        given = {key: to_torch(torch, array) for key, array in arrays.items()}
        made = getattr(vend, name)(*(to_torch(torch, one) for one in inputs), **given)
        return [from_torch(torch, one) for one in (made if isinstance(made, tuple) else (made,))]

    return call


@pytest.fixture(scope="module")
def by_jax(gpu_folder: Path) -> Call:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    try:
        (device, *_) = jax.devices("gpu")
    except RuntimeError as error:
        pytest.skip(f"this JAX has no GPU: {error}")
    build_cpp(gpu_folder, "jax/vend_jax.cc", "jax", ["-isystem", jax.ffi.include_dir()])
    vend = import_once(gpu_folder / "adapters/jax/vend_jax.py")

    def call(name: str, inputs: Any, arrays: Arrays, expected: Any) -> Any:
        given = {key: jax.device_put(array, device) for key, array in arrays.items()}
        attend = jax.jit(getattr(vend, name))
        made = attend(*(jax.device_put(one, device) for one in inputs), **given)
        made = made if isinstance(made, tuple | list) else (made,)
        return [bits(np.asarray(one)) for one in made]

    return call


@pytest.fixture(scope="module")
def by_tvm_ffi(torch: Any, gpu_folder: Path) -> Call:
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    root = Path(tvm_ffi.__file__).parent
    options = ["-isystem", str(root / "include"), f"-L{root / 'lib'}", "-ltvm_ffi"]
    library = build_cpp(gpu_folder, "tvm_ffi/vend_tvm_ffi.cc", "tvm_ffi", options)
    vend = tvm_ffi.load_module(str(library))

    def call(name: str, inputs: Any, arrays: Arrays, expected: Any) -> Any:
        outputs = [torch.full_like(to_torch(torch, one), float("nan")) for one in expected]
        given = [to_torch(torch, one) for one in (*inputs, *arrays.values())]
        getattr(vend, name)(*given[:3], *outputs, *given[3:], None)
        return [from_torch(torch, one) for one in outputs]

    return call


@pytest.mark.parametrize("adapter", ["python", "torch", "jax", "tvm_ffi"])
@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_the_runtime(request: pytest.FixtureRequest, adapter: str, name: str) -> None:
    inputs, arrays = CASES[name]()
    kernel = fa4gen.load(name)
    given = {key: to_cupy(array) for key, array in arrays.items()}
    on_gpu = tuple(map(to_cupy, inputs))
    if name == LISTED:
        lists = kernel.list_blocks(*on_gpu[:2], document=given["document"])
        given.update(lists)
        arrays = {**arrays, **{key: array.get() for key, array in lists.items()}}
    made = kernel(*on_gpu, **given)
    expected = [one.get() for one in (made if isinstance(made, tuple) else (made,))]
    call: Call = request.getfixturevalue(f"by_{adapter}")
    for _ in range(CALLS):
        found = call(name, inputs, arrays, expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.ravel(), bits(other).ravel())
