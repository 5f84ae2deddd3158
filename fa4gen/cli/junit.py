"""Results of a sweep as JUnit XML, the form that CI systems show as tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.sweep.record import CaseRecord

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BEGINNING = b"<?xml"


def check_junit_path(path: Path) -> None:
    """Raise ConfigError where the report could not be written, or would replace something else."""
    file = shown_path(path)
    if path.is_dir():
        raise ConfigError(Problem("--junit names a folder", "Name a file in it.", file))
    if not path.absolute().parent.is_dir():
        raise ConfigError(Problem("--junit names a folder that is not there", "Make it.", file))
    if path.exists():
        with path.open("rb") as stream:
            beginning = stream.read(len(_BEGINNING))
        if beginning not in (b"", _BEGINNING):
            raise ConfigError(
                Problem("--junit names a file that is no XML", "Choose another name.", file)
            )


def write_junit(path: Path, sweep: str, records: Sequence[CaseRecord]) -> None:
    """Write the report of ``records`` to ``path``, at once or not at all."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(junit_xml(sweep, records), encoding="utf-8")
        new.rename(path)
    finally:
        new.unlink(missing_ok=True)


def junit_xml(sweep: str, records: Sequence[CaseRecord]) -> str:
    """Return the report: one test suite, one test case for each record."""
    suite = ET.Element(
        "testsuite",
        name=_clean(sweep),
        tests=str(len(records)),
        failures=str(sum(_is_failure(record) for record in records)),
        errors=str(sum(_is_error(record) for record in records)),
        skipped=str(sum(record.outcome == "skipped" for record in records)),
        time=f"{sum(record.total_seconds for record in records):.3f}",
    )
    suite.extend(_test_case(sweep, record) for record in records)
    root = ET.Element("testsuites", name="fa4gen sweep")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _test_case(sweep: str, record: CaseRecord) -> ET.Element:
    test = ET.Element(
        "testcase",
        classname=_clean(f"fa4gen.{sweep}"),
        name=_clean(record.case),
        time=f"{record.total_seconds:.3f}",
    )
    if record.outcome != "passed":
        first, _, _ = record.reason.partition("\n")
        tag = "skipped" if record.outcome == "skipped" else "failure"
        told = ET.SubElement(test, "error" if _is_error(record) else tag, message=_clean(first))
        if record.outcome == "failed":
            told.set("type", record.stage)
        told.text = _clean("\n".join(str(problem) for problem in record.problems))
    output = ET.SubElement(test, "system-out")
    output.text = _clean(_about(record))
    return test


def _about(record: CaseRecord) -> str:
    lines = [f"proof: {record.proof}"]
    lines += [f"{key}: {value}" for key, value in {**record.facts, **record.verification}.items()]
    return "\n".join(lines)


def _is_error(record: CaseRecord) -> bool:
    """Whether something else than the kernel was wrong, as far as can be told."""
    return record.outcome == "failed" and record.stage in ("worker", "render")


def _is_failure(record: CaseRecord) -> bool:
    return record.outcome == "failed" and not _is_error(record)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
