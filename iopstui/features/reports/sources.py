"""The inputs of a report: recordings, and fio results with their logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.output.replay import checking_figures
from iopstui.recording.foreign import (
    JSON,
    JSON_ADVICE,
    LOG,
    NORMAL,
    FioResult,
    LogFile,
    detect_file_kind,
    named_log,
    read_results,
)
from iopstui.text import printable


@dataclass(frozen=True, slots=True)
class Source:
    """A recording (``path``), or the runs in a result of fio, or ``logs`` of one run, or both."""

    path: Path
    results: tuple[FioResult, ...] = ()
    logs: tuple[LogFile, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether it is a recording of ours."""
        return not self.results and not self.logs

    @property
    def paths(self) -> tuple[Path, ...]:
        """All its files."""
        first = () if self.logs and not self.results else (self.path,)
        return (*first, *(log.path for log in self.logs))


def sources(paths: Sequence[Path]) -> list[Source]:
    """The files in their order, logs with the result that had them written, or else with those of
    the same prefix. UsageError for what can't be reported of."""
    result: list[Source] = []
    logs: dict[tuple[Path, str], list[LogFile]] = {}
    for path in paths:
        kind = detect_file_kind(path)
        if kind == NORMAL:
            raise UsageError(
                f"{printable(str(path))} is fio's normal output, which lacks most of the "
                "data.", JSON_ADVICE,
            )  # fmt: skip
        if path.name.endswith(".log") and "_hist" in path.name:
            raise UsageError(
                f"{printable(str(path))} is a histogram log (write_hist_log=), which iopstui "
                "does not read.",
                "Use latency logs (write_lat_log=), or JSON with the histogram of the whole "
                "run: --output-format=json+",
            )
        if kind == LOG:
            log = named_log(path)
            logs.setdefault((path.parent, log.name.prefix), []).append(log)
        else:
            result.append(Source(path, tuple(read_results(path)) if kind == JSON else ()))
    for (_, prefix), several in logs.items():
        place = _owner(result, prefix)
        if place is None:
            result.append(Source(several[0].path, (), tuple(several)))
        else:
            source = result[place]
            result[place] = Source(source.path, source.results, (*source.logs, *several))
    return result


def _owner(known_sources: Sequence[Source], prefix: str) -> int | None:
    """Return the result that these logs belong to; ``None`` if none, or several, do."""
    owners = [
        n
        for n, source in enumerate(known_sources)
        if len(source.results) == 1 and source.results[0].names_log(prefix)
    ]
    return owners[0] if len(owners) == 1 else None


@contextmanager
def credible(found_sources: Sequence[Source]) -> Iterator[None]:
    """UsageError where a file holds impossible figures."""
    with checking_figures([path for source in found_sources for path in source.paths]):
        yield
