/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The API server's version, and the minors of Kubernetes that aliquot was run on. This list is the
 * only one in the sources; docs/operate/install.md names the same minors. */

#include "kube/client.h"

/* The oldest minor of Kubernetes 1 that is supported; the chart's kubeVersion has the same. */
#define SERVER_MINOR_FLOOR 22

/* Minors of Kubernetes 1 that the tests on a real cluster ran on, ascending. */
#define SERVER_MINORS_RUN                                                                                    \
        { 31, 36 }

/* GET /version, which every authenticated user may read (ClusterRole system:public-info-viewer).
 * Asks once, without repeats: the answer is for the log alone. Returns 0 or -ENOMEM. */
int server_version_ask(KubeClient *c, KubeDone done, void *userdata);

/* Makes the one line for the log from the reply (apimachinery/pkg/version, Info). Returns true when
 * the line is a warning: the version is older than the floor, or its minor was never run. Without a
 * readable answer the line says why. */
bool server_version_judge(const KubeReply *reply, Fault *line);

/* The minor of Kubernetes 1; 0 when the reply does not tell. */
uint32_t server_version_minor(const KubeReply *reply);
