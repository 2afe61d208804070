/* SPDX-License-Identifier: Apache-2.0 */

/* Takes the censuses of an agent one by one, and prints what the audit of memory finds in each:
 *
 *     audit-steps LIBRARY PROC CARDS     as for `aliquot node`; CARDS as of --simulate
 *
 * It reads commands, a line each, and answers with lines of which the last one is "done":
 *
 *     pod JSON                           a pod of the API server
 *     give UID NAME CONTAINER CARD N     a slice of N units of that card
 *     census                             excess NAME CONTAINER CARD USED LIMIT, for each;
 *                                        card CARD BYTES PID [NAME/CONTAINER...] */

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "gpu/cards/census.h"
#include "gpu/cards/probe-internal.h"
#include "gpu/cards/simulated_cards.h"
#include "node/audit/memory_audit.h"
#include "node/records/process_lookup.h"

enum { LINE = 65536 };

static const ProbeOptions options = {.host_root = "", .census = 1};
static Probe probe = {.o = &options, .open = true, .session = 1};
static Census census;
static Roster roster;
static Records records;
static Inventory inventory;
static MemoryAudit *audit;
static uint32_t given[CARDS_MAX]; /* units of each card */

static void on_excess(void *userdata, const MemoryExcess *e) {
        (void) printf("excess %s %s %u %llu %llu\n", e->pod->name, e->container ? e->container : "-", e->card,
                      (unsigned long long) e->used, (unsigned long long) e->limit);
}

static void on_unaccounted(void *userdata, const UnaccountedMemory *u) {
        (void) printf("card %u %llu %u", u->card, (unsigned long long) u->bytes, u->pid);
        for (size_t i = 0; i < u->holders->n; i++) {
                const ProcessOwner *owner = &u->holders->list[i].owner;
                const RosterPod *pod = roster_find(&roster, str_from(owner->uid));

                if (left_memory_is_told(u->holders, i))
                        (void) printf(" %s/%s", pod ? pod->name : "-", process_lookup_container(pod, owner));
        }
        (void) printf("\n");
}

static int take_census(int fd) {
        CardCensus ret;
        ProbeReport r;

        probe.counted = 0;
        if (probe_census(&probe) < 0)
                return -1;
        do {
                if (recv(fd, &r, sizeof r, 0) != (ssize_t) sizeof r)
                        return -1;
                census_take(&census, &r);
        } while (r.kind != REPORT_CENSUS);
        if (!census_end(&census, &r, &ret) || ret.untold[0] != '\0')
                return -1;
        ret.came = clock_nsec(CLOCK_BOOTTIME) / NSEC_PER_USEC;
        memory_audit_take(audit, &ret);
        return 0;
}

static int give(char *line) {
        char uid[POD_UID_SIZE], name[64], container[64];
        DeviceId ids[256];
        unsigned card, n;

        if (sscanf(line, "give %63s %63s %63s %u %u", uid, name, container, &card, &n) != 5 ||
            card >= CARDS_MAX || n > 256)
                return -1;
        for (uint32_t i = 0; i < n; i++)
                ids[i] = device_id(card, given[card] + i);
        given[card] += n;
        return records_give(&records, str_from(uid), STR("default"), str_from(name), str_from(container),
                            false, DEVICE_MEM, &(DeviceSet){ids, n});
}

static int obey(char *line, int fd) {
        if (str_has_prefix(str_from(line), STR("pod ")))
                return roster_pod(&roster, REFLECTOR_ADDED, str_from(line + strlen("pod ")));
        if (str_has_prefix(str_from(line), STR("give ")))
                return give(line);
        return take_census(fd);
}

/* The cards have the driver's UUIDs. */
static int find_cards(const char *text, Fault *fault) {
        CardList cards = {0};
        int r = cards_simulate(str_from(text), STR("n1"), &cards, fault);

        for (unsigned i = 0; r == 0 && i < cards.n; i++) {
                ProbeCard *c = &probe.cards[probe.n_cards++];

                if (probe.nvml.handle(i, &c->device) != 0 ||
                    probe.nvml.uuid(c->device, c->uuid, sizeof c->uuid) != 0)
                        r = -1;
                memcpy(cards.cards[i].uuid, c->uuid, sizeof cards.cards[i].uuid);
        }
        if (r == 0)
                r = inventory_set(&inventory, &cards, SHARE_MODE_CORE_MEM, MEMORY_UNIT_GIB);
        card_list_done(&cards);
        return r;
}

static int begin(char **arguments, const char *state, Fault *fault) {
        int r = nvml_load(arguments[1], "", &probe.nvml, fault);

        if (r == 0)
                r = probe.nvml.init();
        if (r == 0)
                r = find_cards(arguments[3], fault);
        if (r == 0)
                r = roster_init(&roster, "n1");
        if (r == 0)
                r = records_open(&records, state, fault);
        if (r == 0)
                r = census_init(&census);
        roster.synced = true;
        return r != 0 ? r
                      : memory_audit_new(&(MemoryAuditOptions){.roster = &roster,
                                                               .records = &records,
                                                               .inventory = &inventory,
                                                               .proc = arguments[2],
                                                               .simulated = getenv("ALIQUOT_SIM_DIR"),
                                                               .on_excess = on_excess,
                                                               .on_unaccounted = on_unaccounted},
                                         &audit);
}

int main(int n, char **arguments) {
        static char line[LINE];
        char state[] = "/tmp/audit-steps-XXXXXX";
        Fault fault = FAULT_NULL;
        int fds[2], r = -1;

        if (n == 4 && mkdtemp(state) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0) {
                probe.fd = fds[0];
                r = begin(arguments, state, &fault);
        }
        if (r != 0)
                (void) fprintf(stderr, "audit-steps: %d %s\n", r, fault.text);
        while (r == 0 && fgets(line, sizeof line, stdin)) {
                line[strcspn(line, "\n")] = '\0';
                r = obey(line, fds[1]);
                (void) printf(r == 0 ? "done\n" : "failed\n");
                (void) fflush(stdout);
        }
        audit = memory_audit_free(audit);
        census_done(&census);
        probe_census_done(&probe);
        inventory_done(&inventory);
        records_done(&records);
        roster_done(&roster);
        (void) rmdir(state);
        return r != 0;
}
