# SPDX-License-Identifier: Apache-2.0
"""The kubelet's two gRPC APIs, made with grpcio and protoc. Only the .proto files are shared with
our own programs.

A test that imports this without python3-grpcio, python3-protobuf or protoc is skipped (exit 77)."""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile


def skip(what):
    print("skipped: " + what, file=sys.stderr)
    sys.exit(77)


try:
    import grpc
    import google.protobuf  # noqa: F401  (grpcio does without, its messages do not)
except ImportError as missing:
    skip(f"{missing}: python3-grpcio and python3-protobuf are needed ({sys.executable})")
import grpc_process  # noqa: E402, F401

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "wire", "proto")
GPU_MEM, GPU_CORE, GPU = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu"

# Servers accept large lists of devices. Only the kubelet's client, below, refuses them at 4 MiB.
SERVER_OPTIONS = [("grpc.max_receive_message_length", 16 << 20)]
# The defaults of grpc-go. A local socket uses no proxy of the environment.
CLIENT_OPTIONS = [("grpc.max_receive_message_length", 4 << 20), ("grpc.enable_http_proxy", 0),
                  ("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost")]


def _load():
    if not shutil.which("protoc"):
        skip("protoc is needed")
    directory = tempfile.mkdtemp(prefix="aliquot-proto-")
    try:
        names = ("deviceplugin", "podresources")
        subprocess.run(["protoc", "-I", PROTO, "--python_out", directory, *(n + ".proto" for n in names)], check=True)
        sys.path.insert(0, directory)
        return [importlib.import_module(n + "_pb2") for n in names]
    finally:
        sys.path.remove(directory)
        shutil.rmtree(directory)


dp, pr = _load()
_PLUGIN = "/v1beta1.DevicePlugin/"


class PluginCalls:
    """The calls of a kubelet to a plugin."""

    def __init__(self, channel):
        def unary(name, reply):
            return channel.unary_unary(_PLUGIN + name, request_serializer=lambda m: m.SerializeToString(),
                                       response_deserializer=reply.FromString)

        self.options = unary("GetDevicePluginOptions", dp.DevicePluginOptions)
        self.preferred = unary("GetPreferredAllocation", dp.PreferredAllocationResponse)
        self.allocate = unary("Allocate", dp.AllocateResponse)
        self.prestart = unary("PreStartContainer", dp.PreStartContainerResponse)
        self.watch = channel.unary_stream(_PLUGIN + "ListAndWatch", request_serializer=lambda m: m.SerializeToString(),
                                          response_deserializer=dp.ListAndWatchResponse.FromString)


def channel(path):
    return grpc.insecure_channel("unix:" + path, options=CLIENT_OPTIONS)


def unary_handler(function, request):
    """function(request, context) returns a message or bytes."""
    return grpc.unary_unary_rpc_method_handler(function, request_deserializer=request.FromString,
                                               response_serializer=lambda m: m if isinstance(m, bytes)
                                               else m.SerializeToString())


def stream_handler(function, request):
    return grpc.unary_stream_rpc_method_handler(function, request_deserializer=request.FromString,
                                                response_serializer=lambda m: m.SerializeToString())


def serve(path, service, handlers, executor):
    """A gRPC server on a Unix socket, which is created again."""
    server = grpc.server(executor, options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    server.add_insecure_port("unix:" + path)
    server.start()
    return server
