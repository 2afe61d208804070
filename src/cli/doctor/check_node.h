/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks of a node: kubelet, container runtime, mounts, node agent. Pure: each judges the facts. */

#include "cli/doctor/facts.h"

void check_node_kubelet(const Facts *f, Finding *ret);
void check_node_agent(const Facts *f, Finding *ret);
void check_node_records(const Facts *f, Finding *ret);
void check_node_policy(const Facts *f, Finding *ret);
void check_node_runtime(const Facts *f, Finding *ret);
void check_node_cdi(const Facts *f, Finding *ret);
void check_node_run_shared(const Facts *f, Finding *ret);
void check_node_other_plugin(const Facts *f, Finding *ret);

/* Judges a kubelet's configuration (kubelet.config.k8s.io/v1beta1). where: names the node or the
 * file. */
void check_node_configuration(const json_t *configuration, const char *where, Finding *ret);
