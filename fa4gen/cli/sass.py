"""``fa4gen sass``: shows a kernel's machine code under its source lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from fa4gen.cli.completion import complete_config
from fa4gen.cli.generated import project_records, render_one
from fa4gen.cli.options import (
    OutputFormat,
    compiler_option,
    format_option,
    set_option,
)
from fa4gen.cli.own_templates import templates_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.settings import Setting
    from fa4gen.toolchain.disassembly import Instruction

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def _read_lines(_ctx: click.Context, _option: click.Parameter, value: str | None) -> range | None:
    """Read "400-450", or "400"."""
    if value is None:
        return None
    match = _RANGE.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not FIRST-LAST, such as 400-450")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


@click.command(name="sass")
@click.argument("config", shell_complete=complete_config)
@set_option
@click.option(
    "--lines",
    callback=_read_lines,
    metavar="FIRST-LAST",
    help="Only these lines of the .cu, such as those of a role.",
)
@compiler_option
@templates_option
@format_option
def command(
    config: str,
    settings: tuple[Setting, ...],
    lines: range | None,
    compiler: str,
    templates: Path | None,
    output_format: OutputFormat,
) -> None:
    """Show each line of a kernel's .cu with the machine instructions (SASS) that it became.

    The kernel is compiled with -lineinfo and disassembled by nvdisasm, which is looked for on PATH,
    among pip's packages (nvidia-cuda-nvdisasm) and in CUDA_HOME; without it the command ends with
    status 4. Instructions of a header's functions stand under the line that calls these. No GPU is
    needed.
    """
    from fa4gen.cli.choosing import choose_candidates
    from fa4gen.cli.output import note, print_json
    from fa4gen.toolchain.compile import find_compiler
    from fa4gen.toolchain.disassembly import disassemble, find_nvdisasm
    from fa4gen.toolchain.model import Unit

    item = render_one(config, templates, settings)
    tool, nvdisasm = find_compiler(compiler), find_nvdisasm()
    (item,) = choose_candidates([item], project_records(), templates, jobs=1)
    kernel = item.kernel
    source = f"{kernel.name}.cu"
    built = tool.build(Unit(kernel.name, kernel.source, kernel.headers, kernel.arch, True))
    by_line: dict[int, list[Instruction]] = {}
    for instruction in disassemble(nvdisasm, built.cubin, source):
        if lines is None or instruction.line in lines:
            by_line.setdefault(instruction.line, []).append(instruction)
    texts = dict(enumerate(kernel.source.splitlines(), 1))
    compiled = f"{tool.name} {tool.version}"
    if output_format == "json":
        print_json(
            {
                "kernel": kernel.folder,
                "compiler": compiled,
                "lines": [
                    {
                        "line": line,
                        "source": texts.get(line, ""),
                        "instructions": [{"address": i.address, "text": i.text} for i in code],
                    }
                    for line, code in sorted(by_line.items())
                ],
            }
        )
        return
    for line, code in sorted(by_line.items()):
        _print_line(line, texts, code)
    number = sum(map(len, by_line.values()))
    note(f"{kernel.folder}/{source}: {number} instructions of {len(by_line)} lines, {compiled}")


def _print_line(line: int, texts: Mapping[int, str], code: Sequence[Instruction]) -> None:
    """Print a source line, or a heading for code that has none, and its instructions."""
    click.echo(f"{line:5}  {texts[line]}" if line else "    -  no line of the .cu")
    for instruction in code:
        click.echo(f"         {instruction.address:05x}  {instruction.text}")
