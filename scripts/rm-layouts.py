#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the numbers of src/gpu/rm/layouts.txt out of NVIDIA's open kernel modules.

usage: rm-layouts.py [--table FILE] TREE...
       rm-layouts.py [--table FILE] --git REPOSITORY [TAG...]
       rm-layouts.py [--table FILE] --header FILE HEADER...

TREE is an unpacked release or an archive of one (tar); REPOSITORY is a clone of
NVIDIA/open-gpu-kernel-modules. Without a TAG it is the newest one of each branch from 535 on. A
probe is compiled against the headers of each release, and its numbers replace those that the table
has for the branch, or are added to them. Rows stay as they are; a new row has "?" for its numbers
and needs all branches in one run. Nothing of NVIDIA's is kept. Some names
of FB info, and of controls for every caller, may tell of the card's memory. A release with one that
is not classified below ends the run: it is read first, and rewritten by src/preload/memory or
passed on.

The last form writes a C header for the unit test: an assertion for each row, that our HEADERs have
the number. It refuses a table that lacks a constant or a field of theirs.
"""
import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile

FLOOR = 535
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "src/gpu/rm/layouts.txt")
INCLUDES = ("src/common/sdk/nvidia/inc", "src/nvidia/arch/nvalloc/unix/include", "kernel-open/common/inc",
            "kernel-open/nvidia-uvm")
NEEDED = INCLUDES[:3] + ("version.mk",) + tuple(
    f"kernel-open/nvidia-uvm/uvm_{name}.h" for name in ("ioctl", "linux_ioctl", "types"))
HEADERS = ("nvtypes.h", "nvlimits.h", "nvos.h", "nvstatus.h", "nv_escape.h", "nv-ioctl.h", "nv-ioctl-numbers.h",
           "nv-unix-nvos-params-wrappers.h", "uvm_linux_ioctl.h", "class/cl0000.h",
           "class/cl0001.h", "class/cl003e.h", "class/cl0040.h", "class/cl0041.h", "class/cl0070.h",
           "class/cl0080.h", "class/cl00f8.h", "class/cl00fd.h", "class/cl2080.h", "class/cl50a0.h", "class/cl90f1.h", "class/cla06c.h",
           "ctrl/ctrl0000/ctrl0000client.h", "ctrl/ctrl0000/ctrl0000gpu.h", "ctrl/ctrl0000/ctrl0000unix.h",
           "ctrl/ctrl0041.h", "ctrl/ctrl00fd.h", "ctrl/ctrl0080/ctrl0080gpu.h", "ctrl/ctrl2080/ctrl2080fb.h", "ctrl/ctrl2080/ctrl2080fifo.h",
           "ctrl/ctrl2080/ctrl2080gpu.h", "ctrl/ctrl2080/ctrl2080gr.h", "ctrl/ctrla06c.h")
CHANNELS = tuple(f"class/cl{c}06f.h" for c in ("9", "a", "b", "c")) + tuple(
    f"class/cl{c}6f.h" for c in ("a1", "a2", "c3", "c4", "c5", "c8", "c9", "ca"))
NEWER = ("class/cl00e0.h", "class/cl00f3.h", "class/cl00f9.h", "ctrl/ctrl00e0.h")  # not in all releases
# nv.h and nv-linux.h need the kernel's own headers; these lines of them are enough.
FB_HEADER = INCLUDES[0] + "/ctrl/ctrl2080/ctrl2080fb.h"
GENERATED = "src/nvidia/generated"
# Names of FB info that may be an amount of the card's memory. A slice's numbers replace some. The
# others are passed on: positions, other memory, counts, and what the driver keeps for itself.
FB_NAME = re.compile(r"SIZE|FREE|HEAP|RAM|_KB")
FB_REWRITTEN = set("""
    RAM_SIZE TOTAL_RAM_SIZE HEAP_SIZE MAPPABLE_HEAP_SIZE USABLE_RAM_SIZE HEAP_FREE LARGEST_FREE_REGION_SIZE_KB
    PROTECTED_MEM_SIZE_TOTAL_KB PROTECTED_MEM_SIZE_FREE_KB HEAP_RECLAIMABLE""".split())
FB_PASSED = set("""
    BAR1_SIZE BAR1_AVAIL_SIZE BAR1_MAX_CONTIGUOUS_AVAIL_SIZE SMOOTHDISP_RSVD_BAR1_SIZE COMPRESSION_SIZE DRAM_PAGE_STRIDE
    ECC_STATUS_SIZE FB_TAX_SIZE_KB GPU_VADDR_HEAP_SIZE_KB GPU_VADDR_MAPPBLE_SIZE_KB GPU_VADDR_SPACE_SIZE_KB HEAP_BASE_KB
    HEAP_OFFLINE_SIZE HEAP_START L2CACHE_SIZE LARGEST_FREE_REGION_BASE_KB P2P_MAILBOX_SIZE RAM_CFG RAM_LOCATION RAM_TYPE
    SUSPEND_RESUME_RSVD_SIZE TILE_REGION_FREE_COUNT VISTA_RESERVED_HEAP_SIZE""".split())
# The same for controls that a caller without privilege may call, by their parameters. Passed on are
# those of the encoder, of contexts, links, the GSP's own heap, virtual cards and the profiler. So
# are addresses of fabric memory, and protected memory of a confidential machine.
CONTROL = re.compile(
    r"/\*flags=\*/\s+0x([0-9a-f]+)u?,\s+/\*accessRight=\*/\s*0x[0-9a-f]+u?,\s+/\*methodId=\*/\s+(0x[0-9a-f]+)u?,\s+"
    r"/\*paramSize=\*/\s+sizeof\((\w+)\)")
FLAGS_HEADER = "src/nvidia/inc/kernel/rmapi/control.h"
CONTROL_NAME = re.compile(r"MEMORY_INFO|STATS|FREE(?!ZE)|VIDMEM_SIZE|FB_USAGE")
CONTROLS_REWRITTEN = set("NV2080_CTRL_FB_GET_UGPU_MEMORY_INFO_PARAMS NV2080_CTRL_CMD_FB_STATS_GET_PARAMS".split())
CONTROLS_PASSED = set("""
    NV2080_CTRL_GPU_GET_NVENC_SW_SESSION_STATS_PARAMS NV2080_CTRL_GPU_GET_NVFBC_SW_SESSION_STATS_PARAMS
    NV2080_CTRL_GR_GET_CTXSW_STATS_PARAMS NV2080_CTRL_CMD_BUS_GET_C2C_LPWR_STATS_PARAMS NV2080_CTRL_FLA_GET_FABRIC_MEM_STATS_PARAMS
    NV2080_CTRL_GSP_GET_RM_HEAP_STATS_PARAMS NV2080_CTRL_CMD_GSP_GET_LIBOS_HEAP_STATS_PARAMS
    NVA081_CTRL_VGPU_CONFIG_GET_VGPU_FB_USAGE_PARAMS NVA084_CTRL_KERNEL_HOST_VGPU_DEVICE_FREE_STATES_PARAMS
    NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS NVB0CC_CTRL_INTERNAL_FREE_PMA_STREAM_PARAMS
    NV_CONF_COMPUTE_CTRL_CMD_GPU_GET_VIDMEM_SIZE_PARAMS""".split())
LOOSE = re.compile(
    r"#define\s+NV_(?:ABSOLUTE_MAX_IOCTL_SIZE|MAJOR_DEVICE_NUMBER|MINOR_DEVICE_NUMBER_CONTROL_DEVICE|"
    r"CONTROL_DEVICE_MINOR)\b.*\n")
# A name of today, and its name in the oldest releases.
RENAMED = {"NV_MINOR_DEVICE_NUMBER_CONTROL_DEVICE": "NV_CONTROL_DEVICE_MINOR"}
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# The numbers of NVIDIA's kernel driver that src/gpu/rm has, by release. scripts/rm-layouts.py takes
# them out of the headers of NVIDIA's open kernel modules; tests/unit/gpu/rm holds our headers to them.
#
#   size STRUCT           its bytes
#   field STRUCT.FIELD    OFFSET/BYTES
#   start STRUCT.FIELD    OFFSET; its size follows from another row
#   value NAME            a number
#   channel FUNCTION      a class that FUNCTION takes for a channel
#
# Our name, the driver's name, then the number in the first release. NUMBER@BRANCH: so from that
# branch on; "-": the release does not have it. "as TERM": the number differs between releases, and
# is this term of the columns of RM_RELEASES in release.h.
#
# 610.57.04 and 615.71.09 were not compiled. Their calls, parameters of memory, lists of FB info,
# regions, exports, multicast, processes and uvm calls were compared with 595.45.04 in tables of a
# third party, which compiled them, and are the same. The other numbers are taken to be the same. Of
# the highest index of FB info, the highest that is known stands there. A flag of UVM_INITIALIZE, 4,
# is new in 610.43.02, by another table of that kind.
"""
PROBE = """\
#include <stddef.h>
#include <stdio.h>
%(headers)s
#define shift(x) ((0 ? x) %% 32)
#define mask(x) (0xFFFFFFFFu >> (31 - ((1 ? x) %% 32) + ((0 ? x) %% 32)))
#define bits(x) (mask(x) << shift(x))
int main(void) {
%(rows)s
return 0;
}
"""


