/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which requests to the page (page_server.h) come from where the page itself does. A browser sends
 * what any site asks it to send, also to 127.0.0.1. Pure. */

#include "base/fault.h"
#include "base/str.h"

/* Whether the header Host names an address, localhost or one of `names`, with any port. A name that
 * a foreign site chose, and lets point to 127.0.0.1, is none of these: so no site can read the page
 * through DNS. names: with commas between them, or NULL. */
bool page_host_is_ours(const char *host, const char *names);

/* Checks such a list. Returns 0 or -EINVAL with a fault. */
int page_host_check_names(const char *names, Fault *fault);

/* Whether the header Sec-Fetch-Site (W3C Fetch Metadata) allows the request; NULL: absent, as from
 * curl. A link from elsewhere may open the page itself (navigates), but no data. */
bool page_host_may_fetch(const char *site, bool navigates);

/* Whether the page may listen there: "ADDRESS:PORT" with an address of the loopback. Returns 0 or
 * -EINVAL with a fault. */
int page_host_check_listen(const char *listen, Fault *fault);
