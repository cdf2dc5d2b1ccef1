/* For tests of reads: a fake of upstream.h, and a mirror that only notes what it is given. One test
 * at a time. */
#ifndef VIGIL_MIRROR_READ_FIXTURE_TEST_H
#define VIGIL_MIRROR_READ_FIXTURE_TEST_H

#include "base/memory/budget.h"
#include "base/random.h"
#include "codec/pb/kv.pb.h"
#include "engine/local/mirror/mirror_store.h"
#include "engine/local/state/revision_notice.h"
#include "mirror/directory/directory.h"
#include "mirror/follow/follower.h"
#include "mirror/link/fake_upstream_test.h"
#include "mirror/shard.h"
#include "mirror/shared_calls/grants.h"
#include "mirror/shared_calls/probe.h"
#include "simulated/sim.h"

enum { READS = 1000 };
#define WAIT_NS NS_PER_MS

struct reading {
    struct engine_range range;
    struct pb_range_request request;
    unsigned done;
    int64_t mirrored_at; /* the mirror's revision when it was given the range; 0: it was not */
};

static struct {
    struct sim *sim;
    struct loop *loop;
    struct mirror_shared shared;
    struct mirror_shard shard;
    struct revision_notice notice;
    struct mirror_directory mirror;
    struct engine mirror_engine;
    struct engine_shard mirror_shard;
    struct arena arena;
    struct reading readings[READS];
    int64_t compacted;
    int64_t dropped; /* older revisions are gone when the mirror reads */
    unsigned progress_requests;
    struct slice sent; /* the bytes of the requests that follow */
} f;

/* -- The mirror and the follower -- */

int64_t local_mirror_compact_revision(const struct engine *engine)
{
    assert_ptr_equal(engine, &f.mirror_engine);
    return f.compacted;
}

void follower_request_progress(struct follower *follower)
{
    (void)follower;
    f.progress_requests++;
}

bool local_mirror_range_start(struct engine_shard *shard, struct engine_range *range)
{
    const struct pb_range_request *request = range->op.request;
    struct reading *reading = CONTAINER_OF(range, struct reading, range);
    assert_ptr_equal(shard, &f.mirror_shard);
    assert_ptr_equal(request, &reading->request);
    range->op.shard = shard;
    range->op.revision = atomic_load(&f.shared.state.mirrored);
    range->op.status = ST_OK;
    range->state = NULL;
    if (request->revision > 0 && request->revision < f.dropped)
        return false;
    reading->mirrored_at = range->op.revision;
    range->op.done(&range->op);
    return true;
}

static inline void store_range_close(struct engine_range *range)
{
    (void)range;
}

static const struct engine_ops store_ops = {
    .range_close = store_range_close,
};

static const struct engine_ops ops = {
    .start = {[ENGINE_RANGE] = mirror_range_start, [ENGINE_WATCH_ADMIT] = mirror_watch_admit},
    .give_up = mirror_give_up,
    .range_window = mirror_range_window,
    .range_next = mirror_range_next,
    .range_fill = mirror_range_fill,
    .range_close = mirror_range_close,
};

/* -- The fixture -- */

static inline void on_changed(void *ctx)
{
    (void)ctx;
}

static inline void turn(void)
{
    loop_turn(f.loop, 0);
    mirror_reads_continue(&f.shard);
}

static inline void run_ns(int64_t ns)
{
    sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + ns);
    turn();
}

static inline void mirror_has(int64_t revision)
{
    mirror_state_mirrored(&f.shared.state, revision);
}

static inline void on_mirrored(void *ctx)
{
    mirror_reads_notify(ctx);
}

