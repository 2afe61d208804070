# SPDX-License-Identifier: Apache-2.0
"""Containers of `aliquot local` on simulated cards, with the gate: local_cards.py ALIQUOT"""

import base64
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from patience import until

PATIENCE = 400  # of a whole run

V100 = "Tesla-V100-SXM2-16GB:16160MiB"
TOTAL = "nvidia-smi --query-gpu=memory.used,memory.total --format=csv,noheader,nounits"
DISABLED = "[{name: CGPU_DISABLE, value: 'true'}]"


def node(name, cards, mode="cgpu", annotations=""):
    return f"""
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{ack.node.gpu.schedule: {mode}}}
  annotations: {{{"aliquot.dev/simulated-cards: '" + cards + "'" if cards else ""}{annotations}}}
{"status: {allocatable: {aliyun.com/gpu-mem: '30', aliyun.com/gpu-count: '2'}}" if not cards else ""}
"""


def container(command, mem=None, core=None, env="[]", name="main", rest=""):
    limits = {"aliyun.com/gpu-mem": mem, "aliyun.com/gpu-core.percentage": core}
    given = ", ".join(f"{k}: {v}" for k, v in limits.items() if v is not None)
    lines = "".join("        " + line + "\n" for line in command.splitlines())
    return f"""
  - name: {name}
    command:
    - sh
    - -c
    - |
{lines}
    image: none
    env: {env}
    resources: {{limits: {{{given}}}}}
    {rest}
"""


def pod(name, *containers, init=(), node_name=None, count=None):
    return f"""
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{{f'aliyun.com/gpu-count: "{count}"' if count else ""}}}
spec:
{"  nodeName: " + node_name if node_name else ""}
{"  initContainers:" + "".join(init) if init else ""}
  containers: {"".join(containers)}
"""


# Each container of these tests names an image, as the API server demands.
IMAGES = "aliquot local: images are not used: each command is a program of this machine, with its files\n"


def running(name):
    """pids of processes of that name on this machine, without zombies."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                text = f.read()
        except OSError:
            continue
        if text[text.index("(") + 1:text.rindex(")")] == name and text[text.rindex(")") + 2] != "Z":
            found.add(int(entry))
    return found


def begun(pid):
    """When the process began, in clock ticks: numbers of processes begin again from the lowest."""
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[19])


def descendants(pid):
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                text = f.read()
        except OSError:
            continue
        parents[int(entry)] = int(text[text.rindex(")") + 2:].split()[1])
    found = {pid}
    while True:
        more = {p for p, parent in parents.items() if parent in found} | found
        if more == found:
            return found - {pid}
        found = more


class Local(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def command(self, *documents, options=(), timeout=300):
        path = os.path.join(self.dir, "manifests.yaml")
        with open(path, "w") as f:
            f.write("\n---\n".join(documents))
        return [ALIQUOT, "local", "--once", "--logs", "--logs-timeout", str(timeout), *options, "-f", path]

    def run_local(self, *documents, status=0, stderr="", before=(), **more):
        """{"pod/container": its lines} of a run."""
        p = subprocess.run([*before, *self.command(*documents, **more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           timeout=PATIENCE)
        self.stderr = p.stderr.replace(IMAGES, "")
        self.assertEqual((p.returncode, self.stderr if stderr is not None else None), (status, stderr), p.stdout)
        return self.split(p.stdout)

    @staticmethod
    def split(text):
        logs, lines = {}, []
        for line in text.splitlines():
            if line.startswith("== default/"):
                lines = logs.setdefault(line[len("== default/"):], [])
            elif not re.match("(ALIYUN|NVIDIA|CGPU)_[A-Z_]+=", line):
                lines.append(line.strip())
        return logs

    def start(self, *documents, before=(), **more):
        p = subprocess.Popen([*before, *self.command(*documents, **more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

        def end():
            p.kill()
            p.wait()
            p.stdout.close()
            p.stderr.close()
        self.addCleanup(end)
        return p


class Slices(Local):
    PAGE = "od -An -tu4 -w20 -j512 -N20 /run/aliquot/slice/0/limits"  # weight, priority, policy, max_inst, prio_ratio
    PERCENT = "od -An -tu4 -j56 -N4 /run/aliquot/slice/0/limits"

    def compute(self, logs, name):
        return [int(n) for n in logs[name][-1].split()]

    def test_slice_in_nvidia_smi(self):
        logs = self.run_local(node("n1", "4x" + V100, "core_mem"), pod("p", container("nvidia-smi", 2, 30)))
        self.assertRegex("\n".join(logs["p/main"]), r" 0MiB / +2154MiB ")

    def test_use_and_refusal(self):
        logs = self.run_local(node("n1", V100), pod("p", container(f"""
