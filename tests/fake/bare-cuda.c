/* SPDX-License-Identifier: Apache-2.0 */

/* Bears libcuda's name, and has nothing of it, as what stands before a driver sometimes does. */

__attribute__((visibility("default"))) int cuBare(void);
int cuBare(void) {
        return 1;
}
