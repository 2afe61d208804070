/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/key_typo.h"

/* A key with this many letters behind the prefix, or fewer, is too short to be called misspelt:
 * aliyun.com/gpu is a resource of another device plugin, for whole cards. */
enum { LETTERS_TOO_FEW = 3 };

/* Length of the part up to the slash, or up to the last dot of a name without a slash. */
static size_t prefix_length(const char *name) {
        const char *end = strchr(name, '/');

        if (!end)
                end = strrchr(name, '.');
        return end ? (size_t) (end + 1 - name) : 0;
}

/* One letter may differ, and another one for every five letters. */
unsigned key_typo_distance(Str key, const char *name) {
        Str prefix = {name, prefix_length(name)}, word;
        unsigned d;

        if (!str_has_prefix(key, prefix) || key.len <= prefix.len + LETTERS_TOO_FEW)
                return KEY_TYPO_NONE;
        word = (Str){key.data + prefix.len, key.len - prefix.len};
        d = str_misspelling(word, str_from(name + prefix.len));
        return d <= word.len / 5 + 1 ? d : KEY_TYPO_NONE;
}
