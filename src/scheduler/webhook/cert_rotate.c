/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/cert_rotate.h"

#include <errno.h>

#include "base/told.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "kube/reflector.h"
#include "kube/writer.h"

#define LOOK_EVERY (10 * 60 * USEC_PER_SEC) /* no event tells that a certificate has aged */
#define TELL_EVERY (24 * 3600 * USEC_PER_SEC)
#define WATCH_LAG  (5 * USEC_PER_SEC)

/* A Secret has at most 1 MiB of data, which base64 enlarges by a third. */
enum { MAX_OBJECT = 2 << 20 };

struct CertRotate {
        CertRotateOptions o;
        char *collection, *path, *selector;
        Reflector *reflector;
        Writer writer;
        bool leading;
        Told told; /* when on_ageing was last called */

        bool listed, present, seen; /* seen: was in the list that is running */
        char *version;
        Keyring known;  /* what the Secret holds */
        Keyring served; /* the last one that could be served */
};

static int64_t now_sec(void) {
        return (int64_t) (clock_realtime_nsec() / UINT64_C(1000000000));
}

static void tell_trouble(CertRotate *k, const char *what, const char *why) {
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "Secret %s/%s: %s: %s", k->o.namespace_, k->o.secret, what, why);
        k->o.on_trouble(k->o.userdata, &fault);
}

/* ---- what the Secret holds ---- */

static void keep_served(CertRotate *k) {
        Keyring copy;

        for (size_t i = 0; i < KEYRING_TEXTS_; i++)
                if (!str_eq(str_from(k->known.texts[i]), str_from(k->served.texts[i]))) {
                        if (keyring_copy(&k->known, &copy) < 0) {
                                tell_trouble(k, "cannot be kept", "out of memory");
                                return;
                        }
                        keyring_done(&k->served);
                        k->served = copy;
                        k->o.on_keyring(k->o.userdata, &k->served);
                        return;
                }
}

static void take_secret(CertRotate *k, Str object) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Keyring fresh = KEYRING_NULL;
        Fault fault = FAULT_NULL;
        Str name, version;
        char *copy;
        int r;

        r = keyring_decode(object, &arena, &fresh, &name, &version, &fault);
        if (r != 0) {
                tell_trouble(k, "not taken", r < 0 ? strerror(-r) : fault.text);
                return;
        }
        copy = str_dup(version);
        if (!copy || !str_eq(name, str_from(k->o.secret))) {
                free(copy);
                keyring_done(&fresh);
                return; /* another Secret: the server ignores selectors */
        }
        free(k->version);
        k->version = copy;
        keyring_done(&k->known);
        k->known = fresh;
        k->present = k->seen = true;
        if (keyring_can_serve(&k->known))
                keep_served(k);
}

static void on_list_begin(void *userdata) {
        CertRotate *k = userdata;

        k->seen = false;
}

static void on_object(void *userdata, ReflectorEvent event, Str object) {
        CertRotate *k = userdata;
        bool was = k->present;

        take_secret(k, object);
        if (event == REFLECTOR_DELETED && k->seen)
                k->present = k->seen = false;
        if (was && !k->present)
                tell_trouble(k, "was deleted", "it will be made again");
        if (event != REFLECTOR_LISTED)
                writer_poke(&k->writer);
}

static void on_list_end(void *userdata) {
        CertRotate *k = userdata;

        k->present = k->seen;
        k->listed = true;
        writer_poke(&k->writer);
}

static void on_reflector_trouble(void *userdata, const Fault *fault) {
        tell_trouble(userdata, "cannot be followed", fault->text);
}

static const ReflectorHandler handler = {
        .on_list_begin = on_list_begin,
        .on_object = on_object,
        .on_list_end = on_list_end,
        .on_trouble = on_reflector_trouble,
};

/* ---- what is to be written ---- */

/* The object in the answer is not taken. The watch may have brought a newer one already, and
 * versions cannot be compared. It brings this write, too. */
static WriterNext on_answer(void *userdata, const KubeReply *reply, bool written) {
        CertRotate *k = userdata;

        if (written) {
                (void) writer_wake(&k->writer, WATCH_LAG); /* cannot fail: the timer exists */
                return WRITER_REST;
        }
        /* 409: another replica wrote first, and the watch brings its Secret. */
        if (reply->outcome != KUBE_DONE || reply->status != 409)
                tell_trouble(k, "cannot be written", reply->fault.text);
        return WRITER_PAUSE;
}

static int send_keyring(CertRotate *k, const Keyring *next) {
        _cleanup_buf_ Buf body = BUF_NULL;

        keyring_write(next, k->o.namespace_, k->present ? NULL : k->o.secret, &body);
        if (buf_result(&body) < 0)
                return -ENOMEM;
        if (k->present)
                return kube_merge_patch(k->o.client, k->path, "", buf_str(&body), str_from(k->version),
                                        writer_answer, &k->writer, &k->writer.call);
        return kube_call(k->o.client,
                         &(KubeRequest){.method = "POST", .path = k->collection, .body = buf_str(&body)},
                         writer_answer, &k->writer, &k->writer.call);
}

