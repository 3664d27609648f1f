"""Serve a live screen or a recording to browsers, until it ends. A viewer's screen plays a
recording, and can do nothing else."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import iopstui
from iopstui.cli.options import read_volume_option
from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, UsageError
from iopstui.features.serve.server import Access, is_loopback, new_token, viewer_limit
from iopstui.features.serve.viewer_host import ScreenProcess, ViewerHost, screen_environment
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.recording.follow import wait_for_first_sample
from iopstui.recording.reader import recording_path
from iopstui.recording.recent import is_fleet
from iopstui.safety import streams
from iopstui.safety.signals import handling_stop_signals

if TYPE_CHECKING:
    from iopstui.features.serve.server import Server, ServeState


@dataclass(frozen=True, slots=True)
class ViewerOptions:
    """What viewers see of the ``recording``: it is played from its start, or with ``follow`` while
    it is written."""

    recording: Path
    follow: bool = True
    speed: float = 1.0
    theme: str = ""
    volume: PromisedFigures | None = None


def show_viewer(options: ViewerOptions, fds: Sequence[int]) -> int:
    """Play the recording, which is open as two descriptors, until the page is closed."""
    from iopstui.recording.follow import FollowSession
    from iopstui.recording.replay import ReplaySession
    from iopstui.ui.replay import show_session

    play, newest = (os.fdopen(fd, "rb") for fd in fds)
    # only the name, because viewers must not see the directory
    path = Path(options.recording.name)
    if options.follow:
        session: ReplaySession = FollowSession(path, options.speed, files=(play, newest))
    else:
        newest.close()
        session = ReplaySession(path, options.speed, play)
    return show_session(session, options.theme, options.volume)


FIRST_SIZE = (120, 40)
END_TIMEOUT_S = 15.0
ANY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where to listen, the maximum number of viewers, and the CPU that they share (``None``: the
    last one)."""

    host: str
    port: int
    max_viewers: int
    cpu: int | None


def serve_live(
    arguments: argparse.Namespace, command_line: Sequence[str], options: ServeOptions
) -> int:
    """Serve `iopstui live`, whose arguments are ``command_line``. Returns its exit code."""
    private = None if arguments.record else private_directory()
    recording = Path(arguments.record) if private is None else private / "served.iops"
    # fork this process before there are threads
    host = ViewerHost(
        partial(show_viewer, ViewerOptions(recording, theme=arguments.theme)), options.cpu
    )
    try:
        more = [] if private is None else ["--record", str(recording)]
        return asyncio.run(_serve(host, options, recording, [*command_line, *more]))
    finally:
        host.close()
        if private is not None:
            remove(private)


def serve_replay(arguments: argparse.Namespace, options: ServeOptions) -> int:
    """Serve a recording, which each viewer plays independently, until Ctrl-C."""
    path = recording_path(arguments.file)
    if is_fleet(path):
        raise UsageError("`iopstui serve` cannot show the recording of a fleet.",
                         f"In the terminal: iopstui replay {arguments.file}")  # fmt: skip
    if arguments.follow:
        wait_for_first_sample(path, print_message, lambda: False)
    else:
        wait_for_first_sample(path, print_message, lambda: True)
    viewer_options = ViewerOptions(
        path, arguments.follow, arguments.speed, arguments.theme, read_volume_option(arguments)
    )
    host = ViewerHost(partial(show_viewer, viewer_options), options.cpu)
    try:
        return asyncio.run(_serve(host, options, path, ()))
    finally:
        host.close()


async def _serve(
    host: ViewerHost, options: ServeOptions, recording: Path, command_line: Sequence[str]
) -> int:
    from iopstui.features.serve.server import Server, ServeState

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_serving(number: int) -> None:
        # a terminal that does not read must not block messages, and so delay the end
        streams.drop_stuck()
        loop.call_soon_threadsafe(stopped.set)

    access = Access(new_token() if command_line else "")
    state = ServeState(access, recording, host, min(options.max_viewers, viewer_limit()))
    with handling_stop_signals(stop_serving):
        return await _serve_until(stopped, Server(state), state, options, command_line)


async def _serve_until(
    stopped: asyncio.Event, server: Server, state: ServeState, options: ServeOptions,
    command_line: Sequence[str],
) -> int:  # fmt: skip
    port = await server.start(options.host, options.port)
    presenter = await _Presenter.start(command_line) if command_line else None
    state.presenter = presenter.screen if presenter else None
    _print_addresses(options, port, state.access)
    try:
        waiting: list[asyncio.Task[Any]] = [asyncio.create_task(stopped.wait())]
        if presenter:
            waiting.append(asyncio.create_task(presenter.wait()))
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        code = await presenter.end() if presenter else EXIT_OK
        return EXIT_INTERRUPTED if stopped.is_set() and command_line else code
    finally:
        await server.close()
        print_message(f"ended; up to {state.most_viewers} viewers at a time")


class _Presenter:
    """`iopstui live` in a process of its own, which measures and records."""

    def __init__(self, process: asyncio.subprocess.Process, screen: ScreenProcess) -> None:
        self._process = process
        self._running = asyncio.create_task(screen.run())
        self.screen = screen

    @classmethod
    async def start(cls, command_line: Sequence[str]) -> _Presenter:
        """Start the screen; messages before it appears go to standard error."""
        (keys, input_), (output, screen_out) = os.pipe(), os.pipe()
        environment = {
            **os.environ, **screen_environment(*FIRST_SIZE),
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "PYTHONPATH": str(Path(iopstui.__file__).resolve().parent.parent),
        }  # fmt: skip
        try:
            # in a new session: Ctrl-C in the terminal is only for the server, which then ends this
            # process
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "iopstui", *command_line, stdin=keys, stdout=screen_out,
                env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(keys)
            os.close(screen_out)
        return cls(process, ScreenProcess(output, input_, process.terminate))

    async def wait(self) -> None:
        await self._process.wait()

    async def end(self) -> int:
        """End the screen: it stops fio and undoes its changes. Returns its exit code."""
        # a packet is not enough, because the screen does not read packets while it starts
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            code = await asyncio.wait_for(self._process.wait(), END_TIMEOUT_S)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            code = await self._process.wait()
        self._running.cancel()
        return code if code >= 0 else EXIT_JOB_FAILED


def _print_addresses(options: ServeOptions, port: int, access: Access) -> None:
    name = socket.gethostname() if options.host in ANY_ADDRESS else options.host
    if ":" in name:
        name = f"[{name}]"
    if access.presenter:
        local = "127.0.0.1" if options.host in ANY_ADDRESS else name
        print_message(
            f"presenter (only on this machine): http://{local}:{port}/{access.presenter}/"
        )
    print_message(f"viewers: http://{name}:{port}/{access.viewer}/")
    if not is_loopback(options.host) and options.host != "localhost":
        print_message("the connection is not encrypted: use it in a network you trust")
    print_message("Ctrl-C: end it for everybody")
