# SPDX-License-Identifier: Apache-2.0
"""aliquot-sample on a simulated card: sample_work.py ALIQUOT_SAMPLE FOLDER_OF_SIMULATED_LIBRARIES ALIQUOT_SIM"""

import os
import subprocess
import sys
import unittest

from sim_lab import Machine, enter_namespace

SAMPLE, LIBRARIES, SIM = map(os.path.abspath, sys.argv[1:4])


class Work(unittest.TestCase):
    def sample(self, *arguments, **environment):
        return subprocess.run([SAMPLE, *arguments], capture_output=True, text=True, timeout=240, env={"PATH": os.environ["PATH"], **environment})

    def test_work(self):
        """Blocks of work, one line each, and their number at the end; each process opens the card
        by itself."""
        devices = Machine(self, SIM, "1xTesla-V100-SXM2-16GB:16160MiB").dir
        p = self.sample("--seconds", "0.35", "--kernel-us", "5000", LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=devices)
        lines = p.stdout.splitlines()
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        for n, line in enumerate(lines[:-1], 1):
            self.assertRegex(line, r"^block %d: 20 kernels of 5000 us in [0-9]+ ms$" % n)
        self.assertRegex(lines[-1], r"^done %d blocks in [0-9.]+ s$" % (len(lines) - 1))
        self.assertTrue(2 <= len(lines) <= 5, p.stdout)  # 4 blocks take 0.4 s, or more on a busy machine
        p = self.sample("--seconds", "0.2", "--processes", "3", "--kernel-us", "150000", "--gpu-mem-mib", "100",
                        LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=devices)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout.count("memory: "), 3)
        self.assertRegex(p.stdout.splitlines()[-1], r"^done %d blocks in " % p.stdout.count("1 kernels of 150000 us"))

    def test_copies(self):
        """A line for each copy; a card without room for them is CUDA's error."""
        devices = Machine(self, SIM, "1xTesla-V100-SXM2-16GB:16160MiB").dir
        p = self.sample("--copy-mib", "31", LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=devices)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertRegex(p.stdout, "^" + "".join(rf"copy {n}: 31 MiB in [0-9]+\.[0-9] ms\n" for n in range(1, 11)) + "$")
        p = self.sample("--copy-mib", "1", "--seconds", "0.1", LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=devices)
        self.assertRegex(p.stdout, r"^(copy [0-9]+: 1 MiB in [0-9.]+ ms\n)+$")
        p = self.sample("--copy-mib", "17000", LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=devices)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertIn("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)", p.stderr)

    def test_work_refused(self):
        devices = Machine(self, SIM, "1xTesla-V100-SXM2-16GB:16160MiB").dir
        p = self.sample("--seconds", "1", "--processes", "2", "--gpu-mem-mib", "20000", LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=devices)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertIn("cuMemAlloc of 20000 MiB: CUDA_ERROR_OUT_OF_MEMORY (2)", p.stderr)


if __name__ == "__main__":
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the program that loads them is not")
        sys.exit(77)
    enter_namespace(SIM)
    unittest.main(argv=sys.argv[:1])
