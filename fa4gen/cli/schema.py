"""``fa4gen schema``: the JSON Schema of configs."""

from __future__ import annotations

import click


@click.command(name="schema")
def command() -> None:
    """Print the JSON Schema of configs, for editors that complete and check YAML.

    With the YAML language server, begin a config with
    `# yaml-language-server: $schema=PATH/schema.json`.
    """
    from fa4gen.cli.output import print_json
    from fa4gen.config.json_schema import editor_schema

    print_json(editor_schema())
