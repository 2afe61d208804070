/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The SONAME of a shared library: the name by which the loader looks for it. The file is read, not
 * mapped: if it is replaced meanwhile, as in an upgrade of the driver, a mapping could end us by
 * SIGBUS. */

enum { SONAME_E_NONE = 1 };
enum { SONAME_SIZE = 256 };

/* Reads the SONAME. fd: any file. Only libraries that this machine can load count: 64 bits, its
 * byte order, its processor. Returns 0 with a file name (no '/', plain ASCII, not empty), or
 * SONAME_E_NONE and *ret unchanged when the file is no such library or has no SONAME. */
int soname_read(int fd, char (*ret)[SONAME_SIZE]);
