/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "local/apiserver/store.h"
#include "test.h"

/* The store as programs that embed it see it. Its sockets are tested in tests/blackbox/store.py. */

typedef struct Fixture {
        sd_event *event;
        Store *store;
        Fault fault;
} Fixture;

static void begin(Fixture *f) {
        *f = (Fixture){0};
        ASSERT_OK(sd_event_new(&f->event) < 0);
        ASSERT_OK(store_new(f->event, &(StoreOptions){0}, &f->store, &f->fault));
}

static void end(Fixture *f) {
        store_free(f->store);
        sd_event_unref(f->event);
}

static int join_names(void *userdata, Str object) {
        static const char key[] = "\"name\":\"";
        const char *at = memmem(object.data, object.len, key, sizeof key - 1);
        Str rest;

        ASSERT_TRUE(at);
        at += sizeof key - 1;
        rest = (Str){at, (size_t) (object.data + object.len - at)};
        rest = str_split(&rest, '"');
        (void) strncat(userdata, rest.data, rest.len);
        return 0;
}

static int stop(void *userdata, Str object) {
        return 7;
}

#define CONFIG_MAP(name) "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\"}}"

static void applies(void) {
        char names[64] = "";
        Fixture f;

        begin(&f);
        ASSERT_OK(store_apply(f.store, STR(CONFIG_MAP("b")), &f.fault));
        ASSERT_OK(store_apply(f.store,
                              STR("{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[" CONFIG_MAP(
                                      "c") "," CONFIG_MAP("a") "]}"),
                              &f.fault));
        ASSERT_OK(store_each(f.store, "configmaps", join_names, names));
        ASSERT_TEXT(names, "abc");
        ASSERT_INT(store_each(f.store, "configmaps", stop, NULL), 7);
        ASSERT_OK(store_each(f.store, "pods", stop, NULL));
        ASSERT_INT(store_each(f.store, "gadgets", stop, NULL), -ENOENT);
        end(&f);
}

static void says_why_not(void) {
        Fixture f;

        begin(&f);
        ASSERT_OK(store_apply(f.store, STR(CONFIG_MAP("a")), &f.fault));
        ASSERT_INT(store_apply(f.store, STR(CONFIG_MAP("a")), &f.fault), STORE_E_EXISTS);
        ASSERT_TEXT(f.fault.text, "configmaps \"a\" already exists");
        ASSERT_INT(store_apply(f.store, STR("{"), &f.fault), STORE_E_INVALID);
        ASSERT_INT(store_apply(f.store,
                               STR("{\"kind\":\"List\",\"items\":[" CONFIG_MAP("b") "," CONFIG_MAP("_") "]}"),
                               &f.fault),
                   STORE_E_INVALID);
        ASSERT_CONTAINS(f.fault.text,
                        "List: items[1]: ConfigMap \"_\" is invalid: metadata.name: Invalid value: \"_\"");
        ASSERT_INT(store_apply(f.store, STR("{\"kind\":\"List\",\"items\":{}}"), &f.fault), STORE_E_INVALID);
        ASSERT_INT(store_apply(f.store, STR("{\"kind\":\"Gadget\",\"apiVersion\":\"v1\"}"), &f.fault),
                   STORE_E_NOT_FOUND);
        ASSERT_TEXT(f.fault.text, "no matches for kind \"Gadget\" in version \"v1\"");
        end(&f);
}

static void bounds_faults(void) {
        StoreFault fault = {.kind = STORE_FAULT_STATUS, .count = 1, .status = 500};
        Fixture f;

        begin(&f);
        for (int i = 0; i < 64; i++)
                ASSERT_OK(store_inject(f.store, &fault));
        ASSERT_INT(store_inject(f.store, &fault), -ENOSPC);
        fault.count = 0;
        ASSERT_INT(store_inject(f.store, &fault), -EINVAL);
        fault = (StoreFault){.kind = STORE_FAULT_STATUS, .count = 1, .status = 99};
        ASSERT_INT(store_inject(f.store, &fault), -EINVAL);
        end(&f);
}

static void vanishes_and_returns(void) {
        char url[64];
        Fixture f;

        begin(&f);
        (void) snprintf(url, sizeof url, "%s", store_url(f.store));
        ASSERT_OK(store_vanish(f.store, true));
        ASSERT_OK(store_vanish(f.store, true));
        /* the objects are still there */
        ASSERT_OK(store_apply(f.store, STR(CONFIG_MAP("a")), &f.fault));
        ASSERT_OK(store_vanish(f.store, false));
        ASSERT_TEXT(store_url(f.store), url);
        store_forget_history(f.store);
        end(&f);
}

static void refuses_addresses(void) {
        Fixture f = {0};

        ASSERT_OK(sd_event_new(&f.event) < 0);
        ASSERT_TRUE(store_new(f.event, &(StoreOptions){.listen = "nowhere"}, &f.store, &f.fault) < 0);
        ASSERT_TRUE(f.fault.text[0] != '\0');
        ASSERT_TRUE(!f.store);
        end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(applies), TEST(says_why_not), TEST(bounds_faults), TEST(vanishes_and_returns),
                         TEST(refuses_addresses));
}
