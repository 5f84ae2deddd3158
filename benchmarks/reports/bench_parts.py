"""Tables and pictures of what `fa4gen bench` measured, for docs/measurements/benchmarks.md.

``docs/update.py`` puts them there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import document
from tables import link, table

from fa4gen.bench import plot
from fa4gen.bench.plot import PEER_TITLES, peer_title
from fa4gen.bench.workload import size_word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ATTENTION = Path("benchmarks/results/attention_h200.jsonl")
"""From the root, as the next three."""
DEPTH512 = Path("benchmarks/results/attention_depth512_h200.jsonl")
FFPA = Path("benchmarks/results/attention_ffpa_h200.jsonl")
GEMM = Path("benchmarks/results/products_h200.jsonl")
BEST = {"best": "geometric mean"}
CUBLAS = {peer: f"mean to {PEER_TITLES[peer]}" for peer in ("cublas", "cublas in place")}


def pictures(root: Path) -> dict[str, str]:
    """Return the text of every picture by its path from the root."""
    texts: dict[str, str] = {}
    for file in (ATTENTION, DEPTH512, GEMM):
        place = Path("docs/pictures", f"{file.stem}.svg")
        texts[place.as_posix()] = plot.picture_of(document(root / file), place)
    return texts


def attention(root: Path) -> str:
    """Return the section on attention up to depth 256."""
    data = document(root / ATTENTION)
    return "\n".join(
        [
            f"![Attention, relative to the fastest peer, by depth](pictures/{ATTENTION.stem}.svg)",
            "",
            f"{_machine(data)}. TFLOP/s, and in brackets the ratio to the fastest peer "
            f"({', '.join(_peers(data))}) in the same run. Forward, {_protocol(data)}, in which "
            "all kernels of a size take turns, then the median of the rounds.",
            "",
            _figures_table(data, _rows_word, BEST),
            "",
            _sources(data, ATTENTION, "CONFIG... --fa3 LIBRARY", "for cuDNN and FlashAttention-2"),
        ]
    )


def depth512(root: Path) -> str:
    """Return the section on depth 512, where other peers run."""
    data = document(root / DEPTH512)
    return "\n".join(
        [
            "The FlashAttention-3, FlashAttention-2 and cuDNN that were measured have no kernel of "
            "this depth; the fastest peer is the only one of PyTorch that runs "
            f"({', '.join(_peers(data))}). {_machine(data)}, {_protocol(data)}; "
            f"{link(DEPTH512)}:",
            "",
            _figures_table(data, _rows_word, BEST),
        ]
    )


def ffpa(root: Path) -> str:
    """Return the table of depth 512 beside FFPA's kernel."""
    data = document(root / FFPA)
    return "\n".join(
        [
            f"{_machine(data)}, {_protocol(data)}; {link(FFPA)}:",
            "",
            _figures_table(data, _rows_word, BEST),
        ]
    )


def gemm(root: Path) -> str:
    """Return the section on matrix products."""
    data = document(root / GEMM)
    beta = data["protocol"]["beta"]
    parts = [
        f"![Matrix products: speed relative to cuBLAS, by size](pictures/{GEMM.stem}.svg)",
        f"{_machine(data)}. TFLOP/s (2mnk over the time), and in brackets the ratio to cuBLAS "
        "through PyTorch in the same run: `torch.mm(a, b, out=out)` without a residual, "
        f"`torch.addmm(c, a, b, beta={beta['matrix']}, out=out)` with a matrix and "
        f"beta={beta['row']:g} with a row; an activation is a second kernel there. In place is "
        "`torch.addmm` into C itself, which overwrites C. Random data, cold L2. Times are from "
        f"CUDA events: the median of each of {data['protocol']['rounds']} rounds, in which all "
        "kernels of a size take turns, then the median of the rounds.",
        _figures_table(data, _extents_word, CUBLAS),
    ]
    if data.get("residual_costs"):
        parts += ["What the residual costs, in time:", _residual_table(data)]
    parts.append(_sources(data, GEMM, "configs/gemm/sm_90a", "for cuBLAS"))
    return "\n\n".join(parts)


def _sources(data: dict[str, Any], file: Path, arguments: str, peers: str) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    return (
        f"Measured with {versions}. {link(file)} has every peer, round and spread. "
        f"To measure again: `fa4gen bench {arguments} --json FILE.json --plot FILE.svg`, with "
        f"PyTorch installed {peers}."
    )


def _without_activation(by_peer: dict[str, float]) -> dict[str, float]:
    """Call "cublas + relu" just "cublas"."""
    return {name.partition(" + ")[0]: value for name, value in by_peer.items()}


def _residual_table(data: dict[str, Any]) -> str:
    costs = data["residual_costs"]
    words = list(dict.fromkeys(word for cost in costs for word in cost["sizes"]))
    named = {size["word"]: size for config in data["configs"] for size in config["sizes"]}
    rows = [
        (
            f"`{cost['config']}`",
            f"`{cost['without']}`",
            *(
                f"{100 * cost['sizes'][word]:+.1f} %" if word in cost["sizes"] else "-"
                for word in words
            ),
        )
        for cost in costs
    ]
    header = ("config", "over", *(_extents_word(named[word]) for word in words))
    return table(header, rows, right=len(words))


def _extents_word(size: dict[str, Any]) -> str:
    batch, m, n, k = size.get("batch", 1), size["m"], size["n"], size["k"]
    word = f"{m}³" if m == n == k else f"{m} x {n} x {k}"
    return f"{batch} of {word}" if batch > 1 else word


def _peers(data: dict[str, Any]) -> list[str]:
    measured = [size for config in data["configs"] for size in config["sizes"]]
    found = dict.fromkeys(peer_title(peer) for size in measured for peer in size["peers"])
    return list(found)


def _machine(data: dict[str, Any]) -> str:
    gpu = data["gpu"]
    driver = f", driver {gpu['driver']}" if "driver" in gpu else ""
    return f"{gpu['name']}{driver}, {data['date'][:10]}"


def _protocol(data: dict[str, Any]) -> str:
    protocol = data["protocol"]
    return (
        f"batch * rows = {protocol['tokens']}, heads * depth = {protocol['columns']}, random "
        "data; a causal mask counts half. Times are from CUDA events: the median of each of "
        f"{protocol['rounds']} rounds"
    )


def _figures_table(
    data: dict[str, Any], word: Callable[[dict[str, Any]], str], means: Mapping[str, str]
) -> str:
    """One row for a config: speeds, ratios to the first peer of ``means``, means over the sizes."""
    configs = [config for config in data["configs"] if config["sizes"]]
    words = list(dict.fromkeys(word(size) for config in configs for size in config["sizes"]))
    own = [_without_activation(config["geometric_means"]) for config in configs]
    shown = [peer for peer in means if any(peer in its for its in own)]
    rows = []
    for config, its in zip(configs, own, strict=True):
        by_word = {word(size): _cell(size, next(iter(means))) for size in config["sizes"]}
        cells = [by_word.get(one, "-") for one in words]
        cells += [f"{its[peer]:.3f}" if peer in its else "-" for peer in shown]
        rows.append((f"`{config['name']}`", *cells))
    header = ("config", *words, *(means[peer] for peer in shown))
    return table(header, rows, right=len(header) - 1)


def _cell(size: dict[str, Any], peer: str) -> str:
    ratio = _without_activation(size["ratios"]).get(peer)
    compared = f" ({ratio:.2f})" if ratio is not None else ""
    return f"{size['ours']['tflops']:.0f}{compared}"


def _rows_word(size: dict[str, Any]) -> str:
    return f"{size_word(size['rows'])} rows"
