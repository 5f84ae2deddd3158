"""The special registers of a launch's threads: ``%tid``, ``%ctaid`` and the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.memory import RESERVED_SHARED
from fa4gen.emulator.state.registers import WARP_LANES


def set_specials(wg: Warpgroup) -> None:
    """Fill in the special registers of a warpgroup's threads (uint32, or uint64 where they are)."""
    cta = wg.cta
    machine = wg.machine
    geometry = machine.geometry
    x, y, _ = geometry.block
    thread = np.arange(wg.first_thread, wg.first_thread + wg.lanes, dtype=np.uint32)
    lane = thread % WARP_LANES
    one = np.uint32(1)
    special: dict[str, Any] = {
        "%tid.x": thread % np.uint32(x),
        "%tid.y": thread // np.uint32(x) % np.uint32(y),
        "%tid.z": thread // np.uint32(x * y),
        "%laneid": lane,
        "%warpid": thread // WARP_LANES,
        "%nwarpid": np.uint32(64),
        "%smid": np.uint32(cta.index % 132),
        "%nsmid": np.uint32(132),
        "%gridid": np.uint32(1),
        "WARP_SZ": np.uint32(WARP_LANES),
        "%dynamic_smem_size": np.uint32(geometry.dynamic_shared),
        "%total_smem_size": np.uint32(machine.shared_end),
        "%aggr_smem_size": np.uint32(machine.shared_end),
        "%reserved_smem_offset_begin": np.uint32(0),
        "%reserved_smem_offset_end": np.uint32(RESERVED_SHARED),
        "%reserved_smem_offset_cap": np.uint32(RESERVED_SHARED),
        "%lanemask_eq": one << lane,
        "%lanemask_lt": (one << lane) - one,
        "%lanemask_le": ((one << lane) - one) | (one << lane),
        "%is_explicit_cluster": np.uint32(geometry.cluster != (1, 1, 1)),
        "%cluster_ctarank": np.uint32(cta.rank),
        "%cluster_nctarank": np.uint32(len(cta.cluster.ctas)),
        "%current_graph_exec": np.uint64(0),
    }
    special["%lanemask_gt"] = ~special["%lanemask_le"]
    special["%lanemask_ge"] = ~special["%lanemask_lt"]
    for axis, name in enumerate("xyz"):
        cluster = geometry.cluster[axis]
        special[f"%ntid.{name}"] = np.uint32(geometry.block[axis])
        special[f"%ctaid.{name}"] = np.uint32(cta.ctaid[axis])
        special[f"%nctaid.{name}"] = np.uint32(geometry.grid[axis])
        special[f"%clusterid.{name}"] = np.uint32(cta.ctaid[axis] // cluster)
        special[f"%nclusterid.{name}"] = np.uint32(geometry.grid[axis] // cluster)
        special[f"%cluster_ctaid.{name}"] = np.uint32(cta.ctaid[axis] % cluster)
        special[f"%cluster_nctaid.{name}"] = np.uint32(cluster)
    for number in range(32):
        special[f"%envreg{number}"] = np.uint32(0)
    wg.special = special
