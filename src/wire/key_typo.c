/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/key_typo.h"

enum {
        /* A key with this many letters behind the prefix, or fewer, is too short to be called
         * misspelt: aliyun.com/gpu is a resource of another device plugin, for whole cards. */
        LETTERS_TOO_FEW = 3,
        FOREIGN_LETTERS = 8, /* letters behind the prefix of another system, at least */
        DOMAIN_LETTERS = 2,  /* letters of a domain that may differ */
        SHOWN = 128,         /* bytes of a key in a sentence */
};

/* The beginnings that names of ours alone have. */
static const Str own_prefixes[] = {
        STR("aliquot.dev/"),  STR("aliyun.com/"),     STR("aliyun.accelerator/"),
        STR("ack.node.gpu."), STR("ALIYUN_COM_GPU_"), STR("CGPU_"),
};

/* Length of the part up to the slash, or up to the last dot of a name without a slash. */
static size_t prefix_length(Str name) {
        const char *slash = memchr(name.data, '/', name.len);
        size_t n = name.len;

        if (slash)
                return (size_t) (slash + 1 - name.data);
        while (n > 0 && name.data[n - 1] != '.')
                n--;
        return n;
}

/* Sets *ret_length to the length of the prefix. Returns whether it is one of ours. */
static bool has_own_prefix(Str name, size_t *ret_length) {
        for (size_t i = 0; i < ELEMENTSOF(own_prefixes); i++)
                if (str_has_prefix(name, own_prefixes[i])) {
                        *ret_length = own_prefixes[i].len;
                        return true;
                }
        *ret_length = prefix_length(name);
        return false;
}

/* One letter may differ, and another one for every five letters. */
static unsigned distance_of_own(Str word, Str name) {
        unsigned d = word.len > LETTERS_TOO_FEW ? str_misspelling(word, name) : KEY_TYPO_NONE;

        return d <= word.len / 5 + 1 ? d : KEY_TYPO_NONE;
}

static unsigned distance_of_foreign(Str word, Str name) {
        size_t more = word.len > name.len ? word.len - name.len : name.len - word.len;

        if (word.len < FOREIGN_LETTERS || more > 1 || word.data[0] != name.data[0])
                return KEY_TYPO_NONE;
        return str_misspelling(word, name) <= 1 ? 1 : KEY_TYPO_NONE;
}

/* The same word in a domain with other letters. */
static unsigned distance_of_domain(Str key, Str name) {
        Str word = key, word_meant = name;
        Str domain = str_split(&word, '/'), domain_meant = str_split(&word_meant, '/');
        unsigned d = KEY_TYPO_NONE;

        if (word.len > LETTERS_TOO_FEW && str_eq(word, word_meant) &&
            domain.len + DOMAIN_LETTERS >= domain_meant.len)
                d = str_misspelling(domain, domain_meant);
        if (d == 0) /* the beginning of the domain */
                d = (unsigned) (domain_meant.len - domain.len);
        return d <= DOMAIN_LETTERS ? d : KEY_TYPO_NONE;
}

unsigned key_typo_distance(Str key, const char *name) {
        Str meant = str_from(name), word = key;
        size_t n;
        bool own = has_own_prefix(meant, &n);

        if (str_eq(key, meant))
                return 0;
        if (!str_has_prefix(key, (Str){name, n}))
                return distance_of_domain(key, meant);
        word.data += n;
        word.len -= n;
        meant = str_from(name + n);
        return own ? distance_of_own(word, meant) : distance_of_foreign(word, meant);
}

void key_typo_complain(const char *kind, Str key, const char *kind_meant, const char *meant, Fault *ret) {
        (void) fault_set(ret, 0, "%s %.*s is not known and changes nothing, did you mean %s %s?", kind,
                         STR_CUT(key, SHOWN), kind_meant, meant);
}
