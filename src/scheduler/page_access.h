/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which requests on the page's open port may read it (page_server.h). The API server decides twice:
 * a TokenReview says which user the token of the header Authorization stands for, and a
 * SubjectAccessReview whether this user may `get` the nonResourceURL PAGE_ACCESS_PATH.
 *
 * Bounds: the answer for a token counts for PAGE_ACCESS_KEPT, and the answers of PAGE_ACCESS_TOKENS
 * are kept, each under the SHA-256 of its token. Reviews of tokens that were not allowed before are
 * bounded for each peer and for all (page_peers.h). So a client that invents tokens takes neither
 * the API server's time nor the answers of users. The reviews have connections of their own: the
 * calls of binding wait for none of them. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "kube/client.h"
#include "net/http/http_server.h"

#define PAGE_ACCESS_PATH "/aliquot/page"
#define PAGE_ACCESS_KEPT (10 * USEC_PER_SEC) /* as in Kubernetes' own extension API servers */
/* For each of the two reviews. One that gets no answer is sent once more within it. */
#define PAGE_ACCESS_TIMEOUT (5 * USEC_PER_SEC)

enum {
        PAGE_ACCESS_TOKENS = 256,
        PAGE_ACCESS_TOKEN_LEN = 16 << 10,
};

typedef struct PageAccess PageAccess;

/* Answers a request of a user that may read the page. */
typedef void (*PageAccessNext)(void *userdata, HttpExchange *x, const HttpRequest *request);

/* config outlives it. 0, -ENOMEM or another negative errno. */
int page_access_new(sd_event *event, const KubeConfig *config, PageAccessNext next, void *userdata,
                    PageAccess **ret);
PageAccess *page_access_free(PageAccess *a); /* after the server that has its exchanges */

/* Calls `next`, at once or later, or answers with a sentence and perhaps one header more:
 *     401  there is no token that the API server knows
 *     403  its user has not the right
 *     503  the API server does not decide, or too many unknown tokens were sent */
void page_access_check(PageAccess *a, HttpExchange *x, const HttpRequest *request);

DEFINE_CLEANUP(PageAccess *, page_access_free)
