/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page_access.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <inttypes.h>
#include <strings.h>

#include "base/log.h"
#include "scheduler/page_peers.h"
#include "wire/json_field.h"
#include "wire/json_write.h"

#define TOKEN_REVIEWS  "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define TYPE_TEXT      "text/plain; charset=utf-8"
#define BEARER         "Bearer "

enum {
        DIGEST_LEN = 32,  /* SHA-256 */
        USER_SHOWN = 200, /* bytes of a user's name in an answer */
};

#define REPEAT_MIN (PAGE_ACCESS_TIMEOUT / 10) /* left for a review, or it is not sent again */

/* A request that waits for a review. */
typedef struct Applicant {
        struct Applicant *next;
        struct AccessReview *review;
        HttpExchange *exchange;
        HttpRequest request;
} Applicant;

/* What is known of one token. */
typedef struct AccessReview {
        PageAccess *access;
        unsigned char digest[DIGEST_LEN];
        Applicant *applicants;
        KubeCall *call;   /* NULL: it is over */
        const char *path; /* this and the next four: of the call that is under way */
        KubeDone done;
        Buf body;
        usec_t deadline;
        bool repeated;
        usec_t until;    /* the answer counts */
        usec_t used;     /* last */
        bool known;      /* the last answer was that the user may read */
        unsigned status; /* of the answer; 0: the place is free */
        Fault why;       /* the sentence of the answer */
        char user[USER_SHOWN + 1];
} AccessReview;

struct PageAccess {
        KubeClient *client;
        PageAccessNext next;
        void *userdata;
        AccessReview reviews[PAGE_ACCESS_TOKENS];
        PagePeers peers; /* of unknown tokens */
        bool failing;    /* the last review had no answer */
};

/* ---- answers ---- */

static void refuse(HttpExchange *x, unsigned status, const char *why) {
        _cleanup_buf_ Buf out = BUF_NULL;

        if (status == 401)
                http_respond_header(x, "WWW-Authenticate", "Bearer realm=\"aliquot\"");
        else if (status == 503)
                http_respond_header(x, "Retry-After", "5");
        buf_appendf(&out, "%s\n", why);
        http_respond(x, status, TYPE_TEXT, buf_result(&out) == 0 ? buf_str(&out) : STR("out of memory\n"));
}

static void conclude(const AccessReview *v, HttpExchange *x, const HttpRequest *request) {
        const PageAccess *a = v->access;

        if (v->status == 200)
                a->next(a->userdata, x, request);
        else
                refuse(x, v->status, v->why.text);
}

/* An answer of the API server is kept. Without one, the next request asks again. */
static void finish(AccessReview *v, unsigned status) {
        Applicant *next = v->applicants;

        v->applicants = NULL;
        v->call = NULL;
        buf_done(&v->body);
        v->status = status;
        v->known = status == 200 || (v->known && status == 503);
        v->used = clock_monotonic_usec();
        v->until = status == 503 ? 0 : v->used + PAGE_ACCESS_KEPT;
        while (next) {
                Applicant *one = next;

                next = one->next;
                http_exchange_on_close(one->exchange, NULL, NULL);
                conclude(v, one->exchange, &one->request);
                free(one);
        }
}

/* The log has one line when it begins and one when it ends, however many requests come. */
static void note_failure(PageAccess *a, const char *why) {
        if (a->failing != (why != NULL))
                log_write(why ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "page: the API server %s%s",
                          why ? "reviews no tokens: " : "reviews tokens again", why ? why : "");
        a->failing = why != NULL;
}

static void finish_without(AccessReview *v, const char *why) {
        note_failure(v->access, why);
        (void) fault_set(&v->why, 0, "the API server did not say whether this token may read the page");
        finish(v, 503);
}

/* ---- the reviews ---- */

static int send_review(AccessReview *v, usec_t timeout) {
        KubeRequest request = {
                .method = "POST", .path = v->path, .body = buf_str(&v->body), .timeout = timeout};

        return kube_call(v->access->client, &request, v->done, v, &v->call);
}

/* Takes the body. 0 or -ENOMEM. */
static int ask(AccessReview *v, const char *path, Buf *body, KubeDone done) {
        int r = buf_result(body);

        if (r < 0)
                return r;
        buf_done(&v->body);
        v->body = *body;
        *body = BUF_NULL;
        v->path = path;
        v->done = done;
        v->deadline = clock_monotonic_usec() + PAGE_ACCESS_TIMEOUT;
        v->repeated = false;
        r = send_review(v, PAGE_ACCESS_TIMEOUT);
        if (r < 0)
                buf_done(&v->body);
        return r;
}

/* Sends a review without an answer once more, because its kept connection may have been dead. A
 * review changes nothing, so it may reach the API server twice. Returns whether it is under way. */
