/*
 * For tests: a mirror over a real local engine, a kube-apiserver on a simulated network
 * (api_sim_test.h), and a reader on a loop of its own. One file of a program includes this.
 *
 * The engine has threads. After each turn of the follower the test waits until the engine has
 * applied everything that it was given. The linker redirects local_mirror_apply, local_mirror_retry
 * and local_mirror_revision to this file (src/tier/layer.cmake).
 */
#ifndef VIGIL_TIER_MIRROR_WORLD_SIM_TEST_H
#define VIGIL_TIER_MIRROR_WORLD_SIM_TEST_H

#include "engine/local/mirror/fixture_test.h"
#include "tier/mirror/api_sim_test.h"
#include "tier/mirror/mirror_private.h"
#include "tier/mirror/store_queue.h"
#include "watch/cursor.h"

#include <pthread.h>
#include <sched.h>

static struct kube_world world;
static struct api api;

static struct tier_world {
    struct fixture *f;
    struct loop *io;
    struct tier_reader *reader;
    struct tier_mirror *mirror;
    struct tier_mirror_options options;
    struct tier_collection *collection; /* v1 pods */
    char log[4096];
} tier;

/* -- The store -- */

enum { GIVEN_MAX = 16 };

static struct store_sim {
    pthread_mutex_t mutex;
    struct {
        struct mirror_batch *batch;
        void (*done)(struct mirror_batch *batch, enum status status);
    } given[GIVEN_MAX];
    _Atomic unsigned in_flight;
    /* Every batch is refused. All that follow a refused one are, too, until local_mirror_retry. */
    enum status refuses;
    bool has_failed;
    size_t refuses_after; /* so many revisions of the first one are applied */
    struct mirror_batch *partly;
    size_t partly_count;
    int64_t partly_reach;
    bool holds; /* batches are neither applied nor refused */
    struct mirror_batch *held[GIVEN_MAX];
    unsigned held_count;
    unsigned batches;
    _Atomic unsigned lands_after; /* so many looks at its revision it applies what it holds */
} store_sim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void __real_local_mirror_apply(struct engine *engine, struct mirror_batch *batch);
void __wrap_local_mirror_apply(struct engine *engine, struct mirror_batch *batch);
void __real_local_mirror_retry(struct engine *engine);
void __wrap_local_mirror_retry(struct engine *engine);
int64_t __real_local_mirror_revision(const struct engine *engine);
int64_t __wrap_local_mirror_revision(const struct engine *engine);

static inline void store_sim_done(struct mirror_batch *batch, enum status status)
{
    void (*done)(struct mirror_batch *, enum status) = NULL;
    pthread_mutex_lock(&store_sim.mutex);
    for (unsigned i = 0; i < GIVEN_MAX; i++) {
        if (store_sim.given[i].batch != batch)
            continue;
        done = store_sim.given[i].done;
        store_sim.given[i].batch = NULL;
        break;
    }
    if (store_sim.partly == batch) {
        batch->count = store_sim.partly_count;
        batch->reach = store_sim.partly_reach;
        store_sim.partly = NULL;
        status = ST_DISK_FULL;
    }
    pthread_mutex_unlock(&store_sim.mutex);
    assert(done);
    batch->done = done;
    done(batch, status);
    atomic_fetch_sub(&store_sim.in_flight, 1);
}

/* The beginning of the batch may still be applied. */
static inline bool store_sim_takes_some(struct mirror_batch *batch)
{
    pthread_mutex_lock(&store_sim.mutex);
    bool takes =
        store_sim.refuses_after && batch->count > store_sim.refuses_after && !store_sim.has_failed;
    store_sim.has_failed = true;
    if (takes) {
        store_sim.partly = batch;
        store_sim.partly_count = batch->count;
        store_sim.partly_reach = batch->reach;
        batch->count = store_sim.refuses_after;
        batch->reach = batch->revisions[batch->count - 1].revision;
    }
    pthread_mutex_unlock(&store_sim.mutex);
    return takes;
}

