"""The documents against the code: commands parse, examples work, tables and links are current."""

from __future__ import annotations

import ast
import builtins
import re
import shlex
import shutil
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench_parts
import click
import measured
import name_parts
import pytest
import readme_parts
import update
import yaml

from fa4gen import errors
from fa4gen.cli.main import COMMANDS, group
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config, load_mapping
from fa4gen.config.sweep import expand_sweep
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import DESIGNS
from fa4gen.runtime.device import find_device

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|(?:src|srcset)=\"([^\"]+)\"")
PICTURE = "docs/pictures/attention_h200.svg"
MOST_WORDS = 1200
"""The most words of README.md."""


def blocks(language: str) -> list[Any]:
    """The code blocks of all documents in one language, as parameters of a test."""
    return [
        pytest.param(match[2], id=f"{path.name}:{number}")
        for path in DOCUMENTS
        for number, match in enumerate(BLOCK.finditer(path.read_text(encoding="utf-8")))
        if match[1] == language
    ]


def yaml_blocks(key: str) -> list[Any]:
    return [block for block in blocks("yaml") if key in yaml.safe_load(block.values[0])]


def command_lines() -> list[Any]:
    """Every fa4gen command of a shell block, or between backquotes with an argument or option."""
    found: dict[str, None] = {}
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for language, block in BLOCK.findall(text):
            if language == "sh":
                found.update(dict.fromkeys(block.splitlines()))
            if language == "yaml" and "steps:" in block:
                found.update(dict.fromkeys(re.findall(r"- run: (.*)", block)))
        found.update(dict.fromkeys(re.findall(r"`(fa4gen \w+ [^`\n]+)`", BLOCK.sub("", text))))
    return [line for line in found if line.startswith("fa4gen ")]


def parse(line: str) -> None:
    """Parse a command line without running it; raises click's errors."""
    words = shlex.split(re.sub(r"\$\{\{.*?\}\}", "1", line), comments=True)[1:]
    words = words[: words.index(">")] if ">" in words else words
    if words[0].startswith("-"):
        return
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, f"no command {words[0]}"
    command.make_context(words[0], words[1:])


@lru_cache(maxsize=1)
def current_texts() -> dict[str, str]:
    return update.current_texts()


FILES = sorted(
    {file for file, *_ in update.PARTS} | bench_parts.pictures(ROOT).keys() | {name_parts.MODULE}
)


@pytest.mark.parametrize("file", FILES)
def test_what_follows_from_the_code_is_current(file) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert text == current_texts()[file], "run: python docs/update.py"


KEY_TABLES = re.compile(r"^### `kernel: (\w+)`(, every design| for (.*))$", re.MULTILINE)


def test_every_key_is_in_the_tables() -> None:
    from fa4gen.designs.registry import MODELS

    _, *parts = KEY_TABLES.split(update.key_table())
    tables = {
        (kernel, archs): re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)
        + re.findall(r"`(\w+)", rows.partition("Fixed, and")[2])
        for kernel, _, archs, rows in zip(*(parts[i::4] for i in range(4)), strict=True)
    }
    assert len(tables) == len(MODELS) + 2
    for row in MODELS:
        model = row.load()
        shared = set(tables[row.design.family.name, None])
        assert {"kernel", "name"} <= shared
        own = {*model.model_fields, *(row.key for row in model.FIXED)} - shared
        found = [set(keys) for (kernel, words), keys in tables.items() if words]
        assert not own or own in found, row.place.name


def test_the_tables_of_a_family_begin_with_what_all_its_designs_share() -> None:
    attention, gemm, _ = update.key_table().split(", every design\n")[1:]
    assert "`sm_90a`, `sm_100a`, `sm_103a`, `sm_100f` | required" in attention.partition("###")[0]
    assert "| `mask` |" in attention.partition("###")[0]
    assert "| `activation` |" in gemm.partition("###")[0]


def test_the_command_lines_are_found() -> None:
    lines = command_lines()
    assert len(lines) > 10
    assert {"verify", "sweep", "render"} <= {line.split()[1] for line in lines}


@pytest.mark.parametrize("line", command_lines())
def test_a_command_line_is_accepted(line, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "LIBRARY").touch()  # of --fa3, which has to be there
    (tmp_path / "mine").mkdir()  # of --templates, likewise
    parse(line)


