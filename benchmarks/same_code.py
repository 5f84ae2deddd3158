"""Whether two trees have the same kernels: compares the machine code of what they ship.

python benchmarks/same_code.py BEFORE AFTER [--only GLOB] [--cache DIR] [--json FILE]
python benchmarks/same_code.py --save FILE TREE

BEFORE and AFTER are checkouts or files that ``--save`` wrote. NVRTC compiles a checkout's kernels.
A checkout that keeps hashes of kernels renders them by its own fa4gen, one without is read from
its ``generated/``. A kernel of both has one of these verdicts:

same code  the cubins hold the same instructions, constants and register counts, byte for byte
same PTX   the instructions differ, but not the PTX once registers, labels and functions have
           neutral names and functions a fixed order
different  neither

Compiled kernels are kept in the cache (``--cache``, else fa4gen's own) by the hash of their source:
a second run compiles only what has changed. The exit status is 1 where a kernel is different or is
missing on one side.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from cubin import Cubin

from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.compile import compile_kernel, find_compiler

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = 2
"""Of saved files. In the first one, constants that no code uses counted."""


@dataclass(frozen=True)
class Fingerprint:
    """What must be equal in compiled kernels; hashes are SHA-256."""

    code: str
    """Of instructions, constants and register counts in the cubin."""
    ptx: str
    """Of the PTX with neutral names."""
    registers: int
    instruction_bytes: int


@dataclass(frozen=True)
class Comparison:
    """A kernel, ``arch/name``, and its fingerprints; None on the side that lacks it."""

    kernel: str
    before: Fingerprint | None
    after: Fingerprint | None

    @property
    def verdict(self) -> str:
        """One of "same code", "same PTX", "different", "removed", "added"."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.code == self.after.code:
            return "same code"
        return "same PTX" if self.before.ptx == self.after.ptx else "different"


def code_hash(cubin: Cubin, reads_globals: bool) -> str:
    """Return the hash of what the GPU executes: sections are named by kind, not by kernel.

    Constants of namespaces and structs are compiled into global memory, and their addresses into
    constant bank 4: both count only where the code ``reads_globals``.
    """
    digest = hashlib.sha256()
    kernels = {function.name for function in cubin.functions}
    for section in sorted(cubin.sections, key=lambda section: section.name):
        kind = _SECTION.fullmatch(section.name)
        if not kind or (kind[2] is not None and kind[2] not in kernels):
            continue
        if reads_globals or not kind[1].startswith(("nv.global", "nv.constant4")):
            digest.update(f"{kind[1]}\0{section.size}\0".encode() + section.data)
    for function in cubin.functions:
        counts = (function.is_entry, function.registers, function.frame_bytes)
        digest.update(struct.pack("<?II", *counts))
    return digest.hexdigest()


_SECTION = re.compile(r"\.(text|nv\.constant\d+|nv\.shared|nv\.global\S*)(?:\.(.+))?")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEBUG = re.compile(
    r"^\s*\.(?:loc|file)\b[^\n]*|^\s*\.section\s+\S+\s*\{.*?^\s*\}", re.MULTILINE | re.DOTALL
)
_GLOBAL = re.compile(r"\.global [^;{]*?([\w$]+)(?:\[\d*\])?(?: ?= ?[^;]*)?;")
_HEAD = re.compile(r"^\s*\.(?:version|target|address_size)\b.*$", re.MULTILINE)
_NEXT_DIRECTIVE = re.compile(r"(?<=[;}])(?=\.(?:visible|weak|extern|func|entry|global)\b)")
_REGISTERS = re.compile(r"\.reg \.\w+ %\w+<\d+>;")
_NAME = re.compile(r"(%[a-z]+)\d+\b|(\$L_\w+)|\b(_Z\w+|[A-Za-z]\w*_param_\d+)\b")


def global_variables(text: str) -> dict[str, bool]:
    """Return the names of PTX's global variables, and whether anything else refers to them."""
    words = Counter(re.findall(r"[\w$]+", text))
    return {match[1]: words[match[1]] > 1 for match in _GLOBAL.finditer(text)}


def neutral_ptx(text: str) -> str:
    """Return PTX without comments, lines and variables that nothing uses.

    Its names are numbered as they come, and its functions sorted.
    """
    text = _COMMENT.sub("", text)
    text = _DEBUG.sub("", _HEAD.sub("", text))
    text = re.sub(r"\s+", " ", text)
    text = _REGISTERS.sub("", text)
    used = global_variables(text)
    text = _GLOBAL.sub(lambda match: match[0] if used[match[1]] else "", text)
    text = re.sub(r"\s*([{};,+\[\]()])\s*", r"\1", text).replace("+0]", "]")
    functions = _NEXT_DIRECTIVE.split(text.strip())
    return "\n".join(sorted(_numbered(function) for function in functions))