static const char *news_of(KeyringNeed need) {
        switch (need) {
        case KEYRING_RENEW:
                return "renewing the certificate";
        default:
                return "making a CA and a certificate";
        }
}

/* Whether the Secret was deleted or emptied, and the served keyring is good: it is written back. */
static bool is_to_come_back(const CertRotate *k, KeyringNeed need) {
        return need == KEYRING_EMPTY && keyring_need(&k->served, k->o.names, now_sec()) == KEYRING_GOOD;
}

static int make_keyring(CertRotate *k, KeyringNeed need, Keyring *ret, Fault *fault) {
        if (is_to_come_back(k, need))
                return keyring_copy(&k->served, ret);
        return keyring_step(&k->known, need, k->o.names, now_sec(), ret, fault);
}

static int write_step(CertRotate *k, KeyringNeed need) {
        _cleanup_keyring_ Keyring next = KEYRING_NULL;
        Fault fault = FAULT_NULL;
        int r;

        r = make_keyring(k, need, &next, &fault);
        if (r == 0)
                r = send_keyring(k, &next);
        if (r == 0) {
                k->o.on_news(k->o.userdata,
                             is_to_come_back(k, need) ? "writing back what is served" : news_of(need));
                return 0;
        }
        tell_trouble(k, "cannot be written", fault.text[0] ? fault.text : strerror(-r));
        return r < 0 ? r : -EIO;
}

/* Tells once a day, long before the end, that the CA ages, because people make the new one. */
static void tell_age(CertRotate *k) {
        if (k->leading && keyring_authority_ages(&k->known, now_sec()) &&
            told_is_news(&k->told, STR(""), clock_monotonic_usec(), TELL_EVERY))
                k->o.on_ageing(k->o.userdata);
}

static int reconcile_secret(void *userdata) {
        CertRotate *k = userdata;
        KeyringNeed need;

        (void) writer_wake(&k->writer, LOOK_EVERY); /* cannot fail: the timer exists */
        if (!k->listed)
                return 0;
        if (!k->present)
                keyring_done(&k->known);
        tell_age(k);
        need = keyring_need(&k->known, k->o.names, now_sec());
        if (need == KEYRING_GOOD || (need != KEYRING_EMPTY && !k->leading))
                return 0;
        return write_step(k, need);
}

static const WriterRule rule = {USEC_PER_SEC / 2, 30 * USEC_PER_SEC, reconcile_secret, on_answer};

void cert_rotate_set_leading(CertRotate *k, bool leading) {
        k->leading = leading;
        if (leading)
                writer_poke(&k->writer);
}

/* ---- beginning and end ---- */

static int set_paths(CertRotate *k) {
        _cleanup_buf_ Buf collection = BUF_NULL, path = BUF_NULL, selector = BUF_NULL;

        buf_append_str(&collection, STR("/api/v1/namespaces/"));
        kube_url_escape(&collection, str_from(k->o.namespace_));
        buf_append_str(&collection, STR("/secrets"));
        buf_append_str(&path, buf_str(&collection));
        buf_append_char(&path, '/');
        kube_url_escape(&path, str_from(k->o.secret));
        buf_append_str(&selector, STR("fieldSelector=metadata.name%3D"));
        kube_url_escape(&selector, str_from(k->o.secret));
        k->collection = buf_take(&collection);
        k->path = buf_take(&path);
        k->selector = buf_take(&selector);
        return k->collection && k->path && k->selector ? 0 : -ENOMEM;
}

int cert_rotate_new(const CertRotateOptions *options, CertRotate **ret) {
        _cleanup_(cert_rotate_freep) CertRotate *k = calloc(1, sizeof *k);
        ReflectorOptions follow = {.max_object = MAX_OBJECT};
        int r;

        if (!k)
                return -ENOMEM;
        k->o = *options;
        r = set_paths(k);
        if (r < 0)
                return r;
        follow.path = k->collection;
        follow.selector = k->selector;
        k->writer = (Writer){.rule = &rule, .client = options->client, .userdata = k};
        r = writer_wake(&k->writer, LOOK_EVERY);
        if (r == 0)
                r = reflector_new(options->client, &follow, &handler, k, &k->reflector);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(k);
        return 0;
}

CertRotate *cert_rotate_free(CertRotate *k) {
        if (!k)
                return NULL;
        writer_done(&k->writer);
        reflector_free(k->reflector);
        keyring_done(&k->known);
        keyring_done(&k->served);
        free(k->version);
        free(k->collection);
        free(k->path);
        free(k->selector);
        free(k);
        return NULL;
}
