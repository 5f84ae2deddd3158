"""The slots of rings: as many as fit the shared memory of a CTA with the rest of a plan."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_facts import AttentionFacts
    from fa4gen.designs.common.choices import ChoiceLog
    from fa4gen.designs.common.kernel_model import KernelPlan

A = TypeVar("A", bound="AttentionFacts")


@lru_cache(maxsize=256)  # a plan is asked several times
def most_slots(plan: KernelPlan, key: str, limit: int) -> int:
    """Return how many slots ``key`` may have, 0 to ``limit``, for all regions to fit a CTA.

    More slots never take less; about as much each, so that few counts have to be laid out.
    """

    def bytes_left(slots: int) -> int:
        changed: dict[str, Any] = {key: slots}
        return plan.hardware.shared_bytes - replace(plan, **changed).dynamic_shared_bytes

    left = bytes_left(1)
    if left < 0:
        return 0
    slot_bytes = max(1, left - bytes_left(2))
    slots = min(limit, 1 + left // slot_bytes)
    while slots < limit and bytes_left(slots + 1) >= 0:
        slots += 1
    while slots > 1 and bytes_left(slots) < 0:
        slots -= 1
    return slots


def most_stages(plan: AttentionFacts, limit: int) -> int:
    """Return how many slots the rings of keys and values may have, 0 to ``limit``."""
    return most_slots(plan, "num_kv_stages", limit)


def with_stages(draft: A, fit: int, reason: str, log: ChoiceLog) -> A:
    """Return ``draft`` with the slots that its config gives those rings, or else with ``fit``."""
    given: Any = draft.config
    stages = log.take("num_kv_stages", given.num_kv_stages, max(1, fit), reason)
    return replace(draft, num_kv_stages=stages)
