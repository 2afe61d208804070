/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/keyring.h"

#include <errno.h>
#include <stddef.h>

#include "base/base64.h"
#include "wire/json_field.h"
#include "wire/json_write.h"

#define AUTHORITY_NAME "aliquot webhook CA"

static const char *const data_keys[KEYRING_TEXTS_] = {
#define X(name, key) [KEYRING_##name] = key,
        KEYRING_LIST(X)
#undef X
};

void keyring_done(Keyring *k) {
        for (size_t i = 0; i < KEYRING_TEXTS_; i++) {
                if (k->texts[i])
                        explicit_bzero(k->texts[i], strlen(k->texts[i]));
                free(k->texts[i]);
        }
        *k = KEYRING_NULL;
}

int keyring_copy(const Keyring *from, Keyring *ret) {
        _cleanup_keyring_ Keyring copy = KEYRING_NULL;

        for (size_t i = 0; i < KEYRING_TEXTS_; i++) {
                if (!from->texts[i])
                        continue;
                copy.texts[i] = str_dup(str_from(from->texts[i]));
                if (!copy.texts[i])
                        return -ENOMEM;
        }
        *ret = copy;
        copy = KEYRING_NULL;
        return 0;
}

/* ---- looking ---- */

static bool is_over(CertificateLife life, int64_t now) {
        return now >= life.not_after;
}

/* Whether the certificate begins in the future, by less than a third of a life: the clock that made
 * it was ahead, or this one is behind. In the first case a new certificate helps. In the second the
 * new one still has two thirds of its life by the right clock. If the difference is larger, the old
 * one is kept: with this clock so far behind, a new one might have expired already. */
static bool is_early(CertificateLife life, int64_t now) {
        return life.not_before > now && life.not_before - now < KEYRING_CERT_LIFE / 3;
}

static bool is_ageing(CertificateLife life, int64_t now) {
        return now >= life.not_after - (life.not_after - life.not_before) / 3;
}

bool keyring_can_serve(const Keyring *k) {
        return certificate_belongs(k->texts[KEYRING_CERT], k->texts[KEYRING_KEY]) &&
               certificate_is_signed_by(k->texts[KEYRING_CERT], k->texts[KEYRING_AUTHORITIES]);
}

static bool needs_certificate(const Keyring *k, const char *const *names, int64_t now) {
        CertificateLife life;

        return !keyring_can_serve(k) || !certificate_life(k->texts[KEYRING_CERT], &life) ||
               is_ageing(life, now) || is_early(life, now) ||
               !certificate_is_for(k->texts[KEYRING_CERT], names);
}

bool keyring_authority_ages(const Keyring *k, int64_t now) {
        CertificateLife life;

        return certificate_life(k->texts[KEYRING_AUTHORITIES], &life) && is_ageing(life, now);
}

KeyringNeed keyring_need(const Keyring *k, const char *const *names, int64_t now) {
        const char *authority = k->texts[KEYRING_AUTHORITIES];
        CertificateLife life;
        size_t n = 0;

        for (size_t i = 0; i < KEYRING_TEXTS_; i++)
                n += k->texts[i] && k->texts[i][0];
        if (n == 0)
                return KEYRING_EMPTY;
        if (!certificate_belongs(authority, k->texts[KEYRING_AUTHORITY_KEY]) ||
            !certificate_life(authority, &life) || is_over(life, now) || is_early(life, now))
                return KEYRING_BROKEN;
        return needs_certificate(k, names, now) ? KEYRING_RENEW : KEYRING_GOOD;
}

/* ---- steps ---- */

static int set_text(Keyring *k, size_t i, char *text) {
        free(k->texts[i]);
        k->texts[i] = text;
        return text ? 0 : -ENOMEM;
}

static int put_pair(Keyring *k, size_t cert, size_t key, CertificatePair *pair) {
        int r = set_text(k, cert, TAKE_PTR(pair->cert)), q = set_text(k, key, TAKE_PTR(pair->key));

        return r < 0 ? r : q;
}

static int set_authorities(Keyring *k, const char *first, const char *rest, int64_t now) {
        _cleanup_buf_ Buf bundle = BUF_NULL;

        certificate_bundle_add(&bundle, first, now, KEYRING_AUTHORITIES_MAX);
        certificate_bundle_add(&bundle, rest, now, KEYRING_AUTHORITIES_MAX);
        if (buf_result(&bundle) < 0)
                return -ENOMEM;
        return set_text(k, KEYRING_AUTHORITIES, buf_take(&bundle));
}

static int renew_certificate(Keyring *k, const char *const *names, int64_t now, Fault *fault) {
        _cleanup_pair_ CertificatePair pair = CERTIFICATE_PAIR_NULL;
        CertificatePair issuer = {k->texts[KEYRING_AUTHORITIES], k->texts[KEYRING_AUTHORITY_KEY]};
        CertificateRequest request = {
                .name = names[0], .names = names, .now = now, .life = KEYRING_CERT_LIFE};
        CertificateLife authority;
        int r;

        /* A certificate does not outlive its issuer. */
        if (certificate_life(issuer.cert, &authority) && now + request.life > authority.not_after)
                request.life = authority.not_after - now;
        r = certificate_make(&request, &issuer, &pair, fault);
        if (r != 0)
                return r < 0 ? r : -EINVAL;
        return put_pair(k, KEYRING_CERT, KEYRING_KEY, &pair);
}

