"""Pods of a Kubernetes cluster as hosts: found by their labels, reached by `kubectl exec`.

kubectl finds the cluster by its own configuration (KUBECONFIG, the current context). If pods are
not running yet, iopstui waits for them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui.errors import Missing, UsageError
from iopstui.format import first_of
from iopstui.text import printable
from iopstui.untrusted import parse_json

KUBERNETES = "k8s"
"""In place of HOSTS it means all pods with a label; as --launcher it means kubectl exec for the
named pods."""
LABEL = "app=iopstui"
"""The label of pods from iopstui's own manifests."""
POLL_S = 2.0
ANSWER_TIMEOUT_S = 30
MAX_NAMED = 3
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Pods chosen by a label ``selector``. "" means the ``namespace`` of kubectl's context, or a
    pod's first ``container``."""

    selector: str = LABEL
    namespace: str = ""
    container: str = ""

    @property
    def launcher(self) -> str:
        """The launcher's command line, with {host} in it."""
        command = ["kubectl", "exec", "-i", *self._namespace]
        command += ["-c", self.container] if self.container else []
        return f"{shlex.join(command)} {{host}} -- sh -c"

    @property
    def _namespace(self) -> list[str]:
        return ["-n", self.namespace] if self.namespace else []

    def list_pods(self) -> list[Pod]:
        """All pods with the label. Raises Missing if kubectl or the cluster does not answer."""
        command = ["kubectl", "get", "pods", *self._namespace, "-l", self.selector, "-o", "json",
                 f"--request-timeout={ANSWER_TIMEOUT_S}s"]  # fmt: skip
        require_kubectl()
        try:
            result = subprocess.run(command, capture_output=True, timeout=ANSWER_TIMEOUT_S + 5,
                                  check=False)  # fmt: skip
            if result.returncode:
                raise _kubectl_error(result.stderr.decode("utf-8", "replace"))
            items = parse_json(result.stdout, is_large=False, exact=True)["items"]
            return [parse_pod(item) for item in items]
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _kubectl_error(str(error)) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise _kubectl_error("its list of pods is not valid") from error

    def wait(
        self, min_pods: int | None, timeout_s: float, report: Callable[[str], None]
    ) -> list[str]:
        """Names of the running pods, once all of them run, or at least ``min_pods`` after
        ``timeout_s``. ``report`` is called with the pods that are still missing. Raises UsageError
        if there are too few."""
        deadline, last_message = time.monotonic() + timeout_s, ""
        while True:
            pods = [pod for pod in self.list_pods() if not pod.is_ending]
            ready = [pod for pod in pods if pod.is_running]
            if pods and len(ready) == len(pods):
                break
            if not pods:
                raise self._no_pods_error()
            if time.monotonic() >= deadline:
                if min_pods is not None and len(ready) >= min_pods:
                    break
                raise UsageError(
                    f"Only {_waiting_text(pods, ready)}.",
                    "To see why: kubectl describe pod. To wait longer: --connect-timeout 10m. To "
                    "start with fewer: --min-hosts N",
                )
            if (message := _waiting_text(pods, ready)) != last_message:
                last_message = message
                report(message)
            time.sleep(POLL_S)
        nodes = {pod.node for pod in ready}
        report(f"{len(ready)} pods on {len(nodes)} nodes")
        return [pod.name for pod in ready]

    def _no_pods_error(self) -> UsageError:
        in_namespace = f" in the namespace {self.namespace}" if self.namespace else ""
        return UsageError(
            f"No pod has the label {printable(self.selector)}{in_namespace}.",
            "To make some: iopstui fleet k8s --print-manifest --pvc NAME --replicas 4 | kubectl "
            "apply -f -",
        )


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. ``is_running``: it runs and its containers are ready; ``reason`` says why it does not
    run; ``is_ending``: it was deleted or evicted, or has finished."""

    name: str
    node: str
    is_running: bool
    is_ending: bool
    reason: str


def parse_pod(row: Object) -> Pod:
    """Parse a pod in the output of `kubectl get -o json`. Raises LookupError or TypeError for
    something else."""
    metadata, spec, status = row["metadata"], row["spec"], row.get("status", {})
    phase = str(status.get("phase", "Unknown"))
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    ready = conditions.get("Ready", {}).get("status") == "True"
    states = [container.get("state", {}) for container in status.get("containerStatuses", ())]
    waiting = [state["waiting"].get("reason") for state in states if "waiting" in state]
    scheduled = conditions.get("PodScheduled", {})
    waiting_reason = next(
        (str(reason) for reason in (*waiting, scheduled.get("reason")) if reason), phase
    )
    ending = "deletionTimestamp" in metadata or phase in ("Succeeded", "Failed")
    return Pod(str(metadata["name"]), str(spec.get("nodeName", "")), phase == "Running" and ready,
               ending, waiting_reason)  # fmt: skip


def _waiting_text(pods: Sequence[Pod], ready: Sequence[Pod]) -> str:
    not_ready = [printable(f"{pod.name} ({pod.reason})") for pod in pods if pod not in ready]
    names = first_of(not_ready, MAX_NAMED)
    return f"{len(ready)} of {len(pods)} pods run: {names} do not yet"


def require_kubectl() -> None:
    """Raise Missing if kubectl is not installed."""
    if shutil.which("kubectl") is None:
        raise Missing("kubectl is not installed here.",
                      "Install it, for example: apt install kubernetes-client")  # fmt: skip


def _kubectl_error(message: str) -> Missing:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    reason = printable(lines[-1][:200]).rstrip(".?") if lines else "it says nothing"
    return Missing(f"kubectl cannot list the pods: {reason}.",
                   "Its cluster: kubectl config current-context. Your rights: "
                   "kubectl auth can-i create pods/exec")  # fmt: skip


# Kubernetes manifests for the pods of a fleet: an indexed Job or a DaemonSet, one pod per node.
#
# The pods only wait; `iopstui fleet k8s` starts the agents in them. When a pod is deleted or
# evicted, its first process passes SIGTERM on, so that agents stop fio and remove their files
# first.


JOB, DAEMON_SET = "job", "daemonset"
KINDS = (JOB, DAEMON_SET)
IMAGE = "iopstui"
MOUNT_POINT = "/data"
MAX_REPLICAS = 10_000
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PATH = re.compile(r"/[A-Za-z0-9._/-]*")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,500}")
_A_NAME = "a Kubernetes name (a-z, 0-9, - and .)"
_A_PATH = "a path from / on with letters, digits and . _ - only"
_AN_IMAGE = "the name of an image"
# only as PID 1: elsewhere (hostPID) the script would end other processes, too. $$ can't be used,
# because Kubernetes turns it into $
_WAIT_SCRIPT = (
    "read pid rest < /proc/self/stat; [ $pid = 1 ] || exit 1; "
    "trap 'kill -TERM -1; while set -- /proc/[0-9]*; [ $# -gt 1 ]; do sleep 0.2; "
    "done; exit 0' TERM; while :; do sleep 3600 & wait $!; done"
)
_HEAD = """\
# iopstui's pods: {what}.
# kubectl apply -f THIS, then: iopstui fleet k8s {mount} --job randread-4k{options}
# When you are done: kubectl delete -f THIS
#
# The role is what `iopstui fleet k8s` needs. Bind it to whoever runs that; cluster
# administrators have these rights already.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: iopstui-fleet{namespace}
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list]
- apiGroups: [""]
  resources: [pods/exec]
  verbs: [create, get]
