/* SPDX-License-Identifier: Apache-2.0 */

/* For LD_AUDIT: the dynamic linker finds no libaliquot.so, and passes over it. */

#include <stdint.h>
#include <string.h>

/* Called by the dynamic linker: rtld-audit(7). */
unsigned la_version(unsigned version);
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);

unsigned la_version(unsigned version) {
        return version;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
        (void) cookie;
        (void) flag;
        return strstr(name, "libaliquot") ? NULL : (char *) name;
}
