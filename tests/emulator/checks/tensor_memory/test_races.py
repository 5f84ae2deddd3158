"""Order of accesses to tensor memory."""

from __future__ import annotations

import pytest

from fa4gen.emulator.state.machine import TensorRange
from tests.emulator.checks.world import World

RACE = [("race", "error")]
WAIT = [("missing-tcgen05-wait", "error")]
FENCE = [("missing-tcgen05-fence", "review")]


class Blackwell:
    """A warpgroup that works on tensor memory and a thread that issues products."""

    def __init__(self, **options) -> None:
        self.world = World(sm=100, **options)
        self.math, self.issuer = self.world.wg(0), self.world.wg(1)
        self.done = self.world.barrier(self.issuer, 1024, 1)
        self.free = self.world.barrier(self.issuer, 1032, 128)
        self.world.sync(self.math, self.issuer)

    def part(self, first=0, columns=128, lanes=(0, 128)):
        return TensorRange(self.world.cta, *lanes, first, first + columns)

    def product(self, first=0, columns=128, a=None, kind="tcgen05.mma", **more):
        reads = () if a is None else (self.part(a, 8),)
        writes = (self.part(first, columns),)
        return self.world.operation(
            self.issuer, kind, tensor_reads=reads, tensor_writes=writes, **more
        )

    def commit(self, *ops):
        op = self.world.operation(self.issuer, "tcgen05.commit", notes={"tracks": list(ops)})
        self.world.machine.complete(op)
        self.done.signal_arrival(op)

    def wait(self, wg, barrier, after=True, lanes=None, acquire="cta"):
        self.world.wait(wg, barrier, lanes, acquire)
        if after:
            self.fence(wg, "after", lanes)

    def fence(self, wg, side, lanes=None):
        self.world.fence(wg, f"tcgen05.fence::{side}_thread_sync", lanes)

    def access(self, kind, first=0, columns=32):
        site = self.world.site("tcgen05.ld" if kind == "read" else "tcgen05.st")
        part = self.part(first, columns)
        self.world.observer.tensor_access(self.math, None, [part], kind, site)

    def waited(self, kind):
        self.world.observer.tensor_waited(self.math, None, kind)

    def found(self):
        """Return the findings; the warps of a warpgroup find the same."""
        return sorted(set(self.world.found()))


def test_a_product_is_loaded_after_its_commit():
    gpu = Blackwell()
    gpu.commit(gpu.product())
    gpu.wait(gpu.math, gpu.done)
    gpu.access("read")
    assert gpu.found() == []


def test_a_product_is_loaded_before_its_commit():
    gpu = Blackwell()
    gpu.product()
    gpu.world.sync(gpu.math, gpu.issuer)
    gpu.fence(gpu.math, "after")
    gpu.access("read")
    assert gpu.found() == RACE
    assert "tcgen05.mma issued by thread 128" in gpu.world.text()


@pytest.mark.parametrize(("level", "expected"), [
    ("canonical", FENCE), ("acqrel", []), ("off", []),
])  # fmt: skip
def test_no_fence_after_the_wait(level, expected):
    gpu = Blackwell(tcgen05_fences=level)
    gpu.commit(gpu.product())
    gpu.wait(gpu.math, gpu.done, after=False)
    gpu.access("read")
    assert gpu.found() == expected


def test_relaxed_waits_do_with_the_fences():
    gpu = Blackwell()
    gpu.commit(gpu.product())
    gpu.wait(gpu.math, gpu.done, acquire="none")
    gpu.access("read")
    assert gpu.found() == []


