"""Reads one YAML document into plain data and records the place of every key and value.

The composed node tree is walked rather than constructed: positions survive, no tag can run code,
and errors that YAML itself accepts (a key given twice) are found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from yaml.reader import ReaderError

from fa4gen.errors import ConfigError, Problem
from fa4gen.yaml_scalars import meaning_of

if TYPE_CHECKING:
    from collections.abc import Mapping

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of the document to a value; () is the whole document."""

MAX_BRACKETS = 100
MAX_VALUES = 20_000
"""Values of one document, aliases counted each time: far more than any config has."""

_PLAIN = "tag:fa4gen,2025:plain"
_STR = "tag:yaml.org,2002:str"
_MAP = "tag:yaml.org,2002:map"
_SEQ = "tag:yaml.org,2002:seq"


class Place(NamedTuple):
    """The first characters of a key (of a list item: the item) and its value; all count from 1."""

    line: int
    column: int
    value_line: int
    value_column: int
    text_column: int = 0
    """The column of the first character of a text written on one line as it is; 0 for others."""


@dataclass(frozen=True)
class Document:
    """A YAML document as plain data."""

    value: Any
    """Dicts, lists and scalars; None for an empty document."""
    places: Mapping[KeyPath, Place]
    notes: Mapping[KeyPath, str]
    """Notes on YAML's reading of values that may surprise: shown when the value is refused."""
    problems: tuple[Problem, ...]
    """Problems of the document; ``value`` holds a placeholder at each of ``unreadable``."""
    unreadable: frozenset[KeyPath]


def read_document(
    text: str, file: str, kind: str = "config", max_values: int = MAX_VALUES
) -> Document:
    """Parse ``text``; ``file`` is the name that messages give it, ``kind`` what it should be.

    Raises ConfigError where the text is not YAML; other problems are in ``Document.problems``.
    """
    try:
        node = _PlainLoader(text, max_values).get_single_node()
    except ReaderError as error:
        raise ConfigError(_character_problem(error, text, file)) from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_syntax_problem(error, text, file)) from error
    except RecursionError as error:
        raise ConfigError(_too_much("values nested too deeply", file, kind)) from error
    walk = _Walk(file, kind, max_values)
    value = None
    if node is not None:
        walk.places[()] = Place(*_position(node), *_position(node))
        try:
            value = walk.value_of(node, ())
        except RecursionError as error:
            raise ConfigError(_too_much("values nested too deeply", file, kind)) from error
    return Document(
        value, walk.places, walk.notes, tuple(walk.problems), frozenset(walk.unreadable)
    )


class _PlainLoader(yaml.BaseLoader):
    """Marks bare words by a tag of their own; their meaning is decided while walking."""

    def __init__(self, text: str, max_values: int) -> None:
        super().__init__(text)
        self._max_values = max_values
        self._num_values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._num_values += 1
        if self._num_values > 2 * self._max_values:  # with keys
            raise yaml.MarkedYAMLError(
                problem=f"more than {self._max_values} values", problem_mark=self.get_mark()
            )
        return super().compose_node(parent, index)

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag

    def fetch_flow_collection_start(self, token_class: Any) -> None:
        # PyYAML takes time quadratic in the depth.
        if self.flow_level >= MAX_BRACKETS:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MAX_BRACKETS} brackets inside each other",
                problem_mark=self.get_mark(),
            )
        super().fetch_flow_collection_start(token_class)


