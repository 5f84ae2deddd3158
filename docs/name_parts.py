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
        f"\n{family.title()}Name = Literal[\n"
        + "".join(f'    "{name}",\n' for name in sorted(found))
        + f']\n"""The names of {title}."""\n'
        for (family, found), title in zip(
            names.items(), ("attention kernels", "matrix products", "merging kernels"), strict=True
        )
        if found
    )
    return HEAD + "".join(types)
