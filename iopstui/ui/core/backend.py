"""What the application works with: its sessions and disks, its first view, its appearance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from iopstui.fio.library import ShippedJob
from iopstui.model.figures.disk import Loads
from iopstui.ui.core.key import Controller, Discover, MakeController, MakeWatch
from iopstui.ui.draw.style import Charset
from iopstui.ui.draw.theme import AUTO

if TYPE_CHECKING:
    from iopstui.events import Event
    from iopstui.linux.activity.disk_use import OccasionalUse
    from iopstui.model.block.target import Target
    from iopstui.model.experiment.plan import Plan
    from iopstui.model.experiment.ramp import RampRange
    from iopstui.model.experiment.run_request import RunRequest
    from iopstui.model.volumes.promised import PromisedFigures
    from iopstui.recording.recent import RecentRecording


class Prepared(Protocol):
    """An experiment that has passed its checks (``PreparedExperiment``)."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Labelled lines: the experiment's length, then what it runs."""

    @property
    def resume_note(self) -> str:
        """What is already measured; "" if nothing is."""

    @property
    def loss_note(self) -> str:
        """Why a stopped experiment would lose its results; "" if it keeps them."""


class Running(Protocol):
    """A running experiment."""

    @property
    def active(self) -> bool:
        """Whether it still runs or restores what it changed."""

    def feed(self, event: Event) -> None:
        """Pass on an event of the session."""

    def stop(self) -> None:
        """Stop the experiment; its results are kept."""

    def wait(self, seconds: float) -> None:
        """Wait until it has ended."""


class Background(Protocol):
    """Runs the experiments of a screen, on one machine or on a fleet."""

    @property
    def hosts(self) -> int:
        """The number of hosts in the fleet; 0 on one machine."""

    @property
    def seconds(self) -> float | None:
        """How long a run on a fleet takes; ``None`` if it is not known."""

    def preview(self, plan: Plan) -> Any:
        """Check a plan, which takes a while. Raises IopstuiError."""

    def start(self, ready: Any, sink: Callable[[Event], None], t: float, anew: bool) -> Running:
        """Start the experiment that ``preview`` has returned."""

    def variants(self) -> tuple[str, str]:
        """Two settings that are worth comparing on this machine."""


MakeBackground = Callable[[Controller], Background]
Conditions = Callable[[Controller], "tuple[Target | None, RunRequest]"]
"""Returns, for a session, the target of its jobs (``None``: they name their own files) and the
request."""
Play = Callable[[str], None]
Recent = Callable[[], "Sequence[RecentRecording]"]


@dataclass(frozen=True, slots=True)
class Backend:
    """Source of sessions, disks, jobs and experiments. ``make_controller`` takes the paths of the
    chosen devices (none: a scratch file in the current directory) and may raise ``IopstuiError``.
    ``loads`` returns the disks' rates, for the home screen. ``play`` stores which recording to play
    next; it is ``None`` if no recording can be played. ``recent`` returns the newest recordings.
    ``volume`` is the bought volume (--volume). ``use`` reads who uses the disks. ``on_home``: if
    this application was opened from a home screen, Esc quits it and calls this."""

    make_controller: MakeController
    discover: Discover
    jobs: Sequence[ShippedJob]
    watch: MakeWatch | None = None
    loads: Loads | None = None
    background: MakeBackground | None = None
    conditions: Conditions | None = None
    play: Play | None = None
    recent: Recent | None = None
    volume: PromisedFigures | None = None
    use: OccasionalUse | None = None
    on_home: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class FirstView:
    """The first view of the screen. Without ``targets`` the device picker opens unless ``pick`` is
    False. ``run_at_once`` (default: if there is a ``job``) starts the job; with a ``ramp``, at its
    lowest depth. ``begin`` is the input for the screen part of a feature that begins."""

    targets: Sequence[str] = ()
    job: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    pick: bool | None = None
    run_at_once: bool | None = None
    begin: object | None = None
    first_run: bool = False
    ramp: RampRange | None = None

    @property
    def opens_picker(self) -> bool:
        return not self.targets if self.pick is None else self.pick

    @property
    def starts_job(self) -> bool:
        """Whether the job starts as soon as a target is open."""
        return self.job is not None if self.run_at_once is None else self.run_at_once


@dataclass(frozen=True, slots=True)
class Appearance:
    """``charset`` (default: detected from the terminal), ``theme`` (draw/theme.py), and
    ``refresh_s``, the minimum time between two paints of new figures."""

    charset: Charset | None = None
    theme: str = AUTO
    refresh_s: float = 0.0
