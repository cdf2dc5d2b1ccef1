/*
 * For tests: a client and a cluster of two members on a simulated network, and what the client's
 * callbacks have reported. One file of a program includes this.
 */
#ifndef VIGIL_CLIENT_SIM_SIM_WORLD_TEST_H
#define VIGIL_CLIENT_SIM_SIM_WORLD_TEST_H

#include "client/api/lease_keeper.h"
#include "client/call/call.h"
#include "client/call/queue.h"
#include "client/sim/etcd_sim_test.h"
#include "client/sim/faulty_sim_test.h"
#include "client/watch/watch.h"
#include "client/watch/watch_stream.h"

#include <vigil/vigil.h>

enum { WORLD_CALLS_MAX = 16, WORLD_WATCHES_MAX = 4, WORLD_EVENTS_MAX = 64, WORLD_MEMBERS = 2 };
/* No scenario needs more; one that does is in a busy loop. */
enum { WORLD_TURNS_MAX = 20000 };

struct world_call {
    vigil_call *call;
    unsigned completions;
    int code, outcome;
    unsigned number; /* number of a put; 0: it reads */
};

struct world_event {
    int64_t revision;
    char key[ETCD_TEXT_BYTES];
};

struct world_watch {
    vigil_watch *watch;
    unsigned created, progress, ended, batches;
    int end_code;
    int64_t compact_revision;
    struct world_event events[WORLD_EVENTS_MAX];
    size_t count;
    int answer; /* answer of the callback */
    bool freed;
};

struct world {
    struct sim *sim;
    struct etcd_cluster cluster;
    struct etcd_member members[WORLD_MEMBERS];
    char endpoints[512];
    vigil_options options;
    vigil_client *client;
    struct world_call calls[WORLD_CALLS_MAX];
    size_t call_count;
    struct world_watch watches[WORLD_WATCHES_MAX];
    size_t watch_count;
    size_t buffer_bytes; /* buffer of watches; 0: the default */
    vigil_lease *lease;
    unsigned lost;
    int lost_code;
    vigil_queue *queue; /* if there is one, it receives everything instead of callbacks */
    bool takes;         /* from the queue, after every turn */
    bool freed;         /* the client: no callback follows, except for the completion of calls */
    bool gone;          /* and neither does that */
};

static struct world *world_checked;
static size_t world_stop_at;     /* after this many turns of the client nothing happens any more */
static size_t world_shutdown_at; /* after this many the client is shut down; both: 0 for never */

static inline void world_take(struct world *w);

/* After every turn of the client. */
static inline void world_check(void)
{
    struct vigil_client *client = world_checked->client;
    struct driver_member *member;
    assert_true(faults.turns < WORLD_TURNS_MAX);
    if (!client)
        return;
    if (world_shutdown_at && faults.turns == world_shutdown_at)
        vigil_client_shutdown(client);
    channel_check(client->channel);
    LIST_FOREACH (member, &client->driver.members, in_driver)
        client_call_check(CONTAINER_OF(member, struct vigil_call, operation.member));
    for (struct client_watch_stream *s = client->watch_streams; s; s = client_watch_stream_next(s))
        client_watch_stream_check(s);
    if (client->lease_keeper)
        lease_keeper_check(client->lease_keeper);
    if (world_checked->takes)
        world_take(world_checked);
}

/* -- Life -- */

/* Limits of members and options of the client may be changed before world_start. */
static inline void world_init(struct world *w, const struct sim_options *options)
{
    *w = (struct world){.sim = sim_new(options)};
    world_stop_at = world_shutdown_at = 0;
    etcd_cluster_init(&w->cluster);
    for (size_t i = 0; i < WORLD_MEMBERS; i++)
        etcd_member_init(&w->members[i], &w->cluster);
    vigil_options_init(&w->options);
    w->options.own_thread = 0;
    w->options.call_timeout_ms = 20000;
    (void)faulty_network(sim_network(w->sim));
    faults.check = world_check;
    world_checked = w;
}

/* With one member or with two. False: the client could not be created. */
MUST_CHECK
static inline bool world_start(struct world *w, size_t members)
{
    size_t len = 0;
    for (size_t i = 0; i < members; i++) {
        char address[ADDRESS_TEXT_BYTES];
        etcd_member_start(&w->members[i], sim_network(w->sim));
        address_format(&w->members[i].bound.address, address);
        len += (size_t)snprintf(w->endpoints + len, sizeof(w->endpoints) - len, "%s%s://%s",
                                i ? "," : "", w->members[i].secure ? "https" : "http", address);
    }
    w->options.endpoints = w->endpoints;
    vigil_error error;
    faulty_memory_begin();
    int code = client_new_over(&faults.network, NULL, &w->options, &w->client, &error);
    faulty_memory_end();
    assert_int_equal(code, error.code);
    assert_true(code == VIGIL_OK || code == VIGIL_ERROR_MEMORY);
    return code == VIGIL_OK;
}

