#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our gRPC against an independent one, in both directions, and against peers that violate the
protocol."""

import concurrent.futures
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from patience import PATIENCE, until

try:
    import grpc
except ImportError:
    print("skipped: python3-grpcio is missing")
    sys.exit(77)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))
from grpc_process import run_tests  # noqa: E402

ECHO = sys.argv.pop(1)
CALLS = int(os.environ.get("RPC_CALLS", "2000"))
MIB = 1024 * 1024
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def same(message):
    return message


class Directory(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="aliquot-rpc-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "s")


class OurServer(Directory):
    def setUp(self):
        super().setUp()
        self.server = subprocess.Popen([ECHO, "serve", self.path], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.server.stdout.readline(), "ready\n")
        self.channel = self.dial()

    def tearDown(self):
        if self.server.poll() is None and not self.server.stdin.closed:
            self.stop()
        self.server.stdout.close()

    def stop(self):
        self.server.stdin.close()
        last = self.server.stdout.read()
        self.assertEqual(self.server.wait(PATIENCE), 0)
        return dict(word.split("=") for word in last.split())

    def dial(self, *options):
        channel = grpc.insecure_channel("unix:" + self.path, options=list(options) or NO_LIMIT)
        self.addCleanup(channel.close)
        return channel

    def unary(self, method, message=b"", channel=None, timeout=PATIENCE):
        call = (channel or self.channel).unary_unary("/test.Echo/" + method, same, same)
        return call(message, timeout=timeout)

    def stats(self):
        return [int(n) for n in self.unary("Stats").split()]

    def assert_alive(self):
        self.assertEqual(self.unary("Echo", b"alive"), b"alive")

    def assert_fails(self, code, function, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as caught:
            function(*args, **kwargs)
        self.assertEqual(caught.exception.code(), code)
        return caught.exception.details()


class Serves(OurServer):
    def test_answers(self):
        for message in (b"", b"x", os.urandom(70000), os.urandom(4 * MIB)):
            self.assertEqual(self.unary("Echo", message), message)

    def test_errors_have_their_words(self):
        for text in ("plain", "100 % of „Karte“ größer\n➜ 卡 \U0001f4a5", "%41", ""):
            details = self.assert_fails(grpc.StatusCode.FAILED_PRECONDITION, self.unary, "Fail", text.encode())
            self.assertEqual(details, text)
        details = self.assert_fails(grpc.StatusCode.FAILED_PRECONDITION, self.unary, "Fail", ("ü" * 5000).encode())
        self.assertEqual(details, "ü" * 1000)

    def test_unknown_method(self):
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, self.unary, "Nothing")
        self.assert_alive()

    def test_streams(self):
        call = self.channel.unary_stream("/test.Echo/Stream", same, same)
        for size in (0, 10, 100000):
            self.assertEqual(list(call(b"y" * size, timeout=PATIENCE)), [b"y" * size] * 5)

    def test_a_long_list_on_a_stream_that_stays(self):
        call = self.channel.unary_stream("/test.Echo/Watch", same, same)(b"")
        self.assertEqual(len(next(call)), 4194304)
        self.assertEqual(self.stats()[1], 0)
        call.cancel()
        until(lambda: self.stats()[1] == 1, "its end")

    def test_grpc_go_limit_is_the_peers(self):
        channel = self.dial(("grpc.max_receive_message_length", 4194303))
        call = channel.unary_stream("/test.Echo/Watch", same, same)(b"", timeout=PATIENCE)
        self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, next, call)
        until(lambda: self.stats()[1] == 1, "its end")

    def test_cancel(self):
        # Waits until the call has arrived: this grpcio may send RST_STREAM without HEADERS, for
        # which HTTP/2 requires that the connection is closed (RFC 9113 5.1).
        for n in range(1, 21):
            call = self.channel.unary_unary("/test.Echo/Never", same, same).future(b"")
            until(lambda: self.stats()[0] == n, f"{n} calls")
            call.cancel()
            until(lambda: self.stats()[1] == n, f"the end of {n} calls")
        self.assert_alive()

    def test_deadline(self):
        seconds = 0.5
        while self.stats()[0] == 0:  # on a busy machine a call may end before it has been sent
            self.assertLess(seconds, PATIENCE, "no call arrives")
            self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, self.unary, "Never", timeout=seconds)
            seconds *= 2
        until(lambda: self.stats()[1] >= 1, "its end")

    def test_long_messages_are_refused(self):
        details = self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, self.unary, "Echo", b"z" * (4 * MIB + 1))
        self.assertIn("longer than allowed", details)
        self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, self.unary, "Echo", b"z" * (64 * MIB))
        self.assert_alive()

    def test_compression_is_refused(self):
        call = self.channel.unary_unary("/test.Echo/Echo", same, same)
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, call, b"c" * 10000, timeout=PATIENCE,
                          compression=grpc.Compression.Gzip)
        self.assert_alive()

    def test_side_by_side(self):
        call = self.channel.unary_unary("/test.Echo/Echo", same, same)
        futures = [call.future(b"%d" % n, timeout=PATIENCE) for n in range(500)]
        self.assertEqual([f.result() for f in futures], [b"%d" % n for n in range(500)])

    def test_authority_may_be_a_path(self):  # kubelets up to 1.25 send this
        channel = self.dial(("grpc.default_authority", self.path))
        self.assertEqual(self.unary("Echo", b"x", channel), b"x")

    def test_a_client_that_dies(self):
        code = "import grpc, sys\n" \
               "grpc.insecure_channel('unix:' + sys.argv[1]).unary_unary('/test.Echo/Never')(b'')"
        with subprocess.Popen([sys.executable, "-c", code, self.path]) as child:
            until(lambda: self.stats()[0] == 1, "a call")
            child.kill()
        until(lambda: self.stats()[1] == 1, "its end")

    def test_many_calls(self):
        call = self.channel.unary_unary("/test.Echo/Echo", same, same)
        start = time.monotonic()
        for _ in range(CALLS):
            call(b"m" * 100)
        rate = CALLS / (time.monotonic() - start)
        end = self.stop()
        self.assertEqual(int(end["handled"]), CALLS)
        print(f"{CALLS} calls of grpcio: {rate:.0f}/s, {end['rss']} KiB resident")


class Calls(Directory):
    """Our client, grpcio's server."""

    def setUp(self):
        super().setUp()
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.server = self.serve()

    def serve(self):
        def fail(message, context):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message.decode())

        def never(message, context):
            context.add_callback(self.cancelled.set)
            self.started.set()
            self.cancelled.wait(20)

        def quiet(message, context):
            context.set_code(grpc.StatusCode.ABORTED)
            return b"not for you"

        handlers = {"Echo": grpc.unary_unary_rpc_method_handler(lambda message, context: message),
                    "Fail": grpc.unary_unary_rpc_method_handler(fail),
                    "Never": grpc.unary_unary_rpc_method_handler(never),
                    "Quiet": grpc.unary_unary_rpc_method_handler(quiet),
                    "Deadline": grpc.unary_unary_rpc_method_handler(
                        lambda message, context: b"%d" % context.time_remaining())}
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), options=NO_LIMIT)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
        server.add_insecure_port("unix:" + self.path)
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        return server

    def call(self, method, message=b"", timeout=PATIENCE * 1000, count=1):
        done = subprocess.run([ECHO, "call", self.path, "/test.Echo/" + method, str(timeout), str(count)],
                              input=message, stdout=subprocess.PIPE, check=True, timeout=2 * PATIENCE)
        head, fault = done.stdout.decode().splitlines()
        status, length, total = head.split()
        return status, int(length), total, fault

    def test_answers(self):
        sums = set()
        for message in (b"", b"x", os.urandom(70000), os.urandom(8 * MIB)):
            status, length, total, fault = self.call("Echo", message)
            self.assertEqual((status, length, fault), ("OK", len(message), ""))
            sums.add(total)
        self.assertEqual(len(sums), 4)

    def test_errors_have_their_words(self):
        status, length, _, fault = self.call("Fail", "rejected: größer als 100 % 卡".encode())
        self.assertEqual((status, length), ("RESOURCE_EXHAUSTED", 0))
        self.assertIn(self.path, fault)
        self.assertTrue(fault.endswith("RESOURCE_EXHAUSTED: rejected: größer als 100 % 卡"), fault)
        self.assertEqual(self.call("Quiet")[:2], ("ABORTED", 0))
        self.assertEqual(self.call("Nothing")[0], "UNIMPLEMENTED")

    def test_deadline(self):
        for timeout in 100, 1000, 5000, 15000:  # on a busy machine a call may end before it has been sent
            self.assertEqual(self.call("Never", timeout=timeout)[0], "DEADLINE_EXCEEDED")
            if self.cancelled.wait(10):
                break
        self.assertTrue(self.cancelled.is_set(), "the server learnt of it")

    def test_says_its_deadline(self):
        status, length, _, _ = self.call("Deadline", timeout=9900)  # "9"
        self.assertEqual((status, length), ("OK", 1))

    def test_no_server(self):
        self.server.stop(None).wait()
        status, _, _, fault = self.call("Echo")
        self.assertEqual(status, "UNAVAILABLE")
        self.assertIn(self.path, fault)

    def test_a_server_that_dies(self):
        def stop():
            self.started.wait(PATIENCE)
            self.server.stop(0)
        killer = threading.Thread(target=stop)
        killer.start()
        self.assertIn(self.call("Never")[0], ("UNAVAILABLE", "CANCELLED"))
        killer.join()

    def test_many_calls(self):
        start = time.monotonic()
        self.assertEqual(self.call("Echo", b"m" * 100, count=CALLS)[:2], ("OK", 100))
        print(f"{CALLS} calls to grpcio: {CALLS / (time.monotonic() - start):.0f}/s")


