"""Names that other tools have for what a config says, and the line to write here."""

from __future__ import annotations

from typing import Any, Final

FROM_THE_CALL: Final = "It comes with the call: no key is needed."
WINDOWS: Final = ("window", "window_size", "local_window")
KEYS: Final = {
    **dict.fromkeys(("head_dim", "headdim", "head_size", "hdim", "d"), "depth: {value}"),
    **dict.fromkeys(("head_dim_v", "v_head_dim", "headdim_v", "dv"), "value_depth: {value}"),
    **dict.fromkeys(WINDOWS, "mask: {{sliding_window: {value}}}"),
    **dict.fromkeys(("BLOCK_M", "block_m", "tile_m", "M_BLOCK", "kBlockM"), "BM: {value}"),
    **dict.fromkeys(("BLOCK_N", "block_n", "tile_n", "N_BLOCK", "kBlockN"), "BN: {value}"),
    **dict.fromkeys(("BLOCK_K", "block_k", "tile_k", "kBlockK"), "BK: {value}"),
    **dict.fromkeys(("base", "include", "inherits", "_base_"), "extends: {value}"),
    **dict.fromkeys(("data_type", "input_dtype", "precision", "type"), "dtype: {value}"),
    **dict.fromkeys(("target", "sm", "architecture", "gpu"), "arch: {value}"),
    **dict.fromkeys(("page_block_size", "block_size"), "page_size: {value}"),
    **dict.fromkeys(("logits_soft_cap", "logit_cap", "soft_cap"), "softcap: {value}"),
    **dict.fromkeys(("return_lse", "return_softmax_lse"), "lse: {value}"),
    "paged": "keys: paged",
    "alibi": "score: alibi",
}
"""The line to write instead of a key of this name; ``{value}`` is what it had."""
OF_KERNEL: Final = {
    ("attention", "bias"): "score: {{relative_bias: 128}}",
    ("attention", "num_stages"): "num_kv_stages: {value}",
    ("gemm", "bias"): "residual: row",
    ("gemm", "epilogue"): "activation: {value}",
}
"""Lines to write for keys that mean something else in the other family."""
WITH_THE_CALL: Final = frozenset(
    [
        "heads",
        "num_heads",
        "nheads",
        "n_heads",
        "q_heads",
        "query_heads",
        "num_attention_heads",
        "kv_heads",
        "num_kv_heads",
        "key_heads",
        "num_key_value_heads",
        "nheads_kv",
        "batch",
        "batch_size",
        "seqlen",
        "seq_len",
        "seqlen_q",
        "seqlen_k",
        "sequence_length",
        "softmax_scale",
        "sm_scale",
        "scale",
        "m",
        "n",
        "k",
        "alpha",
        "beta",
    ]
)
"""Arguments that a call passes, by its arrays or by name, and no config."""
VALUES: Final = {
    "arch": {
        **dict.fromkeys(("hopper", "h100", "h200", "gh200", "sm_90", "sm90", "sm90a"), "sm_90a"),
        **dict.fromkeys(("blackwell", "b200", "gb200", "sm_100", "sm100", "sm100a"), "sm_100a"),
        **dict.fromkeys(("b300", "gb300", "sm_103", "sm103", "sm103a"), "sm_103a"),
        "sm100f": "sm_100f",
    },
    "dtype": {
        **dict.fromkeys(("bfloat16", "torch.bfloat16"), "bf16"),
        **dict.fromkeys(("float16", "half", "f16", "torch.float16"), "fp16"),
        **dict.fromkeys(("fp8", "e4m3", "float8_e4m3fn", "torch.float8_e4m3fn"), "fp8_e4m3"),
    },
    "mask": dict.fromkeys(("full", "dense", "false"), "none") | {"true": "causal"},
    "residual": {"true": "matrix", "false": "none", "bias": "row"},
}
"""By key, the value that a value of this name means; both in lower case."""


def line_for(key: str, value: Any, kernel: object) -> str | None:
    """Return the line that a config of ``kernel`` has for ``key: value`` of another tool, or None.

    A sentence where no key is needed.
    """
    if key in WITH_THE_CALL:
        return FROM_THE_CALL
    if key in ("causal", "is_causal"):
        return f"Write mask: {'none' if value is False else 'causal'}."
    line = OF_KERNEL.get((str(kernel), key)) or KEYS.get(key)
    if line is None:
        return None
    if key in WINDOWS and isinstance(value, list) and len(value) == 2:
        value = "{{left: {}, right: {}}}".format(*value)
    word = line.partition(":")[0]
    meant = value_for(word, value)
    return f"Write {line.format(value=_shown(value if meant is None else meant))}."


def key_for(key: str, kernel: object) -> str | None:
    """Return the key that means what ``key`` does in another tool; None where it has no other."""
    line = OF_KERNEL.get((str(kernel), key)) or KEYS.get(key)
    return None if line is None else line.partition(":")[0]


def value_for(key: str, value: Any) -> str | None:
    """Return the value that means what ``value`` of ``key`` does in another tool, or None."""
    return VALUES.get(key, {}).get(_shown(value).lower())


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
