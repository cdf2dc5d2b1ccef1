#include "fake/fake.h"

#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WRITES = 50 };

struct fixture {
    struct engine *engine;
    struct engine_shard *shard;
    struct arena arena;
};

static void fixture_init(struct fixture *f, unsigned inline_percent)
{
    f->engine = fake_new(&(struct fake_options){.seed = 3, .inline_percent = inline_percent});
    assert_int_equal(engine_shard_new(f->engine, NULL, &f->shard), ST_OK);
    arena_init(&f->arena, NULL, 0, 1 << 20);
}

static void fixture_fini(struct fixture *f)
{
    arena_fini(&f->arena);
    engine_shard_free(f->shard);
    fake_free(f->engine);
}

static unsigned done_count;

static void count_done(struct engine_op *op)
{
    (void)op;
    done_count++;
}

static void inline_engine_completes_before_start_returns(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100);
    done_count = 0;
    struct engine_write write = {.op = {.done = count_done, .arena = &f.arena}};
    engine_put(f.shard, &write, &(struct pb_put_request){.key = SLICE_LITERAL("a")});
    assert_int_equal(done_count, 1);
    assert_int_equal(write.op.status, ST_OK);
    assert_int_equal(write.op.revision, 2);
    assert_int_equal(fake_open(f.engine), 1);
    engine_write_close(&write);
    assert_int_equal(fake_open(f.engine), 0);
    fixture_fini(&f);
}

static int64_t order[WRITES];

static void note_order(struct engine_op *op)
{
    order[done_count++] = (int64_t)(op->principal.user.len);
}

static void waiting_writes_complete_in_another_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0);
    done_count = 0;
    struct engine_write writes[WRITES];
    struct pb_put_request request = {.key = SLICE_LITERAL("a")};
    for (size_t i = 0; i < WRITES; i++) {
        writes[i] = (struct engine_write){
            .op = {.done = note_order, .arena = &f.arena, .principal = {.user = {NULL, i}}}};
        engine_put(f.shard, &writes[i], &request);
    }
    assert_int_equal(done_count, 0);
    assert_int_equal(fake_waiting(f.engine), WRITES);
    while (fake_step(f.engine))
        ;
    assert_int_equal(done_count, WRITES);
    bool reordered = false;
    for (size_t i = 0; i < WRITES; i++) {
        reordered |= order[i] != (int64_t)i;
        engine_write_close(&writes[i]);
    }
    assert_true(reordered);
    fixture_fini(&f);
}

static void windows_and_fills_give_every_byte_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100);
    for (uint8_t i = 0; i < 25; i++) {
        uint8_t key = (uint8_t)('a' + i);
        struct engine_write write = {.op = {.done = count_done, .arena = &f.arena}};
        engine_put(f.shard, &write,
                   &(struct pb_put_request){.key = slice_of(&key, 1), .value = slice_of(&key, 1)});
        engine_write_close(&write);
    }
    struct engine_range range = {.op = {.done = count_done, .arena = &f.arena}};
    struct pb_range_request request = {.key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("\0")};
    engine_range_start(f.shard, &range, &request);
    assert_int_equal(range.op.status, ST_OK);
    assert_int_equal(range.kvs, 25);

    uint8_t bytes[1024];
    size_t at = 0;
    int64_t keys = 1;
    for (uint64_t left; keys;) {
        engine_range_window(&range, 10, &keys, &left);
        for (; left; left -= 1)
            at += engine_range_fill(&range, bytes + at, 1);
        assert_int_equal(engine_range_fill(&range, bytes + at, 1), 0);
    }
    assert_int_equal(at, range.kvs_bytes);
    struct pb_range_response response;
    assert_int_equal(pb_decode(&pb_range_response_table, slice_of(bytes, at), &f.arena, &response),
                     ST_OK);
    assert_int_equal(response.kvs_count, 25);
    assert_true(slice_equal(response.kvs[24].key, SLICE_LITERAL("y")));
    engine_range_close(&range);
    engine_range_close(&range);
    fixture_fini(&f);
}

static void an_injected_failure_happens_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100);
    fake_fail_next(f.engine, ST_NO_SPACE, SLICE_LITERAL("upstream said"));
    struct engine_write write = {.op = {.done = count_done, .arena = &f.arena}};
    struct pb_put_request request = {.key = SLICE_LITERAL("a")};
    engine_put(f.shard, &write, &request);
    assert_int_equal(write.op.status, ST_NO_SPACE);
    assert_true(slice_equal(write.op.text, SLICE_LITERAL("upstream said")));
    engine_put(f.shard, &write, &request);
    assert_int_equal(write.op.status, ST_OK);
    engine_write_close(&write);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_engine_completes_before_start_returns),
        cmocka_unit_test(waiting_writes_complete_in_another_order),
        cmocka_unit_test(windows_and_fills_give_every_byte_once),
        cmocka_unit_test(an_injected_failure_happens_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
