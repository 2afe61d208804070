/* SPDX-License-Identifier: Apache-2.0 */

/* libnvidia-ml.so.1 for tests. It reads the text file FAKE_NVML at every call, so that a test can
 * change the machine while it runs. Only the list of cards is read at nvmlInit, as the real library
 * does. Lines:
 *
 *     card UUID MINOR MIB BUS NAME...  one card; BUS is hexadecimal, NAME the rest of the line
 *     fail CALL CARD CODE              CALL (init, count, uuid ...) of CARD or * returns CODE
 *     hang CALL CARD | crash CALL CARD
 *     count N                          the result of nvmlDeviceGetCount
 *     mig CARD                         MIG is on
 *     cc                               confidential computing is on
 *     xid SERIAL CARD CODE             an event, once per process and serial number
 *     driver VERSION                   absent: the library does not tell it
 *     noevents                         there are no event sets
 *     used CARD MIB RESERVED           memory in use, the driver's part; absent: an older driver
 *     process CARD PID MIB             a compute process; `draws CARD PID MIB`: a graphics process
 *     link CARD BUS N                  N NVLinks to what has that bus; `switch CARD N`: to a switch
 *     path CARD CARD LEVEL             the common ancestor; `blocked CARD CARD`: no peer access
 *     nvlink VERSION ARCHITECTURE      of all links and cards; absent: the library does not tell it
 *     uses CARD PID PERCENT            a process that used so much of the card's time, at each call
 *     deaf                             accepts limits, and leaves those in force
 *     charged MIB                      what each cgroup is charged for, of each card
 *     slow                             a limit that is set is answered once this line has gone
 *
 * Limits on the memory of cgroups are kept in FAKE_NVML.limits, for any path.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/cards/nvml.h"

enum { FAKE_CARDS_MAX = 400, FAKE_LINE = 512 };

enum {
        ERROR_UNINITIALIZED = 1,
        ERROR_NOT_SUPPORTED = NVML_ERROR_NOT_SUPPORTED,
};

typedef struct FakeCard {
        unsigned minor, bus, mib;
        char uuid[256], name[256];
} FakeCard;

static FakeCard cards[FAKE_CARDS_MAX];
static unsigned n_cards, n_sessions;
static int last_serial;

/* Calls back with each line of the file, without its end, until one call returns true. */
static bool each_line(bool (*line)(const char *text, void *userdata), void *userdata) {
        const char *path = getenv("FAKE_NVML");
        FILE *file = path ? fopen(path, "re") : NULL;
        char text[FAKE_LINE];
        bool found = false;

        while (file && !found && fgets(text, sizeof text, file)) {
                text[strcspn(text, "\n")] = '\0';
                found = line(text, userdata);
        }
        if (file)
                (void) fclose(file);
        return found;
}

/* ---- what happens at a call ---- */

typedef struct Call {
        const char *name;
        int card; /* -1: of no card */
        int code;
} Call;

static bool is_about(const Call *c, const char *call, const char *card) {
        return strcmp(call, c->name) == 0 &&
               (strcmp(card, "*") == 0 || (int) strtol(card, NULL, 10) == c->card);
}

static bool match(const char *text, void *userdata) {
        char verb[16], call[16], card[16];
        Call *c = userdata;

        if (sscanf(text, "%15s %15s %15s %d", verb, call, card, &c->code) < 3 || !is_about(c, call, card))
                return false;
        if (strcmp(verb, "hang") == 0)
                for (;;)
                        (void) pause();
        if (strcmp(verb, "crash") == 0)
                __builtin_trap();
        return strcmp(verb, "fail") == 0;
}

static int enter(const char *name, int card) {
        Call c = {name, card, 0};

        return each_line(match, &c) ? c.code : NVML_SUCCESS;
}

static int enter_card(const char *name, NvmlDevice d) {
        return enter(name, (int) ((FakeCard *) (void *) d - cards));
}

static FakeCard *card_of(NvmlDevice d) {
        return (FakeCard *) (void *) d;
}

