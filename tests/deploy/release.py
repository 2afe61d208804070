#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of scripts/release.py, made from this build: what is in them, that they agree, and that the programs run from there.
tests/release makes them, builds twice and installs into empty roots; `make test` runs the class Refusals."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

try:
    import yaml
    from manifests import identity, kustomization
except ModuleNotFoundError as e:
    print(f"skipped: {e.name} is not there (Debian: python3-yaml)")
    sys.exit(77)

BUILD = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.abspath(sys.argv.pop(1))
HELM = shutil.which(os.environ.get("HELM", "helm"))
WHEN = 1700000000

for tool in ("dpkg-deb", "readelf", "strip"):
    if not shutil.which(tool):
        print(f"skipped: there is no {tool} here")
        sys.exit(77)


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def write_release(folder, *builds, root=ROOT, **more):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(WHEN), "RELEASE_URL": "https://example.test/r", **more}
    return run(os.path.join(root, "scripts/release.py"), folder, *(builds or [BUILD]), env=environment)


def copy_sources(folder):
    """what scripts/release.py reads besides the build"""
    for name in ("scripts", "deploy", "samples", "docs", "man", "completions", "tests/e2e"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "CHANGELOG.md", "LICENSE", "Dockerfile", "meson.build"):
        shutil.copy(os.path.join(ROOT, name), folder)


def replace(path, old, new):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))


class Refusals(unittest.TestCase):
    """What is judged before anything is made."""

    @classmethod
    def setUpClass(cls):
        cls.version = run(os.path.join(BUILD, "aliquot"), "--version").stdout.split()[1]

    def test_refuses_what_is_not_one_version(self):
        for name in ("samples/share/memory.yaml", "docs/operate/install.md", "docs/begin/quickstart.md", "deploy/helm/aliquot/Chart.yaml"):
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                copy_sources(root)
                replace(os.path.join(root, name), self.version, "0.0.9")
                p = write_release("--check", os.path.join(root, "dist"), root=root)
                self.assertEqual(p.returncode, 1, p.stdout)
                self.assertRegex(p.stdout, os.path.basename(name) + " has .*0.0.9")

    def test_refuses_without_an_address(self):
        with tempfile.TemporaryDirectory() as folder:
            p = write_release("--check", os.path.join(folder, "none"), RELEASE_URL="")
            self.assertEqual(p.returncode, 1)
            self.assertIn("RELEASE_URL", p.stdout)
            self.assertEqual(write_release("--check", os.path.join(folder, "none")).stdout, "")

    def test_refuses_what_the_publisher_cannot_mean(self):
        for more, sentence in (({"RELEASE_IMAGE": "aliquot"}, "REGISTRY/OWNER/NAME"), ({"RELEASE_IMAGE": "host:5000/a:1"}, "REGISTRY/OWNER/NAME"),
                               ({"RELEASE_IMAGE": "owner/aliquot"}, "REGISTRY/OWNER/NAME"), ({"RELEASE_KEY": "no@key.example"}, "RELEASE_KEY")):
            with tempfile.TemporaryDirectory() as folder:
                p = write_release("--check", os.path.join(folder, "none"), GNUPGHOME=folder, **more)
                self.assertEqual(p.returncode, 1)
                self.assertIn(sentence, p.stdout)