static inline void store_sim_forward(struct mirror_batch *batch)
{
    bool refuses = store_sim.refuses != ST_OK || store_sim.has_failed;
    if (!refuses || store_sim_takes_some(batch)) {
        __real_local_mirror_apply(tier.f->engine, batch);
    } else {
        batch->applied = 0;
        store_sim_done(batch, ST_DISK_FULL);
    }
}

void __wrap_local_mirror_apply(struct engine *engine, struct mirror_batch *batch)
{
    unsigned i = 0;
    (void)engine;
    store_sim.batches++;
    pthread_mutex_lock(&store_sim.mutex);
    while (store_sim.given[i].batch)
        assert_true(++i < GIVEN_MAX);
    store_sim.given[i].batch = batch;
    store_sim.given[i].done = batch->done;
    pthread_mutex_unlock(&store_sim.mutex);
    batch->done = store_sim_done;
    atomic_fetch_add(&store_sim.in_flight, 1);
    if (store_sim.holds)
        store_sim.held[store_sim.held_count++] = batch;
    else
        store_sim_forward(batch);
}

void __wrap_local_mirror_retry(struct engine *engine)
{
    store_sim.has_failed = false;
    __real_local_mirror_retry(engine);
}

static inline void store_sim_release(void)
{
    unsigned count = store_sim.held_count;
    store_sim.holds = false;
    store_sim.held_count = 0;
    for (unsigned i = 0; i < count; i++)
        store_sim_forward(store_sim.held[i]);
}

/* The others are still held. */
static inline void store_sim_release_first(void)
{
    assert_true(store_sim.held_count > 0);
    struct mirror_batch *first = store_sim.held[0];
    memmove(store_sim.held, store_sim.held + 1, --store_sim.held_count * sizeof(first));
    store_sim_forward(first);
}

static inline void store_settle(void)
{
    while (atomic_load(&store_sim.in_flight) > store_sim.held_count)
        sched_yield();
}

/* The store may apply something between any two looks at its revision. */
int64_t __wrap_local_mirror_revision(const struct engine *engine)
{
    int64_t revision = __real_local_mirror_revision(engine);
    if (store_sim.lands_after && --store_sim.lands_after == 0) {
        store_sim_release();
        store_settle();
    }
    return revision;
}

/* -- The world -- */

static inline void tier_log(void *ctx, int level, const char *text)
{
    size_t len = strlen(tier.log);
    (void)ctx;
    snprintf(tier.log + len, sizeof(tier.log) - len, "%d %s\n", level, text);
    if (getenv("TIER_LOG"))
        fprintf(stderr, "%.3f %s\n", (double)kube_world_now(&world) / 1e9, text);
}

static inline struct tier_follow *tier_follow(void)
{
    return (struct tier_follow *)tier.collection;
}

/* After every turn of the follower. */
static inline void tier_check(struct kube_world *w)
{
    struct tier_follow *follow;
    (void)w;
    size_t at = memory_fail_at;
    memory_fail_at = 0;
    store_settle();
    if (tier.mirror && !tier.mirror->ended) {
        uint64_t held = 0;
        store_queue_check(tier.mirror->follower.queue);
        LIST_FOREACH (follow, &tier.mirror->all, in_mirror) {
            tier_follow_check(follow);
            held += generations_usage(&follow->generations);
        }
        assert_int_equal(held, tier.mirror->follower.sweeper.usage.held);
    }
    memory_fail_at = at;
}

static inline struct tier_name tier_pods(enum tier_encoding encoding)
{
    return (struct tier_name){
        .version = SLICE_LITERAL("v1"), .resource = SLICE_LITERAL("pods"), .encoding = encoding};
}