def decimal(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def branch(version):
    return decimal(version)[0]


def read_table(path):
    """Returns the releases, and the lines: a text, or a row (kind, ours, theirs, numbers, column)."""
    releases, lines = [], []
    with open(path, encoding="utf-8") as file:
        # the head is HEAD, up to the releases
        for line in re.sub(r"\A.*?^(?=releases)", "", file.read(), flags=re.S | re.M).splitlines():
            words = line.split()
            if words[:1] == ["releases"]:
                releases = words[1:]
            elif not words or line.startswith("#"):
                lines.append(line)
            else:
                column = words[-1] if words[-2] == "as" else None
                numbers = {}
                for number in words[3:-2 if column else None]:
                    number, _, first = number.partition("@")
                    start = int(first) if first else 0
                    numbers.update((r, number) for r in releases if branch(r) >= start and number != "?")
                lines.append((*words[:3], numbers, column))
    return releases, lines


def write_table(path, releases, lines):
    out = [HEAD, "releases " + " ".join(releases)]
    for line in lines:
        if isinstance(line, tuple):
            kind, ours, theirs, numbers, column = line
            last, text = None, f"{kind} {ours} {theirs}"
            for release in releases:
                if release not in numbers:
                    sys.exit(f"rm-layouts: {ours} is new: give all branches in one run")
                if numbers[release] != last:
                    text += f" {numbers[release]}" + (f"@{branch(release)}" if last is not None else "")
                    last = numbers[release]
            line = text + (f" as {column}" if column else "")
        out.append(line)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out).rstrip() + "\n")


