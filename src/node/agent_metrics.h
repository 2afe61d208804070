/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the metrics share: agent_metrics.c serves them, agent_card_metrics.c writes
 * those of cards, agent_container_metrics.c those of containers by card. All write the text format
 * of Prometheus; a lack of memory is the buffer's sticky error. */

#include "base/buf.h"
#include "node/agent.h"
#include "node/records/inventory.h"
#include "node/records/records.h"

int agent_metrics_serve(Agent *a, Fault *fault); /* 0 or negative errno with a fault */

void agent_metrics_cards(const Agent *a, Buf *out);
void agent_metrics_containers(const Agent *a, Buf *out);

/* Appends an opening brace and the labels of a card. The caller closes the brace. */
void agent_metrics_card_labels(const Agent *a, const MachineCard *c, Buf *out);

/* Whether the last census is recent. While the driver hangs there is none, and metrics made of it
 * have no series. */
bool agent_metrics_has_census(const Agent *a);

/* Whether a container of a record still holds its slice. */
bool agent_metrics_shows(const Agent *a, const Record *record, const RecordContainer *c);
