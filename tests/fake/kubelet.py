# SPDX-License-Identifier: Apache-2.0
"""A kubelet for tests. It watches the pods of its node, admits them one after the other, starts
their containers in separate workers, and writes their status. Devices are left to the device
manager.

Annotations of a pod set what its containers do. `fake/run-CONTAINER: SECONDS`: how long it runs (0:
ends at once; absent: init containers end at once, others run until they are stopped). `fake/linger:
SECONDS`: how long its processes live on after they were stopped (`until-let-go`: until let_go() is
called)."""

import collections
import hashlib
import heapq
import http.client
import json
import os
import queue
import random
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from api import ApiError, MERGE, Watch, pod_path
from device_manager import AdmissionError, DeviceManager, is_sidecar
from runtime import Runtime

MIRROR = "kubernetes.io/config.mirror"


class Timers:
    def __init__(self, submit):
        self.submit = submit
        self.heap, self.count = [], 0
        self.condition = threading.Condition()
        self.stopping = False
        threading.Thread(target=self._run, daemon=True).start()

    def after(self, seconds, function, *args):
        with self.condition:
            self.count += 1
            heapq.heappush(self.heap, (time.monotonic() + seconds, self.count, function, args))
            self.condition.notify()

    def stop(self):
        with self.condition:
            self.stopping = True
            self.condition.notify()

    def _run(self):
        while True:
            with self.condition:
                if self.stopping:
                    return
                now = time.monotonic()
                if not self.heap or self.heap[0][0] > now:
                    self.condition.wait(self.heap[0][0] - now if self.heap else None)
                    continue
                _, _, function, args = heapq.heappop(self.heap)
            self.submit(function, *args)


class Pod:
    """A pod as this run of the kubelet sees it."""

    def __init__(self, kubelet, uid, obj, static=False):
        self.uid, self.object, self.static = uid, obj, static
        self.manager, self.stopping = kubelet.manager, kubelet.stopping  # of this run; a later run has others
        meta = obj["metadata"]
        self.key = f"{meta.get('namespace', 'default')}/{meta['name']}"
        self.lock = threading.Lock()
        self.busy = self.again = False
        self.admitted = self.terminal = self.terminating = self.gone = self.ended = False
        self.phase, self.reason, self.message = "Pending", None, None
        self.waiting = {}   # container -> (reason, message)
        self.retries = collections.Counter()
        self.retry_at = {}  # container -> monotonic
        self.restarts = collections.Counter()
        self.mirrored = False

    def annotation(self, key):
        return self.object["metadata"].get("annotations", {}).get(key)

    def containers(self):
        spec = self.object["spec"]
        return [(c, True) for c in spec.get("initContainers", [])] + [(c, False) for c in spec["containers"]]


