#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: classified.py RM-LAYOUTS: what scripts/rm-layouts.py does not know ends its run"""
import importlib.util
import os
import sys
import tempfile

spec = importlib.util.spec_from_file_location("rm_layouts", sys.argv[1])
layouts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layouts)

FB = "".join("#define NV2080_CTRL_FB_INFO_INDEX_%s (0x%08XU)\n" % (name, i) for i, name in enumerate(
    ["PARTITION_COUNT", *sorted(layouts.FB_REWRITTEN | layouts.FB_PASSED), "PARTITION_MASK_2"]))
END = "#define NV2080_CTRL_FB_INFO_INDEX_MAX (0x40U)\n#define NV2080_CTRL_FB_INFO_MAX_LIST_SIZE (0x80U)\n"


def fb(name):
    return FB + "#define NV2080_CTRL_FB_INFO_INDEX_%s (0x0000003EU)\n" % name + END


def control(flags, name):
    return """{
        /*flags=*/      %su,
        /*accessRight=*/0x0u,
        /*methodId=*/   0x20801399u,
        /*paramSize=*/  sizeof(NV2080_CTRL_%s_PARAMS),
""" % (flags, name)


assert layouts.unclassified_fb(FB + END) == []
for name in "HEAP_RECLAIMABLE_KB", "VIDMEM_SIZE", "FREE_PAGES", "RAM_TOTAL", "HEAPS", "LOCAL_KB":
    assert layouts.unclassified_fb(fb(name)) == [name], name
assert layouts.unclassified_fb(fb("LTC_MASK_2")) == []
for name in "FB_GET_MEMORY_INFO", "FB_OWNER_STATS_GET", "FB_GET_FREE", "GPU_VIDMEM_SIZE", "VGPU_FB_USAGE":
    assert layouts.unclassified_controls(control("0x10118", name), 8) == ["0x20801399 NV2080_CTRL_%s_PARAMS" % name], name
    assert layouts.unclassified_controls(control("0x10154", name), 8) == [], name  # privileged
for name in "FB_GET_UGPU_MEMORY_INFO", "BUS_FREEZE_PEX_COUNTERS", "GSP_GET_RM_HEAP_STATS", "FB_GET_INFO_V2":
    assert layouts.unclassified_controls(control("0x118", name), 8) == [], name

with tempfile.TemporaryDirectory() as tree:
    generated = os.path.join(tree, layouts.GENERATED)
    os.makedirs(os.path.dirname(os.path.join(tree, layouts.FB_HEADER)))
    os.makedirs(generated)
    os.makedirs(os.path.dirname(os.path.join(tree, layouts.FLAGS_HEADER)))
    with open(os.path.join(tree, layouts.FLAGS_HEADER), "w", encoding="utf-8") as file:
        file.write("#define RMCTRL_FLAGS_PRIVILEGED 0x000000004\n#define RMCTRL_FLAGS_NON_PRIVILEGED   0x000000010\n")

    def ends(header, source, words, name="g_x_nvoc.c"):
        with open(os.path.join(tree, layouts.FB_HEADER), "w", encoding="utf-8") as file:
            file.write(header)
        with open(os.path.join(generated, name), "w", encoding="utf-8") as file:
            file.write(source)
        try:
            layouts.check_classified(tree, "630.1")
        except SystemExit as end:
            assert words and words in str(end), end
        else:
            assert not words, words

    ends(FB + END, "", "has no", name="g_x.h")
    ends(FB + END, control("0x8", "FB_OTHER_STATS"), "")
    ends(fb("HEAP_SPARE"), "", "630.1 may tell of the card's memory by what is not classified: FB info HEAP_SPARE")
    ends(FB + END, control("0x850", "FB_STATS_2"), "control 0x20801399 NV2080_CTRL_FB_STATS_2_PARAMS")
