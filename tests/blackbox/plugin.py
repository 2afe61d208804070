#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin side of the device-plugin API against a kubelet made with grpcio. Like the real one it
wipes the sockets, makes kubelet.sock, connects back during Register, lists, and drops a plugin
whose list ends."""

import contextlib
import os
import pathlib
import queue
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent import futures

from patience import PATIENCE, until

try:
    import grpc
except ImportError:
    print("skipped: python3-grpcio is not installed")
    sys.exit(77)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))
from grpc_process import run_tests  # noqa: E402

SERVER, PROTO = sys.argv.pop(1), sys.argv.pop(1)
MEM, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
# The limit of grpc-go, and so of the kubelet.
MAX_MESSAGE = 4194304


def generate():
    """The messages, made by Google's own compiler and library."""
    into = tempfile.mkdtemp(prefix="aliquot-proto-")
    try:
        subprocess.run(["protoc", "-I", PROTO, "--python_out", into, "deviceplugin.proto"], check=True)
        sys.path.insert(0, into)
        import deviceplugin_pb2  # pylint: disable=import-outside-toplevel,import-error
        return deviceplugin_pb2
    finally:
        shutil.rmtree(into)


pb = generate()


class Endpoint:
    """The kubelet's client of one registered plugin."""

    def __init__(self, kubelet, resource, path):
        self.kubelet, self.resource = kubelet, resource
        self.channel = grpc.insecure_channel("unix:" + path, options=[("grpc.max_receive_message_length", MAX_MESSAGE),
                                                                      ("grpc.use_local_subchannel_pool", 1)])
        self.lists = []
        self.ended = False
        self.options = self.call("GetDevicePluginOptions", pb.Empty(), pb.DevicePluginOptions)

    def raw(self, method, message, timeout=PATIENCE):
        call = self.channel.unary_unary("/v1beta1.DevicePlugin/" + method)
        return call(message, timeout=timeout, wait_for_ready=True)

    def call(self, method, message, answer, timeout=PATIENCE):
        return answer.FromString(self.raw(method, message.SerializeToString(), timeout))

    def listen(self):
        call = self.channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch",
                                         request_serializer=pb.Empty.SerializeToString,
                                         response_deserializer=pb.ListAndWatchResponse.FromString)
        self.stream = call(pb.Empty())
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(grpc.RpcError):
            for message in self.stream:
                self.lists.append(message.devices)
        self.ended = True
        self.kubelet.forget(self.resource)

    def close(self):
        self.channel.close()


class Kubelet:
    """One run of a kubelet. forget() follows kubernetes#135437: at the end of any list the
    registered plugin is dropped."""

    def __init__(self, directory, refuse=0, deaf=0, usurp=False):
        self.directory = directory
        self.socket = os.path.join(directory, "kubelet.sock")
        self.registers, self.endpoints, self.known = [], [], {}
        self.refuse, self.deaf = refuse, deaf
        self.flying = self.flew = 0
        self.gate = threading.Event()
        self.gate.set()
        self.stopped = False
        self.lock = threading.Lock()
        if usurp:
            self.start(self.socket + ".new")
            os.rename(self.socket + ".new", self.socket)
        else:
            self.wipe()
            self.start(self.socket)

    def wipe(self):
        os.makedirs(self.directory, exist_ok=True)
        for name in os.listdir(self.directory):
            path = os.path.join(self.directory, name)
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    os.unlink(path)

    def start(self, path):
        handler = grpc.unary_unary_rpc_method_handler(self.register, request_deserializer=pb.RegisterRequest.FromString,
                                                      response_serializer=pb.Empty.SerializeToString)
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.Registration",
                                                                                   {"Register": handler})])
        self.server.add_insecure_port("unix:" + path)
        self.server.start()

    def register(self, request, context):
        with self.lock:
            self.registers.append(request)
            self.flying += 1
            self.flew = max(self.flew, self.flying)
        try:
            self.gate.wait(PATIENCE)
            if self.stopped:  # the kubelet has ended: no call, and no answer to read
                context.abort(grpc.StatusCode.UNAVAILABLE, "stopped")
            if len(self.registers) <= self.refuse:
                context.abort(grpc.StatusCode.UNKNOWN, "not now")
            endpoint = Endpoint(self, request.resource_name, os.path.join(self.directory, request.endpoint))
            self.endpoints.append(endpoint)
            self.known[request.resource_name] = endpoint
            if len(self.registers) > self.deaf:
                endpoint.listen()
            return pb.Empty()
        finally:
            with self.lock:
                self.flying -= 1

    def forget(self, resource):
        endpoint = self.known.pop(resource, None)
        if endpoint:
            endpoint.close()

    def stop(self):
        self.stopped = True
        self.gate.set()
        self.known.clear()
        for endpoint in self.endpoints:
            endpoint.close()
        self.server.stop(0).wait()

    def lists(self, resource=MEM):
        endpoint = self.known.get(resource)
        return endpoint.lists if endpoint else []


