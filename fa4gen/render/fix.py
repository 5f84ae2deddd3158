"""The commands that make generated files current again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.render.check import FileVerdict


def fix_commands(
    verdicts: Sequence[FileVerdict],
    configs: Mapping[str, Path],
    arguments: Sequence[str],
    options: Sequence[str],
) -> list[str]:
    """Return shell commands after which every file of ``verdicts`` is current.

    ``configs``: the config of each kernel (``arch/name``); ``arguments`` and ``options``: what
    ``fa4gen check`` was given. Edited files come first, in a command of their own, since they
    need --force; orphans that --prune keeps are deleted by name.
    """
    edited = {v.kernel for v in verdicts if v.verdict == "edited"}
    outdated = any(
        v.verdict in ("stale", "missing") and (v.is_hash or v.kernel not in edited)
        for v in verdicts
    )
    # a line of hashes is not a file: writing the others anew takes it away
    outdated = outdated or any(v.is_hash and v.verdict == "orphan" for v in verdicts)
    orphans = [v for v in verdicts if v.verdict == "orphan" and not v.is_hash]
    commands = []
    if edited:
        files = [shown_path(configs[kernel]) for kernel in configs if kernel in edited]
        # Writing a kernel renews its manifest, which alone records orphans next to it.
        beside = any(v.prunable and v.kernel in edited for v in orphans)
        prune = ["--prune"] if beside else []
        commands.append(shlex.join(["fa4gen", "render", "--force", *prune, *options, *files]))
    if outdated or any(v.prunable and v.kernel not in edited for v in orphans):
        prune = ["--prune"] if any(v.prunable for v in orphans) else []
        commands.append(shlex.join(["fa4gen", "render", *prune, *options, *arguments]))
    kept = [shown_path(v.path) for v in orphans if not v.prunable]
    if kept:
        commands.append(shlex.join(["rm", *kept]))
    return commands
