/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks of a cluster's nodes, by what the API server tells. Pure: each judges the facts. */

#include "cli/doctor/facts.h"

void check_cluster_api(const Facts *f, Finding *ret);
void check_cluster_nodes(const Facts *f, Finding *ret);
void check_cluster_labels(const Facts *f, Finding *ret);
void check_cluster_agents(const Facts *f, Finding *ret);
void check_cluster_conditions(const Facts *f, Finding *ret);
void check_cluster_memory(const Facts *f, Finding *ret);
void check_cluster_changes(const Facts *f, Finding *ret);
void check_cluster_policies(const Facts *f, Finding *ret);
void check_cluster_plugins(const Facts *f, Finding *ret);
void check_cluster_runtimes(const Facts *f, Finding *ret);

/* Whether the API server has answered the question. Otherwise sets GRADE_SKIPPED with the reason,
 * and names the right that is missing. */
bool check_cluster_knows(const Facts *f, ApiQuestion question, Finding *ret);

/* Returns the status of a condition of a Node or Pod; "" when it has none of this type. */
const char *check_cluster_condition(const json_t *object, const char *type);