/* ---- the library ---- */

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int r);
int nvmlSystemGetDriverVersion(char *ret, unsigned size);
int nvmlSystemGetConfComputeState(NvmlConfComputeState *ret);
int nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice *ret);
int nvmlDeviceGetUUID(NvmlDevice d, char *ret, unsigned size);
int nvmlDeviceGetName(NvmlDevice d, char *ret, unsigned size);
int nvmlDeviceGetMinorNumber(NvmlDevice d, unsigned *ret);
int nvmlDeviceGetMemoryInfo(NvmlDevice d, NvmlMemory *ret);
int nvmlDeviceGetMemoryInfo_v2(NvmlDevice d, NvmlMemory2 *ret);
int nvmlDeviceGetPciInfo_v3(NvmlDevice d, NvmlPci *ret);
int nvmlDeviceGetMigMode(NvmlDevice d, unsigned *ret_now, unsigned *ret_pending);
int nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice d, unsigned *count, NvmlProcess *ret);
int nvmlDeviceGetGraphicsRunningProcesses_v3(NvmlDevice d, unsigned *count, NvmlProcess *ret);
int nvmlDeviceGetProcessUtilization(NvmlDevice d, NvmlUse *ret, unsigned *count, unsigned long long since);
int nvmlDeviceGetArchitecture(NvmlDevice d, unsigned *ret);
int nvmlDeviceGetTopologyCommonAncestor(NvmlDevice d, NvmlDevice other, unsigned *ret);
int nvmlDeviceGetP2PStatus(NvmlDevice d, NvmlDevice other, int index, unsigned *ret);
int nvmlDeviceGetNvLinkState(NvmlDevice d, unsigned link, unsigned *ret);
int nvmlDeviceGetNvLinkVersion(NvmlDevice d, unsigned link, unsigned *ret);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice d, unsigned link, NvmlPci *ret);
int nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice d, unsigned link, unsigned *ret);
int nvmlDeviceSetMemoryLimits_v1(NvmlDevice d, NvmlSetLimits *p);
int nvmlDeviceGetMemoryLimits_v1(NvmlDevice d, NvmlGetLimits *p);
int nvmlEventSetCreate(NvmlEventSet *ret);
int nvmlEventSetFree(NvmlEventSet s);
int nvmlDeviceRegisterEvents(NvmlDevice d, unsigned long long types, NvmlEventSet s);
int nvmlEventSetWait_v2(NvmlEventSet s, NvmlEvent *ret, unsigned msec);

static bool read_card(const char *text, void *userdata) {
        FakeCard *c = &cards[n_cards];

        if (sscanf(text, "card %255s %u %u %x %255[^\n]", c->uuid, &c->minor, &c->mib, &c->bus, c->name) == 5)
                n_cards++;
        return n_cards == FAKE_CARDS_MAX;
}

int nvmlInit_v2(void) {
        int r = enter("init", -1);

        if (r != NVML_SUCCESS)
                return r;
        if (n_sessions++ == 0) {
                n_cards = 0;
                (void) each_line(read_card, NULL);
        }
        return NVML_SUCCESS;
}

int nvmlShutdown(void) {
        if (n_sessions == 0)
                return ERROR_UNINITIALIZED;
        n_sessions--;
        return NVML_SUCCESS;
}

const char *nvmlErrorString(int r) {
        switch (r) {
        case 9:
                return "Driver Not Loaded";
        case 15:
                return "GPU is lost";
        case 16:
                return "GPU requires reset";
        case 18:
                return "Driver/library version mismatch";
        default:
                return r > 900 ? NULL : "Some Error";
        }
}

static bool read_count(const char *text, void *userdata) {
        return sscanf(text, "count %u", (unsigned *) userdata) == 1;
}

int nvmlDeviceGetCount_v2(unsigned *ret) {
        int r = enter("count", -1);

        *ret = n_cards;
        (void) each_line(read_count, ret);
        return r;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice *ret) {
        int r = enter("handle", (int) index);

        if (r == NVML_SUCCESS && index >= n_cards)
                r = NVML_ERROR_NOT_FOUND;
        if (r == NVML_SUCCESS)
                *ret = (NvmlDevice) (void *) &cards[index];
        return r;
}

/* Truncates the text, then without a NUL, as a broken library could do. */
static int give_text(int r, const char *text, char *ret, unsigned size) {
        size_t n = strlen(text) + 1;

        if (r == NVML_SUCCESS)
                memcpy(ret, text, n < size ? n : size);
        return r;
}

static bool read_driver(const char *text, void *userdata) {
        return sscanf(text, "driver %79s", (char *) userdata) == 1;
}

