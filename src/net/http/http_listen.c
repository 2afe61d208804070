/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

/* Splits "HOST:PORT", with brackets around an IPv6 host; an empty host is every address. */
static int split_address(const char *address, char host[static 256], char port[static 8]) {
        const char *colon = strrchr(address, ':');
        Str h, p;
        uint32_t number;

        if (!colon)
                return -EINVAL;
        h = (Str){address, (size_t) (colon - address)};
        p = str_from(colon + 1);
        if (h.len >= 2 && h.data[0] == '[' && h.data[h.len - 1] == ']')
                h = (Str){h.data + 1, h.len - 2};
        else if (h.len > 0 && memchr(h.data, ':', h.len))
                return -EINVAL; /* without brackets it is unclear which colon precedes the port */
        if (h.len >= 256 || !str_to_u32(p, &number) || number > 65535 || p.len >= 8)
                return -EINVAL;
        (void) snprintf(host, 256, STR_FMT, STR_ARG(h));
        (void) snprintf(port, 8, STR_FMT, STR_ARG(p));
        return 0;
}

static int bound_port(int fd, uint16_t *ret) {
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
        } address = {0};
        socklen_t len = sizeof address;

        if (getsockname(fd, &address.any, &len) < 0)
                return -errno;
        *ret = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
        return 0;
}

static int listen_on(const struct addrinfo *ai, bool every_address, uint16_t *ret_port) {
        _cleanup_close_ int fd = -1;
        int on = 1, off = 0, r;

        fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* A restart must not wait for old connections in TIME_WAIT. */
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
                return -errno;
        if (every_address && ai->ai_family == AF_INET6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
                return -errno;
        if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
                return -errno;
        r = bound_port(fd, ret_port);
        return r < 0 ? r : TAKE_FD(fd);
}

int http_listen(const char *address, uint16_t *ret_port, Fault *fault) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
        struct addrinfo *list = NULL;
        char host[256], port[8];
        int r;

        r = split_address(address, host, port);
        if (r < 0)
                return fault_set(fault, r, "listen address \"%s\": must be ADDR:PORT, [IPv6]:PORT or :PORT",
                                 address);
        if (host[0] == '\0')
                hints.ai_family = AF_INET6; /* takes IPv4 as well */
        if (getaddrinfo(host[0] ? host : NULL, port, &hints, &list) != 0)
                return fault_set(fault, -EINVAL, "listen address \"%s\": the host must be a numeric address",
                                 address);
        r = listen_on(list, host[0] == '\0', ret_port);
        if (r == -EAFNOSUPPORT && host[0] == '\0') { /* the kernel has no IPv6 */
                freeaddrinfo(list);
                list = NULL;
                hints.ai_family = AF_INET;
                if (getaddrinfo(NULL, port, &hints, &list) == 0)
                        r = listen_on(list, true, ret_port);
        }
        if (list)
                freeaddrinfo(list);
        if (r < 0)
                return fault_set(fault, r, "cannot listen on %s: %s", address, strerror(-r));
        return r;
}

bool http_listen_is_loopback(const char *address) {
        char host[256], port[8];
        struct in6_addr v6;
        struct in_addr v4;

        if (split_address(address, host, port) < 0)
                return false;
        if (address[0] == '[')
                return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
        return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}
