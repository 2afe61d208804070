/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/release.h"

#include <errno.h>

#include "base/str.h"

int sim_release_parse(const char *version, SimRelease *ret) {
        Str text = str_from(version);
        SimRelease release = {.facts = NULL};
        uint32_t branch;

        if (text.len >= sizeof release.version || strspn(version, "0123456789.") != text.len ||
            !str_to_u32((Str){version, strcspn(version, ".")}, &branch))
                return -EINVAL;
        release.facts = rm_release_of(branch);
        if (!release.facts)
                return -EINVAL;
        memcpy(release.version, version, text.len);
        *ret = release;
        return 0;
}
