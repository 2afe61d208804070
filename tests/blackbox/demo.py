# SPDX-License-Identifier: Apache-2.0
"""samples/demo.sh says what it proved and what it skipped: demo.py BUILD SOURCE_ROOT"""

import os
import re
import subprocess
import sys
import unittest

BUILD, ROOT = map(os.path.abspath, sys.argv[1:3])
DEMO = os.path.join(ROOT, "samples", "demo.sh")
SHARES = ["asked for 2 of 15 GiB  .* sees 2154 of 16160 MiB, and is refused more", r"asked for 30 % of a card's compute  .* got \d+ %: \d+ blocks",
          r"asked for 60 % of a card's compute  .* got \d+ %: \d+ blocks", r"asked for 30 % of a card, for copies  .* ten took \d+ ms, and \d+ ms",
          "aliquot run, asked for 2 of 15 GiB  .* nvidia-smi shows 2154MiB"]


def run(*command):
    p = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr


class Demo(unittest.TestCase):
    @unittest.skipIf(os.environ.get("ASAN_OPTIONS"), "sanitized libraries cannot be loaded by nvidia-smi and the sample")
    def test_here(self):
        """With all that it needs, everything is shown; else what is skipped is counted and named."""
        status, text = run(DEMO, BUILD)
        self.assertEqual(status, 0, text)
        skipped = re.search(r"^Skipped: (\d+) checks, because this machine has not what they need:\n((?:  .+\n)+)", text, re.M)
        if not skipped:
            self.assertRegex(text, r"\nAll \d+ checks were as told\. Next: ")
            for share in SHARES:
                self.assertRegex(text, share)
            return
        self.assertRegex(text, rf"\nThe other \d+ checks were as told, {skipped[1]} were skipped\. Next: ")
        self.assertNotIn("All ", text.splitlines()[-1])

    def test_without_fuse(self):
        """The parts with cards are skipped with their reason, and no share is told of that was not seen."""
        hidden = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /dev/fuse && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("/dev/fuse cannot be hidden here: unshare -m and mount need root")
        status, text = run(*hidden, DEMO, BUILD)
        self.assertEqual(status, 0, text)
        count = int(re.search(r"^Skipped: (\d+) checks, because this machine has not what they need:\n  .*fuse", text, re.M | re.I)[1])
        self.assertGreater(count, 5)
        self.assertIn(f" checks were as told, {count} were skipped. Next: ", text)
        self.assertNotIn("All ", text.splitlines()[-1])
        for share in SHARES:
            self.assertNotRegex(text, share)
        self.assertNotRegex(text, "(?m)^refused$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
