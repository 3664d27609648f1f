from __future__ import annotations

import threading
import time

from iopstui.linux.process.processes import cpu_s, thread_cpu_s


def test_a_thread_s_cpu_time_is_its_own() -> None:
    before, began = thread_cpu_s(threading.current_thread()), time.thread_time()
    while time.thread_time() - began < 0.05:
        sum(range(1000))
    used = thread_cpu_s(threading.current_thread()) - before
    assert 0.05 <= used < 0.05 + time.thread_time() - began
    assert thread_cpu_s(threading.Thread()) == 0.0


def test_a_process_that_is_gone_has_no_time() -> None:
    assert cpu_s((1 << 22) - 1) is None
