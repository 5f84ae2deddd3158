"""Tables and pictures of what `fa4gen bench` measured, for docs/measurements/benchmarks.md.

``docs/update.py`` puts them there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measured import document
from tables import link, table

from fa4gen.bench import plot
from fa4gen.bench.plot import PEER_TITLES, peer_title

ATTENTION = Path("benchmarks/results/attention_h200.jsonl")
"""From the root, as the next three; a section is empty while its file is absent."""
DEPTH512 = Path("benchmarks/results/attention_depth512_h200.jsonl")
FFPA = Path("benchmarks/results/attention_ffpa_h200.jsonl")
GEMM = Path("benchmarks/results/products_h200.jsonl")


def pictures(root: Path) -> dict[str, str]:
    """Return the text of every picture by its path from the root."""
    texts: dict[str, str] = {}
    for file in (ATTENTION, DEPTH512, GEMM):
        if (root / file).is_file():
            data = document(root / file)
            texts[_picture(file).as_posix()] = plot.picture_of(data, _picture(file))
    return texts


def _picture(file: Path) -> Path:
    """Return where the picture of a file of results is, from the root."""
    return Path("docs/pictures", f"{file.stem}.svg")


def attention(root: Path) -> str:
    """Return the section on attention up to depth 256."""
    data = _read(root / ATTENTION)
    if data is None:
        return ""
    return "\n".join(
        [
            f"![Attention, relative to the fastest peer, by depth](pictures/{ATTENTION.stem}.svg)",
            "",
            f"{_machine(data)}. TFLOP/s, and in brackets the ratio to the fastest peer "
            f"({', '.join(_peers(data))}) in the same run. Forward, {_protocol(data)}, in which "
            "all kernels of a size take turns, then the median of the rounds.",
            "",
            _figures_table(data),
            "",
            _sources(data, ATTENTION, "CONFIG... --fa3 LIBRARY", "for cuDNN and FlashAttention-2"),
        ]
    )


def depth512(root: Path) -> str:
    """Return the section on depth 512, where other peers run."""
    data = _read(root / DEPTH512)
    if data is None:
        return ""
    return "\n".join(
        [
            "The FlashAttention-3, FlashAttention-2 and cuDNN that were measured have no kernel of "
            "this depth; the fastest peer is the only one of PyTorch that runs "
            f"({', '.join(_peers(data))}). {_machine(data)}, {_protocol(data)}; "
            f"{link(DEPTH512)}:",
            "",
            _figures_table(data),
        ]
    )


def ffpa(root: Path) -> str:
    """Return the table of depth 512 beside FFPA's kernel."""
    data = _read(root / FFPA)
    if data is None:
        return ""
    return "\n".join(
        [
            f"{_machine(data)}, {_protocol(data)}; {link(FFPA)}:",
            "",
            _figures_table(data),
        ]
    )


def gemm(root: Path) -> str:
    """Return the section on matrix products."""
    data = _read(root / GEMM)
    if data is None:
        return ""
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
        _gemm_table(data),
    ]
    if data.get("residual_costs"):
        parts += ["What the residual costs, in time:", _residual_table(data)]
    parts.append(_sources(data, GEMM, "configs/gemm/sm_90a", "for cuBLAS"))
    return "\n\n".join(parts)


def _read(path: Path) -> dict[str, Any] | None:
    return document(path) if path.is_file() else None


def _sources(data: dict[str, Any], file: Path, arguments: str, peers: str) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    return (
        f"Measured with {versions}. {link(file)} has every peer, round and spread. "
        f"To measure again: `fa4gen bench {arguments} --json FILE.json --plot FILE.svg`, with "
        f"PyTorch installed {peers}."
    )


def _gemm_table(data: dict[str, Any]) -> str:
    """One row for a config: speeds, the ratio to cuBLAS, the means over the sizes."""
    configs = [config for config in data["configs"] if config["sizes"]]
    sizes = list(dict.fromkeys(_extents(size) for config in configs for size in config["sizes"]))
    in_place = any("cublas in place" in _means(config) for config in configs)
    means = ("cublas", "cublas in place") if in_place else ("cublas",)
    rows = []
    for config in configs:
        by_size = {_extents(size): size for size in config["sizes"]}
        cells = [_gemm_cell(by_size.get(extents)) for extents in sizes]
        own = _means(config)
        cells += [f"{own[peer]:.3f}" if peer in own else "-" for peer in means]
        rows.append((f"`{config['name']}`", *cells))
    words = [_extents_word(extents) for extents in sizes]
    header = ("config", *words, *(f"mean to {PEER_TITLES[peer]}" for peer in means))
    return table(header, rows, right=len(header) - 1)


def _gemm_cell(size: dict[str, Any] | None) -> str:
    if size is None:
        return "-"
    ratio = _without_activation(size["ratios"]).get("cublas")
    compared = f" ({ratio:.2f})" if ratio is not None else ""
    return f"{size['ours']['tflops']:.0f}{compared}"


def _means(config: dict[str, Any]) -> dict[str, float]:
    return _without_activation(config["geometric_means"])


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
    header = ("config", "over", *(_extents_word(_extents(named[word])) for word in words))
    return table(header, rows, right=len(words))


def _extents(size: dict[str, Any]) -> tuple[int, int, int, int]:
    return size.get("batch", 1), size["m"], size["n"], size["k"]


def _extents_word(extents: tuple[int, int, int, int]) -> str:
    batch, m, n, k = extents
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


def _figures_table(data: dict[str, Any]) -> str:
    configs = [config for config in data["configs"] if config["sizes"]]
    sizes = list(dict.fromkeys(size["rows"] for config in configs for size in config["sizes"]))
    rows = [_figures_row(config, sizes) for config in configs]
    words = [f"{size // 1024}k" if size % 1024 == 0 else str(size) for size in sizes]
    header = ("config", *(f"{word} rows" for word in words), "geometric mean")
    return table(header, rows, right=len(sizes) + 1)


def _figures_row(config: dict[str, Any], sizes: list[int]) -> tuple[str, ...]:
    by_rows = {size["rows"]: size for size in config["sizes"]}
    cells = []
    for rows in sizes:
        size = by_rows.get(rows)
        if size is None:
            cells.append("-")
            continue
        ratio = size["ratios"].get("best")
        compared = f" ({ratio:.2f})" if ratio is not None else ""
        cells.append(f"{size['ours']['tflops']:.0f}{compared}")
    mean = config["geometric_means"].get("best")
    return (f"`{config['name']}`", *cells, f"{mean:.3f}" if mean is not None else "-")
