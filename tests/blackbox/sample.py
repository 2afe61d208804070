# SPDX-License-Identifier: Apache-2.0
"""aliquot-sample on a machine without a card: sample.py ALIQUOT_SAMPLE
FOLDER_OF_SIMULATED_LIBRARIES"""

import os
import subprocess
import sys
import tempfile
import unittest

SAMPLE, LIBRARIES = map(os.path.abspath, sys.argv[1:3])


class Sample(unittest.TestCase):
    def sample(self, *arguments, **environment):
        return subprocess.run([SAMPLE, *arguments], capture_output=True, text=True, timeout=120, env={"PATH": os.environ["PATH"], **environment})

    def test_wrong_use(self):
        for arguments, words in (([], "--gpu-mem-mib or --seconds is missing"), (["--kernel-us", "5"], "--seconds is missing"),
                                 (["--seconds", "0"], "must be a number above 0"), (["--seconds", "x"], "must be a number above 0"),
                                 (["--seconds", "nan"], "must be a number above 0"), (["--seconds", "1e9"], "at most 1000000"),
                                 (["--seconds", "1", "--kernel-us", "0"], "from 1 to 10000000"),
                                 (["--seconds", "1", "--processes", "65"], "from 1 to 64"),
                                 (["--seconds", "1", "--", "true"], "a command goes with --gpu-mem-mib alone"),
                                 (["--copy-mib", "0"], "must be a whole number"), (["--copy-mib", "x"], "must be a whole number"),
                                 (["--copy-mib", "1", "--gpu-mem-mib", "1"], "--copy-mib goes with --seconds alone"),
                                 (["--copy-mib", "1", "--kernel-us", "1", "--seconds", "1"], "--copy-mib goes with --seconds alone"),
                                 (["--copy-mib", "1", "--", "true"], "--copy-mib goes with --seconds alone"),
                                 (["--gpu-mem-mib", "0"], "must be a whole number"),
                                 (["--gpu-mem-mib", "2x"], "must be a whole number"), (["--gpu-mem-mib", "-2"], "must be a whole number"),
                                 (["--gpu-mem-mib", "99999999999999999999"], "must be a whole number"), (["--no-such"], "no-such")):
            p = self.sample(*arguments)
            self.assertEqual((p.returncode, p.stdout), (2, ""), arguments)
            self.assertIn(words, p.stderr)

    def test_help(self):
        p = self.sample("--help")
        self.assertEqual((p.returncode, p.stdout[:6], p.stderr), (0, "Usage:", ""))

    @unittest.skipIf(os.environ.get("ASAN_OPTIONS"), "sanitized libraries cannot be loaded from here")
    def test_no_driver(self):
        """The library exists, the cards do not: CUDA's error, by name and number."""
        with tempfile.TemporaryDirectory() as empty:
            p = self.sample("--gpu-mem-mib", "1", "--", "echo", "ran", LD_LIBRARY_PATH=LIBRARIES, ALIQUOT_SIM_DIR=empty)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertRegex(p.stderr, r"^aliquot-sample: cuInit: CUDA_ERROR_[A-Z_]+ \([0-9]+\)\n$")

    def test_no_library(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libcuda.so.1"), "w") as f:
                f.write("no library")
            p = self.sample("--gpu-mem-mib", "1", LD_LIBRARY_PATH=folder)
            told = self.sample("--gpu-mem-mib", "1", LD_LIBRARY_PATH=folder, ALIYUN_COM_GPU_MEM_CONTAINER="2")  # a node without CDI
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertRegex(p.stderr, r"^aliquot-sample: no CUDA driver: .*libcuda.so.1.*\n$")
        self.assertEqual((told.returncode, told.stderr.count("\n")), (1, 2))
        self.assertTrue(told.stderr.endswith("CDI may be off there. aliquot doctor on the node tells\n"), told.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
