#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a release from finished builds: docs/internals/release.md says what each is for.

    scripts/release.py OUTPUT BUILD[=SYSROOT]...    one build per processor; scripts/sysroot.sh makes a SYSROOT
    scripts/release.py --check OUTPUT               whether that would be refused before anything is read of a build
    scripts/release.py --targets                    what a build needs, by the names that ninja knows

Every byte follows from the builds, the packages they were linked with, and the commit: entries are sorted, belong to root and
carry one time. RELEASE_URL, the address that the krew manifest names, must be set. The publisher may set RELEASE_IMAGE and
RELEASE_HOME, which replace the two constants below, RELEASE_OWNER and RELEASE_KEY."""

import datetime
import glob
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

import image
import sbom
from dpkg_root import DpkgRoot, read

HERE = image.HERE
CHART = os.path.join(HERE, "deploy/helm/aliquot")
# What this tree names: the image without a tag, as `make image` does, and where the sources are.
IMAGE = "docker.io/library/aliquot"
HOME = "https://github.com/OWNER/aliquot"
# What runs without Kubernetes on one machine; kubectl-inspect-cgpu has an archive of its own.
PROGRAMS = [name for name in image.PROGRAMS if name != "kubectl-inspect-cgpu"]
PLUGIN = "kubectl-inspect-cgpu"
# The machine on which the programs run has its own: the loader and the C library belong together.
C_LIBRARY = "libc6"
SUMMARY = "share NVIDIA GPUs among containers, by memory and percent of compute"
KREW = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: inspect-cgpu
spec:
  version: v{version}
  homepage: {url}
  shortDescription: Show which pod has what of which GPU
  description: |
    Shows the cards of each node, their memory and compute, and the pods that hold slices of them.
    It reads the annotations of Aliquot and of ACK shared-GPU scheduling.
  caveats: It runs on Linux. It was neither built nor run on macOS.
  platforms:
{platforms}"""
KREW_PLATFORM = """\
  - selector: {{matchLabels: {{os: linux, arch: {arch}}}}}
    uri: {url}/{name}
    sha256: {digest}
    bin: kubectl-inspect-cgpu
    files:
    - {{from: "*/*", to: .}}
"""
CONTROL = """\
Package: aliquot
Version: {version}
Architecture: {arch}
Maintainer: {owner}
Installed-Size: {size}
Depends: {depends}
Recommends: fuse3
Section: admin
Priority: optional
Description: {summary}
 A command in a slice of a card, on one machine: aliquot run, aliquot smi, and the
 library that holds processes to their memory and their share of time. With a
 simulated driver for machines without a GPU.
"""


# What names the version in a page or a sample: an image, a file of the release, a tag.
NAMED = re.compile(r"(?:(?:aliquot|inspect-cgpu)[:_-]|newTag: |ref=v)(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.?\d*)?)")


def url():
    return os.environ.get("RELEASE_URL", "")


def published(path, data):
    """The text of a file with the publisher's image and home in place of those that the tree names."""
    image_name, home = os.environ.get("RELEASE_IMAGE") or IMAGE, os.environ.get("RELEASE_HOME") or HOME
    text = data.decode().replace(IMAGE + ":", image_name + ":").replace(HOME, home)
    if path.endswith("/values.yaml"):
        (old, new) = (f"    registry: {registry}\n    repository: {rest}\n" for registry, _, rest in (IMAGE.partition("/"), image_name.partition("/")))
        if text.count(old) != 1:
            raise SystemExit(f"release: values.yaml names {IMAGE} {text.count(old)} times")
        text = text.replace(old, new)
    return text.encode()


