#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What root of a container can do to its gate.

Usage: node_tenant.py ALIQUOT STORE_SERVER CLOCK_SHIM SIM GATE SAMPLE RM_RAW AUDIT_HIDE

The container is made from the agent's answer to Allocate, on a simulated driver
(tests/fake/container.py). Ordinary programs try each attack in it, and then a program asks for more
memory than its slice."""

import json
import os
import platform
import subprocess
import sys
import tempfile

from sim_lab import skip
import node_simulated  # reads its own arguments, and makes a mount namespace
from node_simulated import SAMPLE
from node_lab import container, pod
from grpc_process import run_tests  # noqa: E402

sys.argv[1:1] = [node_simulated.SIM]
import sim  # noqa: E402  the static program, which is told what to do
HIDE = os.path.abspath(sys.argv[3])
del sys.argv[1:4]
sim.RAW = os.path.abspath(sim.RAW)
MAKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake", "container.py")
ROOTS = ("overlay", "redirect", "bare", "plain", "sealed")
LIMIT, MORE = 2154, 8000
FCNTL = "72" if platform.machine() == "x86_64" else "25"

# Each attack must leave the gate where it is. GATE: the library. TOP: the directory below / that it
# is in. PAGES: the directory of the first slice.
KEPT = (
    "mv TOP /other", "mv TOP/* /tmp", "mv $(dirname GATE) /other", "mv $(dirname PAGES) /other", "mv $(dirname $(dirname PAGES)) /other", "mv PAGES /other",
    "mv GATE /other", "rm -rf TOP", "rmdir TOP", "rm -f GATE", "unlink GATE", "ln GATE /other", "ln -s /tmp TOP/link", "ln -sfn /tmp TOP",
    "echo > GATE", "truncate -s 0 GATE", "cp /bin/true GATE", "chmod 0 GATE",
    "echo > PAGES/limits", "rm -f PAGES/limits", "mv PAGES/limits /tmp", "chmod 0 PAGES/limits", "rm -f PAGES/counters", "mv PAGES/counters /tmp",
    "touch PAGES/new", "mkdir TOP/slice/1",
    "cp -a /etc /other; rm -rf /etc", "rmdir /etc", "mv /etc/ld.so.preload /etc/other", "rm -f /etc/ld.so.preload",
    "unlink /etc/ld.so.preload", "ln /etc/ld.so.preload /etc/other", "ln -sf /dev/null /etc/ld.so.preload", "cp /dev/null /etc/ld.so.preload",
    "echo > /etc/ld.so.preload", "truncate -s 0 /etc/ld.so.preload", "chmod 0 /etc/ld.so.preload", "echo > /tmp/x; mv -f /tmp/x /etc/ld.so.preload",
    "umount /etc/ld.so.preload", "umount GATE", "umount -l TOP", "mount --move TOP /tmp", "mount --bind /dev/null /etc/ld.so.preload",
    "mount --bind /tmp TOP", "mount -t tmpfs none TOP", "mount -o remount,rw,bind TOP", "mount -o remount,rw,bind /etc/ld.so.preload",
    "pivot_root /tmp /tmp", "env -i PATH=$PATH true", "export LD_PRELOAD= ALIQUOT_SLICES=/tmp", "cd /tmp; mkdir 0; export ALIQUOT_SLICES=/tmp",
)

# In a writable directory above PAGES: a slice with a larger limit replaces the slice.
FORGE = """cp -a PAGES /tmp/forged && mv PAGES $(dirname PAGES)/gone && python3 -c '
import struct
old, new = (struct.pack("<Q", mib << 20) for mib in (LIMIT, 16160))
with open("/tmp/forged/limits", "rb") as f:
    text = f.read()
with open("/tmp/forged/limits", "wb") as f:
    f.write(text.replace(old, new))' && mv /tmp/forged PAGES""".replace("LIMIT", str(LIMIT))

# /etc is in the image's lower layer and redirect_dir is off, so the kernel refuses to rename it
# (EXDEV). mv then copies it and cannot remove what is mounted. In the other roots it can be
# renamed, with the preload file.
ETC = ("mv /etc /other", "python3 -c 'import os; os.rename(\"/etc\", \"/other\")'")
ROOTS_WITH_MOVABLE_ETC = ("redirect", "bare", "plain")