static inline int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    cluster_begin();
    f.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(f.sim), &f.loop), ST_OK);
    arena_init(&f.arena, NULL, 0, SIZE_MAX);
    f.mirror_engine.ops = &store_ops;
    f.mirror_shard.engine = f.mirror.engine = &f.mirror_engine;
    f.shared.engine.ops = &ops;
    follow_failure_init(&f.shared.state.follow_failure);
    f.shared.mirror = &f.mirror;
    f.shared.notices = &f.notice;
    f.shared.options.mirror.shards_max = 1;
    f.shared.shard_count = 1;
    f.shared.options.read_wait_ns = WAIT_NS;
    f.shared.options.lag_max_revisions = 100;
    f.shared.state.on_mirrored = on_mirrored;
    f.shared.state.ctx = &f.shared;
    atomic_store(&f.shared.state.synced, true);
    atomic_store(&f.shared.state.connected, true);
    mirror_has(10);
    f.shard = (struct mirror_shard){.base.engine = &f.shared.engine,
                                    .shared = &f.shared,
                                    .loop = f.loop,
                                    .store_shard = &f.mirror_shard};
    f.shard.grants = grants_new(
        &(struct grants_options){.loop = f.loop, .state = &f.shared.state, .changed = on_changed});
    f.shard.probe = probe_new(f.loop, NULL, &f.shared.state, SLICE_EMPTY);
    f.shard.reads = mirror_reads_new(&f.shard);
    mirror_waits_init(&f.shard.mirror_waits, f.loop, &f.shared.state, NULL);
    /* Authentication is disabled, unless a test says otherwise. */
    turn();
    call_fail(call_at(0), ST_FUTURE_REV);
    cluster.started = 0;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    assert_int_equal(f.shard.in_progress, 0);
    mirror_waits_fini(&f.shard.mirror_waits);
    mirror_reads_free(f.shard.reads);
    probe_free(f.shard.probe);
    grants_free(f.shard.grants);
    assert_int_equal(cluster.count, 0);
    follow_failure_fini(&f.shared.state.follow_failure);
    arena_fini(&f.arena);
    loop_free(f.loop);
    sim_free(f.sim);
    return 0;
}

static inline void on_done(struct engine_op *op)
{
    struct reading *reading = CONTAINER_OF(op, struct reading, range.op);
    reading->done++;
}

static inline struct reading *reading_at(size_t i)
{
    return &f.readings[i];
}

static inline struct reading *start(size_t i, struct pb_range_request request, const char *token)
{
    struct reading *r = reading_at(i);
    *r = (struct reading){.request = request, .range.sent = f.sent};
    if (!r->request.key.len)
        r->request.key = SLICE_LITERAL("/a/k");
    r->range.op = (struct engine_op){.done = on_done, .arena = &f.arena};
    if (token)
        r->range.op.principal.token = slice_from_text(token);
    else
        r->range.op.principal = ENGINE_SERVER;
    engine_range_start(&f.shard.base, &r->range, &r->request);
    return r;
}

static inline struct reading *serializable(size_t i)
{
    return start(i, (struct pb_range_request){.serializable = true}, "t");
}

static inline struct reading *linearizable(size_t i)
{
    return start(i, (struct pb_range_request){.limit = 1}, "t");
}

static inline void expect_mirror(const struct reading *r, int64_t at)
{
    assert_int_equal(r->done, 1);
    assert_int_equal(r->range.op.status, ST_OK);
    assert_int_equal(r->mirrored_at, at);
}

static inline void expect_failed(const struct reading *r, enum status status, const char *text)
{
    assert_int_equal(r->done, 1);
    assert_int_equal(r->range.op.status, status);
    assert_int_equal(r->mirrored_at, 0);
    assert_true(slice_equal(r->range.op.text, slice_from_text(text)));
}

static inline void answer_kvs(struct upstream_call *call, int64_t revision, size_t count,
                              size_t bytes)
{
    struct pb_response_header header = {.revision = revision};
    struct pb_key_value *kvs = calloc(count, sizeof(*kvs));
    uint8_t *value = calloc(1, bytes);
    for (size_t i = 0; i < count; i++)
        kvs[i] = (struct pb_key_value){.key = SLICE_LITERAL("/a/k"), .value = {value, bytes}};
    call_answer(call, &(struct pb_range_response){.header = &header,
                                                  .kvs = kvs,
                                                  .kvs_count = count,
                                                  .count = (int64_t)count + 7,
                                                  .more = true});
    free(kvs);
    free(value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
