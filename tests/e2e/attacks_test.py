# SPDX-License-Identifier: Apache-2.0
"""What root of a container with default capabilities tries against its own slice. Each attack is
prevented (the memory beyond the slice is refused afterwards) or detected (an Event of the pod
names it). SECURITY.md has the table that this file proves.

It needs simulated cards with a driver behind them (E2E_DRIVER: the folder of a mounted aliquot-sim,
with the same path on the host and for the agent). It also needs a folder of the node with
aliquot-sample and rm-raw (E2E_PROGRAMS)."""

import os
import re
import unittest

import kube
import programs
import suite
from kube import container, pod

DRIVER, PROGRAMS = os.environ.get("E2E_DRIVER"), os.environ.get("E2E_PROGRAMS")
HERE = os.path.dirname(os.path.abspath(__file__))
SLICE_UNITS, BEYOND = 2, 8000  # of a card of 15 units; MiB that no slice of 2 units has
BESIDE, WITHIN = 3, 4000  # units of a second container; MiB that both have together
PREVENTED, DETECTED = "prevented", "detected"

# Tries to take more memory than the slice: CUDA refuses it, or the process has it and holds it
# until the pod ends.
TAKE = f"/programs/aliquot-sample --gpu-mem-mib {BEYOND} -- sleep 1000000"
PRELOAD = "$(head -1 /etc/ld.so.preload)"
GATE = f"$(dirname {PRELOAD})"
LD = "$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null | head -1)"

# name -> (preparation, how it takes memory, expected result)
ATTACKS = {
    "plain program": (":", TAKE, PREVENTED),
    "env -i": (":", "env -i " + TAKE, PREVENTED),
    "rm of the gate and of ld.so.preload": (f"rm -f {PRELOAD} /etc/ld.so.preload", TAKE, PREVENTED),
    "rename of the gate's folder": (f"mv {GATE} /x", TAKE, PREVENTED),
    "rename of the gate's parent": (f"mv /$(echo {GATE} | cut -d/ -f2) /x", TAKE, PREVENTED),
    "rename of the gate's file": (f"mv {PRELOAD} /x", TAKE, PREVENTED),
    "rename of /run": ("mv /run /x", TAKE, PREVENTED),
    "rename of ld.so.preload": ("mv /etc/ld.so.preload /x", TAKE, PREVENTED),
    "rename of /etc": ("mv /etc /x && mkdir /etc", TAKE, PREVENTED),
    "link over ld.so.preload": ("ln -sf /dev/null /etc/ld.so.preload; ln -f /dev/null /etc/ld.so.preload", TAKE, PREVENTED),
    "write to ld.so.preload": ("echo > /etc/ld.so.preload", TAKE, PREVENTED),
    "write to the gate": (f"echo > {PRELOAD}; chmod 777 {PRELOAD} && echo > {PRELOAD}", TAKE, PREVENTED),
    "umount": (f"umount /etc/ld.so.preload; umount {GATE}; umount -l {PRELOAD}", TAKE, PREVENTED),
    "mount over ld.so.preload": ("mount --bind /dev/null /etc/ld.so.preload", TAKE, PREVENTED),
    "mount --move": (f"mount --move {GATE} /mnt", TAKE, PREVENTED),
    "write to limits": (f"for f in {GATE}/slice/*/limits; do echo > $f; chmod 666 $f; rm -f $f; done", TAKE, PREVENTED),
    "own ld.so": (f"sed s,/etc/ld.so.preload,/etc/ld.so.preloax, $(readlink -f {LD}) > /ld && chmod 755 /ld",
                  f"/ld {TAKE}", DETECTED),
    "LD_PRELOAD emptied": (":", "env LD_PRELOAD= " + TAKE, PREVENTED),
    "raw system calls": (":", f"python3 - {BEYOND}", DETECTED),
    "static program": (":", f"python3 - {BEYOND} /programs/rm-raw", DETECTED),
    "ptrace": (":", f"strace -f -qq -o /dev/null -e trace=access,faccessat -e inject=access,faccessat:error=ENOENT:when=1 {TAKE}",
               DETECTED),
    "user namespace": (":", f"unshare -Urm sh -c 'mount --bind /dev/null /etc/ld.so.preload; exec {TAKE}'", DETECTED),
    "counters filled with garbage": (f"for f in {GATE}/slice/*/counters; do head -c 8192 /dev/urandom > $f; done", TAKE,
                                     PREVENTED),
    "counters cut to nothing": (f"for f in {GATE}/slice/*/counters; do : > $f; done", TAKE, PREVENTED),
    "counters zeroed": (f"for f in {GATE}/slice/*/counters; do head -c 65536 /dev/zero | dd of=$f conv=notrunc; done", TAKE,
                        PREVENTED),
}