@pytest.mark.parametrize(("wait", "before", "after", "expected"), [
    ("before", True, True, []),
    (None, True, True, WAIT),
    ("after", True, True, WAIT),
    ("before", False, True, FENCE),
    ("before", True, False, FENCE),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["read", "write"])
def test_handing_columns_to_the_issuer(kind, wait, before, after, expected):
    gpu = Blackwell()
    gpu.access(kind)
    if wait == "before":
        gpu.waited(kind)
    if before:
        gpu.fence(gpu.math, "before")
    gpu.world.arrive(gpu.math, gpu.free)
    if wait == "after":
        gpu.waited(kind)
    gpu.wait(gpu.issuer, gpu.free, after, [0])
    gpu.product(a=0, first=256) if kind == "write" else gpu.product()
    assert gpu.found() == expected


@pytest.mark.parametrize(("waits", "lanes", "expected"), [
    ("before", slice(0, 128, 32), [("race", "isa")]),
    ("before", slice(0, 128), []),
    ("before", slice(0, 64, 32), [*RACE, ("race", "isa")]),
    ("after", slice(0, 128, 32), RACE),
    (None, slice(0, 128, 32), RACE),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["read", "write"])
def test_one_lane_hands_over_the_columns_of_its_warp(kind, waits, lanes, expected):
    """The wait is one operation of the warp; without it the access may be under way."""
    gpu = Blackwell()
    gpu.free = gpu.world.barrier(gpu.issuer, 1040, len(range(128)[lanes]))
    gpu.world.sync(gpu.math, gpu.issuer)
    gpu.access(kind)
    if waits == "before":
        gpu.waited(kind)
    gpu.fence(gpu.math, "before")
    gpu.world.arrive(gpu.math, gpu.free, lanes)
    if waits == "after":
        gpu.waited(kind)
    gpu.wait(gpu.issuer, gpu.free, lanes=[0])
    gpu.product(a=0, first=256) if kind == "write" else gpu.product()
    assert gpu.found() == expected


def test_loads_whose_values_were_needed_before_the_release():
    gpu = Blackwell()
    gpu.world.loads.needed = True
    gpu.access("read")
    gpu.world.arrive(gpu.math, gpu.free)
    gpu.wait(gpu.issuer, gpu.free, lanes=[0])
    gpu.product()
    assert gpu.found() == [("missing-tcgen05-wait", "isa")]


@pytest.mark.parametrize("needed", [True, False])
def test_a_store_over_what_the_warp_loaded(needed):
    gpu = Blackwell()
    gpu.world.loads.needed = needed
    gpu.access("read")
    gpu.access("write")
    assert gpu.found() == [("missing-tcgen05-wait", "isa" if needed else "error")]


def test_stores_are_complete_by_a_wait_only():
    gpu = Blackwell()
    gpu.world.loads.needed = True
    gpu.access("write")
    gpu.world.arrive(gpu.math, gpu.free)
    gpu.wait(gpu.issuer, gpu.free, lanes=[0])
    gpu.product(a=0, first=256)
    assert gpu.found() == WAIT


def test_columns_that_nobody_handed_over():
    gpu = Blackwell()
    gpu.access("read")
    gpu.waited("read")
    gpu.product()
    assert gpu.found() == RACE


def test_other_columns_do_not_matter():
    gpu = Blackwell()
    gpu.access("read", 0, 32)
    gpu.product(32, 96)
    assert gpu.found() == []


def test_store_then_load_in_one_warp():
    for waits in (True, False):
        gpu = Blackwell()
        gpu.access("write")
        if waits:
            gpu.waited("write")
        gpu.access("read")
        assert gpu.found() == ([] if waits else WAIT)


def test_products_on_one_accumulator_are_in_order():
    gpu = Blackwell()
    gpu.product()
    gpu.product()
    assert gpu.found() == []


@pytest.mark.parametrize("committed", [True, False])
def test_what_orders_a_product_orders_those_that_continue_it(committed):
    gpu = Blackwell()
    first = gpu.product()
    last = gpu.product(continues=gpu.product(continues=first))
    assert (last.slot, last.epoch) == (first.slot, first.epoch)
    if committed:
        gpu.commit(last)
        gpu.wait(gpu.math, gpu.done)
    gpu.access("read")
    assert gpu.found() == ([] if committed else RACE)


def test_what_a_product_reads_is_checked_where_it_continues_another():
    gpu = Blackwell()
    gpu.access("write", 256)
    first = gpu.product()
    assert gpu.found() == []
    gpu.product(a=256, continues=first)
    assert gpu.found() == RACE
    gpu = Blackwell()
    first = gpu.product(reads=[])
    gpu.product(reads=[(2048, 4096)], continues=first)
    assert gpu.found() == [("uninitialised", "error")]


def test_products_in_order_need_no_fence_when_the_first_is_known_to_be_complete():
    """As where both wait for the same slot of a ring: order within the queue is enough."""
    gpu = Blackwell()
    gpu.commit(gpu.product())
    gpu.wait(gpu.issuer, gpu.done, after=False)
    gpu.product()
    assert gpu.found() == []


def test_another_accumulator_over_a_complete_product_needs_the_fence():
    gpu = Blackwell()
    gpu.commit(gpu.product())
    gpu.wait(gpu.issuer, gpu.done, after=False)
    gpu.product(64)
    assert gpu.found() == FENCE


def test_a_product_read_as_operand_needs_completion():
    gpu = Blackwell()
    gpu.product()
    gpu.product(256, a=0)
    assert gpu.found() == RACE


def test_overwriting_the_operand_of_a_product_in_the_queue():
    gpu = Blackwell()
    gpu.product(256, a=0)
    gpu.product(0)
    assert gpu.found() == [("race", "isa")]


def test_the_queue_of_another_thread_orders_nothing():
    gpu = Blackwell()
    gpu.product(256, a=0)
    gpu.world.sync(gpu.math, gpu.issuer)
    gpu.world.operation(gpu.math, "tcgen05.mma", tensor_writes=(gpu.part(),))
    assert gpu.found() == RACE


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize(("release", "acquire", "expected"), [
    ("cluster", "cluster", FENCE),
    ("cluster", "cta", [("race", "isa")]),
    ("cta", "cta", [("race", "isa")]),
])  # fmt: skip
def test_handing_columns_to_the_issuer_of_the_pair(kind, release, acquire, expected):
    world = World(threads=128, ctas=2, sm=100)
    math, issuer = world.wg(0, 1), world.wg(0, 0)
    free = world.barrier(issuer, 1024, 128)
    world.sync(math, issuer)
    columns = TensorRange(math.cta, 0, 128, 0, 32)
    world.observer.tensor_access(math, None, [columns], kind, world.site("tcgen05.ld"))
    world.observer.tensor_waited(math, None, kind)
    world.arrive(math, free, release=release)
    world.wait(issuer, free, [0], acquire)
    world.fence(issuer, "tcgen05.fence::after_thread_sync", [0])
    world.operation(issuer, "tcgen05.mma", tensor_writes=(columns,))
    assert sorted(set(world.found())) == expected


def test_a_copy_before_the_product_that_reads_it():
    gpu = Blackwell()
    gpu.product(0, 8, kind="tcgen05.cp")
    gpu.product(256, a=0)
    assert gpu.found() == []


def test_products_of_two_threads_without_order():
    gpu = Blackwell()
    gpu.product()
    gpu.world.operation(gpu.math, "tcgen05.mma", tensor_writes=(gpu.part(),))
    assert gpu.found() == RACE


@pytest.mark.parametrize(
    ("release", "read", "expected"),
    [
        (True, True, []),
        (False, True, [("tensor-memory", "isa")]),
        (False, False, [("tensor-memory", "isa")]),
        (None, True, [("tensor-memory", "error")]),
        (None, False, [("tensor-memory", "error")]),
    ],
    ids=["met", "relaxed", "product, relaxed", "apart", "product, apart"],
)
def test_giving_columns_back(release, read, expected):
    """A relaxed barrier orders what has been executed; the letter asks for more."""
    gpu = Blackwell()
    gpu.commit(gpu.product())
    gpu.wait(gpu.math, gpu.done)
    if read:
        gpu.access("read")
        gpu.waited("read")
    if release is not None:
        gpu.world.sync(gpu.math, gpu.issuer, release=release)
    world = gpu.world
    warp = world.lanes(gpu.issuer, slice(0, 32))
    world.observer.tensor_access(
        gpu.issuer, warp, [gpu.part(0, 128)], "free", world.site("tcgen05.dealloc")
    )
    assert gpu.found() == expected


@pytest.mark.parametrize(
    ("release", "needed", "expected"),
    [
        (True, True, [("missing-tcgen05-wait", "isa")]),
        (False, True, [("missing-tcgen05-wait", "isa")]),
        (False, False, [("tensor-memory", "error")]),
        (None, True, [("tensor-memory", "error")]),
    ],
    ids=["met", "relaxed", "relaxed and under way", "apart"],
)
def test_giving_back_columns_whose_values_were_needed(release, needed, expected):
    """Without a wait, a load that was over when its warp came to the barrier still is."""
    gpu = Blackwell()
    gpu.world.loads.needed = needed
    gpu.access("read")
    if release is not None:
        gpu.world.sync(gpu.math, gpu.issuer, release=release)
    world = gpu.world
    warp = world.lanes(gpu.issuer, slice(0, 32))
    world.observer.tensor_access(
        gpu.issuer, warp, [gpu.part(0, 128)], "free", world.site("tcgen05.dealloc")
    )
    assert gpu.found() == expected


def test_a_stage_freed_by_a_commit_is_filled_again():
    gpu = Blackwell()
    world = gpu.world
    full = world.barrier(gpu.math, 1040, 1)
    world.sync(gpu.math, gpu.issuer)
    for commit in (True, False):
        load = world.load(gpu.math, full, 4096, 8192)
        world.arrive(gpu.math, full, [0])
        world.land(load, full, 4096)
        gpu.wait(gpu.issuer, full, lanes=[0])
        op = world.operation(
            gpu.issuer, "tcgen05.mma", reads=[(4096, 8192)], tensor_writes=(gpu.part(),)
        )
        if commit:
            gpu.commit(op)
            gpu.wait(gpu.math, gpu.done, lanes=[0])
            assert gpu.found() == []
    world.operation(gpu.math, writes=[(4096, 8192)])
    assert ("race", "error") in gpu.found()
