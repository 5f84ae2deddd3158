"""RolePipeline: threads to threads, MMAs to threads and back, a role that waits for its MMAs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.rings.harness import (
    LANES,
    PANEL,
    ROWS,
    Done,
    Operands,
    Struct,
    Variant,
    empty_products,
    launch,
    program,
    small_integers,
)

STEPS: Final = 7
THREADS: Final = tuple(
    Variant("threads", stages, parts) for stages in (1, 2) for parts in (1, 2, 3)
)
PRODUCTS: Final = tuple(Variant("products", stages) for stages in (1, 2))
SHARES: Final = tuple(Variant("shares", stages, parts) for stages in (1, 2) for parts in (1, 2, 3))
# a producer of one slot, which waits for the products that it committed last
DRAIN: Final = Variant("drain", 1)
CLEAN: Final = {1: (*THREADS, *PRODUCTS, *SHARES, DRAIN), 2: (*PRODUCTS, *SHARES)}
MUTANTS: Final[dict[int, dict[Variant, set[str]]]] = {
    1: {
        Variant("threads", 2, 3, "no_wait"): {"race", "uninitialised"},
        Variant("threads", 1, 2, "no_acquire"): {"race", "over-arrival", "deadlock"},
        Variant("threads", 2, 1, "early_release"): {"race", "uninitialised"},
        Variant("threads", 1, 1, "no_flip"): {"race", "deadlock"},
        Variant("threads", 2, 2, "no_flip"): {"race", "deadlock"},
        Variant("products", 2, 1, "no_wait"): {"race", "uninitialised"},
        Variant("products", 2, 1, "no_acquire"): {"race", "over-arrival", "deadlock"},
        Variant("products", 1, 1, "thread_commit"): {"race"},
        Variant("shares", 2, 2, "no_wait"): {"race", "uninitialised"},
        Variant("shares", 1, 2, "no_acquire"): {"race", "over-arrival", "deadlock"},
        Variant("shares", 1, 1, "early_release"): {"race", "uninitialised"},
        Variant("drain", 1, 1, "no_wait"): {"race"},
    },
    2: {
        Variant("products", 2, 1, "no_acquire"): {"race", "over-arrival", "deadlock"},
        Variant("shares", 2, 2, "no_wait"): {"race", "uninitialised"},
        Variant("shares", 1, 1, "early_release"): {"race", "uninitialised"},
    },
}


def run(variant: Variant, ctas: int, **options: Any) -> Done:
    seed = options.get("seed", 0)
    if variant.kind == "threads":
        random = np.random.default_rng(seed)
        data: list[Any] = [random.integers(0, 2**31, (STEPS, variant.parts, LANES), np.uint32)]
        out, expected = np.zeros_like(data[0]), np.roll(data[0], -1, axis=2)
    elif variant.kind == "shares":
        shares = small_integers(seed, ctas, STEPS, variant.parts, 128, 2 * PANEL)
        operands = Operands.make(seed, ctas, 2 * variant.parts, 1)
        data = [operands.maps()[1], shares.view(np.uint16)]
        out, expected = empty_products(ctas, STEPS), products_of_shares(shares, operands.keys)
    else:
        operands = Operands.make(seed, ctas, 1, STEPS)
        loaded = variant.kind == "products"
        data = [operands.maps()[0], operands.maps()[1] if loaded else operands.stored_keys()]
        out, expected = empty_products(ctas, STEPS), operands.key_products(STEPS)
    kernels = program("roles.cu.j2", "roles", (*CLEAN[ctas], *MUTANTS[ctas]), ctas)
    threads = 160 if variant.kind == "shares" else 64
    args = [*data, out, np.int32(STEPS)]
    return Done(launch(kernels, variant.name, args, ctas, threads, **options), out, expected)


def products_of_shares(shares: Any, keys: Any) -> Any:
    """The lanes that are shown of the sums over all parts."""
    ctas, steps, parts = shares.shape[:3]
    left = shares[..., :LANES, :].astype(np.float32).reshape(ctas, steps, parts, LANES, 2, PANEL)
    right = keys[0, 0].astype(np.float32).reshape(parts, 2, ROWS, PANEL)
    return np.einsum("gsplhk,phrk->gslr", left, right)


ROLES: Final = Struct(run, CLEAN, MUTANTS)
