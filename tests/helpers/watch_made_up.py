"""`iopstui` with a made-up disk for `watch`, so that no test depends on the machine's disks."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from iopstui.cli.program import main
from iopstui.cli.runs import watch_disks
from iopstui.model.block.target import DEVICE, Target


def made_up(texts: Sequence[str], *_: object) -> Target:
    return Target(DEVICE, "/dev/none", "none", ("none",))


if __name__ == "__main__":
    watch_disks.choose_watch_target = made_up
    sys.exit(main())
