#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot local --page` from outside: it prints what --once prints, and serves the page until a signal.

    local_page.py ALIQUOT SOURCE_ROOT
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake"))

from page_lab import node, pod  # noqa: E402
from patience import PATIENCE  # noqa: E402

ALIQUOT, ROOT = sys.argv.pop(1), sys.argv.pop(1)


class Page(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def manifest(self, *objects):
        path = os.path.join(self.folder.name, "m.json")
        with open(path, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "List", "items": objects}, f)
        return path

    def start(self, *options, address="127.0.0.1:0"):
        """The process, and the address on its line."""
        process = subprocess.Popen([ALIQUOT, "local", "--page", address, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def stop():
            process.kill()
            process.communicate()

        self.addCleanup(stop)
        self.said = ""
        for line in process.stderr:
            self.said += line
            found = re.search(r"page at (http://\S+/) until", line)
            if found:
                return process, found[1]
        raise AssertionError(f"no page: {self.said}")

    def get(self, url):
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def state(self, url):
        """The first event of the stream."""
        with urllib.request.urlopen(url + "events", timeout=PATIENCE) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    return json.loads(line[len("data: "):])
        raise AssertionError("the stream ended")

    def end(self, process, by, status):
        process.send_signal(by)
        output, error = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, error), (status, ""))
        return output

    def test_shows_what_once_prints(self):
        files = ["-f", os.path.join(ROOT, "samples/share/node.yaml"), "-f", os.path.join(ROOT, "samples/share/job.yaml")]
        process, url = self.start(*files)
        self.assertIn("<title>Aliquot</title>", self.get(url))
        metrics = self.get(re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)\n", self.said)[1])
        self.assertIn('aliquot_scheduler_node_memory_used_bytes{node="cn-beijing.192.168.1.10"', metrics)
        state = self.state(url)
        self.assertEqual([(n["name"], n["cards"]) for n in state["nodes"]], [("cn-beijing.192.168.1.10", [[0, 16, 4, 0, 1]])])
        self.assertEqual(json.loads(self.get(url + "node/cn-beijing.192.168.1.10"))["slices"][0]["mem"], 4)
        printed = self.end(process, signal.SIGINT, 0)
        once = subprocess.run([ALIQUOT, "local", "--once", *files], capture_output=True, text=True, timeout=PATIENCE, check=True)
        names = re.compile(r"sample-[a-z0-9]{5}")
        self.assertEqual(names.sub("sample-", printed), names.sub("sample-", once.stdout))
        with self.assertRaises(urllib.error.URLError):
            self.get(url)

    def test_pods_that_were_not_placed_wait_with_their_reason(self):
        made = node("n1", cards=1, units=16)
        made["metadata"]["annotations"] = {"aliquot.dev/simulated-cards": "A10:16GiB"}
        process, url = self.start("-f", self.manifest(made, pod("large", 17), pod("small", 3)), address="[::1]:0")
        self.assertTrue(url.startswith("http://[::1]:"), url)
        self.assertIn("default/large: ", self.said)
        waiting = self.state(url)["waiting"]
        self.assertEqual([(p["name"], p["fit"], p["why"]) for p in waiting["pods"]], [("large", 0, [["no card is large enough for 17 GiB of gpu-mem", 1]])])
        self.assertIn("the card is too small", self.get(url + "why/" + waiting["pods"][0]["uid"]))
        self.end(process, signal.SIGTERM, 1)

    def test_wrong_usage(self):
        for options in (["--page", "0.0.0.0:1"], ["--page", "localhost:1"], ["--page", ""], ["--page", "127.0.0.1"], ["--once", "--page", "127.0.0.1:0"]):
            done = subprocess.run([ALIQUOT, "local", *options, "-f", self.manifest()], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertRegex(done.stderr, "must be 127.0.0.1:PORT|not both")

    def test_an_address_is_no_format(self):
        done = subprocess.run([ALIQUOT, "local", "--page", "%s%s%s%n", "-f", self.manifest()], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('page address "%s%s%s%n": must be', done.stderr)

    def test_a_port_that_is_taken(self):
        _, url = self.start("-f", self.manifest())
        port = url.rsplit(":", 1)[1].rstrip("/")
        done = subprocess.run([ALIQUOT, "local", "--page", "127.0.0.1:" + port, "-f", self.manifest()],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn(port, done.stderr)


if __name__ == "__main__":
    unittest.main()
