/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease_follower.h"

#include "scratch.h"
#include "store_fixture.h"

#define UUID "_11112222-3333-4444-5555-66667777888"
#define PATH "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"

typedef struct Watch {
        bool leading;
        unsigned changes;
} Watch;

static void on_change(void *userdata, bool leading) {
        Watch *w = userdata;

        ASSERT_TRUE(w->leading != leading);
        w->leading = leading;
        w->changes++;
}

static void write_lease(Fixture *f, const char *method, const char *holder, unsigned second) {
        char body[1024];
        KubeRequest request = {.method = method, .path = PATH};
        Answer a = {0};

        (void) snprintf(body, sizeof body,
                        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                        "\"metadata\":{\"name\":\"l\",\"namespace\":\"kube-system\"},\"spec\":{"
                        "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,"
                        "\"renewTime\":\"2001-01-01T00:00:%02u.000000Z\"}}",
                        holder, second);
        if (strcmp(method, "POST") == 0)
                request.path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        else
                request.content_type = "application/merge-patch+json";
        request.body = str_from(body);
        ASSERT_OK(kube_call(f->client, &request, on_answer, &a, NULL));
        TURN_UNTIL(f, a.n == 1);
        ASSERT_INT(a.status / 100, 2);
}

static LeaseFollower *follow_with(Fixture *f, const char *file, Watch *w) {
        LeaseFollowerOptions o = {.namespace_ = "kube-system", .name = "l", .host = "pod-a", .file = file};
        LeaseFollower *ret;

        ASSERT_OK(lease_follower_new(f->client, &o, on_change, w, &ret));
        return ret;
}

static LeaseFollower *follow(Fixture *f, Watch *w) {
        return follow_with(f, NULL, w);
}

static void turn_until_said(Fixture *f, LeaseFollower *l, const char *part) {
        TURN_UNTIL(f, lease_follower_why_not(l) && strstr(lease_follower_why_not(l), part));
}

static void leads_with_its_kube_scheduler(void) {
        Watch w = {0};
        LeaseFollower *l;
        Fixture f;

        fixture_begin(&f, 0);
        l = follow(&f, &w);
        ASSERT_CONTAINS(lease_follower_why_not(l), "Lease kube-system/l was not read yet");
        turn_until_said(&f, l, "does not exist");
        write_lease(&f, "POST", "pod-a" UUID "1", 1);
        TURN_UNTIL(&f, w.leading);
        ASSERT_TRUE(lease_follower_is_leading(l));
        ASSERT_TRUE(!lease_follower_why_not(l));
        write_lease(&f, "PATCH", "", 2);
        TURN_UNTIL(&f, !w.leading);
        ASSERT_CONTAINS(lease_follower_why_not(l), "Lease kube-system/l has no holder");
        write_lease(&f, "PATCH", "pod-a" UUID "2", 3);
        TURN_UNTIL(&f, w.leading);
        write_lease(&f, "PATCH", "pod-b" UUID "1", 4);
        TURN_UNTIL(&f, !w.leading);
        ASSERT_CONTAINS(lease_follower_why_not(l),
                        "is held by pod-b" UUID "1, and not by the kube-scheduler of host pod-a");
        write_lease(&f, "PATCH", "pod-a" UUID "2", 5); /* by hand */
        turn_until_said(&f, l, "went to pod-a" UUID "2 from a holder that may still act");
        ASSERT_INT(w.changes, 4);
        l = lease_follower_free(l);
        fixture_end(&f);
}

/* No time of day is looked at: this record is decades old. */
static void needs_a_renewal_after_it_began(void) {
        Watch w = {0};
        LeaseFollower *l;
        Fixture f;

        fixture_begin(&f, 0);
        write_lease(&f, "POST", "pod-a" UUID "1", 1);
        l = follow(&f, &w);
        turn_until_said(&f, l, "was not seen renewed in time by pod-a" UUID "1");
        write_lease(&f, "PATCH", "pod-a" UUID "1", 3);
        TURN_UNTIL(&f, w.leading);
        l = lease_follower_free(l);
        fixture_end(&f);
}

/* Without an answer it stops by itself, and tells what the trouble was. */
static void stops_when_the_lease_cannot_be_read(void) {
        Watch w = {0};
        LeaseFollower *l;
        Fixture f;

        fixture_begin(&f, 0);
        l = follow(&f, &w);
        turn_until_said(&f, l, "does not exist");
        write_lease(&f, "POST", "pod-a" UUID "1", 1);
        TURN_UNTIL(&f, w.leading);
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_STATUS,
                                                      .method = "GET",
                                                      .path_prefix = PATH,
                                                      .count = 100000,
                                                      .status = 403}));
        TURN_UNTIL(&f, !w.leading);
        ASSERT_CONTAINS(lease_follower_why_not(l), "was not seen renewed in time by pod-a" UUID "1; ");
        ASSERT_CONTAINS(lease_follower_why_not(l), "403");
        l = lease_follower_free(l);
        fixture_end(&f);
}

