/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "arbiter/overrun_report.h"
#include "slice/schedule.h"
#include "test.h"

#define MODEL_TIMESLICE MSEC
#define DUTY            (20 * MSEC)
#define MODEL_POLL      (200 * USEC)
#define HASTE           (200 * USEC)
#define NATIVE_DEPTH    (10 * MSEC) /* in flight of a process without a gate, ns: more than a turn */

/* ---- pseudo-random times ---- */

static uint64_t draw(Model *m, uint64_t below) {
        return random_below(&m->random, below);
}

static uint64_t latency(Model *m) {
        return 20 * USEC + draw(m, 40 * USEC);
}

static uint64_t wake_latency(Model *m) {
        return latency(m) + (m->late > 0 ? m->late / 10 + draw(m, m->late * 9 / 10) : 0);
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

/* ---- the card ---- */

uint64_t model_done(const ModelProcess *p) {
        return p->n_launched - (p->left + p->kernel - 1) / p->kernel;
}

/* Whether its next kernel is an all-reduce that still waits on the card: the kernel of another rank
 * has not begun. */
static bool is_spinning(const ModelProcess *p) {
        uint64_t done = model_done(p);

        if (p->collective == 0 || p->left == 0 || p->left % p->kernel != 0 || (done + 1) % p->collective != 0)
                return false;
        for (uint32_t i = 0; i < p->n_peers; i++)
                if (p->peers[i]->begun <= done)
                        return true;
        return false;
}

static int32_t next_process(const Model *m) {
        for (uint32_t i = 1; i <= m->n_processes; i++) {
                uint32_t at =
                        ((uint32_t) (m->running + (int32_t) i + (int32_t) m->n_processes)) % m->n_processes;

                if (m->processes[at].left > 0)
                        return (int32_t) at;
        }
        return -1;
}

static void work_off(Model *m, ModelProcess *p, uint64_t ns, uint64_t span_before) {
        uint64_t before = p->left, boundary;

        p->left -= is_spinning(p) ? 0 : ns;
        p->ran += ns;
        m->tenants[p->tenant].ran += ns;
        boundary = (p->left + p->kernel - 1) / p->kernel * p->kernel;
        if (boundary < before) {
                p->measured = span_before + ns - (boundary - p->left);
                p->moved = m->now + ns;
                p->sharing = 0;
        }
}

static uint64_t until_boundary(ModelProcess *p) {
        if (p->collective == 0)
                return p->left;
        p->begun = max_u64(p->begun, model_done(p) + 1);
        return is_spinning(p) ? UINT64_MAX : (p->left - 1) % p->kernel + 1;
}

static uint64_t card_next(Model *m) {
        if (m->running < 0 || m->processes[m->running].left == 0 || m->timeslice_left == 0) {
                m->running = m->n_processes > 0 ? next_process(m) : -1;
                m->timeslice_left = MODEL_TIMESLICE;
        }
        if (m->running < 0)
                return UINT64_MAX;
        return m->now + min_u64(m->timeslice_left, until_boundary(&m->processes[m->running]));
}

static void card_advance(Model *m, uint64_t ns) {
        for (uint32_t i = 0; i < m->n_processes; i++) {
                ModelProcess *p = &m->processes[i];
                uint64_t span = p->span;

                if (p->left == 0)
                        continue;
                p->span += ns;
                if ((int32_t) i == m->running)
                        work_off(m, p, ns, span);
        }
        if (m->running >= 0)
                m->timeslice_left -= ns;
}

/* ---- a process and its launch hook ---- */

static void ring(Model *m, const ModelProcess *p) {
        if (p->lost_doorbell)
                return;
        m->rung[p->tenant] = true;
        if (m->now >= m->back)
                m->wake = min_u64(m->wake, m->now + latency(m));
}

static uint64_t whole_kernels(const ModelProcess *p) {
        return (p->left + p->kernel - 1) / p->kernel * p->kernel;
}

static uint64_t in_flight_of_all(const Model *m, const ModelProcess *p) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < m->n_processes; i++)
                if (m->processes[i].tenant == p->tenant && !m->processes[i].dead)
                        sum += whole_kernels(&m->processes[i]);
        return sum;
}

static uint64_t in_flight_of(const Model *m, const ModelProcess *p) {
        return m->per_process ? whole_kernels(p) : in_flight_of_all(m, p);
}

