#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares sim/cuda with NVIDIA's headers, where a machine has them (CUDA_HOME, or
/usr/local/cuda). It compares every constant, the size of every structure, the offset of every member, and
every name and version that is served. Also compares src/preload/launch/launches.h with the
functions that the header declares and the libcuda for linking exports.

    cuda_header.py SOURCE_ROOT
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

from compiler import compiler

ROOT = sys.argv[1]
INCLUDE = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
OURS = sorted(glob.glob(os.path.join(ROOT, "sim/cuda/api*.h"))) + [os.path.join(ROOT, "sim/cuda/errors.h")]

# Where ours differ on purpose: several structures of NVIDIA's in one, or an older one under its own
# name.
MEMBERS = {
    "CUmemAllocationProp": {"compressionType": "allocFlags.compressionType",
                            "gpuDirectRDMACapable": "allocFlags.gpuDirectRDMACapable", "usage": "allocFlags.usage",
                            "reserved": "allocFlags.reserved"},
}
SKIPPED = {"CUgraphNodeParams": {"flags", "copyCtx", "copyParams", "graph", "event", "free", "reserved"},
           "CUlaunchAttribute": {"align"},
           "CUDA_EXTERNAL_MEMORY_HANDLE_DESC": {"handle", "name", "nvSciBufObject", "fd"},
           "CUDA_KERNEL_NODE_PARAMS": set(), "CUipcMemHandle": set()}


def without_comments(path):
    with open(path) as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


def constants():
    names = set()
    for path in OURS:
        text = without_comments(path)
        names |= set(re.findall(r"^\s*(CUD?A?_\w+) = ", text, re.M)) | set(re.findall(r"X\((CUDA_\w+),", text))
    return sorted(names)


def structures():
    """Name -> members of the structures that are declared with a name at their end."""
    found = {}
    for path in OURS:
        for name, body in re.findall(r"^typedef (?:struct|union) (\w+) \{\n(.*?)^\} \1;", without_comments(path), re.M | re.S):
            flat = re.sub(r"(?:struct|union) \{(.*?)\} ?(\w*);", r"\1 int \2;" if False else r"\1", body, flags=re.S)
            members = set()
            for declaration in flat.split(";"):
                for part in declaration.split(","):
                    m = re.search(r"(\w+)\s*(?:\[[^\]]*\])*\s*$", part.strip())
                    if m:
                        members.add(m.group(1))
            found[name] = members - SKIPPED.get(name, set())
    return found


def program(header, names, shapes):
    lines = ["#include <stddef.h>", "#include <stdio.h>", header, "int main(void) {"]
    lines += ['printf("%s %%lld\\n", (long long) %s);' % (n, n) for n in names]
    for name, members in sorted(shapes.items()):
        lines.append('printf("sizeof %s %%zu\\n", sizeof(%s));' % (name, name))
        for member in sorted(members):
            member = MEMBERS.get(name, {}).get(member, member)
            lines.append('printf("%s.%s %%zu\\n", offsetof(%s, %s));' % (name, member, name, member))
    return "\n".join(lines + ["return 0; }", ""])


def run(text, *flags):
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/p.c", "w") as f:
            f.write(text)
        p = subprocess.run([*compiler(), "-std=gnu11", "-w", "-o", folder + "/p", folder + "/p.c", *flags],
                           capture_output=True, text=True)
        if p.returncode != 0:
            raise AssertionError(p.stderr)
        return subprocess.run([folder + "/p"], check=True, capture_output=True, text=True).stdout.splitlines()


def served():
    rows = []
    for path in glob.glob(os.path.join(ROOT, "sim/cuda/names_*.h")):
        rows += re.findall(r"X\((\w+), (\w+), (\d+), (true|false)\)", without_comments(path))
    return rows


