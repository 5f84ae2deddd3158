"""The tuning tables that come with fa4gen: configs/tuned/CHIP.yaml has those of a chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.entries import TABLE_END, tables_in
from fa4gen.config.find import TUNED, find_configs
from fa4gen.config.load import load_config
from fa4gen.config.set_file import read_set
from fa4gen.errors import ConfigError
from fa4gen.tune.candidates import features
from fa4gen.tune.family import family_called

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.set_file import KernelSetFile


def chip_file(chip: str) -> str:
    """Return the name of a chip's file of tables: nvidia_h200.yaml."""
    return "_".join(chip.lower().split()) + ".yaml"


def committed_tables(chip: str) -> list[Path]:
    """Return the tables of a chip that come with fa4gen, sorted; none for an unknown one."""
    from fa4gen.resources import data_root

    return sorted(tables_in(data_root("configs") / TUNED / chip_file(chip)))


def find_table(loaded: LoadedConfig, chip: str) -> KernelSetFile | None:
    """Return the table of ``chip`` for the function of a config, whatever its tile is; else None.

    A table of the config's own name goes before others. The result is None unless a table was timed
    on this chip, with its configs unchanged since.
    """
    from fa4gen.tune.search.table import check_table

    family = family_called(loaded.config.kernel)
    wanted = features(loaded, family)
    own = f"{loaded.config.name}{TABLE_END}"
    for path in sorted(committed_tables(chip), key=lambda path: path.name != own):
        try:
            (base,) = find_configs([path.name.removesuffix(TABLE_END)])
            if features(load_config(base), family) != wanted:
                continue
            file = read_set(path)
            if file.chip == chip and check_table(path).verdict == "current":
                return file
        except (ConfigError, ValueError):  # `fa4gen check` reports the errors of the table
            continue
    return None
