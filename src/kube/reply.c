/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reply.h"

#include "kube/random.h"

enum { BODY_SHOWN = 120 };

/* The length of a path without its query: a continue token is long and of no use to people. */
static int path_len(const char *path) {
        return (int) strcspn(path, "?");
}

/* The first line of an answer that is not a Status, usually from a proxy. */
static Str first_line(Str body) {
        body = str_trim(body);
        if (body.len > BODY_SHOWN)
                body.len = BODY_SHOWN;
        for (size_t i = 0; i < body.len; i++)
                if ((unsigned char) body.data[i] < ' ')
                        body.len = i;
        return body;
}

static void describe_refusal(KubeReply *reply, const KubeTransfer *t, Arena *arena) {
        KubeStatus status = {0};
        Str reason = STR(""), message = first_line(t->body);

        if (kube_status_decode(t->body, arena, &status)) {
                reason = arena_str(arena, status.reason); /* NUL-terminated */
                message = status.message;
                if (reply->retry_after == 0 && status.retry_after_sec > 0)
                        reply->retry_after = (usec_t) status.retry_after_sec * USEC_PER_SEC;
        }
        reply->reason = reason.data ? reason.data : "";
        (void) fault_set(&reply->fault, 0, "%s %.*s: HTTP %u%s%s%s" STR_FMT, t->method, path_len(t->path),
                         t->path, t->status, *reply->reason ? " " : "", reply->reason,
                         message.len > 0 ? ": " : "", STR_ARG(message));
}

void kube_reply_init(KubeReply *ret, const KubeTransfer *t, Arena *arena) {
        *ret = (KubeReply){
                .outcome = t->answered ? KUBE_DONE
                           : t->sent   ? KUBE_UNKNOWN
                                       : KUBE_NOT_SENT,
                .status = t->answered ? t->status : 0,
                .retry_after = t->retry_after,
                .date = t->date,
                .reason = "",
        };
        if (!t->answered) {
                (void) fault_set(&ret->fault, 0, "%s %.*s: %s: %s", t->method, path_len(t->path), t->path,
                                 !t->sent                        ? "not sent"
                                 : strcmp(t->method, "GET") == 0 ? "no answer"
                                                                 : "no answer, it may have been carried out",
                                 t->error);
                return;
        }
        ret->body = t->body;
        if (t->status < 200 || t->status > 299)
                describe_refusal(ret, t, arena);
}

bool kube_reply_is_transient(const KubeReply *reply) {
        return reply->outcome != KUBE_DONE || reply->status == 429 || reply->status >= 500;
}

usec_t kube_backoff(unsigned attempt, usec_t base, usec_t cap, usec_t retry_after) {
        usec_t ceiling = base;

        if (retry_after > 0)
                return retry_after < cap ? retry_after : cap;
        while (attempt-- > 0 && ceiling < cap)
                ceiling *= 2;
        return random_up_to(ceiling < cap ? ceiling : cap);
}
