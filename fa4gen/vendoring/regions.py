"""Sets of kernels and tuning tables among the configs of a folder, and the regions of the tables.

``P_best`` follows the regions as a KernelSet does: the first that holds a problem has its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.find import find_configs
from fa4gen.config.paths import shown_path
from fa4gen.config.set_file import is_set_file, read_set
from fa4gen.designs.registry import ATTENTION, GEMM
from fa4gen.errors import ConfigError, Problem
from fa4gen.vendoring.lock import LockedRegion, LockedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.config.set_file import KernelSetFile
    from fa4gen.vendoring.kernel_facts import KernelFacts

EXTENTS: dict[str, dict[str, str]] = {
    ATTENTION.name: {
        "batch": "batch",
        "heads": "query_heads",
        "key_heads": "key_heads",
        "rows": "query_rows",
        "keys": "key_rows",
    },
    GEMM.name: {"m": "m", "n": "n", "k": "k", "batch": "batch"},
}
"""By family, what tables call the extents of a problem, and fields of P_problem."""
MOST_EXTENTS = max(map(len, EXTENTS.values()))
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class RegionFacts:
    """A row of the launcher's table of regions."""

    kernel: int
    """Its number in the folder."""
    least: tuple[int, ...]
    """The smallest value of each extent, in the order of EXTENTS, filled up to MOST_EXTENTS."""
    most: tuple[int, ...]


def find_kernels(
    arguments: Sequence[str], base: Path | None = None
) -> tuple[list[Path], LockedTable | None]:
    """Return the config files that ``arguments`` name, and what tables among them say.

    An argument is one of ``find_configs``, or a set or a tuning table, which stands for its
    kernels. Raises ConfigError, also for tables of several chips.
    """
    files: list[KernelSetFile] = []
    configs: list[str] = []
    for argument in arguments:
        path = base / argument if base else Path(argument)
        if not is_set_file(path):
            configs.append(argument)
            continue
        files.append(read_set(path))
        configs += [str(config.absolute()) for config in files[-1].configs]
    tables = [file for file in files if file.followed]
    chips = sorted({file.chip for file in tables})
    if len(chips) > 1:
        raise ConfigError(
            Problem(
                f"tables of several chips: {', '.join(chips)}",
                "One folder follows the tables of one chip: vendor the others into their own.",
                shown_path(tables[-1].path),
            )
        )
    regions = tuple(
        LockedRegion(kernel=region.kernel, where=dict(region.where))
        for file in tables
        for region in file.followed
    )
    table = LockedTable(chip=chips[0], regions=regions) if regions else None
    return find_configs(configs, base), table


def region_facts(
    table: LockedTable | None, kernels: Sequence[KernelFacts]
) -> tuple[RegionFacts, ...]:
    """Return the rows of ``table``; an empty tuple for a folder of one kernel.

    Raises ConfigError for a region whose kernel is not in the folder.
    """
    if table is None or len(kernels) == 1:
        return ()
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    rows = []
    for region in table.regions:
        if region.kernel not in numbers:
            raise ConfigError(
                Problem(
                    f"the tuning table has {region.kernel}, which the folder does not have",
                    "The config's file and its key name have to say the same.",
                )
            )
        names = EXTENTS[kernels[numbers[region.kernel]].family]
        if not region.where.keys() <= names.keys():
            continue  # an extent that no problem has: the region holds none
        ranges = [region.where.get(name, (0, LARGEST)) for name in names]
        ranges += [(0, LARGEST)] * (MOST_EXTENTS - len(ranges))
        least, most = zip(*((low, min(high, LARGEST)) for low, high in ranges), strict=True)
        rows.append(RegionFacts(numbers[region.kernel], least, most))
    return tuple(rows)