static bool is_away(const Model *m) {
        return m->now >= m->away && m->now < m->back;
}

/* ns that remain of the tenant's part of the current 20 ms; 0 outside of that part. The parts of
 * different tenants begin at different times. */
static uint64_t duty_left(const Model *m, const ModelProcess *p) {
        uint64_t at = (m->now + p->tenant * 7 * MSEC) % DUTY,
                 part = DUTY * m->tenants[p->tenant].policy.rate / POLICY_PPM;

        return at < part ? part - at : 0;
}

/* The ns of work that may be in flight, by the launch hook's rule: work that ends with the window,
 * or drain_ns later at most. */
static uint64_t room_of(const Model *m, const ModelProcess *p) {
        const EngineWindow *t = &m->tenants[p->tenant].window;
        uint64_t room = (t->closes > m->now ? t->closes - m->now : 0) + t->drain_ns;
        uint64_t part = room / max_u64(t->sharers, 1), all = in_flight_of_all(m, p);

        if (!t->gated)
                return NATIVE_DEPTH;
        if (is_away(m))
                return duty_left(m, p);
        room = min_u64(t->depth * max_u64(t->sharers, 1), room);
        if (!m->per_process)
                return room;
        part = min_u64(t->depth, part);
        return max_u64(part, room - min_u64(room, all - in_flight_of(m, p)));
}

/* The launch hook's rule of liveness: work in flight may wait for the next kernel. */
static uint64_t stuck_at(const Model *m, ModelProcess *p) {
        uint64_t work = p->misreport == MISREPORT_SHORT ? USEC : whole_kernels(p), n = 0;

        for (uint32_t i = 0; i < m->n_processes; i++)
                n += m->processes[i].tenant == p->tenant && m->processes[i].left > 0;
        p->sharing = max_u64(p->sharing, n);
        return p->moved + work + (work + SEC) * p->sharing;
}

static bool is_stuck(const Model *m, ModelProcess *p) {
        return p->left > 0 && m->now >= stuck_at(m, p);
}

static void launch(Model *m, ModelProcess *p, uint64_t depth) {
        uint64_t in_flight = in_flight_of(m, p), room = depth > in_flight ? depth - in_flight : 0,
                 n = (room + p->kernel - 1) / p->kernel;

        if (n == 0 && (in_flight == 0 || is_stuck(m, p)))
                n = 1;
        if (p->request > 0)
                n = min_u64(n, (p->pending + p->kernel - 1) / p->kernel);
        p->left += n * p->kernel;
        p->report.launched += (uint32_t) n;
        p->n_launched += n;
        if (in_flight == 0 || is_stuck(m, p)) {
                p->moved = m->now;
                p->sharing = 0;
        }
        if (p->request > 0)
                p->pending -= min_u64(p->pending, n * p->kernel);
        if (n > 0 && (p->window != m->tenants[p->tenant].window.number || p->report.first_launch == 0))
                p->report.first_launch = WORK_BEGAN(m->now);
        if (n > 0)
                p->window = m->tenants[p->tenant].window.number;
}

static bool is_open(const Model *m, const ModelProcess *p) {
        const EngineWindow *t = &m->tenants[p->tenant].window;

        if (t->gated && is_away(m))
                return duty_left(m, p) > 0;
        return !t->gated || (t->open && m->now < t->closes);
}

/* Rings for a pause by the launch hook's rule: of short pauses in a row for one in each ms, and
 * again at the end of that pause. */
static void ring_for_pause(Model *m, ModelProcess *p) {
        if (p->hasty && m->now - p->rang < MSEC)
                return;
        p->rang = m->now;
        p->paused = true;
        ring(m, p);
}

static void end_pause(Model *m, ModelProcess *p) {
        p->hasty = m->now - p->idled < HASTE;
        if (p->paused || !is_open(m, p))
                ring(m, p);
        p->paused = false;
}

static void end_request(Model *m, ModelProcess *p) {
        uint64_t took = m->now - p->arrived;

        if (p->n_latencies < MODEL_SAMPLES)
                p->latencies[p->n_latencies++] = took;
        p->longest = max_u64(p->longest, took);
        p->report.want_since = 0;
        p->arrived = 0;
        p->look = m->now + p->rest;
        if (!p->old && m->tenants[p->tenant].window.gated && m->tenants[p->tenant].window.open)
                ring_for_pause(m, p);
        p->idled = m->now;
}

