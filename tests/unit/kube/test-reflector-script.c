/* SPDX-License-Identifier: Apache-2.0 */

/* The reflector against a scripted server: which request comes next, and which callbacks the owner
 * gets. */

#include "fixture.h"
#include "kube/reflector.h"
#include "net/http/http_stream.h"

enum { STREAMS = 32 };

typedef struct Server {
        HttpExchange *waiting;                  /* a request that is not answered yet */
        HttpStream *streams[STREAMS], **stream; /* NULL: it is gone; the latest one */
        unsigned n_streams;
        char path[64], version[64], token[64];
        bool is_watch;
        unsigned n_requests;
} Server;

static void on_gone(void *userdata) {
        Server *s = userdata;

        s->waiting = NULL;
}

/* The next request may arrive before this call. */
static void on_stream_gone(void *userdata) {
        *(HttpStream **) userdata = NULL;
}

static const char *query(HttpExchange *x, const char *name) {
        const char *value = http_query(x, name);

        return value ? value : "";
}

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        Server *s = userdata;

        ASSERT_TRUE(!s->waiting); /* one call at a time */
        s->n_requests++;
        s->is_watch = strcmp(query(x, "watch"), "true") == 0;
        (void) snprintf(s->path, sizeof s->path, "%s", r->path);
        (void) snprintf(s->version, sizeof s->version, "%s", query(x, "resourceVersion"));
        (void) snprintf(s->token, sizeof s->token, "%s", query(x, "continue"));
        if (s->is_watch) {
                unsigned long seconds = strtoul(query(x, "timeoutSeconds"), NULL, 10);
                ASSERT_TRUE(seconds >= 300 && seconds <= 600);
                ASSERT_TEXT(query(x, "allowWatchBookmarks"), "true");
        } else
                ASSERT_TEXT(query(x, "limit"), "2");
        ASSERT_TEXT(query(x, "labelSelector"), "a=b");
        s->waiting = x;
        http_exchange_on_close(x, on_gone, s);
}

typedef struct Owner {
        Buf log;
        Reflector *reflector;
        const char *free_at; /* the event at which it frees the reflector, and the client */
        Fixture *fixture;
} Owner;

static void note(Owner *o, const char *what, Str text) {
        buf_appendf(&o->log, "%s%s" STR_FMT "\n", what, text.len > 0 ? " " : "", STR_ARG(text));
        if (o->free_at && strcmp(o->free_at, what) == 0) {
                o->free_at = NULL;
                o->reflector = reflector_free(o->reflector);
                o->fixture->client = kube_client_free(o->fixture->client);
        }
}

static void on_begin(void *userdata) {
        note(userdata, "begin", STR(""));
}

static void on_object(void *userdata, ReflectorEvent event, Str object) {
        static const char *const names[] = {"listed", "added", "modified", "deleted"};

        note(userdata, names[event], object.len < 100 ? object : STR("long"));
}

static void on_end(void *userdata) {
        note(userdata, "end", STR(""));
}

static void on_trouble(void *userdata, const Fault *fault) {
        note(userdata, "trouble", str_from(fault->text));
}

static void on_passed_over(void *userdata) {
        note(userdata, "over", STR(""));
}

static void begin(Fixture *f, Server *s, Owner *o) {
        static const ReflectorHandler handler = {on_begin, on_object, on_end, on_trouble, on_passed_over};
        ReflectorOptions options = {.path = "/api/v1/pods",
                                    .selector = "labelSelector=a%3Db",
                                    .page = 2,
                                    .max_object = 1000,
                                    .backoff = 1000,
                                    .backoff_cap = 2000};

        *s = (Server){0};
        *o = (Owner){.fixture = f};
        fixture_begin(f, handle, s);
        ASSERT_OK(reflector_new(f->client, &options, &handler, o, &o->reflector));
        ASSERT_INT(o->log.len, 0);
}

static void end(Fixture *f, Owner *o) {
        o->reflector = reflector_free(o->reflector);
        fixture_end(f);
        buf_done(&o->log);
}

static void expect_list(Fixture *f, Server *s, const char *token) {
        turn_until(f, s->waiting);
        ASSERT_FALSE(s->is_watch);
        ASSERT_TEXT(s->token, token);
        ASSERT_TEXT(s->version, ""); /* a quorum read, always */
}

