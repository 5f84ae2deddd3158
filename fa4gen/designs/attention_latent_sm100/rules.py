"""What a config may say of a latent kernel on Blackwell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent_sm100.values import PAIR, PARTS, STAGES
from fa4gen.designs.common.decode_rules import DECODE_KEYS, unsupported_features
from fa4gen.designs.common.fixed_keys import FixedKey, other_values
from fa4gen.designs.common.latent import not_latent
from fa4gen.designs.common.latent_values import BLOCK_KEYS
from fa4gen.designs.common.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import BlackwellAttentionConfig

_OTHER = ("cta_group", "num_qk_stages", "num_pv_stages", "BN", "kv_ring")
_FIXED = (
    *(rule for rule in DECODE_KEYS if rule.key not in _OTHER),
    FixedKey(
        "cta_group", (PAIR,), "an output of 64 x 512 float32 fills half of tensor memory: a pair "
        "has the 128 rows of a product",
    ),
    FixedKey("BN", ("auto", BLOCK_KEYS), "two blocks of 64 keys fit shared memory with the query"),
    FixedKey("kv_ring", ("auto", "separate"), "a CTA's keys and its value columns differ in size"),
    FixedKey("num_qk_stages", ("auto", PARTS), "keys arrive in parts of three panels"),
    FixedKey("num_pv_stages", ("auto", 1), "probabilities of a block are handed over together"),
    FixedKey("packed_rows", ("auto",), "a product over a pair has 128 rows"),
    FixedKey("num_kv_stages", ("auto", STAGES), "no more blocks fit beside the query"),
    FixedKey("dtype", ("bf16", "fp16"), "probabilities of a block are a panel of 16 bits"),
)  # fmt: skip


def broken_rules(config: BlackwellAttentionConfig) -> Iterator[Fault]:
    """Yield every key with a value that does not go with latent attention."""
    if fault := not_latent(config, {"cta_group": PAIR}):
        yield fault
        return
    of_values = (
        FixedKey("kv_dtype", ("auto", config.dtype), "tcgen05.mma reads keys as they are"),
        FixedKey("kv_scale", ("auto",), "keys and values of 16 bits have no scales"),
        FixedKey("out_dtype", ("auto", config.dtype), "the output is of the query's type"),
    )
    fields = type(config).model_fields
    fixed = [rule for rule in (*_FIXED, *of_values) if rule.key in fields]
    yield from other_values(config, "depth: 576", fixed)
    yield from unsupported_features(config)
    if config.page_size is not None and config.page_size % BLOCK_KEYS:
        yield Fault(
            kind="small pages of latent attention",
            message=f"page_size: {config.page_size} at depth 576 is no multiple of the "
            f"{BLOCK_KEYS} keys of a block, which are in one page",
            keys=("page_size",),
            remedies=([{"page_size": BLOCK_KEYS}],),
        )
