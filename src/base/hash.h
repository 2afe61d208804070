/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* <uthash.h> as the house uses it: out of memory is an answer. Left alone it calls exit(). Include this, never
 * <uthash.h> itself. After every HASH_ADD_*():
 *
 *     if (!hash_added(element, hh))
 *             return -ENOMEM; // and the table is as it was before */

#ifdef UTHASH_H
#error "include base/hash.h instead of <uthash.h>"
#endif

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define hash_added(element, handle) ((element)->handle.tbl != NULL)