static void expect_watch(Fixture *f, Server *s, const char *version) {
        turn_until(f, s->waiting);
        ASSERT_TRUE(s->is_watch);
        ASSERT_TEXT(s->version, version);
}

static void respond(Server *s, unsigned status, const char *text) {
        HttpExchange *x = TAKE_PTR(s->waiting);

        http_exchange_on_close(x, NULL, NULL);
        http_respond(x, status, "application/json", str_from(text));
}

/* Begins an answer; what is written into it comes piece by piece. */
static void open_stream(Server *s) {
        HttpExchange *x = TAKE_PTR(s->waiting);

        http_exchange_on_close(x, NULL, NULL);
        ASSERT_TRUE(s->n_streams < STREAMS);
        s->stream = &s->streams[s->n_streams++];
        *s->stream = http_stream_begin(x, 200, "application/json", on_stream_gone, s->stream);
        ASSERT_TRUE(*s->stream);
}

static void say(Server *s, const char *text) {
        ASSERT_OK(http_stream_write(*s->stream, str_from(text)));
}

/* Turns until the callbacks have logged `text`, and clears the log. */
static void expect(Fixture *f, Owner *o, const char *text) {
        turn_until(f, o->log.len > 0 && strstr(o->log.data, text));
        buf_clear(&o->log);
}

#define LIST(rest)  "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\"" rest
#define EMPTY_LIST  LIST("},\"items\":[]}")
#define ADDED(v)    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"" v "\"}}}\n"
#define BOOKMARK(v) "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" v "\"}}}\n"
#define EXPIRED                                                                                              \
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","           \
        "\"message\":\"old\"}}\n"

/* Up to a watch that stands. */
static void stand(Fixture *f, Server *s, Owner *o) {
        expect_list(f, s, "");
        respond(s, 200, EMPTY_LIST);
        expect_watch(f, s, "10");
        open_stream(s);
        ASSERT_TRUE(reflector_in_sync(o->reflector));
        ASSERT_STR(buf_str(&o->log), STR("begin\nend\n"));
        buf_clear(&o->log);
}

static void pages_and_versions(void) {
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        expect_list(&f, &s, "");
        ASSERT_STR(buf_str(&o.log), STR("begin\n")); /* before anything is answered */
        respond(&s, 200, LIST(",\"continue\":\"a/b+c=\"},\"items\":[{\"n\":1},{\"n\":2}]}"));
        expect_list(&f, &s, "a/b+c="); /* escaped on its way */
        ASSERT_FALSE(reflector_in_sync(o.reflector));
        respond(&s, 200, LIST("},\"items\":[{\"n\":3}]}"));
        expect_watch(&f, &s, "10");
        ASSERT_STR(buf_str(&o.log),
                   STR("begin\nlisted {\"n\":1}\nlisted {\"n\":2}\nlisted {\"n\":3}\nend\n"));
        buf_clear(&o.log);
        open_stream(&s);
        say(&s, ADDED("11"));
        expect(&f, &o, "added");
        say(&s, BOOKMARK("20") "{\"type\":\"DEL");
        say(&s, "ETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"21\"}}}\n" BOOKMARK("30"));
        expect(&f, &o, "deleted");
        http_stream_end(TAKE_PTR(*s.stream)); /* the timeout has passed, which is no error */
        expect_watch(&f, &s, "30");
        ASSERT_INT(o.log.len, 0);
        ASSERT_TRUE(reflector_in_sync(o.reflector));
        end(&f, &o);
}

static void a_cut_watch_is_behind_until_the_next_one_stands(void) {
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        stand(&f, &s, &o);
        say(&s, ADDED("11") "{\"type\":\"ADDED\",\"object\":{\"meta");
        expect(&f, &o, "added");
        http_stream_cut(TAKE_PTR(*s.stream));
        expect(&f, &o, "trouble");
        ASSERT_FALSE(reflector_in_sync(o.reflector));
        expect_watch(&f, &s, "11");
        respond(&s, 500, "{}");
        expect(&f, &o, "HTTP 500");
        expect_watch(&f, &s, "11");
        open_stream(&s);
        turn_until(&f, reflector_in_sync(o.reflector)); /* by its head alone */
        say(&s, ADDED("12"));
        expect(&f, &o, "added");
        end(&f, &o);
}

