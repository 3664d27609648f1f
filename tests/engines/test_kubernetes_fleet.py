"""`iopstui fleet k8s` with a real API server: manifests, rights, and every way to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from conftest import wait_for
from kube_cluster import KubeCluster

NODES = 3
ENDS_WITHIN_S = 6.0
JOB = ["--job", "randread-4k", "--size", "4m", "--format", "jsonl", "--set"]
CLAIM = """
{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"},
 "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
          "storageClassName": "", "hostPath": {"path": "/ignored"}}}
{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
 "spec": {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteMany"],
          "storageClassName": "", "volumeName": "data"}}
"""


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("volume")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, volume: Path) -> Iterator[KubeCluster]:
    """A cluster in which `bench` has the role of our manifest and no other right."""
    made = KubeCluster(tmp_path_factory.mktemp("kubernetes"), volume, NODES)
    try:
        assert made.kubectl("apply", "-f", "-", given=CLAIM).count("created") == 2
        yield made
    finally:
        made.close()


def iopstui(cluster: KubeCluster, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "iopstui", "fleet", *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "KUBECONFIG": str(cluster.bench)},
    )


def result(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def pods(cluster: KubeCluster) -> list[str]:
    return cluster.kubectl("get", "pods", "-o", "name").split()


def apply(cluster: KubeCluster, *words: str) -> str:
    """Apply the printed manifest, and return it."""
    code, text, err = result(iopstui(cluster, "k8s", "--print-manifest", *words))
    assert code == 0, err
    said = cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=text)
    assert said.count("(server dry run)") == 2, said
    said = cluster.kubectl("apply", "-f", "-", given=text)
    assert said.count("created") == 2, said
    return text


@pytest.fixture
def running(cluster: KubeCluster) -> Iterator[None]:
    """The Job of the manifest runs on every node."""
    text = apply(cluster, "--pvc", "data", "--replicas", str(NODES))
    cluster.kubectl("create", "rolebinding", "bench", "--role=iopstui-fleet", "--user=bench")
    yield
    cluster.kubectl("delete", "rolebinding", "bench")
    cluster.kubectl("delete", "-f", "-", given=text)
    wait_for("no pods", lambda: not pods(cluster))


def whole(text: str) -> dict[str, object]:
    (row,) = [row for row in map(json.loads, text.splitlines()) if row["event"] == "merged"]
    found: dict[str, object] = row["hosts"] | row["count"]
    return found


def fios(volume: Path) -> list[int]:
    return [
        one.pid
        for one in psutil.process_iter(["name", "cmdline"])
        if one.info["name"] == "fio" and Path(f"/proc/{one.pid}/root/data").is_dir()
    ]


def test_a_job_s_pods_are_waited_for_and_their_sums_are_fio_s(
    cluster: KubeCluster, running: None, volume: Path
) -> None:
    code, out, err = result(iopstui(cluster, "k8s", "/data", *JOB, "runtime=3"))
    assert code == 0, err
    assert f"{NODES} pods on {NODES} nodes" in err
    found = whole(out)
    assert (found["finished"], found["exact"]) == (NODES, NODES)
    assert found["ios"] == found["fio_ios"]
    assert not [*volume.iterdir()] and not fios(volume)


def test_a_daemon_set_has_a_pod_on_each_node_and_pods_can_be_named(
    cluster: KubeCluster, volume: Path
) -> None:
    text = apply(cluster, "daemonset", "--local-path", "/mnt/x")
    cluster.kubectl("create", "rolebinding", "bench", "--role=iopstui-fleet", "--user=bench")
    try:
        wait_for("pods", lambda: cluster.kubectl("get", "pods").count("Running") == NODES)
        names = ",".join(one.removeprefix("pod/") for one in pods(cluster)[:2])
        code, out, err = result(
            iopstui(cluster, names, "/data", "--launcher", "k8s", *JOB, "runtime=2")
        )
        assert code == 0, err
        assert whole(out)["exact"] == 2 and not [*volume.iterdir()]
    finally:
        cluster.kubectl("delete", "rolebinding", "bench")
        cluster.kubectl("delete", "-f", "-", given=text)
    wait_for("no pods", lambda: not pods(cluster))


@pytest.mark.parametrize("words, says, code", [
    (["-l", "app=none"], "No pod has the label app=none", 2),
    (["-n", "other"], "cannot list the pods: Error from server (Forbidden)", 5),
    (["--container", "none"], "container none is not valid for pod", 1),
])  # fmt: skip
def test_what_the_cluster_refuses_is_said(
    cluster: KubeCluster, running: None, words: list[str], says: str, code: int
) -> None:
    got, out, err = result(iopstui(cluster, "k8s", "/data", *words, *JOB, "runtime=2"))
    assert (got, out) == (code, "") and says in err, err


def test_pods_that_find_no_node_are_named(cluster: KubeCluster, running: None) -> None:
    wait_for("pods", lambda: cluster.kubectl("get", "pods").count("Running") == NODES)
    cluster.kubectl("run", "extra", "--image=x", "--labels=app=iopstui", "--overrides",
                    '{"spec": {"nodeSelector": {"a": "b"}}}')  # fmt: skip
    try:
        got, _, err = result(iopstui(cluster, "k8s", "/data", "--connect-timeout", "4s", *JOB,
                                     "runtime=2"))  # fmt: skip
        assert got == 2
        assert f"Only {NODES} of {NODES + 1} pods run: extra (Unschedulable) do not yet" in err
    finally:
        cluster.kubectl("delete", "pod", "extra", "--force")


def evicted(cluster: KubeCluster, process: subprocess.Popen[str]) -> None:
    name = pods(cluster)[0].removeprefix("pod/")
    said = cluster.kubectl(
        "create", "--raw", f"/api/v1/namespaces/default/pods/{name}/eviction", "-f", "-",
        given=json.dumps({"apiVersion": "policy/v1", "kind": "Eviction",
                          "metadata": {"name": name}}),
    )  # fmt: skip
    assert "Success" in said, said


def deleted(cluster: KubeCluster, process: subprocess.Popen[str]) -> None:
    cluster.kubectl("delete", "pods", "-l", "app=iopstui", "--wait=false")


def killed(cluster: KubeCluster, process: subprocess.Popen[str]) -> None:
    process.kill()


def without_a_kubectl(cluster: KubeCluster, process: subprocess.Popen[str]) -> None:
    psutil.Process(process.pid).children()[0].kill()


@pytest.mark.parametrize("end, left, code", [
    (evicted, NODES - 1, 1), (deleted, 0, 1), (killed, 0, -9), (without_a_kubectl, NODES - 1, 1),
])  # fmt: skip
def test_nothing_is_left_in_pods_however_it_ends(
    cluster: KubeCluster, running: None, volume: Path,
    end: Callable[[KubeCluster, subprocess.Popen[str]], None], left: int, code: int,
) -> None:  # fmt: skip
    process = iopstui(cluster, "k8s", "/data", *JOB, "runtime=20")
    wait_for("fio in all pods", lambda: len(fios(volume)) >= NODES)
    assert process.stdout is not None
    assert any(json.loads(line)["event"] == "total" for line in process.stdout)
    end(cluster, process)
    ended = time.monotonic()
    wait_for("it is gone there", lambda: len([*volume.iterdir()]) <= left)
    assert time.monotonic() - ended <= ENDS_WITHIN_S
    got, _, err = result(process)
    assert got == code, err
    assert not [*volume.iterdir()] and not fios(volume)
    if left:
        assert f"{NODES - left} lost" in err or "failed" in err or "interrupted" in err
