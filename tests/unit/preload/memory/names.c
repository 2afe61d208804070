/* SPDX-License-Identifier: Apache-2.0 */

/* names LIBRARY-OF-CUDA: which library a function comes from, with libaliquot.so preloaded. It only
 * needs a libc with dlsym(), so that it can be built for other libcs and machines. It ends with the
 * line of the first check that fails. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(e)                                                                                             \
        do {                                                                                                 \
                if (!(e)) {                                                                                  \
                        (void) fprintf(stderr, "names.c:%d: %s\n", __LINE__, #e);                            \
                        exit(1);                                                                             \
                }                                                                                            \
        } while (0)

enum { DEEPBIND = 8 }; /* of glibc; other libcs have none */

typedef int LaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                         unsigned bz, unsigned shared, void *stream, void **params, void **extra);

static int comes_from(void *function, const char *part) {
        Dl_info info;

        return function && dladdr(function, &info) != 0 && strstr(info.dli_fname, part) != NULL;
}

typedef int GetProcAddress(const char *name, void **ret, int version, uint64_t flags, int *status);

static int is_ours(GetProcAddress *get, const char *name, int version) {
        void *p = NULL;

        CHECK(get(name, &p, version, 0, NULL) == 0 && p);
        return comes_from(p, "libaliquot");
}

/* The functions that cuGetProcAddress() gives, where they are not the exported ones. Copies of old
 * versions have addresses of 32 bits, and are left alone. */
static void of_get_proc_address(void *library) {
        GetProcAddress *get;
        void *p = dlsym(library, "cuGetProcAddress_v2");

        CHECK(comes_from(p, "libaliquot"));
        memcpy(&get, &p, sizeof get);
        CHECK(is_ours(get, "cuLaunchKernel", 4000) && is_ours(get, "cuMemcpyHtoD", 12000) &&
              is_ours(get, "cuMemcpyDtoH", 12000) && is_ours(get, "cuMemcpyAsync", 4000) &&
              is_ours(get, "cuMemsetD32Async", 3020));
        CHECK(!is_ours(get, "cuMemcpyHtoD", 2000) && !is_ours(get, "cuMemcpyDtoH", 2000) &&
              !is_ours(get, "cuStreamQuery", 12000) && !is_ours(get, "cuCtxDestroy", 12000));
}

static void of_library(void *library, const char *cuda) {
        LaunchKernel *launch;
        void *p = dlsym(library, "cuLaunchKernel");

        CHECK(comes_from(p, "libaliquot"));
        memcpy(&launch, &p, sizeof launch);
        CHECK(launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 0); /* it finds the real one */
        CHECK(comes_from(dlsym(library, "cuStreamQuery"), cuda));
        CHECK(dlsym(library, "cuGraphLaunch") == NULL); /* missing: libaliquot.so does not invent it */
        CHECK(dlerror() != NULL);
        CHECK(dlsym(library, "cuNothing") == NULL);
        CHECK(dlerror() != NULL);
}

/* For the names that libaliquot.so interposes, a handle of the C library gives its functions, too,
 * as for any library before the C library. Other names are left alone. */
static void of_libc(void *everything) {
        static const char *const names[] = {"ioctl", "mmap", "munmap", "mremap"};
        void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD); /* of glibc */

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                CHECK(comes_from(dlsym(RTLD_DEFAULT, names[i]), "libaliquot"));
                CHECK(comes_from(dlsym(everything, names[i]), "libaliquot"));
                CHECK(!libc || comes_from(dlsym(libc, names[i]), "libaliquot"));
        }
        CHECK(!libc || !dlsym(libc, "dlopen") || comes_from(dlsym(libc, "dlopen"), "libaliquot"));
        /* musl takes the name for its own library, which is the dynamic linker. */
        CHECK(!libc || comes_from(dlsym(libc, "mprotect"), "libc") ||
              comes_from(dlsym(libc, "mprotect"), "ld-musl"));
        CHECK(!libc || dlsym(libc, "no_such_function") == NULL);
        CHECK(!libc || dlclose(libc) == 0);
}

/* Where there may be slices, the flag is removed, and the rest of the call stays. */
static void deepbind(const char *cuda) {
        void *library;

        CHECK(setenv("ALIQUOT_SLICES", "/proc/self/absent", 1) == 0);
        CHECK(dlopen("/proc/self/absent", RTLD_NOW | DEEPBIND) == NULL && dlerror() != NULL);
        library = dlopen(cuda, RTLD_NOW | DEEPBIND);
        CHECK(library && comes_from(dlsym(library, "cuStreamQuery"), cuda));
        CHECK(dlclose(library) == 0);
        CHECK(unsetenv("ALIQUOT_SLICES") == 0);
}

int main(int argc, char **argv) {
        const char *cuda = argc > 1 ? argv[1] : "libcuda.so.1";
        void *library, *everything = dlopen(NULL, RTLD_NOW);

        CHECK(everything);
        CHECK(dlsym(everything, "getpid") != NULL &&
              dlsym(RTLD_DEFAULT, "getpid") == dlsym(everything, "getpid"));
        CHECK(dlsym(RTLD_NEXT, "strtol") == dlsym(RTLD_DEFAULT, "strtol"));
        CHECK(comes_from(dlsym(everything, "dlsym"), "libaliquot"));
        CHECK(comes_from(dlsym(everything, "dlopen"), "libaliquot"));
        CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
        of_libc(everything);
        deepbind(cuda);
        library = dlopen(cuda, RTLD_NOW | RTLD_LOCAL);
        CHECK(library);
        of_library(library, cuda);
        of_get_proc_address(library);
        CHECK(dlclose(library) == 0);
        CHECK(dlopen(cuda, RTLD_NOW | RTLD_GLOBAL) != NULL);
        CHECK(comes_from(dlsym(RTLD_NEXT, "cuLaunchKernel"), "libaliquot"));
        (void) puts("fine");
        return 0;
}