aliquot-sample --gpu-mem-mib 200 -- {TOTAL}
aliquot-sample --gpu-mem-mib 3000 2>&1; echo $?
""", 2)))
        said, seen, refused, status = logs["p/main"]
        used, free, total = map(int, re.findall(r"\d+", said))
        self.assertEqual(total, 2154)
        self.assertTrue(200 < used < 400 and abs(used + free - total) <= 1, said)
        self.assertEqual(seen, f"{used}, 2154")
        self.assertEqual((refused, status), ("aliquot-sample: cuMemAlloc of 3000 MiB: CUDA_ERROR_OUT_OF_MEMORY (2)", "1"))

    def test_published_pairs(self):
        for mib, units, visible in (16130, 4, 4301), (15079, 3, 3231), (23028, 8, 8373):
            logs = self.run_local(node("n1", f"X:{mib}MiB"), pod("p", container(TOTAL, units)))
            self.assertEqual(logs["p/main"], [f"0, {visible}"])

    def test_unit(self):
        logs = self.run_local(node("n1", V100, annotations=", aliquot.dev/gpu-mem-unit: 128MiB"), pod("p", container(TOTAL, 16)))
        self.assertEqual(logs["p/main"], [f"0, {16160 * 16 // 126}"])

    def test_neighbours(self):
        """Three pods on one card: the one that exceeds its slice is refused, the others have all of
        theirs."""
        full = f"aliquot-sample --gpu-mem-mib {{}} -- {TOTAL}"
        logs = self.run_local(node("n1", V100), pod("greedy", container("for i in 1 2 3; do aliquot-sample --gpu-mem-mib 5300 2>&1; done; true", 5)),
                              pod("a", container(full.format(4800), 5)), pod("b", container(full.format(4800), 5)))
        self.assertEqual({line.rpartition(": ")[2] for line in logs["greedy/main"]}, {"CUDA_ERROR_OUT_OF_MEMORY (2)"})
        for name in "a/main", "b/main":
            self.assertRegex(logs[name][1], r"^5[01]\d\d, 5386$")

    def test_two_containers_of_a_pod(self):
        logs = self.run_local(node("n1", V100), pod("p", container(TOTAL, 2, name="a"), container(TOTAL, 4, name="b")))
        self.assertEqual((logs["p/a"], logs["p/b"]), (["0, 2154"], ["0, 4309"]))

    def test_several_cards(self):
        logs = self.run_local(node("n1", "2x" + V100 + ",A10:23028MiB,A10:23028MiB"),
                              pod("p", container(TOTAL + "; ls /dev; for i in 0 1; do cat /run/aliquot/slice/$i/limits >/dev/null && echo $i; done",
                                                 4), count=2),
                              pod("whole", container(TOTAL, 15)))
        lines = logs["p/main"]
        self.assertEqual(sum(re.fullmatch(r"nvidia\d", n) is not None for n in lines), 2)
        self.assertEqual(len([n for n in lines if re.match("0, ", n)]), 2)
        self.assertTrue(all(n in ("0, 2154", "0, 2093") for n in lines[:2]), lines)
        self.assertEqual(lines[-2:], ["0", "1"])

    def test_cards_of_unequal_size(self):
        """Each container has its own limit."""
        allocation = 'scheduler.framework.gpushare.allocation: \'{"0":{"0":2,"2":2}}\''
        manifest = pod("p", container(TOTAL, 4), node_name="n1", count=2).replace("  name: p\n", f"  name: p\n  annotations: {{{allocation}}}\n", 1)
        logs = self.run_local(node("n1", "2x" + V100 + ",A10:23028MiB"), manifest)
        self.assertEqual(logs["p/main"], ["0, 2154", f"0, {23028 * 2 // 22}"])

    def test_only_its_own_cards(self):
        logs = self.run_local(node("n1", "2x" + V100), pod("a", container("nvidia-smi -L; ls /dev", 14)),
                              pod("b", container("nvidia-smi -L; ls /dev", 14)))
        for name, card in ("a/main", 0), ("b/main", 1):
            self.assertEqual([n for n in logs[name] if re.fullmatch(r"nvidia\d", n)], [f"nvidia{card}"])
            self.assertEqual(len([n for n in logs[name] if n.startswith("GPU ")]), 1)
        self.assertNotEqual(logs["a/main"][0], logs["b/main"][0])

    def test_uuid_is_that_of_the_environment(self):
        logs = self.run_local(node("n1", "2x" + V100), pod("p", container("nvidia-smi -L | grep -c $NVIDIA_VISIBLE_DEVICES", 2)))
        self.assertEqual(logs["p/main"], ["1"])

    def test_share(self):
        """The whole card, without a gate."""
        logs = self.run_local(node("n1", V100, "share"), pod("p", container(
            f"{TOTAL}; aliquot-sample --gpu-mem-mib 9000 -- echo had; ls /etc/ld.so.preload /run/aliquot", 2)))
        self.assertEqual(logs["p/main"][0], "0, 16160")
        self.assertIn("had", logs["p/main"])
        self.assertNotIn("slice", logs["p/main"])
        self.assertNotIn("/etc/ld.so.preload", logs["p/main"])

    def test_one_machine_per_node(self):
        """A container with the whole card sees what others use of it; another node has other cards.
        """
        used = "$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits)"
        # Each container waits for the other's step: b appears, b takes more, a ends.
        wait = f"until [ {used} {{}} ]; do sleep 0.1; done; "
        logs = self.run_local(
            node("n1", V100, "share"), node("n2", V100, "share"),
            pod("a", container(f"aliquot-sample --gpu-mem-mib 3000 -- sh -c '{wait.format('-gt 10000')} echo both'", 4), node_name="n1"),
            pod("b", container(f"cat >/tmp/more <<'E'\n{wait.format('-lt 8500')} echo one\nE\naliquot-sample --gpu-mem-mib 5000 -- sh -c "
                               f"'{wait.format('-gt 7000')} aliquot-sample --gpu-mem-mib 2000 -- sh /tmp/more'", 6), node_name="n1"),
            pod("c", container(f"aliquot-sample --gpu-mem-mib 100 -- echo alone; {TOTAL}", 4), node_name="n2"))
        self.assertEqual((logs["a/main"][-1], logs["b/main"][-1]), ("both", "one"))
        self.assertEqual(logs["c/main"][1:], ["alone", "0, 16160"])

    def test_policy_of_the_node(self):
        said = ", aliquot.dev/policy: '0', aliquot.dev/max-inst: '5', aliquot.dev/prio-ratio: '60'"
        logs = self.run_local(node("n1", V100), node("n2", V100, annotations=said), node("n3", V100, "core_mem", annotations=said),
                              pod("a", container(self.PAGE, 2), node_name="n1"), pod("b", container(self.PAGE, 2), node_name="n2"),
                              pod("c", container(f"{self.PERCENT}; {self.PAGE}", 2, 30), node_name="n3"))
        self.assertEqual(self.compute(logs, "a/main"), [1, 0, 6, 0, 0])
        self.assertEqual(self.compute(logs, "b/main"), [1, 0, 1, 5, 60])
        self.assertEqual((logs["c/main"][0].strip(), self.compute(logs, "c/main")), ("30", [1, 0, 4, 5, 60]))

    def test_weight(self):
        """Its card is weighted, another node's is not; containers that ran before get the new
        weight."""
        heavy = "[{name: ALIYUN_COM_GPU_SCHD_WEIGHT, value: '3'}, {name: ALIYUN_COM_GPU_HIGH_PRIO, value: '1'}]"
        told = f"until {self.PAGE} | grep -q ' 3 '; do sleep 0.05; done; {self.PAGE}"
        logs = self.run_local(node("n1", V100), node("n2", V100), pod("a", container(told, 2), node_name="n1"),
                              pod("b", container(self.PAGE, 2, env=heavy), node_name="n1"), pod("c", container(self.PAGE, 2), node_name="n2"))
        self.assertEqual(self.compute(logs, "a/main"), [1, 0, 3, 0, 0])
        self.assertEqual(self.compute(logs, "b/main"), [3, 1, 3, 0, 0])
        self.assertEqual(self.compute(logs, "c/main"), [1, 0, 6, 0, 0])

    def test_what_is_said_wrongly(self):
        logs = self.run_local(node("n1", V100, annotations=", aliquot.dev/policy: best"), pod("a", container(
            self.PAGE, 2, env="[{name: ALIYUN_COM_GPU_SCHD_WEIGHT, value: many}]")), stderr=None)
        self.assertIn('Node n1: annotation aliquot.dev/policy is "best", must be 0 to 5', self.stderr)
        self.assertIn('Pod a: container "main": environment ALIYUN_COM_GPU_SCHD_WEIGHT is "many"', self.stderr)
        self.assertIn('(environment ALIYUN_COM_GPU_SCHD_WEIGHT is "many", must be a whole number from 1 to 10000; its node\'s annotation '
                      'aliquot.dev/policy is "best", must be 0 to 5; it is passed over)', logs["a/main"])
        self.assertEqual(self.compute(logs, "a/main"), [1, 0, 6, 0, 0])

    def test_percentage_is_held(self):
        """An arbiter holds the shares as long as the containers run."""
        work = "until [ $(od -An -tu8 -j472 -N8 /run/aliquot/slice/0/limits) -gt 0 ]; do sleep 0.05; done; aliquot-sample --seconds 2"
        logs = self.run_local(node("n1", "2x" + V100, "core_mem"), pod("a", container(work, 2, 20)), pod("b", container(work, 2, 100)))
        (few, seconds), (many, _) = (re.fullmatch(r"done (\d+) blocks in ([0-9.]+) s", logs[name][-1]).groups() for name in ("a/main", "b/main"))
        # A block is a tenth of a second of the card. What the other does depends on the machine.
        self.assertLessEqual(int(few), float(seconds) * 10 * 0.2 + 5)
        self.assertGreater(int(many), 0)


class Containers(Local):
    AS_USER = """