@pytest.mark.compile
def test_the_first_kernel_is_made_by_the_commands_of_its_page(monkeypatch, tmp_path) -> None:
    from fa4gen.cli.main import main

    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/guide/first-kernel.md").read_text(encoding="utf-8")
    lines = [line for language, block in BLOCK.findall(text) if language == "sh"
             for line in block.splitlines() if line.startswith("fa4gen ")]  # fmt: skip
    commands = [shlex.split(line, comments=True)[1:] for line in lines]
    assert [words[0] for words in commands][:5] == [
        "init",
        "explain",
        "render",
        "compile",
        "verify",
    ]
    for words in commands:
        listed = ["--list-cases"] if words[0] == "verify" else []  # the cases run in other tests
        assert main([*words, *listed]) == 0, words
    files = {path.name for path in (tmp_path / "generated/sm_90a/my_kernel").iterdir()}
    assert files <= set(re.findall(r"my_kernel[\w.]+", text))


@pytest.mark.compile
@pytest.mark.skipif(find_device("sm_90a") is not None, reason="its mistake could hang a GPU")
def test_a_role_is_changed_and_proved_as_its_page_says(monkeypatch, tmp_path, capsys) -> None:
    from fa4gen.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    template = tmp_path / "mine/attention_sm90/load.cuh.j2"
    texts = []
    good = ""
    ran = []
    page = (ROOT / "docs/guide/own-templates.md").read_text(encoding="utf-8")
    for language, block in BLOCK.findall(page):
        if language == "yaml":
            (tmp_path / "my_kernel.yaml").write_text(block)
        elif language == "diff":
            good = template.read_text()
            template.write_text(patched(good, block))
        elif language == "toml":
            (tmp_path / "fa4gen.toml").write_text(block)
        elif language == "text":
            texts.append(block)
        for line in block.splitlines() if language == "sh" else ():
            is_wrong = "ring/327" in line
            assert main([*shlex.split(line)[1:]]) == is_wrong, line
            ran.append(line.split()[1])
            if is_wrong:
                found = numberless(capsys.readouterr().err)
    assert ran == ["templates", "templates", "render", "render", "verify", "verify"]
    race, stray, misspelt = texts
    assert numberless(" ".join(race.split())) in found
    assert numberless("reproduce it: fa4gen verify --templates mine my_kernel.yaml --seed") in found
    template.write_text(good)  # without the mistake
    assert main(["render"]) == 0
    assert "load_queries" in (tmp_path / "generated/sm_90a/my_kernel/my_kernel.cu").read_text()
    assert main(["check"]) == 0
    template.with_name("loader.cuh.j2").write_text("")
    capsys.readouterr()
    assert main(["explain"]) == 2
    assert capsys.readouterr().err == stray
    template.with_name("loader.cuh.j2").unlink()
    template.write_text(good + "{{ plan.num_stages_of_mine }}\n")
    assert main(["render"]) == 2
    message, hint = misspelt.splitlines()
    err = capsys.readouterr().err
    assert hint in err
    assert numberless(message) in numberless(err)


def patched(text: str, diff: str) -> str:
    """The text with the one change that ``diff``, without line numbers, shows."""
    lines = diff.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
    assert text.count(old) == 1, old
    return text.replace(old, new)


def numberless(text: str) -> str:
    return re.sub(r"\d+", "N", text)


def test_a_wrong_command_line_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        parse("fa4gen render --colour")
    with pytest.raises(AssertionError):
        parse("fa4gen rendr")


@pytest.mark.parametrize("text", yaml_blocks("kernel"))
def test_a_config_can_be_planned(text) -> None:
    assert build_plan(load_mapping(yaml.safe_load(text), "example").config).name == "example"


@pytest.mark.parametrize("text", yaml_blocks("matrix"))
def test_a_sweep_has_cases_that_work(text, tmp_path) -> None:
    path = tmp_path / "example.yaml"
    path.write_text(text)
    cases = expand_sweep(path).cases
    assert len(cases) > 2
    assert [case.problems for case in cases if case.problems] == []


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    (text,) = [one.values[0] for one in yaml_blocks("jobs")]
    steps = yaml.safe_load(text)["jobs"]["kernels"]["steps"]
    (given,) = [step["with"] for step in steps if "/fa4gen@" in step["uses"]]
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert {"configs", "sweep", "shard"} <= given.keys() <= action["inputs"].keys()


