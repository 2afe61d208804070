# SPDX-License-Identifier: Apache-2.0
"""The kubelet's device manager as in pkg/kubelet/cm/devicemanager of 1.36, with its faults.

Names follow the original (manager.go, endpoint.go, plugin/v1beta1), so that the two can be
compared. Where the original is random (Go's maps and sets), a seeded generator decides. Topology
policy "none": no affinity."""

import base64
import json
import os
import random
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc_wire as wire
from grpc_wire import dp, grpc, pr

PRESTART_TIMEOUT = 30.0  # pluginapi.KubeletPreStartContainerRPCTimeoutInSecs
DIAL_TIMEOUT = 10.0
STOP_GRACE = 300.0       # endpointStopGracePeriod: capacity stays that long
LIST_RATE, LIST_BURST = 100.0, 10


class AdmissionError(Exception):
    """The pod is rejected for good."""


def rpc_text(error):
    code = error.code()
    name = "".join(part.capitalize() for part in code.name.split("_"))
    return f"rpc error: code = {name} desc = {error.details()}"


class Limiter:
    """golang.org/x/time/rate: tokens are added at a steady rate."""

    def __init__(self, rate, burst):
        self.rate, self.burst = rate, burst
        self.tokens, self.at = float(burst), time.monotonic()
        self.lock = threading.Lock()

    def allow(self):
        with self.lock:
            now = time.monotonic()
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
            self.at = now
            if self.tokens < 1:
                return False
            self.tokens -= 1
            return True


class Client:
    """plugin/v1beta1/client.go and endpoint.go in one: the connection to one plugin's socket."""

    def __init__(self, resource, socket):
        self.resource, self.socket = resource, socket
        self.channel = wire.channel(socket)
        self.remote = wire.PluginCalls(self.channel)
        self.options = None
        self.stopped_at = None
        self.updates = 0

    def connect(self):
        grpc.channel_ready_future(self.channel).result(DIAL_TIMEOUT)
        self.options = self.remote.options(dp.Empty(), timeout=DIAL_TIMEOUT)

    def check(self):
        if self.stopped_at is not None:
            raise AdmissionError(f"endpoint {self.resource} has been stopped")