---
"""
_JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: iopstui{namespace}
  labels: {{app: iopstui}}
spec:
  completionMode: Indexed
  completions: {replicas}
  parallelism: {replicas}
  backoffLimit: 0
  # pods that are forgotten end by themselves
  activeDeadlineSeconds: 86400
  ttlSecondsAfterFinished: 600
  template:
    metadata:
      labels: {{app: iopstui}}
    spec:
      restartPolicy: Never
{pod}"""
_DAEMON_SET = """\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: iopstui{namespace}
  labels: {{app: iopstui}}
spec:
  selector:
    matchLabels: {{app: iopstui}}
  template:
    metadata:
      labels: {{app: iopstui}}
    spec:
{pod}"""
_POD = """\
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 15
      # one pod per node
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels: {{app: iopstui}}
      containers:
      - name: iopstui
        image: {image}
        command: [sh, -c, {wait}]
        resources:
          requests: {{cpu: "1", memory: 256Mi}}
        volumeMounts:
        - {{name: target, mountPath: {mount}}}
      volumes:
      - name: target
{volume}"""
_PVC = """\
        persistentVolumeClaim: {{claimName: {name}}}
"""
_LOCAL = """\
        hostPath: {{path: {name}, type: Directory}}
"""


@dataclass(frozen=True, slots=True)
class ManifestOptions:
    """Options of a manifest: ``kind`` is one of KINDS; the target is a claim (``pvc``) or a
    directory on each node (``local_path``)."""

    kind: str = JOB
    pvc: str | None = None
    local_path: str | None = None
    replicas: int | None = None
    namespace: str = ""
    image: str = IMAGE


def render_manifest(options: ManifestOptions) -> str:
    """The YAML for `kubectl apply`. Raises UsageError for names that Kubernetes does not allow."""
    if (options.pvc is None) == (options.local_path is None):
        raise UsageError("--print-manifest needs a target: --pvc NAME or --local-path DIRECTORY.",
                         "For example: iopstui fleet k8s --print-manifest --pvc data --replicas "
                         "4")  # fmt: skip
    if (options.kind == JOB) == (options.replicas is None):
        raise UsageError("--replicas N is needed for a Job, and a DaemonSet has none: it runs on "
                         "every node.")  # fmt: skip
    if options.replicas is not None and not 1 <= options.replicas <= MAX_REPLICAS:
        raise UsageError(f"--replicas {options.replicas} is not a number from 1 to {MAX_REPLICAS}.")
    name = _validate("--namespace", options.namespace, _NAME, _A_NAME) if options.namespace else ""
    if options.pvc is not None:
        volume = _PVC.format(name=_quote(_validate("--pvc", options.pvc, _NAME, _A_NAME)))
        target = (
            f"a persistent volume claim ({options.pvc}) that all nodes can mount (ReadWriteMany)"
        )
    else:
        path = _validate("--local-path", options.local_path or "", _PATH, _A_PATH)
        volume = _LOCAL.format(name=_quote(path))
        target = f"{path} of each node"
    pod = _POD.format(image=_quote(_validate("--image", options.image, _IMAGE, _AN_IMAGE)),
                      wait=_quote(_WAIT_SCRIPT), mount=MOUNT_POINT, volume=volume)  # fmt: skip
    namespace = f"\n  namespace: {_quote(name)}" if name else ""
    head = _HEAD.format(what=target, mount=MOUNT_POINT, namespace=namespace,
                        options=f" -n {name}" if name else "")  # fmt: skip
    body = _JOB if options.kind == JOB else _DAEMON_SET
    return head + body.format(replicas=options.replicas, namespace=namespace, pod=pod)


def _validate(option: str, text: str, pattern: re.Pattern[str], kind: str) -> str:
    if pattern.fullmatch(text) is None:
        raise UsageError(f"{option} {printable(text[:100])!r} is not {kind}.")
    return text


def _quote(text: str) -> str:
    """A string in YAML (every JSON string is one)."""
    return json.dumps(text)
