#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a container as a runtime makes it:

    container.py JSON
    container.py -   a JSON per line of the input, one container after another; for each a line
                     {"status": N, "said": its output}

JSON: {"root": one of ROOTS, "mounts": [[path inside, path on the host, read-only]...], "host":
[directories with the same path inside], "seccomp": bool, "env": {}, "command": [...]}. The mounts
are those of the kubelet's answer.

The process is root with the capabilities that containerd and Docker give by default, in its own
mount and PID namespaces. seccomp: the calls for namespaces and mounts that containerd's
RuntimeDefault profile refuses are refused. The exit status is the command's, or 70 if the container
cannot be made."""

import ctypes
import json
import os
import platform
import shutil
import struct
import sys
import tempfile
import traceback

# overlay: the image has /etc and /run in its lower layer. redirect: the same, mounted with
# redirect_dir=on, which metacopy=on implies. bare: the image has neither /etc nor /run. plain: the
# root is a directory, as with the native snapshotter. sealed: overlay, and read-only
# (readOnlyRootFilesystem). links: the image has /etc and /.aliquot as symbolic links.
ROOTS = ("overlay", "redirect", "bare", "plain", "sealed", "links")
CAPABILITIES = 0xA80425FB
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID = 0x20000, 0x8000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 22, 24
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[platform.machine()]


def call(r, what):
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def mount(source, target, kind=None, flags=0, data=None):
    text = [None if t is None else t.encode() for t in (source, target, kind, data)]
    call(LIBC.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]), target)


def make_image(folder, root):
    """The parts of an image that an attack can move. Programs and libraries are those of the
    machine."""
    for name in ("usr", "tmp", "proc", "dev") + (() if root == "bare" else ("run", "var")):
        os.mkdir(os.path.join(folder, name))
    if root == "links":
        for link, target in ("etc", "var/etc"), (".aliquot", "var/aliquot"):
            os.mkdir(os.path.join(folder, target))
            os.symlink(target, os.path.join(folder, link))
    elif root != "bare":
        os.mkdir(os.path.join(folder, "etc"))
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink("/" + name):
            os.symlink(os.readlink("/" + name), os.path.join(folder, name))
        elif os.path.isdir("/" + name):
            os.mkdir(os.path.join(folder, name))
    if root != "bare":
        for name in "passwd", "group", "ld.so.cache":
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, os.path.join(folder, "etc", name))


def overlay(lower, target, base, name, more=""):
    upper, work = (os.path.join(base, f"{name}-{part}") for part in ("upper", "work"))
    os.mkdir(upper)
    os.mkdir(work)
    mount("overlay", target, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}{more}")


def make_root(base, root):
    image, merged = os.path.join(base, "image"), os.path.join(base, "root")
    os.mkdir(image)
    os.mkdir(merged)
    make_image(image, root)
    if root == "plain":
        mount(image, merged, None, MS_BIND)
    else:
        overlay(image, merged, base, "root", ",redirect_dir=" + ("on" if root == "redirect" else "off"))
    overlay("/usr", merged + "/usr", base, "usr")
    for name in os.listdir(merged):
        if name.startswith(("bin", "sbin", "lib")) and not os.path.islink(os.path.join(merged, name)):
            mount("/" + name, os.path.join(merged, name), None, MS_BIND)
    return merged


def make_target(path, directory):
    """Makes a mount as runtimes do. An existing target stays as it is: the mount above it may be
    read-only."""
    if os.path.lexists(path):
        return
    os.makedirs(path if directory else os.path.dirname(path), exist_ok=True)
    if not directory:
        with open(path, "x"):
            pass


def bind(host, target, read_only):
    make_target(target, os.path.isdir(host))
    mount(host, target, None, MS_BIND | MS_REC)
    mount(None, target, None, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | (MS_RDONLY if read_only else 0))


def fill(merged, spec):
    mount("tmpfs", merged + "/dev", "tmpfs", MS_NOSUID, "mode=755")
    for name in "null", "zero", "full", "random", "urandom":
        make_target(f"{merged}/dev/{name}", False)
        mount("/dev/" + name, f"{merged}/dev/{name}", None, MS_BIND)
    if spec["root"] == "sealed":  # before the directories of the host, which may be below /tmp
        mount("tmpfs", merged + "/tmp", "tmpfs", MS_NOSUID | MS_NODEV)
    for folder in spec["host"]:
        bind(folder, merged + folder, True)
    for inside, host, read_only in sorted(spec["mounts"], key=lambda m: m[0].count("/")):  # outer paths first
        bind(host, merged + inside, read_only)


def enter(merged, sealed):
    os.chdir(merged)
    call(LIBC.syscall(ctypes.c_long(SYS_PIVOT_ROOT), b".", b"."), "pivot_root")
    call(LIBC.umount2(b".", MNT_DETACH), "the old root")
    os.chdir("/")
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    if sealed:
        mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY)


# ---- privileges ----

NAMESPACES = 0x7E020000  # every CLONE_NEW... flag of clone(2)
MOUNT_CALLS = range(428, 434)  # open_tree to fspick
CALLS = {"x86_64": (56, [272, 165, 166, 155, 308, *MOUNT_CALLS, 442]), "aarch64": (220, [97, 40, 39, 41, 268, *MOUNT_CALLS, 442])}
CLONE3, ERRNO, EPERM, ENOSYS, ALLOW = 435, 0x50000, 1, 38, 0x7FFF0000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06


def filter_calls():
    """The part of containerd's default profile about namespaces and mounts, for a process without
    CAP_SYS_ADMIN. chroot and ptrace are allowed."""
    clone, refused = CALLS[platform.machine()]
    program = [(LOAD, 0, 0, 0)]
    for number, error in [(n, EPERM) for n in refused] + [(CLONE3, ENOSYS)]:
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]
    program += [(EQUAL, 0, 3, clone), (LOAD, 0, 0, 16), (ANY_BIT, 0, 1, NAMESPACES), (RETURN, 0, 0, ERRNO | EPERM), (RETURN, 0, 0, ALLOW)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *p) for p in program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(text)))
    call(LIBC.prctl(PR_SET_SECCOMP, 2, head, 0, 0), "seccomp")


def drop():
    """The other capabilities of root go with the bounding set at exec."""
    for number in range(64):
        if not CAPABILITIES >> number & 1:
            LIBC.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # the kernel may have fewer


def contain(spec, base):
    """Runs in the first process of the new PID namespace."""
    LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", base, "tmpfs", 0, "size=64m")
    merged = make_root(base, spec["root"])
    fill(merged, spec)
    enter(merged, spec["root"] == "sealed")
    if spec["seccomp"]:
        filter_calls()
    drop()
    os.execvpe(spec["command"][0], spec["command"], spec["env"])


def run(spec):
    """Returns the exit status."""
    with tempfile.TemporaryDirectory() as base:
        call(LIBC.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID), "unshare")
        pid = os.fork()
        if pid == 0:
            try:
                contain(spec, base)
            except OSError as e:
                print(f"cannot make a container: {e}", file=sys.stderr, flush=True)
                os._exit(70)
        status = os.waitpid(pid, 0)[1]
        mount("none", "/", None, MS_REC | MS_PRIVATE)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def run_apart(spec):
    """In a process of its own, without input. Returns the exit status and the output."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(into, 1)
        os.dup2(into, 2)
        status = 70
        try:
            status = run(spec)
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(into)
    with open(out, errors="replace") as f:
        said = f.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def main():
    if sys.argv[1] != "-":
        return run(json.loads(sys.argv[1]))
    for line in sys.stdin:
        status, said = run_apart(json.loads(line))
        print(json.dumps({"status": status, "said": said}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
