"""Draws the main loop of a kernel in the emulator's cost model: python docs/timeline.py CONFIG...

For every config file the kernel is rendered and compiled (NVRTC or nvcc, no GPU), and every CTA
runs one tile of queries against ``--blocks`` blocks of keys in the emulator. The picture
docs/timeline_NAME.svg shows who does what and when in the steady state of the first CTA. The
figures are printed as JSON: how busy the tensor core is, what every role waits for, how long each
resource is in use for a block. They are those of a model (fa4gen/emulator/costs.py), not
measurements.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fa4gen.emulator import Program, Report
    from fa4gen.plan.attention_model import AttentionPlan

FOLDER = Path(__file__).resolve().parent
BLOCKS = 12


@dataclass(frozen=True)
class Traced:
    """A program whose launches write a trace; the checks are for `fa4gen verify`."""

    program: Program
    trace: Path

    def launch(self, *args: Any, **options: Any) -> Report:
        """Launch with the trace, and without checks."""
        return self.program.launch(*args, **{**options, "trace": self.trace, "checks": False})


def trace_of(config: str, blocks: int) -> tuple[str, dict[str, Any]]:
    """Return a kernel's name and the trace of one tile of queries and ``blocks`` of keys.

    Raises Fa4genError.
    """
    from fa4gen.emulator import Program
    from fa4gen.errors import ConfigError
    from fa4gen.verify.build import build_kernel
    from fa4gen.verify.cases import Case
    from fa4gen.verify.emulator import MULTIPROCESSORS, EmulatedKernel
    from fa4gen.verify.inputs import make_inputs, make_rng
    from fa4gen.verify.memory import place

    built = build_kernel(config)
    if built.plan is None or built.compiled is None:
        raise ConfigError(*built.problems)
    plan = built.plan
    # a tile for every CTA of the emulated chip: with fewer, some kernels make their tiles smaller
    heads = MULTIPROCESSORS // plan.cta_group
    case = Case("timeline", 1, heads, heads, tile_rows(plan), blocks * plan.BN)
    inputs = make_inputs(
        case, plan.depth, plan.dtype, make_rng(0, case.name), value_depth=plan.value_depth
    )
    memory = place(case, inputs, plan.dtype, lse=plan.lse, out_dtype=plan.out_dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        traced: Any = Traced(Program(built.compiled.ptx), path)
        EmulatedKernel(plan, traced).run(memory)
        return plan.name, json.loads(path.read_text())


def tile_rows(plan: AttentionPlan) -> int:
    """Return the query rows that one CTA, or a pair of them, works on at a time."""
    return plan.BM * plan.cta_group


def main(arguments: list[str] | None = None) -> int:
    """Draw the kernels and print their figures."""
    from fa4gen.emulator.timeline_figures import measure, read_events
    from fa4gen.emulator.timeline_picture import draw
    from fa4gen.errors import Fa4genError

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="+", metavar="CONFIG")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="blocks of keys (%(default)s)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the pictures")
    chosen = parser.parse_args(arguments)
    figures = {}
    for config in chosen.configs:
        try:
            name, document = trace_of(config, chosen.blocks)
        except Fa4genError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        title = f"{name}: one tile of queries, {chosen.blocks} blocks of keys"
        picture = chosen.out / f"timeline_{name}.svg"
        picture.write_text(draw(document, title=title, blocks=chosen.blocks), encoding="utf-8")
        figures[name] = asdict(measure(read_events(document), chosen.blocks))
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
