#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the container image from what was built and from the Debian packages that it was linked with, without a daemon.

    scripts/image.py BUILD OUTPUT [NAME:TAG]    an OCI archive; `docker load` and `ctr images import` read it as well
    scripts/image.py --rootfs BUILD FOLDER      the same files in a folder: what the Dockerfile copies

Every byte follows from BUILD and the installed packages: entries are sorted, belong to root and carry one time
(SOURCE_DATE_EPOCH, else that of the commit)."""

import datetime
import gzip
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

PROGRAMS = ["aliquot", "aliquot-run", "aliquot-sim", "aliquot-smi", "kubectl-inspect-cgpu"]
GATE = "libaliquot.so"  # what the node agent installs for isolated containers
SIMULATED = ["libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi"]  # what it gives containers on a simulated driver
# Of glibc, and no program here is linked with them: libnvidia-ml.so.1, which comes with the host's
# driver, asks for them by name.
FOR_NVML = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"]
USER = 65532
FOLDERS = ["dev", "etc", "host", "proc", "run", "sys", "tmp", "usr/bin", "var/lib/aliquot"]
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/bin", "var/run": "/run"}
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/:/nologin\naliquot:x:{USER}:{USER}:aliquot:/:/nologin\n",
    "etc/group": f"root:x:0:\naliquot:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def said(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


def libraries(programs):
    """path in the image -> path here, of all that the loader takes for these programs, itself included"""
    found = {}
    for program in programs:
        for line in said("ldd", program).splitlines():
            m = re.match(r"\s+(?:(\S+) => )?(/\S+) \(0x", line)
            if m:
                found[m.group(2)] = m.group(2)
            elif "not found" in line:
                sys.exit(f"image: {program} needs {line.split()[0]}, which is not installed")
    libc = next(path for path in found if path.endswith("/libc.so.6"))
    for name in FOR_NVML:
        path = os.path.join(os.path.dirname(libc), name)
        if os.path.exists(path):
            found[path] = path
    return {("" if path.startswith("/usr/") else "usr") + path: path for path in found}


def owners(paths):
    """the packages of these files; dpkg knows some under /lib that lie under /usr/lib"""
    names = set()
    for path in paths:
        real = os.path.realpath(path)
        names |= {path, real, real.removeprefix("/usr")}
    found = subprocess.run(["dpkg-query", "-S", *sorted(names)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return sorted({line.split(": ")[0].split(",")[0] for line in found.stdout.splitlines()})


def packages(paths):
    """Licences, and what vulnerability scanners read: the packages that have files in the image."""
    entries = {}
    for package in owners(paths):
        name = package.split(":")[0]
        entries[f"var/lib/dpkg/status.d/{name}"] = (0o644, said("dpkg-query", "-s", package).encode())
        notice = f"usr/share/doc/{name}/copyright"
        if os.path.exists("/" + notice):
            entries[notice] = (0o644, read("/" + notice))
    return entries


def stripped(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "--strip-unneeded", "-o", out.name, path], check=True)
        return read(out.name)


def contents(build):
    """path -> (mode, bytes), (mode, None) for a folder, (None, target) for a symbolic link"""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    programs = [os.path.join(build, name) for name in PROGRAMS]
    libs = libraries(programs)
    entries = {path: (0o644, text.encode()) for path, text in TEXTS.items()}
    entries.update({path: (0o755, None) for path in FOLDERS})
    entries["tmp"] = (0o1777, None)
    entries.update({path: (None, target) for path, target in LINKS.items()})
    entries.update({f"usr/bin/{name}": (0o755, stripped(path)) for name, path in zip(PROGRAMS, programs)})
    entries.update({path.lstrip("/"): (0o755, read(there)) for path, there in libs.items()})
    entries[f"usr/lib/aliquot/{GATE}"] = (0o755, read(os.path.join(build, GATE)))
    entries.update({f"usr/lib/aliquot/sim/{name}": (0o755, stripped(os.path.join(build, "sim", name))) for name in SIMULATED})
    entries["usr/share/doc/aliquot/copyright"] = (0o644, read(os.path.join(root, "LICENSE")))
    entries.update(packages(libs.values()))
    for path in list(entries):
        while path := os.path.dirname(path):
            entries.setdefault(path, (0o755, None))
    return entries


def epoch():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    here = os.path.dirname(os.path.abspath(__file__))
    if not shutil.which("git"):
        return 0
    p = subprocess.run(["git", "-c", "safe.directory=*", "-C", here, "log", "-1", "--format=%ct"],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(p.stdout or 0)


def tar_of(entries, when):
    """sorted, so that a folder stands before what is in it"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(entries):
            mode, data = entries[path]
            info = tarfile.TarInfo(path)
            info.mtime = when
            info.mode = 0o777 if mode is None else mode
            if mode is None:
                info.type, info.linkname, data = tarfile.SYMTYPE, data, None
            elif data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if data else None)
    return out.getvalue()


