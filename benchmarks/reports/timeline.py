"""Draws the main loop of a kernel in the emulator's cost model.

python benchmarks/reports/timeline.py CONFIG...

For every config file the kernel is rendered and compiled (NVRTC or nvcc, no GPU), and in the
emulator every CTA runs one tile of queries against ``--blocks`` blocks of keys; of a matrix
product, several tiles of the output, each with ``--blocks`` blocks along k. The picture
docs/pictures/timeline_NAME.svg shows the roles in the steady state of the first CTA. The figures
are printed as JSON: how busy the tensor core is, what every role waits for, how long each resource
is in use for a block of keys, or for a tile of a product. They are those of a model
(fa4gen/emulator/timeline/costs.py), not measurements.
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
    from fa4gen.designs.common.plans import Plan
    from fa4gen.emulator import Program, Report
    from fa4gen.verify.family import SteadyWork

FOLDER = Path(__file__).resolve().parents[2] / "docs/pictures"
BLOCKS = 12


@dataclass(frozen=True)
class Traced:
    """A program whose launches write a trace; the checks are for `fa4gen verify`."""

    program: Program
    trace: Path

    def launch(self, *args: Any, **options: Any) -> Report:
        """Launch with the trace, and without checks."""
        return self.program.launch(*args, **{**options, "trace": self.trace, "checks": False})


def trace_of(config: str, blocks: int) -> tuple[Plan, SteadyWork, dict[str, Any]]:
    """Return a kernel's plan, its work on ``blocks`` blocks, and the trace. Raises Fa4genError."""
    from fa4gen.emulator import Program
    from fa4gen.errors import ConfigError
    from fa4gen.verify.build import build_kernel
    from fa4gen.verify.cases import MULTIPROCESSORS
    from fa4gen.verify.emulator import EmulatedKernel
    from fa4gen.verify.family import family_of

    built = build_kernel(config)
    if built.plan is None or built.compiled is None:
        raise ConfigError(*built.problems)
    plan = built.plan
    family = family_of(plan)
    work = family.steady_work(MULTIPROCESSORS, blocks)
    memory = family.draw(work.case, 0).memory
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        traced: Any = Traced(Program(built.compiled.ptx), path)
        EmulatedKernel(plan, traced).run(memory)
        return plan, work, json.loads(path.read_text())


def main(arguments: list[str] | None = None) -> int:
    """Draw the kernels and print their figures."""
    from fa4gen.emulator.timeline.figures import measure, read_events
    from fa4gen.emulator.timeline.picture import draw
    from fa4gen.errors import Fa4genError

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="+", metavar="CONFIG")
    parser.add_argument(
        "--blocks", type=int, default=BLOCKS, help="of keys, or along k (%(default)s)"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the pictures")
    chosen = parser.parse_args(arguments)
    figures = {}
    from fa4gen.config.find import find_configs

    for config in map(str, find_configs(chosen.configs)):
        try:
            plan, work, document = trace_of(config, chosen.blocks)
        except Fa4genError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        picture = chosen.out / f"timeline_{plan.name}.svg"
        title = f"{plan.name}: {work.words}"
        picture.write_text(draw(document, title=title, blocks=work.turns), encoding="utf-8")
        figures[plan.name] = asdict(measure(read_events(document), work.turns))
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
