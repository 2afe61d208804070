/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_time.h"

#include "base/cleanup.h"

enum { YEAR = 366 * 24 * 3600 };

static bool unit_of_time(Str *rest, double *ret_seconds) {
        static const struct {
                Str name;
                double seconds;
        } units[] = {{STR("ns"), 1e-9}, {STR("us"), 1e-6}, {STR("ms"), 1e-3},
                     {STR("s"), 1},     {STR("m"), 60},    {STR("h"), 3600}};

        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (str_has_prefix(*rest, units[i].name)) {
                        *rest = (Str){rest->data + units[i].name.len, rest->len - units[i].name.len};
                        *ret_seconds = units[i].seconds;
                        return true;
                }
        return false;
}

/* Reads digits with at most one decimal point. */
static bool number_of_time(Str *rest, double *ret) {
        double value = 0, place = 0;
        size_t i = 0, digits = 0;

        for (; i < rest->len; i++) {
                char c = rest->data[i];

                if (c == '.' && place == 0) {
                        place = 1;
                        continue;
                }
                if (c < '0' || c > '9')
                        break;
                digits++;
                value = place > 0 ? value + (c - '0') * (place /= 10) : value * 10 + (c - '0');
        }
        *rest = (Str){rest->data + i, rest->len - i};
        *ret = value;
        return digits > 0;
}

bool policy_time_duration(Str text, uint64_t *ret_seconds) {
        double sum = 0, number, unit;

        if (str_is_empty(text))
                return false;
        if (str_eq(text, STR("0"))) {
                *ret_seconds = 0;
                return true;
        }
        while (!str_is_empty(text)) {
                if (!number_of_time(&text, &number) || !unit_of_time(&text, &unit))
                        return false;
                sum += number * unit;
                if (!(sum <= YEAR))
                        return false;
        }
        *ret_seconds = (uint64_t) sum;
        return true;
}
