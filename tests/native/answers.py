# SPDX-License-Identifier: Apache-2.0
"""Facts about a card that libcuda and NVML ask the driver for, and the simulator has no use for.

The card is a GA102 (A10): 6 GPCs of 6 TPCs of 2 SMs. Numbers and layouts are those of NVIDIA's
open-gpu-kernel-modules 535.261.03 and 550.163.01 (src/common/sdk/nvidia/inc/ctrl, class). Where only
one has a layout, the size of the parameters tells which. An answer without contents is a success
that leaves the parameters as they are.
"""
import struct

GPCS, TPCS, SMS = 6, 6, 2
ANY = 0


def words(*values):
    return struct.pack("<%dI" % len(values), *values)


def halves(*values):
    return struct.pack("<%dH" % len(values), *values)


def quads(*values):
    return struct.pack("<%dQ" % len(values), *values)


def sm_order():
    """GPC, TPC in it, SM in that, TPC of the card, virtual GPC, migratable TPC."""
    return b"".join(halves(gpc, tpc, sm, gpc * TPCS + tpc, gpc, 0) for gpc in range(GPCS) for tpc in range(TPCS) for sm in range(SMS))


def copy_engines(n):
    """Capabilities of n engines, of which five exist: all kinds of memory, and both layouts."""
    return bytes([0xED, 0x03]) * 5 + bytes(2 * (n - 5))


# halGA102ClassDescriptorList in g_gpu_class_list.c of 535.261.03, without repetitions
CLASSES = [0xC365, 0xC797, 0xC56F, 0xC7C0, 0xC7B5, 0xC561, 0x9067, 0x902D, 0x90F1, 0x844C, 0x9072, 0x90EC, 0x90E7, 0x90E6, 0x9074, 0x9096,
           0xC076, 0xA06C, 0xA140, 0xC369, 0x60, 0x70, 0x73, 0x7D, 0x5080, 0x50A0, 0x503B, 0x503C, 0xA081, 0xA084, 0xC372, 0xC670, 0xC671,
           0xC673, 0xC67A, 0xC67B, 0xC67D, 0xC67E, 0xC77F, 0xC7B0, 0xC7B7, 0xC7FA, 0xCB33, 0xDE, 0xC46F, 0xC461, 0xC36F, 0xC361]

