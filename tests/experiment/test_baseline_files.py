"""--baseline: the recordings and fio results with which a run is compared."""

from __future__ import annotations

from pathlib import Path

import pytest
import recordings as made
from fio_recordings import DIRECTORY, LOGS, statuses, unpacked

from iopstui import events
from iopstui.errors import UsageError
from iopstui.experiment.baseline import with_baseline
from iopstui.model.experiment import baseline as model_baseline
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.metrics.summary import fio_summary

NAME = "3.42-c-numjobs4-nogroup"


def test_a_recording_s_final_figure_and_its_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "before.iops"
    made.write(path, NAME)
    # the recording has too few intervals for a baseline; without that check its figures can be
    # tested
    monkeypatch.setattr(model_baseline, "MIN_INTERVALS", 1)
    (one,) = with_baseline([parse_expectation("iops>=95%")], str(path))
    final = fio_summary(statuses(NAME)[-1])
    iops = sum(part["iops"] for row in final["rows"] for part in row["directions"].values())
    assert one.base is not None and one.base.value == pytest.approx(iops)
    assert one.required == pytest.approx(0.95 * iops)
    assert one.base.name == "before.iops"


def test_a_result_of_fio_has_no_spread_unless_it_has_several_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single, several = LOGS / "avg.json", unpacked(NAME, tmp_path)
    texts = ["iops>=95%", "write.clat.p99<=110%", "read.iops>=90%"]
    asked = [parse_expectation(text) for text in texts]
    found = with_baseline(asked, str(single))
    values = [one.base.value for one in found if one.base]
    assert values == pytest.approx([399.733506, 1613824.0, 199.866755], rel=1e-3)
    assert all(one.base is not None and one.base.spread is None for one in found)
    documents = len(statuses(NAME))
    with pytest.raises(UsageError, match="intervals; a 95 % confidence"):
        with_baseline(asked[:1], str(several))
    monkeypatch.setattr(model_baseline, "MIN_INTERVALS", documents - 2)
    (one,) = with_baseline(asked[:1], str(several))
    assert one.base is not None and one.base.spread is not None
    # plain JSON has its own percentiles
    (one,) = with_baseline([parse_expectation("read.clat.p99<=110%")], str(LOGS / "mix.txt"))
    assert one.base is not None and one.base.value == 160768


@pytest.mark.parametrize(
    ("texts", "file", "said"),
    [
        (["iops>=95%"], None, "is a share of a baseline, but there is no baseline"),
        (["iops>=95"], "avg.json", "--baseline is given, but no --expect compares with it"),
        (["trim.iops>=95%"], "avg.json", "trim.iops is"),
        (
            ["iops>=95%"],
            "avg_bw.1.log",
            "is a fio log. It lacks fio's final figures, so it cannot be a baseline",
        ),
        (["iops>=95%"], "nowhere.json", "nowhere.json does not exist. A baseline"),
        # a name that can't be looked up: 300 letters are too long for any file system
        (["iops>=95%"], "x" * 300, "does not exist. A baseline"),
        (["j:iops>=95%"], "avg.json", "fio reports the figures of a single job once"),
        (["clat.max<=110%"], "avg.json", "a single I/O and has no confidence interval"),
        (["read.clat.max<=110%"], "avg.json", "Use read.clat.p99.9, or give an absolute limit"),
    ],
)
def test_what_can_t_be_a_baseline_is_told(texts: list[str], file: str | None, said: str) -> None:
    asked = [parse_expectation(text) for text in texts]
    with pytest.raises(UsageError) as error:
        with_baseline(asked, None if file is None else str(LOGS / file))
    assert said in f"{error.value} {error.value.hint}"


def test_a_run_that_failed_is_no_baseline(tmp_path: Path) -> None:
    name, recorded = "3.42-g5-enospc-run", tmp_path / "before.iops"
    ended = events.StepFinished(2.5, 1, 1, "No space left on device", False)
    tape = made.tape(recorded)
    made.tell(tape, [*made.raws(name), ended])
    assert tape.close(events.SessionEnded(2.5, 0)) == ""
    for path in (recorded, unpacked(name, tmp_path)):
        with pytest.raises(UsageError, match=r"failed: (No space|fio reports failed jobs)"):
            with_baseline([parse_expectation("iops>=95%")], str(path))


def test_of_several_runs_which_is_not_guessed() -> None:
    asked = [parse_expectation("iops>=95%")]
    with pytest.raises(UsageError, match="holds a sweep or a comparison"):
        with_baseline(asked, str(DIRECTORY.parent / "recordings" / "sweep.iops"))
    with pytest.raises(UsageError, match=r"holds \d+ runs"):
        with_baseline(asked, "demo")


def test_impossible_figures_are_told(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    text = (LOGS / "avg.json").read_text()
    path.write_text(text.replace('"io_bytes" : 2457600', '"io_bytes" : ' + "9" * 400))
    assert path.read_text() != text
    with pytest.raises(UsageError, match="impossible figures"):
        with_baseline([parse_expectation("iops>=95%")], str(path))
