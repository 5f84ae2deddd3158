"""The hardware's limits that several designs exceed alike: shared memory, registers, columns.

What cannot work whatever the compiler does is refused here, with the arithmetic. Whether what is
left fits the registers is for the compiler to say: see ``candidates``.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING

from fa4gen.designs.common.candidates import given_keys
from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.common.roles import (
    WARPGROUP,
    nearest_split,
    register_pool,
    registers_at_entry,
    wgmma_registers,
)
from fa4gen.designs.common.shared_memory import SWIZZLE_ALIGNMENT
from fa4gen.designs.common.values import E4M3_LARGEST_LOG2
from fa4gen.designs.registry import design_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.blackwell_model import BlackwellAttentionPlan
    from fa4gen.designs.common.consumers import ConsumerPlan
    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.designs.common.model import SharedRegion


def exceeded(fault: Refusal, needed: int, available: int) -> Iterator[Refusal]:
    """Yield ``fault`` where more is needed than available."""
    if needed > available:
        yield fault


def shared_memory(
    plan: KernelPlan,
    keys: tuple[str, ...],
    remedies: tuple[Iterable[Changes], ...],
    last_resort: Iterable[Changes] = (),
) -> Iterator[Refusal]:
    """Yield a fault where the regions of ``plan`` do not fit a CTA."""
    large: list[SharedRegion] = []
    for region in plan.shared:
        apart = not large or region.offset >= large[-1].end  # not over what is there already
        if region.alignment == SWIZZLE_ALIGNMENT and apart:
            large.append(region)
    small = [region.name for region in plan.shared if region not in large]
    rest = plan.dynamic_shared_bytes - sum(region.bytes for region in large)
    parts = [f"{f'{row.slots} * ' * (row.slots > 1)}{row.slot_bytes} ({row.name})" for row in large]
    parts.append(f"{rest} ({', '.join(small)}, alignment)")
    needed, available = plan.dynamic_shared_bytes, plan.hardware.shared_bytes
    message = f"shared memory: {' + '.join(parts)} = {needed} bytes, {available} available"
    fault = Refusal("shared memory", message, keys, remedies, last_resort)
    yield from exceeded(fault, needed, available)


def back_to_auto(config: KernelConfig, keys: Sequence[str]) -> Iterator[Changes]:
    """Yield changes that leave some of ``keys`` to the plan, fewest first, then all of them."""
    given = given_keys(config, keys)
    for number in range(1, len(given) + 1):
        for several in combinations(given, number):
            yield dict.fromkeys(several, "auto")


def each_to_auto(config: KernelConfig) -> tuple[list[Changes], ...]:
    """Return a way for each key that the config gives, and that a compiled candidate decides."""
    return tuple([{key: "auto"}] for key in given_keys(config, design_for(config).tuned_keys))


def in_every_way(*ways: Sequence[Changes]) -> Iterator[Changes]:
    """Yield changes of several keys at once, one or none of each way, the fewest keys first."""
    together = list(product(*([{}, *way] for way in ways)))
    together.sort(key=lambda changes: sum(map(bool, changes)))
    for several in together:
        yield {key: value for changes in several for key, value in changes.items()}


def register_split(plan: ConsumerPlan, last_resort: Iterable[Changes] = ()) -> Iterator[Refusal]:
    """Yield a fault for a split that setmaxnreg never brings about: it would hang."""
    arch, warpgroups, split = plan.hardware, plan.num_consumer_warpgroups, plan.registers
    nearest = nearest_split(arch, split, warpgroups)
    if nearest == split:
        return
    entry = registers_at_entry(arch, warpgroups)
    pool = register_pool(arch, warpgroups)
    if split.total(warpgroups) > pool:
        message = (
            f"registers: {WARPGROUP} * ({split.producer} + {warpgroups} * {split.consumer}) = "
            f"{split.total(warpgroups)} for all roles, but the launch has {pool}"
        )
    else:
        message = (
            f"registers: the launch gives every thread {entry}, of which the producer can only "
            f"give up some (got {split.producer}) and a consumer only take more (got "
            f"{split.consumer})"
        )
    corrected = {"producer": nearest.producer, "consumer": nearest.consumer}
    yield Refusal(
        kind="register split",
        message=message,
        keys=("registers",),
        remedies=([{"registers": corrected}], [{"registers": "auto"}]),
        last_resort=last_resort,
    )


def consumer_registers(
    plan: ConsumerPlan,
    needed: int,
    holds: str,
    keys: tuple[str, ...],
    remedies: tuple[Iterable[Changes], ...],
    last_resort: Iterable[Changes] = (),
) -> Iterator[Refusal]:
    """Yield a fault where what a consumer thread ``holds`` does not fit its registers."""
    split = nearest_split(plan.hardware, plan.registers, plan.num_consumer_warpgroups)
    available = min(split.consumer, plan.hardware.max_registers_per_thread)
    message = f"registers: a consumer thread holds {holds} = {needed}, but has {available}"
    fault = Refusal("consumer registers", message, keys, remedies, last_resort)
    yield from exceeded(fault, needed, available)


def wgmma_width(
    plan: ConsumerPlan,
    columns: int,
    what: str,
    kind: str,
    keys: tuple[str, ...],
    remedies: tuple[Iterable[Changes], ...],
    last_resort: Iterable[Changes],
    *,
    register_a: bool = False,
) -> Iterator[Refusal]:
    """Yield a fault for a wgmma that ptxas does not compile for this number of threads."""
    warpgroups = plan.num_consumer_warpgroups
    needed = wgmma_registers(columns, register_a=register_a)
    entry = registers_at_entry(plan.hardware, warpgroups)
    message = (
        f"registers: {what} takes {columns} / 2 + {needed - columns // 2} = {needed}, but ptxas "
        f"compiles it for the {entry} that each of {WARPGROUP * (1 + warpgroups)} threads has at "
        "launch"
    )
    yield from exceeded(Refusal(kind, message, keys, remedies, last_resort), needed, entry)


def range_of_fp8(plan: AttentionPlan) -> Iterator[Refusal]:
    """Yield a fault for probabilities that fp8 cannot hold."""
    most = math.floor(E4M3_LARGEST_LOG2)
    if plan.element_bytes == 1 and plan.rescale_threshold > E4M3_LARGEST_LOG2:
        yield Refusal(
            kind="range of fp8",
            message=f"rescale_threshold: probabilities up to 2^{plan.rescale_threshold:g} do not "
            "fit fp8_e4m3, whose largest number is 448",
            keys=("rescale_threshold",),
            remedies=([{"rescale_threshold": float(most)}], [{"rescale_threshold": "auto"}]),
        )


def role_registers(
    plan: BlackwellAttentionPlan,
    softmax_warpgroups: int,
    remedies: tuple[Iterable[Changes], ...],
    last_resort: Iterable[Changes] = (),
) -> Iterator[Refusal]:
    """Yield a fault where the roles take more registers than the launch has: it would hang."""
    split, available = plan.registers, plan.register_pool
    several = f"{softmax_warpgroups} * " if softmax_warpgroups > 1 else ""
    needed = WARPGROUP * (softmax_warpgroups * split.softmax + split.correction + split.other)
    message = (
        f"registers: {WARPGROUP} * ({several}{split.softmax} for the softmax + {split.correction} "
        f"for the correction + {split.other} for the other warps) = {needed}, {available} "
        "available: setmaxnreg would wait for ever"
    )
    fault = Refusal("register file", message, ("registers",), remedies, last_resort)
    yield from exceeded(fault, needed, available)


def turns_of_one(
    plan: ConsumerPlan,
    ping_pong: bool,
    remedies: tuple[Iterable[Changes], ...],
    last_resort: Iterable[Changes] = (),
) -> Iterator[Refusal]:
    """Yield a fault for a single warpgroup that is to take turns, as ``ping_pong`` says."""
    message = "ping_pong needs two consumer warpgroups or more to take turns, got 1"
    if ping_pong and plan.num_consumer_warpgroups == 1:
        yield Refusal("turns of one warpgroup", message, ("ping_pong",), remedies, last_resort)
