"""The types of shipped configs' names, from the configs; docs/update.py writes their module."""

from __future__ import annotations

MODULE = "fa4gen/shipped_names.py"
"""From the root."""
HEAD = '''"""The names of the shipped configs as types, by family: docs/update.py writes them.

``fa4gen.load`` returns the kernel of a family for a literal name, which editors can complete.
"""

from typing import Literal
'''


def module_text() -> str:
    """Return the text of the module."""
    from fa4gen.config.find import shipped_configs
    from fa4gen.config.load import load_config
    from fa4gen.designs.registry import FAMILIES

    names: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for path in shipped_configs():
        names[load_config(path).config.kernel].append(path.stem)
    types = (
        f"\n{family.title()}Name = Literal[{_items(sorted(found))}]\n"
        + f'"""The names of {title}."""\n'
        for (family, found), title in zip(
            names.items(), ("attention kernels", "matrix products", "merging kernels"), strict=True
        )
        if found
    )
    return HEAD + "".join(types)


def _items(names: list[str]) -> str:
    """Return the names in quotes, a line each as the formatter has them; one alone in its line."""
    if len(names) == 1:
        return f'"{names[0]}"'
    return "\n" + "".join(f'    "{name}",\n' for name in names)
