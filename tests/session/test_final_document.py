from __future__ import annotations

from dataclasses import replace

import pytest
from fio_recordings import samples, statuses

from iopstui.model.metrics.frame import FINAL, PARTIAL, FrameBuilder
from iopstui.session.fio.fio_run import NewDocument
from iopstui.session.runs import is_repeated, without_repeats

NAME = "3.19-q-said-twice"


def test_the_last_word_counts_once_with_the_time_it_took() -> None:
    """rate_iops=1000; fio 3.19 reports 2.150 s and then 2.001 s. The last interval must not count
    as a whole second."""
    documents = [NewDocument(status, n > 0) for n, status in enumerate(statuses(NAME))]
    kept = [news.status for news in without_repeats(documents)]
    assert len(kept) == len(documents) - 1
    assert [news.repeated for news in without_repeats(documents)] == [False] * (len(kept) - 1) + [
        True
    ]
    builder = FrameBuilder()
    last = [builder.feed(sample) for sample in samples(kept)][-1]
    assert last.fio is not None
    assert last.fio.seconds == pytest.approx(2.001 - 1.146, abs=0.002)
    assert last.fio.total.iops == pytest.approx(1000, rel=0.01)
    assert FINAL in last.flags
    assert PARTIAL not in last.flags


def test_a_job_that_stands_still_is_no_last_word() -> None:
    first, second, *_ = statuses(NAME)
    again = replace(second, timestamp_ms=second.timestamp_ms + 1000)
    assert not is_repeated(again, second)
    assert not is_repeated(second, first)
    alive = [NewDocument(second, False), NewDocument(replace(second), False)]
    assert without_repeats(alive) == alive
    assert without_repeats([]) == []