mount -t tmpfs -o mode=755 tmpfs /mnt && mknod /mnt/fuse c 10 229 && chmod 666 /mnt/fuse && mount --bind /mnt/fuse /dev/fuse || exit 77
exec setpriv --reuid 12345 --regid 12345 --clear-groups "$@"
"""

    def test_disable(self):
        manifests = node("n1", V100), pod("p", container(TOTAL, 2, env=DISABLED)), pod("q", container(TOTAL, 2))
        logs = self.run_local(*manifests)
        self.assertEqual((logs["p/main"], logs["q/main"]), (["0, 16160"], ["0, 2154"]))
        logs = self.run_local(*manifests, options=["--ignore-cgpu-disable"])
        self.assertEqual((logs["p/main"], logs["q/main"]), (["0, 2154"], ["0, 2154"]))

    def test_disabled_by_itself(self):
        """Only the manifest counts; the process cannot change it."""
        logs = self.run_local(node("n1", V100), pod("p", container("CGPU_DISABLE=1 " + TOTAL, 2)))
        self.assertEqual(logs["p/main"], ["0, 2154"])

    def test_no_slice_no_card(self):
        nothing = "ls /dev | grep -c nvidia; ls -d /run/aliquot /etc/ld.so.preload 2>/dev/null; echo $LD_LIBRARY_PATH"
        logs = self.run_local(node("n1", V100), node("n2", V100, "default"), pod("none", container(nothing), node_name="n1"),
                              pod("default", container(nothing), node_name="n2"), pod("p", container(nothing, 2), container(nothing, 1, name="b")))
        self.assertEqual((logs["none/main"][0], logs["default/main"][0]), ("0", "0"))
        if not os.path.exists("/etc/ld.so.preload"):
            self.assertEqual((logs["none/main"], logs["default/main"]), (["0", ""], ["0", ""]))
        self.assertEqual(logs["p/main"][0], "4")

    def test_init_containers(self):
        """One after another on the same card, each in its own slice; a sidecar keeps its own."""
        init = (container(TOTAL + "; aliquot-sample --gpu-mem-mib 3000 -- true", 4, name="first"),
                container(TOTAL, 3, name="second"),
                container(f"{TOTAL}; aliquot-sample --gpu-mem-mib 300 -- sleep 1000 & sleep 1000", 2, name="sidecar", rest="restartPolicy: Always"))
        logs = self.run_local(node("n1", V100), pod("p", container(TOTAL, 1), init=init), timeout=20, stderr=None)
        self.assertEqual(re.findall(r'init container "(\w+)": it has a share', self.stderr), ["first", "second"])
        self.assertEqual([logs[f"p/{n}"][0] for n in ("first", "second", "sidecar", "main")],
                         ["0, 4309", "0, 3232", "0, 2154", "0, 1077"])
        self.assertRegex(logs["p/first"][1], "^memory: ")

    def test_cleared_environment(self):
        logs = self.run_local(node("n1", V100), pod("p", container(f"""
