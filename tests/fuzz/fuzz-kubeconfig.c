/* SPDX-License-Identifier: Apache-2.0 */

/* A kubeconfig, or two that are merged (behind a NUL byte), from text to the choice of a context.
 * An accepted one has a server, at most one way to log in that is not supported, and nothing that
 * could break a line of a header. */

#include <assert.h>

#include "kube/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_line_end(Str s) {
        return s.len > 0 && (memchr(s.data, '\n', s.len) || memchr(s.data, '\r', s.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str rest = {(const char *) data, size}, first = str_split(&rest, '\0');
        Kubeconfig k = {0};
        KubeconfigChoice choice;
        Fault fault = FAULT_NULL;
        int r;

        r = kubeconfig_add(&k, &arena, "dir/first", first, &fault);
        assert(r == 0 || (r == KUBECONFIG_E_MALFORMED && fault.text[0]));
        if (rest.len > 0)
                /* The second may be malformed. */
                (void) kubeconfig_add(&k, &arena, "second", rest, NULL);
        r = kubeconfig_choose(&k, NULL, &choice, &fault);
        assert(r == 0 || (r == KUBECONFIG_E_MALFORMED && fault.text[0]));
        if (r != 0)
                return 0;
        assert(choice.cluster->server.len > 0 && !has_line_end(choice.cluster->server));
        assert(!choice.user || (!choice.user->exec && !has_line_end(str_trim(choice.user->token))));
        return 0;
}