@unittest.skipUnless(DRIVER and PROGRAMS, "E2E_DRIVER and E2E_PROGRAMS are not given")
class Attacks(suite.Scenario):
    mode = "core_mem"

    def victim(self, name, seccomp="Unconfined", *others):
        volume = {"name": "programs", "hostPath": {"path": PROGRAMS}}
        main = container("main", SLICE_UNITS, 30, script=kube.STAY, volumeMounts=[{"name": "programs", "mountPath": "/programs"}],
                         securityContext={"seccompProfile": {"type": seccomp}})
        self.run_pods(pod(name, main, *others, volumes=[volume]))
        self.assertIn("PRELOAD", self.env(name))

    def shell(self, name, script, stdin=None):
        done = kube.kubectl("exec", "-i", "-n", kube.NAMESPACE, name, "-c", "main", "--", "sh", "-c", script, stdin=stdin or "", check=False)
        return done.returncode, (done.stdout + done.stderr).strip()

    def take(self, name, how):
        """Starts the program that takes memory. True: it has the memory and holds it."""
        with open(os.path.join(HERE, "raw_memory.py"), encoding="utf-8") as f:
            script = f.read()
        self.shell(name, "cat > /raw_memory.py", script)
        how = how.replace("python3 -", "python3 /raw_memory.py")
        self.shell(name, f"nohup sh -c \"{how}; echo ended >> /out\" > /out 2>&1 &")

        def answered():
            _, out = self.shell(name, "cat /out")
            return out if re.search(r"ended|free|^0$|MiB", out, re.M) else None
        out = kube.until(f"{name}: the program says nothing", answered, 60)
        return not re.search("ended", out), out

    def attack(self, name, title, seccomp="Unconfined", expected=None):
        before, how, usual = ATTACKS[title]
        expected = PREVENTED if suite.driver_limits() else expected or usual
        self.victim(name, seccomp)
        _, said = self.shell(name, before)
        has, out = self.take(name, how)
        result = PREVENTED
        if has:
            kube.until(f"{title}: no Event", lambda: self.events(name, "GPUMemoryExceeded"), 60)
            result = DETECTED
        print(f"attack {title!r} ({seccomp}): {result}; the attack said {said[:120]!r}, the program {out[:160]!r}", flush=True)
        kube.kubectl("delete", "pod", name, "-n", kube.NAMESPACE, "--wait=false", "--grace-period=0", "--force", check=False)
        self.assertEqual(result, expected, f"{title}: {said} / {out}")

    def test_memory(self):
        for i, title in enumerate(ATTACKS):
            with self.subTest(attack=title):
                self.attack(f"a{i}", title)

    def test_user_namespace_with_seccomp(self):
        """The runtime's default seccomp profile forbids the user namespace."""
        self.attack("userns", "user namespace", "RuntimeDefault", PREVENTED)

    def test_neighbour_is_undisturbed(self):
        """While one container attacks its own counters, another container on the card keeps its
        memory."""
        self.victim("good")
        self.victim("bad")
        self.shell("bad", f"for f in {GATE}/slice/*/counters; do head -c 1000000 /dev/urandom > $f; done")
        code, out = self.shell("good", "/programs/aliquot-sample --gpu-mem-mib 1500")
        self.assertEqual(code, 0, out)
        code, out = self.shell("good", "/programs/aliquot-sample --gpu-mem-mib 2200")
        self.assertNotEqual(code, 0, out)

    def test_compute(self):
        """A program without the gate takes more than its share: the audit reports it."""
        self.victim("fast")
        self.shell("fast", ATTACKS["own ld.so"][0])
        self.shell("fast", "nohup /ld /programs/aliquot-sample --seconds 120 > /out 2>&1 &")
        found = kube.until("no Event about compute", lambda: self.events("fast", "GPUComputeExceeded"), 120)
        print("compute:", found[0]["message"], flush=True)

    def test_mounts_over_the_gate_are_refused(self):
        """No pod is created: the webhook refuses it with the field's path. Other paths below /etc
        stay allowed."""
        volume = {"name": "v", "emptyDir": {}}

        def submitted(**more):
            return kube.refused(pod("covered", container("main", SLICE_UNITS, 30, script=kube.STAY, **more), volumes=[volume]))
        for path in "/.aliquot", "/.aliquot/slice/0/limits", "/etc/ld.so.preload", "/etc", "/tmp/../etc/":
            with self.subTest(path=path):
                said = submitted(volumeMounts=[{"name": "v", "mountPath": path}])
                self.assertIn("spec.containers[0].volumeMounts[0].mountPath", said)
                self.assertIn("must not be at or over the library of a slice", said)
        said = submitted(terminationMessagePath="/etc/ld.so.preload")
        self.assertIn("spec.containers[0].terminationMessagePath", said)
        self.assertEqual(submitted(volumeMounts=[{"name": "v", "mountPath": "/etc/config"}]), "")

    def test_killed(self):
        """With --on-excess=kill the processes that hold too much are killed, and the Event says so. They hold less than the pod's
        containers together have, so that a limit of the driver lets them."""
        if not isinstance(suite.World.programs, programs.Deployed):
            self.skipTest("the agent is not deployed here")
        suite.World.programs.restart_with_option("--on-excess=kill")
        self.addCleanup(suite.World.programs.restart_with_option, "--on-excess=report")
        self.victim("good")
        self.victim("bad", "Unconfined", container("beside", BESIDE, 30))
        has, out = self.take("bad", f"python3 - {WITHIN}")
        self.assertTrue(has, out)
        found = kube.until("no Event", lambda: self.events("bad", "GPUMemoryExceeded"), 60)
        kube.until("the program goes on", lambda: "ended" in self.shell("bad", "cat /out")[1], 60)
        print("kill:", found[0]["message"], flush=True)
        self.assertIn("killed", found[0]["message"])
        code, out = self.shell("good", "/programs/aliquot-sample --gpu-mem-mib 1500")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.events("good", "GPUMemoryExceeded"), [])
