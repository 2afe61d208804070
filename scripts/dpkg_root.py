# SPDX-License-Identifier: Apache-2.0
"""Files and packages of a Debian root: this machine's, or a folder that scripts/sysroot.sh filled for another processor."""

import os
import re
import subprocess
import tempfile

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


def dynamic(path):
    """the loader that a program names, or None, and the libraries that it needs by name"""
    text = output_of("readelf", "--wide", "--program-headers", "--dynamic", path)
    loader = re.search(r"program interpreter: (\S+)\]", text)
    return loader and loader.group(1), re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def owners_in(found):
    """The packages in an answer of `dpkg-query -S`: "PACKAGE[, PACKAGE]...: PATH". Lines about diversions ("diversion by
    PACKAGE from: PATH", "local diversion to: PATH") name no owner of a file."""
    lines = [line for line in found.splitlines() if not line.startswith(("diversion by ", "local diversion "))]
    return sorted({line.split(": ")[0].split(",")[0] for line in lines})


class DpkgRoot:
    """root: "" for this machine"""

    def __init__(self, root=""):
        self.root = root.rstrip("/")
        native = output_of("dpkg", "--print-architecture").strip()
        self.architecture = read(self.root + "/var/lib/dpkg/arch").decode().split()[0] if self.root else native
        if self.architecture not in TRIPLETS:
            raise SystemExit(f"no release is made for {self.architecture}: only for {', '.join(TRIPLETS)}")
        self.triplet = TRIPLETS[self.architecture]

    def query(self, *arguments):
        """what dpkg-query prints; files without an owner are no error"""
        command = ["dpkg-query", f"--admindir={self.root}/var/lib/dpkg", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    def library(self, name):
        """the path of a library in this root, without the root"""
        for folder in ("/lib/" + self.triplet, "/usr/lib/" + self.triplet):
            if os.path.exists(f"{self.root}{folder}/{name}"):
                return f"{folder}/{name}"
        return None

    def libraries(self, programs):
        """the paths in this root, without the root, of all that the loader takes for these programs, itself included"""
        found, pending = set(), []
        for program in programs:
            loader, needed = dynamic(program)
            if loader:
                found.add(loader)
                pending += [(program, name) for name in needed]
        loaders = {os.path.basename(path) for path in found}
        while pending:
            needing, name = pending.pop()
            path = self.library(name)
            if name in loaders or path in found:
                continue
            if not path:
                raise SystemExit(f"{needing} needs {name}, which is not installed")
            found.add(path)
            pending += [(path, further) for further in dynamic(self.root + path)[1]]
        return found

    def needed_directly(self, programs):
        """the names of the libraries that these programs themselves ask for"""
        return sorted({name for program in programs for name in dynamic(program)[1]})

    def owners(self, paths):
        """the packages of these files; dpkg knows some under /lib that lie under /usr/lib"""
        names = set()
        for path in paths:
            real = os.path.realpath(self.root + path).removeprefix(self.root)
            names |= {path, real, real.removeprefix("/usr")}
        return owners_in(self.query("-S", *sorted(names)))

    def status(self, package):
        return self.query("-s", package)

    def field(self, package, name):
        return self.query("-W", "-f", "${%s}\n" % name, package).partition("\n")[0]

    def copyright(self, package):
        """the bytes of the package's licence notice, or None"""
        path = f"{self.root}/usr/share/doc/{package.split(':')[0]}/copyright"
        return read(path) if os.path.exists(path) else None

    def dependency(self, library):
        """the package and its least version, as the library's own package says them: "libc6 (>= 2.36)\""""
        (package,) = self.owners([self.library(library)])
        stem, _, version = library.partition(".so.")
        for name in (package, package.split(":")[0], f"{package.split(':')[0]}:{self.architecture}"):
            path = f"{self.root}/var/lib/dpkg/info/{name}.shlibs"
            if not os.path.exists(path):
                continue
            for line in read(path).decode().splitlines():
                words = line.split(maxsplit=2)
                if words[:2] == [stem, version]:
                    return words[2]
        raise SystemExit(f"{package} does not say which version of {library} it has")

    def strip(self, path):
        """the program's bytes without symbols and debugging information"""
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run([f"{self.triplet}-strip", "--strip-unneeded", "-o", out.name, path], check=True)
            return read(out.name)
