"""Names of cgroups from their paths alone, as each program makes them."""

from __future__ import annotations

import pytest

from iopstui.model.cgroups import GroupName, group_name

ID = "4f2c7f0c9a51e7d9b1c0e8d4a6f3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f6a5"
UID = "0123abcd_4567_89ab_cdef_0123456789ab"
PODS = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"


@pytest.mark.parametrize(
    ("path", "kind", "name", "whole"),
    [
        ("/", "root", "(no group)", False),
        (".", "group", "(this container)", False),
        ("/system.slice", "slice", "system.slice", False),
        ("/system.slice/nginx.service", "unit", "nginx.service", True),
        ("/system.slice/system-getty.slice/getty@tty1.service", "unit", "getty@tty1.service", True),
        (r"/system.slice/dev-disk-by\x2duuid-1.swap", "unit", "dev-disk-by-uuid-1.swap", True),
        ("/system.slice/db.service/worker", "unit", "db.service", True),
        ("/init.scope", "unit", "init.scope", True),
        ("/user.slice/user-1000.slice", "user", "1000", False),
        ("/user.slice/user-1000.slice/session-3.scope", "unit", "session-3.scope (user 1000)",
         True),
        ("/user.slice/user-1000.slice/user@1000.service", "slice",
         "user@1000.service (user 1000)", False),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice", "slice",
         "app.slice (user 1000)", False),
        (r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-7.scope", "unit",
         "app-firefox-7.scope (user 1000)", True),
        # Docker with the systemd driver, with cgroupfs, and groups made inside a container
        (f"/system.slice/docker-{ID}.scope", "container", "docker 4f2c7f0c9a51", True),
        (f"/docker/{ID}", "container", "docker 4f2c7f0c9a51", True),
        (f"/docker/{ID}/system.slice/cron.service", "container", "docker 4f2c7f0c9a51", True),
        (f"/machine.slice/libpod-{ID}.scope/container", "container", "podman 4f2c7f0c9a51", True),
        (f"/machine.slice/libpod-conmon-{ID}.scope", "container", "4f2c7f0c9a51 (conmon)", True),
        (f"/libpod_parent/libpod-{ID}", "container", "podman 4f2c7f0c9a51", True),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container",
         "container", "podman 4f2c7f0c9a51", True),
        (f"/system.slice:cri-containerd:{ID}", "container", "4f2c7f0c9a51", True),
        (f"/k8s.io/{ID}", "container", "containerd 4f2c7f0c9a51", True),
        # kubelet with the systemd driver and with cgroupfs; of every quality of service
        ("/kubepods.slice", "slice", "kubepods.slice", False),
        ("/kubepods.slice/kubepods-burstable.slice", "slice", "kubepods-burstable.slice", False),
        (f"{PODS}{UID}.slice", "pod", "0123abcd", False),
        (f"{PODS}{UID}.slice/cri-containerd-{ID}.scope", "pod", "0123abcd 4f2c7f0c9a51", True),
        (f"{PODS}{UID}.slice/crio-{ID}.scope/init", "pod", "0123abcd 4f2c7f0c9a51", True),
        (f"/kubepods.slice/kubepods-pod{UID}.slice/docker-{ID}.scope", "pod",
         "0123abcd 4f2c7f0c9a51", True),
        (f"/kubepods/besteffort/pod{UID.replace('_', '-')}/{ID}", "pod", "0123abcd 4f2c7f0c9a51",
         True),
        (f"/kubepods/pod{UID.replace('_', '-')}", "pod", "0123abcd", False),
        ("/kubepods/burstable", "group", "/kubepods/burstable", False),
        # virtual machines and system containers
        (r"/machine.slice/machine-qemu\x2d3\x2ddb\x2d01.scope/libvirt/vcpu0", "machine", "db-01",
         True),
        ("/machine.slice/systemd-nspawn@web.service/payload", "machine", "web", True),
        ("/lxc.payload.web/system.slice/x.service", "machine", "web", True),
        ("/lxc/web", "machine", "web", True),
        ("/lxc", "group", "/lxc", False),
        # batch jobs
        ("/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", "job", "Slurm 42", True),
        ("/slurm/uid_1000/job_7/step_batch", "job", "Slurm 7", True),
        ("/system.slice/slurmd.service", "unit", "slurmd.service", True),
        ("/batch/a b", "group", "/batch/a b", False),
        ("/job_1", "group", "/job_1", False),
    ],
)  # fmt: skip
def test_a_path_has_the_name_that_its_makers_know(
    path: str, kind: str, name: str, whole: bool
) -> None:
    found = group_name(path)
    assert (found.kind, found.name, found.whole) == (kind, name, whole)


def test_what_names_itself_has_no_kind_in_front() -> None:
    assert group_name("/system.slice/nginx.service").text == "nginx.service"
    assert group_name(f"/docker/{ID}").text == "container docker 4f2c7f0c9a51"
    assert group_name("/user.slice/user-7.slice").text == "user 7"


def test_containers_of_one_pod_know_it() -> None:
    one, other = (group_name(f"{PODS}{UID}.slice/crio-{c * 64}.scope") for c in "ab")
    assert one != other
    assert one.pod == other.pod == "0123abcd-4567-89ab-cdef-0123456789ab"
    assert group_name("/system.slice").pod == ""
    assert GroupName("pod", "x").text == "pod x"
