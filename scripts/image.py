#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the container image from what was built and from the Debian packages that it was linked with, without a daemon.

    scripts/image.py BUILD OUTPUT [NAME:TAG]    an OCI archive; `docker load` and `ctr images import` read it as well
    scripts/image.py --rootfs BUILD FOLDER      the same files in a folder: what the Dockerfile copies

With --sysroot FOLDER before these, BUILD is for another processor and FOLDER is what scripts/sysroot.sh made.

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

from dpkg_root import DpkgRoot, read

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = ["aliquot", "aliquot-resize", "aliquot-run", "aliquot-sample", "aliquot-sim", "aliquot-smi", "kubectl-inspect-cgpu"]
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


def in_image(path):
    return path.lstrip("/") if path.startswith("/usr/") else "usr" + path


def libraries(root, programs):
    """path in the image -> path in root, of all that the loader takes for these programs, itself included"""
    found = root.libraries(programs)
    return {in_image(path): path for path in found | {root.library(name) for name in FOR_NVML if root.library(name)}}


def packages(root, paths):
    """Licences, and what vulnerability scanners read: the packages that have files in the image."""
    entries = {}
    for package in root.owners(paths):
        name = package.split(":")[0]
        entries[f"var/lib/dpkg/status.d/{name}"] = (0o644, root.status(package).encode())
        notice = root.copyright(package)
        if notice:
            entries[f"usr/share/doc/{name}/copyright"] = (0o644, notice)
    return entries


def contents(build, root):
    """path -> (mode, bytes), (mode, None) for a folder, (None, target) for a symbolic link"""
    programs = [os.path.join(build, name) for name in PROGRAMS]
    libs = libraries(root, programs)
    entries = {path: (0o644, text.encode()) for path, text in TEXTS.items()}
    entries.update({path: (0o755, None) for path in FOLDERS})
    entries["tmp"] = (0o1777, None)
    entries.update({path: (None, target) for path, target in LINKS.items()})
    entries.update({f"usr/bin/{name}": (0o755, root.strip(path)) for name, path in zip(PROGRAMS, programs)})
    entries.update({path: (0o755, read(root.root + there)) for path, there in libs.items()})
    entries[f"usr/lib/aliquot/{GATE}"] = (0o755, read(os.path.join(build, GATE)))
    entries.update({f"usr/lib/aliquot/sim/{name}": (0o755, root.strip(os.path.join(build, "sim", name))) for name in SIMULATED})
    entries["usr/share/doc/aliquot/copyright"] = (0o644, read(os.path.join(HERE, "LICENSE")))
    entries.update(packages(root, libs.values()))
    return with_folders(entries)


def with_folders(entries):
    for path in list(entries):
        while path := os.path.dirname(path):
            entries.setdefault(path, (0o755, None))
    return entries


def epoch():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    if not shutil.which("git"):
        return 0
    p = subprocess.run(["git", "-c", "safe.directory=*", "-C", HERE, "log", "-1", "--format=%ct"],
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


def version():
    """as the programs have it"""
    return re.search(r"^ +version : '(.*)',$", read(os.path.join(HERE, "meson.build")).decode(), re.M).group(1)


def archive(build, root, reference):
    when = epoch()
    reference = full_name(reference or f"aliquot:{version()}")
    tag = reference.rpartition(":")[2]
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layer, a = tar_of(contents(build, root), when), Archive()
    gz = a.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed(layer))
    config = a.json_blob("application/vnd.oci.image.config.v1+json", {
        "architecture": root.architecture, "os": "linux", "created": created,
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/aliquot"], "Env": ["PATH=/usr/bin"],
                   "Labels": {"org.opencontainers.image.title": "aliquot", "org.opencontainers.image.version": version(),
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
    arguments, root = sys.argv[1:], ""
    if arguments[:1] == ["--sysroot"]:
        root, arguments = arguments[1], arguments[2:]
    if len(arguments) == 3 and arguments[0] == "--rootfs":
        with tarfile.open(fileobj=io.BytesIO(tar_of(contents(arguments[1], DpkgRoot(root)), epoch()))) as tar:
            # Our own archive: Python 3.14 refuses absolute links unless asked.
            tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
            tar.extractall(arguments[2])
        return
    if len(arguments) not in (2, 3) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    data, reference, size, compressed = archive(arguments[0], DpkgRoot(root), arguments[2] if len(arguments) == 3 else "")
    write(arguments[1], data)
    print(f"{arguments[1]}: {reference}, {size / 1e6:.1f} MB, {compressed / 1e6:.1f} MB compressed")


def write(path, data):
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
