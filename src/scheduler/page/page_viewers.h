/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The open event streams of the page. All viewers get the same differences, once a second while
 * there is a viewer. One that reads too slowly gets no more of them. When it has read all that was
 * sent, it gets the whole state again; if it does not get that far, it is dropped. So a viewer
 * takes the memory of one state and few differences. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "net/http/http_server.h"
#include "scheduler/page/page_state.h"

enum { PAGE_VIEWERS_MAX = 16 };

typedef struct PageViewers PageViewers;

/* state outlives *ret. Returns 0, -ENOMEM, or another negative errno of the event loop. */
int page_viewers_new(sd_event *event, PageState *state, PageViewers **ret);
PageViewers *page_viewers_free(PageViewers *v); /* after the server that owns the streams */

bool page_viewers_is_full(const PageViewers *v);

/* Answers the exchange with a stream: the whole state first, then the differences. Not when
 * full. */
void page_viewers_add(PageViewers *v, HttpExchange *x);
