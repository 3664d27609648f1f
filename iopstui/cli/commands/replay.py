"""`iopstui replay`: show a recording on the screen or print it as data."""

from __future__ import annotations

import argparse
from pathlib import Path

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_plain, add_theme, add_volume, read_volume_option, refuse_theme
from iopstui.cli.terminal import require_for_screen, require_terminal
from iopstui.errors import UsageError
from iopstui.text import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=values.responsive_path, metavar="FILE",
                        help="a recording made with --record or key S (also of a fleet); "
                             "\"demo\" is included")  # fmt: skip
    parser.add_argument("--speed", type=values.speed, default=1.0, metavar="X",
                        help="seconds of the recording per second, 0.1 to 1000 (default: 1)",
                        )  # fmt: skip
    parser.add_argument("--follow", action="store_true",
                        help="play a recording that is still being written, from its newest second "
                             "on; FILE may be - for standard input")  # fmt: skip
    add_theme(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=values.FORMATS,
                      help="export to standard output without a screen; for a page or a "
                           "Parquet file use `iopstui report`")  # fmt: skip
    add_plain(parser, form)
    add_volume(parser, "the volume that was bought, e.g. aws/gp2,size=500g: its limits are drawn "
                       "on the charts, its burst credits counted")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Play a recording on the screen, or write it as data."""
    refuse_theme(arguments)
    if arguments.volume and (arguments.format or arguments.plain):
        raise UsageError("--volume draws a volume's limits on the screen's charts.",
                         "Leave out --format and --plain, or compare in a report: iopstui report "
                         "FILE --against NAME")  # fmt: skip
    if arguments.follow:
        from iopstui.cli.runs.follow_recording import follow_recording

        return follow_recording(arguments)
    _check_recording(Path(arguments.file))
    kind = arguments.format or ("plain" if arguments.plain else None)
    if kind:
        from iopstui.output.replay import replay_headless

        return replay_headless(arguments.file, kind, plain_every_s=arguments.plain_every)
    require_terminal("iopstui replay FILE --format table|jsonl|csv")
    require_for_screen(arguments)
    from iopstui.ui.replay import run_replay

    return run_replay(
        arguments.file, arguments.speed, arguments.theme, read_volume_option(arguments)
    )


def _check_recording(path: Path) -> None:
    """Raise UsageError for a result file of fio, which has no seconds to play."""
    from iopstui.recording.foreign import JSON, LOG, detect_file_kind

    if detect_file_kind(path) in (JSON, LOG):
        name = printable(str(path))
        raise UsageError(
            f"{name} is a result of fio, not a recording of iopstui.",
            f"Open it with: iopstui report {name}",
        )


COMMAND = Command(
    "replay", 30, "replay a recording on the live screen, or export its data", add_arguments, run
)
