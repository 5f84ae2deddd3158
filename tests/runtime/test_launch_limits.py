"""The limits of a GPU, and of a launch's counters."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.device import DeviceInfo
from fa4gen.runtime.launch_limits import check_count, check_device
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from tests.runtime.views import make_plan
from tests.vendoring.launcher.shipped import shipped_plans

PLAN = make_plan(name="test")


def test_a_gpu_of_another_architecture_is_refused():
    def device(major, minor):
        return DeviceInfo(0, "Some GPU", (major, minor), 132, 1 << 30, 50 << 20)

    check_device(PLAN, device(9, 0))
    for major, minor in ((8, 0), (9, 1), (10, 0)):
        with pytest.raises(ArgumentError) as caught:
            check_device(PLAN, device(major, minor))
        assert f"Some GPU (compute capability {major}.{minor})" in str(caught.value)
        assert "sm_90a: of compute capability 9.0" in str(caught.value)


@pytest.mark.parametrize(
    ("arch", "capability", "remedy"),
    [
        ("sm_100a", (10, 3), "render it with arch: sm_103a or sm_100f"),
        ("sm_100a", (10, 7), "render it with arch: sm_100f"),
        ("sm_103a", (10, 0), "render it with arch: sm_100a or sm_100f"),
        ("sm_100f", (9, 0), "render it with arch: sm_90a"),
        ("sm_100f", (12, 0), "kernels run on compute capability 9.0, 10.0, 10.3 or 10.7"),
    ],
)
def test_the_refusal_says_what_would_run(arch, capability, remedy):
    gpu = DeviceInfo(0, "Some GPU", capability, 132, 1 << 30, 50 << 20)
    with pytest.raises(ArgumentError) as caught:
        check_device(SimpleNamespace(arch=arch), gpu)
    assert remedy in str(caught.value)
    check_device(SimpleNamespace(arch="sm_100f"), replace(gpu, compute_capability=(10, 3)))


def test_more_tiles_than_the_counter_numbers_are_refused():
    check_count(2**31 - 1 - 132, 132)
    with pytest.raises(ArgumentError, match="at most 2147483515"):
        check_count(2**31 - 132, 132)


LINES = sorted(n for n, plan in shipped_plans().items() if getattr(plan, "splits_keys", False))


def count_of(plan, size):
    return plan_schedule(plan, size, 132).largest_count


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("decode_d128_bf16", ProblemSize(1, 4, 1, 2**20, 2**17)),
        ("decode_d128_paged64_bf16", ProblemSize(4096, 64, 1, 1, 262144)),
    ],
)
def test_units_of_fewer_keys_than_a_block_are_counted(name, size):
    schedule = plan_schedule(shipped_plans()[name], size, 132)
    assert schedule.num_tiles < 2**31 <= schedule.largest_count
    with pytest.raises(ArgumentError, match="counts to"):
        check_count(schedule.largest_count, 132)


@pytest.mark.parametrize("name", LINES)
def test_the_line_is_counted_as_the_kernel_does_at_the_limit_and_one_past_it(name):
    """The kernel: visible_units, places and Line of attention_decode/line.cuh.j2."""
    plan = shipped_plans()[name]
    heads, limit = 1024, 2**31 - 1 - 132
    unit = plan.unit_keys * (plan.split_units or 1)
    keys = unit * ((limit - plan.BN // unit) // heads)
    at_limit = ProblemSize(heads, 1, 1, 1, min(keys, 2**31 - 1 - plan.BN))
    if keys < 2**31 - plan.BN:
        check_count(count_of(plan, at_limit), 132)
        past = ProblemSize(heads, 1, 1, 1, keys + unit)
        with pytest.raises(ArgumentError):
            check_count(count_of(plan, past), 132)


@pytest.mark.parametrize("name", LINES)
def test_packed_rows_beyond_32_bits_are_refused(name):
    plan = shipped_plans()[name]
    rows = (2**31 - 1 - 132 - 4 * plan.BM) // 64
    check_count(count_of(plan, ProblemSize(1, 64, 64, rows, 1)), 132)
    with pytest.raises(ArgumentError):
        check_count(count_of(plan, ProblemSize(1, 64, 64, rows + 1, 1)), 132)
