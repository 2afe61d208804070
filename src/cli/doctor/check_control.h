/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks of the scheduler, the webhook and what lies between them. Pure: each judges the facts. */

#include "cli/doctor/facts.h"

void check_control_extender(const Facts *f, Finding *ret);
void check_control_leader(const Facts *f, Finding *ret);
void check_control_kube_scheduler(const Facts *f, Finding *ret);
void check_control_webhook(const Facts *f, Finding *ret);
void check_control_certificate(const Facts *f, Finding *ret);
void check_control_admission(const Facts *f, Finding *ret);
void check_control_network(const Facts *f, Finding *ret);
void check_control_clock(const Facts *f, Finding *ret);
void check_control_versions(const Facts *f, Finding *ret);
