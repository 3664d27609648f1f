"""Key H on the screen of many hosts: a report of their recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from iopstui.recording.writer import next_free_path
from iopstui.ui.core.key import Key
from iopstui.ui.parts.record import REPORT_TITLE, REPORTS, RecordKeys
from iopstui.ui.port import Port

NOT_RECORDED = "Nothing is recorded, so there is no report. Start the fleet with --record FILE."


class FleetReportKeys(RecordKeys):
    """Writes a report of ``recording``, the file that is written or played, if any."""

    def __init__(self, port: Port, recording: Path | None) -> None:
        super().__init__(port, lambda: None)
        self._recording = recording

    def report(self) -> None:
        """Write an HTML report into the current directory; it replaces no file."""
        if self._recording is None:
            self.port.show_message("info", NOT_RECORDED)
            return
        output = Path.cwd() / f"{self._recording.stem}.html"
        self.port.show_message("info", "Writing the report ...")
        self.port.run_in_background(
            self._write_report(
                self._recording, next_free_path(output) if output.exists() else output
            ),
            "report",
        )

    ACTIONS = (
        replace(
            RecordKeys.REPORT, keys=(Key("H", "H"),), title=REPORT_TITLE, handler=report, place=205,
            note="of the hosts' recording (--record FILE)",
            help="write an HTML report of all hosts: of --record FILE, or of the replay",
        ),
    ) if REPORTS else ()  # fmt: skip
