"""Tests that kinds of products share: variants are clean in verify's cases, mutants are reported.

A file of tests has subclasses with its own tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from fa4gen.errors import ConfigError
from fa4gen.verify.family import family_of
from tests.kernels.gemm.emulation import noting
from tests.kernels.source_mutation import Change, kernel_in, mutated, verify

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from fa4gen.verify.verdict import Verdict
    from tests.kernels.source_mutation import CanChange, Kernel

Keys = dict[str, Any]
MOST_WORK = 60
"""The largest cost of a case of a random kernel, in blocks of k or so."""


@dataclass(frozen=True)
class ReportedMutant:
    """A changed kernel, the emulated case that has to fail, and words of the failure."""

    config: str
    case: str
    changes: tuple[CanChange, ...]
    says: str = "numbers: "
    in_header: bool = False


def one(
    config: str, case: str, pattern: str, new: str, says: str = "numbers: ", times: int = 1
) -> ReportedMutant:
    """Return a mutant with a single change."""
    return ReportedMutant(config, case, (Change(pattern, new, times),), says)


def messages(verdict: Verdict) -> str:
    """Return all failures of a verdict, a line each."""
    failures = [failure for case in verdict.cases for failure in case.failures]
    return "\n".join(f"{failure.check}: {failure.message}" for failure in failures)


def check_clean(kernel: Kernel, *cases: str, seed: int = 0) -> None:
    """Assert that verify passes a kernel on the cases of some names."""
    for case in cases:
        verdict, _ = verify(kernel, case, seed)
        assert verdict.num_cases
        assert verdict.passed, messages(verdict)


def product(keys: Keys) -> Kernel:
    """Return the kernel of a product with ``keys``; ConfigError where there is none."""
    return kernel_in(json.dumps({"kernel": "gemm", "num_stages": 2, **keys}))


class VariantTests:
    """Verify passes variants of a kernel on some cases, and with --many-seeds on all."""

    variants: ClassVar[Mapping[str, Keys]]
    """The keys that each variant has in addition to ``common``."""
    common: ClassVar[Keys]
    cases: ClassVar[tuple[str, ...]]
    seeds: ClassVar[int] = 2

    def cases_of(self, kernel: Kernel) -> tuple[str, ...]:
        """Return the cases of every run."""
        return self.cases

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give the tests below a variant each."""
        if "variant_name" in metafunc.fixturenames:
            metafunc.parametrize("variant_name", self.variants)

    @pytest.mark.compile
    def test_a_variant_is_clean(self, variant_name: str) -> None:
        kernel = product({**self.common, **self.variants[variant_name]})
        check_clean(kernel, *self.cases_of(kernel))

    @pytest.mark.seeds
    def test_a_variant_is_clean_in_more_cases(self, variant_name: str) -> None:
        kernel = product({**self.common, **self.variants[variant_name]})
        there = [case.name for case in family_of(kernel.plan).emulated_cases()]
        for seed in range(self.seeds):
            check_clean(kernel, *there, seed=seed)


class DrawnTests:
    """Verify passes kernels of random keys on cases drawn among the cheap ones."""

    common: ClassVar[Keys]
    num_drawn: ClassVar[int] = 2
    always: ClassVar[tuple[str, ...]] = ()
    """Checked in addition."""

    def keys(self, random: Random) -> Keys:
        """Draw keys, which may have no plan."""
        raise NotImplementedError

    def check(self, seed: int) -> bool:
        """Check a kernel drawn by ``seed``; False where there is none."""
        random = Random(seed)
        keys = self.keys(random)
        try:
            kernel = product({**self.common, **keys})
        except ConfigError:
            return False
        family = family_of(kernel.plan)
        cases = [case for case in family.emulated_cases() if family.cost(case) < MOST_WORK]
        drawn = random.sample([case.name for case in cases], self.num_drawn)
        with noting(f"drawn by {type(self).__name__}().check({seed}): {keys}"):
            check_clean(kernel, *drawn, *self.always, seed=seed)
        return True

    @pytest.mark.compile
    def test_whatever_is_planned_is_clean(self, first_seed: int) -> None:
        assert any(self.check(first_seed + attempt) for attempt in range(1000))

    @pytest.mark.seeds
    @pytest.mark.parametrize("seed", range(100))
    def test_whatever_is_planned_is_clean_under_many_seeds(self, seed: int) -> None:
        self.check(seed)


class MutantTests:
    """Verify reports each mutant in its case, and passes the kernel without the change."""

    configs: ClassVar[Mapping[str, Keys]]
    """All keys of the kernels that are changed, by the names that mutants have for them."""
    mutants: ClassVar[Mapping[str, ReportedMutant]]
    always: ClassVar[Collection[str]]
    """Made in every run; all of them with --many-seeds."""

    def kernel(self, config: str) -> Kernel:
        """Return the kernel of a name."""
        return kernel_in(json.dumps(self.configs[config]))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give the tests below a mutant, or a config, each."""
        assert set(self.always) <= set(self.mutants)
        tables: dict[str, Any] = {
            "config": self.configs,
            "any_name": self.mutants,
            "name": [
                pytest.param(name, marks=[] if name in self.always else [pytest.mark.seeds])
                for name in self.mutants
            ],
        }
        for argument, table in tables.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, table)

    def test_the_mutant_can_still_be_made(self, any_name: str) -> None:
        mutant = self.mutants[any_name]
        kernel = self.kernel(mutant.config)
        assert mutated(kernel, mutant) != kernel

    @pytest.mark.compile
    def test_what_is_not_mutated_is_clean(self, config: str) -> None:
        cases = {mutant.case for mutant in self.mutants.values() if mutant.config == config}
        assert cases, f"no mutant is of {config}"
        check_clean(self.kernel(config), *sorted(cases))

    @pytest.mark.compile
    def test_a_mutant_is_reported_by_verify(self, name: str) -> None:
        mutant = self.mutants[name]
        verdict, _ = verify(mutated(self.kernel(mutant.config), mutant), mutant.case, 0)
        assert verdict.num_cases
        assert not verdict.passed, f"{name} passes"
        assert mutant.says in messages(verdict)
