#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What differs between branches of the driver: a test for each column of RM_RELEASES, as $SIM_DRIVER. tests/unit/gpu/rm holds the
columns to layouts.txt, and bad_input.py asks each release with each size.

    branches.py LIBRARY SIMULATOR FOLDER_OF_SIMULATED_LIBRARIES CC...
"""
import os
import re
import sys
import unittest

from gate_lab import SIMULATOR, alone
from sim_lab import enter_namespace

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/gpu/rm/release.h")
TESTS = {
    "memory_params": ["gate.Calls.test_doors"],
    "fb_index_max": ["gate.Calls.test_questions"],
    "fb_list_max": ["gate.Calls.test_questions"],
    "fb_region": ["gate.Calls.test_questions"],
    "surface_bytes": ["export_slots.Slots.test_itself"],
    "probed_ids": ["front.Front.test_without_a_limit"],
    "name_string": ["front.Front.test_without_a_limit"],
    "export_info": ["export_slots.Slots.test_beside_memory_of_the_machine"],
    "uvm_gpus": ["uvm_external.ExternalTest.test_late", "uvm_external.ExternalTest.test_pools"],
    "uvm_free": ["uvm_external.ExternalTest.test_late"],
    "uvm_p2p": ["uvm_external.ExternalTest.test_p2p"],
    "export_mem": ["gate_doors.DoorsTest.test_export_object", "gate_doors.DoorsTest.test_export_object_of_the_driver"],
    "dma_buf": ["gate_doors.DmaBufTest.test_dma_bufs"],
    "group_schedule": ["gate.Calls.test_schedules"],
    "uvm_flags": ["gate.Calls.test_hmm"],
}
# Until 565 a multicast object holds memory: no column, because no number of a header differs.
MORE = ["gate_doors.DoorsTest.test_multicast"]


class Columns(unittest.TestCase):
    def test_each_has_a_test(self):
        with open(HEADER, encoding="utf-8") as file:
            struct = re.search(r"typedef struct RmRelease \{(.*?)\}", file.read(), re.DOTALL)[1]
        columns = re.findall(r"\w+(?=[,;])", re.sub(r"/\*.*?\*/", "", struct))
        self.assertEqual(columns, ["branch", *TESTS])


if __name__ == "__main__":
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    enter_namespace(SIMULATOR)
    alone()
    chosen = sorted({name for names in TESTS.values() for name in names}) + MORE
    unittest.main(module=None, argv=[sys.argv[0], "__main__.Columns", *chosen], verbosity=2)