static void begin_request(Model *m, ModelProcess *p) {
        p->arrived = p->report.want_since = m->now;
        p->pending = p->request;
        end_pause(m, p);
}

/* The report of MISREPORT_IDLE: no want while the process has work on the card, and a want again
 * shortly before that work ends. */
static void say_rests(Model *m, ModelProcess *p) {
        bool rests = p->left > 0, did = p->report.want_since == 0;

        p->report.want_since = rests ? 0 : m->now;
        p->report.in_flight = 0;
        p->report.busy = 0;
        if (rests != did)
                ring(m, p);
        p->look = min_u64(p->look, m->now + max_u64(p->left, 20 * USEC));
}

static void tell(Model *m, ModelProcess *p) {
        p->report.in_flight = (p->left + p->kernel - 1) / p->kernel * p->kernel;
        p->report.busy = p->measured;
        if (p->misreport == MISREPORT_BUSY_ZERO)
                p->report.busy = 0;
        else if (p->misreport == MISREPORT_BUSY_BACK)
                p->report.busy = UINT64_MAX - m->now;
        else if (p->misreport == MISREPORT_BUSY_LITTLE)
                p->report.busy = p->measured / 1000;
        else if (p->misreport == MISREPORT_BUSY_JUMPS)
                p->report.busy = m->now * 1000;
        if (p->misreport == MISREPORT_SHORT || p->misreport == MISREPORT_OVER)
                p->report.in_flight = min_u64(p->report.in_flight, USEC);
        if (p->misreport == MISREPORT_LATE)
                p->report.first_launch = WORK_BEGAN(m->tenants[p->tenant].opened + 2 * MSEC);
        if (p->misreport == MISREPORT_FUTURE) {
                p->report.want_since = UINT64_MAX - 5;
                p->report.drained = UINT32_MAX;
        }
        if (p->misreport == MISREPORT_IDLE)
                say_rests(m, p);
        if (p->misreport == MISREPORT_NEVER_DRAINS) {
                p->report.in_flight = UINT64_MAX;
                p->report.drained = 0;
        }
}

/* The work left, in ns, at which the process looks again. At least an eighth of the depth is
 * launched at once, or one kernel. */
static uint64_t enough(const ModelProcess *p, uint64_t depth) {
        uint64_t most = depth / p->kernel;

        return most < 2 ? 0 : (most - max_u64(1, most / 8)) * p->kernel;
}

static void look(Model *m, ModelProcess *p) {
        const EngineWindow *t = &m->tenants[p->tenant].window;
        uint64_t depth = room_of(m, p), told;

        p->look = UINT64_MAX;
        if (p->stopped || p->dead || p->misreport == MISREPORT_ABSENT)
                return;
        if (p->request > 0 && p->arrived == 0)
                begin_request(m, p);
        if (p->request > 0 && p->pending == 0 && p->left == 0) {
                end_request(m, p);
        } else if (is_open(m, p) || is_stuck(m, p)) {
                launch(m, p, is_open(m, p) ? depth : 0);
                p->look = m->now + max_u64(p->left - min_u64(p->left, enough(p, depth)), 5 * USEC) +
                          latency(m) / 2;
                if (p->left == 0)
                        p->look = m->now + latency(m) * 4;
        } else if (p->left > 0) {
                p->look = min_u64(m->now + p->left + latency(m), stuck_at(m, p));
        }
        if (m->now < m->back && p->look == UINT64_MAX)
                p->look = m->now + MODEL_POLL;
        told = p->report.drained;
        if (t->gated && !is_open(m, p) && p->left == 0 && p->misreport != MISREPORT_NEVER_DRAINS) {
                p->report.drained = t->number;
                if (told != t->number && !p->old && p->report.want_since != 0)
                        p->report.want_since = p->misreport == MISREPORT_OVER ? t->closes : m->now;
                if (told != t->number && p->window == t->number)
                        ring(m, p);
        }
        tell(m, p);
}

/* ---- the arbiter ---- */