static bool repeat(AccessReview *v, const KubeReply *reply) {
        usec_t now = clock_monotonic_usec();

        if (reply->outcome == KUBE_DONE || v->repeated || now + REPEAT_MIN > v->deadline)
                return false;
        v->repeated = true;
        return send_review(v, v->deadline - now) == 0;
}

typedef struct Authentication {
        Str username, uid, groups, extra; /* the last two as JSON */
        bool authenticated;
} Authentication;

static const JsonField user_fields[] = {
        JSON_FIELD(Authentication, username, "username", json_field_str),
        JSON_FIELD(Authentication, uid, "uid", json_field_str),
        JSON_FIELD(Authentication, groups, "groups", json_field_raw),
        JSON_FIELD(Authentication, extra, "extra", json_field_raw),
};

static void read_user(JsonReader *r, Arena *arena, void *ret) {
        json_field_decode(r, arena, user_fields, ELEMENTSOF(user_fields), ret);
}

static const JsonField authentication_fields[] = {
        JSON_FIELD(Authentication, authenticated, "authenticated", json_field_bool),
        JSON_NESTED("user", read_user),
};

static void read_authentication(JsonReader *r, Arena *arena, void *ret) {
        json_field_decode(r, arena, authentication_fields, ELEMENTSOF(authentication_fields), ret);
}

static const JsonField token_fields[] = {JSON_NESTED("status", read_authentication)};

typedef struct Authorization {
        bool allowed, denied;
} Authorization;

static const JsonField authorization_fields[] = {
        JSON_FIELD(Authorization, allowed, "allowed", json_field_bool),
        JSON_FIELD(Authorization, denied, "denied", json_field_bool),
};

static void read_authorization(JsonReader *r, Arena *arena, void *ret) {
        json_field_decode(r, arena, authorization_fields, ELEMENTSOF(authorization_fields), ret);
}

static const JsonField access_fields[] = {JSON_NESTED("status", read_authorization)};

/* NULL when the reply was read into `into`; else why there is none. */
static const char *read_reply(const KubeReply *reply, const JsonField *fields, size_t n, Arena *arena,
                              void *into) {
        JsonReader reader;

        if (reply->outcome != KUBE_DONE || reply->status < 200 || reply->status > 299)
                return reply->fault.text[0] ? reply->fault.text : "it does not answer";
        json_init(&reader, reply->body);
        json_field_decode(&reader, arena, fields, n, into);
        return json_finish(&reader, NULL) == 0 ? NULL : "its answer is malformed";
}

static void on_access(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        AccessReview *v = userdata;
        Authorization got = {0};
        const char *why;

        if (repeat(v, reply))
                return;
        why = read_reply(reply, access_fields, ELEMENTSOF(access_fields), &arena, &got);
        if (why) {
                finish_without(v, why);
                return;
        }
        note_failure(v->access, NULL);
        (void) fault_set(&v->why, 0,
                         "the user %s may not get the nonResourceURL " PAGE_ACCESS_PATH
                         ": the ClusterRole aliquot-page-viewer has this right",
                         v->user);
        finish(v, got.allowed && !got.denied ? 200 : 403);
}

/* Groups and extra go from one review into the other as they stand. */
static int ask_access(AccessReview *v, const Authentication *user) {
        _cleanup_buf_ Buf body = BUF_NULL;
        JsonWriter w;

        json_write_init(&w, &body);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "authorization.k8s.io/v1");
        json_write_text(&w, "kind", "SubjectAccessReview");
        json_write_object(&w, "spec");
        json_write_str(&w, "user", user->username);
        json_write_str(&w, "uid", user->uid);
        if (!str_is_empty(user->groups))
                json_write_raw(&w, "groups", user->groups);
        if (!str_is_empty(user->extra))
                json_write_raw(&w, "extra", user->extra);
        json_write_object(&w, "nonResourceAttributes");
        json_write_text(&w, "path", PAGE_ACCESS_PATH);
        json_write_text(&w, "verb", "get");
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
        return ask(v, ACCESS_REVIEWS, &body, on_access);
}

static void on_token(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        AccessReview *v = userdata;
        Authentication got = {0};
        const char *why;

        if (repeat(v, reply))
                return;
        why = read_reply(reply, token_fields, ELEMENTSOF(token_fields), &arena, &got);
        if (why)
                finish_without(v, why);
        else if (!got.authenticated || str_is_empty(got.username)) {
                note_failure(v->access, NULL);
                (void) fault_set(&v->why, 0, "the API server does not know this token");
                finish(v, 401);
        } else {
                (void) snprintf(v->user, sizeof v->user, STR_FMT, STR_CUT(got.username, USER_SHOWN));
                if (ask_access(v, &got) < 0)
                        finish_without(v, "out of memory");
        }
}

