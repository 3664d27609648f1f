"""Kubernetes manifests for the pods of a fleet: an indexed Job or a DaemonSet, one pod per node.

The pods only wait; `iopstui fleet k8s` starts the agents in them. When a pod is deleted or evicted,
its first process passes SIGTERM on, so that agents stop fio and remove their files first.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.text import printable

JOB, DAEMON_SET = "job", "daemonset"
KINDS = (JOB, DAEMON_SET)
IMAGE = "iopstui"
MOUNT_POINT = "/data"
MAX_REPLICAS = 10_000
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PATH = re.compile(r"/[A-Za-z0-9._/-]*")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,500}")
# only as PID 1: in another pid namespace (hostPID) it would end what is not ours. Not $$, of which
# Kubernetes makes $
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
    """Options of a manifest: ``kind`` of KINDS, and the target: a claim (``pvc``) or a directory of
    each node (``local_path``)."""

    kind: str = JOB
    pvc: str | None = None
    local_path: str | None = None
    replicas: int | None = None
    namespace: str = ""
    image: str = IMAGE


def render_manifest(options: ManifestOptions) -> str:
    """YAML for `kubectl apply`. UsageError for names that Kubernetes does not have."""
    if (options.pvc is None) == (options.local_path is None):
        raise UsageError("--print-manifest needs a target: --pvc NAME or --local-path DIRECTORY.",
                         "For example: iopstui fleet k8s --print-manifest --pvc data --replicas "
                         "4")  # fmt: skip
    if (options.kind == JOB) == (options.replicas is None):
        raise UsageError("--replicas N is needed for a Job, and a DaemonSet has none: it runs on "
                         "every node.")  # fmt: skip
    if options.replicas is not None and not 1 <= options.replicas <= MAX_REPLICAS:
        raise UsageError(f"--replicas {options.replicas} is not a number from 1 to {MAX_REPLICAS}.")
    name = _validate("--namespace", options.namespace, _NAME) if options.namespace else ""
    if options.pvc is not None:
        volume = _PVC.format(name=_quote(_validate("--pvc", options.pvc, _NAME)))
        target = (
            f"a persistent volume claim ({options.pvc}) that all nodes can mount (ReadWriteMany)"
        )
    else:
        path = _validate("--local-path", options.local_path or "", _PATH)
        volume = _LOCAL.format(name=_quote(path))
        target = f"{path} of each node"
    pod = _POD.format(image=_quote(_validate("--image", options.image, _IMAGE)),
                      wait=_quote(_WAIT_SCRIPT), mount=MOUNT_POINT, volume=volume)  # fmt: skip
    namespace = f"\n  namespace: {_quote(name)}" if name else ""
    head = _HEAD.format(what=target, mount=MOUNT_POINT, namespace=namespace,
                        options=f" -n {name}" if name else "")  # fmt: skip
    body = _JOB if options.kind == JOB else _DAEMON_SET
    return head + body.format(replicas=options.replicas, namespace=namespace, pod=pod)


def _validate(option: str, text: str, pattern: re.Pattern[str]) -> str:
    if pattern.fullmatch(text) is None:
        raise UsageError(f"{option} {printable(text[:100])!r} is not a name that Kubernetes has.")
    return text


def _quote(text: str) -> str:
    """A string of YAML; those of JSON are."""
    return json.dumps(text)
