/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"

/* Says why a file is no text that is read here, by its first bytes, in words for people. NULL: it
 * may be one. `>` of PowerShell writes UTF-16, as other programs of Windows do. */
static inline const char *text_form_wrong(Str text) {
        const unsigned char *b = (const unsigned char *) text.data;

        if (text.len < 2)
                return NULL;
        if ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff) ||
            (b[0] == '\0') != (b[1] == '\0'))
                return "is UTF-16; save it as UTF-8";
        if (b[0] == 0x1f && b[1] == 0x8b)
                return "is compressed by gzip; gzip -dc prints its text";
        if (str_has_prefix(text, STR("PK\x03\x04")))
                return "is a zip archive; unpack it first";
        if (str_has_prefix(text, STR("\x28\xb5\x2f\xfd")) || str_has_prefix(text, STR("\xfd"
                                                                                      "7zXZ")))
                return "is compressed; unpack it first";
        return NULL;
}
