"""What a GPU can run, and what a launch can count."""

from __future__ import annotations

import pytest

from fa4gen.config.schema import AttentionConfig
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.device import DeviceInfo
from fa4gen.runtime.launch_limits import check_device, check_tiles

PLAN = build_plan(
    AttentionConfig.model_validate(
        {"kernel": "attention", "name": "test", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
    )
)


def test_a_gpu_of_another_architecture_is_refused():
    def device(major, minor):
        return DeviceInfo(0, "Some GPU", (major, minor), 132, 1 << 30, 50 << 20)

    check_device(PLAN, device(9, 0))
    for major, minor in ((8, 0), (9, 1), (10, 0)):
        with pytest.raises(ArgumentError) as caught:
            check_device(PLAN, device(major, minor))
        assert f"Some GPU (compute capability {major}.{minor})" in str(caught.value)
        assert "sm_90a" in str(caught.value)


def test_more_tiles_than_the_counter_numbers_are_refused():
    check_tiles(2**31 - 1 - 132, 132)
    with pytest.raises(ArgumentError, match="at most 2147483515"):
        check_tiles(2**31 - 132, 132)
