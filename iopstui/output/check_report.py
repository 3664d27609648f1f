"""The outcomes of --expect for a CI system: JUnit XML, and a summary in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from iopstui.model.experiment.verdict import Check
from iopstui.output.page.markup import markdown_text
from iopstui.session.tick.outcomes import FAIL, PASS, UNKNOWN
from iopstui.text import printable


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A command and its checks. ``title`` names it ("run randread-4k on /srv/data"), ``seconds`` is
    how long it took, ``error`` says why it has no result ("" if it has one)."""

    title: str
    checks: Sequence[Check]
    seconds: float
    error: str = ""


def junit_xml(run: CheckedRun) -> str:
    """JUnit XML as GitLab, Jenkins and GitHub actions read it, with a test case for each check. A
    check that was not met is a ``failure``; a check that could not be made, or a run that failed,
    is an ``error``. A run without checks and without an error is one test case that passed."""
    # all characters that ``printable`` leaves are allowed in XML 1.0
    cases = [(check.name, *_problem(check)) for check in run.checks]
    if run.error or not cases:
        cases.append(("the run itself", "error" if run.error else "", run.error))
    counts = [sum(kind == outcome for _, kind, _ in cases) for outcome in ("failure", "error")]
    root = Element("testsuites")
    suite = SubElement(
        root, "testsuite", name=f"iopstui {printable(run.title)}", tests=str(len(cases)),
        failures=str(counts[0]), errors=str(counts[1]), skipped="0", time=f"{run.seconds:.3f}",
    )  # fmt: skip
    for name, kind, text in cases:
        case = SubElement(
            suite, "testcase", classname=printable(run.title), name=printable(name), time="0"
        )
        if kind:
            SubElement(case, kind, message=printable(text)).text = printable(text)
        elif text:
            SubElement(case, "system-out").text = printable(text)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _problem(check: Check) -> tuple[str, str]:
    """The name of JUnit's element for the outcome ("" for a check that passed), and its text."""
    if check.passed is None:
        return "error", check.text
    return ("" if check.passed else "failure"), check.text


def summary_markdown(run: CheckedRun) -> str:
    """A heading with the verdict and a table of the checks, for the page that a CI system shows."""
    lines = [f"### iopstui {_markdown(run.title)}: {_verdict_of_run(run)}", ""]
    if run.error:
        lines += [_markdown(run.error), ""]
    if run.checks:
        lines += ["| result | expected | measured |", "| --- | --- | --- |"]
        lines += [
            f"| {_word(check)} | {_markdown(check.name)} | {_markdown(check.text)} |"
            for check in run.checks
        ]
        lines.append("")
    return "\n".join(lines) + "\n"


def _verdict_of_run(run: CheckedRun) -> str:
    verdicts = {_word(check) for check in run.checks}
    if run.error:
        return "ERROR"
    return next((verdict for verdict in (FAIL, UNKNOWN) if verdict in verdicts), PASS)


def _word(check: Check) -> str:
    """PASS, FAIL or NOT MEASURED."""
    if check.passed is None:
        return UNKNOWN
    return PASS if check.passed else FAIL


def _markdown(text: str) -> str:
    return markdown_text(text.replace("\n", " "))
