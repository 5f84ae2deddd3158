"""Launch files: every mistake by key and place; arrays and arguments as they say."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Program, TensorMap
from fa4gen.emulator.launch_file.arrays import prepare
from fa4gen.emulator.launch_file.model import LaunchFile
from fa4gen.emulator.launch_file.outputs import output_files, save_outputs
from fa4gen.emulator.launch_file.problems import LaunchFileError
from fa4gen.emulator.launch_file.run import (
    Expectation,
    compare,
    expectations,
    run_launch,
)
from fa4gen.errors import ConfigError
from tests.emulator.kernel import kernel
from tests.emulator.launch_file.reading import parse_launch_file

WRONG = [
    ("- 1", "", "a launch file is a mapping", 1),
    ("grid: 1", "block", "block is missing", 1),
    ("block: many", "block", "many is not possible; it must be a whole number", 1),
    ("block: 0", "block", "0 is not possible; it must be a whole number from 1 to ", 1),
    ("block: [1, 2, 3, 4]", "block", " or a list of 1 to 3 entries", 1),
    ("block: 32\ngird: 1", "gird", "Did you mean grid?", 2),
    ("block: 32\nseeds: -1", "seeds", " or a list of at least 1 entry", 2),
    ("block: 32\nschedules: [lazy, lzy]", "schedules[1]", "The nearest is lazy", 2),
    ("block: 32\nchecks: [racs]", "checks", "'racs' is no check", 2),
    ("block: 32\nnames: {roles: {a: [1]}}", "names.roles.a", "a list of 2 entries", 2),
    ("block: 32\nnames: {shred: {}}", "names.shred", "Did you mean shared?", 2),
    ("block: 32\narguments: [7]", "arguments[0]", "must be {array: ...}, {make: ...", 2),
    ("block: 32\narguments:\n- {foo: 1}", "arguments[0]", "must be {array: ...}, {make: ...", 3),
    ("block: 32\narguments:\n- {make: zeros}", "arguments[0].shape", "shape is missing", 3),
    ("block: 32\narguments:\n- {make: nil, shape: [1]}", "arguments[0].make", "normal", 3),
    ("block: 32\narguments:\n- {use: a, shap: 1}", "arguments[0].shap", "Known keys: use.", 3),
    ("block: 32\narguments:\n- {make: randint, shape: [1]}", "arguments[0]", "needs high", 3),
    ("block: 32\narguments:\n- {tensor_map: a, box: [8], swizzle: 7}",
     "arguments[0].swizzle", "0, 32, 64 or 128", 3),
    ("block: 32\narrays: {x: {make: zeros, shape: 4}}", "arrays.x.shape", "1 to 32 entries", 2),
    ("block: 32\narrays: {x: {mak: zeros, shape: [1]}}", "arrays.x.mak", "Did you mean make?", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "message", "line"), WRONG)
def test_a_mistake_is_told_by_key_and_line(text, key, message, line) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_launch_file(text)
    (problem,) = caught.value.problems
    assert problem.key == key
    assert message in f"{problem.message} {problem.remedy}"
    assert problem.line == line


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_launch_file("block: x\ngrid: y\ncluster: z\nfoo: 1")
    assert {one.key for one in caught.value.problems} == {"grid", "block", "cluster", "foo"}


def prepared(text: str, folder: Path = Path()) -> tuple:
    return prepare(parse_launch_file("block: 32\narguments:\n" + text), folder).arguments()


def test_made_arrays() -> None:
    arguments, _, _ = prepared(
        """
- {make: zeros, shape: [2, 3]}
- {make: full, shape: [4], value: 7, dtype: uint8}
- {make: arange, shape: [2, 2], dtype: int32}
- {make: normal, shape: [1000], dtype: bf16, seed: 3, scale: 10}
- {make: uniform, shape: [1000], low: -1, high: 1}
- {make: randint, shape: [1000], low: 5, high: 8, dtype: int16}
"""
    )
    assert [(a.dtype.name, a.shape) for a in arguments] == [
        ("float32", (2, 3)), ("uint8", (4,)), ("int32", (2, 2)), ("bfloat16", (1000,)),
        ("float32", (1000,)), ("int16", (1000,)),
    ]  # fmt: skip
    assert not arguments[0].any()
    assert arguments[1].tolist() == [7] * 4
    assert arguments[2].tolist() == [[0, 1], [2, 3]]
    assert 9 < arguments[3].astype(float).std() < 11
    assert -1 <= arguments[4].min() < -0.9 < 0.9 < arguments[4].max() < 1
    assert set(arguments[5].tolist()) == {5, 6, 7}


def test_the_same_seed_gives_the_same_numbers_and_another_one_others() -> None:
    arguments, _, _ = prepared(
        "".join(f"- {{make: normal, shape: [9], seed: {s}}}\n" for s in (1, 1, 2))
    )
    np.testing.assert_array_equal(arguments[0], arguments[1])
    assert (arguments[0] != arguments[2]).all()


def test_names_tie_arguments_together() -> None:
    arguments, arrays, _ = prepared(
        """
