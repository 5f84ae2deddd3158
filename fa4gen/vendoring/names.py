"""The names of a vendored folder: a prefix, and what it makes of a kernel's own names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.errors import ConfigError, Problem
from fa4gen.vendoring.reserved_prefixes import what_has

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fa4gen.designs.common.plans import Plan

MAX_PREFIX = 32
KERNEL_SUFFIXES = ("", "_args", "_kernel", "_workspace_bytes", "_image", "_entry", "_list_tiles")
"""Ends of the C names that a kernel has."""
_INTERFACE = re.compile(r"\{\{ prefix \}\}_([a-z][a-z0-9_]*)")
_PREFIX = re.compile(r"[a-z][a-z0-9_]*")


def check_prefix(prefix: str) -> str:
    """Return ``prefix``; ConfigError unless it can begin the names of C functions and macros.

    Lower case, since macros carry it in capitals; no underscore at the end, since one follows, and
    nothing that ``reserved`` lists.
    """
    has_it = what_has(prefix)
    if has_it is not None:
        raise ConfigError(
            Problem(
                f"--prefix: {prefix} is {has_it}, which the folder's files would shadow",
                f"Use for example --prefix {prefix}_kernels.",
                key="prefix",
            )
        )
    if (
        _PREFIX.fullmatch(prefix)
        and len(prefix) <= MAX_PREFIX
        and not prefix.endswith("_")
        and "__" not in prefix
    ):
        return prefix
    usable = re.sub(r"[^a-z0-9]+", "_", prefix.casefold()).strip("_")[:MAX_PREFIX].rstrip("_")
    if not _PREFIX.fullmatch(usable):
        usable = f"k_{usable}".rstrip("_")
    raise ConfigError(
        Problem(
            f"--prefix: expected the beginning of C names (lower-case letters, digits and single _,"
            f" a letter first, at most {MAX_PREFIX} characters), got {prefix!r}",
            f"Use for example --prefix {usable}.",
            key="prefix",
        )
    )


def with_prefix(plan: Plan, prefix: str) -> Plan:
    """Return ``plan`` under the names that it has in a vendored folder.

    Files, namespace and header constants follow from the plan's name. The entry point has a name of
    its own: a program that compiles the .cu as part of itself also links the C function.
    """
    return replace(plan, vendored_as=f"{prefix}_{plan.name}")


def interface_names(templates: Iterable[str]) -> frozenset[str]:
    """Return the C names in ``templates`` that every folder has, without the prefix."""
    return frozenset(name for text in templates for name in _INTERFACE.findall(text))


def taken_names(names: Sequence[str], interface: frozenset[str]) -> dict[str, str]:
    """Return the kernels of ``names`` that cannot have their C names, with what has one of them.

    That is the interface itself, or a kernel before.
    """
    owners = dict.fromkeys(interface, "the interface")
    taken = {}
    for name in names:
        own = [f"{name}{suffix}" for suffix in KERNEL_SUFFIXES]
        clash = next((one for one in own if one in owners), None)
        if clash is not None:
            taken[name] = f"{clash}, which {owners[clash]} has"
        else:
            owners |= dict.fromkeys(own, f"the kernel {name}")
    return taken
