/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names of the driver's numbers, from its open source: those of src/gpu/rm, and others that real
 * programs use. */

#include <stdint.h>

/* "": there is none. */
const char *name_of_escape(uint32_t nr);
const char *name_of_class(uint32_t class_);
const char *name_of_control(uint32_t cmd);
const char *name_of_uvm(uint32_t request);
const char *name_of_status(uint32_t status);
const char *name_of_fb(uint32_t index);