# The runtime's default seccomp profile refuses these.
NAMESPACE = ("unshare -Urm sh -c 'mount --bind /dev/null /etc/ld.so.preload && ASK'", "mkdir /other; unshare -Urm sh -c 'mount --bind /other TOP && ASK'")

# None of these is refused. CHROOT: a root with the program's libraries and no preload file; the
# working directory stays outside.
LOADER = "$(ls /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | head -n 1)"
CHROOT = """mkdir -p /tmp/root; for f in SAMPLE $(ldd SAMPLE $(ls /usr/lib64/libcuda.so.1) | grep -o '/[^ :]*'); do cp -L --parents $f /tmp/root; done
cp -L --parents /usr/lib64/libcuda.so.1 LOADER /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*') /tmp/root
exec python3 -c 'import os; os.chdir("/"); os.chroot("/tmp/root"); os.environ.update(ALIQUOT_SIM_DIR="dev", LD_LIBRARY_PATH="/usr/lib64"); PROGRAM'"""
# The dynamic linker asks by access(2) for the preload file. The tracer makes the call an invalid
# one.
TRACE = """cat >/tmp/trace.py <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, None, None)
    os.execv(sys.argv[1], sys.argv[1:])
os.waitpid(pid, 0)
registers, entry, hidden = (ctypes.c_ulonglong * 27)(), True, False
while not hidden:
    libc.ptrace(24, pid, None, None)
    os.waitpid(pid, 0)
    libc.ptrace(12, pid, None, registers)
    if entry and registers[15] == 21:
        registers[15] = 2 ** 64 - 1
        libc.ptrace(13, pid, None, registers)
        hidden = True
    entry = not entry
libc.ptrace(17, pid, None, None)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
exec python3 /tmp/trace.py SAMPLE --gpu-mem-mib MORE -- sh -c 'echo has it; read x'"""
PASSING = {
    "a dynamic linker with another path compiled in": f"sed 's|/etc/ld.so.preload|/etc/ld.so.preloaX|g' {LOADER} >/tmp/ld.so; chmod +x /tmp/ld.so; "
                                                      "exec /tmp/ld.so HOLD",
    "a root without a preload file": CHROOT.replace("PROGRAM", 'os.execv("SAMPLE", ["SAMPLE", "--gpu-mem-mib", "MORE", "--", "/bin/sh", "-c", '
                                                    '"echo has it; read x"])'),
}
PASSING["another C library of the program's own"] = """cat >/tmp/own.py <<'END'
import ctypes, sys
libc = ctypes.CDLL(None)
libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
cuda = libc.dlmopen(ctypes.c_long(-1), b"libcuda.so.1", 2)
def call(name, *arguments):
    r = ctypes.CFUNCTYPE(ctypes.c_int)(libc.dlsym(ctypes.c_void_p(cuda), name.encode()))(*arguments)
    assert r == 0, (name, r)
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(MORE << 20))
print("has it", flush=True)
sys.stdin.readline()
END
exec python3 /tmp/own.py"""
# A filter of calls that a program sets for itself, before it executes another one.
FILTER = """cat >/tmp/filter.py <<'END'
import ctypes, os, struct, sys
program = INSTRUCTIONS
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *p) for p in program))
head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(text)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
END
"""
NO_PRELOAD = "[(32, 0, 0, 0), (21, 0, 1, 21), (6, 0, 0, 0x50002), (6, 0, 0, 0x7fff0000)]"  # access(2) answers ENOENT
# F_OFD_SETLK and F_OFD_SETLKW of fcntl(2) succeed and do nothing.
NO_LOCKS = f"[(32, 0, 0, 0), (21, 0, 4, {FCNTL}), (32, 0, 0, 24), (21, 1, 0, 37), (21, 0, 1, 38), (6, 0, 0, 0x50000), (6, 0, 0, 0x7fff0000)]"
# Four programs with most of a slice each. They end with the first process of the container.
CROWD = """for i in 1 2 3 4; do FILTERED SAMPLE --gpu-mem-mib 1800 -- sh -c 'echo >/tmp/has$1; sleep 1000000' sh $i </dev/null &
for n in $(seq 400); do [ -e /tmp/has$i ] && break; sleep 0.05; done; AFTER
done; ls /tmp/has4 && echo has it; read x"""
PASSING_ROWS = {
    "locks that are not set": FILTER.replace("INSTRUCTIONS", NO_LOCKS) + CROWD.replace("FILTERED", "python3 /tmp/filter.py").replace("AFTER", ""),
    "counters from before": "cp PAGES/counters /tmp/empty; " + CROWD.replace("FILTERED", "").replace(
        "AFTER", "dd if=/tmp/empty of=PAGES/counters conv=notrunc 2>/dev/null"),
}
PASSING["a dynamic linker from memfd"] = f"""exec python3 -c '
import os
with open("'{LOADER}'", "rb") as f:
    text = f.read().replace(b"/etc/ld.so.preload", b"/etc/ld.so.preloaX")
fd = os.memfd_create("x", 0)
os.write(fd, text)
os.execv("/proc/self/fd/%d" % fd, ["x", "SAMPLE", "--gpu-mem-mib", "MORE", "--", "/bin/sh", "-c", "echo has it; read x"])'"""
PASSING["an auditor of the dynamic linker"] = "LD_AUDIT=AUDITOR exec HOLD"
PASSING["another dynamic linker named in the program"] = f"""sed 's|/etc/ld.so.preload|/etc/ld.so.preloaX|g' {LOADER} >/tmp/ld.so
python3 -c '
import os
with open("SAMPLE", "rb") as f:
    text = f.read()
old = b"'{LOADER}'"
assert text.count(old) == 1
with open("/tmp/program", "wb") as f:
    f.write(text.replace(old, b"/tmp/ld.so".ljust(len(old), bytes(1))))'
chmod +x /tmp/ld.so /tmp/program; exec /tmp/program --gpu-mem-mib MORE -- sh -c 'echo has it; read x'"""
# The library is loaded, and its ioctl() becomes the system call (mov eax, 16; syscall; ret).
OVERWRITE = """cat >/tmp/write.py <<'END'
import ctypes
with open("/proc/self/mem", "r+b", buffering=0) as f:
    f.seek(ctypes.cast(ctypes.CDLL("GATE").ioctl, ctypes.c_void_p).value)
    f.write(bytes.fromhex("b8100000000f05c3"))
END
cat /tmp/own.py >>/tmp/write.py
exec python3 /tmp/write.py"""
if platform.machine() == "x86_64":
    PASSING["a function of the library that is overwritten"] = PASSING["another C library of the program's own"].replace(
        "exec python3 /tmp/own.py", OVERWRITE).replace('libc.dlmopen(ctypes.c_long(-1), b"libcuda.so.1", 2)', 'libc.dlopen(b"libcuda.so.1", 2)').replace(
        "libc.dlmopen.restype", "libc.dlopen.restype")
    PASSING["a filter that hides the preload file"] = FILTER.replace("INSTRUCTIONS", NO_PRELOAD) + "exec python3 /tmp/filter.py HOLD"
    PASSING["a tracer that hides the preload file"] = TRACE


