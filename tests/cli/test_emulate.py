"""The command on the example of its document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from fa4gen.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guide/emulate.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs/reference/emulator.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
COMMAND = BLOCKS["sh"].split()[1:]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's three files in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("reverse.ptx").write_text(BLOCKS["ptx"])
    Path("reverse.yaml").write_text(BLOCKS["yaml"])
    np.save("right.npy", 2 * np.arange(256.0)[::-1])
    return tmp_path


def emulate(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, Any]:
    capsys.readouterr()
    status = main([*COMMAND, "--format", "json", *args])
    return status, json.loads(capsys.readouterr().out)


def without_barrier() -> None:
    Path("reverse.ptx").write_text(BLOCKS["ptx"].replace("bar.sync 0;", ""))


def test_the_example_is_clean_and_right(work, capsys) -> None:
    assert main(COMMAND) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 6
    assert all("clean" in row and "right" in row for row in rows[1:5])
    assert rows[5] == "covered: 18 of 18 instructions ran, named barriers used: 0"
    np.testing.assert_array_equal(np.load("target.npy"), np.load("right.npy"))


def test_without_the_barrier_every_run_names_the_race(work, capsys) -> None:
    without_barrier()
    status, document = emulate(capsys)
    assert status == 1
    assert not document["passed"]
    for run in document["runs"]:
        assert run["verdict"] == "error"
        assert {finding["kind"] for finding in run["findings"]} <= {"race", "uninitialised"}
        assert "race" in {finding["kind"] for finding in run["findings"]}
    assert any(not one["passed"] for run in document["runs"] for one in run["comparisons"])


def test_the_text_says_each_finding_once(work, capsys) -> None:
    without_barrier()
    assert main(COMMAND) == 1
    out = capsys.readouterr().out
    races = re.findall(r"error: race at .*, .*: ", out)
    assert len(races) == len(set(races)) > 0
    assert re.search(r"wrong: \d+ of 256 elements of target, \[\d+\] by [\d.]+ \[seed", out)


def test_annotations_stand_at_lines_of_the_ptx(work, capsys) -> None:
    without_barrier()
    assert main([*COMMAND, "--format", "github"]) == 1
    assert re.search(
        r"(?m)^::error file=reverse.ptx,line=2\d,col=1::error: race", capsys.readouterr().err
    )


@pytest.mark.parametrize(("below", "place"), [
    (("reverse.cu", "ring.h"), "file=reverse.cu,line=12"),
    (("ring.h",), "file=ring.h,line=7"),
    ((), r"file=reverse.ptx,line=2\d"),
])  # fmt: skip
def test_annotations_stand_in_the_source_where_it_is_here(below, place, work, capsys) -> None:
    without_barrier()
    for name in below:
        Path(name).write_text(
            f"{name} {{\n" * 6 + "  of the ring\n" + "\n" * 4 + "  of the kernel\n"
        )
    ptx = Path("reverse.ptx").read_text()
    inlined = ".loc 2 7 3, function_name $L_info0, inlined_at 1 12 5\nld.shared.f32"
    files = "".join(
        f'.file {number} "{Path(name).absolute()}"\n'
        for number, name in enumerate(("reverse.cu", "ring.h"), 1)
    )
    Path("reverse.ptx").write_text(ptx.replace("ld.shared.f32", inlined) + files)
    assert main([*COMMAND, "--format", "github"]) == 1
    said = capsys.readouterr().err
    message = r"::error: race at ring\.h:7 \(inlined at reverse\.cu:12\), "
    assert re.search(f"(?m)^::error {place},col=1{message}", said), said
    lines = {"reverse.cu": "reverse.cu:12: of the kernel", "ring.h": "ring.h:7: of the ring"}
    text = lines[below[0]] if below else None
    assert ("%0A    " in said) == (text is not None)
    _, document = emulate(capsys)
    races = [one for one in document["runs"][0]["findings"] if one["kind"] == "race"]
    assert {one["source"] for one in races if one["where"] == "ring.h:7"} == {
        text and text.split(": ")[1]
    }
    main(COMMAND)
    assert (f"\n    {text}\n" in capsys.readouterr().out) == (text is not None)


@pytest.mark.parametrize("name", ["secret.env", "../outside.cu", "link.cu", "short.cu"])
def test_no_other_files_are_shown(name, work, capsys, monkeypatch) -> None:
    """The PTX of a stranger may name any file as its source."""
    without_barrier()
    here = work / "here"
    here.mkdir()
    for path in ("here/secret.env", "outside.cu"):
        (work / path).write_text("one\nTOKEN\n")
    (here / "short.cu").write_text("one\n")
    (here / "link.cu").symlink_to(work / "outside.cu")
    for file in ("reverse.yaml", "reverse.ptx", "right.npy"):
        (work / file).rename(here / file)
    monkeypatch.chdir(here)
    text = Path("reverse.ptx").read_text().replace("ld.shared.f32", ".loc 1 2 3\nld.shared.f32")
    Path("reverse.ptx").write_text(f'{text}.file 1 "{name}"\n')
    assert main([*COMMAND, "--format", "github"]) == 1
    assert ":2, " in (said := "".join(capsys.readouterr()))
    assert "TOKEN" not in said
    assert "file=reverse.ptx" in said


def test_addresses_and_arguments_have_the_names_of_the_launch_file(work, capsys) -> None:
    beyond = BLOCKS["ptx"].replace("st.global.f32 [%d4]", "st.global.f32 [%d4+1024]")
    Path("reverse.ptx").write_text(beyond)
    assert main(COMMAND) == 1
    assert "bytes past the end of target (1024 bytes)" in capsys.readouterr().out
    renamed = BLOCKS["yaml"].replace("name: source", "name: numbers")
    Path("reverse.yaml").write_text(renamed)
    Path("reverse.ptx").write_text(BLOCKS["ptx"].replace("u64 source", "u32 source"))
    assert main(COMMAND) == 2
    assert "argument 0 (numbers) has 4 bytes" in capsys.readouterr().err


def test_what_is_against_the_letter_of_the_isa_fails_with_strict(work, capsys) -> None:
    """Lanes of one warp exchange values without bar.warp.sync."""
    within = (
        BLOCKS["ptx"].replace("bar.sync 0;", "").replace("sub.u32 %r3, 255,", "xor.b32 %r3, 31,")
    )
    Path("reverse.ptx").write_text(within)
    for options, status, severity in ([], 0, "isa"), (["--strict"], 1, "error"):
        assert main([*COMMAND[:-2], "--format", "json", *options]) == status
        document = json.loads(capsys.readouterr().out)
        assert document["passed"] == (status == 0)
        for run in document["runs"]:
            assert run["verdict"] == severity
            assert {(one["kind"], one["severity"]) for one in run["findings"]} == {
                ("race", severity)
            }


def test_wrong_numbers_alone_fail(work, capsys) -> None:
    right = np.load("right.npy")
    right[5] += 1
    np.save("right.npy", right)
    status, document = emulate(capsys)
    assert status == 1
    (one,) = document["runs"][0]["comparisons"]
    assert one == {
        "array": "target", "passed": False, "wrong": 1, "elements": 256, "largest_error": 1.0,
        "at": [5],
    }  # fmt: skip


def test_options_count_more_than_the_file(work, capsys) -> None:
    without_barrier()
    _, document = emulate(capsys)
    assert len(document["runs"]) > 1
    assert all(run["findings"] for run in document["runs"])
    status, document = emulate(capsys, "--seeds", "1", "--schedule", "lazy", "--no-checks")
    (run,) = document["runs"]
    assert (run["seed"], run["schedule"], run["findings"]) == (0, "lazy", [])
    assert (status, run["passed"]) == (1, False)


def test_what_no_run_exercised_is_reported(work, capsys) -> None:
    ring = """
    setp.ne.u32 %p, %r0, 0;
    @!%p mbarrier.init.shared.b64 [full], 256;
    bar.sync 2;
    mbarrier.arrive.shared.b64 _, [full];
    setp.gt.f32 %p, %f0, 0f41200000;
    @%p bra LARGE;
    bra BEHIND;
