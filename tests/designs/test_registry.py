"""The registry: its rows lead somewhere, and nothing beside it chooses by design or family."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

import fa4gen
from fa4gen.config.find import find_configs
from fa4gen.designs import registry
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.plans import Plan
from fa4gen.render.environment import open_templates
from tests.shipped import loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.registry import ConfigModel, Design, Family

PACKAGE = Path(fa4gen.__file__).parent
DOCS = PACKAGE.parent / "docs"
TEMPLATES = PACKAGE.parent / "templates"
IDS = [design.name for design in registry.DESIGNS]


@pytest.mark.parametrize("design", registry.DESIGNS, ids=IDS)
def test_a_row_leads_somewhere(design: Design) -> None:
    plan = design.plan.load()
    assert design.plan.has(plan)
    assert design.planner.load().__annotations__["return"] == plan.__name__
    assert open_templates().source(design.template).text
    assert (PACKAGE / "designs" / design.name / "plan.py").is_file()
    from fa4gen.tune.tiles import Tiles

    members = {name for name in vars(Tiles) if not name.startswith("_")}
    assert [name for name in members if not hasattr(design.tiles.load(), name)] == []
    assert set(design.where) <= set(registry.DECIDING_IN_ARCH)


@pytest.mark.parametrize("row", registry.FAMILIES.values(), ids=list(registry.FAMILIES))
def test_the_rooms_have_what_the_row_names(row: Family) -> None:
    from fa4gen.bench.family import Family as BenchFamily
    from fa4gen.tune.family import Family as TuneFamily
    from fa4gen.vendoring.family import Family as VendorFamily
    from fa4gen.verify.family import Family as VerifyFamily

    assert callable(row.launcher.load().prepare)
    for protocol, place in (
        (VerifyFamily, row.verify), (BenchFamily, row.bench), (VendorFamily, row.vendor),
        (TuneFamily, row.tune),
    ):  # fmt: skip
        if place is None:
            continue
        members = {name for name in vars(protocol) if not name.startswith("_")}
        assert [name for name in members if not hasattr(place.load(), name)] == []


def test_a_place_that_does_not_exist_is_no_secret() -> None:
    with pytest.raises(ModuleNotFoundError):
        registry.ImportPath("fa4gen.nowhere:X").load()
    with pytest.raises(AttributeError):
        registry.ImportPath("fa4gen.designs.build:X").load()


def test_every_folder_and_every_plan_has_one_row() -> None:
    folders = {path.parent.name for path in (PACKAGE / "designs").glob("*/plan.py")}
    assert sorted(folders) == sorted(IDS)
    assert {design.plan.load() for design in registry.DESIGNS} == set(Plan.__args__)
    assert len({design.plan for design in registry.DESIGNS}) == len(registry.DESIGNS)


MODEL_IDS = [f"{model.design.name}-{model.archs[0]}" for model in registry.MODELS]


@pytest.mark.parametrize("row", registry.MODELS, ids=MODEL_IDS)
def test_a_model_takes_the_values_that_decide_on_it(row: ConfigModel) -> None:
    keys = [key for key in registry.DECIDING if row.values(key)]
    for key in registry.DECIDING:
        field = row.load().model_fields.get(key)
        assert row.values(key) == (None if field is None else get_args(field.annotation)), key
    for values in product(*(row.values(key) or () for key in keys)):
        assert registry.models_of(dict(zip(keys, values, strict=True))) == [row]


@pytest.mark.parametrize("row", registry.MODELS, ids=MODEL_IDS)
def test_a_model_has_each_key_of_its_siblings_or_says_why_not(row: ConfigModel) -> None:
    model = row.load()
    siblings = [
        other.load()
        for other in registry.MODELS
        if other.design.family is row.design.family and other.archs == row.archs
    ]
    keys = {key for other in siblings for key in other.model_fields}
    assert sorted(fixed.key for fixed in model.FIXED) == sorted(keys - set(model.model_fields))
    assert all(fixed.values and fixed.because for fixed in model.FIXED)
    assert bool(model.FIXED) == bool(model.WHAT)


def test_shipped_configs_use_every_design() -> None:
    configs = [loaded(path).config for path in find_configs(())]
    by_design = {registry.design_for(config).name: config for config in configs}
    assert set(by_design) == set(IDS)
    for name, config in by_design.items():
        plan = build_plan(config)
        assert registry.design_of(plan).name == name
        assert registry.family_of(plan).name == plan.kernel == config.kernel


TYPES = {model.load().__name__ for model in registry.MODELS} | {
    cls.__name__
    for design in registry.DESIGNS
    for cls in design.plan.load().__mro__
    if cls.__name__ not in ("object", "KernelPlan")
}
NAMES = {*registry.FAMILIES, *IDS}
ABOVE = [
    path
    for path in sorted([*PACKAGE.rglob("*.py"), *DOCS.glob("*.py")])
    if PACKAGE / "config" not in path.parents and path != PACKAGE / "designs" / "registry.py"
]


def words_in(tree: ast.AST) -> set[str]:
    """The texts that ``tree`` has."""
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def questions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that ask of which type a plan or a config is, or what its family is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "type"):
            asked = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & TYPES
            if asked:
                yield node.lineno, f"asks for {', '.join(sorted(asked))}"
        if isinstance(node, ast.Compare) and NAMES & words_in(node):
            yield node.lineno, "compares with a family's or a design's name"
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", "") == "startswith"
            and any(word.startswith(tuple(registry.FAMILIES)) for word in words_in(node))
        ):
            yield node.lineno, "asks how a name begins"
        if isinstance(node, ast.Dict):
            keys = {k.value for k in node.keys if isinstance(k, ast.Constant)}
            types = {k.id for k in node.keys if isinstance(k, ast.Name)}
            if keys & NAMES or types & TYPES:
                yield node.lineno, "has an entry for a family or a design"


def test_nothing_else_chooses_by_design_or_family() -> None:
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{line} {what}"
        for path in ABOVE
        for line, what in questions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


ASKS = re.compile(r"plan\.(?:kernel|arch|depth)\s*[!=]=|plan\.\w+ is (?:not )?defined")
"""A template's question for the family, or for one design of it."""