class Release(unittest.TestCase):
    """The files, in tests/release: they are made three times."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dist = os.path.join(cls.folder.name, "dist")
        p = write_release(cls.dist)
        assert p.returncode == 0, p.stdout
        cls.files = {name: cls.bytes_of(os.path.join(cls.dist, name)) for name in os.listdir(cls.dist)}
        cls.version = run(os.path.join(BUILD, "aliquot"), "--version").stdout.split()[1]
        cls.arch = run("dpkg", "--print-architecture").stdout.strip()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def bytes_of(path):
        with open(path, "rb") as f:
            return f.read()

    def unpacked(self, name):
        folder = os.path.join(self.folder.name, "of-" + name)
        if not os.path.exists(folder):
            with tarfile.open(os.path.join(self.dist, name)) as tar:
                for m in tar:
                    self.assertEqual((m.uid, m.gid, m.uname, m.gname, m.mtime), (0, 0, "", "", WHEN), m.name)
                tar.extractall(folder)
        return folder

    def sanitized(self):
        if b"__asan_init" in self.bytes_of(os.path.join(BUILD, "aliquot-run")):
            self.skipTest("a sanitized program needs libraries that no release has")

    def test_sums_name_every_file(self):
        sums = dict(reversed(line.split("  ")) for line in self.files["SHA256SUMS"].decode().splitlines())
        self.assertEqual(sums, {n: hashlib.sha256(d).hexdigest() for n, d in self.files.items() if n != "SHA256SUMS"})
        self.assertEqual(run("sha256sum", "-c", "SHA256SUMS", cwd=self.dist).returncode, 0)

    def test_same_bytes_again(self):
        again = os.path.join(self.folder.name, "again")
        p = write_release(again)
        self.assertEqual(p.returncode, 0, p.stdout)
        self.assertEqual(self.bytes_of(os.path.join(again, "SHA256SUMS")).decode(), self.files["SHA256SUMS"].decode())

    def test_programs_find_their_libraries_beside_them(self):
        self.sanitized()
        name = f"aliquot-{self.version}-linux-{self.arch}"
        top = os.path.join(self.unpacked(name + ".tar.gz"), name)
        for program in sorted(os.listdir(os.path.join(top, "bin"))):
            p = run(os.path.join(top, "bin", program), "--help")
            self.assertEqual(p.returncode, 0, p.stdout)
        for program in ("aliquot", "aliquot-sim"):
            loaded = dict(re.findall(r"(\S+) => (\S+)", run("ldd", os.path.join(top, "bin", program)).stdout))
            elsewhere = {name for name, path in loaded.items() if not os.path.realpath(path).startswith(os.path.realpath(top))}
            self.assertLessEqual(elsewhere, {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2", "librt.so.1"})
            self.assertTrue(loaded.keys() - elsewhere, program)
        for library in os.listdir(os.path.join(top, "lib/aliquot/bundled")):
            self.assertNotIn("(RUNPATH)", run("readelf", "-d", os.path.join(top, "lib/aliquot/bundled", library)).stdout)
        self.assertTrue(os.path.exists(os.path.join(top, "lib/aliquot/libaliquot.so")))

    def test_package(self):
        path = os.path.join(self.dist, f"aliquot_{self.version}_{self.arch}.deb")
        depends = run("dpkg-deb", "-f", path, "Depends").stdout
        for library in ("libc6 (>= ", "libfuse3-3 (>= ", "libcurl3-gnutls (>= "):
            self.assertIn(library, depends)
        p = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE, check=True)
        with tarfile.open(fileobj=io.BytesIO(p.stdout)) as tar:
            members = {m.name: m for m in tar}
        for name in ("./usr/bin/aliquot", "./usr/bin/aliquot-run", "./usr/bin/aliquot-smi", "./usr/bin/aliquot-sim",
                     "./usr/lib/aliquot/libaliquot.so", "./usr/lib/aliquot/sim/nvidia-smi", "./usr/share/man/man1/aliquot-run.1.gz",
                     "./usr/share/doc/aliquot/copyright", "./usr/share/doc/aliquot/changelog.gz"):
            self.assertTrue(members[name].isfile(), name)
        for m in members.values():
            self.assertEqual((m.uid, m.gid, m.mtime), (0, 0, WHEN), m.name)
            self.assertFalse(m.mode & 0o6022, m.name)
        if shutil.which("lintian"):
            said = run("lintian", "--fail-on", "none", path).stdout  # the address of the maintainer is the publisher's to name
            self.assertEqual([line for line in said.splitlines() if line.startswith("E:") and "bogus-mail-host" not in line], [])

    def test_plugin_and_krew(self):
        name = f"kubectl-inspect-cgpu-{self.version}-linux-{self.arch}"
        program = os.path.join(self.unpacked(name + ".tar.gz"), name, "kubectl-inspect-cgpu")
        self.assertEqual(run(program, "--help").returncode, 0)
        manifest = yaml.safe_load(self.files["inspect-cgpu.yaml"])
        self.assertEqual(manifest["spec"]["version"], "v" + self.version)
        self.assertIn("nor run on macOS", manifest["spec"]["caveats"])
        (platform,) = manifest["spec"]["platforms"]
        self.assertEqual(platform["uri"], f"https://example.test/r/{name}.tar.gz")
        self.assertEqual(platform["sha256"], hashlib.sha256(self.files[name + ".tar.gz"]).hexdigest())
        self.assertEqual(platform["selector"]["matchLabels"], {"os": "linux", "arch": self.arch})

    def test_chart(self):
        name = f"aliquot-{self.version}.tgz"
        (entry,) = yaml.safe_load(self.files["index.yaml"])["entries"]["aliquot"]
        self.assertEqual((entry["version"], entry["urls"]), (self.version, [name]))
        self.assertEqual(entry["digest"], hashlib.sha256(self.files[name]).hexdigest())
        chart = os.path.join(self.unpacked(name), "aliquot")
        self.assertEqual(run("diff", "-r", chart, os.path.join(ROOT, "deploy/helm/aliquot")).stdout, "")
        if HELM:
            options = ["--namespace", "kube-system"]
            here = run(HELM, "template", "a", os.path.join(ROOT, "deploy/helm/aliquot"), *options)
            self.assertEqual(run(HELM, "template", "a", os.path.join(self.dist, name), *options).stdout, here.stdout)
            self.assertEqual(here.returncode, 0, here.stdout)

    def test_chart_as_an_artifact(self):
        with tarfile.open(os.path.join(self.dist, f"aliquot-{self.version}-chart-oci.tar")) as tar:
            blobs = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}

        def blob(descriptor):
            data = blobs["blobs/" + descriptor["digest"].replace(":", "/")]
            self.assertEqual(("sha256:" + hashlib.sha256(data).hexdigest(), len(data)), (descriptor["digest"], descriptor["size"]))
            return data
        (entry,) = json.loads(blobs["index.json"])["manifests"]
        self.assertEqual(entry["annotations"]["org.opencontainers.image.ref.name"], self.version)
        manifest = json.loads(blob(entry))
        (layer,) = manifest["layers"]
        self.assertEqual(layer["mediaType"], "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
        self.assertEqual(blob(layer), self.files[f"aliquot-{self.version}.tgz"])
        config = json.loads(blob(manifest["config"]))
        self.assertEqual((config["name"], config["version"], config["kubeVersion"]), ("aliquot", self.version, ">=1.22.0-0"))

    def test_what_the_publisher_sets(self):
        """One name of the image, in the chart and in the file for kubectl; an owner for Artifact Hub; a signature, by a key made here."""
        dist, home = os.path.join(self.folder.name, "published"), os.path.join(self.folder.name, "gpg")
        more = {"RELEASE_IMAGE": "host:5000/team/aliquot", "RELEASE_HOME": "https://example.test/home", "RELEASE_OWNER": "A Name <a@example.test>"}
        if shutil.which("gpg"):
            os.mkdir(home, 0o700)
            made = run("gpg", "--homedir", home, "--batch", "--passphrase", "", "--quick-generate-key", "a@example.test", "ed25519")
            self.assertEqual(made.returncode, 0, made.stdout)
            more.update({"RELEASE_KEY": "a@example.test", "GNUPGHOME": home})
        p = write_release(dist, **more)
        self.assertEqual(p.returncode, 0, p.stdout)
        with tarfile.open(os.path.join(dist, f"aliquot-{self.version}.tgz")) as tar:
            values = yaml.safe_load(tar.extractfile("aliquot/values.yaml"))
            about = yaml.safe_load(tar.extractfile("aliquot/Chart.yaml"))
        image = values["images"]["aliquot"]
        self.assertEqual((image["registry"], image["repository"]), ("host:5000", "team/aliquot"))
        self.assertEqual((about["home"], about["sources"]), ("https://example.test/home", ["https://example.test/home"]))
        bundle = self.bytes_of(os.path.join(dist, f"aliquot-{self.version}.yaml")).decode()
        self.assertEqual(set(re.findall(r"image: (\S+)", bundle)), {f"host:5000/team/aliquot:{self.version}", "kube-scheduler"})
        self.assertEqual(yaml.safe_load(self.bytes_of(os.path.join(dist, "artifacthub-repo.yml")))["owners"],
                         [{"name": "A Name", "email": "a@example.test"}])
        self.assertEqual(yaml.safe_load(self.files["artifacthub-repo.yml"])["owners"], [])
        self.assertFalse([name for name in self.files if name.endswith(".asc")])
        if shutil.which("gpg"):
            verified = run("gpg", "--homedir", home, "--batch", "--verify", os.path.join(dist, "SHA256SUMS.asc"), os.path.join(dist, "SHA256SUMS"))
            run("gpgconf", "--homedir", home, "--kill", "all")
            self.assertEqual(verified.returncode, 0, verified.stdout)

    def test_one_file_for_kubectl(self):
        objects = [o for o in yaml.safe_load_all(self.files[f"aliquot-{self.version}.yaml"]) if o]
        self.assertEqual({identity(o): o for o in objects}, kustomization(os.path.join(ROOT, "deploy/kustomize/base")))

    def test_bill_of_materials(self):
        document = json.loads(self.files[f"aliquot-{self.version}.spdx.json"])
        packages = {p["SPDXID"]: p for p in document["packages"]}
        self.assertEqual(len(packages), len(document["packages"]))
        listed = {p["name"]: p["versionInfo"] for p in packages.values()}
        for name in ("libc6", "libgnutls30", "libfuse3-3", "libc6-dev"):
            self.assertEqual(listed[name], run("dpkg-query", "-W", "-f", "${Version}", name).stdout)
        texts = {t["licenseId"] for t in document["hasExtractedLicensingInfos"]}
        for p in packages.values():
            self.assertNotEqual(p["licenseDeclared"], "NOASSERTION", p["name"])
            if p["licenseDeclared"].startswith("LicenseRef-"):
                self.assertIn(p["licenseDeclared"], texts)
        for r in document["relationships"]:
            self.assertIn(r["spdxElementId"], {*packages, "SPDXRef-DOCUMENT"})
            self.assertIn(r["relatedSpdxElement"], packages)

    @unittest.skipUnless(shutil.which("git"), "there is no git here")
    def test_candidate_from_a_clone_with_other_files(self):
        root, version = os.path.join(self.folder.name, "clone"), "9.9.9-rc1"
        copy_sources(root)
        for at, _, names in os.walk(root):
            for name in names:
                if name.endswith((".md", ".yaml", ".py", "Dockerfile", "meson.build")):
                    replace(os.path.join(at, name), self.version, version)
        self.assertEqual(run("git", "init", "-q", root).returncode, 0)
        self.assertEqual(run("git", "-C", root, "add", ".").returncode, 0)
        for name in ("man/aliquot.1.orig", "deploy/helm/aliquot/templates/scratch.yaml"):
            shutil.copy(os.path.join(root, "LICENSE"), os.path.join(root, name))
        dist = os.path.join(root, "dist")
        p = write_release(dist, root=root)
        self.assertEqual(p.returncode, 0, p.stdout)
        deb = os.path.join(dist, f"aliquot_{version}_{self.arch}.deb")
        self.assertEqual(run("dpkg-deb", "-f", deb, "Version").stdout.strip(), "9.9.9~rc1")
        for name in (f"aliquot-{version}-linux-{self.arch}.tar.gz", f"aliquot-{version}.tgz"):
            with tarfile.open(os.path.join(dist, name)) as tar:
                self.assertFalse([m.name for m in tar if re.search(r"orig|scratch", m.name)])
        self.assertNotIn("aliquot.1.orig", run("dpkg-deb", "-c", deb).stdout)

    def test_no_path_of_this_machine(self):
        for name in sorted(self.files):
            if name.endswith((".gz", ".tgz")):
                for at, _, names in os.walk(self.unpacked(name)):
                    for n in names:
                        self.assertNotIn(ROOT.encode(), self.bytes_of(os.path.join(at, n)), n)


if __name__ == "__main__":
    unittest.main()
