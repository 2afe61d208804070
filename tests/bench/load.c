/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/file.h"

void load_fail(const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void) vfprintf(stderr, format, args);
        va_end(args);
        (void) fputc('\n', stderr);
        exit(3);
}

static int try_dial(uint16_t port) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || connect(fd, (struct sockaddr *) &to, sizeof to) < 0) {
                if (fd >= 0)
                        (void) close(fd);
                return -1;
        }
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only slower without */
        return fd;
}

LoadConn load_dial(uint16_t port) {
        int fd = try_dial(port);

        if (fd < 0)
                load_fail("cannot connect to 127.0.0.1:%u: %s", port, strerror(errno));
        return (LoadConn){.fd = fd};
}

void load_hang_up(LoadConn *c) {
        (void) close(c->fd);
        buf_done(&c->in);
}

static void send_all(int fd, Str bytes) {
        while (bytes.len > 0) {
                ssize_t n = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
                if (n < 0)
                        load_fail("send: %s", strerror(errno));
                bytes.data += n;
                bytes.len -= (size_t) n;
        }
}

static void receive_more(LoadConn *c) {
        ssize_t n;

        if (!buf_reserve(&c->in, 256 * 1024))
                load_fail("out of memory");
        n = recv(c->fd, c->in.data + c->in.len, 256 * 1024, 0);
        if (n <= 0)
                load_fail("the server closed the connection");
        c->in.len += (size_t) n;
        c->in.data[c->in.len] = '\0';
}

unsigned load_call(LoadConn *c, const char *method, const char *path, const char *content_type, Str body,
                   Buf *ret_body) {
        _cleanup_buf_ Buf request = BUF_NULL;
        const char *end, *length;
        size_t head, n;
        unsigned status;

        buf_appendf(&request,
                    "%s %s HTTP/1.1\r\nHost: bench\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                    method, path, content_type, body.len);
        buf_append_str(&request, body);
        if (buf_result(&request) < 0)
                load_fail("out of memory");
        send_all(c->fd, buf_str(&request));

        buf_clear(&c->in);
        do
                receive_more(c);
        while (!(end = strstr(c->in.data, "\r\n\r\n")));
        head = (size_t) (end - c->in.data) + 4;
        if (sscanf(c->in.data, "HTTP/1.1 %u", &status) != 1)
                load_fail("not an HTTP answer: %.60s", c->in.data);
        length = strcasestr(c->in.data, "content-length:");
        if (!length || length > end)
                load_fail("an answer without Content-Length to %s %s", method, path);
        n = strtoul(length + strlen("content-length:"), NULL, 10);
        while (c->in.len < head + n)
                receive_more(c);
        if (ret_body) {
                buf_clear(ret_body);
                buf_append(ret_body, c->in.data + head, n);
        }
        return status;
}

void load_sample(LoadSamples *s, uint64_t nsec) {
        if (s->n == s->capacity) {
                s->capacity = s->capacity ? s->capacity * 2 : 1024;
                s->nsec_64 = realloc(s->nsec_64, s->capacity * sizeof *s->nsec_64);
                if (!s->nsec_64)
                        load_fail("out of memory");
        }
        s->nsec_64[s->n++] = nsec / 64 > UINT32_MAX ? UINT32_MAX : (uint32_t) (nsec / 64);
}

static int compare_u32(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x > y) - (x < y);
}

double load_quantile_usec(LoadSamples *s, double q) {
        if (s->n == 0)
                return 0;
        qsort(s->nsec_64, s->n, sizeof *s->nsec_64, compare_u32);
        return (double) s->nsec_64[(size_t) (q * (double) (s->n - 1) + 0.5)] * 64 / 1000;
}

void load_samples_done(LoadSamples *s) {
        free(s->nsec_64);
        *s = (LoadSamples){0};
}

uint64_t load_resident_kib(pid_t pid) {
        _cleanup_buf_ Buf text = BUF_NULL;
        char path[64];
        const char *line;

        (void) snprintf(path, sizeof path, "/proc/%d/status", (int) pid);
        if (file_read(path, 1 << 20, &text) < 0 || !(line = strstr(text.data, "VmRSS:")))
                load_fail("cannot read %s", path);
        return strtoull(line + strlen("VmRSS:"), NULL, 10);
}

void load_wait_ready(uint16_t port, const char *path) {
        usec_t end = clock_monotonic_usec() + 120 * USEC_PER_SEC;

        while (clock_monotonic_usec() < end) {
                int fd = try_dial(port);
                if (fd >= 0) {
                        LoadConn c = {.fd = fd};
                        unsigned status = load_call(&c, "GET", path, "text/plain", STR(""), NULL);
                        load_hang_up(&c);
                        if (status == 200)
                                return;
                }
                (void) usleep(10000); /* polling another process's start from outside */
        }
        load_fail("127.0.0.1:%u%s is not ready after 120 s", port, path);
}

uint16_t load_free_port(void) {
        struct sockaddr_in a = {.sin_family = AF_INET};
        socklen_t len = sizeof a;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || bind(fd, (struct sockaddr *) &a, sizeof a) < 0 ||
            getsockname(fd, (struct sockaddr *) &a, &len) < 0)
                load_fail("no free port: %s", strerror(errno));
        (void) close(fd);
        return ntohs(a.sin_port);
}

pid_t load_spawn(const char *const argv[]) {
        pid_t pid = fork();

        if (pid < 0)
                load_fail("fork: %s", strerror(errno));
        if (pid == 0) {
                int silent = open("/dev/null", O_WRONLY | O_CLOEXEC);

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (silent >= 0) /* its log would hide the figures */
                        (void) dup2(silent, STDERR_FILENO);
                (void) execvp(argv[0], (char *const *) (uintptr_t) argv); /* only lacks a const */
                _exit(127);
        }
        return pid;
}

void load_end(pid_t pid) {
        (void) kill(pid, SIGTERM);
        (void) waitpid(pid, NULL, 0);
}
