/* SPDX-License-Identifier: Apache-2.0 */

/* What the pages of a container's slice say of its size, and of what its processes hold. */

#include "node/isolation/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "slice/visible.h"

#define MIB (UINT64_C(1) << 20)

/* Opens the directory of a page. number: of the card among those of the container. Returns a
 * descriptor or negative errno. */
static int open_page(const Isolation *i, const RecordContainer *given, uint32_t number) {
        char id[SLICEDIR_ID_SIZE], path[SLICEDIR_ID_SIZE + 16];
        int fd;

        isolation_slice_name(given, id);
        (void) snprintf(path, sizeof path, "%s/%u", id, number);
        fd = openat(i->slicedir.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

/* ---- what is held ---- */

/* Bytes of the card that the container's processes hold or may take. UINT64_MAX: not known. */
static uint64_t held_bytes(const Isolation *i, const RecordContainer *given, uint32_t index) {
        _cleanup_close_ int directory = -1;
        uint32_t card, count, number = 0;
        SliceLimits limits;
        SliceUsage usage;
        size_t at = 0;
        int r;

        while (device_set_next_card(&given->given[DEVICE_MEM], &at, &card, &count) && card != index)
                number++;
        if (i->slicedir.fd < 0)
                return UINT64_MAX;
        directory = open_page(i, given, number);
        if (directory < 0)
                return directory == -ENOENT ? 0 : UINT64_MAX;
        r = slice_files_read_limits(directory, &limits);
        if (r != 0)
                return r == -ENOENT ? 0 : UINT64_MAX;
        if ((limits.flags & SLICE_FLAG_OPEN) != 0)
                return 0;
        r = slice_files_read_usage(directory, &usage);
        if (r != 0)
                return r == -ENOENT ? limits.limit : UINT64_MAX;
        return usage.used > limits.limit ? usage.used : limits.limit;
}

uint32_t isolation_held(const Isolation *i, const Inventory *v, const RecordContainer *given,
                        uint32_t index) {
        const MachineCard *card = inventory_machine_card(v, index);
        uint32_t dev = card ? memory_unit_count(card->mib, v->unit) : 0;
        uint64_t bytes, mib;

        if (!share_mode_is_isolated(v->mode))
                return 0;
        bytes = held_bytes(i, given, index);
        if (bytes == 0)
                return 0;
        if (bytes == UINT64_MAX || dev == 0)
                return UINT32_MAX;
        mib = bytes / MIB + (bytes % MIB != 0);
        return mib < card->mib ? (uint32_t) visible_units(card->mib, mib, dev) : dev;
}

/* ---- the size in force ---- */

/* A page without `granted` is at its limit. */
static bool is_sized_page(const SliceLimits *l, const char *owner) {
        return (l->flags & SLICE_FLAG_OPEN) == 0 && l->granted >= MIB && l->granted <= l->card_bytes &&
               l->limit <= l->card_bytes && strcmp(l->container, owner) == 0;
}

IsolationSize isolation_page_size(const Isolation *i, const RecordContainer *given, const char *owner) {
        IsolationSize size = {0, 0}, limit = {0, 0};
        uint32_t card, count, number = 0, part, largest = 0;
        bool differs = false;
        size_t at = 0;

        while (i->slicedir.fd >= 0 && number < SLICEDIR_CARDS_MAX &&
               device_set_next_card(&given->given[DEVICE_MEM], &at, &card, &count)) {
                _cleanup_close_ int directory = open_page(i, given, number++);
                SliceLimits l;

                if (directory < 0 || slice_files_read_limits(directory, &l) != 0 || !is_sized_page(&l, owner))
                        return limit;
                part = (uint32_t) visible_part(l.limit / MIB, l.granted / MIB, count);
                largest = part > largest ? part : largest;
                differs |= part != count;
                size.core = l.core_percent != l.granted_percent ? l.core_percent : 0;
        }
        size.mem = differs ? largest * device_set_count_cards(&given->given[DEVICE_MEM]) : 0;
        return size;
}
