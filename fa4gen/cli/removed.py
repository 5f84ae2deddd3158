"""Options of earlier versions, with what to use in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_EMULATE = "`fa4gen emulate` runs the folder of a launch with any"
_LAUNCH_KEY = "it is a key of the launch file"
_DEFAULT = "runs resume unless --fresh is given"
_RUNTIME = "put the folder of the CUDA runtime on LD_LIBRARY_PATH"
REMOVED: Mapping[tuple[str, str], str] = {
    ("fa4gen", "--completion"): "run `_FA4GEN_COMPLETE=bash_source fa4gen`, or zsh_source, "
    "or fish_source",
    ("fa4gen", "--man"): "read `fa4gen --help` and `fa4gen COMMAND --help`",
    ("init", "--depth"): "write --set depth=N",
    ("init", "--dtype"): "write --set dtype=DTYPE",
    ("render", "--depfile"): "let the build call `fa4gen render` each time: it leaves files that "
    "are current as they are",
    ("tune", "--refined"): "the first three candidates are refined",
    ("tune", "--no-tiles"): "name the configs to choose among in `fa4gen bench`",
    ("tune", "--no-peers"): "peers are measured where PyTorch is installed; `fa4gen bench` "
    "can leave them out",
    ("tune", "--cudart"): _RUNTIME,
    ("tune", "--seed"): "times do not depend on it",
    ("tune", "--resume"): _DEFAULT,
    ("sweep", "--resume"): _DEFAULT,
    ("bench", "--cudart"): _RUNTIME,
    ("bench", "--seed"): "times do not depend on it",
    ("record", "--seed"): _EMULATE,
    ("record", "--schedule"): _EMULATE,
    ("emulate", "--max-steps"): _LAUNCH_KEY,
    ("emulate", "--max-memory"): _LAUNCH_KEY,
    ("emulate", "--tolerance"): _LAUNCH_KEY,
}
"""By command and option; each is named for one version."""


def instead_of(command: str, option: str) -> str | None:
    """Return the message for a removed option; None for one that never was."""
    instead = REMOVED.get((command, option))
    return None if instead is None else f"{option} was removed: {instead}."
