"""Every design's header: the offsets, slots and arrivals of its barriers, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fa4gen.config.find import shipped_configs
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import DESIGNS, design_for
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render

SHIPPED = [load_config(path) for path in shipped_configs()]
TEMPLATES = open_templates()
CONSTANT = re.compile(r"^constexpr unsigned (k\w+) = (\d+);", re.MULTILINE)


def known_constants(plan: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Return the constants that a header has, and those that it may have."""
    needed: dict[str, int] = {}
    for row in plan.barriers:
        needed |= {row.constant: row.offset, f"{row.constant}Arrivals": row.arrivals}
        needed |= {f"{row.constant}Slots": row.slots} if row.slots > 1 else {}
    allowed = {"kBarriersOffset": plan.region("barriers").offset} if plan.barriers else {}
    if plan.has_tensor_memory:
        needed["kTensorMemoryColumns"] = plan.tensor_memory_columns
        for place in plan.tensor_memory:
            name = "k" + "".join(word.capitalize() for word in place.name.split("_"))
            needed[f"{name}Column"] = place.column
            allowed[f"{name}Columns"] = place.columns
    return needed, allowed


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_the_header_is_the_table(design: Any) -> None:
    """Host code and debuggers find a kernel's barriers by these constants."""
    mine = [loaded for loaded in SHIPPED if design_for(loaded.config) is design]
    assert mine
    for loaded in mine:
        plan = build_plan(loaded.config)
        header = render(plan, loaded, TEMPLATES).headers[f"{plan.name}_barriers.h"]
        constants = {name: int(value) for name, value in CONSTANT.findall(header)}
        needed, allowed = known_constants(plan)
        assert {name: constants.get(name) for name in needed} == needed
        extra = {name: value for name, value in constants.items() if name not in needed}
        assert extra.items() <= allowed.items()
        assert f"// {sum(row.slots for row in plan.barriers)} barriers of eight bytes." in header
