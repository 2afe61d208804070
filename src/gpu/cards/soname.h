/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The SONAME of a shared library: the name by which the loader looks for it. Read piece by piece,
 * and not mapped: a file that is replaced meanwhile, as in an upgrade of the driver, must not end
 * us by SIGBUS. */

enum { SONAME_E_NONE = 1 };
enum { SONAME_SIZE = 256 };

/* fd: any file. Only libraries that this machine can load: 64 bits, its byte order, its processor.
 * 0 with a file name (no '/', plain ASCII, not empty); SONAME_E_NONE when it is no such library or
 * has no SONAME, and *ret is untouched. */
int soname_read(int fd, char (*ret)[SONAME_SIZE]);
