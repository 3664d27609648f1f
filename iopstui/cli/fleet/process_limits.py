"""Prepare this process for many hosts: descriptors, garbage collection."""

from __future__ import annotations

import contextlib
import gc
import resource

# descriptors for each host, and for everything else
FDS_PER_HOST, RESERVED_FDS = 4, 64
GC_THRESHOLD_PER_HOST = 500
"""Objects that a host's seconds make before garbage is looked for: they end by themselves."""


def prepare_for_hosts(hosts: int) -> None:
    """Enough descriptors for all hosts, as far as the system lets us, and less looking for
    garbage."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = hosts * FDS_PER_HOST + RESERVED_FDS
    if soft != resource.RLIM_INFINITY and soft < need:
        more = need if hard == resource.RLIM_INFINITY else min(need, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    young, *older = gc.get_threshold()
    gc.set_threshold(young + hosts * GC_THRESHOLD_PER_HOST, *older)
