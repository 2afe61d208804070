#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics of `aliquot node`: node_metrics.py ALIQUOT STORE_SERVER CLOCK_SHIM NVML"""

import os
import socket
import struct
import urllib.error
import urllib.request

from isolation_case import MIB, NVML, Started, alone
from node_case import TWO_CARDS
from node_lab import PODS, container, layout as page, pod
from grpc_process import run_tests

PREFIX = "aliquot_node_container_"
AGENT_KIB = 8 * 1024  # private memory that an agent may have


def put(path, at, form, *values):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(struct.pack(form, *values))


class Metrics(Started):
    def watched(self, **options):
        lab = self.lab(cards=TWO_CARDS, nvml=NVML, start=False, **options)
        lab.proc = os.path.join(lab.dir, "proc")
        os.mkdir(lab.proc)
        lab.extra += ["--census", "20", "--proc", lab.proc, "--policy", "3"]
        lab.start_agent()
        lab.wait_ready()
        return lab

    def of(self, lab, name, one="main"):
        """The metrics of a container, by the rest of their names."""
        return {k[len(PREFIX):].split("{")[0]: v for k, v in lab.metrics().items()
                if k.startswith(PREFIX) and f'PodName="{name}",ContainerName="{one}"' in k}

    def count(self, c, used=0, peak=0, refused=0):
        """Writes into the counters what the container's processes would."""
        put(self.counters(c), page.USED, "<QQQ", (used // page.UNIT) << page.USED_SHIFT, peak // page.UNIT, refused)

    def arbitrate(self, c, charged, held):
        """Writes into the limits what the arbiter would."""
        put(c.options["mounts"]["/.aliquot/slice/0/limits"][0], page.SEEN + 8, "<QQ", held, charged)

    def test_a_container(self):
        lab = self.watched()
        a = self.started(lab, self.place(lab, pod("a", container("main", 2, 30)), 1))
        self.started(lab, self.place(lab, pod("b", container("main", 4, 60)), 1))
        self.count(a, 100 * MIB, 300 * MIB, 7)
        found = {}

        def shown():  # again each time, because the arbiter writes what the container has held
            self.arbitrate(a, 1500000000, 2500000000)
            found.clear()
            found.update(self.of(lab, "a"))
            return found.get("compute_held_seconds_total") == 2.5
        lab.wait(shown, "the metrics have what is in the page")
        told = found.pop("memory_used_bytes", None)
        self.assertIn(told, (None, 0))
        self.assertEqual(found, {"memory_limit_bytes": 2154 * MIB, "memory_charged_bytes": 100 * MIB, "memory_peak_bytes": 300 * MIB,
                                 "memory_refusals_total": 7, "rowless_refusals_total": 0, "compute_share_ratio": 0.3, "compute_used_seconds_total": 1.5,
                                 "compute_held_seconds_total": 2.5})
        self.assertEqual(self.of(lab, "b")["compute_share_ratio"], 0.6)

    def test_what_the_driver_says(self):
        lab = self.watched()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        c = self.started(lab, uid)
        lab.wait(lambda: any(s.get("containerID") for s in lab.get("a").get("status", {}).get("containerStatuses", [])), "its status names it")
        os.mkdir(os.path.join(lab.proc, "101"))
        with open(os.path.join(lab.proc, "101", "cgroup"), "w") as f:
            f.write(f"0::/kubepods/burstable/pod{uid}/{c.id}\n")
        lab.machine([(1, 101, 700)], [(1, 800)])
        lab.wait(lambda: self.of(lab, "a").get("memory_used_bytes") == 700 * MIB, "the container has it")
        card = {k.split("{")[0]: v for k, v in lab.metrics().items() if k.startswith("aliquot_node_card_") and 'gpu="1"' in k}
        self.assertGreaterEqual(card.pop("aliquot_node_card_memory_used_bytes"), 700 * MIB)
        self.assertEqual(card, {"aliquot_node_card_memory_bytes": 16160 * MIB, "aliquot_node_card_memory_allocated_bytes": 2154 * MIB,
                                "aliquot_node_card_compute_allocated_ratio": 0, "aliquot_node_card_slices": 1,
                                "aliquot_node_card_healthy": 1, "aliquot_node_card_fence_xid": 0, "aliquot_node_card_cordoned": 0})

    def process(self, lab, pid, uid, name):
        """The driver's process `pid` in the cgroup `name` of the pod."""
        os.mkdir(os.path.join(lab.proc, str(pid)))
        with open(os.path.join(lab.proc, str(pid), "cgroup"), "w") as f:
            f.write(f"0::/kubepods/burstable/pod{uid}/{name}\n")

    def series(self, lab):
        """All series of the answer, each as often as it is there."""
        with urllib.request.urlopen(f"http://127.0.0.1:{lab.metrics_port}/metrics", timeout=60) as answer:
            return [line.rsplit(" ", 1)[0] for line in answer.read().decode().splitlines() if not line.startswith("#")]

    def test_a_deleted_pod_and_its_successor(self):
        """Of the old one, which has no status any more, the driver's number is known; no two series have the same labels."""
        lab = self.watched()
        uid = self.place(lab, pod("web-0", container("main", 2), annotations={"fake/linger": "until-let-go"}), 1)
        self.process(lab, 101, uid, self.started(lab, uid).id)
        lab.api.delete(f"{PODS}/web-0", grace=0)
        lab.wait(lambda: uid in lab.held(), "its slice is held")
        self.started(lab, self.place(lab, pod("web-0", container("main", 4)), 1))
        lab.machine([(1, 101, 700)], [(1, 800)])

        def used():
            return sorted((f'DeletedPodUID="{uid}"' in k, v) for k, v in lab.metrics().items() if k.startswith(PREFIX + "memory_used_bytes{"))
        lab.wait(lambda: used() == [(False, 0), (True, 700 * MIB)], f"each has its own: {used()}")
        series = self.series(lab)
        self.assertEqual(len(series), len(set(series)))
        lab.kubelet.let_go()
        lab.wait(lambda: len(used()) == 1, "the old one is gone")

    def test_a_process_of_an_unknown_container(self):
        """It is not known that the container holds nothing."""
        lab = self.watched()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        self.started(lab, uid)
        lab.machine((), [(1, 10)])
        lab.wait(lambda: self.of(lab, "a").get("memory_used_bytes") == 0, "it holds nothing")
        self.process(lab, 101, uid, "f" * 64)
        lab.machine([(1, 101, 700)], [(1, 800)])
        lab.wait(lambda: any(k.startswith("DCGM_CUSTOM_PROCESS_MEM_USED{") for k in lab.metrics()), "the process is seen")
        self.assertNotIn("memory_used_bytes", self.of(lab, "a"))

    def test_the_driver_hangs(self):
        """What it said before is not shown as of now."""
        lab = self.watched()
        uid = self.place(lab, pod("a", container("main", 2)), 1)
        self.started(lab, uid)
        self.process(lab, 101, uid, "f" * 64)
        lab.machine([(1, 101, 700)], [(1, 800)])
        told = ("DCGM_CUSTOM_PROCESS_MEM_USED{", "aliquot_node_card_memory_used_bytes{", "aliquot_node_unaccounted_bytes{")

        def shown():
            return {name for name in told for k in lab.metrics() if k.startswith(name)}
        lab.wait(lambda: shown() == set(told), "the driver says it")
        lab.machine([(1, 101, 700)], [(1, 800)], more=["hang wait *"])
        lab.wait(lambda: not shown(), "nothing is shown")
        self.assertTrue([v for k, v in lab.metrics().items() if k.startswith("aliquot_node_census_age_seconds{") and v > 0])

    def test_a_fence(self):
        lab = self.watched()

        def fence():
            return [[v for k, v in lab.metrics().items() if k.startswith(f"aliquot_node_card_{name}{{") and 'gpu="1"' in k]
                    for name in ("healthy", "fence_xid", "cordoned")]
        self.assertEqual(fence(), [[1], [0], [0]])
        lab.annotate(cordon_cards="1")
        lab.wait(lambda: fence() == [[1], [0], [1]], "the card is cordoned")
        lab.machine((), more=["xid 1 1 48"])
        lab.wait(lambda: fence() == [[0], [48], [1]], "the metrics name the XID")

    def test_nothing_stays_of_what_has_ended(self):
        lab = self.watched()
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        uid = self.place(lab, pod("b", container("main", 2), init=[container("first", 2)], annotations={"fake/run-first": "0.001"}), 1)
        self.started(lab, uid)
        self.assertTrue(self.of(lab, "b") and self.of(lab, "a"))
        lab.wait(lambda: not self.of(lab, "b", "first"), "the init container is gone")
        lab.api.delete(f"{PODS}/a", grace=0)
        lab.wait(lambda: not any('PodName="a"' in k for k in lab.metrics()), "no series names the pod")
        self.assertTrue(self.of(lab, "b"))

    def test_counters_that_lie(self):
        lab = self.watched()
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        put(self.counters(c), page.USED, "<QQQ", 2 ** 64 - 1, 2 ** 64 - 1, 2 ** 64 - 1)
        found = self.of(lab, "a")
        self.assertEqual((found["memory_charged_bytes"], found["memory_peak_bytes"]), (16160 * MIB, 16160 * MIB))
        put(self.counters(c), 0, "<Q", 0)
        self.assertEqual(set(self.of(lab, "a")) - {"memory_used_bytes"}, {"memory_limit_bytes", "compute_share_ratio"})
        os.truncate(self.counters(c), 5)
        self.assertIn("memory_limit_bytes", self.of(lab, "a"))

    def test_times_of_calls(self):
        lab = self.watched()
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        found = lab.metrics()
        for call in "Allocate", "PreStartContainer":
            self.assertGreaterEqual(found[f'aliquot_node_call_seconds_count{{call="{call}"}}'], 1)
            self.assertEqual(found[f'aliquot_node_call_seconds_bucket{{call="{call}",le="+Inf"}}'],
                             found[f'aliquot_node_call_seconds_count{{call="{call}"}}'])
        for kind in "nodes", "pods":
            self.assertGreaterEqual(found[f'aliquot_node_watch_silence_seconds{{kind="{kind}"}}'], 0)
        self.assertEqual([v for k, v in found.items() if k.startswith('aliquot_node_build_info{version="')], [1])

    # hostile HTTP

    def talk(self, lab, text):
        """The first line of the answer; "": the connection was closed without one."""
        with socket.create_connection(("127.0.0.1", lab.metrics_port), timeout=60) as s:
            try:
                s.sendall(text)
                s.shutdown(socket.SHUT_WR)
                return s.makefile("rb").readline().decode(errors="replace")
            except OSError:
                return ""

    def test_hostile_requests(self):
        lab = self.watched()
        for text in (b"\0" * 5000, b"GET", b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20000, b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                     b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"):
            self.assertNotIn(" 200 ", self.talk(lab, text), text[:60])
        for path in "../../etc/passwd", "metrics/", "Metrics":
            with self.assertRaises(urllib.error.HTTPError, msg=path) as e:
                urllib.request.urlopen(f"http://127.0.0.1:{lab.metrics_port}/{path}", timeout=60)
            self.assertEqual(e.exception.code, 404)
            e.exception.close()
        self.assertEqual(lab.ready(), 200)
        self.assertTrue(lab.metrics())

    def test_readers_that_never_read(self):
        lab = self.watched()
        self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        before = lab.agent.memory()
        silent = []
        for i in range(40):  # more than the server takes, from another address than the next reader
            s = socket.socket()
            self.addCleanup(s.close)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            s.bind(("127.0.0.2", 0))
            s.connect(("127.0.0.1", lab.metrics_port))
            try:
                s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20 if i % 2 else b"GET /met")
            except ConnectionError:
                pass  # it has enough connections already
            silent.append(s)
        for _ in range(5):
            self.assertTrue(self.of(lab, "a"))
        if not os.environ.get("ASAN_OPTIONS"):  # a sanitizer keeps what is freed
            self.assertLess(lab.agent.memory(), AGENT_KIB, f"{before} KiB before")

    def test_readers_at_several_addresses(self):
        """Four of them with all their connections do not keep the kubelet's probes out."""
        lab = self.watched()
        for i in range(32):
            s = socket.socket()
            self.addCleanup(s.close)
            s.bind((f"127.0.0.{2 + i // 8}", 0))
            s.connect(("127.0.0.1", lab.metrics_port))
            s.sendall(b"GET /met")
        self.assertEqual(lab.ready(), 200)


if __name__ == "__main__":
    alone()
    run_tests()
