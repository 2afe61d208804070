/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <stdarg.h>
#include <string.h>

#include "base/str.h"

#undef fault_set
#undef fault_wrap

/* Removes an incomplete UTF-8 character from the end of a text that was cut to fit. */
static void end_whole(Fault *fault) {
        size_t n = strlen(fault->text);

        if (n == sizeof fault->text - 1)
                fault->text[str_whole((Str){fault->text, n})] = '\0';
}

int fault_set(Fault *fault, int r, const char *format, ...) {
        va_list args;

        if (!fault)
                return r;
        va_start(args, format);
        if (vsnprintf(fault->text, sizeof fault->text, format, args) < 0)
                fault->text[0] = '\0';
        va_end(args);
        end_whole(fault);
        return r;
}

int fault_wrap(Fault *fault, int r, const char *format, ...) {
        char said[sizeof fault->text];
        va_list args;
        size_t n;

        if (!fault)
                return r;
        memcpy(said, fault->text, sizeof said);
        va_start(args, format);
        if (vsnprintf(fault->text, sizeof fault->text, format, args) < 0)
                fault->text[0] = '\0';
        va_end(args);
        n = strlen(fault->text);
        /* the text is cut when it is too long */
        (void) snprintf(fault->text + n, sizeof fault->text - n, ": %s", said);
        end_whole(fault);
        return r;
}