int nvmlSystemGetDriverVersion(char *ret, unsigned size) {
        char version[80];
        int r = enter("driver", -1);

        return each_line(read_driver, version) ? give_text(r, version, ret, size) : ERROR_NOT_SUPPORTED;
}

static bool is_conf_compute(const char *text, void *userdata) {
        return strcmp(text, "cc") == 0;
}

int nvmlSystemGetConfComputeState(NvmlConfComputeState *ret) {
        int r = enter("conf-compute", -1);

        *ret = (NvmlConfComputeState){.feature = each_line(is_conf_compute, NULL)};
        return r;
}

int nvmlDeviceGetUUID(NvmlDevice d, char *ret, unsigned size) {
        return give_text(enter_card("uuid", d), card_of(d)->uuid, ret, size);
}

int nvmlDeviceGetName(NvmlDevice d, char *ret, unsigned size) {
        return give_text(enter_card("name", d), card_of(d)->name, ret, size);
}

int nvmlDeviceGetMinorNumber(NvmlDevice d, unsigned *ret) {
        *ret = card_of(d)->minor;
        return enter_card("minor", d);
}

int nvmlDeviceGetMemoryInfo(NvmlDevice d, NvmlMemory *ret) {
        *ret = (NvmlMemory){.total = (unsigned long long) card_of(d)->mib << 20 | 0xfffff};
        return enter_card("memory", d);
}

typedef struct Used {
        int card;
        unsigned mib, reserved;
} Used;

static bool read_used(const char *text, void *userdata) {
        Used *u = userdata;
        int card;

        return sscanf(text, "used %d %u %u", &card, &u->mib, &u->reserved) == 3 && card == u->card;
}

int nvmlDeviceGetMemoryInfo_v2(NvmlDevice d, NvmlMemory2 *ret) {
        Used used = {.card = (int) (card_of(d) - cards)};
        int r = enter_card("memory2", d);

        if (r == NVML_SUCCESS && ret->version != NVML_MEMORY2_VERSION)
                return ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS && !each_line(read_used, &used))
                return ERROR_NOT_SUPPORTED;
        ret->total = (unsigned long long) card_of(d)->mib << 20;
        ret->used = (unsigned long long) used.mib << 20;
        ret->reserved = (unsigned long long) used.reserved << 20;
        return r;
}

int nvmlDeviceGetPciInfo_v3(NvmlDevice d, NvmlPci *ret) {
        *ret = (NvmlPci){.bus = card_of(d)->bus};
        return enter_card("pci", d);
}

static bool read_mig(const char *text, void *userdata) {
        int card;

        return sscanf(text, "mig %d", &card) == 1 && card == *(int *) userdata;
}

int nvmlDeviceGetMigMode(NvmlDevice d, unsigned *ret_now, unsigned *ret_pending) {
        int card = (int) (card_of(d) - cards);

        *ret_now = *ret_pending = each_line(read_mig, &card);
        return *ret_now ? NVML_SUCCESS : ERROR_NOT_SUPPORTED;
}

/* ---- limits on memory ---- */

static FILE *open_limits(const char *mode) {
        const char *machine = getenv("FAKE_NVML");
        char path[FAKE_LINE];

        (void) snprintf(path, sizeof path, "%s.limits", machine ? machine : ""); /* it fits */
        return fopen(path, mode);
}

static bool is_deaf(const char *text, void *userdata) {
        return strcmp(text, "deaf") == 0;
}

static bool read_charged(const char *text, void *userdata) {
        return sscanf(text, "charged %llu", (unsigned long long *) userdata) == 1;
}

static bool is_slow(const char *text, void *userdata) {
        return strcmp(text, "slow") == 0;
}

/* A limit below the charge is refused. */
int nvmlDeviceSetMemoryLimits_v1(NvmlDevice d, NvmlSetLimits *p) {
        int r = enter_card("set-limits", d);
        unsigned long long charged = 0;
        FILE *file;

        if (r == NVML_SUCCESS && each_line(read_charged, &charged) && charged << 20 > p->hard)
                return NVML_ERROR_INVALID_ARGUMENT;
        file = r == NVML_SUCCESS && !each_line(is_deaf, NULL) ? open_limits("ae") : NULL;

        if (file) {
                (void) fprintf(file, "%d %llu %s\n", (int) (card_of(d) - cards), p->hard, p->path);
                (void) fclose(file);
        }
        while (p->hard != ~0ull && each_line(is_slow, NULL))
                (void) usleep(1000);
        return r;
}