def test_the_hook_of_pre_commit_is_there() -> None:
    (text,) = [one.values[0] for one in yaml_blocks("repos")]
    ((wanted,),) = [repo["hooks"] for repo in yaml.safe_load(text)["repos"]]
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["id"] == wanted["id"]
    parse(hook["entry"])
    for path in ("fa4gen.toml", "kernels/k.yaml", "generated/sm_90a/k/k.cu"):
        assert re.search(hook["files"], path)


@pytest.mark.parametrize("text", blocks("python"))
def test_an_example_is_python(text) -> None:
    compile(text, "example", "exec")
    assert len(text.splitlines()) <= 13


def stands_alone(text: str) -> bool:
    """Whether a block defines all the names that it uses: others show a line of a program."""
    used, given = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.alias):
            given.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else given).add(node.id)
    return used <= given


def kernel_archs(text: str) -> set[str]:
    """The architectures of the kernels that a block loads: of shipped configs and of dicts."""
    archs = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "fa4gen.load":
            config = ast.literal_eval(node.args[0])
            if isinstance(config, str):
                (path,) = find_configs([config])
                archs.add(load_config(path).config.arch)
            else:
                archs.add(config["arch"])
    return archs


def examples() -> list[Any]:
    """The blocks that stand alone, each with the mark of the GPU that its kernels are for."""
    found = []
    for block in blocks("python"):
        (text,) = block.values
        if stands_alone(text):
            found.append(
                pytest.param(text, id=block.id, marks=pytest.mark.gpu(*kernel_archs(text)))
            )
    return found


def test_an_example_is_run_by_the_gpu_that_its_kernels_are_for() -> None:
    archs = {}
    for example in examples():
        (mark,) = example.marks
        assert len(mark.args) <= 1, f"{example.id}: no GPU runs the kernels of {mark.args}"
        archs[example.id] = mark.args
    of_page = [of for name, of in archs.items() if name.startswith("quantised-outputs.md")]
    assert of_page == [("sm_90a",), ("sm_90a",), ("sm_100a",)]
    assert kernel_archs("import fa4gen; fa4gen.load({'arch': 'sm_103a'})") == {"sm_103a"}
    assert kernel_archs("print(1)") == set()


@pytest.mark.parametrize("text", examples())
def test_an_example_runs(text, gpu) -> None:
    if "import torch" in text:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
    exec(compile(text, "example", "exec"), {})


LINKED = [*DOCUMENTS, *sorted(ROOT.glob("examples/*/README.md"))]


