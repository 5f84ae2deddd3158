"""The bench of attention forward: see ``family``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.bench import batches, workload
from fa4gen.bench.family import SMALL_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.family import KernelTimer, Zeros
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.run import BenchOptions
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.build import BuiltKernel


class AttentionFamily:
    """Attention forward."""

    name = "attention"
    title = "attention forward"
    default_sizes = workload.AUTO
    size_columns = ("rows", "batch")
    axis = "rows"
    has_fa3 = True
    protocol: Mapping[str, Any] = {
        "tokens": workload.TOKENS,
        "columns": workload.COLUMNS,
        "batch_columns": batches.COLUMNS,
        "batch_key_heads": batches.KEY_HEADS,
        "data": "N(0, 1)",
    }

    def parse_sizes(self, text: str) -> tuple[int | batches.Batch, ...]:
        """Parse ``--sizes``: numbers of rows and batches."""
        return workload.parse_sizes(text)

    def find_peers(self, fa3: Path | None) -> Peers:
        """Return the peers of this machine, among them the read floor."""
        from dataclasses import replace

        from fa4gen.bench.peers import find_peers
        from fa4gen.bench.read_floor import ReadFloor

        peers = find_peers(fa3)
        return replace(peers, found=(*peers.found, ReadFloor()))

    def make_timer(
        self, options: BenchOptions, peers: Peers, kernels: Sequence[BuiltKernel]
    ) -> KernelTimer:
        """Return a timer for attention kernels."""
        from fa4gen.bench.run import Bench

        del kernels  # each is compared with its peers only
        return Bench(options, peers.found)

    def describe(self, facts: Mapping[str, Any]) -> str:
        """Describe types, depth, mask and further features of a config, for its table's title."""
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

    def panel(self, facts: Mapping[str, Any]) -> str:
        """Return the title of a config's panel in a picture."""
        mask = workload.mask_word(facts)
        return f"{facts['dtype']}, {'no mask' if mask == 'none' else mask}"

    def line(self, facts: Mapping[str, Any]) -> str:
        """Return the label of a config's line in its panel."""
        return f"depth {facts['depth']}"

    def size_word(self, size: Mapping[str, Any]) -> str:
        """Return a size of the JSON file in the form of ``--sizes``."""
        return str(size.get("word", workload.size_word(size["rows"])))

    def conditions(self, protocol: Mapping[str, Any]) -> tuple[str, ...]:
        """Describe the conditions that all sizes share, for a picture."""
        if not {"tokens", "columns"} <= protocol.keys():
            return ("Random data, cold L2",)
        tokens, columns = protocol["tokens"], protocol["columns"]
        return (f"Batch x rows = {tokens}, heads x depth = {columns}, random data",)

    def small_tensors(self, plan: AttentionPlan, zeros: Zeros) -> dict[str, Any]:
        """Return a launcher's arguments for a problem of a single tile."""
        rows = SMALL_ROWS
        return {
            "query": zeros((1, rows, 1, plan.depth), plan.dtype),
            "key": zeros((1, rows, 1, plan.depth), plan.kv_dtype),
            "value": zeros((1, rows, 1, plan.value_depth), plan.kv_dtype),
            "out": zeros((1, rows, 1, plan.value_depth), plan.out_dtype),
            "lse": zeros((1, 1, rows), "fp32") if plan.lse else None,
        }

    def peer_tensors(self, plan: AttentionPlan, operands: Sequence[Any]) -> dict[str, Any]:
        """Return the vendored launcher's arguments: given query, key and value; new outputs."""
        from fa4gen.runtime import arrays
        from fa4gen.runtime.arguments import DTYPE_NAMES

        query, key, value = operands
        batch, rows, heads, _ = query.shape
        shape = (batch, rows, heads, plan.value_depth)
        tensors = {"query": query, "key": key, "value": value}
        tensors["out"] = arrays.empty(query, shape, DTYPE_NAMES[plan.out_dtype])
        if plan.lse:
            tensors["lse"] = arrays.empty(query, (batch, heads, rows), "float32")
        return tensors


ATTENTION = AttentionFamily()
