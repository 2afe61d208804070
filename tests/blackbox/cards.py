#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What src/gpu/cards reports for a driver that hangs, crashes, loses cards and finds them again:
show-cards on a scripted NVML.

    cards.py SHOW_CARDS LIBRARY
"""
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from patience import PATIENCE, until

HANGS = 2000  # milliseconds that are a hang: on a busy machine each start of a healthy child can take a quarter of them

SHOW_CARDS, LIBRARY = sys.argv[1:3]
os.environ.pop("LD_LIBRARY_PATH", None)  # meson puts the folder of the scripted NVML there


def card(number, uuid=None, mib=16160, bus=None, minor=None):
    """One card of the scripted driver."""
    return "card %s %d %d %x Tesla V100" % (
        uuid or "GPU-%d" % number, number if minor is None else minor, mib, 0x10 + number if bus is None else bus)


def children_of(pid):
    """The living processes that pid started."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(word) for word in f.read().split()]
    except FileNotFoundError:
        return []


def state_of(pid):
    """The state R, S, Z...; None when there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def name_of(pid):
    """The name that ps shows."""
    with open("/proc/%d/comm" % pid) as f:
        return f.read().strip()


class Source:
    """A running show-cards, its machine and all its output."""

    def __init__(self, test, lines, *, library=LIBRARY, known=None, **options):
        self.folder = tempfile.TemporaryDirectory()
        test.addCleanup(self.folder.cleanup)
        self.root = os.path.join(self.folder.name, "root")
        os.makedirs(self.root + "/proc/driver/nvidia/gpus")
        self.machine(*lines)
        settings = {"deadline": 30000, "rescan": 30, "backoff": 10, "quiet": 1}
        settings.update(options)
        command = [SHOW_CARDS, "root=" + self.root + "/"] + ["%s=%d" % s for s in settings.items()]
        if library:
            command.append("library=" + library)
        if known is not None:
            path = os.path.join(self.folder.name, "known")
            with open(path, "w") as f:
                json.dump(known, f)
            command.append("known=" + path)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, FAKE_NVML=self.file()))
        test.addCleanup(self.end)
        self.said = queue.Queue()
        self.cards = None
        self.troubles = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def file(self):
        return os.path.join(self.folder.name, "machine")

    def machine(self, *lines):
        """Changes the machine in one step."""
        with open(self.file() + ".new", "w") as f:
            f.write("\n".join(lines) + "\n")
        os.rename(self.file() + ".new", self.file())

    def read(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put(None)

    def wait(self, condition, what):
        """Reads output until the condition holds for (cards by UUID, troubles)."""
        deadline = time.monotonic() + PATIENCE
        while not (self.cards is not None and condition(self.cards)):
            try:
                said = self.said.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError("waited in vain: %s; cards %s, troubles %s" % (what, self.cards, self.troubles))
            if said is None:
                raise AssertionError("show-cards ended: %s" % what)
            if "cards" in said:
                self.cards = {c["uuid"]: c for c in said["cards"]}
            else:
                self.troubles.append(said["trouble"])
        return self.cards

    def wait_trouble(self, words):
        """Reads output until it reports this trouble."""
        deadline = time.monotonic() + PATIENCE
        while not any(words in t for t in self.troubles):
            try:
                said = self.said.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError("no trouble with %r in %s" % (words, self.troubles))
            if said is None:
                raise AssertionError("show-cards ended before %r" % words)
            if "cards" in said:
                self.cards = {c["uuid"]: c for c in said["cards"]}
            else:
                self.troubles.append(said["trouble"])

    def wait_healthy(self, **expected):
        """Reads output until exactly these cards are listed, healthy or not: GPU_0=True."""
        want = {name.replace("_", "-"): healthy for name, healthy in expected.items()}
        return self.wait(lambda cards: {u: c["healthy"] for u, c in cards.items()} == want, str(want))

    def rescan(self):
        self.process.send_signal(signal.SIGUSR1)

    def child(self):
        return until(lambda: children_of(self.process.pid), "a child")[0]

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Cards(unittest.TestCase):
    def test_tells_what_the_driver_tells(self):
        s = Source(self, [])
        os.makedirs(s.root + "/sys/bus/pci/devices/0000:10:00.0")
        with open(s.root + "/sys/bus/pci/devices/0000:10:00.0/numa_node", "w") as f:
            f.write("1\n")
        s.wait_healthy()
        s.machine(card(0), card(1, minor=7, mib=40536))
        s.rescan()
        cards = s.wait_healthy(GPU_0=True, GPU_1=True)
        self.assertEqual(cards["GPU-0"], {"index": 0, "uuid": "GPU-0", "model": "Tesla V100", "mib": 16160, "minor": 0,
                                          "numa": 1, "pci": "00000000:10:00.0", "healthy": True, "trouble": ""})
        self.assertEqual((cards["GPU-1"]["minor"], cards["GPU-1"]["mib"], cards["GPU-1"]["numa"]), (7, 40536, -1))
        self.assertEqual(s.troubles, [])

    def test_links(self):
        """Direct NVLinks by PCI address, a path, and a pair without peer access."""
        s = Source(self, [card(n) for n in range(4)] + [
            "link 0 11 2", "link 0 99 1", "link 1 10 2", "path 0 1 10", "path 0 2 50", "path 2 3 40", "blocked 1 3"])
        cards = s.wait_healthy(GPU_0=True, GPU_1=True, GPU_2=True, GPU_3=True)
        self.assertEqual(cards["GPU-0"]["link_rate"], 25)
        self.assertEqual([c["peers"] for _, c in sorted(cards.items())],
                         [[0, 2 << 5 | 2, 6 << 5], [2 << 5 | 2, 0, 0, 7 << 5], [6 << 5, 0, 0, 5 << 5],
                          [0, 7 << 5, 5 << 5]])
        self.assertEqual(s.troubles, [])

    def test_links_by_a_switch(self):
        s = Source(self, [card(n) for n in range(3)] + ["switch 0 6", "switch 1 4", "nvlink 7 10"])
        cards = s.wait_healthy(GPU_0=True, GPU_1=True, GPU_2=True)
        self.assertEqual((cards["GPU-0"]["switch_links"], cards["GPU-0"]["peers"], cards["GPU-0"]["link_rate"]),
                         (6, [0, 4], 50))
        self.assertNotIn("peers", cards["GPU-2"])

    def test_the_rate_of_a_link(self):
        for line, rate in (("nvlink 1 5", 20), ("nvlink 4 7", 25), ("nvlink 7 9", 25), ("nvlink 7 10", 50)):
            with self.subTest(line=line):
                s = Source(self, [card(0), card(1), "link 0 11 1", line])
                self.assertEqual(s.wait_healthy(GPU_0=True, GPU_1=True)["GPU-0"]["link_rate"], rate)

    def test_links_that_fail(self):
        """The cards stay; no further call is made about a card that is lost."""
        s = Source(self, [card(0), card(1), "link 0 11 2", "fail link 0 15", "path 0 1 10", "hang path 0"])
        cards = s.wait_healthy(GPU_0=True, GPU_1=True)
        self.assertNotIn("peers", cards["GPU-0"])

    def test_no_library(self):
        s = Source(self, [], library="/proc/self/absent/libnvidia-ml.so.1")
        s.wait_trouble("no NVIDIA driver: /proc/self/absent/libnvidia-ml.so.1")
        self.assertIsNone(s.cards)

    def test_a_library_that_is_none(self):
        s = Source(self, [], library=sys.executable)
        s.wait_trouble("no NVIDIA driver")

    def test_the_library_of_the_host(self):
        """Under another root, through absolute links."""
        look = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"]
        if subprocess.run(look, stderr=subprocess.DEVNULL).returncode == 0:
            self.skipTest("this machine has a driver, and its library is found first")
        s = Source(self, [card(0)], library=None)
        s.wait_trouble("no NVIDIA driver: libnvidia-ml.so.1")
        os.makedirs(s.root + "/usr/lib64")
        os.makedirs(s.root + "/opt")
        shutil.copy(LIBRARY, s.root + "/opt/libnvidia-ml.so.1")
        os.symlink("/opt/libnvidia-ml.so.1", s.root + "/usr/lib64/libnvidia-ml.so.1")
        s.wait_healthy(GPU_0=True)

    def test_an_error_at_init_and_its_end(self):
        s = Source(self, [card(0), "fail init * 9"])
        s.wait_trouble("NVML cannot be initialised: Driver Not Loaded")
        self.assertIsNone(s.cards)
        s.machine(card(0))
        s.wait_healthy(GPU_0=True)

    def test_an_error_without_words(self):
        s = Source(self, [card(0), "fail count * 999"])
        s.wait_trouble("NVML cannot count the cards: an error without words")

    def test_a_hang_anywhere_is_told_and_survived(self):
        for call in ("init", "count", "handle", "uuid", "pci", "minor", "name", "memory", "register"):
            with self.subTest(call):
                s = Source(self, [card(0), card(1)], deadline=HANGS)
                s.wait_healthy(GPU_0=True, GPU_1=True)
                s.troubles.clear()  # on a busy machine a healthy child may miss the deadline
                s.machine(card(0), card(1, mib=1000), "hang %s *" % call)
                s.rescan()
                s.wait_trouble("the driver hangs")
                self.assertEqual(s.cards["GPU-1"]["mib"], 16160, "what was known stays known")
                s.machine(card(0), card(1, mib=1000))
                s.wait(lambda cards: cards["GPU-1"]["mib"] == 1000, "a scan after " + call)
                until(lambda: len(children_of(s.process.pid)) == 1, "the hung child reaped")
                s.end()

    def test_a_hang_while_it_waits_for_events(self):
        s = Source(self, [card(0)], deadline=HANGS)
        s.wait_healthy(GPU_0=True)
        s.machine(card(0), "hang wait *")
        s.wait_trouble("the driver hangs")
        s.machine(card(0, mib=1000))
        s.wait(lambda cards: cards["GPU-0"]["mib"] == 1000, "another child")

    def test_the_same_trouble_is_told_again_after_good_times(self):
        s = Source(self, [card(0)], deadline=HANGS)
        s.wait_healthy(GPU_0=True)
        for mib in (1000, 2000):
            s.machine(card(0), "hang memory 0")
            s.wait_trouble("the driver hangs")
            s.troubles.clear()
            s.machine(card(0, mib=mib))
            s.wait(lambda cards: cards["GPU-0"]["mib"] == mib, "a good scan")

    def test_says_where_it_hangs(self):
        s = Source(self, [card(0), card(1), "hang memory 1"], deadline=HANGS)
        s.wait_trouble("no answer within 2 s about card 1")
        s = Source(self, [card(0), "hang init *"], deadline=HANGS)
        s.wait_trouble("no answer within 2 s from its initialisation")

    def test_a_crash_is_told_and_survived(self):
        for call in ("init", "uuid", "memory"):
            with self.subTest(call):
                s = Source(self, [card(0)])
                s.wait_healthy(GPU_0=True)
                s.machine(card(0, mib=1000), "crash %s *" % call)
                s.rescan()
                s.wait_trouble("was ended by signal")
                s.machine(card(0, mib=1000))
                s.wait(lambda cards: cards["GPU-0"]["mib"] == 1000, "another child")
                s.end()

    def test_the_child_killed_from_outside(self):
        s = Source(self, [card(0)])
        s.wait_healthy(GPU_0=True)
        first = s.child()
        os.kill(first, signal.SIGKILL)
        s.wait_trouble("was ended by signal 9")
        until(lambda: [c for c in children_of(s.process.pid) if c != first], "another child")
        until(lambda: state_of(first) is None, "the first one reaped")
        self.assertTrue(s.cards["GPU-0"]["healthy"])

    def test_a_stopped_child_is_a_hung_one(self):
        s = Source(self, [card(0)], deadline=3000)
        s.wait_healthy(GPU_0=True)
        first = s.child()
        os.kill(first, signal.SIGSTOP)
        s.wait_trouble("the driver hangs")
        until(lambda: state_of(first) is None, "the stopped one ended and reaped")

    def test_the_child_dies_with_the_agent(self):
        for lines in ([card(0)], [card(0), "hang memory 0"]):
            s = Source(self, lines, deadline=600000)
            child = s.child()
            until(lambda: name_of(child) == "aliquot-nvml", "its name")
            s.process.kill()
            until(lambda: state_of(child) in (None, "Z"), "the child's end")

    def test_the_child_inherits_nothing(self):
        s = Source(self, [card(0)])
        s.wait_healthy(GPU_0=True)
        child = s.child()
        # for a moment it also has the file that it reads the machine from
        until(lambda: sorted(map(int, os.listdir("/proc/%d/fd" % child))) == [0, 1, 2, 3], "four descriptors")
        self.assertTrue(os.readlink("/proc/%d/fd/3" % child).startswith("socket:"))
        self.assertEqual(os.readlink("/proc/%d/fd/0" % child), "/dev/null")
        with open("/proc/%d/status" % child) as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        self.assertEqual(int(status["SigBlk"], 16), 0)
        kept = 3 << 31  # signals 32 and 33 belong to the C library and cannot be reset
        self.assertEqual(int(status["SigIgn"], 16) & ~kept, 0)
        with open("/proc/%d/limits" % child) as f:
            self.assertRegex(f.read(), r"Max core file size +0 +0 ")

    def test_a_lost_card_keeps_its_place_and_returns(self):
        s = Source(self, [card(0), card(1), card(2)])
        s.wait_healthy(GPU_0=True, GPU_1=True, GPU_2=True)
        s.machine(card(0), card(1), card(2), "fail handle 1 15")
        cards = s.wait_healthy(GPU_0=True, GPU_1=False, GPU_2=True)
        self.assertEqual([cards[u]["index"] for u in ("GPU-0", "GPU-1", "GPU-2")], [0, 1, 2])
        self.assertIn("GPU is lost", cards["GPU-1"]["trouble"])
        self.assertEqual(cards["GPU-1"]["mib"], 16160)
        s.machine(card(0), card(1), card(2))
        s.wait_healthy(GPU_0=True, GPU_1=True, GPU_2=True)

    def test_a_card_that_answers_with_errors(self):
        s = Source(self, [card(0), card(1)])
        s.wait_healthy(GPU_0=True, GPU_1=True)
        s.machine(card(0), card(1), "fail memory 0 16")
        cards = s.wait_healthy(GPU_0=False, GPU_1=True)
        self.assertEqual(cards["GPU-0"]["trouble"], "NVML cannot tell its memory: GPU requires reset")
        self.assertEqual(cards["GPU-0"]["mib"], 16160)

    def test_a_card_gone_from_the_list_moves_no_other(self):
        s = Source(self, [card(0), card(1), card(2)])
        s.wait_healthy(GPU_0=True, GPU_1=True, GPU_2=True)
        s.machine(card(1), card(2))
        s.rescan()
        cards = s.wait_healthy(GPU_0=False, GPU_1=True, GPU_2=True)
        self.assertEqual([cards[u]["index"] for u in ("GPU-1", "GPU-2")], [1, 2])
        self.assertEqual(cards["GPU-0"]["trouble"], "the driver does not list it any more")

    def test_a_missing_card_is_looked_for_by_new_sessions(self):
        s = Source(self, [card(0), card(1)], known={"cards": []})
        s.wait_healthy(GPU_0=True, GPU_1=True)
        s.machine(card(0))
        s.rescan()
        s.wait_healthy(GPU_0=True, GPU_1=False)
        s.machine(card(0), card(1))  # and no new session is requested
        s.wait_healthy(GPU_0=True, GPU_1=True)

    def test_a_card_plugged_in_is_found(self):
        s = Source(self, [card(0)])
        os.mkdir(s.root + "/proc/driver/nvidia/gpus/0000:10:00.0")
        s.wait_healthy(GPU_0=True)
        s.machine(card(0), card(1))
        os.mkdir(s.root + "/proc/driver/nvidia/gpus/0000:11:00.0")
        cards = s.wait_healthy(GPU_0=True, GPU_1=True)
        self.assertEqual(cards["GPU-1"]["index"], 1)

    def test_a_replaced_card_takes_the_index(self):
        s = Source(self, [card(0), card(1)])
        s.wait_healthy(GPU_0=True, GPU_1=True)
        s.machine(card(0, uuid="GPU-new"), card(1))
        s.rescan()
        cards = s.wait_healthy(GPU_new=True, GPU_1=True)
        self.assertEqual(cards["GPU-new"]["index"], 0)

    def test_indexes_of_an_earlier_run_stay(self):
        known = {"cards": [{"index": 0, "uuid": "GPU-1", "pci": "00000000:11:00.0", "mib": 5},
                           {"index": 1, "uuid": "GPU-0", "pci": "00000000:10:00.0"},
                           {"index": 2, "uuid": "GPU-9", "pci": "00000000:19:00.0", "model": "Old", "mib": 7},
                           {"index": 3, "uuid": "GPU-simulated", "pci": ""}]}
        s = Source(self, [card(0), card(1)], known=known)
        cards = s.wait_healthy(GPU_0=True, GPU_1=True, GPU_9=False)
        self.assertEqual([cards[u]["index"] for u in ("GPU-0", "GPU-1", "GPU-9")], [1, 0, 2])
        self.assertEqual((cards["GPU-9"]["mib"], cards["GPU-9"]["model"]), (7, "Old"))

    def test_garbage_is_contained(self):
        name = "\x1b[31mred\xff" + "x" * 150
        s = Source(self, [card(0), card(1, uuid="../../etc"), card(2, uuid="GPU-" + "0" * 100),
                          "card GPU-3 3 16160 13 " + name, card(4, uuid="GPU-0")])
        cards = s.wait_healthy(GPU_0=True, GPU_3=True)
        self.assertEqual(cards["GPU-0"]["index"], 0)
        self.assertEqual(len(cards["GPU-3"]["model"]), 95)
        self.assertTrue(cards["GPU-3"]["model"].startswith("?[31mred??"), cards["GPU-3"]["model"])

    def test_more_cards_than_there_may_be(self):
        s = Source(self, ["card GPU-%d %d 16160 %x A" % (i, i, i) for i in range(300)])
        s.wait_trouble("the driver has 300 cards; the first 256 are used")
        s.wait(lambda cards: len(cards) == 256, "256 cards")
        s.machine("card GPU-0 0 999 0 A", *["card GPU-%d %d 16160 %x A" % (i, i, i) for i in range(1, 300)])
        s.rescan()
        s.wait(lambda cards: cards["GPU-0"]["mib"] == 999, "another scan")
        self.assertEqual(len(s.troubles), 1)

    def test_a_count_that_lies(self):
        s = Source(self, [card(0), "count 4000000000"])
        s.wait_healthy(GPU_0=True)
        s.wait_trouble("the driver has 4000000000 cards")

    def test_confidential_computing(self):
        s = Source(self, [card(0), "cc"])
        s.wait_trouble("confidential computing is on: slices have not been tried with it")
        s.machine(card(0, mib=1000), "cc")
        s.rescan()
        s.wait(lambda cards: cards["GPU-0"]["mib"] == 1000, "another session")
        self.assertEqual(len(s.troubles), 1)

    def test_mig_is_not_ours(self):
        s = Source(self, [card(0), card(1), "mig 1"])
        cards = s.wait_healthy(GPU_0=True, GPU_1=False)
        self.assertIn("MIG is on", cards["GPU-1"]["trouble"])

    def test_an_xid_of_a_broken_card_fences_that_card(self):
        s = Source(self, [card(0), card(1)], quiet=3600000)
        s.wait_healthy(GPU_0=True, GPU_1=True)
        s.machine(card(0), card(1), "xid 1 1 13", "xid 2 1 31", "xid 3 0 94", "xid 4 0 4294967344", "xid 5 1 48")
        cards = s.wait_healthy(GPU_0=True, GPU_1=False)
        self.assertEqual(cards["GPU-1"]["trouble"], "XID 48: uncorrectable ECC error")

    def test_a_fence_lifts_when_it_has_been_quiet(self):
        s = Source(self, [card(0)], quiet=200)
        s.wait_healthy(GPU_0=True)
        s.machine(card(0), "xid 1 0 119")
        s.wait_healthy(GPU_0=False)
        s.wait_healthy(GPU_0=True)

    def test_a_card_off_the_bus_stays_fenced_until_it_is_found_anew(self):
        s = Source(self, [card(0)], quiet=1, rescan=400)
        s.wait_healthy(GPU_0=True)
        s.machine(card(0), "xid 1 0 79")
        cards = s.wait_healthy(GPU_0=False)
        self.assertEqual(cards["GPU-0"]["trouble"], "XID 79: the card fell off the bus")
        s.machine(card(0))
        s.rescan()  # a new session
        s.wait_healthy(GPU_0=True)

    def test_no_events_is_told_once(self):
        s = Source(self, [card(0), "noevents"])
        s.wait_trouble("the driver tells of no XIDs (Some Error)")
        s.wait_healthy(GPU_0=True)
        s.machine(card(0, mib=1000), "noevents")
        s.rescan()
        s.wait(lambda cards: cards["GPU-0"]["mib"] == 1000, "another session")
        self.assertEqual(len(s.troubles), 1)

    def test_an_error_while_it_waits_for_events(self):
        s = Source(self, [card(0)], rescan=30)
        s.wait_healthy(GPU_0=True)
        s.machine(card(0), "fail wait * 15", "fail handle 0 15")
        s.wait_healthy(GPU_0=False)
        s.machine(card(0))
        s.wait_healthy(GPU_0=True)
        self.assertEqual(s.troubles, [])

    def test_memory(self):
        s = Source(self, [card(i) for i in range(8)])
        s.wait(lambda cards: len(cards) == 8, "cards")
        for name, pid in (("agent", s.process.pid), ("child", s.child())):
            with open("/proc/%d/smaps_rollup" % pid) as f:
                kib = sum(int(line.split()[1]) for line in f if line.startswith("Private_"))
            print("private memory of the %s, with the made-up library: %d KiB" % (name, kib))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
