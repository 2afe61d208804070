/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/release.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "rm-classes.h"

enum { VERSION_NUMBERS_MIN = 2, VERSION_NUMBERS_MAX = 4 };

/* Two to four numbers with dots between them. Sets *ret to the first three; missing ones are 0. */
static bool read_numbers(Str version, uint32_t ret[static 3]) {
        size_t n = 0;

        for (Str rest = version; n < VERSION_NUMBERS_MAX;) {
                size_t dot = rest.len;
                uint32_t number;

                for (size_t i = rest.len; i > 0; i--)
                        dot = rest.data[i - 1] == '.' ? i - 1 : dot;
                if (!str_to_u32((Str){rest.data, dot}, &number))
                        return false;
                if (n < 3)
                        ret[n] = number;
                n++;
                if (dot == rest.len)
                        return n >= VERSION_NUMBERS_MIN;
                rest = (Str){rest.data + dot + 1, rest.len - dot - 1};
        }
        return false;
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

int sim_release_parse(const char *version, SimRelease *ret, Fault *fault) {
        SimRelease release = {.facts = NULL};
        uint32_t numbers[3] = {0};
        size_t len = strlen(version);

        if (len >= sizeof release.version || !read_numbers(str_from(version), numbers))
                return fault_set(
                        fault, SIM_RELEASE_E_WRONG,
                        "the driver's version is \"%.64s\", must be two to four numbers such as 550.163.01",
                        version);
        release.facts = rm_release_of(numbers[0]);
        if (!release.facts)
                return fault_set(
                        fault, SIM_RELEASE_E_WRONG,
                        "the driver's version is \"%s\", must be %d or later: the calls of older drivers "
                        "are others",
                        version, RM_RELEASE_FLOOR);
        memcpy(release.version, version, len);
        release.wrong_size = checks_size_first(numbers[0], numbers[1], numbers[2])
                                     ? RM_ERR_INVALID_ARGUMENT
                                     : RM_ERR_INVALID_PARAM_STRUCT;
        release.converts_fb_info = numbers[0] >= 550;
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

/* The model of the first card that is older than Turing; NULL: none. */
static const char *old_model(const CardList *cards) {
        for (size_t i = 0; i < cards->n; i++)
                if (is_before_turing(cards->cards[i].model))
                        return cards->cards[i].model;
        return NULL;
}

const char *sim_release_version_of(const CardList *cards) {
        return old_model(cards) ? SIM_VERSION_OLD_CARDS : SIM_VERSION;
}

const char *sim_release_cannot_drive(const SimRelease *release, const CardList *cards) {
        return release->facts->branch > SIM_BRANCH_OLD_CARDS ? old_model(cards) : NULL;
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