/* The last one that was set. */
int nvmlDeviceGetMemoryLimits_v1(NvmlDevice d, NvmlGetLimits *p) {
        int r = enter_card("get-limits", d), card;
        FILE *file = r == NVML_SUCCESS ? open_limits("re") : NULL;
        char text[FAKE_LINE], path[FAKE_LINE];
        unsigned long long hard;

        p->soft = p->used = 0;
        (void) each_line(read_charged, &p->used);
        p->used <<= 20;
        p->hard = ~0ull;
        while (file && fgets(text, sizeof text, file))
                if (sscanf(text, "%d %llu %511s", &card, &hard, path) == 3 &&
                    card == (int) (card_of(d) - cards) && strcmp(path, p->path) == 0)
                        p->hard = hard;
        if (file)
                (void) fclose(file);
        return r;
}

/* ---- links ---- */

typedef struct LinkEnd {
        int card;
        unsigned link, n; /* links of the card in the lines so far */
        bool by_switch;
        unsigned bus;
} LinkEnd;

static bool read_link(const char *text, void *userdata) {
        LinkEnd *l = userdata;
        unsigned count, bus = 0;
        int card;
        bool by_switch = sscanf(text, "switch %d %u", &card, &count) == 2;

        if ((!by_switch && sscanf(text, "link %d %x %u", &card, &bus, &count) != 3) || card != l->card)
                return false;
        l->n += count;
        l->by_switch = by_switch;
        l->bus = bus;
        return l->link < l->n;
}

