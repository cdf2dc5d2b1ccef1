/* The local engine with its real threads, one shard and a loop, for tests that run one at a time.
 * Tests may add shards. */
#ifndef VIGIL_ENGINE_LOCAL_FIXTURE_TEST_H
#define VIGIL_ENGINE_LOCAL_FIXTURE_TEST_H

#include "base/clock.h"
#include "base/temp_dir_test.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    char dir[TEMP_DIR_BYTES];
    struct loop *loop;
    struct engine *engine;
    struct engine_shard *shard;
    struct arena arena; /* memory of all operations */
    int waiting;        /* operations started and not done */
};

static struct fixture *fixture; /* operations find it through this */

/* The fixture sets data_dir. */
static inline void fixture_open(struct fixture *f, struct engine_local_options options)
{
    struct error error = {0};
    options.data_dir = f->dir;
    options.checks_at_close = true;
    options.shards_max += !options.shards_max;
    if (engine_local_open(&options, &f->engine, &error) != ST_OK)
        fail_msg("%s", error.text);
    assert_int_equal(engine_shard_new(f->engine, f->loop, &f->shard), ST_OK);
}

static inline void fixture_close(struct fixture *f)
{
    engine_shard_free(f->shard);
    engine_local_close(f->engine);
}

/* Its directory exists. */
static inline struct fixture *fixture_new_in(const char *dir, struct engine_local_options options)
{
    struct fixture *f = fixture = calloc(1, sizeof(*f));
    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "%s", dir);
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    arena_init(&f->arena, NULL, 0, SIZE_MAX);
    fixture_open(f, options);
    return f;
}

static inline struct fixture *fixture_new(struct engine_local_options options)
{
    char dir[TEMP_DIR_BYTES];
    temp_dir_make("engine", dir);
    return fixture_new_in(dir, options);
}

/* In memory if possible, for tests that do not test the disk. */
static inline struct fixture *fixture_new_fast(struct engine_local_options options)
{
    char dir[TEMP_DIR_BYTES];
    temp_dir_make_fast("engine", dir);
    return fixture_new_in(dir, options);
}

static inline int fixture_free(void **state)
{
    struct fixture *f = *state;
    fixture_close(f);
    loop_free(f->loop);
    arena_fini(&f->arena);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static inline void count_done(struct engine_op *op)
{
    (void)op;
    fixture->waiting--;
}

static inline struct engine_op new_op(struct fixture *f)
{
    f->waiting++;
    return (struct engine_op){.done = count_done, .arena = &f->arena};
}

static inline void turn_shard(struct engine_shard *shard, struct loop *loop, int64_t wait_ns)
{
    loop_turn(loop, wait_ns);
    engine_shard_turn_begin(shard);
    engine_shard_turn_end(shard);
    engine_shard_flushed(shard);
}

/* Submits the turn's writes and runs turns until at most this many operations are in progress. */
static inline void wait_for(struct fixture *f, int left)
{
    engine_shard_turn_end(f->shard);
    while (f->waiting > left)
        turn_shard(f->shard, f->loop, 10 * NS_PER_S);
}

/* Returns its revision. */
static inline int64_t put_text(struct fixture *f, const char *key, const char *value)
{
    struct pb_put_request request = {.key = slice_from_text(key), .value = slice_from_text(value)};
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    wait_for(f, 0);
    assert_int_equal(write.op.status, ST_OK);
    engine_write_close(&write);
    return write.op.revision;
}

#endif
