"""Structs as parameters, addresses in memory, arrays at given addresses."""

from __future__ import annotations

import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Bytes, LaunchError, Memory, Program, TensorMap
from fa4gen.emulator.launch_file.arrays import prepare
from fa4gen.emulator.launch_file.problems import LaunchFileError
from fa4gen.emulator.launch_file.run import run_launch
from fa4gen.emulator.recorder.driver_maps import encode
from fa4gen.emulator.state.memory import FIXED_BASE, FIXED_END
from fa4gen.errors import ConfigError
from tests.emulator.instructions.copy.copies import WAIT, copy_kernel, dump, expect, first, noise
from tests.emulator.kernel import kernel, run
from tests.emulator.launch_file.reading import parse_launch_file

# out[tid] = source[tid] + number, from a struct {source, number, out}
STRUCT = """
    ld.param.u64 %d1, [p0]; ld.param.u32 %r1, [p0+8]; ld.param.u64 %d2, [p0+16];
    mov.u32 %r2, %tid.x; mul.wide.u32 %d3, %r2, 4;
    add.u64 %d4, %d1, %d3; ld.global.u32 %r3, [%d4]; add.u32 %r3, %r3, %r1;
    add.u64 %d4, %d2, %d3; st.global.u32 [%d4], %r3;
"""


def struct_kernel(body: str = STRUCT, size: int = 24, align: int = 8) -> str:
    text = kernel(body, ("u64",))
    declared = text.replace(".param .u64 p0", f".param .align {align} .b8 p0[{size}]")
    return declared.replace("ld.param.u64 %d0, [p0];", "")


def fields(source, out, number=5, skip=0) -> Bytes:
    raw = struct.pack("<QIIQ", 0, number, 0, 0)
    return Bytes(raw, {0: (source, skip), 16: out})


def test_a_struct_holds_pointers() -> None:
    source, out = np.arange(40, dtype=np.uint32), np.zeros(32, np.uint32)
    report = run(struct_kernel(), fields(source, out, skip=32))
    assert report.verdict.value == "clean"
    assert out.tolist() == list(range(13, 45))


def test_a_finding_names_array_and_place_in_the_struct() -> None:
    source, out = np.arange(40, dtype=np.uint32), np.zeros(32, np.uint32)
    for named, name in (source, "p0+0"), (Memory(source, name="keys"), "keys"):
        report = run(struct_kernel(), fields(named, out, skip=64))
        assert "out-of-bounds" in {finding.kind for finding in report.findings}
        assert any(f"past the end of {name}" in str(finding) for finding in report.findings)


LOAD = first(
    f"""{expect(1024)}
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
        [tile+1024], [%d2, {{0, 37}}], [bar];""",
    "LOADED",
)


def test_a_struct_holds_a_tensor_map() -> None:
    body = "mov.b64 %d2, p1; cvta.param.u64 %d2, %d2; add.u64 %d2, %d2, 64;"
    ptx = copy_kernel(body + LOAD + WAIT + dump(2048), ("u64", "tensor_map"))
    ptx = ptx.replace("p1[128]", "p1[192]")
    out, array = np.zeros((2, 8, 64), np.uint16), noise((40, 64))
    report = run(ptx, out, Bytes(bytes(192), maps={64: TensorMap(array, (8, 64))}), checks=False)
    assert not report.findings
    assert np.array_equal(out[1, :3], array[37:])


def test_a_map_of_the_drivers_gets_its_address_from_a_pointer() -> None:
    body = "mov.b64 %d2, p1; cvta.param.u64 %d2, %d2;"
    ptx = copy_kernel(body + LOAD + WAIT + dump(2048), ("u64", "tensor_map"))
    out, array = np.zeros((2, 8, 64), np.uint16), noise((40, 64))
    raw = encode(
        data_type=1, address=0x7F12_3456_7800, dims=[64, 40], strides=[128], box=[64, 8],
        steps=[1, 1], interleave=0, swizzle=0, l2=2, fill=0, sm=90,
    )  # fmt: skip
    report = run(ptx, out, Bytes(raw, {0: array}), checks=False)
    assert not report.findings
    assert np.array_equal(out[1, :3], array[37:])


def test_global_memory_holds_a_tensor_map() -> None:
    ptx = copy_kernel("add.u64 %d2, %d1, 128;" + LOAD + WAIT + dump(2048), ("u64", "u64"))
    out, array = np.zeros((2, 8, 64), np.uint16), noise((40, 64))
    space = np.arange(512, dtype=np.uint8)
    report = run(ptx, out, Memory(space, maps={128: TensorMap(array, (8, 64))}), checks=False)
    assert not report.findings
    assert np.array_equal(out[1, :3], array[37:])
    assert np.array_equal(space, np.arange(512, dtype=np.uint8))


