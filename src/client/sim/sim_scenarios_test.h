/*
 * For tests: what a client does in a small etcd on a simulated network, what must come of it, and
 * how to run it. One file of a program includes this.
 */
#ifndef VIGIL_CLIENT_SIM_SIM_SCENARIOS_TEST_H
#define VIGIL_CLIENT_SIM_SIM_SCENARIOS_TEST_H

#include "client/sim/sim_world_test.h"

#include <unistd.h>

struct scenario {
    const char *name;
    size_t members;
    bool has_user;
    void (*run)(struct world *w);
    /* Without a fault, or with one that the client survives unnoticed: what must have happened. */
    void (*expect)(const struct world *w);
};

static inline void run_read(struct world *w)
{
    (void)world_get(w);
    WORLD_RUN_UNTIL(w, world_completed(w));
}

/* A put that was sent and not answered is not repeated. */
static inline void expect_calls_succeed(const struct world *w)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (faults.kind == FAULT_NONE || w->calls[i].number == 0)
            assert_int_equal(w->calls[i].code, VIGIL_OK);
}

static inline void run_writes(struct world *w)
{
    for (unsigned i = 1; i <= 3; i++)
        (void)world_put(w, i);
    WORLD_RUN_UNTIL(w, world_completed(w));
    for (unsigned i = 4; i <= 5; i++)
        (void)world_put(w, i);
    WORLD_RUN_UNTIL(w, world_completed(w));
}

static inline bool watches_are_done(const struct world *w)
{
    for (size_t i = 0; i < w->watch_count; i++)
        if (!w->watches[i].ended && w->watches[i].watch &&
            w->watches[i].count < world_expected(w, 1))
            return false;
    return true;
}

/* Events of the past and of the present, and a revision that is sent in fragments. */
static inline void change_and_watch(struct world *w)
{
    static const struct {
        const char *key;
        unsigned keys;
    } changes[] = {{"w1", 1}, {"other", 1}, {"w2", 3}, {"w3", 1}, {"w2", 1}};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        world_run(w, 3 * NS_PER_MS);
        world_change(w, changes[i].key, changes[i].keys);
        if (i == 2 && w->watches[0].watch)
            vigil_watch_request_progress(w->watches[0].watch);
    }
    WORLD_RUN_UNTIL(w, watches_are_done(w));
}

static inline void run_watch(struct world *w)
{
    world_change(w, "w0", 1);
    (void)world_watch_from(w, 1);
    change_and_watch(w);
}

static inline void run_two_watches(struct world *w)
{
    world_change(w, "w0", 2);
    (void)world_watch_from(w, 1);
    (void)world_watch_from(w, 2);
    change_and_watch(w);
}

static inline void expect_all_events(const struct world *w)
{
    for (size_t i = 0; i < w->watch_count; i++) {
        assert_int_equal(w->watches[i].ended, 0);
        assert_int_equal(w->watches[i].count, world_expected(w, 1));
        assert_int_equal(w->watches[i].created, 1);
    }
}

static inline void run_compacted_watch(struct world *w)
{
    for (int i = 0; i < 5; i++)
        world_change(w, "w", 1);
    w->cluster.compacted = 4;
    struct world_watch *v = world_watch_from(w, 2);
    WORLD_RUN_UNTIL(w, v->ended);
}

static inline void expect_compaction(const struct world *w)
{
    assert_int_equal(w->watches[0].ended, 1);
    assert_int_equal(w->watches[0].end_code, VIGIL_ERROR_COMPACTED);
    assert_int_equal(w->watches[0].compact_revision, 4);
}

/* The member restarts while two watches run, and one of them is freed while it resumes. */
static inline void run_cancel_while_resuming(struct world *w)
{
    world_change(w, "w0", 1);
    (void)world_watch_from(w, 1);
    struct world_watch *v = world_watch_from(w, 1);
    WORLD_RUN_UNTIL(w, watches_are_done(w));
    etcd_member_stop(&w->members[0]);
    world_run(w, 40 * NS_PER_MS);
    etcd_member_start(&w->members[0], sim_network(w->sim));
    world_run(w, 20 * NS_PER_MS);
    world_watch_free(v);
    world_change(w, "w1", 1);
    WORLD_RUN_UNTIL(w, watches_are_done(w));
}

static inline void expect_first_watch_resumed(const struct world *w)
{
    assert_int_equal(w->watches[0].ended, 0);
    assert_int_equal(w->watches[0].count, 2);
}

/* Pauses until its buffer is full, so that it is cancelled and created again. */
static inline void run_paused_watch(struct world *w)
{
    w->buffer_bytes = 60;
    struct world_watch *v = world_watch_from(w, 1);
    v->answer = VIGIL_WATCH_PAUSE;
    world_change(w, "w0", 1);
    change_and_watch(w);
    for (int i = 0; i < 20 && !v->ended && v->watch && v->count < world_expected(w, 1); i++) {
        vigil_watch_resume(v->watch);
        world_run(w, 50 * NS_PER_MS);
    }
    v->answer = VIGIL_WATCH_CONTINUE;
    if (v->watch)
        vigil_watch_resume(v->watch);
    WORLD_RUN_UNTIL(w, watches_are_done(w));
}

static inline void run_lease(struct world *w)
{
    world_keep_lease(w);
    world_run(w, 5 * NS_PER_S);
    w->cluster.lease_lives = w->lost > 0; /* revoked at the server */
    WORLD_RUN_UNTIL(w, w->lost);
}

