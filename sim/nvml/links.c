/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/links.h"
#include "sim/nvml/nvml.h"

/* ---- what the driver knows ---- */

static NvmlReturn get_links(NvmlHandle h, DriverCard **ret_card, SimLinks *ret) {
        NvmlReturn r = nvml_enter(h, ret_card);

        if (r != NVML_SUCCESS)
                return r;
        *ret = (SimLinks){0};
        return nvml_from_status(
                driver_control(&nvml.driver, (*ret_card)->subdevice, SIM_CTRL_LINKS, ret, sizeof *ret));
}

/* The other end of a link: the instance of a card, or -1 for the switch. Links to cards stand in
 * the order of the cards. */
static NvmlReturn find_link(NvmlHandle h, unsigned link, int *ret_other) {
        DriverCard *c;
        SimLinks links;
        NvmlReturn r = get_links(h, &c, &links);
        unsigned n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (link < links.switch_links) {
                *ret_other = -1;
                return NVML_SUCCESS;
        }
        for (int i = 0; i < CARD_PEERS_MAX; i++) {
                n += links.peers[i].links;
                if (links.switch_links == 0 && link < n) {
                        *ret_other = i;
                        return NVML_SUCCESS;
                }
        }
        return n > 0 || links.switch_links > 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- NVLink ---- */

NVML_API NvmlReturn nvmlDeviceGetNvLinkState(NvmlHandle h, unsigned link, unsigned *ret) {
        LOCKED;
        int other;
        NvmlReturn r = find_link(h, link, &other);

        if (r == NVML_SUCCESS && ret)
                *ret = 1;
        return ret ? r : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API NvmlReturn nvmlDeviceGetNvLinkVersion(NvmlHandle h, unsigned link, unsigned *ret) {
        LOCKED;
        int other;
        NvmlReturn r = find_link(h, link, &other);

        if (r == NVML_SUCCESS && ret)
                *ret = NVML_NVLINK_VERSION_2;
        return ret ? r : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_API NvmlReturn nvmlDeviceGetNvLinkRemoteDeviceType(NvmlHandle h, unsigned link, unsigned *ret) {
        LOCKED;
        int other;
        NvmlReturn r = find_link(h, link, &other);

        if (r == NVML_SUCCESS && ret)
                *ret = other < 0 ? NVML_NVLINK_TYPE_SWITCH : NVML_NVLINK_TYPE_GPU;
        return ret ? r : NVML_ERROR_INVALID_ARGUMENT;
}

/* The switch has an address that no card has. */
NVML_API NvmlReturn nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlHandle h, unsigned link, NvmlPci3 *ret) {
        LOCKED;
        int other;
        NvmlReturn r = find_link(h, link, &other);

        if (r != NVML_SUCCESS || !ret)
                return ret ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = (NvmlPci3){.domain = 0xffff};
        for (unsigned i = 0; i < nvml.driver.n; i++) {
                uint32_t gpu = nvml.driver.cards[i].gpu;

                if (other >= 0 && nvml.driver.cards[i].instance == (uint32_t) other)
                        *ret = (NvmlPci3){.domain = gpu >> 16, .bus = gpu >> 8 & 0xff, .device = gpu & 0xff};
        }
        return NVML_SUCCESS;
}

/* ---- pairs ---- */

/* Without links in the simulator's description nothing is known of the path. */
NVML_API NvmlReturn nvmlDeviceGetTopologyCommonAncestor(NvmlHandle h, NvmlHandle other, unsigned *ret) {
        static const unsigned levels[PEER_PATHS_] = {
                [PEER_PATH_SINGLE] = 10, [PEER_PATH_MULTIPLE] = 20, [PEER_PATH_HOST_BRIDGE] = 30,
                [PEER_PATH_NODE] = 40,   [PEER_PATH_SYSTEM] = 50,
        };
        LOCKED;
        DriverCard *c, *to;
        SimLinks links;
        NvmlReturn r = nvml_enter(other, &to);

        if (r == NVML_SUCCESS)
                r = get_links(h, &c, &links);
        if (r != NVML_SUCCESS || !ret)
                return ret ? r : NVML_ERROR_INVALID_ARGUMENT;
        if (to->instance >= CARD_PEERS_MAX || links.peers[to->instance].path == PEER_PATH_UNKNOWN)
                return NVML_ERROR_NOT_SUPPORTED;
        *ret = levels[links.peers[to->instance].path];
        return NVML_SUCCESS;
}
