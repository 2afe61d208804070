# SPDX-License-Identifier: Apache-2.0
"""A minimal device plugin, for the fake kubelet's own tests and as the baseline of latencies. It
knows no pods and cards; `preferred`, `allocate` and `prestart` may be replaced."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc_wire as wire
from grpc_wire import dp


class EchoPlugin:
    def __init__(self, kubelet_dir, resource, ids, endpoint=None, prestart_required=True, preferred_available=True):
        self.dir = os.path.join(kubelet_dir, "device-plugins")
        self.resource, self.ids = resource, list(ids)
        self.endpoint = endpoint or resource.replace("/", "-") + ".sock"
        self.options = dp.DevicePluginOptions(pre_start_required=prestart_required,
                                              get_preferred_allocation_available=preferred_available)
        self.calls = []  # (name, request)
        self.lost = threading.Event()  # ListAndWatch ended
        self.changed = threading.Condition()
        self.version = 0
        self.unhealthy = set()
        self.stopping = False
        self.preferred = lambda r: list(r.must_include_deviceIDs) + [
            i for i in r.available_deviceIDs if i not in r.must_include_deviceIDs][:r.allocation_size
                                                                                   - len(r.must_include_deviceIDs)]
        self.allocate = lambda ids: {"IDS": ",".join(sorted(ids))}
        self.prestart = lambda ids, context: None

    def start(self):
        self.executor = ThreadPoolExecutor(40)
        self.server = wire.serve(os.path.join(self.dir, self.endpoint), "v1beta1.DevicePlugin", {
            "GetDevicePluginOptions": wire.unary_handler(lambda r, c: self.options, dp.Empty),
            "ListAndWatch": wire.stream_handler(self._watch, dp.Empty),
            "GetPreferredAllocation": wire.unary_handler(self._preferred, dp.PreferredAllocationRequest),
            "Allocate": wire.unary_handler(self._allocate, dp.AllocateRequest),
            "PreStartContainer": wire.unary_handler(self._prestart, dp.PreStartContainerRequest),
        }, self.executor)
        self.register()
        return self

    def register(self):
        self.lost.clear()
        with wire.channel(os.path.join(self.dir, "kubelet.sock")) as channel:
            call = channel.unary_unary("/v1beta1.Registration/Register", request_serializer=lambda m: m.SerializeToString(),
                                       response_deserializer=dp.Empty.FromString)
            call(dp.RegisterRequest(version="v1beta1", endpoint=self.endpoint, resource_name=self.resource,
                                    options=self.options), timeout=60, wait_for_ready=True)

    def change(self, ids=None, unhealthy=()):
        with self.changed:
            self.ids = self.ids if ids is None else list(ids)
            self.unhealthy = set(unhealthy)
            self.version += 1
            self.changed.notify_all()

    def stop(self):
        self.stopping = True
        self.change()
        self.server.stop(0).wait(5)
        self.executor.shutdown(wait=False)

    def _watch(self, request, context):
        context.add_callback(self._on_end)
        seen = -1
        while context.is_active() and not self.stopping:
            with self.changed:
                if seen == self.version:
                    self.changed.wait(0.2)
                    continue
                seen = self.version
                devices = [dp.Device(ID=i, health="Unhealthy" if i in self.unhealthy else "Healthy") for i in self.ids]
            yield dp.ListAndWatchResponse(devices=devices)

    def _on_end(self):
        self.lost.set()

    def _preferred(self, request, context):
        self.calls.append(("GetPreferredAllocation", request))
        chosen = self.preferred(request.container_requests[0])
        return dp.PreferredAllocationResponse(
            container_responses=[dp.ContainerPreferredAllocationResponse(deviceIDs=chosen)])

    def _allocate(self, request, context):
        self.calls.append(("Allocate", request))
        return dp.AllocateResponse(container_responses=[
            dp.ContainerAllocateResponse(envs=self.allocate(r.devices_ids)) for r in request.container_requests])

    def _prestart(self, request, context):
        self.calls.append(("PreStartContainer", request))
        self.prestart(request.devices_ids, context)
        return dp.PreStartContainerResponse()