@pytest.mark.parametrize("path", LINKED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_links_lead_somewhere(path) -> None:
    text = path.read_text(encoding="utf-8")
    links = ["".join(groups) for groups in LINK.findall(text)]
    targets = [link for link in links if not link.startswith(("http", "mailto"))]
    assert [link for link in targets if not (path.parent / link).exists()] == []


def headings(path: Path) -> set[str]:
    """The anchors of a page, as hosting services make them of its headings."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", LINKED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_anchors_are_headings(path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text(encoding="utf-8"))
    missing = [
        f"{file}#{anchor}"
        for file, anchor in links
        if not file.startswith("http")
        and anchor not in headings(path.parent / file if file else path)
    ]
    assert missing == []


def test_links_of_parts_are_relative_to_their_page() -> None:
    part = '[a](../b.c#d) <img src="pictures/e.svg"> [f](https://g.org/h) [i](#j)'
    assert update.moved(part, "README.md") == part
    assert update.moved(part, "docs/measurements/page.md") == (
        '[a](../../b.c#d) <img src="../pictures/e.svg"> [f](https://g.org/h) [i](#j)'
    )


def test_the_site_has_no_links_to_files_that_it_lacks() -> None:
    import site_links

    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide/page.md"))
    text = "[a](../reference/b.md#c) [d](../../README.md) [e](https://f.org) [g](h.md)"
    shown = site_links.on_page_markdown(text, page=page)
    assert shown == "[a](../reference/b.md#c) d [e](https://f.org) [g](h.md)"


def test_messages_of_the_troubleshooting_page_are_those_of_the_code() -> None:
    text = (ROOT / "docs/guide/troubleshooting.md").read_text(encoding="utf-8")
    symptoms = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    messages = [quoted for symptom in symptoms for quoted in re.findall(r"\*([^*]+)\*", symptom)]
    assert len(messages) > 4
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "fa4gen").rglob("*.py"))
    words = [part.strip() for message in messages for part in re.split(r"\.\.\.|\d+", message)]
    assert [part for part in words if part and part.strip(" ,") not in code] == []


def test_every_page_is_in_the_index_and_in_the_site() -> None:
    folder = ROOT / "docs"
    pages = {path.relative_to(folder).as_posix() for path in folder.glob("**/*.md")}
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert set(re.findall(r"[\w/-]+\.md", str(site))) == pages
    index = (folder / "index.md").read_text(encoding="utf-8")
    notes = (folder / "how-it-works/notes/index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\(([\w/-]+\.md)\)", index))
    listed |= {f"how-it-works/notes/{name}" for name in re.findall(r"\(([\w-]+\.md)\)", notes)}
    assert pages - listed == {"index.md"}


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/guide/*.md")), ids=lambda path: path.name)
def test_a_page_of_the_guide_is_short(path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 150


def test_the_walk_from_yaml_to_proof_is_through_fifteen_files() -> None:
    text = (ROOT / "docs/how-it-works/from-yaml-to-proof.md").read_text(encoding="utf-8")
    steps = re.findall(r"^(\d+)\. \[", text, re.MULTILINE)
    files = set(re.findall(r"\]\(\.\./\.\./([^)]+)\)", text))
    assert [int(step) for step in steps] == list(range(1, len(files) + 1))
    assert len(files) <= 15


def test_the_two_commands_come_first_and_exist() -> None:
    section = README.partition("## Two commands")[2].partition("\n## ")[0]
    commands = [text.strip() for language, text in BLOCK.findall(section) if language == "sh"]
    assert commands == ["./run demo", "./run test"]
    script = (ROOT / "run").read_text()
    assert (ROOT / "run").stat().st_mode & 0o111
    for target in ("demo", "test"):
        assert f"\n{target})\n" in script
        assert f"\n{target}:\n\t./run {target}\n" in (ROOT / "Makefile").read_text()


def test_the_environment_is_activated_before_fa4gen_is_typed() -> None:
    shells = [text for language, text in BLOCK.findall(README) if language == "sh"]
    first = next(text for text in shells if "fa4gen " in text)
    assert first.startswith(". .venv/bin/activate")


def test_the_readme_has_the_sizes_that_the_script_says() -> None:
    script = (ROOT / "run").read_text()
    section = README.partition("## Two commands")[2].partition("\n## ")[0]
    sizes = re.findall(r"\d+ MB", section)
    assert len(sizes) == 2
    assert f"takes {sizes[0]} of disk; the tests add {sizes[1]}" in script


def test_the_readme_shows_a_recorded_program_before_anything_else() -> None:
    assert README.index("fa4gen record") < README.index(PICTURE)


def test_ci_runs_the_readmes_test_command() -> None:
    assert " ./run test " in (ROOT / ".ci" / "run").read_text()
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_readme_is_short_and_begins_with_a_picture_and_a_role() -> None:
    assert len(README.split()) <= MOST_WORDS
    places = [README.index(text) for text in (PICTURE, "```cuda", "## Two commands")]
    assert places == sorted(places)
    assert README[: places[2]].count("\n## ") == 0


def test_the_role_in_the_readme_is_that_of_the_generated_kernel(tmp_path) -> None:
    kernel = ROOT / readme_parts.KERNEL
    code = BLOCK.findall(readme_parts.role_section(ROOT))[0][1]
    assert 12 <= len(code.splitlines()) <= 18
    assert all(line.strip() in kernel.read_text() for line in code.splitlines())
    copy = tmp_path / readme_parts.KERNEL
    copy.parent.mkdir(parents=True)
    shutil.copy(kernel, copy)
    copy.write_text(kernel.read_text().replace(f" {readme_parts.FUNCTION}(", " other("))
    with pytest.raises(ValueError, match="no function 'step'"):
        readme_parts.role_section(tmp_path)


def test_exit_statuses_are_those_of_the_errors() -> None:
    section = COMMANDS_PAGE.partition("| exit status |")[2].partition("\n\n")[0]
    listed = {int(status) for status in re.findall(r"^\| (\d) \|", section, re.MULTILINE)}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = {kind.exit_status for kind in kinds if issubclass(kind, errors.Fa4genError)}
    assert listed == raised | {0}


def test_environment_variables_are_those_of_the_code() -> None:
    section = COMMANDS_PAGE.partition("| environment variable |")[2].partition("\n\n")[0]
    listed = set(re.findall(r"`((?:FA4GEN|CUDA)_\w+)`", section))
    sources = [*(ROOT / "fa4gen").rglob("*.py"), ROOT / "hatch_build.py"]
    code = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert listed == set(re.findall(r"""["'](FA4GEN_[A-Z_]+|CUDA_HOME|CUDA_PATH)["']""", code))


def test_the_map_names_every_folder() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    folders = re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE)
    there = [
        path.relative_to(ROOT).as_posix()
        for top in ("fa4gen", "templates")
        for path in sorted((ROOT / top).iterdir())
        if path.is_dir() and path.name != "__pycache__"
    ]
    assert "`templates/<design>/`" in text
    of_designs = {f"templates/{design.name}" for design in DESIGNS}
    assert {folder for folder in folders if folder.count("/") == 1} == set(there) - of_designs


def test_the_bounds_are_those_of_verify() -> None:
    from fa4gen.verify import tolerance

    proof = (ROOT / "docs/how-it-works/proof.md").read_text(encoding="utf-8")
    section = proof.partition("| error | bound |")[2].partition("\n\n")[0]
    listed = [float(factor) for factor in re.findall(r"([\d.]+) \S that of NumPy", section)]
    assert listed == [
        tolerance.FROBENIUS_FACTOR,
        tolerance.ROW_FACTOR,
        tolerance.ELEMENT_FACTOR,
        tolerance.LSE_FACTOR,
    ]


def test_every_command_is_in_the_table_of_commands() -> None:
    assert {name for name in COMMANDS if f"`fa4gen {name}`" not in COMMANDS_PAGE} == set()


def test_figures_come_from_the_results_of_bench(tmp_path) -> None:
    series = {"tflops": 601.4}
    size = {"rows": 1024, "ours": series, "peers": {"fa3": series}, "ratios": {"best": 1.014}}
    config = {"name": "k", "sizes": [size], "geometric_means": {"best": 1.0143}}
    data = {
        "date": "2026-11-21T08:00:00+00:00",
        "gpu": {"name": "NVIDIA H200"},
        "protocol": {"tokens": 16384, "columns": 2048, "rounds": 3},
        "versions": {"fa4gen": "0.1.0"},
        "configs": [config, {"name": "failed", "sizes": [], "geometric_means": {}}],
    }
    path = tmp_path / bench_parts.ATTENTION
    path.parent.mkdir(parents=True)
    lines = measured.lines_of(data, chip="", date="", commit="")
    path.write_text(measured.text_of(lines))
    section = bench_parts.attention(tmp_path)
    assert "NVIDIA H200, 2026-11-21" in section
    assert "| `k` | 601 (1.01) | 1.014 |" in section
    assert "failed" not in section


def test_limits_are_those_of_the_code() -> None:
    from fa4gen.cli import launch_files
    from fa4gen.config import sweep, sweep_names, text, yaml_positions
    from fa4gen.config.load import config_schema

    def longest(key: str) -> set[int]:
        models = config_schema()["$defs"].values()
        keys = [model.get("properties", {}).get(key) for model in models]
        return {int(most) for each in keys for most in re.findall(r"'maxLength': (\d+)", str(each))}

    section = COMMANDS_PAGE.partition("## Limits")[2].partition("\n## ")[0]
    rows = [int(number) for number in re.findall(r"\| (\d+) \|$", section, re.MULTILINE)]
    (name,) = longest("name")
    (activation,) = longest("activation")
    assert name == sweep_names.MAX_LENGTH
    assert rows == [
        name,
        activation,
        text.MAX_BYTES,
        yaml_positions.MAX_VALUES,
        yaml_positions.MAX_BRACKETS,
        sweep.MAX_CASES,
        launch_files.MAX_BYTES,
        yaml_positions.MAX_VALUES,
        launch_files.MAX_PTX_BYTES,
    ]


def test_the_statuses_of_signals_are_those_of_the_code() -> None:
    from fa4gen.cli.main import CLOSED_PIPE, INTERRUPTED
    from fa4gen.termination import TERMINATED

    line = COMMANDS_PAGE.partition("Signals: ")[2].partition("\n\n")[0]
    assert re.findall(r"\d+", line) == [str(s) for s in (INTERRUPTED, TERMINATED, CLOSED_PIPE)]
