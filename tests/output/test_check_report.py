"""The outcomes of --expect as JUnit XML and Markdown, read by other programs' parsers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.output.check_report import Check, CheckedRun, junit_xml, summary_markdown
from iopstui.output.page.markup import markdown_text

MET = Check("iops>=5000", True, "PASS iops >= 5000: measured 73085")
MISSED = Check("read.clat.p99<=200us", False, "FAIL read.clat.p99 <= 200 µs: measured 1.43 ms")
UNKNOWN = Check("write.iops>=1", None, "the job does no writes")


def suite_of(run: CheckedRun) -> ElementTree.Element:
    suite = ElementTree.fromstring(junit_xml(run).encode()).find("testsuite")
    assert suite is not None
    return suite


def test_a_test_case_for_each_check() -> None:
    suite = suite_of(CheckedRun("run randread-4k", (MET, MISSED, UNKNOWN), 10.25))
    assert suite.get("name") == "iopstui run randread-4k"
    assert [suite.get(key) for key in ("tests", "failures", "errors", "time")] == [
        "3", "1", "1", "10.250",
    ]  # fmt: skip
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds == {
        MET.name: ["system-out"],
        MISSED.name: ["failure"],
        UNKNOWN.name: ["error"],
    }
    failure = suite.find(".//failure")
    assert failure is not None and failure.get("message") == MISSED.text == failure.text


@pytest.mark.parametrize(
    ("run", "tests", "errors"),
    [
        (CheckedRun("run a", (), 1.0), "1", "0"),
        (CheckedRun("run a", (), 1.0, "fio failed."), "1", "1"),
        (CheckedRun("run a", (MET,), 1.0, "Interrupted."), "2", "1"),
    ],
    ids=["nothing expected", "failed", "interrupted"],
)
def test_a_run_without_result_is_an_error(run: CheckedRun, tests: str, errors: str) -> None:
    suite = suite_of(run)
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == (tests, errors, "0")


@given(st.text(), st.text(), st.text(), st.sampled_from([True, False, None]))
def test_any_text_is_valid_xml(title: str, name: str, text: str, passed: bool | None) -> None:
    suite = suite_of(CheckedRun(title, (Check(name, passed, text),), 0.0, text))
    assert len(suite) == int(suite.get("tests", ""))


@given(st.text(), st.text())
def test_no_text_ends_a_row_of_the_markdown_table(name: str, text: str) -> None:
    page = summary_markdown(CheckedRun("run a", (Check(name, True, text),), 0.0))
    row = page.splitlines()[4]
    assert row.count("|") - row.count("\\|") == 4
    assert len(page.splitlines()) == 6
    assert "<" not in row.replace("\\<", "")


@pytest.mark.parametrize(
    ("checks", "error", "verdict"),
    [
        ((MET,), "", "PASS"),
        ((MET, MISSED, UNKNOWN), "", "FAIL"),
        ((MET, UNKNOWN), "", "NOT MEASURED"),
        ((MET,), "fio failed.", "ERROR"),
    ],
)
def test_the_heading_has_the_verdict(checks: tuple[Check, ...], error: str, verdict: str) -> None:
    page = summary_markdown(CheckedRun("run a", checks, 0.0, error))
    assert page.splitlines()[0] == f"### iopstui run a: {verdict}"
    words = {MET: "PASS", MISSED: "FAIL", UNKNOWN: "NOT MEASURED"}
    assert all(f"| {words[check]} |" in page for check in checks)


def test_greater_than_is_escaped_only_where_it_would_begin_a_quotation() -> None:
    assert markdown_text("iops >= 5, tail -c +9 a > b") == "iops >= 5, tail -c +9 a > b"
    assert markdown_text("  > b <c>") == "\\> b \\<c>"
