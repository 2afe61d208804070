/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks of the machine: kernel, driver, slices. Pure: each judges the facts. */

#include "cli/doctor/facts.h"

void check_machine_kernel(const Facts *f, Finding *ret);
void check_machine_driver(const Facts *f, Finding *ret);
void check_machine_devices(const Facts *f, Finding *ret);
void check_machine_uvm(const Facts *f, Finding *ret);
void check_machine_nvml(const Facts *f, Finding *ret);
void check_machine_cards(const Facts *f, Finding *ret);
void check_machine_locks(const Facts *f, Finding *ret);
void check_machine_slices(const Facts *f, Finding *ret);
void check_machine_outside(const Facts *f, Finding *ret);
void check_machine_library(const Facts *f, Finding *ret);
void check_machine_selinux(const Facts *f, Finding *ret);
