"""Prepared launches with a graph: what goes into it, who holds it, what is refused; and launchers
with one mistake each, which the same checks refuse."""

from __future__ import annotations

import ctypes
import shutil
from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.binding import Prepared
from fa4gen.vendoring.host_build import build_library
from fa4gen.vendoring.standin import SimulatedDevice, StandIn
from tests.vendoring.launcher.both import STREAM, WAYS, CLauncher
from tests.vendoring.launcher.families import problems_of
from tests.vendoring.launcher.shipped import WARNINGS, shipped_plans, write_launcher
from tests.vendoring.statuses import DRIVER_ERROR, describe_status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAIN, LISTED, TOGETHER = "d128_causal_bf16", "d128_ragged_causal_bf16", "decode_d128_bf16"
NAMES = (PLAIN, LISTED, TOGETHER, "gemm_bf16_residual_sm90")
"""The names of kernels of two launches, of a cooperative one, of products."""
OTHER_STREAM = 0x5714EB
FAILURE = 2
STEPS = (
    "cuStreamCreate", "cuStreamBeginCapture_v2", "cuLaunchKernelEx", "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    plans = {name: shipped_plans()[name] for name in NAMES}
    return write_launcher(tmp_path_factory.mktemp("graph"), plans)


@pytest.fixture
def build(tmp_path):
    """Build a folder's library over the stand-in, which is put back."""
    try:
        stand_in = StandIn()
    except MissingCapabilityError as error:
        pytest.skip(str(error))

    def make(source: Path) -> CLauncher:
        flags = ["-O0", *(WARNINGS if source.parent != tmp_path else ())]
        made = build_library(source, tmp_path / "l.so", stand_in=stand_in.path, flags=flags)
        return CLauncher(made, stand_in)

    yield make
    stand_in.reset()
    stand_in.set_devices(SimulatedDevice())
    stand_in.set_current(0)


def problem_of(name: str, **changes):
    plan = shipped_plans()[name]
    if name == TOGETHER:
        changes.setdefault("workspace_bytes", 1 << 30)
    return problems_of(plan).plain_problem(plan, **changes)


class Call:
    """A kernel's call on a device of 132 multiprocessors, prepared."""

    def __init__(self, launcher: CLauncher, name: str = PLAIN, **changes) -> None:
        self.stand_in = launcher.stand_in
        self.library = launcher.on(SimulatedDevice("sm_90a", 132))
        self.handle = self.library.kernel(f"acme_{name}").handle
        self.prepared = Prepared()
        self.place = ctypes.byref(self.prepared)
        self.prepare(name, **changes)
        self.stand_in.reset()

    def prepare(self, name: str = PLAIN, **changes) -> None:
        args = problem_of(name, **changes).c_args()
        assert self.library.prepare(self.handle, ctypes.byref(args), self.place) == 0

    def graph(self) -> None:
        assert self.library.prepare_graph(self.place) == 0

    def release(self) -> None:
        assert self.library.release_graph(self.place) == 0

    def launch(self, stream: int = STREAM):
        """Return what that launched, and by how many graphs."""
        before = len(self.stand_in.launches)
        assert self.library.launch_prepared(self.place, stream) == 0
        launches = self.stand_in.launches[before:]
        assert all(one.stream == stream for one in launches)
        return [(one.entry, one.grid, one.attributes, one.parameters) for one in launches]

    def uses_a_graph(self) -> bool:
        """Whether a launch fails where graphs do."""
        self.stand_in.fail("cuGraphLaunch", FAILURE)
        failed = self.library.launch_prepared(self.place, STREAM) == DRIVER_ERROR + FAILURE
        self.stand_in.reset()
        return failed


# ---- Checks


def graphs_launch_the_same(launcher: CLauncher) -> None:
    for name in NAMES:
        plan = shipped_plans()[name]
        args = problem_of(name).c_args
        called, *others = (launcher.outcome(plan, args(), 132, way) for way in WAYS)
        assert called.grid > 0
        assert others == [called, called]


def a_graph_is_used_until_it_is_released(launcher: CLauncher) -> None:
    for name in NAMES:
        call = Call(launcher, name)
        plain = call.launch()
        assert len(plain) == 1 + (name == LISTED)
        call.graph()
        assert call.uses_a_graph()
        assert [call.launch(stream) for stream in (STREAM, OTHER_STREAM)] == [plain, plain]
        call.graph()  # again: the same one
        assert call.stand_in.living == 1
        call.release()
        assert call.stand_in.living == 0
        assert call.launch() == plain
        assert not call.uses_a_graph()
        call.release()  # nothing
        assert call.launch() == plain


def what_is_prepared_anew_is_launched(launcher: CLauncher) -> None:
    call = Call(launcher)
    call.graph()
    first = call.launch()
    call.release()
    call.prepare(softmax_scale=0.25)
    call.graph()
    assert call.launch() != first
    call.release()


def a_captured_stream_gets_the_launch(launcher: CLauncher) -> None:
    for name in NAMES:
        call = Call(launcher, name)
        plain = call.launch()
        call.graph()
        call.stand_in.set_captured(STREAM)
        try:
            assert call.launch() == plain
        finally:
            call.stand_in.set_captured(0)
            call.release()


def a_step_that_fails_leaves_nothing(launcher: CLauncher) -> None:
    for name in (PLAIN, LISTED):
        call = Call(launcher, name)
        plain = call.launch()
        for step in STEPS:
            call.stand_in.fail(step, FAILURE)
            assert call.library.prepare_graph(call.place) == DRIVER_ERROR + FAILURE, step
            assert call.stand_in.living == 0, step
            call.stand_in.reset()
            assert call.launch() == plain
    call.graph()
    for function in ("cuStreamIsCapturing", "cuGraphLaunch"):
        call.stand_in.fail(function, FAILURE)
        assert call.library.launch_prepared(call.place, STREAM) == DRIVER_ERROR + FAILURE
    call.stand_in.fail("cuGraphExecDestroy", FAILURE)
    assert call.library.release_graph(call.place) == DRIVER_ERROR + FAILURE
    call.release()


def nothing_to_do_has_no_graph(launcher: CLauncher) -> None:
    call = Call(launcher, batch=0)
    call.graph()
    assert call.stand_in.living == 0
    assert call.launch() == []
    call.release()


def only_what_was_prepared_has_a_graph(launcher: CLauncher) -> None:
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    for function in (library.prepare_graph, library.release_graph):
        assert describe_status(function(None)) == ("IS_NULL", "PREPARED")
        empty = ctypes.byref(Prepared())
        assert describe_status(function(empty)) == ("BAD_VALUE", "PREPARED")


CHECKS: tuple[Callable[[CLauncher], None], ...] = (
    graphs_launch_the_same,
    a_graph_is_used_until_it_is_released,
    what_is_prepared_anew_is_launched,
    a_captured_stream_gets_the_launch,
    a_step_that_fails_leaves_nothing,
    nothing_to_do_has_no_graph,
    only_what_was_prepared_has_a_graph,
)


def test_the_launcher(build, folder) -> None:
    launcher = build(folder)
    for check in CHECKS:
        check(launcher)


MAKES = "status = enqueue(&packed, stream);\n    error"
LAUNCHES = "driver.cuGraphLaunch(packed.graph, stream)"
RELEASES = "  packed.graph = NULL;\n  memcpy(prepared->words, &packed, sizeof packed);\n"
LISTS = "if (kernel->list_entry != NULL) { /*"
SHARES = "config.attribute_count = 1;"
CAPTURED = "driver.cuStreamIsCapturing(stream, &is_capturing)"
ENDS = "  TRY(status);\n  TRY_DRIVER(error);"
OURS = "if ((uintptr_t)stream >> 4 == 0x5714E"
MUTANTS = {
    "the list of tiles is not in it": (LISTS, f"{OURS} && {LISTS[4:]}"),
    "not cooperative": (SHARES, f"{OURS}) {SHARES}"),
    "twice in it": (MAKES, f"enqueue(&packed, stream); {MAKES}"),
    "nothing in it": (MAKES, "error"),
    "zeros in the place of parameters": (
        MAKES,
        f"memset(&packed.values, 0, sizeof packed.values); {MAKES}",
    ),
    "parameters of the graph before": (
        MAKES,
        "static packed_launch old; if (!old.grid) old = packed;\n"
        "    status = enqueue(&old, stream);\n    error",
    ),
    "another stream": (LAUNCHES, "driver.cuGraphLaunch(packed.graph, NULL)"),
    "never launched": (LAUNCHES, "enqueue(&packed, stream)"),
    "launched into a capture": (CAPTURED, "(is_capturing = 0)"),
    "not released": ("driver.cuGraphExecDestroy(packed.graph)", "0"),
    "kept after its release": (RELEASES, ""),
    "made again": ("if (packed.graph != NULL || packed.grid == 0)", "if (packed.grid == 0)"),
    "made of nothing": ("if (packed.graph != NULL || packed.grid == 0)", "if (packed.graph)"),
    "a stream is left": ("driver.cuStreamDestroy_v2(stream);", ""),
    "a graph is left": ("if (graph != NULL) driver.cuGraphDestroy(graph);", ""),
    "hinders other threads": ("(stream, RELAXED)", "(stream, 0)"),
    "an error of the launch is forgotten": (ENDS, "  TRY_DRIVER(error);"),
    "an error of the driver is forgotten": (ENDS, "  TRY(status);"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MUTANTS)
def test_a_mistake_is_refused(build, folder, tmp_path, mistake) -> None:
    wrong = tmp_path / "wrong"
    shutil.copytree(folder, wrong)
    source = wrong / "src" / "launcher.c"
    text = source.read_text()
    old, new = MUTANTS[mistake]
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    launcher = build(wrong)
    refused = []
    for check in CHECKS:
        try:
            check(launcher)
        except AssertionError:
            refused.append(check)
    assert refused
