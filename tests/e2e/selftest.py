#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit of the end-to-end tests finds each fault, and the kills of the tests end the right
processes. Needs no cluster."""

import copy
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import audit  # noqa: E402
import kube  # noqa: E402
import programs  # noqa: E402

CARDS = {i: {"index": i, "uuid": f"GPU-{i}", "units": 15} for i in range(3)}


def made(init=(), main=((2, None),), labels=None, **notes):
    """A pod on card 1 with everything that belongs to it; notes replace annotations."""
    first = [kube.container(f"i{n}", mem) for n, mem in enumerate(init)]
    rest = [kube.container(f"m{n}", mem, core) for n, (mem, core) in enumerate(main)]
    p = kube.pod("p", *rest, init=first, labels=labels)
    p["metadata"]["uid"] = "u"
    p["status"] = {"phase": "Running"}
    units = sum(mem for mem, _ in main)
    p["metadata"]["annotations"] = {
        audit.ALLOCATION: json.dumps({str(n): {"1": mem} for n, (mem, _) in enumerate(main)}),
        audit.INIT: json.dumps({str(n): {"1": mem} for n, mem in enumerate(init)}),
        audit.CORE_ALLOCATION: json.dumps({str(n): {"1": core} for n, (_, core) in enumerate(main) if core}),
        audit.ASSIGNED: "true", "ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": str(units),
        "ALIYUN_COM_GPU_MEM_DEV": "15", **notes}
    return p


def seen(units=2, **other):
    return {("p", "m0"): {"ALIYUN_COM_GPU_MEM_CONTAINER": str(units), "ALIYUN_COM_GPU_MEM_DEV": "15",
                          "ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": str(units),
                          "NVIDIA_VISIBLE_DEVICES": "GPU-1", **other}}


def ledger(**pods):
    return {"nodes": [{"name": "n", "devs": [
        {"id": i, "usedGPU": sum(pods.values()) if i == 1 else 0,
         "pods": [{"name": name, "namespace": kube.NAMESPACE, "usedGPU": n} for name, n in pods.items()] if i == 1 else []}
        for i in CARDS]}]}


class Audit(unittest.TestCase):
    def audit(self, p, env=None, given=None):
        a = audit.PodAudit(p, CARDS)
        if env is not None:
            a.check_environment(env)
        if given is not None:
            a.check_devices(given)
        return a

    def assert_fault(self, word, a):
        self.assertTrue(any(word in f for f in a.faults), a.faults)

    def test_right_is_right(self):
        given = {("u", "m0", kube.MEM): ["1-3", "1-7"]}
        self.assertEqual(self.audit(made(), seen(), given).faults, [])

    def test_wrong_environment(self):
        for name, value in (("ALIYUN_COM_GPU_MEM_IDX", "2"), ("NVIDIA_VISIBLE_DEVICES", "GPU-2"),
                            ("ALIYUN_COM_GPU_MEM_CONTAINER", "3"), ("ALIYUN_COM_GPU_MEM_POD", "4")):
            self.assert_fault(name, self.audit(made(), seen(**{name: value})))

    def test_pages(self):
        """2 of 15 units of 16160 MiB, in the MiB that a container sees."""
        cards = {i: {**card, "mib": 16160} for i, card in CARDS.items()}
        right = {"PRELOAD": "/.aliquot/libaliquot.so", "PAGE_0": f"{2154 << 20}/GPU-1/{kube.NAMESPACE}/p/m0"}

        def faults(isolated, **env):
            a = audit.PodAudit(made(), cards)
            a.check_isolation(seen(**env), isolated)
            return a.faults
        self.assertEqual(faults(True, **right), [])
        self.assertEqual(faults(False), [])
        self.assertTrue(faults(False, **right))
        self.assertTrue(faults(True, PRELOAD=right["PRELOAD"]))
        self.assertTrue(faults(True, PAGE_0=right["PAGE_0"]))
        self.assertTrue(faults(True, **{**right, "PAGE_0": right["PAGE_0"].replace("2258", "2259")}))
        self.assertTrue(faults(True, **{**right, "PAGE_0": right["PAGE_0"].replace("GPU-1", "GPU-2")}))
        self.assertTrue(faults(True, **right, PAGE_WRITABLE="/.aliquot/slice/0/limits"))

    def test_silence(self):
        self.assert_fault("reported nothing", self.audit(made(), {}))

    def test_devices_of_another_card(self):
        self.assert_fault("devices", self.audit(made(), given={("u", "m0", kube.MEM): ["1-3", "2-7"]}))

    def test_too_few_devices(self):
        self.assert_fault("gave 1", self.audit(made(), given={("u", "m0", kube.MEM): ["1-3"]}))
        self.assert_fault("gave 0", self.audit(made(), given={}))

    def test_compute_of_another_card(self):
        given = {("u", "m0", kube.MEM): ["1-0", "1-1"], ("u", "m0", kube.CORE): [f"c2-{i}" for i in range(5)]}
        self.assert_fault("compute", self.audit(made(main=((2, 5),)), given=given))

    def test_annotation_against_the_spec(self):
        self.assert_fault("asks for 2", self.audit(made(**{audit.ALLOCATION: '{"0":{"1":3}}'})))
        self.assert_fault("asks for 2", self.audit(made(**{audit.ALLOCATION: "{}"})))
        self.assert_fault("cards", self.audit(made(main=((2, None), (1, None)), **{
            audit.ALLOCATION: '{"0":{"1":2},"1":{"2":1}}'})))
        self.assert_fault("uneven", self.audit(made(main=((4, None),), labels={kube.COUNT: "2"}, **{
            audit.ALLOCATION: '{"0":{"1":3,"2":1}}'})))
        self.assert_fault("not on the node", self.audit(made(**{audit.ALLOCATION: '{"0":{"9":2}}'})))
        self.assert_fault("%", self.audit(made(main=((2, 30),), **{audit.CORE_ALLOCATION: '{"0":{"1":25}}'})))

    def test_ledger(self):
        a = [self.audit(made())]
        self.assertEqual(audit.check_ledger(a, ledger(p=2), "n"), [])
        self.assertIn("card 1", audit.check_ledger(a, ledger(p=3), "n")[0])
        self.assertIn("card 1", audit.check_ledger(a, ledger(p=2, ghost=1), "n")[0])
        self.assertIn("card 1", audit.check_ledger(a, ledger(), "n")[0])
        self.assertIn("does not know", audit.check_ledger(a, ledger(), "other")[0])
        self.assertTrue(any("given out" in f for f in audit.check_ledger(a, ledger(p=16), "n")))

    def test_twice(self):
        p, q = made(), copy.deepcopy(made())
        q["metadata"]["uid"] = "v"
        given = {("u", "m0", kube.MEM): ["1-3"], ("v", "m0", kube.MEM): ["1-3"]}
        self.assertEqual(len(audit.twice([p, q], given)), 1)
        q["status"]["phase"] = "Failed"
        self.assertEqual(audit.twice([p, q], given), [])

    def test_units_of_a_pod(self):
        self.assertEqual(self.audit(made(init=(6,))).units(), 2)
        self.assertEqual(self.audit(made(init=(6,))).total(), 6)
        self.assertEqual(self.audit(made(init=(6,))).faults, [])


class Killed(unittest.TestCase):
    def sleeper(self):
        p = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def test_one_that_ended_spares_no_other(self):
        """A child of the agent ends with it, before its own signal is sent."""
        gone, stays = self.sleeper(), self.sleeper()
        gone.kill()
        gone.wait()
        self.assertEqual(programs.kill_each([gone.pid, stays.pid]), 1)
        self.assertEqual(stays.wait(), -signal.SIGKILL)
        self.assertEqual(programs.kill_each([gone.pid, stays.pid]), 0)


if __name__ == "__main__":
    unittest.main()