/* Options and what the server does may be set before tier_start. */
static inline void tier_begin(const struct sim_options *options)
{
    kube_world_init(&world, SIM_HTTP2, options);
    api_init(&api, &world, options ? options->seed : 1);
    tier = (struct tier_world){0};
    store_sim.refuses = ST_OK;
    store_sim.refuses_after = 0;
    store_sim.has_failed = false;
    store_sim.holds = false;
    store_sim.lands_after = 0;
    tier.f = fixture_new_fast((struct engine_local_options){.is_mirror = true});
    tier.options = (struct tier_mirror_options){.engine = tier.f->engine,
                                                .network = &faults.network,
                                                .client = &world.options,
                                                .log = tier_log};
    assert_int_equal(network_loop_new(sim_network(world.sim), &tier.io), ST_OK);
    for (int name = 0; name < 5; name++)
        api_put(&api, name);
}

/* False: there was no memory. */
static inline bool tier_connect(void)
{
    struct error error;
    faulty_memory_begin();
    enum status status = tier_mirror_new(&tier.options, &tier.mirror, &error);
    faulty_memory_end();
    if (status != ST_OK)
        return false;
    world.kube = tier.mirror->kube; /* for its checks */
    world.check = tier_check;
    tier.reader = tier_reader_new(tier.mirror, tier.io);
    return true;
}

static inline void tier_start(void)
{
    kube_server_start(&world.server);
    kube_server_url(&world.server, world.url, sizeof(world.url));
    world.options.server = world.url;
    assert_true(tier_connect());
}

static inline void tier_open(void)
{
    struct tier_name name = tier_pods(TIER_JSON);
    tier.collection = tier_mirror_open(tier.mirror, &name);
    assert_non_null(tier.collection);
}

static inline void tier_end(void)
{
    store_sim_release();
    tier_collection_close(TAKE(tier.collection));
    tier_reader_free(tier.reader);
    world.kube = NULL;
    tier_mirror_free(tier.mirror);
    faults.loop = NULL;
    void *fixture_state = tier.f;
    fixture_free(&fixture_state);
    loop_free(tier.io);
    kube_world_fini(&world);
}

static inline void tier_run(int64_t ns)
{
    kube_world_run(&world, ns);
}

#define TIER_RUN_UNTIL(condition) KUBE_WORLD_RUN_UNTIL(&world, condition)

static inline struct tier_view tier_view(void)
{
    struct tier_view view;
    tier_collection_look(tier.collection, &view);
    return view;
}

static inline bool tier_serves(void)
{
    return tier_view().phase == TIER_SERVING;
}

/* A whole start. */
static inline void tier_serve(void)
{
    tier_begin(NULL);
    tier_start();
    tier_open();
    TIER_RUN_UNTIL(tier_serves());
    assert_true(tier_serves());
}

/* -- What the store has -- */

static inline int tier_name_of(struct slice key)
{
    const uint8_t *slash = memchr(key.ptr, '/', key.len);
    assert_non_null(slash);
    return (int)strtol((const char *)slash + 1, NULL, 10);
}

static inline void tier_read_kv(struct slice field, struct pb_key_value *ret_kv, char name[32])
{
    struct arena arena;
    struct pb_range_response r;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(pb_decode(&pb_range_response_table, field, &arena, &r), ST_OK);
    assert_int_equal(r.kvs_count, 1);
    *ret_kv = r.kvs[0];
    struct slice key =
        slice_sub(ret_kv->key, TIER_PREFIX_BYTES, ret_kv->key.len - TIER_PREFIX_BYTES);
    snprintf(name, 32, "%.*s", SLICE_ARGS(key));
    arena_fini(&arena); /* texts refer to the field */
}

struct tier_state {
    enum status status;
    int64_t revision;
    int objects[API_NAMES]; /* versions; 0: it does not exist */
};

static inline void tier_end_of(uint8_t prefix[TIER_PREFIX_BYTES])
{
    for (size_t i = TIER_PREFIX_BYTES; i-- > 0;)
        if (++prefix[i])
            break;
}

