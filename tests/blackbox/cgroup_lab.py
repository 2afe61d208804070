# SPDX-License-Identifier: Apache-2.0
"""Real cgroups for a test: a cgroup of its own is the root of what it sees at /sys/fs/cgroup.

The test runs in a mount namespace and a cgroup namespace. The machine's own cgroups are neither moved nor limited."""
import os
import subprocess
import sys
import tempfile

INSIDE = "ALIQUOT_CGROUP_TEST_INSIDE"
ROOT = "/sys/fs/cgroup"


def skip(text):
    print("skipped: " + text, flush=True)
    os._exit(77)


def mount_v2(at):
    return subprocess.run(["mount", "-t", "cgroup2", "none", at], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def remove_tree(top):
    """Cgroups have no files that could be removed; a process that ends may still be in one."""
    for path, _, _ in os.walk(top, topdown=False):
        os.rmdir(path)


def run_below(own):
    """This test again, in the cgroup `own`, which is then the root of its namespace. Returns its exit code."""
    def enter():
        with open(own + "/cgroup.procs", "w") as f:
            f.write("0")
    os.environ[INSIDE] = "inner"
    return subprocess.run(["unshare", "-mC", "--propagation", "private", sys.executable, *sys.argv], preexec_fn=enter).returncode


def outer():
    with tempfile.TemporaryDirectory() as tree:
        done = mount_v2(tree)
        if done.returncode != 0:
            skip("cgroup v2 cannot be mounted: " + done.stderr.strip())
        own = "%s/aliquot-test-%d" % (tree, os.getpid())
        try:
            os.mkdir(own)
        except OSError as e:
            subprocess.run(["umount", tree], check=True)
            skip("no cgroup of its own: %s" % e.strerror)
        try:
            code = run_below(own)
        finally:
            remove_tree(own)
            subprocess.run(["umount", tree], check=True)
    os._exit(code)


def enter_cgroups():
    """Starts this test again, as the root of a cgroup namespace. Exits with 77 where that is not allowed."""
    if os.geteuid() != 0:
        skip("only root can make cgroups")
    stage = os.environ.get(INSIDE)
    if not stage:
        if subprocess.run(["unshare", "-mC", "true"], stdin=subprocess.DEVNULL, capture_output=True).returncode != 0:
            skip("no mount namespace and cgroup namespace of its own")
        os.environ[INSIDE] = "outer"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    if stage == "outer":
        outer()
    done = mount_v2(ROOT)
    if done.returncode != 0:
        skip("cgroup v2 cannot be mounted at %s: %s" % (ROOT, done.stderr.strip()))


def make(*parts, root=ROOT):
    path = "/".join((root, *parts))
    os.makedirs(path, exist_ok=True)
    return path