- {name: x, make: zeros, shape: [64, 64], dtype: float16}
- {use: x}
- {tensor_map: x, box: [8, 32], swizzle: 64}
- {scalar: 7, dtype: int16}
- {zeros: true}
"""
    )
    assert arguments[0] is arguments[1] is arrays["x"]
    assert isinstance(arguments[2], TensorMap)
    assert arguments[2].array is arguments[0]
    assert arguments[2].box == (32, 8)
    assert arguments[3] == 7
    assert arguments[3].dtype == np.int16
    assert arguments[4] is None


def test_a_map_over_packed_elements() -> None:
    arguments, _, _ = prepared(
        """
- {name: x, make: zeros, shape: [64, 96], dtype: uint8}
- {tensor_map: x, box: [8, 128], swizzle: 128, packed: 16u6_align16b}
"""
    )
    assert (arguments[1].dims, arguments[1].box) == ((128, 64), (128, 8))


def test_an_im2col_map() -> None:
    arguments, _, _ = prepared(
        """
- {name: x, make: zeros, shape: [2, 5, 7, 64], dtype: float16}
- {tensor_map: x, box: [32, 64], swizzle: 128, im2col: [[-1, 0], [1, -2]]}
"""
    )
    corners = arguments[1].corners
    assert (corners.lower, corners.upper, arguments[1].box) == ((0, -1), (-2, 1), (64, 32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {use: x}", "arguments[0].use: no array is called 'x'; there is none"),
        ("- {tensor_map: x, box: [1]}", "arguments[0].tensor_map: no array is called 'x'"),
        ("- {make: ones, shape: [1], name: x}\n- {make: ones, shape: [1], name: x}",
         "arguments[1].name: the name x is that of arguments[0], too"),
        ("- {make: ones, shape: [1], dtype: float17}",
         "arguments[0].dtype: there is no type 'float17'"),
        ("- {make: ones, shape: [1], dtype: object}", "no type 'object'"),
        ("- {scalar: 300, dtype: uint8}", "arguments[0].scalar: 300 does not fit into uint8"),
        ("- {scalar: 1.5, dtype: int32}", "1.5 does not fit into int32"),
        ("- {array: nowhere.npy}", "arguments[0].array: there is no file"),
        ("- {array: raw.npy}", "say with dtype what its bits are"),
        ("- {array: raw.npy, dtype: float32}", "float32 has 4 bytes"),
        ("- {array: text.npy}", "is no .npy file"),
        ("- {make: ones, shape: [64, 64], name: x}\n- {tensor_map: x, box: [1, 64], swizzle: 32}",
         "arguments[1]: tensor map: "),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(text, message, tmp_path) -> None:
    np.save(tmp_path / "raw.npy", np.ones(3, ml_dtypes.bfloat16))
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(LaunchFileError) as caught:
        prepared(text, tmp_path)
    assert message in str(caught.value)


def test_types_that_files_do_not_know_come_back(tmp_path) -> None:
    values = np.arange(6).astype(ml_dtypes.float8_e4m3fn)
    np.save(tmp_path / "x.npy", values)
    arguments, _, _ = prepared("- {array: x.npy, dtype: e4m3}", tmp_path)
    assert arguments[0].dtype == values.dtype
    np.testing.assert_array_equal(arguments[0], values)


DOUBLE = """
    mov.u32 %r10, %tid.x; mul.wide.u32 %d10, %r10, 4; add.u64 %d10, %d0, %d10;
    ld.global.u32 %r11, [%d10]; shl.b32 %r11, %r11, 1; st.global.u32 [%d10], %r11;