def test_an_array_of_pointers_holds_what_it_held_before_unless_the_kernel_wrote() -> None:
    body = """
        ld.global.u64 %d1, [%d0]; ld.global.u64 %d2, [%d0+8];
        mov.u32 %r1, 7; st.global.u32 [%d1], %r1; st.global.u32 [%d2+4], %r1;
        mov.u64 %d3, 9; st.global.u64 [%d0+8], %d3;
    """
    one, two = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    table = np.array([1, 2, 3], np.uint64)
    owner = Memory(table, {0: one, 8: (two, 4)})
    run(kernel(body), owner, checks=False)
    assert (one.tolist(), two.tolist()) == ([7, 0, 0, 0], [0, 0, 7, 0])
    assert table.tolist() == [1, 9, 3]


@pytest.mark.parametrize("dtype", [np.uint64, np.uint8, ml_dtypes.bfloat16])
def test_large_arrays_come_and_go_whole(dtype) -> None:
    body = """
        ld.global.u64 %d1, [%d0+1048576]; add.u64 %d1, %d1, 1; st.global.u64 [%d0+1048584], %d1;
        st.global.u64 [%d0+3145720], %d1;
    """
    array = np.zeros((3, (1 << 20) // np.dtype(dtype).itemsize), dtype)
    words = array.reshape(-1).view(np.uint64)
    words[[1 << 17, 99]] = 7, 1
    run(kernel(body), array, checks=False)
    assert np.flatnonzero(words).tolist() == [99, 1 << 17, (1 << 17) + 1, (3 << 17) - 1]
    assert words[-1] == 8


def test_memory_may_point_to_itself() -> None:
    body = "ld.global.u64 %d1, [%d0]; mov.u32 %r1, 7; st.global.u32 [%d1], %r1;"
    array = np.zeros(4, np.uint64)
    pointers: dict[int, object] = {}
    owner = Memory(array, pointers)
    pointers[0] = (owner, 16)
    run(kernel(body), owner, checks=False)
    assert array.tolist() == [0, 0, 7, 0]


def test_raw_bytes_reach_arrays_at_their_addresses() -> None:
    source, out = np.arange(40, dtype=np.uint32), np.zeros(32, np.uint32)
    at = FIXED_BASE + 0x12300
    raw = struct.pack("<QIIQ", at + 8, 1, 0, FIXED_BASE)
    report = run(
        struct_kernel(),
        Bytes(raw),
        memory=[Memory(source, address=at, name="source"), Memory(out, address=FIXED_BASE)],
    )
    assert report.verdict.value == "clean"
    assert out.tolist() == list(range(3, 35))


def test_views_keep_their_distance_from_an_array_at_an_address() -> None:
    body = "st.global.u64 [%d1], %d0; st.global.u64 [%d1+8], %d1;"
    array = np.zeros(64, np.uint64)
    run(kernel(body, ("u64", "u64")), Memory(array, address=FIXED_BASE + 256), array[32:],
        checks=False)  # fmt: skip
    assert array[32:34].tolist() == [FIXED_BASE + 256, FIXED_BASE + 512]


ARRAY = np.zeros(64, np.uint32)
MAP = TensorMap(np.zeros((8, 64), np.uint16), (4, 64))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (Bytes(bytes(20)), "has 24 bytes, but 20 were given"),
        (Bytes(bytes(24), {20: ARRAY}), "a pointer of 8 bytes at 20 does not fit into 24 bytes"),
        (Bytes(bytes(24), {-8: ARRAY}), "at -8 does not fit"),
        (Bytes(bytes(24), {0: ARRAY, 4: ARRAY}), "the pointer at 4 overlaps the pointer at 0"),
        (Bytes(bytes(24), {0: (ARRAY, 257)}), "pointer at 0: offset 257 is outside"),
        (Bytes(bytes(24), {0: 77}), "leads to an array or a Memory"),
        (Bytes(bytes(24), maps={0: MAP}), "a tensor map of 128 bytes at 0 does not fit"),
        (Bytes(bytes(256), maps={32: MAP}), "a tensor map at 32; the offset is a multiple of 64"),
        (Bytes(bytes(256), {120: ARRAY}, {0: MAP}), "overlaps the tensor map at 0"),
        (Bytes(bytes(256), maps={0: MAP}), "aligned to 8 bytes only"),
        (Bytes(bytes(256), maps={0: ARRAY}), "a TensorMap was expected"),
    ],
)
def test_bytes_that_cannot_be(argument: Bytes, message: str) -> None:
    with pytest.raises(LaunchError) as refusal:
        run(struct_kernel(size=24 if len(argument.data) < 200 else 256), argument)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ([Memory(ARRAY, address=4096)], "can be chosen"),
        ([Memory(ARRAY, address=FIXED_END)], "can be chosen"),
        ([Memory(ARRAY, address=FIXED_BASE), Memory(np.zeros(9), address=FIXED_BASE + 255)],
         "overlaps"),
        ([Memory(ARRAY, address=FIXED_BASE), Memory(ARRAY, address=FIXED_BASE + 1024)],
         "is to be at"),
        ([Memory(ARRAY, address=FIXED_BASE), Memory(ARRAY[1:], address=FIXED_BASE)],
         "share memory"),
        ([Memory(ARRAY[::2], {0: ARRAY})], "has to be C-contiguous"),
        ([Memory(ARRAY, {252: ARRAY})], "does not fit into 256 bytes"),
        ([Memory(np.zeros(300, np.uint8)[1:], maps={0: MAP})], "multiple of 64"),
        ([ARRAY], "lists Memory objects"),
        ([Memory("text")], "holds a NumPy array"),
    ],
)  # fmt: skip
def test_memory_that_cannot_be(memory, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        run(kernel("", ()), memory=memory)


FILE = """
block: 32
arguments:
- bytes: 0000000000000000 05000000 00000000
  size: 24
  pointers: {0: source + 32, 0x10: out}
arrays:
  source: {make: arange, shape: [40], dtype: uint32}
  out: {make: zeros, shape: [32], dtype: uint32, expect: right.npy}
"""


def launched(text: str, ptx: str, folder: Path):
    file = parse_launch_file(text)
    launch = prepare(file, folder)
    (found,) = run_launch(Program(ptx), launch)
    return found


def test_a_launch_file_relocates(tmp_path) -> None:
    found = launched(FILE, struct_kernel(), tmp_path)
    assert found.report.verdict.value == "clean"
    assert found.arrays["out"].tolist() == list(range(13, 45))


def test_a_launch_file_takes_bytes_from_a_file_and_arrays_at_addresses(tmp_path) -> None:
    raw = struct.pack("<QIIQ", FIXED_BASE + 4, 1, 0, FIXED_BASE + 0x1000)
    (tmp_path / "parameters.bin").write_bytes(raw)
    found = launched(
        f"""
block: 32
arguments: [{{bytes_file: parameters.bin}}]
arrays:
  source: {{make: arange, shape: [40], dtype: uint32, address: {FIXED_BASE:#x}}}
  out: {{make: zeros, shape: [32], dtype: uint32, address: {FIXED_BASE + 0x1000}}}
""",
        struct_kernel(),
        tmp_path,
    )
    assert found.report.verdict.value == "clean"
    assert found.arrays["out"].tolist() == list(range(2, 34))


def test_arrays_of_a_launch_file_hold_addresses_and_maps(tmp_path) -> None:
    ptx = copy_kernel("add.u64 %d2, %d1, 128;" + LOAD + WAIT + dump(2048), ("u64", "u64"))
    found = launched(
        """
block: 32
checks: false
arguments:
- {name: out, make: zeros, shape: [2, 8, 64], dtype: uint16}
- make: zeros
  shape: [64]
  dtype: uint64
  pointers: {0: values}
  tensor_maps: {128: {tensor_map: values, box: [8, 64]}}
arrays:
  values: {make: arange, shape: [40, 64], dtype: uint16}
""",
        ptx,
        tmp_path,
    )
    assert found.arrays["out"][1, 0].tolist() == list(range(37 * 64, 38 * 64))
    assert not found.arrays["1"].any()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("{bytes: 0g}", "arguments[0].bytes: no hexadecimal digits"),
        ("{bytes: '', size: 8, pointers: {0: y}}",
         "arguments[0].pointers[0]: no array is called 'y'; there is x"),
        ("{bytes: '', size: 8, pointers: {0: x + 5}}", "arguments[0].pointers[0]: x: offset 5"),
        ("{bytes: '', size: 8, pointers: {0: x - 5}}", "no array is called 'x - 5'"),
        ("{bytes: '', size: 8, pointers: {0: x + y}}", "expected NAME or NAME + BYTES"),
        ("{bytes: '', size: 8, pointers: {4: x}}", "arguments[0]: a pointer of 8 bytes at 4"),
        ("{bytes: '', size: 256, tensor_maps: {64: {tensor_map: x, box: [3]}}}",
         "arguments[0].tensor_maps[64]: tensor map: "),
        ("{bytes: '', size: 256, tensor_maps: {8: {tensor_map: x, box: [4]}}}",
         "arguments[0]: a tensor map at 8; the offset is a multiple of 64"),
        ("{bytes: '', size: 256, tensor_maps: {8: {tensor_map: z, box: [4]}}}",
         "arguments[0].tensor_maps[8].tensor_map: no array is called 'z'"),
        ("{bytes: '', size: 256, tensor_maps: {8: {tensor_map: x, box: [4], bux: 4}}}",
         "unknown key bux in arguments[0].tensor_maps.8"),
        ("{bytes: '0011', size: 1}", "arguments[0].size: 1 bytes are fewer"),
        ("{bytes_file: nowhere.bin}", "arguments[0].bytes_file: there is no file"),
        ("{make: zeros, shape: [1], pointers: {0: x}}", "arguments[0]: a pointer of 8 bytes"),
        ("{make: zeros, shape: [1], tensor_maps: {0: {tensor_map: y, box: [1]}}}",
         "no array is called 'y'; there is x, 0"),
    ],
)  # fmt: skip
def test_a_launch_file_that_cannot_be(argument: str, message: str, tmp_path) -> None:
    text = "block: 32\narguments:\n- " + argument + "\narrays: {x: {make: ones, shape: [1]}}\n"
    with pytest.raises((LaunchFileError, ConfigError)) as caught:
        prepare(parse_launch_file(text), tmp_path)
    assert message in str(caught.value)