static void an_expired_version_lists_again(void) {
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        stand(&f, &s, &o);
        say(&s, ADDED("11") EXPIRED);
        expect(&f, &o, "trouble watch /api/v1/pods: 410 Expired: old");
        ASSERT_FALSE(reflector_in_sync(o.reflector));
        expect_list(&f, &s, "");
        respond(&s, 200, EMPTY_LIST);
        expect_watch(&f, &s, "10");
        /* in the head this time */
        respond(&s, 410, "{\"kind\":\"Status\",\"reason\":\"Expired\"}");
        expect_list(&f, &s, "");
        respond(&s, 200, EMPTY_LIST);
        expect_watch(&f, &s, "10");
        respond(&s, 504, "{}"); /* restored from a backup: our version is too large */
        expect_list(&f, &s, "");
        end(&f, &o);
}

static void other_errors_resume(void) {
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        stand(&f, &s, &o);
        say(&s, ADDED("11") "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"reason\":"
                            "\"InternalError\"}}\n");
        expect(&f, &o, "trouble watch /api/v1/pods: 500 InternalError");
        expect_watch(&f, &s, "11");
        respond(&s, 429,
                "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":1}}");
        expect(&f, &o, "HTTP 429");
        expect_watch(&f, &s, "11");
        respond(&s, 403, "{}");
        expect(&f, &o, "HTTP 403");
        expect_watch(&f, &s, "11");
        open_stream(&s);
        /* ends at once without an event: no reason to ask again at once */
        http_stream_end(TAKE_PTR(*s.stream));
        expect(&f, &o, "ended at once");
        expect_watch(&f, &s, "11");
        end(&f, &o);
}

/* A watch from the same version would meet it again, for ever. */
static void an_error_that_comes_again_lists_again(void) {
        static const char *const error = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,"
                                         "\"message\":\"PrevKv=nil\"}}\n";
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        stand(&f, &s, &o);
        say(&s, ADDED("11"));
        expect(&f, &o, "added");
        say(&s, error);
        expect(&f, &o, "trouble watch /api/v1/pods: 500");
        expect_watch(&f, &s, "11");
        open_stream(&s);
        say(&s, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,"
                "\"details\":{\"retryAfterSeconds\":1}}}\n");
        expect(&f, &o, "trouble watch /api/v1/pods: 429");
        expect_watch(&f, &s, "11");
        open_stream(&s);
        say(&s, error);
        expect(&f, &o, "trouble watch /api/v1/pods: 500");
        expect_list(&f, &s, "");
        respond(&s, 200, EMPTY_LIST);
        expect_watch(&f, &s, "10");
        end(&f, &o);
}

static void what_is_no_watch_lists_again(void) {
        static const char *const texts[] = {"<html>\n", "{\"type\":\"ADDED\",\"object\":7}\n",
                                            "{\"type\":\"ADDED\",\"object\":{\"metadata\":[]}}\n"};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                Server s;
                Fixture f;
                Owner o;

                begin(&f, &s, &o);
                stand(&f, &s, &o);
                say(&s, texts[i]);
                expect(&f, &o, "trouble watch /api/v1/pods: ");
                expect_list(&f, &s, "");
                end(&f, &o);
        }
}

static void what_is_no_list_is_asked_for_again(void) {
        static const char *const texts[] = {"",
                                            "[]",
                                            "{\"items\":[]}",
                                            "<html>",
                                            "{\"items\":[{},",
                                            "{\"metadata\":{\"resourceVersion\":1}}"};
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                expect_list(&f, &s, "");
                respond(&s, 200, texts[i]);
                expect(&f, &o, "trouble list /api/v1/pods: ");
                ASSERT_FALSE(reflector_in_sync(o.reflector));
        }
        stand(&f, &s, &o);
        end(&f, &o);
}

static void a_page_that_nothing_came_of_is_asked_for_again(void) {
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        expect_list(&f, &s, "");
        respond(&s, 200, LIST(",\"continue\":\"p2\"},\"items\":[{\"n\":1}]}"));
        expect_list(&f, &s, "p2");
        respond(&s, 429, "{}");
        expect_list(&f, &s, "p2");
        respond(&s, 200, LIST(",\"continue\":\"p3\"},\"items\":[{\"n\":2}]}"));
        expect_list(&f, &s, "p3");
        ASSERT_TRUE(!strstr(strstr(o.log.data, "begin") + 1, "begin")); /* one list so far */
        open_stream(&s); /* a page that is cut in the middle: from the start */
        say(&s, LIST("},\"items\":[{\"n\":3},{\"n"));
        expect(&f, &o, "listed {\"n\":3}");
        http_stream_cut(TAKE_PTR(*s.stream));
        expect_list(&f, &s, "");
        respond(&s, 200, LIST(",\"continue\":\"p2\"},\"items\":[]}"));
        expect_list(&f, &s, "p2");
        expect(&f, &o, "begin");
        /* compacted meanwhile */
        respond(&s, 410, "{\"kind\":\"Status\",\"reason\":\"Expired\"}");
        expect_list(&f, &s, "");
        respond(&s, 200, EMPTY_LIST);
        expect_watch(&f, &s, "10");
        ASSERT_STR(buf_str(&o.log), STR("trouble GET /api/v1/pods: HTTP 410 Expired\nbegin\nend\n"));
        end(&f, &o);
}

