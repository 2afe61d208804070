/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Server and client in one loop. The client is a plain non-blocking socket, so that bytes can be
 * sent singly, connections cut, and answers checked as bytes. */

#include "base/clock.h"
#include "net/http/http_server.h"
#include "net/http/http_stream.h"
#include "test.h"

/* No test needs as long on a slow machine. */
#define PATIENCE (100 * USEC_PER_SEC)

typedef struct Fixture {
        sd_event *event;
        HttpServer *server;
        HttpExchange *kept; /* of /later */
        HttpStream *stream; /* of /stream */
        unsigned requests, closed;
        size_t body_len;
        unsigned told; /* calls of on_limit, and the last text */
        char text[256];
} Fixture;

/* Listens on 127.0.0.1, with bodies of up to 100,000 bytes. It answers: /now with the body, /query
 * with the argument q, /cut by a cut, /stream by a stream, /later when the test answers `kept`, and
 * all else by 429. */
void fixture_begin_with(Fixture *f, HttpServerOptions options);
void fixture_begin(Fixture *f);
void fixture_end(Fixture *f);

/* A connection from 127.0.0.1, or from 127.0.0.N. */
int dial(const Fixture *f);
int dial_from(const Fixture *f, unsigned n);
void say(int fd, const char *text);

/* Turns the loop until the peer's bytes contain `text` (NULL: until it closes). They collect in
 * *got. */
void hear(Fixture *f, int fd, const char *text, Buf *got);
/* Turns the loop until one of the bytes is not zero. */
void turn_until(Fixture *f, const void *condition, size_t size);

/* Asks for the path and hears the answer; the connection stays. */
void ask(Fixture *f, int fd, const char *path);
