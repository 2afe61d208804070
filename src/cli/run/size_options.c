/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/size_options.h"

#include "base/str.h"

/* Takes a number of units of --gpu-mem-unit, or an amount that has its own unit. */
int size_options_take_mem(void *options, const Option *option, const char *text, Fault *fault) {
        SizeOptions *o = options;

        o->units = 0;
        o->mem = text;
        o->request.unit_mib = 1;
        if (slicing_amount(text, &o->request.mem, &o->request.in_gib) ||
            (str_to_u32(str_from(text), &o->units) && o->units > 0))
                return 0;
        return fault_set(fault, 1, "must be a number of units from 1, or an amount as 2GiB or 512MiB");
}

int size_options_take_unit(void *options, const Option *option, const char *text, Fault *fault) {
        SizeOptions *o = options;

        o->unit = text;
        return slicing_unit(text) > 0 ? 0 : fault_set(fault, 1, "must be GiB, MiB or a multiple like 128MiB");
}

int size_options_take_core(void *options, const Option *option, const char *text, Fault *fault) {
        Str digits = str_from(text);
        SizeOptions *o = options;

        o->has_core = true;
        digits.len -= digits.len > 0 && text[digits.len - 1] == '%';
        return str_to_u32(digits, &o->request.core) && o->request.core <= 100 && o->request.core % 5 == 0
                       ? 0
                       : fault_set(fault, 1, "must be a multiple of 5 from 0 to 100");
}

bool size_options_has_mem(const SizeOptions *o) {
        return o->units > 0 || o->request.mem > 0;
}

int size_options_finish(const OptionsTable *table, SizeOptions *o) {
        if (o->units == 0 && o->unit)
                return options_wrong(table,
                                     "--gpu-mem has its own unit; --gpu-mem-unit goes with a number alone");
        if (o->units == 0) {
                o->unit = "MiB";
                return OPTIONS_GO;
        }
        o->unit = o->unit ? o->unit : "GiB";
        o->request.mem = o->units;
        o->request.unit_mib = slicing_unit(o->unit);
        o->request.in_gib = o->request.unit_mib % 1024 == 0;
        return OPTIONS_GO;
}
