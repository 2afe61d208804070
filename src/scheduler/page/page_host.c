/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include "net/http/http_listen.h"

enum { HOST_LEN_MAX = 254 }; /* with the NUL: DNS names have at most 253 characters */

/* Copies the host without port and brackets. Returns false when the text is neither HOST nor
 * HOST:PORT. */
static bool host_part(const char *text, char host[static HOST_LEN_MAX]) {
        Str all = str_from(text), port = {NULL, 0};
        const char *end = all.len > 0 && all.data[0] == '[' ? memchr(all.data, ']', all.len) : NULL;
        const char *colon = end ? end + 1 : all.len > 0 ? memchr(all.data, ':', all.len) : NULL;
        Str h = all;
        uint32_t number;

        if (end)
                h = (Str){all.data + 1, (size_t) (end - all.data - 1)};
        else if (colon)
                h.len = (size_t) (colon - all.data);
        if (colon && *colon != '\0') {
                if (*colon != ':')
                        return false;
                port = str_from(colon + 1);
                if (!str_to_u32(port, &number) || number > UINT16_MAX)
                        return false;
        }
        if (h.len == 0 || h.len >= HOST_LEN_MAX)
                return false;
        memcpy(host, h.data, h.len);
        host[h.len] = '\0';
        return true;
}

static bool is_listed(const char *host, const char *names) {
        Str rest = str_from(names);

        while (!str_is_empty(rest)) {
                Str name = str_split(&rest, ',');

                if (name.len == strlen(host) && strncasecmp(name.data, host, name.len) == 0)
                        return true;
        }
        return false;
}

bool page_host_is_ours(const char *text, const char *names) {
        char host[HOST_LEN_MAX];
        struct in6_addr address;

        if (!text || !host_part(text, host))
                return false;
        if (text[0] == '[')
                return inet_pton(AF_INET6, host, &address) == 1;
        return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &address) == 1 ||
               is_listed(host, names);
}

static bool is_name(Str s) {
        for (size_t i = 0; i < s.len; i++)
                if (!((s.data[i] >= 'a' && s.data[i] <= 'z') || (s.data[i] >= 'A' && s.data[i] <= 'Z') ||
                      (s.data[i] >= '0' && s.data[i] <= '9') || s.data[i] == '-' || s.data[i] == '.'))
                        return false;
        return s.len > 0 && s.len < HOST_LEN_MAX;
}

int page_host_check_names(const char *names, Fault *fault) {
        Str rest = str_from(names);

        do
                if (!is_name(str_split(&rest, ',')))
                        return fault_set(fault, -EINVAL,
                                         "page hosts \"%s\": must be host names with commas between them, "
                                         "without a port",
                                         names);
        while (!str_is_empty(rest));
        return 0;
}

bool page_host_may_fetch(const char *site, bool navigates) {
        return !site || navigates || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

int page_host_check_listen(const char *listen, Fault *fault) {
        if (http_listen_is_loopback(listen))
                return 0;
        return fault_set(fault, -EINVAL,
                         "page address \"%s\": must be 127.0.0.1:PORT or [::1]:PORT, because the page has no "
                         "login; to open it to others, let a program beside it log them in",
                         listen);
}