static void a_huge_object_is_passed_over(void) {
        char text[4096];
        Server s;
        Fixture f;
        Owner o;

        begin(&f, &s, &o);
        expect_list(&f, &s, "");
        (void) snprintf(text, sizeof text, LIST("},\"items\":[{\"n\":1},{\"n\":\"%01200d\"},{\"n\":3}]}"), 0);
        respond(&s, 200, text);
        expect_watch(&f, &s, "10");
        ASSERT_STR(buf_str(&o.log),
                   STR("begin\nlisted {\"n\":1}\nover\n"
                       "trouble GET /api/v1/pods: an object of more than 1000 bytes is passed over\n"
                       "listed {\"n\":3}\nend\n"));
        buf_clear(&o.log);
        open_stream(&s);
        (void) snprintf(text, sizeof text,
                        "{\"type\":\"ADDED\",\"object\":{\"n\":\"%02000d\"}}\n" ADDED("11"), 0);
        say(&s, text);
        expect(&f, &o, "passed over\nadded");
        ASSERT_TRUE(reflector_in_sync(o.reflector));
        end(&f, &o);
}

/* From every handler the owner may free everything. */
static void dies_in_its_handlers(void) {
        static const char *const places[] = {"begin", "listed", "end", "added", "deleted", "trouble"};

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                Server s;
                Fixture f;
                Owner o;

                begin(&f, &s, &o);
                o.free_at = places[i];
                turn_until(&f, !o.reflector || s.waiting);
                if (o.reflector)
                        respond(&s, 200, LIST("},\"items\":[{\"n\":1},{\"n\":2}]}"));
                turn_until(&f, !o.reflector || s.waiting);
                if (o.reflector) {
                        open_stream(&s);
                        say(&s,
                            ADDED("11") "{\"type\":\"DELETED\",\"object\":{\"n\":5}}\n" ADDED("12") EXPIRED);
                        turn_until(&f, !o.reflector);
                }
                for (int k = 0; k < 5; k++)
                        ASSERT_TRUE(sd_event_run(f.event, 1000) >= 0);
                ASSERT_TRUE(!o.free_at);
                end(&f, &o);
        }
}

static void a_silent_watch_is_dead(void) {
        static const ReflectorHandler handler = {on_begin, on_object, on_end, on_trouble, on_passed_over};
        ReflectorOptions options = {.path = "/api/v1/pods",
                                    .selector = "labelSelector=a%3Db",
                                    .page = 2,
                                    .backoff = 1000,
                                    .backoff_cap = 2000,
                                    .idle = 3 * USEC_PER_SEC};
        Server s = {0};
        Fixture f;
        Owner o = {.fixture = &f};

        fixture_begin(&f, handle, &s);
        ASSERT_OK(reflector_new(f.client, &options, &handler, &o, &o.reflector));
        stand(&f, &s, &o);
        expect(&f, &o, "trouble GET /api/v1/pods: no answer: nothing was heard for too long");
        turn_until(&f, s.waiting);
        ASSERT_TEXT(s.version, "10");
        end(&f, &o);
}

int main(void) {
        return TEST_MAIN(TEST(pages_and_versions), TEST(a_cut_watch_is_behind_until_the_next_one_stands),
                         TEST(an_expired_version_lists_again), TEST(other_errors_resume),
                         TEST(an_error_that_comes_again_lists_again), TEST(what_is_no_watch_lists_again),
                         TEST(what_is_no_list_is_asked_for_again),
                         TEST(a_page_that_nothing_came_of_is_asked_for_again),
                         TEST(a_huge_object_is_passed_over), TEST(dies_in_its_handlers),
                         TEST(a_silent_watch_is_dead));
}
