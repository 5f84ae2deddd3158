"""The stand-in for the driver: what it records, and that it refuses what the driver refuses."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.compile import compile_kernel
from fa4gen.vendoring.host_build import INTERPOSER, compile_c, find_c_compiler
from fa4gen.vendoring.standin import SimulatedDevice, StandIn

KERNEL = """
struct alignas(64) Map { unsigned char bytes[128]; };
extern "C" __global__ void __launch_bounds__(96) __cluster_dims__(2, 1, 1)
scale(char first, float* out, const __grid_constant__ Map map, float factor, short last) {
  out[threadIdx.x] = factor * first * last * map.bytes[threadIdx.x];
}
"""
INVALID_VALUE, INVALID_CONTEXT, NO_BINARY, NOT_FOUND, BAD_CLUSTER = 1, 201, 209, 500, 912


@pytest.fixture(scope="module", autouse=True)
def needs_a_c_compiler() -> None:
    try:
        find_c_compiler()
    except MissingCapabilityError as error:
        pytest.skip(str(error))


@pytest.fixture
def stand_in():
    driver = StandIn()
    driver.reset()
    driver.set_devices(SimulatedDevice())
    driver.set_current(0)
    yield driver
    driver.reset()
    driver.set_devices(SimulatedDevice())
    driver.set_current(0)


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return compile_kernel(KERNEL, {}, "sm_90a", name="scale", report=True).cubin


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    """A library that opens libcuda.so.1 and is given the stand-in, as build_library does it."""
    folder = tmp_path_factory.mktemp("launcher")
    (folder / "interposer.c").write_text(INTERPOSER)
    sources = [Path(__file__).parent / "launcher.c", folder / "interposer.c"]
    flags = ["-fPIC", "-shared", "-Wl,--wrap=dlopen", f'-DSTAND_IN="{StandIn().path}"']
    compile_c(find_c_compiler(), flags, sources, folder / "launcher.so")
    return ctypes.CDLL(str(folder / "launcher.so"))


def launch(
    launcher, cubin, *, entry=b"scale", shared=1000, grid=4, block=96, cluster=0, stream=0x77
):
    values = [
        ctypes.create_string_buffer(raw, len(raw))
        for raw in (b"\x05", struct.pack("<Q", 0x1234567890), bytes(range(128)),
                    struct.pack("<f", 1.5), struct.pack("<h", -3))
    ]  # fmt: skip
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    return launcher.launch(cubin, entry, shared, grid, block, cluster, ctypes.c_void_p(stream),
                           pointers)  # fmt: skip


@pytest.mark.compile
def test_a_launch_is_recorded_with_the_bytes_of_each_parameter(stand_in, launcher, cubin) -> None:
    assert launch(launcher, cubin, cluster=2) == 0
    (one,) = stand_in.launches
    assert (one.entry, one.device, one.stream) == ("scale", 0, 0x77)
    assert (one.grid, one.block, one.dynamic_shared) == ((4, 1, 1), (96, 1, 1), 1000)
    assert one.parameters == (
        b"\x05",
        struct.pack("<Q", 0x1234567890),
        bytes(range(128)),
        struct.pack("<f", 1.5),
        struct.pack("<h", -3),
    )
    ((number, value),) = one.attributes
    assert (number, struct.unpack_from("<3I", value)) == (4, (2, 1, 1))
    assert [image.data for image in stand_in.images] == [cubin]
    assert [(s.entry, s.attribute, s.value, s.device) for s in stand_in.settings] == [
        ("scale", 8, 1000, 0)
    ]
    orders = [r.order for r in (*stand_in.images, *stand_in.settings, *stand_in.launches)]
    assert orders == [0, 1, 2]


@pytest.mark.compile
@pytest.mark.parametrize(
    ("how", "result"),
    [
        ({"entry": b"scales"}, NOT_FOUND),
        ({"block": 97}, INVALID_VALUE),
        ({"grid": 0}, INVALID_VALUE),
        ({"grid": 3}, BAD_CLUSTER),
        ({"cluster": 4}, BAD_CLUSTER),
        ({"shared": 228 << 10}, INVALID_VALUE),
    ],
)
def test_a_launch_that_the_driver_refuses_is_refused(
    stand_in, launcher, cubin, how, result
) -> None:
    assert launch(launcher, cubin, **how) == result
    assert stand_in.launches == ()


@pytest.mark.compile
def test_devices_and_contexts_are_those_that_were_set(stand_in, launcher, cubin) -> None:
    stand_in.set_devices(SimulatedDevice("sm_100a", 148), SimulatedDevice("sm_90a", 78))
    assert launch(launcher, cubin) == NO_BINARY
    stand_in.set_current(1)
    assert launch(launcher, cubin) == 0
    assert stand_in.launches[0].device == 1
    stand_in.set_current(None)
    assert launch(launcher, cubin) == INVALID_CONTEXT


def test_a_device_keeps_its_ordinal(stand_in) -> None:
    some = [SimulatedDevice("sm_100a", 4), SimulatedDevice("sm_90a", 4), SimulatedDevice()]
    assert [stand_in.use_device(device) for device in some] == [1, 2, 0]
    assert [stand_in.use_device(device) for device in some] == [1, 2, 0]
    library = ctypes.CDLL(str(stand_in.path))
    seen = ctypes.c_int()
    for device in some:
        stand_in.use_device(device)
        assert library.cuCtxGetDevice(ctypes.byref(seen)) == 0
        ordinal = seen.value
        assert library.cuDeviceGetAttribute(ctypes.byref(seen), 16, ordinal) == 0
        assert seen.value == device.multiprocessors
        assert library.cuDeviceGetAttribute(ctypes.byref(seen), 75, ordinal) == 0
        assert seen.value == device.sm // 10


@pytest.mark.compile
def test_a_function_fails_as_often_as_was_asked(stand_in, launcher, cubin) -> None:
    stand_in.fail("cuLaunchKernelEx", 719, after=1, times=2)
    assert [launch(launcher, cubin) for _ in range(4)] == [0, 719, 719, 0]
    assert len(stand_in.launches) == 2
    stand_in.reset()
    assert launch(launcher, cubin) == 0


def test_what_is_no_cubin_is_refused(stand_in, launcher) -> None:
    assert launch(launcher, b"\x7fELF" + bytes(300)) == 200


def test_a_memset_is_recorded(stand_in) -> None:
    library = ctypes.CDLL(str(stand_in.path))
    library.cuMemsetD8Async.argtypes = (
        ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p,
    )  # fmt: skip
    assert library.cuMemsetD8Async(0x7000, 3, 16, 0x55) == 0
    assert library.cuMemsetD8Async(0, 3, 16, 0x55) == INVALID_VALUE
    (one,) = stand_in.memsets
    assert (one.pointer, one.value, one.num_bytes, one.stream) == (0x7000, 3, 16, 0x55)
