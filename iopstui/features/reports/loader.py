"""All recordings of a report, aligned so that compared ones start at the same point of a chart."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.features.reports.foreign import load_foreign_report
from iopstui.features.reports.report_data import ReportData, load_report_data
from iopstui.features.reports.report_options import DEFAULT_OPTIONS, ReportOptions
from iopstui.features.reports.sources import Source


def load_reports(
    sources: Sequence[Source], options: ReportOptions = DEFAULT_OPTIONS
) -> list[ReportData]:
    """Return the data for each source. Of several the charts count from where the longest run of
    each began."""
    reports = [
        load_report_data(source.path, options.redact)
        if source.recorded
        else load_foreign_report(source, options.redact)
        for source in sources
    ]
    for data in reports:
        data.promised = options.against
    for data in reports if len(reports) > 1 else ():
        run = data.longest
        data.origin_t = run.begin or 0.0 if run is not None and not data.experiments else 0.0
    return reports
