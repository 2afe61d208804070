/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the Secret of the webhook. One or two steps lead from it to a keyring that can be
 * served, and that is the same after being stored in a Secret. */

#include <assert.h>

#include "scheduler/webhook/keyring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"hook.ns.svc", NULL};

static void mend(Keyring *k, int64_t now) {
        KeyringNeed need;

        for (int i = 0; (need = keyring_need(k, names, now)) != KEYRING_GOOD; i++) {
                Keyring next;

                assert(i < 3);
                assert(keyring_step(k, need, names, now, &next, NULL) == 0);
                keyring_done(k);
                *k = next;
        }
        assert(keyring_can_serve(k));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL, back = KEYRING_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Str json = {(const char *) data, size}, name, version;
        Fault fault = FAULT_NULL;

        if (keyring_decode(json, &arena, &k, &name, &version, &fault) != 0) {
                assert(fault.text[0] != '\0');
                return 0;
        }
        mend(&k, INT64_C(1800000000));
        keyring_write(&k, "ns", "tls", &text);
        assert(buf_result(&text) == 0);
        assert(keyring_decode(buf_str(&text), &arena, &back, &name, &version, NULL) == 0);
        for (size_t i = 0; i < KEYRING_TEXTS_; i++)
                assert(str_eq(str_from(k.texts[i]), str_from(back.texts[i])));
        return 0;
}