LARGE:
    mov.f32 %f2, %f0;
BEHIND:
    ret;
    """
    declared = ".shared .align 8 .b8 full[8]; .reg .pred %p; .reg .b32"
    text = BLOCKS["ptx"].replace(".reg .b32", declared).replace("ret;", ring)
    Path("reverse.ptx").write_text(text)
    status, document = emulate(capsys)
    assert status == 0
    found = document["coverage"]
    assert found["named_barriers"] == [0, 2]
    assert [one["phases"] for one in found["mbarriers"]] == [1]
    large = 1 + text.splitlines().index("    mov.f32 %f2, %f0;")
    assert found["lines_never_run"] == [f"PTX line {large}"]
    (branch,) = [one for one in found["branches"] if not one["covered"]]
    assert (branch["line"], branch["taken"], branch["passed"]) == (large - 3, False, True)
    assert found["instructions_run"] == found["instructions"] - 1
    capsys.readouterr()
    assert main(COMMAND) == 0
    lines = capsys.readouterr().out.splitlines()[5:]
    assert lines == [
        "covered: 24 of 25 instructions ran, 0 of 1 branches both ways, "
        "0 of 1 mbarriers completed 3 phases in every slot, named barriers used: 0, 2",
        "not covered: fewer phases in full (1)",
        f"not covered: never ran: PTX line {large}",
        f"not covered: always the same way: PTX line {large - 3}",
    ]


def test_a_trace_is_written(work, capsys) -> None:
    assert main([*COMMAND, "--trace", "trace.json"]) == 0
    assert json.loads(Path("trace.json").read_text())["traceEvents"]


def test_a_kernel_without_products_has_no_timeline_to_draw(work, capsys) -> None:
    assert main([*COMMAND, "--timeline", "loop.svg"]) == 2
    shown = capsys.readouterr()
    assert "no matrix products" in shown.err
    assert not Path("loop.svg").exists()
    rows = shown.out.splitlines()
    assert all("clean" in row and "right" in row for row in rows[1:5])
    assert rows[5].startswith("covered: 18 of 18")
    status, document = emulate(capsys, "--timeline", "loop.svg")
    assert (status, document["passed"], "timeline" in document) == (2, True, False)
    without_barrier()
    assert main([*COMMAND, "--timeline", "loop.svg"]) == 1  # the result comes first


@pytest.mark.parametrize("trace", [False, True])
def test_a_timeline_is_drawn_and_its_figures_given(work, capsys, monkeypatch, trace) -> None:
    from fa4gen.emulator.launch_file import run
    from tests.emulator.timeline.traces import attention

    def run_launch(*args: Any, trace: Path, **options: Any) -> Any:
        yield from original(*args, trace=trace, **options)
        trace.write_text(json.dumps(attention(8)))

    original = run.run_launch
    monkeypatch.setattr(run, "run_launch", run_launch)
    more = ["--trace", "trace.json"] if trace else []
    status, document = emulate(capsys, "--timeline", "loop.svg", *more)
    assert status == 0
    assert document["timeline"]["tensor_busy"] == pytest.approx(0.7)
    assert Path("loop.svg").read_text().startswith("<?xml")
    assert Path("trace.json").exists() == trace
    assert main([*COMMAND, "--timeline", "loop.svg"]) == 0
    shown = capsys.readouterr().out
    assert "tensor core busy 70.0%, 100 cycles a block, bound by tensor core" in shown
    assert "softmax" in shown


def change(old: str, new: str, path: str = "reverse.yaml") -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


WRONG = [
    (lambda: Path("reverse.yaml").unlink(), "reverse.yaml", 0),
    (lambda: Path("reverse.ptx").unlink(), "reverse.ptx", 0),
    (lambda: change("- {scalar: 2.0, dtype: float32}\n", ""), "3 parameters, 2 arguments", 0),
    (lambda: change("bar.sync 0;", "bar.snyc 0;", "reverse.ptx"), "bar.snyc", 19),
    (lambda: change("ret;", "ret", "reverse.ptx"), "reverse.ptx", None),
    (lambda: change("target]", "nothing]", "reverse.ptx"), "reverse.ptx", None),
    (lambda: Path("right.npy").write_text("no array"), ".npy file: it does not begin as one", 0),
    (lambda: np.save("right.npy", np.zeros(7)), "has the shape (7,)", 0),
    (lambda: Path("right.npy").unlink(), "there is no file right.npy", 0),
    (
        lambda: change("make: arange", "expect: nowhere.npy, make: arange"),
        "arguments[0].expect: there is no file nowhere.npy",
        3,
    ),
]


@pytest.mark.parametrize(("spoil", "message", "line"), WRONG)
def test_what_cannot_run_is_reported_with_its_place(work, capsys, spoil, message, line) -> None:
    spoil()
    status, document = emulate(capsys)
    assert status == 2
    (problem,) = document["problems"]
    assert message in problem["message"] + problem.get("file", "")
    if line is not None:
        assert problem.get("line", 0) == line
    assert main(COMMAND) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_wrong_expectation_is_usage(work, capsys) -> None:
    assert emulate(capsys, "--expect", "nobody=right.npy")[0] == 2
    assert main([*COMMAND, "--expect", "target"]) == 2
    assert "NAME=FILE" in capsys.readouterr().err


def test_the_python_example_runs(work, capsys) -> None:
    exec(compile(BLOCKS["py"], "example", "exec"), {})
    assert capsys.readouterr().out == "clean []\n"


def test_the_document_knows_all_keys_kinds_and_schedules() -> None:
    from fa4gen.emulator import SCHEDULES
    from fa4gen.emulator.launch_file.model import Argument, LaunchFile

    keys = set(re.findall(r"`(\w+)`", REFERENCE))
    assert set(LaunchFile.model_fields) <= keys
    assert set(SCHEDULES) <= keys
    for model in get_args(Argument):
        kind = next(key for key, field in model.model_fields.items() if field.is_required())
        assert f"`{{{kind}: " in REFERENCE