"""


def test_runs_start_alike_and_the_first_one_is_saved(tmp_path) -> None:
    file = parse_launch_file(
        "block: 32\nseeds: [4, 5]\nschedules: [lazy, eager]\narguments:\n"
        "- {name: x, make: arange, shape: [32], dtype: int32, output: sub/x.npy, expect: right.npy}"
    )
    np.save(tmp_path / "right.npy", 2 * np.arange(32))
    launch = prepare(file, tmp_path)
    wanted = expectations(launch, tmp_path, {})
    runs = list(run_launch(Program(kernel(DOUBLE)), launch, wanted))
    assert [(run.report.seed, run.report.schedule) for run in runs] == [
        (4, "lazy"), (4, "eager"), (5, "lazy"), (5, "eager"),
    ]  # fmt: skip
    assert all(run.passed for run in runs)
    assert save_outputs(output_files(launch, tmp_path), runs[0]) == (tmp_path / "sub/x.npy",)
    np.testing.assert_array_equal(np.load(tmp_path / "sub/x.npy"), 2 * np.arange(32))


def test_half_an_output_is_never_left(tmp_path) -> None:
    resource = pytest.importorskip("resource")
    file = parse_launch_file(
        "block: 32\narguments:\n- {name: x, make: arange, shape: [32], dtype: int32, output: x.npy}"
    )
    launch = prepare(file, tmp_path)
    (run,) = run_launch(Program(kernel(DOUBLE)), launch, expectations(launch, tmp_path, {}))
    (tmp_path / "x.npy").write_bytes(b"before")
    files = output_files(launch, tmp_path, force=True)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (140, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save_outputs(files, run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.npy", b"before")]


@pytest.mark.parametrize(
    ("keys", "reported"),
    [("output: x.npy", True), ("expect: x.npy", True), ("output: x.npy, partial: true", False),
     ("name: x", False)],
)  # fmt: skip
def test_outputs_are_to_be_written_whole(keys: str, reported: bool, tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(40, np.int32))
    text = f"block: 32\narguments:\n- {{make: zeros, shape: [40], dtype: int32, {keys}}}"
    launch = prepare(parse_launch_file(text), tmp_path)
    (one,) = run_launch(Program(kernel(DOUBLE)), launch)
    messages = [one.message for one in one.report.findings]
    assert messages == (
        ["8 of 40 elements of p0 were never written, the first at index 32"] if reported else []
    )
    assert one.passed


def test_comparison_counts_what_is_beyond_the_tolerance() -> None:
    right = np.array([1.0, 10.0, np.nan, np.inf, 0.0])
    expected = Expectation("x", right, 0.1)
    assert compare(np.array([1.1, 10.9, np.nan, np.inf, 0.1]), expected).passed
    result = compare(np.array([1.3, 10.0, np.nan, 1.0, np.nan]), expected)
    assert (result.wrong, result.elements, result.largest_error) == (3, 5, None)
    assert compare(np.array([1.0, 12.0, np.nan, np.inf, 0.0]), expected).at == (1,)


def test_names_for_findings() -> None:
    file = parse_launch_file(
        "block: 256\nnames:\n  base_align: 1024\n  shared: {full: [0, 32, 8]}\n"
        "  roles: {loader: [0, 128]}"
    )
    names = file.names.names()
    assert names.of_offset(1024 + 17, 8) == "full[2]"
    assert names.of_threads(32, 63) == "loader"


NAMED = """
block: 32
arguments:
- {name: source, make: ones, shape: [4], dtype: uint32}
- {make: ones, shape: [4], dtype: uint32}
- {tensor_map: other, box: [16]}
- {use: source}
- {bytes: '0000 0000 0000 0000', pointers: {0: other}}
arrays:
  other: {make: ones, shape: [16], dtype: uint32}
"""


@pytest.mark.parametrize(("word", "name"), [
    ("mov.u64 %d9, %d0;", "source"), ("mov.u64 %d9, %d1;", "p1"), ("mov.u64 %d9, %d3;", "source"),
    ("mov.u64 %d9, %d4;", "other"),
])  # fmt: skip
def test_findings_have_the_names_of_the_file(word: str, name: str, tmp_path) -> None:
    body = f"{word} ld.global.u32 %r1, [%d9+64];"
    kinds = ("u64", "u64", "tensor_map", "u64", "u64")
    launched = prepare(parse_launch_file(NAMED), tmp_path)
    (done,) = run_launch(Program(kernel(body, kinds)), launched)
    [finding] = done.report.findings
    assert f"bytes past the end of {name} (" in finding.message


def test_defaults() -> None:
    file = LaunchFile(block=32)
    assert [*file.runs()] == [(0, "uniform")]
    assert file.checks is True


def output_of(text: str, folder, **options):
    file = parse_launch_file(
        f"block: 32\narguments:\n- {{make: zeros, shape: [4], output: {text}}}"
    )
    return output_files(prepare(file, folder), folder, **options)


@pytest.mark.parametrize("where", ["../x.npy", "link/x.npy", "outside.npy", "/dev/null", "sub/.."])
def test_an_output_outside_of_the_folder_is_refused(where: str, tmp_path) -> None:
    folder = tmp_path / "launch"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / "outside.npy").symlink_to(tmp_path / "y.npy")
    with pytest.raises(LaunchFileError, match=r"is outside of|is no \.npy file"):
        output_of(where, folder)


def test_an_output_replaces_only_npy_files(tmp_path) -> None:
    np.save(tmp_path / "before.npy", np.zeros(3))
    (tmp_path / "notes.txt").write_text("mine")
    assert output_of("before.npy", tmp_path) == {"0": tmp_path / "before.npy"}
    with pytest.raises(LaunchFileError, match=r"no \.npy file: name another, or give --force"):
        output_of("notes.txt", tmp_path)
    assert output_of("notes.txt", tmp_path, force=True) == {"0": tmp_path / "notes.txt"}