static int find_link(NvmlDevice d, unsigned link, LinkEnd *ret) {
        *ret = (LinkEnd){.card = (int) (card_of(d) - cards), .link = link};
        if (each_line(read_link, ret))
                return enter_card("link", d);
        return ret->n > 0 ? NVML_ERROR_INVALID_ARGUMENT : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkState(NvmlDevice d, unsigned link, unsigned *ret) {
        LinkEnd end;

        *ret = 1;
        return find_link(d, link, &end);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice d, unsigned link, NvmlPci *ret) {
        LinkEnd end;
        int r = find_link(d, link, &end);

        *ret = (NvmlPci){.bus = end.bus};
        return r;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice d, unsigned link, unsigned *ret) {
        LinkEnd end;
        int r = find_link(d, link, &end);

        *ret = end.by_switch ? NVML_NVLINK_TYPE_SWITCH : NVML_NVLINK_TYPE_GPU;
        return r;
}

typedef struct Generation {
        unsigned version, architecture;
} Generation;

static bool read_generation(const char *text, void *userdata) {
        Generation *g = userdata;

        return sscanf(text, "nvlink %u %u", &g->version, &g->architecture) == 2;
}

int nvmlDeviceGetNvLinkVersion(NvmlDevice d, unsigned link, unsigned *ret) {
        Generation g;

        if (!each_line(read_generation, &g))
                return ERROR_NOT_SUPPORTED;
        *ret = g.version;
        return NVML_SUCCESS;
}

int nvmlDeviceGetArchitecture(NvmlDevice d, unsigned *ret) {
        Generation g;

        if (!each_line(read_generation, &g))
                return ERROR_NOT_SUPPORTED;
        *ret = g.architecture;
        return NVML_SUCCESS;
}

typedef struct Pair {
        const char *verb;
        int a, b;
        unsigned value;
} Pair;

static bool read_pair(const char *text, void *userdata) {
        Pair *p = userdata;
        char verb[16];
        int a, b;

        return sscanf(text, "%15s %d %d %u", verb, &a, &b, &p->value) >= 3 && strcmp(verb, p->verb) == 0 &&
               ((a == p->a && b == p->b) || (a == p->b && b == p->a));
}

static bool find_pair(const char *verb, NvmlDevice d, NvmlDevice other, unsigned *ret) {
        Pair p = {verb, (int) (card_of(d) - cards), (int) (card_of(other) - cards), 0};
        bool found = each_line(read_pair, &p);

        *ret = p.value;
        return found;
}

int nvmlDeviceGetTopologyCommonAncestor(NvmlDevice d, NvmlDevice other, unsigned *ret) {
        return find_pair("path", d, other, ret) ? enter_card("path", d) : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetP2PStatus(NvmlDevice d, NvmlDevice other, int index, unsigned *ret) {
        enum { CHIPSET_NOT_SUPPORTED = 1 };
        unsigned unused;

        *ret = find_pair("blocked", d, other, &unused) ? CHIPSET_NOT_SUPPORTED : NVML_P2P_STATUS_OK;
        return NVML_SUCCESS;
}

typedef struct Listing {
        const char *verb;
        int card;
        unsigned n, room;
        NvmlProcess *processes;
} Listing;

static bool read_process(const char *text, void *userdata) {
        Listing *l = userdata;
        unsigned pid, mib;
        char verb[16];
        int card;

        if (sscanf(text, "%15s %d %u %u", verb, &card, &pid, &mib) != 4 || strcmp(verb, l->verb) != 0 ||
            card != l->card)
                return false;
        if (l->n < l->room)
                l->processes[l->n] = (NvmlProcess){.pid = pid, .bytes = (unsigned long long) mib << 20};
        l->n++;
        return false;
}

static int list_processes(NvmlDevice d, const char *verb, unsigned *count, NvmlProcess *ret) {
        Listing l = {verb, (int) (card_of(d) - cards), 0, *count, ret};
        int r = enter_card("processes", d);

        if (r != NVML_SUCCESS)
                return r;
        (void) each_line(read_process, &l);
        *count = l.n;
        return l.n > l.room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice d, unsigned *count, NvmlProcess *ret) {
        return list_processes(d, "process", count, ret);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(NvmlDevice d, unsigned *count, NvmlProcess *ret) {
        return list_processes(d, "draws", count, ret);
}

typedef struct Uses {
        int card;
        unsigned n, room;
        unsigned long long now;
        NvmlUse *uses;
} Uses;

static bool read_use(const char *text, void *userdata) {
        Uses *u = userdata;
        unsigned pid, percent;
        int card;

        if (sscanf(text, "uses %d %u %u", &card, &pid, &percent) != 3 || card != u->card)
                return false;
        if (u->n < u->room)
                u->uses[u->n] = (NvmlUse){.pid = pid, .time = u->now, .sm = percent};
        u->n++;
        return false;
}

int nvmlDeviceGetProcessUtilization(NvmlDevice d, NvmlUse *ret, unsigned *count, unsigned long long since) {
        Uses u = {(int) (card_of(d) - cards), 0, ret ? *count : 0, clock_realtime_nsec() / NSEC_PER_USEC,
                  ret};
        int r = enter_card("uses", d);

        if (r != NVML_SUCCESS)
                return r;
        (void) each_line(read_use, &u);
        *count = u.n;
        return u.n == 0 || u.now <= since ? NVML_ERROR_NOT_FOUND
               : u.n > u.room             ? NVML_ERROR_INSUFFICIENT_SIZE
                                          : NVML_SUCCESS;
}

static bool read_no_events(const char *text, void *userdata) {
        return strcmp(text, "noevents") == 0;
}

int nvmlEventSetCreate(NvmlEventSet *ret) {
        *ret = (NvmlEventSet) (void *) &last_serial;
        return each_line(read_no_events, NULL) ? ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlEventSetFree(NvmlEventSet s) {
        return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(NvmlDevice d, unsigned long long types, NvmlEventSet s) {
        return types == NVML_EVENT_XID ? enter_card("register", d) : ERROR_NOT_SUPPORTED;
}

static bool read_xid(const char *text, void *userdata) {
        NvmlEvent *e = userdata;
        unsigned card;
        int serial;

        if (sscanf(text, "xid %d %u %llu", &serial, &card, &e->data) != 3 || serial <= last_serial ||
            card >= n_cards)
                return false;
        last_serial = serial;
        e->device = (NvmlDevice) (void *) &cards[card];
        e->type = NVML_EVENT_XID;
        return true;
}

int nvmlEventSetWait_v2(NvmlEventSet s, NvmlEvent *ret, unsigned msec) {
        int r = enter("wait", -1);

        if (r != NVML_SUCCESS || each_line(read_xid, ret))
                return r;
        (void) usleep(msec * 1000);
        return NVML_ERROR_TIMEOUT;
}
