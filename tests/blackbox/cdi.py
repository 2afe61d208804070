#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CDI specifications as a container runtime reads them, for drivers as distributions install them.

    cdi.py SHOW_CDI
"""
import json
import os
import platform
import re
import struct
import subprocess
import sys
import tempfile
import unittest

SHOW_CDI = sys.argv[1]
MACHINE = {"x86_64": 62, "aarch64": 183}[platform.machine()]
TRIPLET = platform.machine() + "-linux-gnu"
DEBIAN = "/usr/lib/" + TRIPLET


def elf(soname, machine=MACHINE, kind=3):
    """The smallest shared library with a SONAME."""
    strings = b"\0" + soname.encode() + b"\0"
    dynamic, table = 64 + 2 * 56, 64 + 2 * 56 + 64
    base = 0x10000
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, table + len(strings), table + len(strings), 0x1000)
    where = struct.pack("<IIQQQQQQ", 2, 6, dynamic, base + dynamic, 0, 64, 64, 8)
    entries = struct.pack("<8Q", 5, base + table, 10, len(strings), 14, 1, 0, 0)
    return header + load + where + entries + strings


def check_cdi(spec):
    """The rules of CDI 0.3.0 (SPEC.md and the validation of its reference implementation) that
    apply here."""
    def keys(value, required, optional=()):
        assert isinstance(value, dict), value
        assert required <= set(value) <= required | set(optional), value.keys()

    def path(value):
        assert isinstance(value, str) and value.startswith("/") and ".." not in value.split("/"), value
        assert os.path.normpath(value) == value, value

    def edits(value):
        # no hooks: NVIDIA's would set limits of memory by variables of the container
        keys(value, set(), {"env", "deviceNodes", "mounts"})
        assert any(value.values()), "edits must edit something"
        for variable in value.get("env", []):
            assert re.fullmatch(r"[A-Z_]+=[^\0]*", variable), variable
        for node in value.get("deviceNodes", []):
            # hostPath is new in 0.5.0
            keys(node, {"path"}, {"type", "major", "minor", "fileMode", "permissions", "uid", "gid"})
            path(node["path"])
            assert re.fullmatch(r"[rwm]{1,3}", node.get("permissions", "rwm")), node
        for mount in value.get("mounts", []):
            keys(mount, {"hostPath", "containerPath"}, {"options"})  # type is new in 0.4.0
            path(mount["hostPath"])
            path(mount["containerPath"])
        targets = [m["containerPath"] for m in value.get("mounts", [])]
        assert len(set(targets)) == len(targets), "one mount per place"

    keys(spec, {"cdiVersion", "kind", "devices"}, {"containerEdits"})
    assert spec["cdiVersion"] == "0.3.0"
    # Vendor: letters, digits, '_', '-', '.'; class: the same without '.', which 0.6.0 allowed. Both
    # begin with a letter and end with a letter or digit.
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]/[A-Za-z][A-Za-z0-9_-]*[A-Za-z0-9]", spec["kind"])
    assert spec["devices"], "a specification without devices is refused"
    for device in spec["devices"]:
        keys(device, {"name", "containerEdits"})
        # A leading digit is allowed from 0.5.0 on.
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_.:-]*[A-Za-z0-9]", device["name"]), device["name"]
        edits(device["containerEdits"])
    names = [d["name"] for d in spec["devices"]]
    assert len(set(names)) == len(names), "names are unique"
    assert "all" not in names
    if "containerEdits" in spec:
        edits(spec["containerEdits"])


class Cdi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def put(self, path, content=b""):
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)

    def link(self, path, target):
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)

    def library(self, folder, name, soname, version):
        """A library as the driver's installer leaves it: NAME.so.VERSION and ldconfig's link."""
        self.put("%s/%s.so.%s" % (folder, name, version), elf(soname))
        if soname != "%s.so.%s" % (name, version):
            self.link("%s/%s" % (folder, soname), "%s.so.%s" % (name, version))

    def spec(self, cards="2xTesla V100:16GiB", root=None):
        out = subprocess.run([SHOW_CDI, cards, root or self.root], capture_output=True, text=True)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        spec = json.loads(out.stdout)
        check_cdi(spec)
        return spec

    def mounts(self, spec):
        """{path in the container: path on the host}; checks how they are mounted."""
        mounts = spec["containerEdits"].get("mounts", [])
        for mount in mounts:
            self.assertEqual(mount["options"], ["ro", "nosuid", "nodev", "bind"])
        return {m["containerPath"]: m["hostPath"] for m in mounts}

    def both(self, libraries):
        return {"%s/%s" % (folder, soname): path for soname, path in libraries.items()
                for folder in (DEBIAN, "/usr/lib64")}

    def test_devices(self):
        spec = self.spec("3xTesla V100:16GiB")
        self.assertEqual(spec["kind"], "aliquot.dev/gpu")
        self.assertEqual([d["containerEdits"] for d in spec["devices"]],
                         [{"deviceNodes": [{"path": "/dev/nvidia%d" % i, "permissions": "rw"}]} for i in range(3)])
        self.assertEqual([n["path"] for n in spec["containerEdits"]["deviceNodes"]], ["/dev/nvidiactl", "/dev/nvidia-uvm"])
        self.assertEqual(self.mounts(spec), {})

    def test_a_slice(self):
        """One device has all: nodes, the driver's files, pages and variables."""
        self.library(DEBIAN, "libcuda", "libcuda.so.1", "550.54.15")
        self.put("/dev/nvidia-uvm-tools")
        spec = self.spec("--slice")
        self.assertNotIn("containerEdits", spec)
        (device,) = spec["devices"]
        self.assertEqual((spec["kind"], device["name"]), ("aliquot.dev/slice", "train"))
        edits = device["containerEdits"]
        self.assertEqual(edits["env"], ["ALIYUN_COM_GPU_MEM_CONTAINER=2", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b"])
        self.assertEqual([n["path"] for n in edits["deviceNodes"]],
                         ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia2", "/dev/nvidia5"])
        self.assertEqual([(m["hostPath"], m["containerPath"], m["options"][0]) for m in edits["mounts"]],
                         [(DEBIAN + "/libcuda.so.550.54.15", DEBIAN + "/libcuda.so.1", "ro"),
                          (DEBIAN + "/libcuda.so.550.54.15", "/usr/lib64/libcuda.so.1", "ro"),
                          ("/pages", "/.aliquot/slice", "ro"), ("/pages/counters", "/.aliquot/slice/0/counters", "rw")])

    def test_no_cards_no_file(self):
        out = subprocess.run([SHOW_CDI, "", self.root], capture_output=True, text=True, check=True)
        self.assertEqual(out.stdout, "")

    def test_simulated_cards_are_an_environment(self):
        spec = self.spec(root="--simulate")
        self.assertNotIn("containerEdits", spec)
        for device in spec["devices"]:
            self.assertEqual(device["containerEdits"], {"env": ["ALIQUOT_SIMULATED_CARD=" + device["name"]]})

    def test_as_many_cards_as_there_may_be(self):
        self.assertEqual(len(self.spec("256xA:1GiB")["devices"]), 256)

    def test_ubuntu(self):
        for name, soname in (("libcuda", "libcuda.so.1"), ("libnvidia-ml", "libnvidia-ml.so.1"),
                             ("libnvidia-ptxjitcompiler", "libnvidia-ptxjitcompiler.so.1"),
                             ("libnvidia-nvvm", "libnvidia-nvvm.so.4"), ("libnvidia-opencl", "libnvidia-opencl.so.1"),
                             ("libcudadebugger", "libcudadebugger.so.1"), ("libnvcuvid", "libnvcuvid.so.1"),
                             ("libnvidia-encode", "libnvidia-encode.so.1"),
                             ("libnvidia-gpucomp", "libnvidia-gpucomp.so.550.54.15"),
                             # not needed in a container that only computes
                             ("libnvidia-glcore", "libnvidia-glcore.so.550.54.15"), ("libnvidia-fbc", "libnvidia-fbc.so.1"),
                             ("libnvidia-container", "libnvidia-container.so.1"), ("libc", "libc.so.6")):
            self.library(DEBIAN, name, soname, "550.54.15")
        self.link(DEBIAN + "/libcuda.so", "libcuda.so.1")
        self.put("/usr/bin/nvidia-smi", b"#!")
        self.put("/etc/OpenCL/vendors/nvidia.icd", b"libnvidia-opencl.so.1")
        self.put("/dev/nvidia-uvm-tools")
        spec = self.spec()
        want = self.both({s: "%s/%s.so.550.54.15" % (DEBIAN, s.split(".so")[0]) for s in (
            "libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4",
            "libnvidia-opencl.so.1", "libcudadebugger.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1",
            "libnvidia-gpucomp.so.550.54.15")})
        want["/usr/bin/nvidia-smi"] = "/usr/bin/nvidia-smi"
        want["/etc/OpenCL/vendors/nvidia.icd"] = "/etc/OpenCL/vendors/nvidia.icd"
        self.assertEqual(self.mounts(spec), want)
        self.assertIn("/dev/nvidia-uvm-tools", [n["path"] for n in spec["containerEdits"]["deviceNodes"]])

    def test_red_hat(self):
        self.library("/usr/lib64", "libcuda", "libcuda.so.1", "535.104.05")
        self.assertEqual(self.mounts(self.spec()), self.both({"libcuda.so.1": "/usr/lib64/libcuda.so.535.104.05"}))

    def test_debians_alternatives(self):
        """Absolute links refer to the host's root, not to the agent's."""
        folder = DEBIAN + "/nvidia/current"
        self.library(folder, "libcuda", "libcuda.so.1", "535.216.01")
        self.link(DEBIAN + "/libcuda.so.1", "/etc/alternatives/nvidia--libcuda.so.1-" + TRIPLET)
        self.link("/etc/alternatives/nvidia--libcuda.so.1-" + TRIPLET, folder + "/libcuda.so.1")
        self.put("/usr/lib/nvidia/current/nvidia-smi", b"#!")
        self.link("/usr/bin/nvidia-smi", "/etc/alternatives/nvidia-smi")
        self.link("/etc/alternatives/nvidia-smi", "../../usr/lib/nvidia/../nvidia/./current/nvidia-smi")
        want = self.both({"libcuda.so.1": folder + "/libcuda.so.535.216.01"})
        want["/usr/bin/nvidia-smi"] = "/usr/lib/nvidia/current/nvidia-smi"
        self.assertEqual(self.mounts(self.spec()), want)

    def test_a_driver_in_a_container(self):
        root = "/run/nvidia/driver"
        self.library(root + "/usr/lib64", "libcuda", "libcuda.so.1", "535.104.05")
        self.put(root + "/usr/bin/nvidia-smi", b"#!")
        want = self.both({"libcuda.so.1": root + "/usr/lib64/libcuda.so.535.104.05"})
        want["/usr/bin/nvidia-smi"] = root + "/usr/bin/nvidia-smi"
        self.assertEqual(self.mounts(self.spec()), want)

    def test_what_an_older_driver_left_behind(self):
        self.library(DEBIAN, "libcuda", "libcuda.so.1", "550.54.15")
        self.put(DEBIAN + "/libcuda.so.535.104.05", elf("libcuda.so.1"))
        self.put(DEBIAN + "/libnvidia-gpucomp.so.535.104.05", elf("libnvidia-gpucomp.so.535.104.05"))
        self.put(DEBIAN + "/libnvidia-gpucomp.so.550.54.15", elf("libnvidia-gpucomp.so.550.54.15"))
        self.assertEqual(self.mounts(self.spec()), self.both({
            "libcuda.so.1": DEBIAN + "/libcuda.so.550.54.15",
            "libnvidia-gpucomp.so.550.54.15": DEBIAN + "/libnvidia-gpucomp.so.550.54.15"}))

    def test_the_first_folder_wins(self):
        self.library("/usr/lib64", "libcuda", "libcuda.so.1", "550.54.15")
        self.library(DEBIAN, "libcuda", "libcuda.so.1", "550.54.15")
        self.assertEqual(self.mounts(self.spec()), self.both({"libcuda.so.1": DEBIAN + "/libcuda.so.550.54.15"}))

    def test_a_folder_that_is_a_link_is_read_once(self):
        self.library("/usr/lib64", "libcuda", "libcuda.so.1", "550.54.15")
        self.link("/usr/lib", "lib64")
        self.assertEqual(self.mounts(self.spec()), self.both({"libcuda.so.1": "/usr/lib64/libcuda.so.550.54.15"}))

    def test_other_machines_libraries(self):
        self.put("/usr/lib/libcuda.so.1", elf("libcuda.so.1", machine=3))
        self.put("/usr/lib/libnvidia-ml.so.1", elf("libnvidia-ml.so.1", kind=1))
        self.assertEqual(self.mounts(self.spec()), {})

    def test_files_that_are_no_libraries(self):
        self.put(DEBIAN + "/libcuda.so.1", b"GROUP ( libcuda.so.2 )")
        self.put(DEBIAN + "/libnvidia-ml.so.1", elf("../../../etc/passwd"))
        self.put(DEBIAN + "/libnvidia-cfg.so.1", elf("libc.so.6"))
        self.put(DEBIAN + "/libnvidia-a.so.1", b"\x7fELF")
        os.mkdir(self.root + DEBIAN + "/libnvidia-b.so.1")
        os.mkfifo(self.root + DEBIAN + "/libnvidia-c.so.1")
        self.link(DEBIAN + "/libnvidia-d.so.1", "libnvidia-d.so.1")
        self.link(DEBIAN + "/libnvidia-e.so.1", "gone")
        self.link(DEBIAN + "/libnvidia-f.so.1", "../" * 50)
        os.mkdir(self.root + "/usr/bin")
        os.mkdir(self.root + "/usr/bin/nvidia-smi")
        self.assertEqual(self.mounts(self.spec()), {})

    def test_a_folder_with_too_much(self):
        for i in range(300):
            self.put("%s/libnvidia-x%d.so.1" % (DEBIAN, i), elf("libnvidia-x%d.so.1" % i))
        self.assertEqual(len(self.mounts(self.spec())), 2 * 128)

    def test_the_same_driver_gives_the_same_text(self):
        for i in range(40):
            self.library(DEBIAN, "libnvidia-x%d" % i, "libnvidia-x%d.so.1" % i, "550.54.15")
        targets = list(self.mounts(self.spec()))
        self.assertEqual(targets[::2], sorted(targets[::2]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