# ---- hand-made frames ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
ECHO_HEADERS = [(":method", "POST"), (":scheme", "http"), (":path", "/test.Echo/Echo"), (":authority", "/a/s.sock"),
                ("content-type", "application/grpc")]


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def hpack(headers):
    def text(s):
        s = s if isinstance(s, bytes) else s.encode()
        assert len(s) < 127 + 128
        return (bytes([len(s)]) if len(s) < 127 else bytes([127, len(s) - 127])) + s
    return b"".join(b"\0" + text(name) + text(value) for name, value in headers)


def begin(stream, headers=ECHO_HEADERS, flags=END_HEADERS):
    return frame(HEADERS, flags, stream, hpack(headers))


def message(body, length=None, flag=0):
    return bytes([flag]) + struct.pack(">I", len(body) if length is None else length) + body


def request(stream, headers=ECHO_HEADERS, body=b"hi"):
    return begin(stream, headers) + frame(DATA, END_STREAM, stream, message(body))


def hello():
    return PREFACE + frame(SETTINGS)


def said(words):
    """How nghttp2 encodes them at the beginning of a header's value: HPACK's Huffman code (RFC
    7541, appendix B)."""
    five, six, seven = "012aceiost", " %-./3456789=A_bdfghlmnpru", "jkqvwxyz"
    code = {c: format(n, "05b") for n, c in enumerate(five)}
    code.update({c: format(0x14 + n, "06b") for n, c in enumerate(six)})
    code.update({c: format(0x74 + n, "07b") for n, c in enumerate(seven)})
    bits = "".join(code[c] for c in words)
    return bytes(int(bits[n:n + 8], 2) for n in range(0, len(bits) - 7, 8))


