"""Pods as hosts, without a cluster (tests/engines has a real API server)."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from iopstui.cli.program import main
from iopstui.errors import Missing, UsageError
from iopstui.features.fleet.engines import kubernetes
from iopstui.features.fleet.engines.kubernetes import (
    ManifestOptions,
    PodSelection,
    parse_pod,
    render_manifest,
)

Row = dict[str, Any]


def pod(
    name: str, node: str = "k1", phase: str = "Running", ready: bool = True, **more: Any
) -> Row:
    return {
        "metadata": {"name": name, **more.get("metadata", {})},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": str(ready)}, *more.get("conditions", ()),
        ], "containerStatuses": more.get("statuses", [])},
    }  # fmt: skip


PENDING = pod("b", "", "Pending", False, conditions=[
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])  # fmt: skip
PULLING = pod("c", "k2", "Pending", False, statuses=[
    {"state": {"waiting": {"reason": "ImagePullBackOff"}}}])  # fmt: skip


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a program in place of kubectl: it prints its files 1, 2 ... in turn, then
    the last one again and again."""
    program = tmp_path / "kubectl"
    program.write_text(
        f'#!/bin/sh\ncd {tmp_path}\necho "$@" >> words\n[ -e error ] && cat error >&2 && exit 1\n'
        "n=$(($(cat n 2>/dev/null || echo 0) + 1)); [ -e $n ] && echo $n > n || n=$(cat n)\n"
        "cat $n\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(kubernetes, "POLL_S", 0.0)
    return tmp_path


def answers(place: Path, *lists: Sequence[Row]) -> None:
    for number, rows in enumerate(lists, 1):
        (place / str(number)).write_text(json.dumps({"items": rows}))


def test_pods_are_waited_for_and_those_that_end_are_left_out(kubectl: Path) -> None:
    ending = [pod("old", metadata={"deletionTimestamp": "now"}), pod("done", phase="Succeeded"),
              pod("evicted", phase="Failed")]  # fmt: skip
    answers(kubectl, [pod("a"), PENDING, PULLING], [pod("a"), pod("b"), PULLING],
            [pod("a"), pod("b", "k2"), pod("c", "k2"), *ending])  # fmt: skip
    told: list[str] = []
    found = PodSelection("app=x,tier in (a, b)", "perf").wait(None, 30.0, told.append)
    assert found == ["a", "b", "c"]
    assert told == [
        "1 of 3 pods run: b (Unschedulable), c (ImagePullBackOff) do not yet",
        "2 of 3 pods run: c (ImagePullBackOff) do not yet", "3 pods on 2 nodes",
    ]  # fmt: skip
    assert "get pods -n perf -l app=x,tier in (a, b) -o json" in (kubectl / "words").read_text()


def test_with_too_few_pods_none_starts_unless_fewer_are_enough(kubectl: Path) -> None:
    answers(kubectl, [pod("a"), PENDING])
    with pytest.raises(UsageError, match=r"Only 1 of 2 pods run: b \(Unschedulable\)"):
        PodSelection().wait(None, 0.0, lambda words: None)
    with pytest.raises(UsageError, match="Only 1 of 2 pods run"):
        PodSelection().wait(2, 0.0, lambda words: None)
    assert PodSelection().wait(1, 0.0, lambda words: None) == ["a"]


def test_no_pods_and_no_cluster_are_said(kubectl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(kubectl, [pod("a", phase="Failed")])
    with pytest.raises(UsageError, match="No pod has the label app=iopstui in the namespace perf"):
        PodSelection(namespace="perf").wait(None, 0.0, lambda words: None)
    (kubectl / "error").write_text("E0101 noise\nThe connection to the server was refused\n")
    with pytest.raises(Missing, match=r"list the pods: The connection to the server was refused\."):
        PodSelection().list_pods()
    (kubectl / "error").unlink()
    for text in ("", "[]", "{}", '{"items": [7]}', '{"items": [{"metadata": {}, "spec": {}}]}'):
        (kubectl / "1").write_text(text)
        with pytest.raises(Missing, match="its list of pods is not valid"):
            PodSelection().list_pods()
    monkeypatch.setenv("PATH", str(kubectl / "none"))
    with pytest.raises(Missing, match="kubectl is not installed"):
        PodSelection().list_pods()


def test_a_pod_that_says_nothing_of_its_state_does_not_run() -> None:
    found = parse_pod({"metadata": {"name": "a"}, "spec": {}})
    assert (found.is_running, found.is_ending, found.reason) == (False, False, "Unknown")


def test_the_launcher_is_kubectl_exec() -> None:
    assert PodSelection().launcher == "kubectl exec -i {host} -- sh -c"
    words = shlex.split(PodSelection("x", "a b", "c").launcher)
    assert words == ["kubectl", "exec", "-i", "-n", "a b", "-c", "c", "{host}", "--", "sh", "-c"]


@pytest.mark.parametrize("words, says", [
    (["k8s", "--launcher", "slurm"], "cannot be combined"),
    (["slurm", "--launcher", "k8s"], "cannot be combined"),
    (["a,b", "-n", "perf"], "--namespace is for HOSTS k8s"),
    (["a,b", "-l", "app=x"], "--selector is for HOSTS k8s"),
    (["k8s", "/data", "--pvc", "x"], "--pvc is for --print-manifest"),
    (["a", "--print-manifest", "--pvc", "x"], "--print-manifest is for Kubernetes"),
    (["k8s", "--print-manifest"], "needs a target"),
    (["k8s", "--print-manifest", "--pvc", "x", "--local-path", "/x"], "needs a target"),
    (["k8s", "--print-manifest", "--pvc", "x"], "--replicas N is needed for a Job"),
    (["k8s", "--print-manifest", "daemonset", "--pvc", "x", "--replicas", "2"], "has none"),
    (["k8s", "--print-manifest", "--pvc", "x", "--replicas", "0"], "not a number from 1"),
    (["k8s", "--print-manifest", "--pvc", "x: y", "--replicas", "1"], "is not a Kubernetes name"),
    (["k8s", "--print-manifest", "daemonset", "--local-path", "x"], "'x' is not a path from /"),
    (["k8s", "--print-manifest", "daemonset", "--local-path", "/x\n"], "is not a path from /"),
    (["k8s", "--print-manifest", "--pvc", "x", "--replicas", "1", "--image", " x"], "an image"),
    (["k8s", "--print-manifest", "--pvc", "x", "--replicas", "1", "-n", "A"], "a Kubernetes name"),
])  # fmt: skip
def test_what_makes_no_sense(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", *words, "--format", "table"]) == 2
    said = capsys.readouterr()
    assert says in said.err and not said.out


@pytest.mark.parametrize("asked", [
    ManifestOptions(pvc="data", replicas=40),
    ManifestOptions("daemonset", local_path="/mnt/fast", namespace="perf", image="r.x/i:1"),
])  # fmt: skip
def test_a_manifest_has_one_pod_per_node_with_the_target_and_the_rights(
    asked: ManifestOptions,
) -> None:
    role, made = yaml.safe_load_all(render_manifest(asked))
    assert role["kind"] == "Role" and {tuple(one["resources"]) for one in role["rules"]} == {
        ("pods",), ("pods/exec",)
    }  # fmt: skip
    spec = made["spec"]["template"]["spec"]
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert [f"{name}={value}" for name, value in labels.items()] == [kubernetes.LABEL]
    (apart,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == labels
    (container,), (volume,) = spec["containers"], spec["volumes"]
    assert container["image"] == asked.image
    assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/data"}]
    if asked.kind == "job":
        assert made["spec"]["completions"] == made["spec"]["parallelism"] == asked.replicas
        assert made["spec"]["completionMode"] == "Indexed"
        assert volume["persistentVolumeClaim"] == {"claimName": asked.pvc}
        assert "namespace" not in made["metadata"] and "namespace" not in role["metadata"]
    else:
        assert made["kind"] == "DaemonSet" and made["spec"]["selector"]["matchLabels"] == labels
        assert volume["hostPath"] == {"path": asked.local_path, "type": "Directory"}
        assert made["metadata"]["namespace"] == role["metadata"]["namespace"] == asked.namespace
    # Kubernetes turns $$ into $, and expands $(NAME)
    assert "$$" not in container["command"][2] and "$(" not in container["command"][2]


@pytest.mark.parametrize("name, asked", [
    ("kubernetes-job.yaml", ManifestOptions(pvc="data", replicas=4)),
    ("kubernetes-daemonset.yaml", ManifestOptions("daemonset", local_path="/mnt/data")),
])  # fmt: skip
def test_the_examples_are_what_is_printed(root: Path, name: str, asked: ManifestOptions) -> None:
    assert (root / "docs/examples" / name).read_text() == render_manifest(asked)
