"""The parameters of an attention kernel: the same on every architecture, but for the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.shared.model import Parameter

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionKeys

MAP_TYPE = "const __grid_constant__ TensorMap"


def attention_parameters(
    config: AttentionKeys,
    *out: Parameter,
    scheduler: str,
    has_descales: bool = False,
    has_strides: bool = True,
    has_short_tiles: bool = False,
) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order; ``out``: those by which the output is written.

    ``has_strides``: the output's strides are parameters too. ``has_short_tiles``: tiles may leave
    the last warpgroup out.
    """
    rows = [
        Parameter("query_map", MAP_TYPE, "query (batch, rows, heads, depth), any strides"),
        Parameter("key_map", MAP_TYPE, "key"),
        Parameter("value_map", MAP_TYPE, "value"),
        *out,
    ]
    if config.lse:
        meaning = "log-sum-exp, (batch, query heads, query rows)"
        rows.append(Parameter("lse", "float* __restrict__", meaning))
    if has_descales:
        rows += [
            Parameter(
                f"{name}_descale",
                "const float* __restrict__",
                f"scale of the {name}, (batch, key heads); 1 where null",
            )
            for name in ("query", "key", "value")
        ]
    if config.sinks:
        meaning = "logit of each query head's sink, one more term of the softmax's sum"
        rows.append(Parameter("sinks", "const float* __restrict__", meaning))
    if scheduler == "dynamic":
        meaning = "two zeros; zero again after the launch"
        rows.append(Parameter("tile_counter", "int32* __restrict__", meaning))
    rows += [
        Parameter("batch", "int32", "batches"),
        Parameter("query_heads", "int32", "query heads"),
        Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
        Parameter("query_rows", "int32", "query rows"),
        Parameter("key_rows", "int32", "key rows"),
    ]
    if has_strides:
        rows += [
            Parameter(f"out_{name}_stride", "int64", f"of the output's {name}, in elements")
            for name in ("batch", "row", "head")
        ]
    if not config.resolved_score.FUNCTION:
        rows.append(Parameter("softmax_scale_log2", "float", "softmax scale * log2(e), above zero"))
    else:
        rows.append(Parameter("softmax_scale", "float", "softmax scale, above zero"))
    if has_short_tiles:
        meaning = "tiles a head that leave the last warpgroup out; 0 is always right"
        rows.append(Parameter("num_short_tiles", "int32", meaning))
    return (
        *rows,
        Parameter("tiles_per_head", "int32", "tiles that cover the query rows of a head"),
        Parameter("num_tiles", "int32", "tiles_per_head * query_heads * batch"),
        Parameter(
            "heads_per_group",
            "int32",
            "query heads whose keys and values stay in L2 together; 1 is always right",
        ),
    )


def out_pointer(meaning: str) -> Parameter:
    """Return the address of an output of 16-bit elements."""
    return Parameter("out", "uint16* __restrict__", meaning)


def out_map(meaning: str) -> Parameter:
    """Return the tensor map of the output."""
    return Parameter("out_map", MAP_TYPE, meaning)
