"""All recordings of a report, aligned so that compared ones start at the same point of a chart."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.report.foreign import gather_foreign
from iopstui.report.report_options import DEFAULT_OPTIONS, ReportOptions
from iopstui.report.sources import Source
from iopstui.report.story import Story, gather


def stories(sources: Sequence[Source], options: ReportOptions = DEFAULT_OPTIONS) -> list[Story]:
    """Return a story for each source. Of several the charts count from where the longest run of
    each began."""
    stories_ = [
        gather(source.path, options.redact)
        if source.recorded
        else gather_foreign(source, options.redact)
        for source in sources
    ]
    for story in stories_:
        story.promised = options.against
    for story in stories_ if len(stories_) > 1 else ():
        run = story.longest
        story.origin_t = run.begin or 0.0 if run is not None and not story.experiments else 0.0
    return stories_
