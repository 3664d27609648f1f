"""What the runs of a command come to: the only rule for its exit code."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT, IopstuiError


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was expected, and its outcome. ``name`` is what ("iops>=5000", with the point
    or host it is about), ``passed`` is ``None`` where it could not be checked, and ``text`` says in
    a sentence what was measured."""

    name: str
    passed: bool | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``failed`` runs did not go through though others did; ``interrupted``: there is no more than
    was measured until then; ``error`` says why a run failed, or that
    something could not be checked."""

    checks: tuple[Check, ...] = ()
    interrupted: bool = False
    failed: int = 0
    error: IopstuiError | None = None

    @property
    def exit_code(self) -> int:
        """As the help text of the commands says it."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.failed:
            return EXIT_JOB_FAILED
        return EXIT_OK if all(check.passed for check in self.checks) else EXIT_VERDICT
