/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asserts that a structure has the layout of the driver's. */

#include <stddef.h>
#include <stdint.h>

#define RM_AT(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field)
#define RM_SIZE(type, size)    _Static_assert(sizeof(type) == (size), "size of " #type)
