/* SPDX-License-Identifier: Apache-2.0 */

/* A library with libcuda's name and none of its functions, as a wrapper before a driver may be. */

__attribute__((visibility("default"))) int cuBare(void);
int cuBare(void) {
        return 1;
}