class Kubelet:
    def __init__(self, api, node, directory, cgroup_root, seed=None, style="v2", retry=(0.24, 12.0), workers=64,
                 prestart_timeout=30.0, fixed_disconnect=False):
        self.api, self.node, self.dir = api, node, directory
        self.rng = random.Random(seed)
        self.retry, self.workers, self.prestart_timeout = retry, workers, prestart_timeout
        self.fixed_disconnect = fixed_disconnect
        self.runtime = Runtime(cgroup_root, style)
        self.life = Timers(self._guarded)  # timers of processes, which outlive this kubelet
        self.lingering = []       # ends the processes that live until let_go()
        self.let_gone = False
        self.static = {}          # uid -> manifest
        self.condition = threading.Condition()
        self.pods = {}            # uid -> Pod
        self.rejections = []      # (time, key, uid, message)
        self.admissions = {}      # uid -> when its last admission began
        self.prestart_errors = []  # (time, key, container, message)
        self.crashes = []         # faults of this program: a test must see them
        self.latency = collections.defaultdict(list)
        self.calls = []
        self.lists_rejected = 0
        self.manager = None

    # ---- life of the kubelet's process ----

    def start(self, add_delay=0.0, serving=()):
        """The pods are added after `add_delay` seconds, and when the plugins of `serving` have
        registered: a kubelet rejects what it admits before."""
        self.pods = {}
        self.stopping = threading.Event()
        self.pool = ThreadPoolExecutor(self.workers)
        self.timers = Timers(self._submit)
        self.events = queue.Queue()
        self.dirty, self.node_dirty = {}, False
        self.manager = DeviceManager(os.path.join(self.dir, "device-plugins"), os.path.join(self.dir, "pod-resources"),
                                     self.rng, self._active_pods, self.fixed_disconnect)
        self.manager.on_status = self._node_changed
        self.manager.was_running = {(c.uid, c.name) for c in self.runtime.running()}
        self.manager.start()
        self.add_delay, self.serving = add_delay, serving
        self.first = True
        self.threads = [threading.Thread(target=self._sync_loop, daemon=True),
                        threading.Thread(target=self._status_loop, daemon=True)]
        for t in self.threads:
            t.start()
        self.watch = Watch(self.api, "/api/v1/pods", f"fieldSelector=spec.nodeName%3D{self.node}",
                           lambda items: self.events.put(("list", items)),
                           lambda kind, obj: self.events.put((kind, obj)))

    def stop(self):
        """Like kill -9 of the kubelet: containers keep running."""
        self.stopping.set()
        self.watch.stop()
        self.timers.stop()
        self.events.put(("stop", None))
        self.manager.stop()
        with self.condition:
            self.condition.notify_all()
        for t in self.threads:
            t.join(10)
        self.pool.shutdown(wait=False, cancel_futures=True)
        for name, values in self.manager.latency.items():
            self.latency[name] += values
        self.calls += self.manager.calls
        self.lists_rejected += self.manager.lists_rejected

    def close(self):
        self.stop()
        self.life.stop()

    def restart(self, down=0.0, add_delay=0.0, serving=()):
        self.stop()
        time.sleep(down)
        self.start(add_delay, serving)

    def latencies(self):
        return {name: self.latency[name] + list(values) for name, values in self.manager.latency.items()}

    def wait_serving(self, *resources, timeout=60.0):
        return self.manager.wait_for(lambda: self.manager.is_serving(*resources), timeout)

    def all_ended(self, names):
        """Whether this kubelet has seen pods of these names, and all their containers have ended."""
        with self.condition:
            return names <= {p.object["metadata"]["name"] for p in self.pods.values() if p.terminal}

    def _notify(self):
        with self.condition:
            self.condition.notify_all()

    def _guarded(self, function, *args):
        try:
            function(*args)
        except Exception:  # any fault is passed to the test
            if not self.stopping.is_set():
                self.crashes.append(traceback.format_exc())

    def _submit(self, function, *args):
        try:
            self.pool.submit(self._guarded, function, *args)
        except RuntimeError:
            pass  # the pool has been shut down

    # pods are added and deleted

    def _active_pods(self):
        with self.condition:
            found = [(p.uid, p.object) for p in self.pods.values() if not p.terminal and not p.ended]
        random.shuffle(found)  # the original iterates over a map
        return found

    def _sync_loop(self):
        while not self.stopping.is_set():
            kind, value = self.events.get()
            try:
                if kind == "list":
                    self._take_list(value)
                elif kind == "DELETED":
                    self._remove(value)
                elif kind == "static":
                    self._add(value["metadata"]["uid"], value, static=True)
                elif kind in ("ADDED", "MODIFIED"):
                    self._take(value)
            except Exception:
                if not self.stopping.is_set():
                    self.crashes.append(traceback.format_exc())
            self._notify()

    def _take_list(self, items):
        if self.first:
            self.stopping.wait(self.add_delay)
            while not self.stopping.is_set() and not self.manager.wait_for(lambda: self.manager.is_serving(*self.serving), 0.1):
                pass
            # One batch, in order of creation; random within the same second.
            self.rng.shuffle(items)
            items.sort(key=lambda o: o["metadata"]["creationTimestamp"])
            for uid, manifest in self.static.items():
                self._add(uid, manifest, static=True)
        known = {o["metadata"]["uid"] for o in items}
        for obj in items:
            if self.stopping.is_set():
                return
            self._take(obj)
        for pod in [p for p in list(self.pods.values()) if not p.static and p.uid not in known]:
            self._remove(pod.object)
        if self.first:
            self.manager.sources_ready = True
            self.first = False
            for c in self.runtime.running():
                if c.uid not in self.pods:
                    self.life.after(0, self._forget, c.uid)

    def _take(self, obj):
        if MIRROR in obj["metadata"].get("annotations", {}):
            return
        uid = obj["metadata"]["uid"]
        pod = self.pods.get(uid)
        if not pod:
            self._add(uid, obj)
            return
        pod.object = obj
        if "deletionTimestamp" in obj["metadata"] and not pod.terminating:
            pod.terminating = True
            self._work(pod)

    def _add(self, uid, obj, static=False):
        pod = Pod(self, uid, obj, static)
        pod.phase = obj.get("status", {}).get("phase", "Pending") if not static else "Pending"
        pod.terminal = pod.phase in ("Succeeded", "Failed")
        with self.condition:
            self.pods[uid] = pod  # List shows it from now on
        if pod.terminal:
            return
        if "deletionTimestamp" in obj["metadata"]:
            pod.terminating = pod.admitted = True
            self._work(pod)
            return
        self.admissions[uid] = time.monotonic()
        try:
            for container, is_init in pod.containers():
                self.manager.allocate_container(uid, obj["spec"], container, is_init)
        except AdmissionError as error:
            self._reject(pod, f"Allocate failed due to {error}, which is unexpected")
            return
        pod.admitted = True
        self._work(pod)

    def _reject(self, pod, message):
        if self.stopping.is_set():
            return
        pod.phase, pod.reason, pod.message = "Failed", "UnexpectedAdmissionError", message
        pod.terminal = True
        self.rejections.append((time.monotonic(), pod.key, pod.uid, message))
        self.runtime.remove_pod(pod.uid)
        self._status(pod)

    def _remove(self, obj):
        with self.condition:
            pod = self.pods.get(obj["metadata"]["uid"])
            if not pod or pod.static:
                return
            del self.pods[pod.uid]  # its devices are free from now on
        pod.gone = True

        self._linger(pod, lambda: self._forget(pod.uid))

    def _forget(self, uid):
        self.runtime.remove_pod(uid)
        self.runtime.forget(uid)
        self._notify()

    def _linger(self, pod, end):
        linger = pod.annotation("fake/linger") or "0"
        if linger == "until-let-go":
            with self.condition:
                if not self.let_gone:
                    self.lingering.append(end)
                    return
            linger = "0"
        self.life.after(float(linger), end)

    def let_go(self):
        """Ends the processes that live until this is called, now and for each pod that is deleted
        later. The caller may see a deletion before this kubelet does."""
        with self.condition:
            ends, self.lingering, self.let_gone = self.lingering, [], True
        for end in ends:
            self.life.after(0, end)

    def add_static(self, obj):
        """Adds a manifest to the kubelet's own directory. Returns the UID that the kubelet gives
        it."""
        uid = hashlib.md5(json.dumps(obj, sort_keys=True).encode()).hexdigest()
        obj = json.loads(json.dumps(obj))
        obj["metadata"]["uid"] = uid
        obj["metadata"]["name"] += "-" + self.node
        obj["metadata"].setdefault("namespace", "default")
        obj["metadata"].setdefault("annotations", {}).update({"kubernetes.io/config.hash": uid,
                                                              "kubernetes.io/config.source": "file"})
        obj["spec"]["nodeName"] = self.node
        self.static[uid] = obj
        self.events.put(("static", obj))
        return uid

    # the worker of one pod: serial within the pod, concurrent with others

    def _work(self, pod):
        with pod.lock:
            if pod.busy:
                pod.again = True
                return
            pod.busy = True
        self._submit(self._worker, pod)

    def _worker(self, pod):
        while True:
            try:
                self._sync_pod(pod)
            finally:
                with pod.lock:
                    again, pod.again = pod.again, False
                    pod.busy = again
            self._notify()
            if not again:
                return

    def _sync_pod(self, pod):
        if pod.gone or pod.ended or pod.stopping.is_set():
            return
        if pod.terminating:
            self._terminate(pod)
            return
        if pod.terminal:
            return
        if pod.static and not pod.mirrored:
            self._make_mirror(pod)
        self.runtime.make_pod(pod.uid)
        self._start_containers(pod)
        self._conclude(pod)

    def _start_containers(self, pod):
        for container, is_init in pod.containers():
            c = self.runtime.of(pod.uid, container["name"])
            if c and c.running:
                if is_init and not is_sidecar(container):
                    return
                continue
            if c and is_init and not is_sidecar(container) and c.exit_code == 0:
                continue
            if c and not is_init and not self._restarts(pod, c):
                continue
            if not self._start_container(pod, container, is_init) and is_init:
                return
            if pod.gone or pod.terminating or pod.stopping.is_set():
                return
            c = self.runtime.of(pod.uid, container["name"])
            if c and c.running and is_init and not is_sidecar(container):
                self._status(pod)  # it may run for long, so its ID is published first
                return

    @staticmethod
    def _restarts(pod, c):
        policy = pod.object["spec"].get("restartPolicy", "Always")
        return policy == "Always" or (policy == "OnFailure" and c.exit_code != 0)

    def _start_container(self, pod, container, is_init):
        name = container["name"]
        if pod.retry_at.get(name, 0) > time.monotonic():
            return False
        try:
            options = pod.manager.prestart(pod.uid, container, self.prestart_timeout)
        except AdmissionError as error:
            if pod.gone or pod.stopping.is_set():
                return False
            self.prestart_errors.append((time.monotonic(), pod.key, name, str(error)))
            delay = self.retry[0] if pod.retries[name] == 0 else self.retry[1]
            pod.retries[name] += 1
            pod.retry_at[name] = time.monotonic() + delay
            pod.waiting[name] = ("CreateContainerConfigError", str(error))
            self.timers.after(delay, self._work, pod)
            self._status(pod)
            return False
        if pod.stopping.is_set():
            return False
        if self.runtime.of(pod.uid, name):
            pod.restarts[name] += 1
        pod.waiting.pop(name, None)
        pod.retries[name] = 0
        devices = pod.manager.container_devices(pod.uid, name)
        c = self.runtime.start(pod.uid, pod.key, name, devices, options)  # even if the pod was deleted meanwhile
        if not c:
            return False
        run = pod.annotation("fake/run-" + name)
        if run is None and is_init and not is_sidecar(container):
            run = "0"
        if run is not None:
            if float(run) > 0:
                self.life.after(float(run), self.finish, pod.uid, name)
            else:
                self.finish(pod.uid, name)
        return True

    def finish(self, uid, name, code=0):
        """The container's process has ended."""
        c = self.runtime.of(uid, name)
        if c:
            self.runtime.end(c, code)
        pod = self.pods.get(uid)
        if pod:
            self._work(pod)

    def _conclude(self, pod):
        if pod.gone:
            return
        mains = [self.runtime.of(pod.uid, c["name"]) for c in pod.object["spec"]["containers"]]
        if all(c and not c.running and not self._restarts(pod, c) for c in mains):
            pod.phase = "Succeeded" if all(c.exit_code == 0 for c in mains) else "Failed"
            self._status(pod, end=True)
            return
        phase = "Running" if all(mains) else "Pending"
        if phase != pod.phase or pod.waiting:
            pod.phase = phase
            self._status(pod)

    def _end_pod(self, pod):
        """All containers have ended: the devices are free."""
        self.runtime.remove_pod(pod.uid, 0)  # sidecars end at once
        pod.terminal = True

    def _terminate(self, pod):
        running = self.runtime.running(pod.uid)
        if running:
            def end():
                for c in running:
                    self.runtime.end(c, 143)
                self._work(pod)
            if not getattr(pod, "told_to_end", False):
                pod.told_to_end = True
                self._linger(pod, end)
            return
        pod.ended = True
        self.runtime.remove_pod(pod.uid)
        if pod.phase not in ("Succeeded", "Failed"):
            pod.phase = "Failed" if any((c and c.exit_code) for c in self._last(pod)) else "Succeeded"
        self._status(pod, delete=True)

    def _last(self, pod):
        return [self.runtime.of(pod.uid, c["name"]) for c, _ in pod.containers()]

    def _make_mirror(self, pod):
        mirror = json.loads(json.dumps(pod.object))
        del mirror["metadata"]["uid"]
        mirror["metadata"]["annotations"][MIRROR] = pod.uid
        try:
            self.api.post(f"/api/v1/namespaces/{mirror['metadata']['namespace']}/pods", mirror)
        except ApiError as error:
            if error.status != 409:
                self.timers.after(0.5, self._work, pod)
                return
        except OSError:
            self.timers.after(0.5, self._work, pod)
            return
        pod.mirrored = True

    # ---- status ----

    def _status(self, pod, delete=False, end=False):
        if end:
            self._end_pod(pod)
        if pod.stopping.is_set():
            return
        with self.condition:
            self.dirty[pod.uid] = (pod, delete or self.dirty.get(pod.uid, (pod, False))[1])
            self.condition.notify_all()

    def _node_changed(self):
        with self.condition:
            self.node_dirty = True
            self.condition.notify_all()

    def _status_loop(self):
        while not self.stopping.is_set():
            with self.condition:
                if not self.dirty and not self.node_dirty:
                    self.condition.wait(1.0)
                    continue
                dirty, self.dirty = self.dirty, {}
                node, self.node_dirty = self.node_dirty, False
            if node:
                self._retry(self._write_node, self._node_changed)
            for pod, delete in dirty.values():
                self._retry(self._write_status, self._status, pod, delete)

    def _retry(self, write, again, *args):
        try:
            write(*args)
        except (OSError, ApiError, http.client.HTTPException) as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                self.timers.after(0.1, again, *args)
        except Exception:
            if not self.stopping.is_set():
                self.crashes.append(traceback.format_exc())

    def _write_node(self):
        capacity, allocatable = self.manager.capacity()
        texts = [{r: str(n) for r, n in counts.items()} for counts in (capacity, allocatable)]
        self.api.patch(f"/api/v1/nodes/{self.node}/status",
                       {"status": {"capacity": texts[0], "allocatable": texts[1]}}, MERGE)

    def _container_status(self, pod, container):
        name = container["name"]
        c = self.runtime.of(pod.uid, name)
        status = {"name": name, "image": container.get("image", "none"), "imageID": "", "ready": bool(c and c.running),
                  "restartCount": pod.restarts[name]}
        if name in pod.waiting:
            reason, message = pod.waiting[name]
            status["state"] = {"waiting": {"reason": reason, "message": message}}
        elif c and c.running:
            status["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        elif c:
            status["state"] = {"terminated": {"exitCode": c.exit_code, "reason": "Completed" if c.exit_code == 0
                                              else "Error"}}
        else:
            status["state"] = {"waiting": {"reason": "PodInitializing"}}
        if c:
            status["containerID"] = "containerd://" + c.id
        return status

    def _write_status(self, pod, delete):
        path = pod_path(pod.object)
        status = {"phase": pod.phase, "reason": pod.reason, "message": pod.message}
        if pod.reason != "UnexpectedAdmissionError":  # the pod was never started
            spec = pod.object["spec"]
            status["containerStatuses"] = [self._container_status(pod, c) for c in spec["containers"]]
            if spec.get("initContainers"):
                status["initContainerStatuses"] = [self._container_status(pod, c) for c in spec["initContainers"]]
        meta = {} if pod.static else {"uid": pod.uid}  # another pod of that name: 409
        self.api.patch(path + "/status", {"metadata": meta, "status": status}, MERGE)
        if delete and not pod.static:
            self.api.delete(path, grace=0, uid=pod.uid)
