"""User-facing errors and their exit codes.

Every message says what happened, why, and (``hint``) the command or step that fixes it."""

from __future__ import annotations

EXIT_OK = 0
EXIT_JOB_FAILED = 1
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_VERDICT = 4
EXIT_MISSING = 5
EXIT_UNKNOWN = 6
EXIT_INTERRUPTED = 130

EXIT_MEANINGS = {
    EXIT_OK: "done; or the reader of standard output closed it (`| head`); or a signal ended a "
    "`watch` without `--for`",
    EXIT_JOB_FAILED: "the job failed (fio's error is shown), or one run of a sweep (the others are "
    "measured), or iopstui itself",
    EXIT_USAGE: "wrong command line, job file or target",
    EXIT_REFUSED: "refused, because data could be lost",
    EXIT_VERDICT: "an expectation (`--expect`), a promise, a bound of `fit` or `capture --check` "
    "was not met; or a run with `--until-steady` was never steady; or `limit` found none; or I/Os "
    "wait for the disk that `why` was asked about, or for a limit on the way to it; or the process "
    "that it was asked about waits for a disk at least 30 % of its time, even if each I/O is quick",
    EXIT_MISSING: "something needed is missing: fio, a Python package, a permission, /proc; or a "
    "limit (`ulimit`) was reached; or everything worked, but the recording is incomplete (no space "
    "left)",
    EXIT_UNKNOWN: "`why` can't tell: it measured too briefly, or the figures are unsteady or "
    "contradict each other",
    EXIT_INTERRUPTED: "interrupted: by any signal, by a closed terminal, or with `--expect` by a "
    "closed pipe; a summary is still printed. `q` and Ctrl-C on a screen do not "
    "count as interruption",
}
"""Used for docs/reference/exit-codes.md; a command's help says the same in fewer words."""


class IopstuiError(Exception):
    """A failure that is reported to the user in one sentence.

    ``message`` says what happened and why; ``hint`` what to do about it (may be empty)."""

    exit_code = EXIT_JOB_FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def full_text(self) -> str:
        """The message and the hint."""
        return f"{self.message} {self.hint}".strip()


class JobFailed(IopstuiError):
    """fio ran and failed, or could not continue."""

    exit_code = EXIT_JOB_FAILED


class UsageError(IopstuiError):
    """Wrong command line, job file or target."""

    exit_code = EXIT_USAGE


class NoFile(UsageError):
    """A file that is to be read does not exist; ``name`` is printable."""

    def __init__(self, name: str, hint: str = "Check its name and its directory.") -> None:
        super().__init__(f"The file {name} does not exist.", hint)


class Refused(IopstuiError):
    """Refused, because going on could destroy data."""

    exit_code = EXIT_REFUSED


class Missing(IopstuiError):
    """A required program or right is missing."""

    exit_code = EXIT_MISSING


class Interrupted(IopstuiError):
    """The user interrupted it."""

    exit_code = EXIT_INTERRUPTED


def error_for_exit_code(exit_code: int, message: str, hint: str = "") -> IopstuiError:
    """The error for a run that failed with this exit code."""
    kinds: tuple[type[IopstuiError], ...] = (UsageError, Refused, Missing)
    kind = next(
        (error_class for error_class in kinds if error_class.exit_code == exit_code), JobFailed
    )
    return kind(message, hint)


def session_ended_error(exit_code: int) -> IopstuiError:
    """The error for a run whose session ended with ``exit_code`` without reporting the run's
    end."""
    return error_for_exit_code(
        exit_code, "The session ended before the job did; see the message above."
    )


_INCOMPLETE: list[str] = []


def note_incomplete(message: str) -> None:
    """Note that a requested recording has ended early, as ``message`` says; the session goes on."""
    _INCOMPLETE.append(message)


def pop_incomplete_messages() -> list[str]:
    """Return the noted messages, each once, and forget them."""
    messages = [*dict.fromkeys(_INCOMPLETE)]
    _INCOMPLETE.clear()
    return messages