static inline int64_t world_now(const struct world *w)
{
    return clock_mono_ns(sim_clock(w->sim));
}

/* One step; false: nothing happens any more. */
static inline bool world_step(struct world *w)
{
    return (!world_stop_at || faults.turns < world_stop_at) && sim_step(w->sim);
}

static inline void world_run(struct world *w, int64_t ns)
{
    int64_t until = world_now(w) + ns;
    if (!world_stop_at)
        sim_run_until(w->sim, until);
    while (world_now(w) < until && world_step(w))
        continue;
}

/* Until the condition holds, or for a minute. */
#define WORLD_RUN_UNTIL(w, condition)                                \
    for (int64_t until_ns_ = world_now(w) + 60 * NS_PER_S;           \
         !(condition) && world_now(w) < until_ns_ && world_step(w);) \
    continue

/* The client is freed first, while its calls and watches still exist; or last. */
static inline void world_free_client(struct world *w)
{
    w->freed = !w->queue; /* which delivers the rest */
    vigil_client_free(w->client);
    w->gone = w->freed;
    w->client = NULL;
    faults.loop = NULL;
}

static inline void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->call_count; i++)
        vigil_call_free(w->calls[i].call);
    for (size_t i = 0; i < w->watch_count; i++)
        vigil_watch_free(w->watches[i].watch);
    vigil_lease_free(w->lease);
    vigil_queue_free(w->queue);
    world_free_client(w);
    for (size_t i = 0; i < WORLD_MEMBERS; i++)
        etcd_member_fini(&w->members[i]);
    assert_true(list_empty(&w->cluster.streams));
    sim_free(w->sim);
}

/* -- Calls -- */

static inline void world_done(vigil_call *call, void *user)
{
    struct world_call *c = user;
    const vigil_error *error = vigil_call_error(call);
    assert_false(world_checked->gone);
    c->completions++;
    c->code = error->code;
    c->outcome = error->outcome;
    if (error->code != VIGIL_OK)
        assert_true(error->text[0] != '\0');
}

static inline struct world_call *world_begin(struct world *w, vigil_call *call, unsigned number)
{
    assert_true(w->call_count < WORLD_CALLS_MAX);
    struct world_call *c = &w->calls[w->call_count++];
    *c = (struct world_call){.call = call, .number = number};
    int code =
        w->queue ? vigil_queue_call(w->queue, call, c) : vigil_call_start(call, world_done, c);
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
        *c = (struct world_call){.call = call,
                                 .completions = 1,
                                 .code = code,
                                 .outcome = VIGIL_NOT_SENT,
                                 .number = number};
    }
    return c;
}

static inline struct world_call *world_get(struct world *w)
{
    faulty_memory_begin();
    vigil_call *call = vigil_get(w->client, vigil_text("k"));
    faulty_memory_end();
    return world_begin(w, call, 0);
}

/* Every put has another number, from 1 on. */
static inline struct world_call *world_put(struct world *w, unsigned number)
{
    char value[16];
    snprintf(value, sizeof(value), "%u", number);
    faulty_memory_begin();
    vigil_call *call = vigil_put(w->client, vigil_text("k"), vigil_text(value), 0);
    faulty_memory_end();
    return world_begin(w, call, number);
}

static inline bool world_completed(const struct world *w)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (!w->calls[i].completions)
            return false;
    return true;
}

/* Each has completed once, and no put was executed twice. */
static inline void world_check_completions(const struct world *w)
{
    for (size_t i = 0; i < w->call_count; i++) {
        assert_int_equal(w->calls[i].completions, 1);
        assert_true(w->cluster.executed[w->calls[i].number] <= 1);
    }
}

/* And what the calls report about the server is true. */
static inline void world_check_calls(const struct world *w)
{
    world_check_completions(w);
    for (size_t i = 0; i < w->call_count; i++) {
        const struct world_call *c = &w->calls[i];
        unsigned executed = w->cluster.executed[c->number];
        if (c->number == 0)
            continue;
        if (c->code == VIGIL_OK)
            assert_int_equal(executed, 1);
        else if (c->outcome != VIGIL_UNKNOWN)
            assert_int_equal(executed, 0);
    }
}

/* -- Watches and leases -- */