/* revision 0: the newest. */
static inline struct tier_state tier_read(const uint8_t prefix[TIER_PREFIX_BYTES], int64_t revision)
{
    struct tier_state state = {0};
    uint8_t end[TIER_PREFIX_BYTES];
    struct slice field;
    memcpy(end, prefix, sizeof(end));
    tier_end_of(end);
    struct pb_range_request request = {.key = slice_of(prefix, TIER_PREFIX_BYTES),
                                       .range_end = slice_of(end, sizeof(end)),
                                       .revision = revision};
    struct engine_range range = {.op = new_op(tier.f)};
    engine_range_start(tier.f->shard, &range, &request);
    wait_for(tier.f, 0);
    state.status = range.op.status;
    state.revision = revision ? revision : range.op.revision;
    while (state.status == ST_OK && engine_range_next(&range, &field)) {
        struct pb_key_value kv;
        char name[32], expected[32];
        tier_read_kv(field, &kv, name);
        int number = (int)strtol(strchr(name, '/') + 1, NULL, 10);
        assert_string_equal(name, api_key(number, expected));
        state.objects[number] = (int)kv.version;
        /* The bytes are those of this version, with their kind. */
        char text[128];
        snprintf(text, sizeof(text),
                 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%d\"", number);
        assert_true(slice_has_prefix(kv.value, slice_from_text(text)));
        snprintf(text, sizeof(text), "\"resourceVersion\":\"%d\"", (int)kv.version);
        assert_non_null(memmem(kv.value.ptr, kv.value.len, text, strlen(text)));
    }
    engine_range_close(&range);
    return state;
}

static inline struct tier_state tier_read_view(const struct tier_view *view, int64_t revision)
{
    return tier_read(view->prefix, revision);
}

static inline bool tier_is_state(const struct tier_state *state, const struct api_history *h,
                                 int version)
{
    for (int name = 0; name < API_NAMES; name++)
        if (state->objects[name] != api_object(h, name, version))
            return false;
    return true;
}

/* What readers see now is the server's state at the version that it says it is. */
static inline void tier_check_state(const struct api_history *h)
{
    struct tier_view view = tier_view();
    uint64_t version;
    assert_true(view.generation);
    struct tier_state state = tier_read_view(&view, 0);
    assert_int_equal(state.status, ST_OK);
    assert_true(
        tier_collection_version(tier.collection, view.generation, state.revision, &version));
    assert_true(tier_is_state(&state, h, (int)version));
}

/* It has everything that the server has. */
static inline bool tier_is_complete(void)
{
    struct tier_view view = tier_view();
    if (!view.generation)
        return false;
    struct tier_state state = tier_read_view(&view, 0);
    return tier_is_state(&state, api_history(&api), api_version(&api));
}

/* It has everything that the server has; otherwise everything that may explain it. */
static inline void tier_assert_complete(void)
{
    if (tier_is_complete())
        return;
    struct tier_view view = tier_view();
    struct tier_state state = tier_read_view(&view, 0);
    const struct tier_follow *f = tier_follow();
    fail_msg(
        "not complete at %.1f s: generation %d, phase %d, version %d of %d, read with status %d "
        "at revision %d of %d; reflector in state %d, then %d, after %u failures; store has "
        "status %d and %u batches in flight; %s\n%s",
        (double)kube_world_now(&world) / 1e9, (int)view.generation, view.phase, (int)view.newest,
        api_version(&api), state.status, (int)state.revision,
        (int)store_queue_revision(tier.mirror->follower.queue), f->reflector.state,
        f->reflector.again, f->reflector.failures, store_queue_failure(tier.mirror->follower.queue),
        atomic_load(&store_sim.in_flight), view.reason, tier.log);
}

/* -- What a watch shows -- */

static inline void tier_ignore_wake(void *ctx)
{
    (void)ctx;
}

/* Compares the changes after a version with the server's. Returns their number; -1: the history is
 * gone. */