static void read_rows(Model *m, uint32_t tenant) {
        ModelTenant *t = &m->tenants[tenant];

        report_aggregate_begin(&t->aggregate, t->opened,
                               !t->window.open && t->window.closes <= m->now ? t->window.closes : 0);
        for (uint32_t i = 0; i < m->n_processes; i++)
                if (m->processes[i].tenant == tenant && !m->processes[i].dead)
                        report_aggregate_add(&t->aggregate, i, &m->processes[i].report, t->window.number,
                                             m->now, 10 * SEC);
        report_aggregate_end(&t->aggregate, m->now);
        engine_report(&m->engine, m->now, (uint32_t) t->engine, &t->aggregate.report);
}

static void wake_processes(Model *m, uint32_t tenant) {
        for (uint32_t i = 0; i < m->n_processes; i++) {
                ModelProcess *p = &m->processes[i];

                if (p->tenant == tenant && (p->report.want_since != 0 || p->request == 0))
                        p->look = min_u64(p->look, m->now + wake_latency(m));
        }
}

static void write_windows(Model *m) {
        unsigned open = 0;

        for (uint32_t i = 0; i < m->n_tenants; i++) {
                ModelTenant *t = &m->tenants[i];
                EngineWindow turn;

                if (t->engine < 0)
                        continue;
                turn = m->engine.tenants[t->engine].window;
                open += turn.open;
                if (turn.open && (turn.number != t->window.number || !t->window.open)) {
                        ASSERT_TRUE(turn.number != t->window.number); /* no number is opened twice */
                        m->opens++;
                        t->opened = m->now;
                }
                if (turn.open != t->window.open || turn.number != t->window.number ||
                    turn.gated != t->window.gated) {
                        t->window = turn;
                        wake_processes(m, i);
                }
                t->window = turn;
        }
        ASSERT_TRUE(open <= 1);
}

static void read_tenants(Model *m) {
        for (uint32_t i = 0; i < m->n_tenants; i++)
                if (m->tenants[i].engine >= 0 &&
                    (m->rung[i] || m->steps % 64 == 0 ||
                     engine_needs_report(&m->engine, (uint32_t) m->tenants[i].engine, m->now))) {
                        m->rung[i] = false;
                        read_rows(m, i);
                }
}

static void finish_step(Model *m, uint64_t next) {
        OverrunReport event;

        ASSERT_TRUE(next > m->now);
        while (overrun_report_next(&m->engine, &event)) {
                m->repeats += event.repeated;
                m->events += !event.repeated;
                m->overrun_tenant = event.tenant;
        }
        write_windows(m);
        m->steps++;
        for (uint32_t i = 0; i < m->n_tenants; i++)
                next = m->rung[i] ? m->now : next;
        m->wake = min_u64(next, m->now + 50 * MSEC) + 5 * USEC + draw(m, 20 * USEC) + m->arbiter_late;
}

static void arbiter(Model *m) {
        read_tenants(m);
        finish_step(m, engine_step(&m->engine, m->now));
}

/* ---- the model ---- */

void model_init(Model *m, uint64_t seed) {
        memset(m, 0, sizeof *m);
        m->random = (Random){seed};
        m->now = SEC;
        m->running = -1;
        m->wake = m->now;
        engine_init(&m->engine, m->now);
}

uint32_t model_tenant(Model *m, const TenantPolicy *policy) {
        uint32_t i = m->n_tenants++;

        ASSERT_TRUE(i < MODEL_TENANTS);
        m->tenants[i] = (ModelTenant){.aggregate = REPORT_AGGREGATE_NULL, .policy = *policy};
        m->tenants[i].engine = engine_add(&m->engine, m->now, policy, 0, false);
        ASSERT_TRUE(m->tenants[i].engine >= 0);
        m->tenants[i].window.gated = policy->gated;
        m->wake = m->now;
        return i;
}

ModelProcess *model_process(Model *m, uint32_t tenant, uint64_t kernel) {
        ModelProcess *p = &m->processes[m->n_processes++];

        ASSERT_TRUE(m->n_processes <= MODEL_PROCESSES);
        *p = (ModelProcess){
                .tenant = tenant, .kernel = kernel, .report.want_since = m->now, .look = m->now + latency(m)};
        m->rung[tenant] = true;
        m->wake = min_u64(m->wake, m->now + latency(m));
        return p;
}