static inline int world_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct world_watch *v = user;
    (void)watch;
    assert_false(v->freed || world_checked->freed);
    assert_int_equal(v->ended, 0);
    v->batches++;
    v->created += batch->what == VIGIL_WATCH_CREATED;
    v->progress += batch->what == VIGIL_WATCH_PROGRESS;
    if (batch->what == VIGIL_WATCH_ENDED) {
        v->ended++;
        v->end_code = batch->error->code;
        v->compact_revision = batch->compact_revision;
    }
    for (size_t i = 0; i < batch->event_count; i++) {
        assert_true(v->count < WORLD_EVENTS_MAX);
        const vigil_kv *kv = batch->events[i].kv;
        struct world_event *e = &v->events[v->count++];
        e->revision = kv->mod_revision;
        snprintf(e->key, sizeof(e->key), "%.*s", (int)kv->key.size, (const char *)kv->key.data);
    }
    return v->answer;
}

/* Begins a watch of all keys with the prefix "w". */
static inline struct world_watch *world_watch_from(struct world *w, int64_t revision)
{
    vigil_watch_options options;
    assert_true(w->watch_count < WORLD_WATCHES_MAX);
    struct world_watch *v = &w->watches[w->watch_count++];
    vigil_watch_options_init(&options);
    options.key = vigil_text("w");
    options.prefix = 1;
    options.revision = revision;
    options.created_notify = 1;
    if (w->buffer_bytes)
        options.buffer_bytes = w->buffer_bytes;
    faulty_memory_begin();
    int code = w->queue ? vigil_queue_watch(w->queue, &options, v, &v->watch)
                        : vigil_watch_new(w->client, &options, world_batch, v, &v->watch);
    faulty_memory_end();
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
        v->ended = 1;
        v->end_code = code;
    }
    return v;
}

static inline void world_watch_free(struct world_watch *v)
{
    v->freed = true;
    vigil_watch_free(v->watch);
    v->watch = NULL;
}

/* Puts at the server, not by the client: this many keys in one revision. */
static inline void world_change(struct world *w, const char *key, unsigned keys)
{
    etcd_change(&w->cluster, slice_from_text(key), SLICE_LITERAL("0"), keys);
}

/* How many events the history has for a watch from this revision on. */
static inline size_t world_expected(const struct world *w, int64_t revision)
{
    size_t count = 0;
    for (int64_t r = revision < 2 ? 2 : revision; r <= w->cluster.revision; r++)
        count += w->cluster.history[r].key[0] == 'w' ? w->cluster.history[r].keys : 0;
    return count;
}

/* What was delivered is the beginning of the history from this revision on. */
static inline void world_check_events(const struct world *w, const struct world_watch *v,
                                      int64_t revision)
{
    size_t at = 0;
    for (int64_t r = revision < 2 ? 2 : revision; r <= w->cluster.revision; r++) {
        const struct etcd_revision *change = &w->cluster.history[r];
        for (unsigned i = 0; i < change->keys && change->key[0] == 'w' && at < v->count; i++) {
            char key[ETCD_TEXT_BYTES];
            snprintf(key, sizeof(key), change->keys == 1 ? "%.20s" : "%.20s/%u", change->key, i);
            assert_int_equal(v->events[at].revision, r);
            assert_string_equal(v->events[at].key, key);
            at++;
        }
    }
    assert_int_equal(at, v->count);
    assert_true(v->created <= 1);
}

static inline void world_lost(vigil_lease *lease, const vigil_error *error, void *user)
{
    struct world *w = user;
    (void)lease;
    assert_false(w->freed);
    w->lost++;
    w->lost_code = error->code;
}

static inline void world_keep_lease(struct world *w)
{
    faulty_memory_begin();
    int code = w->queue
                   ? vigil_queue_lease(w->queue, 7, w->cluster.lease_ttl, w, &w->lease)
                   : vigil_lease_keep(w->client, 7, w->cluster.lease_ttl, world_lost, w, &w->lease);
    faulty_memory_end();
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
        w->lost = 1;
        w->lost_code = code;
    }
}

/* -- The queue -- */

/* From now on everything is begun for a queue. Without memory there is none. */
static inline void world_use_queue(struct world *w)
{
    faulty_memory_begin();
    int code = vigil_queue_new(w->client, &w->queue);
    faulty_memory_end();
    assert_true(code == VIGIL_OK || code == VIGIL_ERROR_MEMORY);
}

static inline void world_take_item(const vigil_item *item)
{
    if (item->what == VIGIL_ITEM_CALL)
        world_done(item->call, item->user);
    else if (item->what == VIGIL_ITEM_WATCH)
        (void)world_batch(item->watch, item->batch, item->user);
    else
        world_lost(item->lease, item->error, item->user);
    vigil_item_release(item);
}

/* Everything that is there. */
static inline void world_take(struct world *w)
{
    const vigil_item *item;
    while (w->queue && vigil_queue_take(w->queue, 0, &item) == VIGIL_OK) {
        queue_check(w->queue);
        world_take_item(item);
        queue_check(w->queue);
    }
}

#endif
