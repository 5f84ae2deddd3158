"""Prepared launches with a graph: what goes into it, who holds it, what is refused."""

from __future__ import annotations

import ctypes

from fa4gen.vendoring.binding import Prepared
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.both import STREAM, WAYS, CLauncher
from tests.vendoring.launcher.families import problems_of
from tests.vendoring.launcher.shipped import shipped_plans
from tests.vendoring.statuses import DRIVER_ERROR, describe_status

PLAIN, LISTED, TOGETHER = "d128_causal_bf16", "d128_ragged_causal_bf16", "decode_d128_bf16"
NAMES = (PLAIN, LISTED, TOGETHER, "gemm_bf16_residual_sm90")
"""The names of kernels of two launches, of a cooperative one, of products."""
OTHER_STREAM = 0x5714EB
FAILURE = 2
STEPS = (
    "cuStreamCreate", "cuStreamBeginCapture_v2", "cuLaunchKernelEx", "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
)  # fmt: skip


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


def test_graphs_launch_the_same(launcher: CLauncher) -> None:
    for name in NAMES:
        plan = shipped_plans()[name]
        args = problem_of(name).c_args
        called, *others = (launcher.outcome(plan, args(), 132, way) for way in WAYS)
        assert called.grid > 0
        assert others == [called, called]


def test_a_graph_is_used_until_it_is_released(launcher: CLauncher) -> None:
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


def test_what_is_prepared_anew_is_launched(launcher: CLauncher) -> None:
    call = Call(launcher)
    call.graph()
    first = call.launch()
    call.release()
    call.prepare(softmax_scale=0.25)
    call.graph()
    assert call.launch() != first
    call.release()


def test_a_captured_stream_gets_the_launch(launcher: CLauncher) -> None:
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


def test_a_step_that_fails_leaves_nothing(launcher: CLauncher) -> None:
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


def test_nothing_to_do_has_no_graph(launcher: CLauncher) -> None:
    call = Call(launcher, batch=0)
    call.graph()
    assert call.stand_in.living == 0
    assert call.launch() == []
    call.release()


def test_only_what_was_prepared_has_a_graph(launcher: CLauncher) -> None:
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    for function in (library.prepare_graph, library.release_graph):
        assert describe_status(function(None)) == ("IS_NULL", "PREPARED")
        empty = ctypes.byref(Prepared())
        assert describe_status(function(empty)) == ("BAD_VALUE", "PREPARED")