def _numbered(text: str) -> str:
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()

    def neutral(match: re.Match[str]) -> str:
        kind = match[1] or ("$" if match[2] else "name")
        if match[0] not in names:
            names[match[0]] = f"{kind}{counts[kind]}"
            counts[kind] += 1
        return names[match[0]]

    return _NAME.sub(neutral, text)


def fingerprints(place: Path, only: str, cache: Cache) -> dict[str, Fingerprint]:
    """Return the fingerprints of a checkout, or of a file that holds them, by kernel."""
    if place.is_file():
        stored = json.loads(place.read_text())
        if stored.get("format") != FORMAT:
            sys.exit(f"{place}: saved by another version of this script. Save it again.")
        kernels = stored["kernels"].items()
        return {name: Fingerprint(**f) for name, f in kernels if fnmatch(name, only)}
    with tempfile.TemporaryDirectory() as folder:
        return compiled(kernels_of(place, Path(folder)), only, cache)


def kernels_of(place: Path, folder: Path) -> list[Path]:
    """Return the sources of a checkout's kernels, rendered to ``folder`` where it keeps hashes."""
    generated = place / "generated"
    if (generated / "hashes.json").exists():
        here = {"PYTHONPATH": str(place.resolve()), "FA4GEN_NO_COMPILE": "1"}
        command = [sys.executable, "-m", "fa4gen", "render", "-j", "1", "-o", str(folder)]
        done = subprocess.run(
            command, cwd=place, env={**os.environ, **here}, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{place}: its kernels cannot be rendered.\n{done.stderr}")
        generated = folder
    sources = sorted(generated.glob("sm_*/*/*.cu"))
    if not sources:
        sys.exit(f"{place}: no checkout with generated kernels, and no file of fingerprints.")
    return sources


def compiled(sources: Sequence[Path], only: str, cache: Cache) -> dict[str, Fingerprint]:
    """Return the fingerprints of the kernels in ``sources`` that ``only`` matches."""
    compiler = find_compiler("nvrtc")
    found = {}
    for number, source in enumerate(sources, 1):
        arch, name = source.parts[-3], source.stem
        if not fnmatch(f"{arch}/{name}", only):
            continue
        built = compile_kernel(
            source.read_text(),
            {
                header.name: header.read_text()
                for header in sorted(source.parent.iterdir())
                if header.suffix in (".h", ".cuh")  # older trees have the first alone
            },
            arch,
            name=name,
            compiler=compiler,
            cache=cache,
            report=True,
        )
        cubin = Cubin(built.cubin)
        found[f"{arch}/{name}"] = Fingerprint(
            code_hash(cubin, any(global_variables(built.ptx).values())),
            hashlib.sha256(neutral_ptx(built.ptx).encode()).hexdigest(),
            built.resources.registers,
            sum(len(function.code) for function in cubin.functions),
        )
        if sys.stderr.isatty():
            print(f"\r{number}/{len(sources)} {name:50}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found


def compare(
    before: dict[str, Fingerprint], after: dict[str, Fingerprint]
) -> tuple[Comparison, ...]:
    """Return a comparison for each kernel of either side, by name."""
    return tuple(
        Comparison(kernel, before.get(kernel), after.get(kernel))
        for kernel in sorted({*before, *after})
    )


def main() -> int:
    """Compare, print a table and the counts; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="TREE", help="checkout or saved file"
    )
    parser.add_argument("--save", type=Path, help="write the fingerprints of one tree to this file")
    parser.add_argument("--only", default="*", help="kernels whose arch/name matches this glob")
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels")
    parser.add_argument("--json", type=Path, help="write the comparisons there as well")
    arguments = parser.parse_args()
    if len(arguments.places) != (1 if arguments.save else 2):
        parser.error("give one tree with --save, two without")
    cache = Cache(arguments.cache) if arguments.cache else Cache.default()
    sides = [fingerprints(place, arguments.only, cache) for place in arguments.places]
    if arguments.save:
        kernels = {name: asdict(fingerprint) for name, fingerprint in sides[0].items()}
        stored = {"format": FORMAT, "kernels": kernels}
        arguments.save.write_text(json.dumps(stored, indent=1) + "\n")
        print(f"{len(kernels)} kernels")
        return 0
    comparisons = compare(sides[0], sides[1])
    for c in comparisons:
        sizes = "  ".join(
            f"{f.instruction_bytes:6} B {f.registers:3} registers" if f else "-" * 22
            for f in (c.before, c.after)
        )
        print(f"{c.verdict:9}  {c.kernel:50} {sizes}")
    counts = Counter(c.verdict for c in comparisons)
    print(", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items())))
    if arguments.json:
        records = [{"verdict": c.verdict, **asdict(c)} for c in comparisons]
        arguments.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0 if set(counts) <= {"same code", "same PTX"} else 1


if __name__ == "__main__":
    sys.exit(main())
