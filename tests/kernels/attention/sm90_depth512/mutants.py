"""Mutants of the kernel of a pair at depth 512 on Hopper."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.source_mutation import Change, Found, Mutant

CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "pair": {
        "arch": "sm_90a",
        "depth": 512,
        "cta_group": 2,
        "mask": "causal",
        "rescale_threshold": 0.0,
    }
}
SEVERAL_TILES: Final = "tiles/square"
"""Three tiles of one to three blocks on two pairs."""


def _mutant(about: str, pattern: str, new: str, *found: Found) -> Mutant:
    return Mutant("pair", about, (Change(pattern, new),), found, SEVERAL_TILES)


MUTANTS: Final = {
    "probabilities_not_waited_for": _mutant(
        "P.V reads the peer's probabilities before they have arrived",
        r"\n *MessageRing<kProbabilityFull>[^;]*\.wait_full_shared\(\);",
        "",
        Found("race", "wgmma_m64n256k16_shared_a", "consume", "probability"),
        Found("uninitialised", "wgmma_m64n256k16_shared_a", "consume", "probability"),
    ),
    "slot_released_early": _mutant(
        "a slot is freed while its Q.K may still read it",
        r"wgmma_wait<1>\(\);\s+release_slot\(panel - 1\);",
        "release_slot(panel - 1);\n        wgmma_wait<1>();",
        Found("race", "tma_load_5d", "load", "ring"),
    ),
    "maxima_not_waited_for": _mutant(
        "maxima and sums are read before they have arrived",
        r"\n *ring\.wait_full_shared\(\);(?=[^\n]*\n *load_shared_floats)",
        "",
        Found("race", "receive_rows", "consume", "maximum"),
        Found("uninitialised", "receive_rows", "consume", "maximum"),
    ),
    "buffers_not_waited_for": _mutant(
        "the peer's buffers are written again while it may still read them",
        r"\n *if \(chunk == 3 && !kFirst\) exchange\.wait_buffers[^;]*;",
        "",
        Found("race", "store_async_v2", "consume"),
        Found("race", "store_async_v4", "consume"),
    ),
    "release_without_fence": _mutant(
        "buffers are freed by a relaxed arrival alone",
        r'"fence\.release\.sync_restrict::shared::cta\.cluster;"\n',
        "",
        Found("race", "store_async_v2", "consume"),
        Found("race", "store_async_v4", "consume"),
        Found("race", "store_async_v4", "load"),
    ),
    "wait_without_fence": _mutant(
        "what has arrived is read after a relaxed wait alone",
        r" fence\.acquire\.sync_restrict::shared::cluster\.cluster;",
        "",
        Found("race", "receive_rows", "consume"),
        Found("race", "load_shared_words_3", "consume"),
        Found("race", "load_shared_words_3", "load"),
    ),
}
ALWAYS: Final = ("slot_released_early", "wait_without_fence")
"""Made in every run; all of them with --many-seeds."""
