"""The bench of attention forward: see ``family``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.bench import batches, workload
from fa4gen.bench.family import SMALL_ROWS, Family
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.bench.family import Zeros
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.work import Work
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.toolchain.model import CompiledKernel


class AttentionFamily(Family):
    """Attention forward."""

    name = "attention"
    title = "attention forward"
    default_sizes = workload.AUTO
    size_columns = ("rows", "batch")
    axis = "rows"
    has_fa3 = True
    protocol: ClassVar[Mapping[str, Any]] = {
        "tokens": workload.TOKENS,
        "columns": workload.COLUMNS,
        "batch_columns": batches.COLUMNS,
        "batch_key_heads": batches.KEY_HEADS,
        "data": "N(0, 1)",
    }
    fact_names = (
        *("arch", "dtype", "kv_dtype", "kv_scale", "out_dtype", "depth", "value_depth", "lse"),
        *("sinks", "batching", "keys", "page_size", "BM", "BN", "num_kv_stages"),
        *("num_consumer_warpgroups", "packed_rows", "cta_group", "scheduler"),
    )

    @override
    def parse_sizes(self, text: str) -> tuple[int | batches.Batch, ...]:
        return workload.parse_sizes(text)

    @override
    def sizes_for(self, plan: AttentionPlan) -> tuple[int | batches.Batch, ...]:
        return workload.default_sizes(plan)

    @override
    def find_peers(self, fa3: Path | None = None) -> Peers:
        from dataclasses import replace

        from fa4gen.bench.peers import find_peers
        from fa4gen.bench.read_floor import ReadFloor

        peers = find_peers(fa3)
        return replace(peers, found=(*peers.found, ReadFloor()))

    @override
    def work(self, plan: AttentionPlan, size: int | batches.Batch, numbers: RandomNumbers) -> Work:
        from fa4gen.bench.attention_work import AttentionWork

        its = workload.make_workload(size, plan.depth, plan.value_depth)
        return AttentionWork(plan, its, numbers)

    @override
    def facts(self, plan: AttentionPlan, compiled: CompiledKernel) -> dict[str, Any]:
        numbers = {**plan.mask.numbers(), **plan.score.numbers()}
        return {**super().facts(plan, compiled), "mask": plan.mask.name, **numbers}

    @override
    def describe(self, facts: Mapping[str, Any]) -> str:
        words = [facts["dtype"], f"depth {facts['depth']}", workload.mask_word(facts)]
        if facts.get("value_depth", facts["depth"]) != facts["depth"]:
            words[1] += f" and {facts['value_depth']}"
        if facts.get("kv_dtype", facts["dtype"]) != facts["dtype"]:
            words.append(f"keys and values {facts['kv_dtype']}")
        if facts.get("kv_scale") == "page":
            words[-1] += " with scales of pages"
        if facts.get("packed_rows"):
            words.append(f"tiles of {facts['packed_rows']} packed rows")
        if facts.get("sinks"):
            words.append("sinks")
        if facts.get("batching") == "ragged":
            words.append("ragged")
        if facts.get("page_size"):
            words.append(f"pages of {facts['page_size']}")
        return ", ".join(words)

    @override
    def panel(self, facts: Mapping[str, Any]) -> str:
        mask = workload.mask_word(facts)
        return f"{facts['dtype']}, {'no mask' if mask == 'none' else mask}"

    @override
    def line(self, facts: Mapping[str, Any]) -> str:
        return f"depth {facts['depth']}"

    @override
    def size_word(self, size: Mapping[str, Any]) -> str:
        return str(size.get("word", workload.size_word(size["rows"])))

    @override
    def conditions(self, protocol: Mapping[str, Any]) -> str:
        if not {"tokens", "columns"} <= protocol.keys():
            return super().conditions(protocol)
        tokens, columns = protocol["tokens"], protocol["columns"]
        return f"Batch x rows = {tokens}, heads x depth = {columns}, random data"

    @override
    def small_tensors(self, plan: AttentionPlan, zeros: Zeros) -> dict[str, Any]:
        from fa4gen.bench.layout import cache_scales, lay_out, with_values

        rows = (SMALL_ROWS,)
        layout = lay_out(plan, workload.Workload(rows, rows, 1, 1, plan.depth, plan.value_depth))
        key, value = with_values(plan, layout, lambda shape, _: zeros(shape, plan.kv_dtype))
        return {
            "query": zeros(layout.query, plan.dtype),
            "key": key,
            "value": value,
            "out": zeros(layout.out, plan.out_dtype),
            "lse": zeros(layout.lse, "fp32") if plan.lse else None,
            **{name: zeros(table.shape, "int32") for name, table in layout.tables.items()},
            **{
                name: zeros(scale.shape, "fp32")
                for name, scale in cache_scales(plan, layout).items()
            },
            **({"sinks": zeros((1,), "fp32")} if plan.sinks else {}),
        }


ATTENTION = AttentionFamily()