def statement(kind, theirs):
    struct, _, field = theirs.partition(".")
    at = f"offsetof({struct}, {field})"
    return {
        "size": f'printf("%zu\\n", sizeof({struct}));',
        "field": f'printf("%zu/%zu\\n", {at}, sizeof((({struct} *)0)->{field}));',
        "start": f'printf("%zu\\n", {at});',
        "value": f'printf("0x%llX\\n", (unsigned long long) ({theirs}));',
        "channel": f'printf("0x%llX\\n", (unsigned long long) ({theirs}));',
    }[kind]


def compiled(tree, scratch, statements):
    """Compiles the probe; returns the indices of the statements that this release does not have."""
    headers = [h for h in HEADERS + CHANNELS + NEWER
               if any(os.path.exists(os.path.join(tree, i, h)) for i in INCLUDES)]
    missing = set(HEADERS) - set(headers)
    if missing:
        sys.exit(f"rm-layouts: {tree} has no {' '.join(sorted(missing))}")
    loose = ""
    for name in ("nv-chardev-numbers.h", "nv.h", "nv-linux.h"):
        path = os.path.join(tree, INCLUDES[2], name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                loose += "".join(LOOSE.findall(file.read()))
    loose += "".join(f"#if !defined {new} && defined {old}\n#define {new} {old}\n#endif\n" for new, old in RENAMED.items())
    absent = set()
    source = os.path.join(scratch, "probe.c")
    while True:
        rows = "\n".join('#line %d "row"\n%s' % (i + 1, 'printf("-\\n");' if i in absent else s)
                         for i, s in enumerate(statements))
        text = PROBE % {"headers": "".join(f"#include <{h}>\n" for h in headers) + loose, "rows": rows}
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["cc", "-std=gnu11", "-w", "-fmax-errors=0", "-ftrack-macro-expansion=0", "-o", os.path.join(scratch, "probe"), source] +
                              ["-I" + os.path.join(tree, i) for i in INCLUDES],
                              capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
        if done.returncode == 0:
            return
        bad = {int(n) - 1 for n in re.findall(r"^row:(\d+):\d+: error", done.stderr, re.M)} - absent
        if not bad:
            sys.exit(f"rm-layouts: the probe does not compile against {tree}:\n{done.stderr}")
        absent |= bad


def probe(tree, rows):
    with tempfile.TemporaryDirectory() as scratch:
        compiled(tree, scratch, [statement(kind, theirs) for kind, _, theirs, _, _ in rows])
        out = subprocess.run([os.path.join(scratch, "probe")], capture_output=True, text=True, check=True)
    return out.stdout.split()


def version_of(tree):
    with open(os.path.join(tree, "version.mk"), encoding="utf-8") as file:
        return re.search(r"^NVIDIA_VERSION\s*=\s*(\S+)", file.read(), re.M).group(1)


def newest_tags(repository):
    tags = subprocess.run(["git", "-C", repository, "tag"], capture_output=True, text=True, check=True).stdout.split()
    newest = {}
    for tag in sorted((t for t in tags if re.fullmatch(r"\d+(\.\d+)+", t)), key=decimal):
        if branch(tag) >= FLOOR:
            newest[branch(tag)] = tag
    return list(newest.values())


def unpack(archive, to):
    with tarfile.open(archive) as tar:
        tar.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(to)
    if not os.path.exists(os.path.join(to, "version.mk")):
        to = os.path.join(to, os.listdir(to)[0])
    return to


def trees(args, scratch):
    """Yields the unpacked trees that the arguments name."""
    if args.git:
        for tag in args.tree or newest_tags(args.git):
            archive = os.path.join(scratch, tag + ".tar")
            subprocess.run(["git", "-C", args.git, "archive", "-o", archive, tag, "--", *NEEDED, FLAGS_HEADER, ":(glob)" + GENERATED + "/g_*_nvoc.c"],
                           check=True)
            yield unpack(archive, os.path.join(scratch, tag))
    else:
        for n, tree in enumerate(args.tree):
            yield tree if os.path.isdir(tree) else unpack(tree, os.path.join(scratch, str(n)))


def unclassified_fb(text):
    """The names of FB info in ctrl2080fb.h that may be amounts and are in neither set."""
    text = text[:re.search(r"^#define\s+NV2080_CTRL_FB_INFO_INDEX_MAX\s", text, re.M).start()]
    names = re.findall(r"^#define\s+NV2080_CTRL_FB_INFO_INDEX_(\w+)\s", text, re.M)
    return sorted({name for name in names if FB_NAME.search(name)} - FB_REWRITTEN - FB_PASSED)


def everybody(text):
    """The flag of controls for callers without privilege, in rmapi/control.h. It differs between releases."""
    return int(re.search(r"^#define\s+RMCTRL_FLAGS_NON_PRIVILEGED\s+(0x[0-9a-fA-F]+)", text, re.M).group(1), 16)


def unclassified_controls(text, flag):
    """The same of the controls in a generated file, each with its number."""
    return sorted(f"{number} {name}" for flags, number, name in CONTROL.findall(text)
                  if int(flags, 16) & flag and CONTROL_NAME.search(name) and
                  name not in CONTROLS_REWRITTEN | CONTROLS_PASSED)


def check_classified(tree, version):
    """Ends the run at a name that was not read yet."""
    with open(os.path.join(tree, FB_HEADER), encoding="utf-8") as file:
        found = ["FB info " + name for name in unclassified_fb(file.read())]
    sources = [n for n in os.listdir(os.path.join(tree, GENERATED)) if re.fullmatch(r"g_\w+_nvoc\.c", n)]
    with open(os.path.join(tree, FLAGS_HEADER), encoding="utf-8") as file:
        flag = everybody(file.read())
    if not sources:
        sys.exit(f"rm-layouts: {version} has no {GENERATED}/g_*_nvoc.c")
    for name in sources:
        with open(os.path.join(tree, GENERATED, name), encoding="utf-8", errors="replace") as file:
            found += ["control " + control for control in unclassified_controls(file.read(), flag)]
    if found:
        sys.exit(f"rm-layouts: {version} may tell of the card's memory by what is not classified: " + "; ".join(found))


def names_of(header):
    """Yields what the table must have of our header: constants, structures and their fields."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    yield from re.findall(r"^#define ((?:RM|UVM)_[A-Z0-9_]+)[ ]+[^\s\\]", text, re.M)
    for body in re.findall(r"\benum \w*\s*{(.*?)}", text, re.S):
        yield from re.findall(r"\b((?:RM|UVM)_[A-Z0-9_]+) =", body)
    for name, body in re.findall(r"typedef struct (\w+) {(.*?)^}", text, re.S | re.M):
        yield name
        for declaration in body.split(";")[:-1]:
            fields = re.sub(r"\[\w+\]", "", declaration).split(None, 1)[1]
            for field in re.split(r"[\s,]+", fields):
                if field and not re.fullmatch(r"pad\d*|rest", field):
                    yield f"{name}.{field}"


def expected(kind, ours, number):
    """Returns a C condition: ours has the number."""
    struct, _, field = ours.partition(".")
    at, _, size = number.partition("/")
    return {
        "size": f"sizeof({struct}) == {number}",
        "field": f"offsetof({struct}, {field}) == {at} && sizeof((({struct} *) 0)->{field}) == {size}",
        "start": f"offsetof({struct}, {field}) == {at}",
        "value": f"{ours} == {number}",
    }[kind]


def assertions(releases, row, by_size):
    """Yields (condition, text) for a row. by_size: structures whose length differs by release."""
    kind, ours, theirs, numbers, term = row
    present = [r for r in releases if numbers[r] != "-"]
    yield expected(kind, ours, numbers[present[-1]]), f"{ours}: {theirs} of {present[-1]}"
    if term:
        for release in releases:
            value = re.sub(r"[a-z]\w*", lambda m, r=release: f"RELEASE_{branch(r)}_{m[0]}", term)
            number = numbers[release].replace("-", "0").partition("/")[0]
            yield f"{value} == {number}", f"{ours}: {theirs} of {release}"
        return
    if len({numbers[r] for r in present}) > 1:
        sys.exit(f"rm-layouts: {ours} differs between releases: its row needs an `as`")
    if numbers[releases[0]] == "-" and ours.partition(".")[0] not in by_size:
        sys.exit(f"rm-layouts: {releases[0]} lacks {ours}: its row needs an `as`")


def write_header(path, releases, rows, headers):
    new = [ours for _, ours, _, numbers, _ in rows if len(numbers) < len(releases)]
    if new:
        sys.exit(f"rm-layouts: no numbers yet: {' '.join(new)}; see --help")
    missing = {name for header in headers for name in names_of(header)} - {ours for _, ours, *_ in rows}
    if missing:
        sys.exit(f"rm-layouts: the table lacks {' '.join(sorted(missing))}; see docs/internals/gpu-results.md")
    by_size = {ours for kind, ours, _, _, term in rows if kind == "size" and term}
    out = ["/* Made of layouts.txt by scripts/rm-layouts.py. */"]
    for row in rows:
        if row[0] != "channel":
            out += [f'_Static_assert({test}, "{text}");' for test, text in assertions(releases, row, by_size)]
    channels = [n for kind, _, _, numbers, _ in rows if kind == "channel" for n in set(numbers.values()) - {"-"}]
    out.append(f"static const uint32_t channels[] = {{{', '.join(channels)}}};")
    out.append(f"enum {{ FLOOR = {branch(releases[0])}, NEWEST = {branch(releases[-1])}, RELEASES = {len(releases)} }};")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git")
    parser.add_argument("--table", default=TABLE)
    parser.add_argument("--header")
    parser.add_argument("tree", nargs="*")
    args = parser.parse_args()
    if not args.git and not args.tree:
        parser.error("neither a tree nor --git")
    releases, lines = read_table(args.table)
    rows = [line for line in lines if isinstance(line, tuple)]
    if args.header:
        write_header(args.header, releases, rows, args.tree)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for tree in trees(args, scratch):
            version = version_of(tree)
            check_classified(tree, version)
            releases = [r for r in releases if branch(r) != branch(version)] + [version]
            for row, number in zip(rows, probe(tree, rows)):
                row[3][version] = number
    releases.sort(key=decimal)
    for _, ours, theirs, numbers, _ in rows:
        if all(numbers.get(r) == "-" for r in releases):
            sys.exit(f"rm-layouts: no release has {theirs} ({ours})")
    write_table(args.table, releases, lines)


if __name__ == "__main__":
    main()