void model_stop(Model *m, uint64_t ns) {
        m->away = m->now + SCHED_STALE_NSEC;
        m->back = m->wake = m->now + ns;
        for (uint32_t i = 0; i < m->n_processes; i++)
                m->processes[i].look = min_u64(m->processes[i].look, m->now + MODEL_POLL);
        for (uint32_t i = 0; i < m->n_tenants; i++)
                m->rung[i] = true; /* after such a time the arbiter reads all rows */
}

void model_begin_again(Model *m, ModelProcess *p) {
        uint32_t row = (uint32_t) (p - m->processes);

        report_aggregate_forget(&m->tenants[p->tenant].aggregate, row, m->now);
        *p = (ModelProcess){.tenant = p->tenant,
                            .kernel = p->kernel,
                            .misreport = p->misreport,
                            .report.want_since = m->now,
                            .look = m->now + 300 * USEC};
        ring(m, p);
}

void model_leave(Model *m, uint32_t tenant) {
        for (uint32_t i = 0; i < m->n_processes; i++)
                if (m->processes[i].tenant == tenant) {
                        m->processes[i].dead = true;
                        m->processes[i].left = 0;
                }
        engine_remove(&m->engine, (uint32_t) m->tenants[tenant].engine);
        m->tenants[tenant].engine = -1;
}

void model_take_over(Model *m) {
        engine_init(&m->engine, m->now);
        for (uint32_t i = 0; i < m->n_tenants; i++) {
                ModelTenant *t = &m->tenants[i];

                if (t->engine < 0)
                        continue;
                t->aggregate = REPORT_AGGREGATE_NULL;
                t->engine = engine_add(&m->engine, m->now, &t->policy, t->window.number, t->window.open);
                t->window.open = false;
                read_rows(m, i);
        }
        m->wake = m->now;
}

static uint64_t next_event(Model *m, uint64_t until) {
        uint64_t next = min_u64(min_u64(card_next(m), m->wake), until);

        for (uint32_t i = 0; i < m->n_processes; i++)
                next = min_u64(next, m->processes[i].look);
        return next;
}

static void go_to(Model *m, uint64_t when) {
        ASSERT_TRUE(when >= m->now);
        card_advance(m, when - m->now);
        m->now = when;
        for (uint32_t i = 0; i < m->n_processes; i++)
                if (m->processes[i].look <= m->now)
                        look(m, &m->processes[i]);
}

void model_run(Model *m, uint64_t until) {
        while (m->now < until) {
                go_to(m, next_event(m, until));
                if (m->wake <= m->now)
                        arbiter(m);
        }
}

/* A step of the arbiter for several cards, as in the daemon: it steps the cards that are due, and
 * those that the plan changes. */
static void arbiter_of_cards(Model *const cards[], uint32_t n, Joined *joined, uint64_t now) {
        Engine *engines[MODEL_CARDS];
        bool due[MODEL_CARDS];

        for (uint32_t i = 0; i < n; i++) {
                engines[i] = &cards[i]->engine;
                due[i] = cards[i]->wake <= now || joined_is_due(joined, engines[i], now);
                if (due[i]) {
                        read_tenants(cards[i]);
                        engine_advance(engines[i], now);
                }
        }
        joined_plan(joined, engines, n, now);
        for (uint32_t i = 0; i < n; i++) {
                if (!due[i] && !engines[i]->planned)
                        continue;
                if (!due[i]) {
                        read_tenants(cards[i]);
                        engine_advance(engines[i], now);
                }
                finish_step(cards[i], engine_decide(engines[i], now));
        }
        joined->next += joined->next < UINT64_MAX ? 5 * USEC + draw(cards[0], 20 * USEC) : 0;
}

void model_run_cards(Model *const cards[], uint32_t n, Joined *joined, uint64_t until) {
        uint64_t now = cards[0]->now;

        while (now < until) {
                bool due = false;

                now = joined ? max_u64(now, min_u64(joined->next, until)) : until;
                for (uint32_t i = 0; i < 2 * n; i++) /* a begin may end another kernel's wait */
                        now = next_event(cards[i % n], now);
                for (uint32_t i = 0; i < n; i++)
                        go_to(cards[i], now);
                for (uint32_t i = 0; i < n; i++)
                        due |= cards[i]->wake <= now;
                if (joined && (due || joined->next <= now))
                        arbiter_of_cards(cards, n, joined, now);
                for (uint32_t i = 0; i < n && !joined; i++)
                        if (cards[i]->wake <= now)
                                arbiter(cards[i]);
        }
}