def test_templates_ask_for_properties_not_for_the_family() -> None:
    asking = [
        path.relative_to(TEMPLATES).as_posix()
        for path in sorted(TEMPLATES.rglob("*.j2"))
        if "vendored" not in path.parts and ASKS.search(path.read_text())
    ]
    assert asking == []
    for found in ("{% if plan.depth == 512 %}", "plan.a_major is defined", 'plan.kernel!="gemm"'):
        assert ASKS.search(found)


def test_tests_of_vendoring_take_families_from_one_place() -> None:
    asking = [
        path.name
        for path in sorted((Path(__file__).parents[1] / "vendoring").rglob("*.py"))
        if re.search(r"isinstance\(plan, ", path.read_text())
    ]
    assert asking == []


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(plan, GemmPlan)",
        "isinstance(plan, FA4Config | HopperGemmPlan)",
        "type(plan) is HopperAttentionPlan and type(Depth512Config)",
        "plan.kernel == 'gemm'",
        "'attention' in names",
        "name.startswith('gemm_sm90')",
        "{'gemm': 1}",
        "{FA4Config: 1}",
    ],
)
def test_such_questions_are_found(code: str) -> None:
    assert list(questions(ast.parse(code)))
    assert not list(questions(ast.parse("isinstance(plan, KernelPlan) and plan.kernel == name")))


DESIGNS_FOLDER = PACKAGE / "designs"


@pytest.mark.parametrize("folder", sorted(p.parent for p in DESIGNS_FOLDER.glob("*/plan.py")))
def test_a_design_imports_from_no_other(folder: Path) -> None:
    others = [
        f"{path.name}: {module}"
        for path in sorted(folder.glob("*.py"))
        for module in re.findall(r"from fa4gen\.designs\.(\w+)\.", path.read_text())
        if module not in (folder.name, "common")
    ]
    assert others == []


def test_templates_of_a_design_include_from_no_other() -> None:
    others = []
    for path in sorted(TEMPLATES.glob("*/sm*/*.j2")):
        own = path.parent.relative_to(TEMPLATES).as_posix()
        for name in re.findall(r'{% *(?:include|from|import) "([\w/.]+)"', path.read_text()):
            folder = name.rpartition("/")[0]
            if re.fullmatch(r"\w+/sm\w+", folder) and folder != own:
                others.append(f"{path.relative_to(TEMPLATES)}: {name}")
    assert others == []
