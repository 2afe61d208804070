#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archive of scripts/image.py: its digests, that two builds are equal, that no library is missing, and that the programs run in it.
`make test` runs the classes Owners and Tree, tests/release all."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.abspath(sys.argv.pop(1))
SCRIPT = os.path.join(ROOT, "scripts/image.py")

sys.path.insert(0, os.path.dirname(SCRIPT))
from dpkg_root import owners_in  # noqa: E402

for tool in ("dpkg-query", "strip", "readelf"):
    if not shutil.which(tool):
        print(f"skipped: there is no {tool} here")
        sys.exit(77)


def make(*arguments, **environment):
    return subprocess.run([SCRIPT, *arguments], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


# What dpkg-query -S prints on Debian 13.
DIVERTED = """diversion by libc6 from: /lib64/ld-linux-x86-64.so.2
diversion by libc6 to: /lib64/ld-linux-x86-64.so.2.usr-is-merged
libc6:amd64: /usr/lib64/ld-linux-x86-64.so.2
libc6:amd64, libc6-i386: /usr/lib/x86_64-linux-gnu/libc.so.6
local diversion from: /usr/bin/x
"""


class Owners(unittest.TestCase):
    def test_a_diversion_is_no_owner(self):
        self.assertEqual(owners_in(DIVERTED), ["libc6:amd64"])


class Tree(unittest.TestCase):
    """What is in the image, as a folder: no archive is made."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.rootfs = os.path.join(cls.folder.name, "rootfs")
        p = make("--rootfs", BUILD, cls.rootfs, SOURCE_DATE_EPOCH="1700000000")
        assert p.returncode == 0, p.stdout
        cls.names = {os.path.relpath(os.path.join(at, name), cls.rootfs) for at, _, names in os.walk(cls.rootfs) for name in names}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_library_is_there(self):
        folders = [os.path.dirname(name) for name in self.names if name.endswith("/libc.so.6")]
        self.assertEqual(len(folders), 1)
        there = set(os.listdir(os.path.join(self.rootfs, folders[0]))) | set(os.listdir(os.path.join(self.rootfs, "usr/lib64")))
        # The libraries of the NVML of the driver.
        self.assertLessEqual({"libpthread.so.0", "libdl.so.2", "libm.so.6", "libc.so.6", "librt.so.1"}, there)
        for name in self.names:
            path = os.path.join(self.rootfs, name)
            if os.path.islink(path) or not ("/lib" in name and ".so" in name or name.startswith("usr/bin/")):
                continue
            p = subprocess.run(["readelf", "-d", path], stdout=subprocess.PIPE, text=True, check=True)
            for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", p.stdout):
                self.assertIn(needed, there, name)

    def test_the_gate_is_where_the_agent_looks(self):
        self.assertIn("usr/lib/aliquot/libaliquot.so", self.names)
        for name in "libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi":
            self.assertIn("usr/lib/aliquot/sim/" + name, self.names)

    def test_licences(self):
        packages = os.listdir(os.path.join(self.rootfs, "var/lib/dpkg/status.d"))
        self.assertIn("libc6", packages)
        for package in packages:
            self.assertTrue(os.path.getsize(os.path.join(self.rootfs, "usr/share/doc", package, "copyright")) > 0, package)

    def inside(self, arguments, **environment):
        enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
        if subprocess.run([*enter, "/", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("neither root nor user namespaces here")
        with open(os.path.join(self.rootfs, "usr/bin/aliquot"), "rb") as program:
            if b"__asan_init" in program.read():
                self.skipTest("a sanitized program ends where there is no /proc")
        return subprocess.run([*enter, self.rootfs, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment})

    def test_the_pod_of_helm_test_runs_in_it(self):
        """Its command, as the kubelet starts it; without a card it says what may be wrong."""
        with open(os.path.join(ROOT, "deploy/helm/aliquot/templates/tests/slice.yaml"), encoding="utf-8") as f:
            (command,) = re.findall(r"^    command: (\[.*\])$", f.read(), re.M)
        p = self.inside(re.findall(r"[^\[\], \"]+", command), ALIYUN_COM_GPU_MEM_CONTAINER="1")
        self.assertEqual(p.returncode, 1, p.stdout)
        self.assertIn("no CUDA driver", p.stdout)
        self.assertIn("CDI may be off there", p.stdout)

    def test_programs_run_in_it(self):
        for arguments in (["/usr/bin/aliquot", "--version"], ["/usr/bin/kubectl-inspect-cgpu", "--help"],
                          ["/usr/bin/aliquot-sample", "--help"]):
            p = self.inside(arguments)
            self.assertEqual(p.returncode, 0, p.stdout)

    def test_bad_names(self):
        for name in ("aliquot", ":1", "host:5000/aliquot"):
            p = make(BUILD, os.path.join(self.folder.name, "c.tar"), name)
            self.assertNotEqual(p.returncode, 0, name)
            self.assertIn("NAME:TAG", p.stdout)
            self.assertFalse(os.path.exists(os.path.join(self.folder.name, "c.tar")))


class Archive(unittest.TestCase):
    """The archive, in tests/release: it is made several times."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "a.tar")
        p = make(BUILD, cls.path, "example.test:5000/team/aliquot:9.9", SOURCE_DATE_EPOCH="1700000000")
        assert p.returncode == 0, p.stdout
        with tarfile.open(cls.path) as tar:
            cls.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
        cls.index = json.loads(cls.files["index.json"])
        (cls.manifest_entry,) = cls.index["manifests"]
        cls.manifest = json.loads(cls.blob(cls.manifest_entry))
        cls.config = json.loads(cls.blob(cls.manifest["config"]))
        (cls.layer,) = cls.manifest["layers"]
        cls.rootfs = os.path.join(cls.folder.name, "rootfs")
        cls.members = {}
        layer = os.path.join(cls.folder.name, "layer.tar")
        with open(layer, "wb") as f:
            f.write(gzip.decompress(cls.blob(cls.layer)))
        with tarfile.open(layer) as tar:
            cls.members = {m.name: m for m in tar}
            tar.extractall(cls.rootfs)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def blob(cls, descriptor):
        return cls.files["blobs/" + descriptor["digest"].replace(":", "/")]

    def test_digests(self):
        for d in (self.manifest_entry, self.manifest["config"], self.layer):
            self.assertEqual(d["digest"], "sha256:" + hashlib.sha256(self.blob(d)).hexdigest())
            self.assertEqual(d["size"], len(self.blob(d)))
        self.assertEqual(len([name for name in self.files if name.startswith("blobs/")]), 3)
        unpacked = gzip.decompress(self.blob(self.layer))
        self.assertEqual(self.config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(unpacked).hexdigest()])

    def test_names(self):
        self.assertEqual(self.manifest_entry["annotations"], {
            "org.opencontainers.image.ref.name": "9.9", "io.containerd.image.name": "example.test:5000/team/aliquot:9.9"})
        (docker,) = json.loads(self.files["manifest.json"])
        self.assertEqual(docker["RepoTags"], ["example.test:5000/team/aliquot:9.9"])
        self.assertEqual(json.loads(self.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        for name in [docker["Config"], *docker["Layers"]]:
            self.assertIn(name, self.files)

    def test_names_are_those_that_the_kubelet_asks_for(self):
        path = os.path.join(self.folder.name, "n.tar")
        version = subprocess.run([os.path.join(BUILD, "aliquot"), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        for given, full in ((None, "docker.io/library/aliquot:" + version), ("aliquot:9", "docker.io/library/aliquot:9"),
                            ("team/aliquot:9", "docker.io/team/aliquot:9"), ("localhost/aliquot:9", "localhost/aliquot:9"),
                            ("host:5000/aliquot:9", "host:5000/aliquot:9"), ("a.test/b/aliquot:9", "a.test/b/aliquot:9")):
            p = make(BUILD, path, *([given] if given else []), SOURCE_DATE_EPOCH="1700000000")
            self.assertEqual(p.returncode, 0, p.stdout)
            with tarfile.open(path) as tar:
                (entry,) = json.load(tar.extractfile("index.json"))["manifests"]
                (docker,) = json.load(tar.extractfile("manifest.json"))
            self.assertEqual(entry["annotations"], {"org.opencontainers.image.ref.name": full.rpartition(":")[2],
                                                    "io.containerd.image.name": full})
            self.assertEqual(docker["RepoTags"], [full])

    def test_configuration(self):
        self.assertEqual(self.config["config"]["Entrypoint"], ["/usr/bin/aliquot"])
        self.assertEqual(self.config["config"]["User"], "65532:65532")
        self.assertEqual(self.config["created"], "2023-11-14T22:13:20Z")

    def test_same_bytes_again(self):
        again = os.path.join(self.folder.name, "b.tar")
        p = make(BUILD, again, "example.test:5000/team/aliquot:9.9", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Shanghai")
        self.assertEqual(p.returncode, 0, p.stdout)
        with open(self.path, "rb") as a, open(again, "rb") as b:
            self.assertEqual(hashlib.sha256(a.read()).digest(), hashlib.sha256(b.read()).digest())

    def test_members(self):
        self.assertEqual(list(self.members), sorted(self.members))
        for m in self.members.values():
            self.assertEqual((m.uid, m.gid, m.uname, m.gname, m.mtime), (0, 0, "", "", 1700000000), m.name)
            self.assertTrue(m.isfile() or m.isdir() or m.issym(), m.name)
            self.assertFalse(m.mode & 0o6022 and not m.issym() and m.name != "tmp", m.name)
            if m.issym():
                self.assertTrue(os.path.isdir(os.path.join(self.rootfs, m.linkname.lstrip("/"))), m.name)

    def test_rootfs_is_the_layer(self):
        folder = os.path.join(self.folder.name, "again")
        p = make("--rootfs", BUILD, folder, SOURCE_DATE_EPOCH="1700000000")
        self.assertEqual(p.returncode, 0, p.stdout)
        self.assertEqual(subprocess.run(["diff", "-r", "--no-dereference", folder, self.rootfs]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
