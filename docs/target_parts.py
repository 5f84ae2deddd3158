"""The table of targets and the GPUs that run their machine code; docs/update.py writes it."""

from __future__ import annotations

from tables import table


def targets_table() -> str:
    """Return the table: a row for each architecture, a column for each compute capability."""
    from fa4gen.designs.common.hardware import ARCHITECTURES, all_capabilities, runs_on
    from fa4gen.tune.model.chips import CHIPS

    heads = ["`arch`", "first CUDA"]
    for major, minor in all_capabilities():
        chips = [chip.name.split()[1] for chip in CHIPS if chip.capability == (major, minor)]
        heads.append(f"{major}.{minor}" + f" ({', '.join(chips)})" * bool(chips))
    rows = [
        [f"`{name}`", arch.first_cuda]
        + ["runs" if runs_on(name, one) else "no" for one in all_capabilities()]
        for name, arch in ARCHITECTURES.items()
    ]
    return table(heads, rows)