# Control, size of its parameters, name, and a list of (offset, bytes) or a dictionary of indices.
ANSWERS = [
    (0x136, ANY, "SYSTEM_GET_FABRIC_STATUS", [(0, words(1))]),  # skip: no fabric
    (0x215, ANY, "GPU_ATTACH_IDS", [(128, words(0xFFFFFFFF))]),
    (0x216, ANY, "GPU_DETACH_IDS", []),
    (0x279, ANY, "GPU_QUERY_DRAIN_STATE", [(4, words(0, 0))]),
    (0x27B, ANY, "GPU_GET_MEMOP_ENABLE", [(0, words(0))]),
    (0x289, ANY, "GPU_ASYNC_ATTACH_ID", []),  # from 550 on
    (0xA04, ANY, "SYNC_GPU_BOOST_GROUP_INFO", [(0, words(0))]),
    (0xD04, ANY, "CLIENT_SET_INHERITED_SHARE_POLICY", []),
    (0x730102, ANY, "SYSTEM_GET_NUM_HEADS", [(8, words(4))]),
    (0x800280, ANY, "GPU_GET_NUM_SUBDEVICES", [(0, words(1))]),
    (0x800288, ANY, "GPU_QUERY_SW_STATE_PERSISTENCE", [(0, words(1))]),  # disabled
    (0x800289, ANY, "GPU_GET_VIRTUALIZATION_MODE", [(0, words(0))]),
    (0x80028E, ANY, "GPU_GET_VGX_CAPS", [(0, bytes(1))]),
    (0x800292, ANY, "GPU_GET_CLASSLIST_V2", [(0, words(len(CLASSES), *CLASSES))]),
    (0x800294, ANY, "GPU_GET_BRAND_CAPS", [(0, words(0))]),
    (0x801307, ANY, "FB_GET_CAPS_V2", [(0, bytes([0x0B, 0x80, 0x02]))]),
    (0x801402, ANY, "HOST_GET_CAPS_V2", []),
    (0x801909, ANY, "PERF_CUDA_LIMIT_SET_CONTROL", []),  # by its name in ctrl0080perf.h of 550
    (0x809909, ANY, "PERF_CUDA_LIMIT_SET_CONTROL of 535", []),
    (0x80170D, ANY, "FIFO_GET_CHANNELLIST", []),
    (0x20800102, ANY, "GPU_GET_INFO_V2", {0x2C: 0x806, 0x36: 1, 0x37: 1}),  # SM 8.6; profiling and debugging allowed
    (0x20800111, ANY, "GPU_GET_SHORT_NAME_STRING", [(0, b"GA102\0")]),
    (0x20800119, ANY, "GPU_GET_SIMULATION_INFO", [(0, words(0))]),
    (0x2080012F, ANY, "GPU_QUERY_ECC_STATUS", []),
    (0x20800131, ANY, "GPU_QUERY_COMPUTE_MODE_RULES", [(0, words(0))]),
    (0x20800133, ANY, "GPU_QUERY_ECC_CONFIGURATION", []),
    (0x20800145, ANY, "not public, without parameters, before a context", []),
    (0x20800146, ANY, "not public, without parameters, after a context", []),
    (0x20800170, ANY, "GPU_GET_ENGINES_V2", [(0, words(7, 1, 9, 10, 11, 12, 13, 0x22))]),  # GR0, COPY0 to 4, SW
    (0x20800406, ANY, "TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO", [(8, quads(*[10**9 + i // 2 * 10**5 for i in range(10)]))]),
    (0x20801201, ANY, "GR_GET_INFO",
     {0x6: GPCS * TPCS, 0x7: GPCS, 0x8: 1, 0x9: GPCS * TPCS, 0xA: 32, 0xB: 2048, 0xC: 0x806, 0xD: 48, 0xE: 32, 0x13: 128, 0x14: GPCS,
      0x15: 6, 0x17: TPCS, 0x18: 6, 0x1A: 1, 0x1B: 12, 0x1C: 3, 0x1D: GPCS * TPCS * SMS * 128, 0x1E: 2, 0x20: SMS, 0x22: 72, 0x23: 288,
      0x24: 1, 0x25: 12, 0x26: 48, 0x2A: TPCS, 0x2C: 64, 0x2D: 1, 0x2E: 64, 0x32: 4}),
    (0x2080121B, ANY, "GR_GET_GLOBAL_SM_ORDER", [(0, sm_order()), (6144, halves(GPCS * TPCS * SMS, GPCS * TPCS))]),
    (0x20801227, ANY, "GR_GET_CAPS_V2", []),
    (0x2080122A, ANY, "GR_GET_GPC_MASK", [(16, words((1 << GPCS) - 1))]),
    (0x2080122B, ANY, "GR_GET_TPC_MASK", [(20, words((1 << TPCS) - 1))]),
    # Beside the simulator's sizes: bus width, GDDR6, FBPs, and L2.
    (0x20801303, ANY, "FB_GET_INFO_V2", {0xB: 384, 0xD: 0x11, 0x19: 6, 0x1B: 6 << 20}),
    (0x20801701, ANY, "MC_GET_ARCH_INFO", [(0, words(0x170, 2, 0xA1, 0))]),
    (0x20801702, ANY, "MC_SERVICE_INTERRUPTS", []),
    (0x20801801, ANY, "BUS_GET_PCI_INFO", [(0, words(0x223610DE, 0x148210DE, 0xA1, 0x2236))]),
    (0x20801802, ANY, "BUS_GET_INFO", {0xF: 1, 0x10: 0, 0x2C: 0}),
    (0x20801823, ANY, "BUS_GET_INFO_V2", {0x0: 8, 0x2: 0, 0xB: 0}),
    (0x2080182A, ANY, "BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS", []),
    (0x2080200A, ANY, "PERF_BOOST", []),
    (0x20802209, ANY, "RC_GET_WATCHDOG_INFO", [(0, words(1))]),  # disabled
    (0x2080220C, ANY, "RC_RELEASE_WATCHDOG_REQUESTS", []),  # with CUDA_VISIBLE_DEVICES
    (0x20802A0A, 68, "CE_GET_ALL_CAPS", [(0, copy_engines(32)), (64, words(0x1F))]),
    (0x20802A0A, 136, "CE_GET_ALL_CAPS", [(0, copy_engines(64)), (128, quads(0x1F))]),  # from 550 on
    (0x20803601, ANY, "GSP_GET_FEATURES", [(0, words(0, 0))]),
    (0x20808159, ANY, "not public: a list of two indices", []),
    (0x906F0102, ANY, "RESET_CHANNEL", []),
    (0x83DE0309, ANY, "DEBUG_SET_EXCEPTION_MASK", []),
    (0xCB330101, ANY, "CONF_COMPUTE_SYSTEM_GET_CAPABILITIES", [(0, bytes(5))]),
]


def write(path):
    """The table as answers.c reads it."""
    with open(path, "w", encoding="ascii") as f:
        for cmd, size, _, contents in ANSWERS:
            if isinstance(contents, dict):
                print("%x %d = %s" % (cmd, size, " ".join("%x:%x" % pair for pair in contents.items())), file=f)
            for offset, data in contents if not isinstance(contents, dict) else []:
                print("%x %d %d %s" % (cmd, size, offset, data.hex()), file=f)
            if not contents:
                print("%x %d 0 -" % (cmd, size), file=f)
