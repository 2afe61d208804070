/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/release.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "rm-classes.h"

/* The next number of a version, and what is behind its dot. false: it has none. */
static bool next_number(const char **text, uint32_t *ret) {
        size_t n = strcspn(*text, ".");

        if (!str_to_u32((Str){*text, n}, ret))
                return false;
        *text += (*text)[n] == '.' ? n + 1 : n;
        return true;
}

static bool checks_size_first(uint32_t branch, uint32_t minor, uint32_t patch) {
        switch (branch) {
        case 535:
                return minor >= 161;
        case 545:
                return false;
        case 550:
                return minor > 40 || (minor == 40 && patch >= 53);
        default:
                return true;
        }
}

int sim_release_parse(const char *version, SimRelease *ret) {
        SimRelease release = {.facts = NULL};
        uint32_t branch, minor = 0, patch = 0;
        size_t len = strlen(version);
        const char *rest = version;

        if (len >= sizeof release.version || strspn(version, "0123456789.") != len ||
            !next_number(&rest, &branch))
                return -EINVAL;
        if (next_number(&rest, &minor))
                (void) next_number(&rest, &patch); /* some versions have two numbers: 565.77 */
        release.facts = rm_release_of(branch);
        if (!release.facts)
                return -EINVAL;
        memcpy(release.version, version, len);
        release.wrong_size = checks_size_first(branch, minor, patch) ? RM_ERR_INVALID_ARGUMENT
                                                                     : RM_ERR_INVALID_PARAM_STRUCT;
        release.converts_fb_info = branch >= 550;
        *ret = release;
        return 0;
}

/* Is the part in the name, at the beginning of a word? A blank may be written as "-": A100-SXM4 has
 * no word M4, and TITAN-RTX no TITAN V. */
static bool has_words(const char *name, const char *part) {
        bool begins = true;

        for (; *name; name++) {
                size_t n = 0;

                while (part[n] && (name[n] == '-' ? ' ' : name[n]) == part[n])
                        n++;
                if (begins && !part[n])
                        return true;
                begins = *name == ' ' || *name == '-';
        }
        return false;
}

/* By the beginnings of words of the model's name, as NVML has it. */
static bool is_before_turing(const char *model) {
        static const char *const parts[] = {
                "V100", "GV100",     "TITAN V",  "P100",     "GP100",    "P40", "P4",
                "P6",   "TITAN X",   "GTX 10",   "GT 10",    "M60",      "M40", "M10",
                "M6",   "M4",        "GTX 9",    "K80",      "K40",      "K20", "GTX 7",
                "GT 7", "GTX TITAN", "Quadro P", "Quadro M", "Quadro K",
        };

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (has_words(model, parts[i]))
                        return true;
        return false;
}

const char *sim_release_version_of(const CardList *cards) {
        for (size_t i = 0; i < cards->n; i++)
                if (is_before_turing(cards->cards[i].model))
                        return SIM_VERSION_OLD_CARDS;
        return SIM_VERSION;
}

bool sim_release_has_class(const SimRelease *release, uint32_t class_) {
#define CLASS_ROW(...) {__VA_ARGS__},
        static const struct {
                uint32_t class_;
                uint16_t first, last; /* branches */
        } classes[] = {RM_CLASSES(CLASS_ROW)};
#undef CLASS_ROW

        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
                if (classes[i].class_ == class_ && classes[i].first <= release->facts->branch &&
                    release->facts->branch <= classes[i].last)
                        return true;
        return false;
}