def packed(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=9) as f:
        f.write(data)
    return out.getvalue()


class Archive:
    """The blobs by digest, and the three files that say what they are."""

    def __init__(self):
        self.entries = {}

    def blob(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        self.entries[f"blobs/sha256/{digest}"] = (0o644, data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def json_blob(self, media_type, value):
        return self.blob(media_type, as_json(value))

    def file(self, path, value):
        self.entries[path] = (0o644, as_json(value))


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def full_name(reference):
    """The name that the kubelet asks for: `ctr images import` keeps a name as it stands, and a pod's "aliquot:1" is
    "docker.io/library/aliquot:1" to it (github.com/distribution/reference, ParseNormalizedNamed)."""
    name, colon, tag = reference.rpartition(":")
    if not colon or not name or "/" in tag:
        sys.exit(f"image: \"{reference}\" must be NAME:TAG")
    first, slash, _ = name.partition("/")
    if not slash:
        return "docker.io/library/" + reference
    return reference if "." in first or ":" in first or first == "localhost" else "docker.io/" + reference


def archive(build, reference):
    when, version = epoch(), said(os.path.join(build, "aliquot"), "--version").split()[1]
    reference = full_name(reference or f"aliquot:{version}")
    tag = reference.rpartition(":")[2]
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layer, a = tar_of(contents(build), when), Archive()
    gz = a.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed(layer))
    config = a.json_blob("application/vnd.oci.image.config.v1+json", {
        "architecture": said("dpkg", "--print-architecture").strip(), "os": "linux", "created": created,
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/aliquot"], "Env": ["PATH=/usr/bin"],
                   "Labels": {"org.opencontainers.image.title": "aliquot", "org.opencontainers.image.version": version,
                              "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "scripts/image.py"}]})
    manifest = a.json_blob("application/vnd.oci.image.manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [gz]})
    # Tools that read OCI archives take the tag from the first annotation, containerd the whole name
    # from the second.
    manifest["annotations"] = {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": reference}
    a.file("oci-layout", {"imageLayoutVersion": "1.0.0"})
    a.file("index.json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]})
    a.file("manifest.json", [{"Config": blob_path(config), "RepoTags": [reference], "Layers": [blob_path(gz)]}])
    return tar_of(a.entries, when), reference, len(layer), gz["size"]


def blob_path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--rootfs":
        with tarfile.open(fileobj=io.BytesIO(tar_of(contents(arguments[1]), epoch()))) as tar:
            tar.extractall(arguments[2])
        return
    if len(arguments) not in (2, 3) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    data, reference, size, compressed = archive(arguments[0], arguments[2] if len(arguments) == 3 else "")
    with open(arguments[1] + ".new", "wb") as f:
        f.write(data)
    os.replace(arguments[1] + ".new", arguments[1])
    print(f"{arguments[1]}: {reference}, {size / 1e6:.1f} MB, {compressed / 1e6:.1f} MB compressed")


main()
