"""The page of a sweep's results: whole in itself, escaped, and sorted by a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main
from fa4gen.cli.sweep_report import COLUMNS, html_page
from fa4gen.errors import Problem
from fa4gen.sweep.record import CaseRecord

if TYPE_CHECKING:
    from pathlib import Path

VOID = {"meta"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PASSED = CaseRecord(
    "s", "a", "passed", "verify", "emulated", seconds={"verify": 12.0}, facts={"registers": 168},
    verification={"seed": 1, "num_cases": 15, "num_passed": 15},
)  # fmt: skip
FAILED = replace(
    PASSED, case="b <script>alert(1)</script>", outcome="failed", facts={"registers": 90},
    problems=(Problem("p < 1 & \ud800"),),
)  # fmt: skip
SKIPPED = replace(PASSED, case="d", outcome="skipped", problems=(Problem("BN: does not fit"),))
LESS = replace(PASSED, case="c", facts={"registers": 1000})
PAGE = html_page("s", [PASSED, FAILED, LESS, SKIPPED])


class Page(HTMLParser):
    """Reads tables of a page in which every element is closed; notes each attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"th", "td"} & {*self.open}:
            self.rows[-1][-1] += data


def test_tables_with_what_was_found_out() -> None:
    head, *rows = Page(PAGE).rows
    assert head == [*COLUMNS]
    assert rows[0] == ["a", "emulated", "15/15", "168", "-", "-", "-", "12.0"]
    assert [row[0] for row in rows] == ["a", FAILED.case, "c", "case", FAILED.case, "d"]
    assert rows[-2][1:] == ["failed to verify", "p < 1 & \\ud800"]
    assert rows[-1] == ["d", "skipped", "BN: does not fit"]
    assert "<h1>s: 4 cases: 2 passed, 1 failed, 1 skipped</h1>" in PAGE


def test_it_asks_for_no_other_file() -> None:
    assert {name for name, _ in Page(PAGE).attributes}.isdisjoint({"src", "href", "action"})
    assert not re.search(r"https?:|url\(|@import|import\(|fetch\(", PAGE)
    assert PAGE.count("<script>") == 1  # none of a name


def test_the_command_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(
        "base: {kernel: attention, arch: sm_90a, dtype: bf16}\nmatrix: {depth: [64, 100]}\n"
    )
    for _ in range(2):  # its own file may be replaced
        assert main(["sweep", "s.yaml", "--until", "rendered", "--html", "out/p.html"]) == 0
    page = Page((tmp_path / "out/p.html").read_text())
    assert page.rows[1][:2] == ["s_d64", "rendered"]
    assert page.rows[-1][:2] == ["s_d100", "skipped"]
    assert main(["sweep", "s.yaml", "--until", "rendered", "--html", "s.yaml"]) == 2


def test_a_browser_sorts_it(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("there is no browser")

    def shown(clicks: int) -> list[list[str]]:
        click = 'document.querySelectorAll("th button")[3].click();' * clicks
        path = tmp_path / f"{clicks}.html"
        path.write_text(PAGE.replace("</body>", f"<script>{click}</script></body>"))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        done = subprocess.run(
            [browser, *options, profile, path.as_uri()],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        return Page(done.stdout).rows

    assert [row[3] for row in shown(0)[1:4]] == ["168", "90", "1000"]
    assert [row[3] for row in shown(1)[1:4]] == ["90", "168", "1000"]
    assert [row[3] for row in shown(2)[1:4]] == ["1000", "168", "90"]
