# SPDX-License-Identifier: Apache-2.0
"""The container runtime below the fake kubelet: "processes" are directories of a cgroup tree. It
survives a restart of the kubelet. It also checks the result: no device may be held by processes of
two pods at the same time."""

import os
import threading


class Container:
    def __init__(self, uid, pod, name, number, devices, options):
        self.uid, self.pod, self.name = uid, pod, name
        self.id = f"{number:064x}"
        self.devices, self.options = devices, options  # {resource: ids}; env, cdi...
        self.running, self.exit_code = True, None


class Runtime:
    """style: "v2", "v1" (two controllers), "systemd" (v2, names of the systemd driver)."""

    def __init__(self, cgroup_root, style="v2"):
        self.root, self.style = cgroup_root, style
        self.dmem = False  # whether pods have files of that controller
        self.keeps = False  # the cgroups of ended pods
        self.lock = threading.RLock()  # also held while the tree changes
        self.containers = {}  # uid -> name -> Container, the last of each name
        self.started = []     # all Containers ever started
        self.holders = {}     # (resource, id) -> Container
        self.sandboxes = set()
        self.violations = []
        os.makedirs(cgroup_root, exist_ok=True)
        if style != "v1":
            self._write(os.path.join(cgroup_root, "cgroup.controllers"), "cpu memory\n")
        for base in self._bases():
            os.makedirs(base, exist_ok=True)

    def _bases(self):
        if self.style == "v1":
            return [os.path.join(self.root, c, "kubepods", "burstable") for c in ("memory", "cpu,cpuacct")]
        if self.style == "systemd":
            return [os.path.join(self.root, "kubepods.slice", "kubepods-burstable.slice")]
        return [os.path.join(self.root, "kubepods", "burstable")]

    def _pod_dirs(self, uid):
        if self.style == "systemd":
            name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        else:
            name = "pod" + uid
        return [os.path.join(base, name) for base in self._bases()]

    def _scope(self, number):
        return f"cri-containerd-{number}.scope" if self.style == "systemd" else number

    def _container_dirs(self, c):
        return [os.path.join(d, self._scope(c.id)) for d in self._pod_dirs(c.uid)]

    @staticmethod
    def _write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def _make_group(self, directory):
        os.makedirs(directory, exist_ok=True)
        self._write(os.path.join(directory, "cgroup.procs"), "4194000\n")
        if self.style != "v1":
            self._write(os.path.join(directory, "cgroup.events"), "populated 1\nfrozen 0\n")

    def make_pod(self, uid):
        """The pod's sandbox. Its process lives from before the first PreStart until the pod is
        removed."""
        with self.lock:
            if uid in self.sandboxes:
                return
            self.sandboxes.add(uid)
            for d in self._pod_dirs(uid):
                os.makedirs(d)
                self._write(os.path.join(d, "cgroup.procs"), "")  # processes have their own cgroups
                for name in ("dmem.max", "dmem.current") if self.dmem else ():
                    self._write(os.path.join(d, name), "")
                self._make_group(os.path.join(d, self._scope("f" * 64)))
            self._tell_pod(uid, True)

    def remove_pod(self, uid, code=137):
        """Ends all processes of the pod and removes its cgroups, or leaves the pod's own where `keeps` says so."""
        with self.lock:
            for c in self.containers.get(uid, {}).values():
                self.end(c, code)
            if uid not in self.sandboxes:
                return
            self.sandboxes.discard(uid)
            for d in self._pod_dirs(uid):
                self._remove(os.path.join(d, self._scope("f" * 64)))
                self._tell_pod(uid, False)
                if not self.keeps:
                    self._remove(d)

    @staticmethod
    def _remove(directory):
        try:
            for name in os.listdir(directory):
                os.unlink(os.path.join(directory, name))
            os.rmdir(directory)
        except FileNotFoundError:
            pass

    def start(self, uid, pod, name, devices, options):
        """Returns None when the pod's sandbox is gone."""
        with self.lock:
            if uid not in self.sandboxes:
                return None
            before = self.containers.get(uid, {}).get(name)
            if before and before.running:
                return before  # requested by a kubelet that was killed then
            c = Container(uid, pod, name, len(self.started) + 1, devices, options)
            for inside, (host, _) in options.get("mounts", {}).items():
                if not os.path.exists(host):  # a runtime does not start such a container
                    self.violations.append(f"{pod}/{name}: {host} is to be mounted on {inside}, and is not there")
            for resource, ids in devices.items():
                for i in ids:
                    other = self.holders.get((resource, i))
                    if other and other.running and other.uid != uid:
                        self.violations.append(f"{resource} {i}: {other.pod}/{other.name} holds it while {pod}/{name} "
                                               "starts with it")
                    self.holders[resource, i] = c
            self.containers.setdefault(uid, {})[name] = c
            self.started.append(c)
            for d in self._container_dirs(c):
                self._make_group(d)
        return c

    def end(self, c, code=0):
        with self.lock:
            if not c.running:
                return
            c.running, c.exit_code = False, code
            for d in self._container_dirs(c):
                self._remove(d)

    def _tell_pod(self, uid, populated):
        if self.style == "v1":
            return
        for d in self._pod_dirs(uid):
            self._write(os.path.join(d, "cgroup.events"), f"populated {int(populated)}\nfrozen 0\n")

    def of(self, uid, name):
        with self.lock:
            return self.containers.get(uid, {}).get(name)

    def running(self, uid=None):
        with self.lock:
            return [c for u, names in self.containers.items() if uid in (None, u) for c in names.values() if c.running]

    def forget(self, uid):
        with self.lock:
            self.containers.pop(uid, None)
