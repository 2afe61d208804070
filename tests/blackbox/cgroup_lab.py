# SPDX-License-Identifier: Apache-2.0
"""Real cgroups for a test: a cgroup of its own is the root of what it sees at /sys/fs/cgroup.

The test runs in a mount namespace and a cgroup namespace. The machine's own cgroups are neither moved nor limited."""
import os
import subprocess
import sys
import tempfile
import time

INSIDE = "ALIQUOT_CGROUP_TEST_INSIDE"
ROOT = "/sys/fs/cgroup"


def skip(text):
    print("skipped: " + text, flush=True)
    os._exit(77)


def mount_v2(at):
    return subprocess.run(["mount", "-t", "cgroup2", "none", at], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def end_processes(top):
    """Those that a test has left below. Kernels before 5.14 have no cgroup.kill."""
    try:
        with open(top + "/cgroup.kill", "w") as f:
            f.write("1")
    except OSError:
        return

    def populated():
        with open(top + "/cgroup.events") as f:
            return "populated 1" in f.read()
    for _ in range(200):
        if not populated():
            return
        time.sleep(0.05)


def remove_tree(top):
    """Cgroups have no files that could be removed."""
    end_processes(top)
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
    # Nothing walks over this folder: it has all cgroups of the machine.
    tree = tempfile.mkdtemp()
    done = mount_v2(tree)
    own = "%s/aliquot-test-%d" % (tree, os.getpid())
    code, why = 77, "cgroup v2 cannot be mounted: " + done.stderr.strip()
    if done.returncode == 0:
        try:
            os.mkdir(own)
            try:
                code, why = run_below(own), ""
            finally:
                remove_tree(own)
        except OSError as e:
            code, why = (77, "no cgroup of its own: %s" % e.strerror) if code == 77 else (1, str(e))
        finally:
            subprocess.run(["umount", "-l", tree], check=True)
    os.rmdir(tree)
    if why:
        print(("skipped: " if code == 77 else "") + why, flush=True)
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
