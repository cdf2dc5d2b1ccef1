/* Hashes of the history during other work of the keeper: limits and canceled requests. */
#include "base/metric/page.h"
#include "engine/engine.h"
#include "engine/local/state/messages.h"

#include "engine/local/fixture_test.h"

enum { PUTS = 30000, KEYS = 500, IN_FLIGHT = 500 };
static const struct engine_local_options OPTIONS = {
    .segment_bytes_first = 1 << 20,
    .segment_bytes_max = 4 << 20,
    .checkpoint_bytes = 128 << 10,
};

/* Enough that a hash takes many slices. */
static int setup(void **state)
{
    struct fixture *f = fixture_new(OPTIONS);
    *state = f;
    static struct {
        char key[32];
        struct pb_put_request request;
        struct engine_write write;
    } puts[IN_FLIGHT];
    static const uint8_t value[200];
    for (int i = 0; i < PUTS; i++) {
        int at = i % IN_FLIGHT;
        snprintf(puts[at].key, sizeof(puts[at].key), "hash/%03d", i * 7 % KEYS);
        puts[at].request = (struct pb_put_request){.key = slice_from_text(puts[at].key),
                                                   .value = slice_of(value, sizeof(value))};
        puts[at].write = (struct engine_write){.op = new_op(f)};
        engine_put(f->shard, &puts[at].write, &puts[at].request);
        if (at == IN_FLIGHT - 1)
            wait_for(f, 0);
    }
    return 0;
}

static void start(struct fixture *f, struct engine_hash *hash)
{
    *hash = (struct engine_hash){.op = new_op(f)};
    engine_hash_kv(f->shard, hash);
}

static void waiting_hashes_are_limited(void **state)
{
    struct fixture *f = *state;
    struct engine_hash hashes[LOCAL_HASHES_MAX], more;
    for (int i = 0; i < LOCAL_HASHES_MAX; i++)
        start(f, &hashes[i]);
    start(f, &more); /* refused at once: nothing was received since */
    assert_int_equal(f->waiting, LOCAL_HASHES_MAX);
    assert_int_equal(more.op.status, ST_REQUEST_TOO_MANY_REQUESTS);
    wait_for(f, 0);
    for (int i = 0; i < LOCAL_HASHES_MAX; i++) {
        assert_int_equal(hashes[i].op.status, ST_OK);
        assert_int_equal(hashes[i].hash, hashes[0].hash);
    }
    start(f, &more);
    wait_for(f, 0);
    assert_int_equal(more.op.status, ST_OK);
    assert_int_equal(more.hash, hashes[0].hash);
}

static void waiting_defragmentations_are_limited(void **state)
{
    struct fixture *f = *state;
    static struct engine_op ops[LOCAL_DEFRAGMENTS_MAX + 1];
    for (int i = 0; i <= LOCAL_DEFRAGMENTS_MAX; i++) {
        ops[i] = new_op(f);
        engine_defragment(f->shard, &ops[i]);
    }
    assert_int_equal(ops[LOCAL_DEFRAGMENTS_MAX].status, ST_REQUEST_TOO_MANY_REQUESTS);
    wait_for(f, 0);
    for (int i = 0; i < LOCAL_DEFRAGMENTS_MAX; i++)
        assert_int_equal(ops[i].status, ST_OK);
}

/* The current hash is canceled as well, and later requests do not wait for any of them. */
static void canceled_hashes_cost_nothing_more(void **state)
{
    struct fixture *f = *state;
    struct engine_hash hashes[LOCAL_HASHES_MAX];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < LOCAL_HASHES_MAX; i++)
            start(f, &hashes[i]);
        for (int i = 0; i < LOCAL_HASHES_MAX; i++)
            engine_give_up(&hashes[i].op);
        wait_for(f, 0);
    }
    /* Hardly any of 320 hashes has run to its end; how many were begun depends on timing. */
    int canceled = 0;
    for (int i = 0; i < LOCAL_HASHES_MAX; i++)
        canceled += hashes[i].op.status == ST_CANCELED;
    assert_true(canceled >= LOCAL_HASHES_MAX - 1);
    struct engine_hash last;
    start(f, &last);
    wait_for(f, 0);
    assert_int_equal(last.op.status, ST_OK);
}

static bool first_is_done;

static void note_first(struct engine_op *op)
{
    first_is_done = true;
    count_done(op);
}

/* A canceled request does not wait for the current hash. */
static void waiting_hashes_end_at_once_when_canceled(void **state)
{
    struct fixture *f = *state;
    struct engine_hash first, others[LOCAL_HASHES_MAX - 1];
    bool left_first = false;
    /* There are several rounds, because a thread that does not run during a whole hash sees
     * nothing. */
    for (int round = 0; round < 20 && !left_first; round++) {
        first = (struct engine_hash){.op = new_op(f)};
        first.op.done = note_first;
        first_is_done = false;
        engine_hash_kv(f->shard, &first);
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            start(f, &others[i]);
            engine_give_up(&others[i].op);
        }
        engine_shard_turn_end(f->shard);
        while (!first_is_done && f->waiting > 1)
            turn_shard(f->shard, f->loop, NS_PER_S);
        left_first = !first_is_done;
        wait_for(f, 0);
        assert_int_equal(first.op.status, ST_OK);
    }
    assert_true(left_first);
}

/* Transactions of the checkpoint so far. */
static uint64_t checkpoints(struct fixture *f)
{
    struct metric_page page = {0};
    engine_metrics_write(f->shard, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    static const char name[] = "\netcd_disk_backend_commit_duration_seconds_count ";
    const char *found = strstr((const char *)page.text.ptr, name);
    assert_non_null(found);
    uint64_t count = strtoull(found + sizeof(name) - 1, NULL, 10);
    metric_page_fini(&page);
    return count;
}

static void checkpoint_does_not_wait_for_hashes(void **state)
{
    struct fixture *f = *state;
    struct engine_hash hashes[LOCAL_HASHES_MAX];
    static const uint8_t value[64 << 10];
    for (int i = 0; i < LOCAL_HASHES_MAX; i++)
        start(f, &hashes[i]);
    wait_for(f, LOCAL_HASHES_MAX - 1); /* the work of the setup is done */
    uint64_t before = checkpoints(f);
    struct engine_write writes[8];
    struct pb_put_request request = {.key = SLICE_LITERAL("large"),
                                     .value = slice_of(value, sizeof(value))};
    for (size_t i = 0; i < COUNT_OF(writes); i++) {
        writes[i] = (struct engine_write){.op = new_op(f)};
        engine_put(f->shard, &writes[i], &request);
    }
    engine_shard_turn_end(f->shard);
    while (checkpoints(f) == before)
        turn_shard(f->shard, f->loop, NS_PER_S / 1000);
    assert_true(f->waiting > LOCAL_HASHES_MAX / 2);
    wait_for(f, 0);
    for (size_t i = 0; i < COUNT_OF(writes); i++)
        engine_write_close(&writes[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waiting_hashes_are_limited),          TEST(waiting_defragmentations_are_limited),
        TEST(canceled_hashes_cost_nothing_more),   TEST(waiting_hashes_end_at_once_when_canceled),
        TEST(checkpoint_does_not_wait_for_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
