"""A Kubernetes cluster on this machine: a real control plane, and simulated nodes (kubernetes/)."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from pathlib import Path

from conftest import free_ports, need, wait_for

BUILT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "iopstui-engines"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "nodes")
# nodes.go sends no heartbeats, so no controller may declare its nodes dead
CONTROLLERS = "*,-node-lifecycle-controller"


class KubeCluster:
    """``admin`` and ``bench`` are kubeconfig files: of a user with all rights, and of one without
    rights."""

    def __init__(self, place: Path, volume: Path, nodes: int) -> None:
        need({"etcd": "etcd-server", "kubectl": "kubernetes-client", "openssl": "openssl",
              "nsenter": "util-linux", "unshare": "util-linux"})  # fmt: skip
        if not all((BUILT / name).exists() for name in PROGRAMS):
            subprocess.run([Path(__file__).parent / "kubernetes" / "build"], check=True)
        self._place = place
        self._running: list[subprocess.Popen[bytes]] = []
        self.admin, self.bench = place / "admin", place / "bench"
        try:
            self._start(volume, nodes)
        except BaseException:
            self.close()
            raise

    def _start(self, volume: Path, nodes: int) -> None:
        place, first = self._place, free_ports(5)
        etcd, peer, api, manager, scheduler = range(first, first + 5)
        tokens = {name: secrets.token_hex(16) for name in ("admin", "bench")}
        (place / "tokens").write_text(
            f'{tokens["admin"]},admin,1,"system:masters"\n{tokens["bench"]},bench,2\n'
        )
        key = place / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        for name, token in tokens.items():
            (place / name).write_text(json.dumps(kubeconfig(api, token)))
        url = f"http://127.0.0.1:{etcd}"
        self.run("etcd", "etcd", f"--data-dir={place}/etcd", f"--listen-client-urls={url}",
                 f"--advertise-client-urls={url}", "--unsafe-no-fsync",
                 f"--listen-peer-urls=http://127.0.0.1:{peer}")  # fmt: skip
        self.run("api", BUILT / "kube-apiserver", f"--etcd-servers={url}",
                 "--bind-address=127.0.0.1",
                 f"--secure-port={api}", f"--cert-dir={place}/certs", "--authorization-mode=RBAC",
                 f"--token-auth-file={place}/tokens", f"--service-account-key-file={key}",
                 f"--service-account-signing-key-file={key}", "--service-account-issuer=https://lab",
                 "--service-cluster-ip-range=10.0.0.0/24",
                 "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount")  # fmt: skip
        wait_for("the API server", lambda: "ok" in self.kubectl("get", "--raw", "/readyz"))
        config = f"--kubeconfig={self.admin}"
        self.run("manager", BUILT / "kube-controller-manager", config, "--leader-elect=false",
                 f"--controllers={CONTROLLERS}", f"--secure-port={manager}",
                 "--bind-address=127.0.0.1", f"--cert-dir={place}/certs-manager")  # fmt: skip
        self.run("scheduler", BUILT / "kube-scheduler", config, "--leader-elect=false",
                 f"--secure-port={scheduler}", "--bind-address=127.0.0.1",
                 f"--cert-dir={place}/certs-scheduler")  # fmt: skip
        self.nodes = self.run("nodes", BUILT / "nodes", self.admin, str(nodes), volume)
        wait_for(
            "the nodes", lambda: self.kubectl("get", "nodes", "-o", "name").count("/") == nodes
        )
        wait_for(
            "a default account",
            lambda: "default" in self.kubectl("get", "serviceaccounts", "-o", "name"),
        )

    def run(self, name: str, *words: object) -> subprocess.Popen[bytes]:
        """Start one of the cluster's programs."""
        with (self._place / f"{name}.log").open("wb") as log:
            self._running.append(
                subprocess.Popen([*map(str, words)], stdout=log, stderr=log, cwd=self._place)
            )
        return self._running[-1]

    def kubectl(self, *words: str, given: str = "") -> str:
        """The output of kubectl as admin, errors included."""
        done = subprocess.run(
            ["kubectl", *words],
            input=given,
            capture_output=True,
            text=True,
            env={**os.environ, "KUBECONFIG": str(self.admin)},
            check=False,
        )
        return done.stdout + done.stderr

    def close(self) -> None:
        """End all programs of the cluster."""
        for one in reversed(self._running):
            one.kill()
            one.wait()


def kubeconfig(port: int, token: str) -> dict[str, object]:
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {
            "server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}],
        "users": [{"name": "lab", "user": {"token": token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    }  # fmt: skip