static int ask_token(AccessReview *v, Str token) {
        _cleanup_buf_ Buf body = BUF_NULL;

        buf_append_str(&body, STR("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                                  "\"spec\":{\"token\":"));
        json_write_quoted(&body, token);
        buf_append_str(&body, STR("}}"));
        return ask(v, TOKEN_REVIEWS, &body, on_token);
}

/* ---- the tokens ---- */

/* The characters of RFC 6750 (b64token), so that nothing else is sent to the API server. */
static bool is_token(Str s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.data[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      (c != '\0' && strchr("-._~+/=", c))))
                        return false;
        }
        return s.len > 0 && s.len <= PAGE_ACCESS_TOKEN_LEN;
}

/* The scheme in any case (RFC 7235). */
static bool read_token(const char *header, Str *ret) {
        size_t n = strlen(BEARER);

        if (!header || strncasecmp(header, BEARER, n) != 0)
                return false;
        *ret = str_trim(str_from(header + n));
        return is_token(*ret);
}

static AccessReview *find(PageAccess *a, const unsigned char digest[static DIGEST_LEN]) {
        for (size_t i = 0; i < PAGE_ACCESS_TOKENS; i++)
                if (a->reviews[i].status != 0 && memcmp(a->reviews[i].digest, digest, DIGEST_LEN) == 0)
                        return &a->reviews[i];
        return NULL;
}

/* A free place, else the one not used for longest; those of users that may read go last. NULL: all
 * are being reviewed. */
static AccessReview *find_place(PageAccess *a) {
        AccessReview *best = NULL;

        for (size_t i = 0; i < PAGE_ACCESS_TOKENS; i++) {
                AccessReview *v = &a->reviews[i];

                if (v->status == 0)
                        return v;
                if (v->call)
                        continue;
                if (!best || (best->known && !v->known) || (best->known == v->known && v->used < best->used))
                        best = v;
        }
        return best;
}

static void on_gone(void *userdata) {
        Applicant *gone = userdata;

        for (Applicant **at = &gone->review->applicants; *at; at = &(*at)->next)
                if (*at == gone) {
                        *at = gone->next;
                        break;
                }
        free(gone);
}

static void wait_for(AccessReview *v, HttpExchange *x, const HttpRequest *request) {
        Applicant *one = calloc(1, sizeof *one);

        if (!one) {
                refuse(x, 503, "out of memory");
                return;
        }
        *one = (Applicant){.next = v->applicants, .review = v, .exchange = x, .request = *request};
        v->applicants = one;
        http_exchange_on_close(x, on_gone, one);
}

/* NULL: answered already. */
static AccessReview *begin(PageAccess *a, AccessReview *v, const unsigned char digest[static DIGEST_LEN],
                           Str token, HttpExchange *x) {
        HttpPeer peer = http_exchange_peer(x);

        if (!(v && v->known) && !page_peers_take(&a->peers, &peer, clock_monotonic_usec())) {
                refuse(x, 503, "too many unknown tokens are sent to this page");
                return NULL;
        }
        if (!v) {
                v = find_place(a);
                if (!v) {
                        refuse(x, 503, "too many tokens are being reviewed");
                        return NULL;
                }
                *v = (AccessReview){.access = a, .status = 503};
                memcpy(v->digest, digest, DIGEST_LEN);
        }
        if (ask_token(v, token) < 0) {
                refuse(x, 503, "out of memory");
                return NULL;
        }
        return v;
}

void page_access_check(PageAccess *a, HttpExchange *x, const HttpRequest *request) {
        unsigned char digest[DIGEST_LEN];
        AccessReview *v;
        Str token;

        if (!read_token(http_request_header(x, "Authorization"), &token)) {
                refuse(x, 401, "this page needs one header \"Authorization: Bearer TOKEN\"");
                return;
        }
        if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token.data, token.len, digest) < 0) {
                refuse(x, 503, "the token cannot be hashed");
                return;
        }
        v = find(a, digest);
        if (v && !v->call && clock_monotonic_usec() < v->until) {
                v->used = clock_monotonic_usec();
                conclude(v, x, request);
                return;
        }
        if (!v || !v->call)
                v = begin(a, v, digest, token, x);
        if (v)
                wait_for(v, x, request);
}

/* ---- the object ---- */

int page_access_new(sd_event *event, const KubeConfig *config, PageAccessNext next, void *userdata,
                    PageAccess **ret) {
        _cleanup_(page_access_freep) PageAccess *a = calloc(1, sizeof *a);
        int r;

        if (!a)
                return -ENOMEM;
        a->next = next;
        a->userdata = userdata;
        r = kube_client_new(event, config, &a->client);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}

PageAccess *page_access_free(PageAccess *a) {
        if (!a)
                return NULL;
        for (size_t i = 0; i < PAGE_ACCESS_TOKENS; i++) {
                kube_call_free(a->reviews[i].call);
                buf_done(&a->reviews[i].body);
        }
        kube_client_free(a->client);
        free(a);
        return NULL;
}