class Header(unittest.TestCase):
    def test_numbers_and_layouts(self):
        names, shapes = constants(), structures()
        self.assertGreater(len(names), 150)
        self.assertGreater(len(shapes), 20)
        ours = run(program("".join('#include "%s"\n' % p for p in OURS), names, shapes), "-I", os.path.join(ROOT, "src"), "-I", ROOT)
        theirs = run(program("#include <cuda.h>", names, shapes), "-I", INCLUDE)
        self.assertEqual([line for line in zip(ours, theirs) if line[0] != line[1]], [])

    def test_names_and_versions(self):
        with open(os.path.join(INCLUDE, "cudaTypedefs.h")) as f:
            types = set(re.findall(r"\*PFN_(\w+?)_v(\d+)(_ptds|_ptsz)?\)", f.read()))
        elsewhere = {("cuGraphInstantiate", "12000", ""),  # a macro of cuda.h
                     ("cuGetProcAddress", "12000", "_ptsz")}
        wrong = []
        for name, symbol, version, twin in served():
            suffix = re.search(r"(_ptds|_ptsz)?$", symbol).group(0)
            if (suffix != "") != (twin == "true") or (name, version, suffix) not in types | elsewhere:
                wrong.append((name, symbol, version))
        self.assertEqual(wrong, [])

    def test_what_programs_link_to(self):
        """For each served function, the symbol that cuda.h maps its name to."""
        with open(os.path.join(INCLUDE, "cuda.h")) as f:
            text = f.read()
        now = dict(re.findall(r"^\s*#define (cu[A-Z]\w*)\s+(cu\w+)\s*$", text, re.M))
        symbols = {row[1] for row in served()}
        missing = [(name, symbol) for name, symbol in now.items()
                   if name in {row[0] for row in served()} and symbol not in symbols]
        self.assertEqual(missing, [])
        twins = re.findall(r"^\s*#define (cu\w+)\s+__CUDA_API_PT([DS])([SZ])\((cu\w+)\)", text, re.M)
        missing = [name for name, a, b, base in twins
                   if base in symbols and base + "_pt" + a.lower() + b.lower() not in symbols]
        self.assertEqual(missing, [])

    def test_what_the_gate_stands_in_front_of(self):
        """launches.h has every launch of every version, every host function, every copy
        and fill, and every function that destroys a context or stream, and no others."""
        with open(os.path.join(ROOT, "src/preload/launch/launches.h")) as f:
            listed = f.read()
        gate = set(re.findall(r"X\(cu\w+, (cu\w+), [01]\)", listed))
        for symbol, own in re.findall(r"GATE_COPY\(X, cu\w+,\s+(cu\w+),\s+(pt[ds][sz])\)", listed):
            gate |= {symbol, symbol + "_" + own}
        with open(os.path.join(INCLUDE, "cuda.h")) as f:
            text = f.read()
        there = set(re.findall(r"CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
        for a, b, base in re.findall(r"#define cu\w+\s+__CUDA_API_PT([DS])([SZ])\((cu\w+)\)", text):
            there.add(base + "_pt" + a.lower() + b.lower())
        for path in glob.glob(os.path.join(INCLUDE, "../lib*/*/libcuda.so")):
            listed = subprocess.run(["readelf", "--wide", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
            there |= set(re.findall(r" FUNC +(?:GLOBAL|WEAK) +DEFAULT +\d+ (cu[A-Z]\w*)", listed))
        self.assertGreater(len(there), 400)
        # never held: copies in batches; not reachable: those with addresses of 32 bits, which have
        # successors
        never = re.compile(r"Batch|WithAttributes")
        wanted = {name for name in there if re.match(r"cuMem(cpy|set)", name) and not never.search(name)
                  and re.sub(r"(_pt[sd][sz])?$", r"_v2\1", name) not in there}
        wanted |= {name for name in there if re.match(
            r"cu(Launch|GraphLaunch|CtxDestroy|CtxDetach|GreenCtxDestroy|DevicePrimaryCtx(Release|Reset)|StreamDestroy|StreamAddCallback|GetProcAddress)",
            name)}
        self.assertEqual(sorted(wanted - gate), [])
        # only in the header's table of types, or exported without a declaration by old drivers
        self.assertEqual(sorted(gate - there - {"cuGetProcAddress_ptsz", "cuGetProcAddress_v2_ptsz", "cuGetProcAddress"}), [])


if __name__ == "__main__":
    if not os.path.exists(os.path.join(INCLUDE, "cuda.h")):
        print("skipped: no cuda.h in " + INCLUDE)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