class DeviceManager:
    def __init__(self, directory, pod_resources_dir, rng, active_pods, fixed_disconnect=False):
        self.dir, self.pod_resources_dir = directory, pod_resources_dir
        self.checkpoint_path = os.path.join(directory, "kubelet_internal_checkpoint")
        self.rng = rng or random.Random()
        self.listed_pods = lambda: self.active_pods()  # kubelets before 1.34 list other pods as well
        self.active_pods = active_pods  # () -> list of pods (dicts as of the API), the one being admitted included
        self.fixed_disconnect = fixed_disconnect  # with the fix of kubernetes#135437
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.endpoints, self.clients = {}, {}
        self.healthy, self.unhealthy, self.devices = {}, {}, {}
        self.allocated = {}
        self.pod_devices = {}  # uid -> container -> resource -> (frozenset of ids, response)
        self.listed, self.entries = {}, {}  # the texts of both, by uid, until they change
        self.reuse = (None, {})
        self.sources_ready = False
        self.was_running = set()  # (uid, container) that the runtime reported when the kubelet came up
        self.latency = {"GetPreferredAllocation": [], "Allocate": [], "PreStartContainer": [], "List": []}
        self.lists_rejected = self.allocatable_asked = 0
        self.registrations = []  # (time, resource)
        self.followed = set()    # the plugins whose ListAndWatch has not been seen to end
        self.calls = []          # (name, resource, begin, end) of the serialized calls
        self.on_status = lambda: None
        self.between = lambda: None  # for tests: called in the middle of List
        self.servers, self.executors = [], []
        self.stopping = False

    # ---- start and stop ----

    def start(self):
        os.makedirs(self.dir, exist_ok=True)
        os.makedirs(self.pod_resources_dir, exist_ok=True)
        self._read_checkpoint()
        for name in os.listdir(self.dir):  # CleanupPluginDirectory: sockets only
            path = os.path.join(self.dir, name)
            try:
                if stat.S_ISSOCK(os.stat(path).st_mode):
                    os.unlink(path)
            except FileNotFoundError:
                pass
        self.limiter = Limiter(LIST_RATE, LIST_BURST)
        registration = {"Register": wire.unary_handler(self._register, dp.RegisterRequest)}
        listing = {"List": wire.unary_handler(self._list, pr.ListPodResourcesRequest),
                   "Get": wire.unary_handler(self._get, pr.GetPodResourcesRequest),
                   "GetAllocatableResources": wire.unary_handler(self._allocatable, pr.AllocatableResourcesRequest)}
        self._serve(os.path.join(self.pod_resources_dir, "kubelet.sock"), "v1.PodResourcesLister", listing, 8)
        self._serve(os.path.join(self.dir, "kubelet.sock"), "v1beta1.Registration", registration, 8)

    def _serve(self, path, service, handlers, workers):
        executor = ThreadPoolExecutor(workers)
        self.executors.append(executor)
        self.servers.append(wire.serve(path, service, handlers, executor))

    def stop(self):
        """As when the process ends: nothing is written from now on."""
        with self.lock:
            self.stopping = True
            clients = list(self.clients.values())
            self.clients = {}
        for client in clients:
            client.channel.close()
        for server in self.servers:
            server.stop(0).wait(5)
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)

    # ---- registration: plugin/v1beta1/server.go, handler.go ----

    def _register(self, request, context):
        if request.version != "v1beta1":
            context.abort(grpc.StatusCode.UNKNOWN, f"requested API version {request.version!r} is not supported")
        if "/" not in request.resource_name:
            context.abort(grpc.StatusCode.UNKNOWN, f"the ResourceName {request.resource_name!r} is invalid")
        client = Client(request.resource_name, os.path.join(self.dir, request.endpoint))
        with self.lock:
            self.clients[client.resource] = client
        try:
            client.connect()
        except (grpc.RpcError, grpc.FutureTimeoutError) as error:
            with self.lock:
                self.clients.pop(client.resource, None)
            client.channel.close()
            context.abort(grpc.StatusCode.UNKNOWN, f"failed to dial device plugin: {error}")
        with self.lock:
            self.endpoints[client.resource] = client
            self.registrations.append((time.monotonic(), client.resource))
            self.followed.add(client)
        threading.Thread(target=self._run_client, args=(client,), daemon=True).start()
        return dp.Empty()

    def _run_client(self, client):
        try:
            for response in client.remote.watch(dp.Empty()):
                client.updates += 1
                self._update(client.resource, response.devices)
        except (grpc.RpcError, ValueError):  # ValueError: the channel has been closed
            pass
        # The original looks up the plugin that has the name *now*, and so disconnects a newer one
        # (kubernetes#135437).
        with self.lock:
            victim = client if self.fixed_disconnect else self.clients.get(client.resource)
            if victim is None or (self.fixed_disconnect and self.clients.get(client.resource) is not client):
                victim = None
            else:
                del self.clients[client.resource]
        client.channel.close()
        if victim:
            victim.channel.close()
        with self.lock:
            if victim:
                self._mark_unhealthy(client.resource)
                if client.resource in self.endpoints:
                    self.endpoints[client.resource].stopped_at = time.monotonic()
            self.followed.discard(client)
            self.changed.notify_all()
        if not self.stopping:
            self.on_status()

    def _mark_unhealthy(self, resource):
        self.unhealthy[resource] = self.unhealthy.get(resource, set()) | self.healthy.get(resource, set())
        self.healthy[resource] = set()

    def _update(self, resource, devices):  # genericDeviceUpdateCallback
        with self.lock:
            self.healthy[resource] = {d.ID for d in devices if d.health == "Healthy"}
            self.unhealthy[resource] = {d.ID for d in devices if d.health != "Healthy"}
            self.devices[resource] = {d.ID: [n.ID for n in d.topology.nodes] for d in devices}
            self.changed.notify_all()
        self._write_checkpoint()
        self.on_status()

    def wait_for(self, condition, timeout=20.0):
        """Waits until condition() holds. It is checked under the lock, whenever devices changed."""
        with self.lock:
            return self.changed.wait_for(condition, timeout)

    def is_serving(self, *resources):
        """An older plugin of the resource whose end has not been noticed would still disconnect the
        newer one: see _run_client()."""
        with self.lock:
            return all(self.healthy.get(r) and r in self.endpoints and self.endpoints[r].stopped_at is None and
                       all(c is self.endpoints[r] for c in self.followed if c.resource == r) for r in resources)

    def is_registered_since(self, at, *resources):
        with self.lock:
            return self.is_serving(*resources) and all(
                any(t > at and r == resource for t, r in self.registrations) for resource in resources)

    def capacity(self):
        """(capacity, allocatable) by resource; GetCapacity."""
        capacity, allocatable = {}, {}
        with self.lock:
            for resource in set(self.healthy) | set(self.unhealthy):
                endpoint = self.endpoints.get(resource)
                stopped = endpoint.stopped_at if endpoint else 0
                if not endpoint or (stopped is not None and time.monotonic() - stopped > STOP_GRACE):
                    continue
                allocatable[resource] = len(self.healthy.get(resource, ()))
                capacity[resource] = allocatable[resource] + len(self.unhealthy.get(resource, ()))
        return capacity, allocatable

    # ---- checkpoint ----

    def _entry_texts(self, uid):
        if uid not in self.entries:
            self.entries[uid] = [
                json.dumps({"PodUID": uid, "ContainerName": container, "ResourceName": resource,
                            "DeviceIDs": self._by_numa(resource, ids),
                            "AllocResp": base64.b64encode(response.SerializeToString()).decode()})
                for container, resources in self.pod_devices[uid].items()
                for resource, (ids, response) in resources.items()]
        return self.entries[uid]

    def _by_numa(self, resource, ids):
        found = {}
        for i in ids:
            for node in self.devices.get(resource, {}).get(i) or [-1]:
                found.setdefault(str(node), []).append(i)
        return found

    def _write_checkpoint(self):
        with self.lock:
            if self.stopping:  # the next run has the file
                return
            registered = {r: list(ids) for r, ids in self.healthy.items()}
            entries = [text for uid in self.pod_devices for text in self._entry_texts(uid)]
            text = '{"Data":{"PodDeviceEntries":%s,"RegisteredDevices":%s},"Checksum":%d}' % (
                "[" + ",".join(entries) + "]" if entries else "null", json.dumps(registered), len(entries))
            beside = os.path.join(self.dir, ".kubelet_internal_checkpoint.tmp")
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
                f.write(text)
            os.rename(beside, self.checkpoint_path)

    def _read_checkpoint(self):
        try:
            with open(self.checkpoint_path) as f:
                data = json.load(f)["Data"]
        except FileNotFoundError:
            return
        for entry in data["PodDeviceEntries"] or []:
            ids = frozenset(i for group in entry["DeviceIDs"].values() for i in group)
            response = dp.ContainerAllocateResponse.FromString(base64.b64decode(entry["AllocResp"]))
            self._insert(entry["PodUID"], entry["ContainerName"], entry["ResourceName"], ids, response)
        self.allocated = self._held()
        for resource in data["RegisteredDevices"]:
            self.healthy[resource], self.unhealthy[resource] = set(), set()
            self.endpoints[resource] = stopped = Client(resource, "/proc/self/absent")
            stopped.stopped_at = time.monotonic()

    # assigned devices

    def _insert(self, uid, container, resource, ids, response):
        self.pod_devices.setdefault(uid, {}).setdefault(container, {})[resource] = (frozenset(ids), response)
        self.listed.pop(uid, None)
        self.entries.pop(uid, None)

    def _held(self):
        held = {}
        for containers in self.pod_devices.values():
            for resources in containers.values():
                for resource, (ids, _) in resources.items():
                    held.setdefault(resource, set()).update(ids)
        return held

    def container_devices(self, uid, container, resource=None):
        """The ids of one resource (None: not allocated), or {resource: ids} of all."""
        with self.lock:
            found = self.pod_devices.get(uid, {}).get(container, {})
            if resource is None:
                return {r: ids for r, (ids, _) in found.items()}
            return found[resource][0] if resource in found else None

    def update_allocated(self):  # UpdateAllocatedDevices
        active = {uid for uid, _ in self.active_pods()}
        with self.lock:
            if not self.sources_ready:
                return
            gone = [uid for uid in self.pod_devices if uid not in active]
            if not gone:
                return
            for uid in gone:
                del self.pod_devices[uid]
                self.listed.pop(uid, None)
                self.entries.pop(uid, None)
            # An Allocate under way is not in pod_devices yet, so its devices count as free from
            # here on (kubernetes#137534).
            self.allocated = self._held()

    # ---- PodResources: apis/podresources/server_v1.go ----

    def _pod_text(self, uid, pod):
        with self.lock:
            if uid not in self.listed:
                entry = pr.PodResources(name=pod["metadata"]["name"],
                                        namespace=pod["metadata"].get("namespace", "default"))
                spec = pod["spec"]
                for c in [i for i in spec.get("initContainers", []) if is_sidecar(i)] + spec["containers"]:
                    container = entry.containers.add(name=c["name"])
                    for resource, ids in self.container_devices(uid, c["name"]).items():
                        for i in ids:  # one entry per ID
                            nodes = self.devices.get(resource, {}).get(i) or []
                            device = container.devices.add(resource_name=resource, device_ids=[i])
                            if nodes:
                                device.topology.nodes.extend(pr.NUMANode(ID=n) for n in nodes)
                self.listed[uid] = pr.ListPodResourcesResponse(pod_resources=[entry]).SerializeToString()
            return self.listed[uid]

    def _allowed(self, context):
        if not self.limiter.allow():
            self.lists_rejected += 1
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")

    def _list(self, request, context):
        self._allowed(context)
        began = time.monotonic()
        pods = self.listed_pods()
        self.between()  # a pod that ends now is listed without devices
        self.update_allocated()
        text = b"".join(self._pod_text(uid, pod) for uid, pod in pods)
        self.latency["List"].append(time.monotonic() - began)
        return text

    def _allocatable(self, request, context):  # GetAllocatableDevices: an entry for each healthy device
        self._allowed(context)
        answer = pr.AllocatableResourcesResponse()
        with self.lock:
            self.allocatable_asked += 1
            for resource, ids in self.healthy.items():
                for i in ids:
                    answer.devices.add(resource_name=resource, device_ids=[i])
        return answer

    def drop(self, resource):
        """Drops the plugin as in kubernetes#135437, when the end of an older plugin is noticed
        late. No stream ends and no error is returned."""
        with self.lock:
            self.followed.discard(self.clients.pop(resource))
            self._mark_unhealthy(resource)
            self.endpoints[resource].stopped_at = time.monotonic()
            self.changed.notify_all()
        self.on_status()

    def _get(self, request, context):
        self._allowed(context)
        for uid, pod in self.active_pods():
            meta = pod["metadata"]
            if (meta.get("namespace", "default"), meta["name"]) == (request.pod_namespace, request.pod_name):
                listed = pr.ListPodResourcesResponse.FromString(self._pod_text(uid, pod))
                return pr.GetPodResourcesResponse(pod_resources=listed.pod_resources[0])
        return context.abort(grpc.StatusCode.UNKNOWN, f"pod {request.pod_name} not found")

    # ---- admission ----

    def _is_ours(self, resource):  # isDevicePluginResource
        return resource in self.healthy or resource in self.allocated

    def allocate_container(self, uid, spec, container, is_init):  # Allocate
        if self.reuse[0] != uid:
            self.reuse = (uid, {})
        reuse = self.reuse[1]
        self._allocate_resources(uid, container, reuse)
        held = self.container_devices(uid, container["name"])
        for resource, ids in held.items():
            if is_init and not is_sidecar(container):
                reuse[resource] = reuse.get(resource, frozenset()) | ids
            else:
                reuse[resource] = reuse.get(resource, frozenset()) - ids

    def _allocate_resources(self, uid, container, reuse):
        updated, write = False, False
        limits = list(container.get("resources", {}).get("limits", {}).items())
        self.rng.shuffle(limits)
        for resource, needed in limits:
            with self.lock:
                if not self._is_ours(resource):
                    continue
            if not updated:
                self.update_allocated()
                updated = True
            ids = self._to_allocate(uid, container["name"], resource, int(needed), reuse.get(resource, frozenset()))
            if not ids:
                continue
            write = True
            response = self._call_allocate(uid, resource, ids)
            with self.lock:
                self._insert(uid, container["name"], resource, ids, response)
        if write:
            self._write_checkpoint()

    def _call_allocate(self, uid, resource, ids):
        with self.lock:
            endpoint = self.endpoints.get(resource)
        request = dp.AllocateRequest()
        request.container_requests.add(devices_ids=self._shuffled(ids))
        try:
            if not endpoint:
                raise AdmissionError(f"unknown Device Plugin {resource}")
            endpoint.check()
            response = self._timed("Allocate", resource, endpoint.remote.allocate, request)
        except grpc.RpcError as error:
            with self.lock:
                self.allocated = self._held()
            raise AdmissionError(rpc_text(error)) from None
        except (AdmissionError, ValueError) as error:
            with self.lock:
                self.allocated = self._held()
            raise AdmissionError(str(error)) from None
        if not response.container_responses:
            raise AdmissionError("no containers return in allocation response")
        return response.container_responses[0]

    def _shuffled(self, ids):
        order = sorted(ids)
        self.rng.shuffle(order)
        return order

    def _timed(self, name, resource, call, request, timeout=None):
        began = time.monotonic()
        try:
            return call(request, timeout=timeout)
        finally:
            ended = time.monotonic()
            self.latency[name].append(ended - began)
            if name != "PreStartContainer":
                self.calls.append((name, resource, began, ended))

    def _to_allocate(self, uid, container, resource, required, reusable):  # devicesToAllocate
        with self.lock:
            had = self.container_devices(uid, container, resource)
            needed = required - len(had or ())
            if had is not None and needed != 0:
                raise AdmissionError(f"pod {uid!r} container {container!r} changed request for resource {resource!r} "
                                     f"from {len(had)} to {required}")
            if not self.sources_ready and (uid, container) in self.was_running:
                return None
            if resource not in self.healthy:
                raise AdmissionError(f"cannot allocate unregistered device {resource}")
            if not self.healthy[resource]:
                raise AdmissionError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
            if had and not had <= self.healthy[resource]:
                raise AdmissionError("previously allocated devices are no longer healthy; cannot allocate unhealthy "
                                     f"devices {resource}")
            if needed == 0:
                return None
            chosen = set()

            def take(candidates):
                for i in self._shuffled(candidates - chosen):
                    self.allocated.setdefault(resource, set()).add(i)
                    chosen.add(i)
                    if len(chosen) == needed:
                        return True
                return False

            if take(reusable):
                return chosen
            available = self.healthy[resource] - self.allocated.get(resource, set())
            left = needed - len(chosen)
            if len(available) < left:
                raise AdmissionError(f"requested number of devices unavailable for {resource}. Requested: {left}, "
                                     f"Available: {len(available)}")
            offered, must = available | chosen, set(chosen)
        preferred = self._call_preferred(resource, offered, must, required)  # without the lock, as in the original
        with self.lock:
            if take(preferred & available) or take(available):
                return chosen
        raise AdmissionError(f"unexpectedly allocated less resources than required. Requested: {required}, "
                             f"Got: {len(chosen)}")

    def _call_preferred(self, resource, available, must, size):
        with self.lock:
            endpoint = self.endpoints.get(resource)
        if not endpoint:
            raise AdmissionError(f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.options or not endpoint.options.get_preferred_allocation_available:
            return set()
        request = dp.PreferredAllocationRequest()
        request.container_requests.add(available_deviceIDs=self._shuffled(available),
                                       must_include_deviceIDs=self._shuffled(must), allocation_size=size)
        try:
            endpoint.check()
            response = self._timed("GetPreferredAllocation", resource, endpoint.remote.preferred, request)
        except (grpc.RpcError, AdmissionError, ValueError) as error:
            text = rpc_text(error) if isinstance(error, grpc.RpcError) else str(error)
            raise AdmissionError(f"device plugin GetPreferredAllocation rpc failed with err: {text}") from None
        return set(response.container_responses[0].deviceIDs) if response.container_responses else set()

    # ---- before a container starts: GetDeviceRunContainerOptions ----

    def prestart(self, uid, container, timeout=PRESTART_TIMEOUT):
        limits = [r for r, n in container.get("resources", {}).get("limits", {}).items() if int_or_zero(n) > 0]
        self.rng.shuffle(limits)
        for resource in limits:
            with self.lock:
                if not self._is_ours(resource):
                    continue
                endpoint = self.endpoints.get(resource)
                ids = self.container_devices(uid, container["name"], resource)
            if not endpoint:
                raise AdmissionError(f"endpoint not found in cache for a registered resource: {resource}")
            if not endpoint.options or not endpoint.options.pre_start_required:
                continue
            if ids is None:
                raise AdmissionError(f"no devices found allocated in local cache for pod {uid}, container "
                                     f"{container['name']}, resource {resource}")
            try:
                endpoint.check()
                self._timed("PreStartContainer", resource, endpoint.remote.prestart,
                            dp.PreStartContainerRequest(devices_ids=self._shuffled(ids)), timeout)
            except (grpc.RpcError, AdmissionError, ValueError) as error:
                text = rpc_text(error) if isinstance(error, grpc.RpcError) else str(error)
                raise AdmissionError(f"device plugin PreStartContainer rpc failed with err: {text}") from None
        return self.run_options(uid, container["name"])

    def run_options(self, uid, container):  # deviceRunContainerOptions: the first of each name wins, in random order
        with self.lock:
            answers = [response for _, response in self.pod_devices.get(uid, {}).get(container, {}).values()]
        self.rng.shuffle(answers)
        env, mounts, annotations, cdi = {}, {}, {}, []
        for a in answers:
            for k, v in a.envs.items():
                env.setdefault(k, v)
            for m in a.mounts:
                mounts.setdefault(m.container_path, (m.host_path, m.read_only))
            for k, v in a.annotations.items():
                annotations.setdefault(k, v)
            cdi += [d.name for d in a.cdi_devices if d.name not in cdi]
        return {"env": env, "mounts": mounts, "annotations": annotations, "cdi": cdi}


def is_sidecar(container):
    return container.get("restartPolicy") == "Always"


def int_or_zero(text):
    try:
        return int(text)
    except ValueError:
        return 0  # "100m" of cpu and the like are no devices