env -i $(which nvidia-smi) {TOTAL.partition(" ")[2]}
env -i LD_PRELOAD= $(which aliquot-sample) --gpu-mem-mib 2100 2>&1
unset LD_LIBRARY_PATH
aliquot-sample --gpu-mem-mib 2100 2>&1
true
""", 2, env="[{name: LD_LIBRARY_PATH, value: /proc/self/absent}, {name: PATH, value: /usr/bin:/bin}]")))
        refused = "aliquot-sample: cuMemAlloc of 2100 MiB: CUDA_ERROR_OUT_OF_MEMORY (2)"
        self.assertEqual(logs["p/main"], ["0, 2154", refused, refused])

    def test_what_it_may_not_change(self):
        """Limits, gate and preload stay in force. Raw system calls bypass the gate: it is no
        security boundary."""
        attempts = ["echo > /run/aliquot/slice/0/limits", "rm /run/aliquot/slice/0/limits", "mv /run/aliquot /run/other",
                    "mv /run/aliquot/slice /run/aliquot/other",
                    "rm /etc/ld.so.preload", "echo > /etc/ld.so.preload", "mv /etc/ld.so.preload /tmp", "echo > /run/aliquot/libaliquot.so",
                    "umount /etc/ld.so.preload", "umount /run/aliquot", "mount -o remount,rw /run/aliquot", "touch /etc/new", "touch /run/aliquot/new",
                    "touch /run/aliquot/sim/libcuda.so.1", "cat /dev/nvidia1"]
        script = "".join(f"( {a} ) >/dev/null 2>&1 && echo '{a} worked'\n" for a in attempts)
        logs = self.run_local(node("n1", "2x" + V100), pod("p", container(script + TOTAL, 2)))
        self.assertEqual(logs["p/main"], ["0, 2154"])

    def test_counters_fill_nothing_but_their_directory(self):
        """The counters can be written from inside; the next container still finds room."""
        fill = "dd if=/dev/zero of=/run/aliquot/slice/0/counters bs=1M seek=1 count=200 >/dev/null 2>&1 && echo all\n" \
               "[ $(stat -c %s /run/aliquot/slice/0/counters) -le 83886080 ] && echo bounded"
        init = (container(fill, 4, name="first"), container(TOTAL, 3, name="second"))
        logs = self.run_local(node("n1", V100), pod("p", container(TOTAL, 1), init=init), stderr=None)
        self.assertEqual([logs[f"p/{n}"] for n in ("first", "second", "main")], [["bounded"], ["0, 3232"], ["0, 1077"]])

    def test_etc_is_there(self):
        listing = "cd /etc && ls -A | grep -v '^ld.so.preload$' | sort | cksum; cksum < /etc/passwd; readlink /etc/alternatives/awk; readlink /etc/os-release"
        logs = self.run_local(node("n1", V100), node("n2", V100), pod("with", container(listing, 2)), pod("without", container(listing)))
        self.assertEqual(logs["with/main"], logs["without/main"])
        self.assertEqual(len(logs["with/main"]), len([x for x in ("/etc/alternatives/awk", "/etc/os-release") if os.path.islink(x)]) + 2)

    def test_what_the_machine_replaces_meanwhile(self):
        """Files of /etc are replaced, added and removed, as by an installation of packages. A
        container that starts meanwhile starts, and keeps its loader cache."""
        replace = """
