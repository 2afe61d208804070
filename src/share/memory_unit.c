/* SPDX-License-Identifier: Apache-2.0 */
#include "share/memory_unit.h"

#include "base/checked.h"

/* Splits "128MiB" into 128 and "MiB"; a missing number is 1. */
static int split_number(Str text, uint32_t *ret_number, Str *ret_suffix) {
        size_t digits = 0;

        while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
                digits++;
        *ret_number = 1;
        if (digits > 0 && !str_to_u32((Str){text.data, digits}, ret_number))
                return MEMORY_UNIT_E_MALFORMED;
        *ret_suffix = (Str){text.data + digits, text.len - digits};
        return 0;
}

int memory_unit_parse(Str text, MemoryUnit *ret) {
        uint32_t number, mib;
        Str suffix;

        if (str_is_empty(text)) {
                *ret = MEMORY_UNIT_GIB;
                return 0;
        }
        if (split_number(text, &number, &suffix) != 0 || number == 0)
                return MEMORY_UNIT_E_MALFORMED;
        if (str_eq(suffix, STR("MiB")))
                mib = number;
        else if (!str_eq(suffix, STR("GiB")) || !u32_mul(&mib, number, 1024))
                return MEMORY_UNIT_E_MALFORMED;
        *ret = (MemoryUnit){mib};
        return 0;
}

void memory_unit_format(MemoryUnit unit, Buf *out) {
        uint32_t number = unit.mib % 1024 == 0 ? unit.mib / 1024 : unit.mib;

        if (number != 1)
                buf_append_u64(out, number);
        buf_append_str(out, unit.mib % 1024 == 0 ? STR("GiB") : STR("MiB"));
}

void memory_unit_format_amount(uint32_t units, MemoryUnit unit, Buf *out) {
        buf_append_u64(out, units);
        buf_append_str(out, unit.mib == 1 || unit.mib == 1024 ? STR(" ") : STR(" x "));
        memory_unit_format(unit, out);
}

uint32_t memory_unit_count(uint32_t card_mib, MemoryUnit unit) {
        return card_mib / unit.mib;
}
