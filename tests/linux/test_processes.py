from __future__ import annotations

import os
import threading
import time

from iopstui.linux.activity.task_waits import TaskWaits
from iopstui.linux.process.processes import cpu_s, thread_cpu_s
from iopstui.linux.roots import Roots


def test_a_thread_s_cpu_time_is_its_own() -> None:
    before, began = thread_cpu_s(threading.current_thread()), time.thread_time()
    while time.thread_time() - began < 0.05:
        sum(range(1000))
    used = thread_cpu_s(threading.current_thread()) - before
    assert 0.05 <= used < 0.05 + time.thread_time() - began
    assert thread_cpu_s(threading.Thread()) == 0.0


def test_a_process_that_is_gone_has_no_time() -> None:
    assert cpu_s((1 << 22) - 1) is None


def test_a_thread_is_looked_at_alone() -> None:
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait)
    thread.start()
    try:
        alone = TaskWaits(thread.native_id or 0, {}, Roots()).result()
        process = TaskWaits(os.getpid(), {}, Roots()).result()
    finally:
        may_end.set()
        thread.join()
    assert (alone.of, alone.threads) == (os.getpid(), 1)
    assert process.of == 0 and process.threads >= 2