class Program:
    """plugin-server and its output."""

    def __init__(self, directory, *plugins):
        self.process = subprocess.Popen([SERVER, directory, *(plugins or (MEM, "aliquot-gpu-mem.sock"))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines, self.answers = [], queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith(("ok", "error")):
                self.answers.put(line)
            else:
                self.lines.append(line)

    def devices(self, count, digits=3, healthy=True, resource=MEM):
        self.process.stdin.write(f"devices {resource} {count} {digits} {int(healthy)}\n")
        self.process.stdin.flush()
        return self.answers.get(timeout=PATIENCE)

    def said(self, text):
        return [line for line in self.lines if text in line]

    def wait(self, text, count=1):
        until(lambda: len(self.said(text)) >= count, f"{text!r} {count} times in {self.lines}")

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        return code

    def kill(self):
        self.process.kill()
        self.end()


class PluginTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="aliquot-kubelet-")
        self.addCleanup(shutil.rmtree, self.root)
        self.directory = os.path.join(self.root, "device-plugins")
        os.mkdir(self.directory)

    def kubelet(self, **options):
        kubelet = Kubelet(self.directory, **options)
        self.addCleanup(kubelet.stop)
        return kubelet

    def program(self, *plugins, devices=4):
        program = Program(self.root, *plugins)
        self.addCleanup(lambda: program.process.poll() is None and self.assertEqual(program.end(), 0))
        if devices is not None:
            self.assertEqual(program.devices(devices), "ok")
        return program

    def pair(self, **options):
        """A kubelet and a program that is registered with it."""
        kubelet, program = self.kubelet(**options), self.program()
        program.wait("registered " + MEM)
        until(kubelet.lists, "a list")
        return kubelet, program

    # ---- registration ----

    def test_registers(self):
        kubelet, program = self.pair()
        request = kubelet.registers[0]
        self.assertEqual((request.version, request.endpoint, request.resource_name), ("v1beta1", "aliquot-gpu-mem.sock", MEM))
        options = kubelet.known[MEM].options
        self.assertTrue(options.pre_start_required and options.get_preferred_allocation_available)
        self.assertEqual(request.options, options)
        self.assertEqual([d.ID for d in kubelet.lists()[0]], ["000", "001", "002", "003"])
        self.assertEqual({d.health for d in kubelet.lists()[0]}, {"Healthy"})
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.directory, "aliquot-gpu-mem.sock")).st_mode), 0o600)
        self.assertEqual(program.end(), 0)
        self.assertEqual(os.listdir(self.directory), ["kubelet.sock"])
        self.assertEqual(len(kubelet.registers), 1)

    def test_two_resources_are_two_plugins(self):
        kubelet = self.kubelet()
        program = self.program(MEM, "a.sock", CORE, "b.sock")
        self.assertEqual(program.devices(7, resource=CORE), "ok")
        program.wait("registered", 2)
        until(lambda: kubelet.lists(MEM) and kubelet.lists(CORE), "two lists")
        self.assertEqual((len(kubelet.lists(MEM)[0]), len(kubelet.lists(CORE)[0])), (4, 7))
        kubelet.known[CORE].stream.cancel()
        program.wait("registered " + CORE, 2)
        self.assertEqual(len(program.said("registered " + MEM)), 1)

    def test_without_a_list_there_is_nothing_to_register(self):
        kubelet = self.kubelet()
        program = self.program(devices=None)
        Endpoint(kubelet, MEM, os.path.join(self.directory, "aliquot-gpu-mem.sock")).close()
        self.assertEqual(kubelet.registers, [])
        self.assertEqual(program.devices(0), "ok")  # an empty list is a list
        until(kubelet.lists, "a list")
        self.assertEqual(len(kubelet.lists()[0]), 0)

    def test_waits_for_the_kubelet(self):
        program = self.program()
        program.wait("kubelet.sock: No such file")
        kubelet = self.kubelet()
        program.wait("registered")
        self.assertEqual(len(kubelet.registers), 1)

    def test_waits_for_the_directories(self):
        shutil.rmtree(self.root)
        program = self.program()
        program.wait("device-plugins: No such file")
        os.mkdir(self.root)
        self.kubelet()
        program.wait("registered")

    def test_repeats_after_a_refusal(self):
        kubelet, program = self.pair(refuse=2)
        self.assertEqual(len(kubelet.registers), 3)
        self.assertEqual(len(program.said("not now")), 1)  # reported once
        self.assertEqual(kubelet.flew, 1)

    def test_registers_again_without_a_list_call(self):
        kubelet, program = self.pair(deaf=1)
        program.wait("did not call ListAndWatch")
        self.assertEqual(len(kubelet.registers), 2)

    def test_one_register_at_a_time(self):
        kubelet = self.kubelet()
        kubelet.gate.clear()
        self.program()
        until(lambda: kubelet.flying == 1, "a Register")
        for i in range(50):  # other plugins start and end
            path = pathlib.Path(self.directory, f"other-{i}.sock")
            path.touch()
            path.unlink()
        kubelet.gate.set()
        until(kubelet.lists, "a list")
        self.assertEqual((kubelet.flew, len(kubelet.registers)), (1, 1))

    # registration again

    def test_kubelet_restarts(self):
        kubelet, program = self.pair()
        for life in range(2, 6):
            kubelet.stop()
            program.wait("lost", life - 1)
            kubelet = self.kubelet()  # removes our socket as well
            program.wait("registered", life)
            until(kubelet.lists, "a list")
            self.assertEqual(len(kubelet.registers), 1)

    def test_kubelet_is_replaced_unnoticed(self):
        """The old kubelet's connections are still open when the new one's socket appears."""
        kubelet, program = self.pair()
        os.unlink(kubelet.socket)
        successor = self.kubelet()
        until(successor.lists, "a list")
        program.wait("registered", 2)

    def test_another_kubelet_takes_the_socket(self):
        """Another kubelet replaces the socket, and nothing else changes: the plugin registers with
        it, and the end of the old one has no effect."""
        kubelet, program = self.pair()
        successor = self.kubelet(usurp=True)
        until(successor.lists, "a list")
        program.wait("registered", 2)
        kubelet.stop()
        until(lambda: kubelet.endpoints[0].ended, "the end of the old list")
        self.assertEqual(program.devices(5), "ok")
        until(lambda: len(successor.lists()) == 2, "a second list")
        self.assertEqual((len(successor.registers), len(program.said("lost"))), (1, 1))

    def test_kubelet_ends_during_register(self):
        kubelet = self.kubelet()
        kubelet.gate.clear()
        program = self.program()
        until(lambda: kubelet.flying == 1, "a Register")
        os.unlink(kubelet.socket)
        successor = self.kubelet()
        until(successor.lists, "a list")
        program.wait("registered")
        self.assertEqual(len(successor.registers), 1)

    def remove(self):
        """Returns False when our socket was there again before the directory was removed."""
        shutil.rmtree(self.directory, ignore_errors=True)
        return not os.path.exists(self.directory)

    def test_directory_is_created_again(self):
        kubelet, program = self.pair()
        for life in range(2, 5):
            kubelet.stop()
            until(self.remove, "no directory")
            kubelet = self.kubelet()
            program.wait("registered", life)
            until(kubelet.lists, "a list")

    def test_directory_is_moved_away(self):
        kubelet, program = self.pair()
        os.rename(self.directory, self.directory + ".old")
        successor = self.kubelet()
        program.wait("registered", 2)
        until(successor.lists, "a list")
        kubelet.stop()

    def test_our_socket_is_removed(self):
        kubelet, program = self.pair()
        os.unlink(os.path.join(self.directory, "aliquot-gpu-mem.sock"))
        program.wait("registered", 2)
        until(lambda: kubelet.lists() and kubelet.known[MEM] is not kubelet.endpoints[0], "a list")

    def test_list_ends(self):
        kubelet, program = self.pair()
        kubelet.known[MEM].stream.cancel()
        program.wait("lost " + MEM + ": " + MEM + ": the kubelet ended ListAndWatch")
        program.wait("registered", 2)
        until(kubelet.lists, "a list")

    def test_second_instance(self):
        kubelet, first = self.pair()
        second = self.program()
        second.wait("registered")
        self.assertEqual(first.end(), 0)  # with its list the kubelet drops the second
        until(lambda: MEM in kubelet.known and kubelet.known[MEM] is kubelet.endpoints[-1] and kubelet.lists(), "a list")
        self.assertTrue(os.path.exists(os.path.join(self.directory, "aliquot-gpu-mem.sock")))
        self.assertFalse(kubelet.known[MEM].ended)

    def test_first_instance_waits_and_comes_back(self):
        kubelet, first = self.pair()
        second = self.program()
        second.wait("registered")
        kubelet.endpoints[0].stream.cancel()  # the first program's list
        first.wait("another instance has taken")
        until(lambda: kubelet.lists() and not kubelet.known[MEM].ended, "a list of the second")
        second.kill()  # its socket stays, without a process that listens
        first.wait("registered", 2)
        until(lambda: kubelet.lists() and not kubelet.known[MEM].ended, "a list of the first")

    # ---- the list ----

    def test_list_changes(self):
        kubelet, program = self.pair()
        self.assertEqual(program.devices(4), "ok")  # an equal list is not sent
        self.assertEqual(program.devices(3, healthy=False), "ok")
        until(lambda: len(kubelet.lists()) == 2, "a second list")
        self.assertEqual([(d.ID, d.health) for d in kubelet.lists()[1]],
                         [("000", "Unhealthy"), ("001", "Unhealthy"), ("002", "Unhealthy")])
        self.assertEqual(program.devices(0), "ok")
        until(lambda: len(kubelet.lists()) == 3, "a third list")
        self.assertEqual(len(kubelet.lists()[2]), 0)
        self.assertEqual(len(kubelet.registers), 1)

    def test_longest_list(self):
        def message(count):
            return pb.ListAndWatchResponse(devices=[pb.Device(ID=f"{i:06}", health="Healthy") for i in range(count)])

        kubelet, program = self.pair()
        self.assertLessEqual(message(220000).ByteSize(), MAX_MESSAGE)
        self.assertGreater(message(221000).ByteSize(), MAX_MESSAGE)
        self.assertEqual(program.devices(221000, 6), "error 1")
        self.assertEqual(program.devices(220000, 6), "ok")
        until(lambda: len(kubelet.lists()) == 2, "the long list")
        self.assertEqual(len(kubelet.lists()[1]), 220000)
        self.assertEqual(len(kubelet.registers), 1)
        exactly = MAX_MESSAGE // 19
        self.assertEqual((program.devices(exactly + 1, 6), program.devices(exactly, 6)), ("error 1", "ok"))

    # ---- calls ----

    def test_answers(self):
        endpoint = self.pair()[0].known[MEM]
        answer = endpoint.call("GetPreferredAllocation", pb.PreferredAllocationRequest(container_requests=[
            pb.ContainerPreferredAllocationRequest(available_deviceIDs=["0-1", "0-2", "0-3"], must_include_deviceIDs=["0-3"],
                                                   allocation_size=2)]), pb.PreferredAllocationResponse)
        self.assertEqual([list(c.deviceIDs) for c in answer.container_responses], [["0-3", "0-1"]])
        answer = endpoint.call("Allocate", pb.AllocateRequest(container_requests=[
            pb.ContainerAllocateRequest(devices_ids=["0-3", "0-1"])]), pb.AllocateResponse)
        self.assertEqual(len(answer.container_responses), 1)
        container = answer.container_responses[0]
        self.assertEqual(dict(container.envs), {"IDS": "0-3,0-1", "EMPTY": ""})
        self.assertEqual([(m.container_path, m.host_path, m.read_only) for m in container.mounts],
                         [("/in/container", "/on/host", True), ("/rw", "/on/host/rw", False)])
        self.assertEqual([d.name for d in container.cdi_devices], ["aliquot.dev/gpu=GPU-1", "aliquot.dev/gpu=GPU-2"])
        endpoint.call("PreStartContainer", pb.PreStartContainerRequest(devices_ids=["0-1"]), pb.PreStartContainerResponse)
        with self.assertRaises(grpc.RpcError) as caught:
            endpoint.call("PreStartContainer", pb.PreStartContainerRequest(devices_ids=["fail"]),
                          pb.PreStartContainerResponse)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(caught.exception.details(), "the card is taken: 100 %")

    def test_caller_disconnects(self):
        kubelet, program = self.pair()
        seconds = 0.2
        while not program.said("cancelled"):  # on a busy machine a call may end before it has been sent
            with self.assertRaises(grpc.RpcError):
                kubelet.known[MEM].call("PreStartContainer", pb.PreStartContainerRequest(devices_ids=["wait"]),
                                        pb.PreStartContainerResponse, timeout=seconds)
            seconds *= 2
            self.assertLess(seconds, PATIENCE, "the program hears of no call's end")
        self.assertFalse(kubelet.known[MEM].ended)

    def refusal(self, endpoint, method, message, code=grpc.StatusCode.INVALID_ARGUMENT):
        with self.assertRaises(grpc.RpcError) as caught:
            endpoint.raw(method, message)
        self.assertEqual(caught.exception.code(), code)
        return caught.exception.details()

    def test_hostile_requests(self):
        kubelet, program = self.pair()
        endpoint = kubelet.known[MEM]
        one = pb.ContainerAllocateRequest(devices_ids=["0-1"])
        for method in ("GetPreferredAllocation", "Allocate", "PreStartContainer"):
            for message in (b"\xff" * 64, b"\x0a\x7f", b"\x0b\x0c", bytes(1000), b"", b"\x0a\x00"):
                self.assertIn(MEM + ": ", self.refusal(endpoint, method, message))
        self.assertIn("2 containers", self.refusal(endpoint, "Allocate", pb.AllocateRequest(
            container_requests=[one, one]).SerializeToString()))
        self.assertIn("allocation size -1: must be positive", self.refusal(
            endpoint, "GetPreferredAllocation", pb.PreferredAllocationRequest(container_requests=[
                pb.ContainerPreferredAllocationRequest(available_deviceIDs=["0-1"], allocation_size=-1)]).SerializeToString()))
        self.assertIn("at most 300000 can exist", self.refusal(
            endpoint, "PreStartContainer", pb.PreStartContainerRequest(devices_ids=["x"] * 300001).SerializeToString()))
        self.refusal(endpoint, "PreStartContainer", bytes(MAX_MESSAGE + 1), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.refusal(endpoint, "Unheard", b"", grpc.StatusCode.UNIMPLEMENTED)
        for noise in (b"GET / HTTP/1.1\r\n\r\n", bytes(4096), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 512):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(PATIENCE)
                peer.connect(os.path.join(self.directory, "aliquot-gpu-mem.sock"))
                peer.sendall(noise)
                with contextlib.suppress(ConnectionError):
                    while peer.recv(4096):
                        pass
        self.assertEqual(program.devices(5), "ok")
        until(lambda: len(kubelet.lists()) == 2, "a second list")
        self.assertEqual((len(kubelet.registers), program.said("lost")), (1, []))

    def test_many_list_calls(self):
        kubelet, program = self.pair()
        others = [Endpoint(kubelet, "other", os.path.join(self.directory, "aliquot-gpu-mem.sock")) for _ in range(9)]
        for other in others:
            other.listen()
        until(lambda: sum(1 for o in others if o.lists) >= 7 and sum(1 for o in others if o.ended) >= 2, "7 and 2")
        self.assertEqual(program.devices(5), "ok")
        until(lambda: sum(1 for o in others if len(o.lists) == 2) == 7 and len(kubelet.lists()) == 2, "another list each")
        for other in others:
            other.close()


if __name__ == "__main__":
    run_tests(verbosity=2)