/* Makes a CA and a certificate. Earlier CAs stay in the bundle, because other replicas may still
 * serve what they signed. */
static int begin_authority(Keyring *k, const char *const *names, int64_t now, Fault *fault) {
        _cleanup_pair_ CertificatePair pair = CERTIFICATE_PAIR_NULL;
        CertificateRequest request = {.name = AUTHORITY_NAME, .now = now, .life = KEYRING_AUTHORITY_LIFE};
        int r = certificate_make(&request, NULL, &pair, fault);

        if (r < 0)
                return r;
        r = set_authorities(k, pair.cert, k->texts[KEYRING_AUTHORITIES], now);
        if (r == 0)
                r = set_text(k, KEYRING_AUTHORITY_KEY, TAKE_PTR(pair.key));
        return r < 0 ? r : renew_certificate(k, names, now, fault);
}

/* The Secret may hold a CA that verifiers reject: it lacks the CA bit, is for other uses, or is
 * about to expire. Instead of looking for such cases, the new certificate is judged as verifiers
 * do. */
int keyring_step(const Keyring *k, KeyringNeed need, const char *const *names, int64_t now, Keyring *ret,
                 Fault *fault) {
        _cleanup_keyring_ Keyring next = KEYRING_NULL;
        int r = keyring_copy(k, &next);

        if (r < 0)
                return r;
        switch (need) {
        case KEYRING_EMPTY:
        case KEYRING_BROKEN:
                r = begin_authority(&next, names, now, fault);
                break;
        case KEYRING_RENEW:
                r = renew_certificate(&next, names, now, fault);
                break;
        default:
                break;
        }
        if (r == 0 && keyring_need(&next, names, now) == KEYRING_RENEW)
                r = begin_authority(&next, names, now, fault);
        if (r < 0)
                return r;
        *ret = next;
        next = KEYRING_NULL;
        return 0;
}

/* ---- the Secret ---- */

typedef struct SecretDraft {
        Str name, version;
        Str data[KEYRING_TEXTS_]; /* in base64 */
} SecretDraft;

#define DATA_FIELD(i, key)                                                                                   \
        { STR(key), json_field_str, offsetof(SecretDraft, data) + (i) * sizeof(Str) }

static const JsonField data_fields[] = {
#define X(name, key) DATA_FIELD(KEYRING_##name, key),
        KEYRING_LIST(X)
#undef X
};

static const JsonField metadata_fields[] = {
        JSON_FIELD(SecretDraft, name, "name", json_field_str),
        JSON_FIELD(SecretDraft, version, "resourceVersion", json_field_str),
};
JSON_DECODER(read_data, data_fields)

JSON_DECODER(read_metadata, metadata_fields)

static const JsonField secret_fields[] = {JSON_NESTED("metadata", read_metadata),
                                          JSON_NESTED("data", read_data)};

static int decode_text(Str base64, char **ret) {
        _cleanup_buf_ Buf bytes = BUF_NULL;

        if (str_is_empty(base64) || base64.len > CERTIFICATE_MAX / 3 * 4 || !base64_decode(base64, &bytes))
                return 0;
        if (bytes.len == 0 || memchr(bytes.data, '\0', bytes.len))
                return buf_result(&bytes);
        *ret = buf_take(&bytes);
        return *ret ? 0 : -ENOMEM;
}

int keyring_decode(Str json, Arena *arena, Keyring *ret, Str *ret_name, Str *ret_version, Fault *fault) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL;
        SecretDraft draft = {0};
        int r = json_field_read(json, arena, secret_fields, ELEMENTSOF(secret_fields), &draft, fault);

        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, KEYRING_E_MALFORMED, "the Secret cannot be read");
        for (size_t i = 0; i < KEYRING_TEXTS_; i++) {
                r = decode_text(draft.data[i], &k.texts[i]);
                if (r < 0)
                        return r;
        }
        *ret = k;
        k = KEYRING_NULL;
        *ret_name = draft.name;
        *ret_version = draft.version;
        return 0;
}

static void write_data(const Keyring *k, bool patch, JsonWriter *w) {
        json_write_object(w, "data");
        for (size_t i = 0; i < KEYRING_TEXTS_; i++) {
                _cleanup_buf_ Buf text = BUF_NULL;

                if (!k->texts[i]) {
                        if (patch)
                                json_write_null(w, data_keys[i]);
                        continue;
                }
                base64_encode(&text, str_from(k->texts[i]));
                if (buf_result(&text) < 0)
                        w->out->broken = true;
                json_write_str(w, data_keys[i], buf_str(&text));
        }
        json_write_object_end(w);
}

void keyring_write(const Keyring *k, const char *namespace_, const char *name, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        if (name) {
                json_write_text(&w, "apiVersion", "v1");
                json_write_text(&w, "kind", "Secret");
                json_write_object(&w, "metadata");
                json_write_text(&w, "name", name);
                json_write_text(&w, "namespace", namespace_);
                json_write_object_end(&w);
                json_write_text(&w, "type", "kubernetes.io/tls");
        }
        write_data(k, !name, &w);
        json_write_object_end(&w);
}
