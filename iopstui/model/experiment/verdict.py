"""The verdict on the runs of a command: the only place that decides its exit code."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT, IopstuiError


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation and its outcome. ``name`` is the expectation ("iops>=5000", with its point or
    host), ``passed`` is ``None`` if it could not be checked, and ``text`` is a sentence on the
    measured figure."""

    name: str
    passed: bool | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``failed`` counts runs that failed though others succeeded; ``interrupted``: the command was
    interrupted, so only earlier measurements exist; ``error`` says why a run failed, or that
    something could not be checked."""

    checks: tuple[Check, ...] = ()
    interrupted: bool = False
    failed: int = 0
    error: IopstuiError | None = None

    @property
    def exit_code(self) -> int:
        """The exit code, as documented in the commands' help."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.failed:
            return EXIT_JOB_FAILED
        return EXIT_OK if all(check.passed for check in self.checks) else EXIT_VERDICT