/* A look may be asked for at any moment, and any number of times. */
static void a_look_reads_at_once(void) {
        Watch w = {0};
        LeaseFollower *l;
        Fixture f;

        fixture_begin(&f, 0);
        l = follow(&f, &w);
        for (int i = 0; i < 3; i++)
                lease_follower_look(l);
        turn_until_said(&f, l, "does not exist");
        write_lease(&f, "POST", "pod-a" UUID "1", 1);
        while (!w.leading) {
                lease_follower_look(l);
                ASSERT_TRUE(sd_event_run(f.event, 1000) >= 0);
        }
        lease_follower_look(l); /* nothing to look for */
        l = lease_follower_free(l);
        fixture_end(&f);
}

/* ---- the file ---- */

typedef struct Kept {
        char folder[32], file[48], beside[48]; /* beside: what is written first */
} Kept;

static void kept_begin(Kept *k) {
        *k = (Kept){.folder = "/tmp/lease-XXXXXX"};
        scratch_make(k->folder);
        (void) snprintf(k->file, sizeof k->file, "%s/lease", k->folder);
        (void) snprintf(k->beside, sizeof k->beside, "%s/lease.new", k->folder);
}

/* A first process, which leads and ends. Nothing renews the Lease from then on. */
static void leads_and_ends(Fixture *f, const Kept *k) {
        Watch w = {0};
        LeaseFollower *l = follow_with(f, k->file, &w);

        turn_until_said(f, l, "does not exist");
        write_lease(f, "POST", "pod-a" UUID "1", 1);
        TURN_UNTIL(f, w.leading);
        (void) lease_follower_free(l);
}

static void the_next_process_leads_with_its_first_read(void) {
        Watch w = {0};
        LeaseFollower *l;
        Fixture f;
        Kept k;

        fixture_begin(&f, 0);
        kept_begin(&k);
        leads_and_ends(&f, &k);
        l = follow_with(&f, k.file, &w);
        ASSERT_FALSE(lease_follower_is_leading(l));
        TURN_UNTIL(&f, w.leading);
        write_lease(&f, "PATCH", "pod-b" UUID "1", 2);
        TURN_UNTIL(&f, !w.leading);
        l = lease_follower_free(l);
        /* What was lost is not led by a third process, nor what came back by hand. */
        write_lease(&f, "PATCH", "pod-a" UUID "1", 3);
        w = (Watch){0};
        l = follow_with(&f, k.file, &w);
        turn_until_said(&f, l, "went to pod-a" UUID "1 from a holder that may still act");
        l = lease_follower_free(l);
        scratch_remove(k.folder);
        fixture_end(&f);
}

/* Writes `count` bytes over the beginning of the file. */
static void spoil(const Kept *k, const char *text, size_t count) {
        FILE *file = fopen(k->file, "r+e");

        ASSERT_TRUE(file && fwrite(text, 1, count, file) == count);
        ASSERT_OK(fclose(file));
}

/* The file of another boot, one that this program has not written, and none. */
static void a_file_that_is_no_use_is_left_out(void) {
        for (int i = 0; i < 4; i++) {
                Watch w = {0};
                LeaseFollower *l;
                Fixture f;
                Kept k;

                fixture_begin(&f, 0);
                kept_begin(&k);
                leads_and_ends(&f, &k);
                if (i == 0)
                        spoil(&k, "0000", 4); /* of the boot id */
                else if (i == 1)
                        ASSERT_OK(truncate(k.file, 40));
                else if (i == 2)
                        ASSERT_OK(truncate(k.file, 1024 * 1024));
                else
                        ASSERT_OK(unlink(k.file));
                l = follow_with(&f, k.file, &w);
                turn_until_said(&f, l, "was not seen renewed in time by pod-a" UUID "1");
                write_lease(&f, "PATCH", "pod-a" UUID "1", 3);
                TURN_UNTIL(&f, w.leading);
                l = lease_follower_free(l);
                scratch_remove(k.folder);
                fixture_end(&f);
        }
}

/* A text that has become wrong does not stay, and the Lease is followed without the file. */
static void a_file_that_cannot_be_written_is_removed(void) {
        Watch w = {0};
        LeaseFollower *l;
        Fixture f;
        Kept k;

        fixture_begin(&f, 0);
        kept_begin(&k);
        leads_and_ends(&f, &k);
        ASSERT_OK(mkdir(k.beside, 0700));
        l = follow_with(&f, k.file, &w);
        TURN_UNTIL(&f, w.leading);
        ASSERT_OK(access(k.file, F_OK));
        write_lease(&f, "PATCH", "pod-b" UUID "1", 2);
        TURN_UNTIL(&f, !w.leading);
        ASSERT_INT(access(k.file, F_OK), -1);
        write_lease(&f, "PATCH", "", 3);
        turn_until_said(&f, l, "has no holder");
        write_lease(&f, "PATCH", "pod-a" UUID "1", 4);
        TURN_UNTIL(&f, w.leading);
        l = lease_follower_free(l);
        scratch_remove(k.folder);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(leads_with_its_kube_scheduler), TEST(needs_a_renewal_after_it_began),
                         TEST(stops_when_the_lease_cannot_be_read), TEST(a_look_reads_at_once),
                         TEST(the_next_process_leads_with_its_first_read),
                         TEST(a_file_that_is_no_use_is_left_out),
                         TEST(a_file_that_cannot_be_written_is_removed));
}