static inline void expect_lease_was_kept(const struct world *w)
{
    assert_true(w->cluster.renewals >= 4);
    assert_int_equal(w->lost, 1);
    assert_int_equal(w->lost_code, VIGIL_ERROR_LEASE_NOT_FOUND);
}

/* The token is replaced between calls, and while a watch runs. */
static inline void run_token(struct world *w)
{
    (void)world_get(w);
    (void)world_watch_from(w, 1);
    world_change(w, "w0", 1);
    WORLD_RUN_UNTIL(w, world_completed(w) && watches_are_done(w));
    w->cluster.token++;
    (void)world_get(w);
    (void)world_put(w, 1);
    WORLD_RUN_UNTIL(w, world_completed(w));
    change_and_watch(w);
}

static inline void expect_renewed_token(const struct world *w)
{
    assert_true(w->cluster.authentications >= 2);
    expect_calls_succeed(w);
    expect_all_events(w);
}

/* One member after the other is down. */
static inline void run_failover(struct world *w)
{
    (void)world_watch_from(w, 1);
    world_change(w, "w0", 1);
    WORLD_RUN_UNTIL(w, watches_are_done(w));
    for (unsigned i = 0; i < WORLD_MEMBERS; i++) {
        etcd_member_stop(&w->members[i]);
        (void)world_get(w);
        world_change(w, "w1", 1);
        WORLD_RUN_UNTIL(w, world_completed(w) && watches_are_done(w));
        (void)world_put(w, i + 1);
        WORLD_RUN_UNTIL(w, world_completed(w));
        etcd_member_start(&w->members[i], sim_network(w->sim));
    }
}

static inline void expect_failover(const struct world *w)
{
    expect_calls_succeed(w);
    expect_all_events(w);
}

/* Two watches, calls and a lease deliver through a queue, from which nothing is taken at first: the
 * watches are cancelled at the server and created again. */
static inline void run_queue(struct world *w)
{
    world_use_queue(w);
    w->buffer_bytes = 200; /* a few events */
    world_change(w, "w0", 1);
    (void)world_watch_from(w, 1);
    (void)world_watch_from(w, 2);
    (void)world_put(w, 1);
    (void)world_get(w);
    world_keep_lease(w);
    for (int i = 0; i < 6; i++) {
        world_run(w, 3 * NS_PER_MS);
        world_change(w, "w1", 1 + (unsigned)i % 2);
    }
    world_run(w, 5 * NS_PER_S);
    assert_true(faults.kind != FAULT_NONE || !w->queue || w->watches[0].count == 0);
    w->takes = true;
    world_take(w);
    WORLD_RUN_UNTIL(w, world_completed(w) && watches_are_done(w));
    w->cluster.lease_lives = w->lost > 0; /* revoked at the server */
    WORLD_RUN_UNTIL(w, w->lost);
}

static inline void expect_queue(const struct world *w)
{
    vigil_client_stats stats;
    vigil_client_get_stats(w->client, &stats, sizeof(stats));
    assert_true(faults.kind != FAULT_NONE || stats.watch_resumes >= 2);
    assert_int_equal(stats.queued_bytes, 0);
    expect_calls_succeed(w);
    expect_all_events(w);
    assert_int_equal(w->lost, 1);
}

static const struct scenario scenarios[] = {
    {"read", 1, false, run_read, expect_calls_succeed},
    {"writes", 1, false, run_writes, expect_calls_succeed},
    {"watch", 1, false, run_watch, expect_all_events},
    {"two watches", 1, false, run_two_watches, expect_all_events},
    {"compacted watch", 1, false, run_compacted_watch, expect_compaction},
    {"cancel while resuming", 1, false, run_cancel_while_resuming, expect_first_watch_resumed},
    {"paused watch", 1, false, run_paused_watch, expect_all_events},
    {"queue", 1, false, run_queue, expect_queue},
    {"lease", 1, false, run_lease, expect_lease_was_kept},
    {"token", 1, true, run_token, expect_renewed_token},
    {"failover", WORLD_MEMBERS, false, run_failover, expect_failover},
};

/* -- Running them -- */

static char context[128]; /* printed if a test fails */

static inline void print_context(int signal)
{
    (void)signal;
    (void)!write(2, context, strlen(context));
}

static inline int teardown(void **state)
{
    (void)state;
    if (*context)
        print_context(0);
    return 0;
}

/* given may be NULL. */
static inline void start(struct world *w, const struct scenario *s, enum fault_kind kind, size_t at,
                         const struct sim_options *given)
{
    struct sim_options options = given ? *given : SIM_OPTIONS_DEFAULT;
    snprintf(context, sizeof(context), "in the scenario \"%s\" with fault %d at %zu\n", s->name,
             (int)kind, at);
    options.seed += (uint64_t)(s - scenarios);
    world_init(w, &options);
    if (s->has_user) {
        w->cluster.token = 1;
        w->options.user = "user";
        w->options.password = "password";
    }
    faults.kind = kind;
    faults.at = at;
    faulty_memory_at = 0;
}

static inline void check_truth(const struct world *w)
{
    for (size_t i = 0; i < w->watch_count; i++) {
        world_check_events(w, &w->watches[i], 1);
        assert_true(w->watches[i].ended || !w->watches[i].watch ||
                    w->watches[i].count == world_expected(w, 1));
    }
}

/* The client and its connection work, whatever has happened. */
static inline void probe(struct world *w)
{
    faults.kind = FAULT_NONE;
    faults.turns = 0;
    faulty_memory_at = 0;
    struct world_call *c = world_get(w);
    WORLD_RUN_UNTIL(w, c->completions);
    assert_int_equal(c->completions, 1);
    assert_int_equal(c->code, VIGIL_OK);
}

#endif