def files_of(folder):
    """The files of the commit below the folder, without those that lie beside them; all of them where there is no clone."""
    p = subprocess.run(["git", "-c", "safe.directory=*", "-C", HERE, "ls-files", "-z", folder],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if shutil.which("git") else None
    if p and p.stdout:
        return sorted(os.path.join(HERE, name) for name in p.stdout.decode().split("\0") if name)
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def manuals(without=()):
    """name -> bytes of the pages in man/"""
    pages = {os.path.basename(path): path for path in files_of(os.path.join(HERE, "man"))}
    return {name: read(path) for name, path in pages.items() if name[:-2] not in without}


def notices(root, packages):
    """the licences of these packages, below share/doc"""
    return {f"share/doc/{p.split(':')[0]}/copyright": (0o644, root.copyright(p)) for p in packages if root.copyright(p)}


# What Debian has of each licence lies in one place.
COPYRIGHT = b"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: aliquot

Files: *
Copyright: the contributors of Aliquot
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
"""

# Below share: the file of completions/. Debian's zsh looks in vendor-completions.
COMPLETIONS = {"bash-completion/completions/aliquot": "aliquot.bash", "zsh/vendor-completions/_aliquot": "_aliquot",
               "fish/vendor_completions.d/aliquot.fish": "aliquot.fish"}


def installed(build, root):
    """the single-machine part below a prefix: path -> (mode, bytes)"""
    entries = {f"bin/{name}": (0o755, root.strip(os.path.join(build, name))) for name in PROGRAMS}
    entries[f"lib/aliquot/{image.GATE}"] = (0o755, read(os.path.join(build, image.GATE)))
    entries.update({f"lib/aliquot/sim/{name}": (0o644 if ".so" in name else 0o755, root.strip(os.path.join(build, "sim", name)))
                    for name in image.SIMULATED})
    for path, name in COMPLETIONS.items():
        entries[f"share/{path}"] = (0o644, read(os.path.join(HERE, "completions", name)))
    entries["share/doc/aliquot/copyright"] = (0o644, read(os.path.join(HERE, "LICENSE")))
    return entries


def below(folder, entries):
    return image.with_folders({f"{folder}/{path}": entry for path, entry in entries.items()})


def tarball(build, root, when):
    """Every library except the C library's lies beside the programs, which look there first (meson.build)."""
    programs = [os.path.join(build, name) for name in PROGRAMS]
    entries = installed(build, root)
    bundled = sorted(root.libraries(programs) - set(root.query("-L", f"{C_LIBRARY}:{root.architecture}").splitlines()))
    entries.update({f"lib/aliquot/bundled/{os.path.basename(path)}": (0o644, read(root.root + path)) for path in bundled})
    entries.update(notices(root, root.owners(bundled)))
    entries.update({f"share/man/man{name[-1]}/{name}": (0o644, page) for name, page in manuals().items()})
    entries[f"bin/{PLUGIN}"] = (0o755, root.strip(os.path.join(build, PLUGIN)))
    entries.update({f"share/doc/aliquot/{name}": (0o644, read(os.path.join(HERE, name))) for name in ("README.md", "CHANGELOG.md")})
    name = f"aliquot-{image.version()}-linux-{root.architecture}"
    return {name + ".tar.gz": image.packed(image.tar_of(below(name, entries), when))}


def plugin(build, root, when):
    name = f"{PLUGIN}-{image.version()}-linux-{root.architecture}"
    entries = {PLUGIN: (0o755, root.strip(os.path.join(build, PLUGIN))), "LICENSE": (0o644, read(os.path.join(HERE, "LICENSE"))),
               "LICENSE.libc": (0o644, root.copyright("libc6"))}
    return {name + ".tar.gz": image.packed(image.tar_of(below(name, entries), when))}


def krew(files):
    """the manifest of the plugin archives among these files"""
    platforms = "".join(KREW_PLATFORM.format(arch=name.split("-")[-1].split(".")[0], url=url(), name=name, digest=digest(data))
                        for name, data in sorted(files.items()) if name.startswith(PLUGIN))
    return KREW.format(version=image.version(), url=url(), platforms=platforms).encode()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def package(build, root, when):
    """The .deb. It depends on the least versions that the packages of its libraries name."""
    entries = {f"usr/{path}": entry for path, entry in installed(build, root).items()}
    for name, page in manuals(without=[PLUGIN]).items():
        entries[f"usr/share/man/man{name[-1]}/{name}.gz"] = (0o644, image.packed(page))
    entries["usr/share/doc/aliquot/changelog.gz"] = (0o644, image.packed(read(os.path.join(HERE, "CHANGELOG.md"))))
    entries["usr/share/doc/aliquot/copyright"] = (0o644, COPYRIGHT)
    needed = root.needed_directly([os.path.join(build, name) for name in PROGRAMS])
    depends = sorted({root.dependency(name) for name in needed if name.startswith("lib")})
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {path}\n" for path, (_, data) in sorted(entries.items()))
    # Debian sorts 1.0.0~rc1 before 1.0.0, and 1.0.0-rc1 behind it.
    control = CONTROL.format(version=image.version().replace("-", "~"), arch=root.architecture, depends=", ".join(depends), summary=SUMMARY,
                             owner=os.environ.get("RELEASE_OWNER") or "Aliquot contributors <aliquot@localhost>",
                             size=sum(len(data) for _, data in entries.values()) // 1024)
    entries.update({"DEBIAN/control": (0o644, control.encode()), "DEBIAN/md5sums": (0o644, sums.encode())})
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.deb")
        with tarfile.open(fileobj=io.BytesIO(image.tar_of(below("tree", entries), when))) as tar:
            tar.extractall(folder)
        # The number of threads decides how xz cuts its blocks.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", os.path.join(folder, "tree"), out], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(when), "DPKG_DEB_THREADS_MAX": "1"})
        return {f"aliquot_{image.version()}_{root.architecture}.deb": read(out)}


def chart(when):
    """What `helm package` and `helm repo index` write, without helm."""
    entries = {os.path.relpath(path, os.path.dirname(CHART)): (0o644, published(path, read(path))) for path in files_of(CHART)}
    name = f"aliquot-{image.version()}.tgz"
    files = {name: image.packed(image.tar_of(entries, when))}
    about = [line for line in entries["aliquot/Chart.yaml"][1].decode().splitlines() if not line.startswith("#")]
    time = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    index = ["apiVersion: v1", "entries:", "  aliquot:", "  - " + about[0], *("    " + line for line in about[1:]),
             f"    created: \"{time}\"", "    digest: " + digest(files[name]), "    urls:", "    - " + name, f"generated: \"{time}\""]
    files["index.yaml"] = ("\n".join(index) + "\n").encode()
    files[f"aliquot-{image.version()}-chart-oci.tar"] = chart_image(dict(line.split(": ", 1) for line in about), files[name], when)
    return {**files, "artifacthub-repo.yml": artifact_hub()}


def chart_image(about, packed, when):
    """The chart as an artifact of a registry, in an OCI archive, as `helm push` makes it: helm.sh/helm/v4/pkg/registry, client.go, Push."""
    # One line of Chart.yaml is one field, and lists stand in brackets there.
    fields = {key: value.strip('"') for key, value in about.items() if value[0] not in "[{"}
    a = image.Archive()
    layer = a.blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed)
    config = a.json_blob("application/vnd.cncf.helm.config.v1+json", fields)
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest = a.json_blob("application/vnd.oci.image.manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer],
        "annotations": {"org.opencontainers.image.title": fields["name"], "org.opencontainers.image.version": fields["version"],
                        "org.opencontainers.image.description": fields["description"], "org.opencontainers.image.url": fields["home"],
                        "org.opencontainers.image.created": created}})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": fields["version"]}
    a.file("oci-layout", {"imageLayoutVersion": "1.0.0"})
    a.file("index.json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]})
    return image.tar_of(a.entries, when)


def artifact_hub():
    """What lies beside index.yaml for artifacthub.io. RELEASE_OWNER: NAME <ADDRESS>; the site gives the publisher an ID later."""
    name, _, address = os.environ.get("RELEASE_OWNER", "").rstrip(">").partition(" <")
    owners = f"owners:\n- name: {json.dumps(name)}\n  email: {json.dumps(address)}\n" if address else "owners: []\n"
    return ("# https://artifacthub.io/docs/topics/repositories/: repositoryID is added once the repository is registered.\n" + owners).encode()


def sign(path):
    """PATH.asc, by the key RELEASE_KEY of the publisher's own GnuPG; nothing without one."""
    key = os.environ.get("RELEASE_KEY")
    if key:
        subprocess.run(["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--output", path + ".asc", "--detach-sign", path], check=True)


def documents(folder):
    """The YAML documents of a kustomization that lists files and folders and changes nothing."""
    text = read(os.path.join(folder, "kustomization.yaml")).decode()
    if re.search(r"^(?!apiVersion|kind|resources)\w", text, re.M):
        raise SystemExit(f"{folder}: this kustomization changes objects, and would have to be built with kubectl")
    for name in re.findall(r"^- (\S+)$", text, re.M):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            yield from documents(path)
        else:
            yield from re.split(r"^---$", read(path).decode(), flags=re.M)


def bundle():
    parts = [part.strip("\n") for part in documents(os.path.join(HERE, "deploy/kustomize/base"))]
    text = "\n---\n".join(part for part in parts if re.search(r"^kind:", part, re.M)) + "\n"
    return {f"aliquot-{image.version()}.yaml": published("", text.encode())}


def check_versions():
    """The chart, the kustomizations, the pages and the samples name the version that the programs have."""
    version, found = image.version(), {}
    about = read(os.path.join(CHART, "Chart.yaml")).decode()
    found["Chart.yaml"] = re.findall(r"^(?:version|appVersion): (.*)$", about, re.M)
    found["the kustomizations"] = re.findall(r"image: \S+/[^/\s:]+:(\S+)", bundle()[f"aliquot-{version}.yaml"].decode())
    found["CHANGELOG.md"] = re.findall(r"^## (\d\S*)", read(os.path.join(HERE, "CHANGELOG.md")).decode(), re.M)[:1]
    pages = [os.path.join(HERE, name) for name in ("README.md", "Dockerfile", "tests/e2e/samples_test.py")]
    pages += [page for page in glob.glob(os.path.join(HERE, "docs/*/*.md")) if "/internals/" not in page]
    pages += glob.glob(os.path.join(HERE, "samples/**/*.yaml"), recursive=True)
    for path in sorted(pages):
        named = NAMED.findall(read(path).decode())
        if named:
            found[os.path.relpath(path, HERE)] = named
    for where, versions in found.items():
        if set(versions) != {version}:
            raise SystemExit(f"release: meson.build has version {version}, {where} has {', '.join(versions) or 'none'}")


def check_url():
    if not url():
        raise SystemExit("release: RELEASE_URL must name the address under which the files will lie, for inspect-cgpu.yaml")


def check_key():
    key = os.environ.get("RELEASE_KEY")
    if not key:
        return
    if not shutil.which("gpg"):
        raise SystemExit("release: RELEASE_KEY signs SHA256SUMS by gpg, which is not there (Debian: gpg)")
    if subprocess.run(["gpg", "--batch", "--list-secret-keys", key], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        raise SystemExit(f"release: gpg has no secret key {key} (RELEASE_KEY)")


def check_image():
    name = os.environ.get("RELEASE_IMAGE") or IMAGE
    if not re.fullmatch(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+", name) or "." not in name.split("/")[0] and ":" not in name.split("/")[0]:
        raise SystemExit(f"release: RELEASE_IMAGE is {name}; it must be REGISTRY/OWNER/NAME, without a tag")


def check(output):
    check_image()
    check_versions()
    check_url()
    check_key()
    check_output(output)


def check_output(output):
    """The folder is replaced as a whole, so it must hold a release or nothing."""
    if os.path.lexists(output) and not os.path.isdir(output):
        raise SystemExit(f"release: {output} is no folder")
    if os.path.isdir(output) and os.listdir(output) and not os.path.exists(os.path.join(output, "SHA256SUMS")):
        raise SystemExit(f"release: {output} holds other files than those of a release, and would be deleted; name a new folder")


def write_release(output, builds):
    when, version = image.epoch(), image.version()
    files = {"CHANGELOG.md": read(os.path.join(HERE, "CHANGELOG.md")), "uninstall.sh": read(os.path.join(HERE, "deploy", "uninstall.sh")), **chart(when),
             **bundle()}
    for build, root in builds:
        files.update({**tarball(build, root, when), **plugin(build, root, when), **package(build, root, when)})
        files[f"aliquot-{version}-image-linux-{root.architecture}.tar"] = image.archive(build, root, "")[0]
    files["inspect-cgpu.yaml"] = krew(files)
    programs = [*PROGRAMS, PLUGIN]
    document = sbom.document(version, when, [(root, [os.path.join(build, name) for name in programs]) for build, root in builds])
    files[f"aliquot-{version}.spdx.json"] = json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
    files["SHA256SUMS"] = "".join(f"{digest(data)}  {name}\n" for name, data in sorted(files.items())).encode()
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    for name, data in files.items():
        image.write(os.path.join(output, name), data)
    sign(os.path.join(output, "SHA256SUMS"))
    return files


def main():
    if sys.argv[1:] == ["--targets"]:
        print("\n".join([*image.PROGRAMS, image.GATE, *(f"sim/{name}" for name in image.SIMULATED)]))
        return
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(sys.argv[2])
        return
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    check(sys.argv[1])
    builds = [(build, DpkgRoot(sysroot)) for build, _, sysroot in (word.partition("=") for word in sys.argv[2:])]
    for name, data in sorted(write_release(sys.argv[1], builds).items()):
        print(f"{len(data) / 1e6:8.2f} MB  {name}")


main()
