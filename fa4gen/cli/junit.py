"""Results of a sweep as JUnit XML, the form that CI systems show as tests."""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from junitparser.junitparser import FinalResult

    from fa4gen.sweep.record import CaseRecord

# Characters that XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(sweep: str, records: Sequence[CaseRecord]) -> str:
    """Return the report: one test suite, one test case for each record."""
    suite = TestSuite(_clean(sweep))
    suite.add_testcases([_test_case(sweep, record) for record in records])
    report = JUnitXml("fa4gen sweep")
    report.add_testsuite(suite)
    text = BytesIO()
    report.write(text, pretty=True)
    return text.getvalue().decode()


def _test_case(sweep: str, record: CaseRecord) -> TestCase:
    test = TestCase(_clean(record.case), _clean(f"fa4gen.{sweep}"), round(record.total_seconds, 3))
    if record.outcome != "passed":
        test.result = [_result(record)]
    test.system_out = _clean(_about(record))
    return test


def _result(record: CaseRecord) -> FinalResult:
    message = _clean(record.reason.partition("\n")[0])
    if record.outcome == "skipped":
        return Skipped(message)
    kind = Error if _is_error(record) else Failure
    result = kind(message, record.stage)
    result.text = _clean("\n".join(str(problem) for problem in record.problems))
    return result


def _about(record: CaseRecord) -> str:
    lines = [f"proof: {record.proof}"]
    lines += [f"{key}: {value}" for key, value in {**record.facts, **record.verification}.items()]
    return "\n".join(lines)


def _is_error(record: CaseRecord) -> bool:
    """Whether something other than the kernel failed, as far as the record shows."""
    return record.outcome == "failed" and record.stage in ("worker", "render")


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
