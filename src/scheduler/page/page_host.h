/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decides which requests to the page (page_server.h) come from the page itself. A browser sends
 * requests that any site asks it to send, also to 127.0.0.1. Pure. */

#include "base/fault.h"
#include "base/str.h"

/* Whether the header Host is an IP address, localhost or one of `names`, with any port. A domain of
 * an attacker that resolves to 127.0.0.1 (DNS rebinding) is none of these, so its site cannot read
 * the page. names: separated by commas, or NULL. */
bool page_host_is_ours(const char *host, const char *names);

/* Checks such a list. Returns 0 or -EINVAL with a fault. */
int page_host_check_names(const char *names, Fault *fault);

/* Whether the header Sec-Fetch-Site (W3C Fetch Metadata) permits the request; NULL: no header, as
 * from curl. navigates: the request is for the page itself, to which other sites may link; they may
 * not load data. */
bool page_host_may_fetch(const char *site, bool navigates);

/* Checks the listen address of the page: 127.0.0.1:PORT or [::1]:PORT. Returns 0 or -EINVAL with a
 * fault. */
int page_host_check_listen(const char *listen, Fault *fault);