def expand(script, c):
    gate = next(inside for inside in c.options["mounts"] if inside.endswith("/libaliquot.so"))
    pages = os.path.dirname(next(inside for inside in c.options["mounts"] if inside.endswith("/0/limits")))
    for name, text in (("AUDITOR", HIDE), ("ASK", "exec SAMPLE --gpu-mem-mib MORE -- echo has it"),
                       ("HOLD", "SAMPLE --gpu-mem-mib MORE -- sh -c 'echo has it; read x'"),
                       ("SAMPLE", SAMPLE), ("LOADER", LOADER), ("MORE", str(MORE)), ("GATE", gate), ("PAGES", pages), ("TOP", "/" + gate.split("/")[1])):
        script = script.replace(name, text)
    return script


def descendants(pid):
    found = [pid]
    for p in found:
        with open(f"/proc/{p}/task/{p}/children") as f:
            found += [int(child) for child in f.read().split()]
    return found


class Tenant(node_simulated.SimulatedNode):
    """A container on a simulated node, and programs in it."""

    maker = None  # the process that makes one container after another

    def tenant(self):
        """A container's mounts in the agent's answer."""
        lab = self.simulated()
        c = self.started(lab, self.place(lab, pod("a", container("main", 2)), 1))
        lab.wait(lambda: any(s.get("containerID") == "containerd://" + c.id for s in lab.get("a")["status"].get("containerStatuses", [])),
                 "its status names it")
        return lab, c

    def specification(self, c, command, root, seccomp=False, host=(), volumes=()):
        mounts = [[inside, host, read_only] for inside, (host, read_only) in c.options["mounts"].items()] + list(volumes)
        return json.dumps({"root": root, "mounts": mounts, "host": [os.path.dirname(SAMPLE), *host], "seccomp": seccomp,
                           "env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, "command": command})

    def is_held(self, c, script, root, **more):
        """Whether the program's request above the slice is refused, and what it printed."""
        if self.maker is None:
            self.maker = subprocess.Popen([sys.executable, MAKER, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(self.end_maker)
        self.maker.stdin.write(self.specification(c, ["/bin/sh", "-c", expand(script, c)], root, **more) + "\n")
        self.maker.stdin.flush()
        answer = json.loads(self.maker.stdout.readline())
        said = answer["said"]
        self.assertNotEqual(answer["status"], 70, said)
        return "CUDA_ERROR_OUT_OF_MEMORY" in said and "has it" not in said, said

    def end_maker(self):
        self.maker.stdin.close()
        self.maker.wait()
        self.maker.stdout.close()

    def is_told(self, lab, c, process):
        """Waits until the audit reports that the container holds more than its slice. Its processes
        are those below the given one."""
        for pid in descendants(process.pid):
            folder = os.path.join(lab.proc, str(pid))
            os.mkdir(folder)
            with open(os.path.join(folder, "cgroup"), "w") as f:
                f.write(f"0::/kubepods/burstable/pod{c.uid}/{c.id}\n")

        def notes():
            return [e.get("note") or e.get("message", "") for e in lab.api.get("/api/v1/namespaces/default/events")["items"]
                    if e["reason"] == "GPUMemoryExceeded"]
        lab.wait(notes, "an Event says so")
        self.assertRegex(notes()[0], f"^container main: holds [0-9]+ MiB of gpu1, and its slice is {LIMIT} MiB")

    def passes_and_is_told(self, script, root, **more):
        lab, c = self.tenant()
        p = subprocess.Popen([sys.executable, MAKER, self.specification(c, ["/bin/sh", "-c", expand(script, c)], root, **more)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def end():
            p.stdin.close()
            p.wait()
            p.stdout.close()
        self.addCleanup(end)
        said = []
        for line in p.stdout:
            said.append(line)
            if line == "has it\n":
                return self.is_told(lab, c, p)
        self.fail("".join(said))

    def keeps_the_gate(self, root):
        """No attack of KEPT removes the gate from a container with such a root."""
        _, c = self.tenant()
        for attack in KEPT:
            with self.subTest(attack=attack):
                held, said = self.is_held(c, f"{{ {attack}; }} >/tmp/said 2>&1; cat /tmp/said; ASK", root)
                self.assertTrue(held, said)


class Overlay(Tenant):
    def test_attacks_that_cannot_remove_the_gate(self):
        self.keeps_the_gate("overlay")


class Redirect(Tenant):
    def test_attacks_that_cannot_remove_the_gate(self):
        self.keeps_the_gate("redirect")


class Bare(Tenant):
    def test_attacks_that_cannot_remove_the_gate(self):
        self.keeps_the_gate("bare")


class Plain(Tenant):
    def test_attacks_that_cannot_remove_the_gate(self):
        self.keeps_the_gate("plain")


class Sealed(Tenant):
    def test_attacks_that_cannot_remove_the_gate(self):
        self.keeps_the_gate("sealed")


class Other(Tenant):
    def test_each_root_has_a_class(self):
        self.assertEqual(sorted(ROOTS), sorted(c.__name__.lower() for c in Tenant.__subclasses__() if c is not Other))

    def test_the_container_works(self):
        _, c = self.tenant()
        for root in ROOTS:
            held, said = self.is_held(c, "SAMPLE --gpu-mem-mib 1000 -- echo had it; nvidia-smi; ASK", root)
            self.assertTrue(held, said)
            self.assertIn("had it", said)
            self.assertRegex(said, f" 0MiB / +{LIMIT}MiB ")
            self.assertNotIn("ignored", said)

    def test_moving_etc(self):
        _, c = self.tenant()
        for attack in ETC:
            for root in "overlay", "sealed":
                held, said = self.is_held(c, f"{attack}; ASK", root)
                self.assertTrue(held, said)
        for root in ROOTS_WITH_MOVABLE_ETC:
            with self.subTest(root=root):
                self.passes_and_is_told("mv /etc /other; HOLD", root)

    def test_links_of_the_image(self):
        """The runtime mounts at their targets, and a link is no mount point."""
        for link in "/etc", "/.aliquot":
            with self.subTest(link=link):
                self.passes_and_is_told(f"rm {link}; HOLD", "links")

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def is_held_with_image_volume(self, c, path, attack):
        """containerd makes an empty directory for each VOLUME of the image, unless a mount of the
        pod has exactly its path (internal/cri/server, volumeMounts)."""
        volumes = [] if path in c.options["mounts"] else [[path, self.folder(), False]]
        held, said = self.is_held(c, f"{{ {attack}; }} >/tmp/said 2>&1; cat /tmp/said; ASK", "overlay", volumes=volumes)
        self.assertTrue(held, said)

    def test_volumes_of_the_image(self):
        """No VOLUME covers the gate. One at /etc is below the preload file, which cannot be moved
        or removed there."""
        _, c = self.tenant()
        for path in "/.aliquot", "/.aliquot/slice", "/.aliquot/slice/0":
            with self.subTest(path=path):
                self.is_held_with_image_volume(c, path, FORGE)
        for attack in "rm -f /etc/ld.so.preload", "mv /etc/ld.so.preload /etc/other", "mv /etc /other", "echo > /etc/ld.so.preload":
            with self.subTest(attack=attack):
                self.is_held_with_image_volume(c, "/etc", attack)

    def test_a_volume_that_a_link_of_the_image_leads_to(self):
        """The manifest's path does not cover the gate, but a link of the image leads from the
        gate's path there."""
        empty = os.path.join(self.folder(), "empty")
        with open(empty, "w"):
            pass
        self.passes_and_is_told("HOLD", "links", volumes=[["/var/etc/ld.so.preload", empty, True]])

    def test_namespaces(self):
        _, c = self.tenant()
        for attack in NAMESPACE:
            with self.subTest(attack=attack):
                held, said = self.is_held(c, f"{attack}; ASK", "overlay", seccomp=True)
                self.assertTrue(held, said)
                self.passes_and_is_told(attack.replace("ASK", 'exec SAMPLE --gpu-mem-mib MORE -- sh -c "echo has it; read x"'), "overlay")

    def test_processes_that_pass_the_gate_are_reported(self):
        for attack, script in PASSING.items():
            with self.subTest(attack=attack):
                self.passes_and_is_told(script, "overlay", seccomp=True, host=[os.path.dirname(HIDE)])

    def test_programs_that_pass_their_rows_are_reported(self):
        """The library counts, but what it counts in is not what the programs hold."""
        for attack, script in PASSING_ROWS.items():
            with self.subTest(attack=attack):
                self.passes_and_is_told(script, "overlay", seccomp=True)

    def test_other_namespaces(self):
        """Without the profile of seccomp."""
        for option in "--pid --fork", "--time --fork":
            with self.subTest(option=option):
                self.passes_and_is_told(f"unshare -Urm {option} sh -c 'mount --bind /dev/null /etc/ld.so.preload && exec SAMPLE --gpu-mem-mib MORE -- "
                                        "sh -c \"echo has it; read x\"'", "overlay")

    def test_a_static_program_with_raw_system_calls(self):
        lab, c = self.tenant()
        text = self.specification(c, [sim.RAW, "/dev"], "overlay", seccomp=True, host=[os.path.dirname(sim.RAW)])
        program = sim.Program(self, "/dev", prefix=[sys.executable, MAKER, text])
        program.start(1)
        self.assertEqual(program.memory(10, MORE << 20), sim.OK)
        self.is_told(lab, c, program.process)


def check():
    """Exits with 77 if no container can be made."""
    if os.geteuid() != 0:
        skip("a container of a runtime is made by root")
    for root in (*ROOTS, "links"):
        text = json.dumps({"root": root, "mounts": [], "host": [], "seccomp": True, "env": {}, "command": ["/bin/true"]})
        p = subprocess.run([sys.executable, MAKER, text], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if p.returncode == 70:
            skip(p.stderr.strip())


if __name__ == "__main__":
    check()
    run_tests(warnings="ignore")
