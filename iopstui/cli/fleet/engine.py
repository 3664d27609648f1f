"""Find the hosts of a fleet that an engine provides: Slurm's nodes, Kubernetes' pods."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator

from iopstui.cli.terminal import print_message
from iopstui.errors import UsageError
from iopstui.fleet.engines.kubernetes import KUBERNETES, LABEL, PodSelection, require_kubectl
from iopstui.fleet.engines.slurm import SLURM, slurm_hosts

ENGINES = (SLURM, KUBERNETES)
POD_OPTIONS = ("selector", "namespace", "container")
MANIFEST_OPTIONS = ("pvc", "local_path", "replicas", "image")


@contextlib.contextmanager
def engine_hosts(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The hosts, and the launcher's words. An allocation that is made here ends with the block."""
    names = {arguments.hosts, arguments.launcher}
    if SLURM not in names and arguments.allocate is not None:
        raise UsageError("--allocate is for Slurm.", "For example: iopstui fleet slurm DIR "
                         "--allocate '-N 4' --job JOB")  # fmt: skip
    if KUBERNETES not in names:
        _refuse_options(arguments, POD_OPTIONS)
    _refuse_options(arguments, MANIFEST_OPTIONS)
    engine = next((name for name in (arguments.hosts, arguments.launcher) if name in ENGINES), None)
    if engine is None:
        yield arguments.hosts, arguments.launcher
        return
    if arguments.launcher not in ("", engine):
        raise UsageError(
            f"HOSTS {arguments.hosts} and --launcher {arguments.launcher!r} cannot be combined."
        )
    if engine == SLURM:
        with slurm_hosts(
            arguments.hosts, arguments.allocate, os.environ, print_message
        ) as allocation:
            yield allocation.nodes, allocation.launcher
        return
    pods = PodSelection(
        arguments.selector or LABEL, arguments.namespace or "", arguments.container or ""
    )
    require_kubectl()
    hosts = arguments.hosts
    if hosts == KUBERNETES:
        found_pods = pods.wait(arguments.min_hosts, arguments.connect_timeout, print_message)
        hosts = ",".join(found_pods)
    yield hosts, pods.launcher


def _refuse_options(arguments: argparse.Namespace, names: tuple[str, ...]) -> None:
    option = next((name for name in names if getattr(arguments, name) is not None), None)
    if option is not None:
        with_what = "--print-manifest" if option in MANIFEST_OPTIONS else f"HOSTS {KUBERNETES}"
        raise UsageError(f"--{option.replace('_', '-')} is for {with_what}.")
