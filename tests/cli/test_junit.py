from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from fa4gen.cli.junit import junit_xml
from fa4gen.errors import Problem
from fa4gen.sweep.record import CaseRecord

PASSED = CaseRecord(
    sweep="s",
    case="a",
    outcome="passed",
    stage="verify",
    proof="ran on NVIDIA H200",
    seconds={"compile": 1.25, "verify": 2.0},
    facts={"registers": 168},
)
FAILED = replace(
    PASSED, case="b", outcome="failed", stage="compile",
    problems=(Problem("spills & <more>\x00\ud800", "Use fewer.", "b.cu", 3, 1), Problem("two")),
)  # fmt: skip
CRASHED = replace(FAILED, case="c", stage="worker")
SKIPPED = replace(FAILED, case="d", outcome="skipped", stage="schema")


def test_the_report() -> None:
    root = ET.fromstring(junit_xml("s", [PASSED, FAILED, CRASHED, SKIPPED]))

    [suite] = root
    assert suite.attrib == {
        "name": "s", "tests": "4", "failures": "1", "errors": "1", "skipped": "1",
        "time": "13.0",
    }  # fmt: skip
    passed, failed, crashed, skipped = suite
    assert passed.attrib == {"classname": "fa4gen.s", "name": "a", "time": "3.25"}
    assert [element.tag for element in passed] == ["system-out"]
    output = passed.findtext("system-out")
    assert output is not None
    assert output.splitlines() == ["proof: ran on NVIDIA H200", "registers: 168"]
    failure = failed.find("failure")
    assert failure is not None
    assert failure.attrib == {"message": "spills & <more>\ufffd\ufffd", "type": "compile"}
    assert failure.text == "b.cu:3:1: spills & <more>\ufffd\ufffd\n  Use fewer.\ntwo"
    assert crashed.find("error") is not None
    assert skipped.find("skipped") is not None
