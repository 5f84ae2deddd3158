"""The one Jinja environment: strict, deterministic, and aware of the templates that it used.

Templates are looked up in the user's folder first (``--templates DIR``), then among those
shipped. They are compiled once for a ``TemplateSet``, the shipped ones mostly not even that (see
``compiled``); each kernel gets a fresh environment over it, so that ``used`` names exactly the
templates that this kernel came from.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment

from fa4gen.config.paths import shown_path
from fa4gen.errors import Problem, TemplateError
from fa4gen.render.compiled import CompiledTemplates
from fa4gen.render.own_templates import check_folder
from fa4gen.resources import data_root

if TYPE_CHECKING:
    from types import CodeType

    from jinja2.parser import Parser


@dataclass(frozen=True)
class TemplateSource:
    """A template as it was read: its name among the templates, its file and its text."""

    name: str
    path: Path
    text: str

    @property
    def sha256(self) -> str:
        """Hash the text in UTF-8 with Unix line ends: a checkout's line ends do not count."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def lines(self) -> list[str]:
        """Lines without their ends; line N is ``lines[N - 1]``."""
        return self.text.split("\n")


class TemplateSet(jinja2.BaseLoader):
    """The templates under ``roots``, read and compiled once; the first root that has one wins.

    ``compiled``, where it is given, keeps the code of those of the last root between runs.
    """

    def __init__(
        self,
        roots: tuple[Path, ...],
        extensions: tuple[type[Extension], ...] = (),
        compiled: CompiledTemplates | None = None,
    ) -> None:
        self.roots = roots
        self.extensions = extensions
        self._compiled = compiled
        self._sources: dict[str, TemplateSource] = {}
        self._codes: dict[str, CodeType] = {}

    def source(self, name: str) -> TemplateSource:
        """Return the template called ``name``.

        Raises jinja2.TemplateNotFound when no root has it, TemplateError when it is not text.
        """
        if name not in self._sources:
            path = self._find(name)
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise TemplateError(
                    Problem(
                        f"the template is not UTF-8 text: {error.reason} at byte {error.start}",
                        "Save it as UTF-8.",
                        file=shown_path(path),
                    )
                ) from error
            self._sources[name] = TemplateSource(name, path, text)
        return self._sources[name]

    @property
    def sha256(self) -> str:
        """Hash the names and hashes of all templates that were read so far."""
        lines = [f"{name} {self._sources[name].sha256}\n" for name in sorted(self._sources)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def user_folder(self) -> Path | None:
        """The user's folder, before the shipped one; None without."""
        return self.roots[0] if len(self.roots) > 1 else None

    def is_own(self, source: TemplateSource) -> bool:
        """Whether ``source`` is of the user's folder, not of the last root."""
        return not source.path.is_relative_to(self.roots[-1])

    @property
    def own(self) -> dict[str, str]:
        """The names, with hashes, of the user's templates among those that were read so far."""
        read = (self._sources[name] for name in sorted(self._sources))
        return {source.name: source.sha256 for source in read if self.is_own(source)}

    def by_path(self, path: str) -> TemplateSource | None:
        """Return the template that was read from ``path``, or None."""
        return next((s for s in self._sources.values() if str(s.path) == path), None)

    def environment(self) -> KernelEnvironment:
        """Return an environment that has used no template yet."""
        return KernelEnvironment(self)

    def get_source(
        self,
        environment: jinja2.Environment,  # noqa: ARG002 (the interface is Jinja's)
        template: str,
    ) -> tuple[str, str, None]:
        """Return the template's text for Jinja."""
        source = self.source(template)
        return source.text, str(source.path), None

    def load(
        self,
        environment: jinja2.Environment,
        name: str,
        globals: Any = None,  # noqa: A002
    ) -> jinja2.Template:
        """Return the template, compiled at most once; note in ``environment`` that it was used."""
        source = self.source(name)
        assert isinstance(environment, KernelEnvironment)
        environment.used[name] = source
        if name not in self._codes:
            self._codes[name] = self._code(source, environment)
        return environment.template_class.from_code(environment, self._codes[name], globals or {})

    def _code(self, source: TemplateSource, environment: KernelEnvironment) -> CodeType:
        text, name, path = source.text, source.name, str(source.path)
        if self._compiled is None or self.is_own(source):
            return environment.compile(text, name, path)
        bucket = self._compiled.get_bucket(environment, name, path, text)
        if bucket.code is None:
            bucket.code = environment.compile(text, name, path)
            self._compiled.set_bucket(bucket)
        return bucket.code

    def _find(self, name: str) -> Path:
        # Names are relative and stay inside their root, as in every Jinja loader.
        parts = name.split("/")
        if not any(part in ("", ".", "..") or "\\" in part for part in parts):
            for root in self.roots:
                path = root.joinpath(*parts)
                if path.is_file():
                    return path
        raise jinja2.TemplateNotFound(name)


class Put(Extension):
    """The statement ``{% put keys.load_block() %}``, which writes the lines of a macro.

    Its own line goes like that of every statement: a macro without lines adds no empty one.
    """

    tags = {"put"}  # noqa: RUF012 (the interface is Jinja's)

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the node that writes the expression after the word."""
        line = next(parser.stream).lineno
        return nodes.Output([parser.parse_expression()], lineno=line)


class KernelEnvironment(SandboxedEnvironment):
    """Renders one kernel; ``used`` collects the templates that it loads."""

    def __init__(self, templates: TemplateSet) -> None:
        self.used: dict[str, TemplateSource] = {}
        super().__init__(
            loader=templates,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
            auto_reload=False,
            optimized=False,  # folding constants takes longer than rendering once saves
            finalize=cpp_literal,
            extensions=("jinja2.ext.do", Put, *templates.extensions),
        )
        self.filters["camel"] = camel


def open_templates(user_folder: Path | None = None) -> TemplateSet:
    """Return the shipped templates, after those of ``user_folder`` where one is given.

    Raises ConfigError for a folder that does not exist, or with a file that has no effect.
    """
    return TemplateSet(
        template_roots(user_folder), compiled=CompiledTemplates.default(Path(__file__))
    )


def template_roots(user_folder: Path | None) -> tuple[Path, ...]:
    """Return the folders to look in, first the user's; ConfigError: see ``check_folder``."""
    shipped = data_root("templates")
    if user_folder is None:
        return (shipped,)
    check_folder(user_folder)
    return (user_folder.resolve(), shipped)


def camel(name: str) -> str:
    """Return the C++ constant of a plan field: value_depth -> kValueDepth, BM -> kBM."""
    return "k" + "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def cpp_literal(value: Any) -> Any:
    """Check the output of an expression: C++ has no None, and spells True as true.

    Undefined values pass, so that they raise with their own name.
    """
    if value is None:
        raise ValueError("the expression is None, which cannot be written into C++")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        raise ValueError(f"the expression is {value}, for which C++ has no literal")
    return value