@dataclass
class _Walk:
    file: str
    kind: str
    max_values: int
    places: dict[KeyPath, Place] = field(default_factory=dict)
    notes: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unreadable: set[KeyPath] = field(default_factory=set)
    open_nodes: list[yaml.Node] = field(default_factory=list)
    num_values: int = 0

    def value_of(self, node: yaml.Node, path: KeyPath) -> Any:
        self.num_values += 1
        if self.num_values > self.max_values:
            what = f"more than {self.max_values} values"
            raise ConfigError(_too_much(what, self.file, self.kind))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if any(node is outer for outer in self.open_nodes):
            raise ConfigError(
                self._problem(node, "an alias (*) is inside the value that it repeats", path)
            )
        self.open_nodes.append(node)
        value: Any
        if isinstance(node, yaml.MappingNode):
            self._refuse_tag(node, _MAP, path)
            value = self._mapping(node, path)
        else:
            assert isinstance(node, yaml.SequenceNode)
            self._refuse_tag(node, _SEQ, path)
            value = []
            for index, item in enumerate(node.value):
                self.places[*path, index] = Place(*_position(item), *_position(item))
                value.append(self.value_of(item, (*path, index)))
        self.open_nodes.pop()
        return value

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            here = (*path, key)
            if key in values:
                first = self.places[here]
                self._add(
                    key_node,
                    f"the key {key} is given twice: first at line {first.line}, "
                    f"column {first.column}, and again here",
                    here,
                    "Remove one of the two.",
                )
                continue
            self.places[here] = Place(
                *_position(key_node), *_position(value_node), _text_column(value_node)
            )
            values[key] = self.value_of(value_node, here)
        return values

    def _key(self, node: yaml.Node, path: KeyPath) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self._add(node, "a key must be a word, not a list or mapping", path)
            return None
        if node.tag not in (_PLAIN, _STR):
            self._add(node, f"a key cannot carry the tag {_shown_tag(node.tag)}", path)
            return None
        key = str(node.value)
        if node.tag == _PLAIN and key == "<<":
            self._add(node, "merge keys (<<) belong to YAML 1.1 only", path, "Write the keys out.")
            return None
        if node.tag == _PLAIN and not key:
            self._add(node, "a colon without a key before it", path)
            return None
        return key

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text = str(node.value)
        if node.tag == _STR:  # quoted, a block of text, or tagged !!str
            return text
        if node.tag != _PLAIN:
            self._refuse_tag(node, _PLAIN, path)
            self.unreadable.add(path)
            return None
        meaning = meaning_of(text)
        if meaning.refusal:
            self._add(node, meaning.refusal, path, meaning.remedy)
            self.unreadable.add(path)
        elif meaning.note:
            self.notes[path] = meaning.note
        return meaning.value

    def _refuse_tag(self, node: yaml.Node, plain: str, path: KeyPath) -> None:
        if node.tag != plain:
            self._add(node, f"the tag {_shown_tag(node.tag)} means nothing here", path)

    def _add(self, node: yaml.Node, message: str, path: KeyPath, remedy: str = "") -> None:
        self.problems.append(self._problem(node, message, path, remedy))

    def _problem(self, node: yaml.Node, message: str, path: KeyPath, remedy: str = "") -> Problem:
        line, column = _position(node)
        return Problem(message, remedy, self.file, line, column, dotted(path))


def dotted(path: KeyPath) -> str:
    """Return ``path`` as people write it: registers.producer, matrix.depth[2]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _position(node: yaml.Node) -> tuple[int, int]:
    mark = node.start_mark
    return mark.line + 1, mark.column + 1


def _text_column(node: yaml.Node) -> int:
    if not isinstance(node, yaml.ScalarNode):
        return 0
    start, end, text = node.start_mark, node.end_mark, str(node.value)
    quotes = 0 if node.style is None else 1
    as_it_is = start.line == end.line and end.column - start.column == len(text) + 2 * quotes
    return start.column + 1 + quotes if as_it_is else 0


def _shown_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    what = error.problem or error.context or "this is not YAML"
    remedy = ""
    start = error.context_mark
    if error.context and start and start is not mark:
        context = (
            f" ({error.context} that began at line {start.line + 1}, column {start.column + 1})"
        )
    else:
        context = ""
    if "'\\t'" in what:
        what = "a tab where YAML allows only spaces"
        remedy = "Indent with spaces."
    elif "expected <block end>" in what or "expected '<document start>'" in what:
        what, context = "this does not line up with the lines above", ""
        remedy = "Begin the keys of a mapping, and the dashes of a list, in the same column."
    elif "mapping values are not allowed" in what:
        what = "a second colon on the line, or a line indented too far"
        remedy = "Put text with a colon in quotes; align the keys of a mapping."
    elif "expected a single document" in (error.context or ""):
        what, context = "a second document begins here (---)", ""
        remedy = "Put every config in a file of its own."
    elif "brackets inside each other" in what or what.startswith("more than"):
        remedy = "Is this the right file?"
    elif "found undefined alias" in what:
        remedy = "An alias (*name) needs its anchor (&name) before it."
    elif "cannot start any token" in what:
        remedy = "Put the value in quotes."
    elif mark is not None and mark.index >= len(text.rstrip()):
        remedy = "The file ends too early: is a bracket or quote left open?"
    return Problem(f"not YAML: {what}{context}", remedy, file, line, column)


def _character_problem(error: ReaderError, text: str, file: str) -> Problem:
    before = text[: error.position]
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    code = error.character if isinstance(error.character, int) else ord(str(error.character))
    return Problem(
        f"not YAML: the character U+{code:04X} is not allowed in a YAML file",
        "Remove it.",
        file,
        line,
        column,
    )


def _too_much(what: str, file: str, kind: str) -> Problem:
    return Problem(f"not a {kind}: {what}", "Is this the right file?", file)