def headers_with(**changed):
    return [(name, changed.get(name.strip(":").replace("-", "_"), value)) for name, value in ECHO_HEADERS]


class Hostile(OurServer):
    def raw(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.path)
        self.addCleanup(connection.close)
        return connection

    def say(self, *pieces):
        connection = self.raw()
        try:
            connection.sendall(b"".join(pieces))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server has closed the connection
        return connection

    def hear(self, connection, needle=None):
        """Reads until these bytes came, or the server closed."""
        got = b""
        while needle is None or needle not in got:
            try:
                more = connection.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                self.assertIsNone(needle, got)
                break
            got += more
        return got

    def assert_closed(self, *pieces):
        self.hear(self.say(*pieces))
        self.assert_alive()

    def assert_said(self, needle, *pieces):
        connection = self.say(*pieces)
        self.hear(connection, needle)
        connection.sendall(request(101))  # and the same connection continues
        self.hear(connection, b"hi")
        self.assert_alive()

    def test_good_frames_by_hand(self):
        self.hear(self.say(hello(), request(1)), b"hi")

    def test_no_http2(self):
        self.assert_closed(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assert_closed(b"\0" * 100)
        self.assert_closed(PREFACE[:-1] + b"x")
        self.assert_closed(PREFACE + frame(PING, payload=b"12345678"))  # SETTINGS must come first

    def test_cut_anywhere(self):
        whole = hello() + request(1)
        for n in range(len(whole)):
            self.say(whole[:n]).close()
        self.assert_alive()

    def test_garbage(self):
        chance = random.Random(7)
        for _ in range(100):
            self.say(hello(), bytes(chance.randrange(256) for _ in range(300))).close()
        for _ in range(100):
            bad = bytearray(request(1))
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            self.say(hello(), bytes(bad)).close()
        self.assert_alive()

    def test_bad_frames(self):
        self.assert_closed(hello(), frame(DATA, 0, 0, b"x"))  # on the connection
        self.assert_closed(hello(), frame(HEADERS, END_HEADERS, 1, b"\xff" * 50))  # no HPACK
        self.assert_closed(hello(), frame(HEADERS, END_HEADERS, 2, hpack(ECHO_HEADERS)))  # an even stream
        self.assert_closed(hello(), frame(SETTINGS, 0, 0, b"12345"))
        self.assert_closed(hello(), frame(HEADERS, 0, 1, b""), frame(DATA, 0, 1, b""))  # within headers
        self.assert_closed(hello(), frame(DATA, 0, 0, b"", length=0xffffff))
        self.assert_closed(hello(), frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fffffff)))
        self.assert_closed(hello(), frame(GOAWAY, 0, 0, b"\0" * 8))

    def test_wrong_requests(self):
        self.assert_said(b"405", hello(), request(1, headers_with(method="GET")))
        self.assert_said(b"415", hello(), request(1, headers_with(content_type="application/json")))
        self.assert_said(b"415", hello(), request(1, ECHO_HEADERS[:-1]))
        self.assert_said(said("no such method"), hello(), request(1, headers_with(path="/")))
        self.assert_said(said("no method named"), hello(), request(1, [ECHO_HEADERS[0], ECHO_HEADERS[4]]))
        self.assert_said(b"405", hello(), request(1, []))

    def test_wrong_messages(self):
        self.assert_said(said("the message is cut short"), hello(), begin(1, flags=END_HEADERS | END_STREAM))
        self.assert_said(said("the message is cut short"), hello(), begin(1), frame(DATA, END_STREAM, 1, message(b"hi", 3)))
        self.assert_said(said("more follows"), hello(), begin(1), frame(DATA, END_STREAM, 1, message(b"hi", 1)))
        self.assert_said(said("the message is compressed"), hello(), begin(1),
                         frame(DATA, END_STREAM, 1, message(b"hi", flag=1)))
        self.assert_said(said("the message is longer"), hello(), begin(1), frame(DATA, 0, 1, message(b"", 0xffffffff)))
        self.assert_said(said("the message is longer"), hello(), begin(1), frame(DATA, 0, 1, message(b"", 4 * MIB + 1)))

    def test_headers_without_end(self):
        big = [("x-%d" % n, "v" * 200) for n in range(75)]
        connection = self.say(hello(), begin(1, ECHO_HEADERS + big), request(3))
        self.hear(connection, b"hi")
        endless = hello() + frame(HEADERS, 0, 1, hpack(ECHO_HEADERS))
        self.assert_closed(endless, *[frame(CONTINUATION, 0, 1, hpack([("a", "b" * 100)]))] * 1000)
        # One entry of the table, repeated: a byte each here, 4 KiB each in the decoded headers.
        bomb = b"\x40\x01x\x7f\xff\x1d" + b"y" * 3966 + b"\xbe" * 12000
        connection = self.say(hello(), frame(HEADERS, END_HEADERS, 1, bomb), request(3))
        self.hear(connection, b"hi")
        self.assert_alive()

    def test_floods(self):
        for flood in (frame(SETTINGS), frame(PING, payload=b"12345678"), frame(SETTINGS, 0, 0, b"\0\4\0\0\1\0" * 30)):
            self.flood(flood * 500, 400)
        for flood in (frame(PRIORITY, 0, 1, b"\0\0\0\0\1"), frame(99, 0, 0, b"x"), frame(PING, 1, 0, b"12345678")):
            self.flood(flood * 500, 40)

    def flood(self, bytes_, times):
        """From a peer that never reads."""
        connection = self.say(hello())
        connection.settimeout(5)
        try:
            for _ in range(times):
                connection.sendall(bytes_)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass
        self.assert_alive()
        connection.close()

    def test_rapid_reset(self):
        connection = self.say(hello())
        reader = threading.Thread(target=self.hear, args=(connection,))
        reader.start()
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for stream in range(1, 200001, 2):
                connection.sendall(request(stream) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        reader.join()
        self.assert_alive()

    def test_resets_that_it_provokes(self):
        connection = self.say(hello())
        reader = threading.Thread(target=self.hear, args=(connection,))
        reader.start()
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for stream in range(1, 200001, 2):  # a window of 0 is an error of the stream
                connection.sendall(begin(stream) + frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\0"))
        reader.join()
        self.assert_alive()

    def test_more_streams_than_allowed(self):
        connection = self.say(hello(), *[begin(n) for n in range(1, 401, 2)])
        self.assert_alive()
        connection.close()

    def test_many_unfinished_requests(self):
        """All connections together may hold eight times 4 MiB."""
        got = {self.say(hello()): b"" for _ in range(3)}

        def listen(wait):
            for connection in select.select(list(got), [], [], wait)[0]:
                got[connection] += connection.recv(65536)
            return any(said("too many unfinished") in heard for heard in got.values())
        for connection in got:
            for stream in range(1, 31, 2):
                connection.sendall(begin(stream) + frame(DATA, 0, stream, message(b"", 4 * MIB)))
                piece = frame(DATA, 0, stream, b"x" * 16384)
                for _ in range(60):  # less than the window of a stream
                    connection.sendall(piece)
                    listen(0)  # a client that does not read gets no new window for the connection
        until(lambda: listen(1), "the words that end a connection")
        for connection in got:
            connection.close()
        until(self.alive, "it answers again")

    def alive(self):
        try:
            return self.unary("Echo", b"alive") == b"alive"
        except grpc.RpcError:
            return False

    def test_connections_that_do_nothing(self):
        for _ in range(50):
            self.raw()
        self.assert_alive()


if __name__ == "__main__":
    run_tests()