static inline int tier_check_watch(const struct api_history *h, uint64_t from)
{
    struct tier_view view = tier_view();
    uint8_t end[TIER_PREFIX_BYTES];
    int64_t begin, revision;
    int count = 0, last = (int)from;
    const struct watch_event *event;
    enum status status;
    assert_true(tier_collection_revision(tier.collection, view.generation, from, &begin));
    memcpy(end, view.prefix, sizeof(end));
    tier_end_of(end);
    turn_shard(tier.f->shard, tier.f->loop, 0);
    struct watch_cursor_options options = {.key = slice_of(view.prefix, TIER_PREFIX_BYTES),
                                           .range_end = slice_of(end, sizeof(end)),
                                           .from = begin + 1,
                                           .own = true,
                                           .wake = tier_ignore_wake};
    struct watch_cursor *cursor = watch_cursor_new(engine_watch_hub(tier.f->shard), &options);
    assert_non_null(cursor);
    for (;;) {
        status = watch_cursor_next(cursor, &event, &revision);
        if (status == ST_AGAIN) {
            turn_shard(tier.f->shard, tier.f->loop, NS_PER_MS);
            continue;
        }
        if (status != ST_OK)
            break;
        uint64_t version;
        struct pb_key_value kv = {0};
        char name[32];
        assert_true(tier_collection_change(tier.collection, view.generation, revision, &version));
        struct slice key =
            slice_sub(event->key, TIER_PREFIX_BYTES, event->key.len - TIER_PREFIX_BYTES);
        if (!event->tombstone) {
            tier_read_kv(event->field, &kv, name);
            assert_int_equal(kv.version, version);
        }
        /* Nothing of this resource is between the last change and this one. */
        for (last++; last < (int)version; last++)
            assert_int_equal(h->changes[last].name, -1);
        assert_int_equal(last, version);
        const struct api_change *change = &h->changes[version];
        assert_int_equal(change->name, tier_name_of(key));
        assert_int_equal(change->deletes, event->tombstone);
        assert_int_equal(change->creates, event->created);
        count++;
        watch_cursor_take(cursor);
    }
    watch_cursor_free(cursor);
    if (status == ST_COMPACTED)
        return -1;
    assert_int_equal(status, ST_END);
    /* And nothing is missing at the end. */
    for (last++; last <= (int)view.newest; last++)
        assert_int_equal(h->changes[last].name, -1);
    return count;
}

/* -- Waits -- */

struct tier_test_wait {
    struct tier_wait wait; /* first */
    bool done;
    enum status status;
    int began_at; /* the server's version */
    int history;
};

static inline void tier_wait_done(struct tier_wait *wait, enum status status)
{
    struct tier_test_wait *w = (struct tier_test_wait *)wait;
    assert_false(w->done);
    w->done = true;
    w->status = status;
}

static inline void tier_wait_begin(struct tier_test_wait *w, enum tier_wait_kind kind, int version,
                                   int64_t timeout_ns)
{
    *w = (struct tier_test_wait){
        .wait = {.done = tier_wait_done,
                 .kind = kind,
                 .version = (uint64_t)version,
                 .timeout_ns = timeout_ns},
        .began_at = api_version(&api),
        .history = api.history,
    };
    /* Its loop may have slept. */
    loop_turn(tier.io, 0);
    tier_wait_start(tier.reader, &w->wait, tier.collection);
    assert_false(w->done);
}

/* A current read after the wait has everything that was written before it began. */
static inline void tier_check_current(const struct tier_test_wait *w)
{
    struct tier_view view = tier_view();
    uint64_t version;
    const struct api_history *h = &api.histories[w->history];
    int64_t revision =
        w->wait.revision > tier.mirror->compacted ? w->wait.revision : tier.mirror->compacted;
    struct tier_state state = tier_read_view(&view, revision);
    assert_int_equal(state.status, ST_OK);
    assert_true(tier_collection_version(tier.collection, view.generation, revision, &version));
    if ((int)version >= w->began_at) {
        assert_true(tier_is_state(&state, api_history(&api), (int)version));
        return;
    }
    /* The changes that were not delivered cancel each other out: it is also a later state. */
    int later = w->began_at;
    while (!tier_is_state(&state, h, later))
        assert_true(++later <= h->version);
}

#endif