import os
parent, n = os.getppid(), 0
os.mkdir("/etc/replaced")
def put(path, text):
    with open(path + "~", "wb") as f:
        f.write(text)
    os.rename(path + "~", path)
with open("/etc/ld.so.cache", "rb") as f:
    cache = f.read()
while os.getppid() == parent:
    n += 1
    put("/etc/ld.so.cache", cache)
    put("/etc/replaced/n", b"%d\\n" % n)
    os.symlink("nowhere", "/etc/a-link")
    os.unlink("/etc/a-link")
"""
        etc = 'mount -t tmpfs tmpfs /mnt && cp -a /etc/. /mnt 2>/dev/null; mount --bind /mnt /etc && ' \
              f"""{{ {sys.executable} -c '{replace}' & until [ -e /etc/replaced/n ]; do sleep 0.1; done; "$@"; r=$?; kill $!; exit $r; }}"""
        wait = "read first </etc/replaced/n; n=$first; until [ $n -gt $((first + 1)) ]; do sleep 0.1; read n </etc/replaced/n; done\n" \
               "/sbin/ldconfig -p | grep -c /run/aliquot/sim/"
        names = [f"p{i}" for i in range(12)]
        logs = self.run_local(node("n0", "2x" + V100), node("n1", "2x" + V100, "share"),
                              *(pod(n, container(wait, 1), node_name=f"n{i % 2}") for i, n in enumerate(names)),
                              before=["unshare", "-Urm", "sh", "-c", etc, "sh"])
        self.assertEqual([logs[f"{n}/main"] for n in names], [["2"]] * len(names))

    @unittest.skipIf(os.geteuid() != 0, "only root can change its user")
    def test_as_a_user(self):
        before = ["unshare", "-m", "--propagation", "private", "sh", "-c", self.AS_USER, "sh"]
        os.chmod(self.dir, 0o755)
        probe = subprocess.run([*before, "unshare", "-Urm", ALIQUOT, "--version"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no user namespace for a user with read access to the programs: " + probe.stderr.decode().strip())
        logs = self.run_local(node("n1", V100), pod("p", container(f"aliquot-sample --gpu-mem-mib 200 -- {TOTAL}\naliquot-sample --gpu-mem-mib 3000 2>&1; "
                                                                   "echo > /run/aliquot/slice/0/limits || echo sealed", 2)), before=before)
        self.assertRegex("\n".join(logs["p/main"]), r"\n3\d\d, 2154\n.*\(2\)\n.*\nsealed$")

    def test_in_a_user_namespace(self):
        logs = self.run_local(node("n1", V100), pod("p", container(TOTAL, 2)), before=["unshare", "-Urm"])
        self.assertEqual(logs["p/main"], ["0, 2154"])

    def test_the_owner_of_pages_leases_none(self):
        """In a user namespace there may be only one user. The arbiter is stopped: it has not seen
        the second page."""
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "leases.py"), "rb") as f:
            # the file itself may be covered inside the container
            script = base64.b64encode(f.read()).decode()
        lease = container(f"exec {sys.executable} -c \"import base64; exec(base64.b64decode(b'{script}'))\" /run/aliquot/slice/0", 2)
        p = self.start(node("n1", V100), pod("p", lease, init=[container("sleep 1000; true", 2, name="first")]), before=["unshare", "-Urm"])
        until(lambda: descendants(p.pid) & running("aliquot-arbiter") and descendants(p.pid) & running("sleep"), "the first container")
        (arbiter,), (sleep,) = (descendants(p.pid) & running(name) for name in ("aliquot-arbiter", "sleep"))
        os.kill(arbiter, signal.SIGSTOP)
        os.kill(sleep, signal.SIGTERM)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, [line for line in err.replace(IMAGES, "").splitlines() if "it has a share of a GPU" not in line]), (0, []))
        self.assertEqual(self.split(out)["p/main"], [f"{name} {kind} refused" for name in ("limits", "counters") for kind in (0, 1)])

    def test_where_something_is_preloaded(self):
        """The machine has an /etc/ld.so.preload: in a container with a slice the gate's replaces
        it."""
        script = 'mount -t tmpfs tmpfs /mnt && cp -a /etc/. /mnt 2>/dev/null; touch /mnt/ld.so.preload && mount --bind /mnt /etc && exec "$@"'
        show = "; wc -c < /etc/ld.so.preload"
        logs = self.run_local(node("n1", V100), pod("p", container(TOTAL + show, 2)), pod("q", container("true" + show)),
                              before=["unshare", "-Urm", "sh", "-c", script, "sh"])
        self.assertEqual((logs["p/main"], logs["q/main"]), (["0, 2154", "27"], ["0"]))

    def test_node_without_simulated_cards(self):
        logs = self.run_local(node("n1", None), pod("p", container("ls /dev | grep -c nvidia", 2)),
                              stderr="aliquot local: the containers of node n1 run without cards: it has no aliquot.dev/simulated-cards\n")
        self.assertEqual(logs["p/main"][0], "0")

    def test_more_cards_than_a_driver_has(self):
        logs = self.run_local(node("n1", "33x" + V100), node("n2", V100), pod("p", container("echo ran", 2), node_name="n1"),
                              pod("q", container(TOTAL, 2), node_name="n2"),
                              stderr="aliquot local: the containers of node n1 run without cards: a simulated driver has at most 32 cards\n")
        self.assertEqual((logs["p/main"][0], logs["q/main"]), ("ran", ["0, 2154"]))


class Many(Local):
    def test_twenty_containers(self):
        names = [f"p{i}" for i in range(20)]
        logs = self.run_local(node("n1", "2x" + V100), *(
            pod(n, container(f"aliquot-sample --gpu-mem-mib 700 -- {TOTAL}; aliquot-sample --gpu-mem-mib 1050 2>&1; true", 1)) for n in names))
        for n in names:
            self.assertRegex(logs[n + "/main"][1], r"^7\d\d, 1077$")
            self.assertIn("CUDA_ERROR_OUT_OF_MEMORY (2)", logs[n + "/main"][2])

    def test_many_nodes(self):
        nodes = [node(f"n{i}", f"X:{16000 + i}MiB") for i in range(8)]
        logs = self.run_local(*nodes, *(pod(f"p{i}", container(TOTAL, 15), node_name=f"n{i}") for i in range(8)))
        self.assertEqual([logs[f"p{i}/main"] for i in range(8)], [[f"0, {16000 + i}"] for i in range(8)])

    def test_driver_killed_in_the_middle(self):
        watch = "aliquot-sample --gpu-mem-mib 100 -- sh -c 'while nvidia-smi -L >/dev/null 2>&1; do sleep 0.05; done; echo lost'"
        p = self.start(node("n1", V100), node("n2", V100), pod("p", container(watch, 2), node_name="n1"),
                       pod("q", container(TOTAL, 2), node_name="n2"))
        until(lambda: descendants(p.pid) & running("sleep"), "the container, which has its memory")
        first = min(descendants(p.pid) & running("aliquot-sim"), key=lambda pid: (begun(pid), pid))
        os.kill(first, signal.SIGKILL)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, err.replace(IMAGES, "")), (0, "aliquot local: the simulated driver of node n1 ended before its containers\n"))
        self.assertEqual(self.split(out)["p/main"][-1], "lost")
        self.assertEqual(self.split(out)["q/main"], ["0, 2154"])

    def test_nothing_is_left(self):
        before = self.of_this_machine()
        self.run_local(node("n1", V100), pod("p", container("sleep 1000", 2)), timeout=1)
        hold = container("aliquot-sample --gpu-mem-mib 100 -- sleep 1000", 2)
        p = self.start(node("n1", V100), node("n2", V100), pod("p", hold, node_name="n1"), pod("q", hold, node_name="n2"))
        until(lambda: len(descendants(p.pid) & running("sleep")) == 2, "the containers")
        all_of_it = descendants(p.pid)
        self.assertEqual(len(all_of_it & running("aliquot-sim")), 2)
        p.kill()
        p.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in all_of_it), "their end")
        self.assertEqual(self.of_this_machine(), before)

    @staticmethod
    def of_this_machine():
        """The folders that a run makes below a /run of its own, and what is mounted there. This
        machine may have some of the same names: an agent that runs on it uses them."""
        folders = {name: os.stat(path).st_ino for name in ("library", "node0", "sim") if os.path.exists(path := "/run/aliquot/" + name)}
        with open("/proc/self/mounts") as f:
            mounts = [line for line in f if line.split()[1] == "/run" or line.split()[1].startswith("/run/aliquot")]
        return folders, mounts

    def test_driver_that_does_not_answer(self):
        """A process that waits for the driver can often not be killed; the run ends all the same.
        """
        p = self.start(node("n1", V100), pod("p", container("aliquot-sample --gpu-mem-mib 10 -- sh -c 'while :; do nvidia-smi -L; done'", 2)), timeout=12)
        until(lambda: descendants(p.pid) & running("aliquot-sample"), "the container")
        (driver,) = descendants(p.pid) & running("aliquot-sim")
        os.kill(driver, signal.SIGSTOP)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, err, self.split(out)["p/main"][-1]), (0, IMAGES, "(still running after 12 s; stopped)"))
        until(lambda: not os.path.exists(f"/proc/{driver}"), "the driver's end")


class Without(Local):
    """Without FUSE everything runs as before, and one sentence names what is missing."""

    def without(self, script, words):
        manifests = node("n1", V100), node("n2", V100), pod("p", container("echo ran; ls /dev | grep -c nvidia", 2), node_name="n1"), \
            pod("q", container("echo ran", 2), node_name="n2")
        logs = self.run_local(*manifests, before=["unshare", "-Urm", "sh", "-c", script + ' && exec "$@"', "sh"], stderr=None)
        self.assertEqual(logs["p/main"][:2], ["ran", "0"])
        self.assertEqual(logs["q/main"], ["ran"])
        self.assertRegex(self.stderr, rf"^aliquot local: no simulated cards: {words}; containers run without any, and nothing holds their memory\n$")

    def test_without_the_device(self):
        self.without("mount --bind /dev/null /dev/fuse", "the simulated driver did not start: [^\n]*")

    def test_without_opening_it(self):
        self.without("mount -t tmpfs tmpfs /mnt && touch /mnt/fuse && mount --bind -o ro,nodev /mnt/fuse /dev/fuse && mount -o remount,bind,ro,nodev /dev/fuse",
                     "no FUSE: /dev/fuse: [^\n]*")

    def test_without_the_parts(self):
        """An installation without the simulator."""
        for missing in "aliquot-sim", "sim/libcuda.so.1", "libaliquot.so":
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o755)
                build = os.path.dirname(ALIQUOT)
                os.mkdir(os.path.join(folder, "sim"))
                for name in ("aliquot", "aliquot-sim", "libaliquot.so", "sim/libcuda.so.1", "sim/libnvidia-ml.so.1",
                             "sim/nvidia-smi"):
                    if name != missing:
                        with open(os.path.join(build, name), "rb") as f, open(os.path.join(folder, name), "wb") as t:
                            t.write(f.read())
                        os.chmod(os.path.join(folder, name), 0o755)
                command = self.command(node("n1", V100), pod("p", container("echo ran", 2)))
                p = subprocess.run([os.path.join(folder, "aliquot"), *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   timeout=PATIENCE)
                self.assertEqual((p.returncode, self.split(p.stdout)["p/main"]), (0, ["ran"]))
                self.assertRegex(p.stderr.replace(IMAGES, ""), rf"^aliquot local: no simulated cards: {missing} is neither beside [^\n]*\n$")


def lacking():
    """Why cards cannot be had here; None when they can."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(node("n1", V100) + "\n---\n" + pod("p", container("echo ran", 1)))
        f.flush()
        p = subprocess.run([ALIQUOT, "local", "--once", "--logs", "-f", f.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           timeout=PATIENCE)
    if "no simulated cards" in p.stderr:
        return p.stderr.strip()
    return "this machine cannot isolate commands" if "(not run:" in p.stdout else None


if __name__ == "__main__":
    ALIQUOT = os.path.abspath(sys.argv.pop(1))
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    if lacking():
        print("skipped:", lacking())
        sys.exit(77)
    unittest.main()
