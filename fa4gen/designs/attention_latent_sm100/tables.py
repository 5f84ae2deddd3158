"""Roles, tensor map and summary of the latent kernel on Blackwell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.designs.attention_latent_sm100.values import STAGES
from fa4gen.designs.common.decode_parameters import lines_of_features, split_words
from fa4gen.designs.common.latent_values import first_line
from fa4gen.designs.common.model import Role

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent_sm100.values import LatentPairValues


def latent_roles(values: LatentPairValues) -> tuple[Role, ...]:
    """Return the warps that compute, then those that issue."""
    registers = values.arch.max_registers_per_thread
    consumers = values.num_consumer_warps
    return (
        Role(
            "consume", 0, consumers, registers,
            "query; scores to probabilities, two threads a row; the output and its combining",
        ),
        Role(
            "mma", consumers, 1, registers,
            "in the leader issues Q.K and P.V; has the tensor memory",
        ),
        Role(
            "load", consumers + 1, 2, registers,
            "one thread of each issues this CTA's TMA loads, of keys and of value columns",
        ),
    )  # fmt: skip


def summarise(values: LatentPairValues) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    return (
        first_line(config),
        f"packed heads: a pair of CTAs takes tiles of {values.packed_rows} rows of a key head x "
        f"{values.BN} keys, {counted(STAGES, 'stage')}",
        f"split keys: {split_words(config, values.unit_keys)}",
        *lines_of_features(config),
    )
