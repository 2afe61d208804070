# SPDX-License-Identifier: Apache-2.0
"""What call1.py reads out of the machine, of traces and of the probe's answers."""
import collections
import os
import re
import struct

from call import HERE

CONTROL = 0x2A
CONTROLS = {0x20801210: "SET_CTXSW_PREEMPTION_MODE", 0xA06C0103: "SET_TIMESLICE", 0xA06C0105: "PREEMPT", 0x2080110B: "DISABLE_CHANNELS"}
CALLS = r"^(ioctl|mmap|mmap64|munmap|mremap|syscall)(@|$)"
LINE = 150


# ---- the machine ----


def machine(call):
    status, _ = call.step("machine", 60, ["sh", os.path.join(HERE, "machine.sh")])
    if status is None:
        return
    with open(os.path.join(call.folder, "machine.txt"), errors="replace") as f:
        text = f.read()
    for pattern in (r"^Linux .*", r"^NVRM version.*", r"^torch .*", r"^libcuda .*", r"^uvm_disable_hmm .+", r"^ptrace_scope .+"):
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            call.say(found[0][:LINE])
    call.say("card: " + (re.search(r"^card (.*)", text, re.MULTILINE) or [0, "unknown"])[1])
    if re.search(r"^Linux \S+ 4\.4\.0", text, re.MULTILINE) and not call.simulated:
        call.say("This kernel is gVisor's, or calls itself so: no lock can be had on the driver's files (ENOLCK), the library refuses "
                 "every client, and only traces and facts are of use.")
    slots(call, text)


def slots(call, text):
    """libcuda calls what the library interposes through slots (JUMP_SLOT or GLOB_DAT), or not at all."""
    found = re.search(r"^libcuda (\S+)", text, re.MULTILINE)
    if not found:
        return
    status, _ = call.step("slots", 30, ["readelf", "-rW", found[1]])
    if status != 0:
        call.say("slots of libcuda: no readelf")
        return
    kinds = collections.defaultdict(list)
    with open(os.path.join(call.folder, "slots.txt")) as f:
        for words in map(str.split, f):
            if len(words) >= 5 and re.match(CALLS, words[4]):
                kinds[words[2]].append(words[4].split("@")[0])
    call.say("slots of libcuda: " + ("; ".join("%s %s" % (kind, " ".join(names)) for kind, names in kinds.items()) or "none"))


# ---- traces ----


def events(path, verb):
    """The fields of each line with that verb."""
    if not os.path.exists(path):
        return
    with open(path, errors="replace") as f:
        for line in f:
            if line.startswith(verb + " "):
                yield dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)


def before_after(field):
    before, _, after = field.partition("/")
    return bytes.fromhex(before), bytes.fromhex(after)


def parameter(cmd, inner):
    """The parameter that decides, in words."""
    if cmd == 0xA06C0103 and len(inner) >= 8:
        return "%d us" % struct.unpack_from("<Q", inner)[0]
    if cmd == 0x20801210 and len(inner) >= 20:
        return "flags %d, compute mode %d" % (struct.unpack_from("<I", inner)[0], struct.unpack_from("<I", inner, 12)[0])
    return "%d bytes" % len(inner)


def controls(call, path):
    """The controls of scheduling that one context makes, with the driver's own answers."""
    seen = collections.Counter()
    for event in events(path, "ioctl"):
        if int(event.get("nr", "0"), 16) != CONTROL or "outer" not in event:
            continue
        before, after = before_after(event["outer"])
        if len(before) < 32 or event.get("file", "").startswith("nvidia-uvm"):
            continue
        cmd, status = struct.unpack_from("<I", before, 8)[0], struct.unpack_from("<I", after, 28)[0]
        if cmd in CONTROLS:
            inner = before_after(event["inner"])[0] if "inner" in event else b""
            seen["%s (%s) status 0x%x" % (CONTROLS[cmd], parameter(cmd, inner), status)] += 1
    call.say("scheduling by libcuda for a context: " + (", ".join("%d x %s" % (n, what) for what, n in seen.items()) or "no control"))


def uvm_mappings(call, path):
    seen = collections.Counter("%s bytes prot %s" % (e["length"], e["prot"]) for e in events(path, "mmap")
                               if e.get("file", "").startswith("nvidia-uvm"))
    call.say("mappings of nvidia-uvm by a context: " + (", ".join("%d x %s" % (n, what) for what, n in seen.items()) or "none"))


# ---- the probe ----


def probe(call, path):
    if not os.path.exists(path):
        call.say("probe: not run")
        return
    with open(path, errors="replace") as f:
        lines = f.read().splitlines()
    for start in ("group 2", "surface", "dup own-client absent", "dup absent-client status", "time"):
        for line in lines:
            if line.startswith(start):
                call.say("probe: " + line[:LINE])
    lists = [int(line.split()[2], 16) for line in lines if line.startswith("fb list")]
    known = [int(line.split()[2], 16) for line in lines if line.startswith("fb index") and "status 0x0 " in line]
    call.say("probe: lengths of the fb list %s; indices %s" % (ranges(lists), ranges(known)))


def ranges(numbers):
    """1, 2, 3 and 7 as 0x1-0x3 0x7"""
    parts = []
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return " ".join("0x%x" % a if a == b else "0x%x-0x%x" % (a, b) for a, b in parts) or "none"
