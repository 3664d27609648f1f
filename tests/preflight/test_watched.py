from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux.roots import Roots
from iopstui.preflight.targets import choose_targets, choose_watched


def test_a_watch_of_what_is_not_there_is_offered_no_scratch_file(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(UsageError) as job:
        choose_targets((missing,), None, {}, Roots())
    assert "a scratch file is made in it" in job.value.hint
    with pytest.raises(UsageError) as watch:
        choose_watched((missing,), {}, Roots())
    assert watch.value.message == job.value.message
    assert "scratch" not in watch.value.hint
    assert f"{tmp_path}, which stands for the disk it is on" in watch.value.hint
