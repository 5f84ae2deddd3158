"""``fa4gen schema``: the JSON Schemas of fa4gen's files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import click

if TYPE_CHECKING:
    from fa4gen.config.expectations import JsonSchema

Kind = Literal["config", "sweep", "project", "launch", "table"]


@click.command(name="schema")
@click.argument("kind", type=click.Choice(get_args(Kind)), default="config")
def command(kind: Kind) -> None:
    """Print the JSON Schema of a kind of file, for editors that complete and check YAML and TOML.

    Kinds: config (the default), sweep, project (fa4gen.toml), launch (`fa4gen emulate --launch`),
    table (NAME.tuning.yaml, NAME.set.yaml, and files of several tables).

    With the YAML language server, begin a file with
    `# yaml-language-server: $schema=PATH/schema.json`; with Taplo, which reads TOML,
    `#:schema PATH/schema.json`.
    """
    from fa4gen.cli.output import print_json

    print_json(schema_of(kind))


def schema_of(kind: Kind) -> JsonSchema:
    """Return the schema of files of this kind."""
    from fa4gen.config.json_schema import editor_schema, models_schema

    title = f"fa4gen {kind}"
    match kind:
        case "config":
            return editor_schema()
        case "sweep":
            from fa4gen.config.sweep_file import SweepContent

            return models_schema(title, SweepContent)
        case "project":
            from fa4gen.config.project import ProjectFile

            return models_schema(title, ProjectFile)
        case "launch":
            from fa4gen.emulator.launch_file.model import LaunchFile

            return models_schema(title, LaunchFile)
        case "table":
            from fa4gen.config.set_file import SetContent, TablesFile

            return models_schema(title, SetContent, TablesFile)
