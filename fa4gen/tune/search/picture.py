"""The results of tuning in the form that bench draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.bench.results import BEST
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.designs.common.plans import Plan
    from fa4gen.tune.family import Family
    from fa4gen.tune.search.record import TuneRecord

CHOSEN = "chosen"


def picture_data(family: Family, plan: Plan, records: Sequence[TuneRecord]) -> dict[str, Any]:
    """Return the document of a picture: the chosen kernels, and the config itself.

    Speeds are relative to the fastest peer where peers were measured, else TFLOP/s; those of the
    model are called predicted. Raises ConfigError where no kernel was chosen.
    """
    chosen = [record for record in records if record.chosen is not None]
    if not chosen:
        raise ConfigError(Problem("nothing is drawn: no kernel was chosen for any problem"))
    facts = {
        key: getattr(plan, key)
        for key in ("dtype", "out_dtype", "a_major", "b_major", "residual", "activation", "depth")
        if hasattr(plan, key)
    }
    if hasattr(plan, "mask"):
        facts |= {"mask": plan.mask.name, **plan.mask.numbers()}
    best, own = [], []
    for record in chosen:
        assert record.chosen is not None
        flop = family.flop(plan, family.parse_problem(record.problem))
        size = {"word": record.problem, **record.extents, "flop": flop}
        base = next((one for one in record.kernels if one.source == "config"), None)
        best.append(_point(size, record.chosen.us or record.chosen.predicted_us, record))
        if base is not None:
            own.append(_point(size, base.us or base.predicted_us, record))
    configs: list[Mapping[str, Any]] = [{**facts, "name": CHOSEN, "sizes": best}]
    if own:
        configs.append({**facts, "name": chosen[0].base, "sizes": own})
    predicted = chosen[0].decided_by == "model"
    return {
        "gpu": {"name": chosen[0].chip + (", predicted" if predicted else "")},
        "date": "",
        "protocol": {},
        "configs": configs,
    }


def _point(size: Mapping[str, Any], us: float, record: TuneRecord) -> dict[str, Any]:
    def speed(time: float) -> dict[str, float]:
        return {"tflops": size["flop"] / time / 1e6}

    peers = {name: speed(time) for name, time in record.peers_us.items()}
    point = {**size, "ours": speed(us), "peers": peers, "ratios": {}}
    if peers:
        best = min(record.peers_us, key=lambda name: record.peers_us[name])
        point |= {"best_peer": best, "ratios": {BEST: record.peers_us[best] / us}}
    return point
