/* Watches that deliver through a queue, over a stream that the test drives. */
#include "client/call/queue.h"
#include "client/watch/watch_fixture_test.h"

enum { BUFFER = 2000 };

static vigil_queue *queue;

static int set_up_queue(void **state)
{
    return set_up(state) || vigil_queue_new(client, &queue);
}

static int tear_down_queue(void **state)
{
    vigil_queue_free(queue);
    return tear_down(state);
}

/* Live with this id. */
static vigil_watch *add_queued(int64_t id)
{
    vigil_watch_options options;
    vigil_watch *watch = NULL;
    vigil_watch_options_init(&options);
    options.key = vigil_text("key");
    options.buffer_bytes = BUFFER;
    assert_int_equal(vigil_queue_watch(queue, &options, NULL, &watch), VIGIL_OK);
    turn();
    if (stream->state != STREAM_OPEN)
        open_stream();
    answer_created(id);
    return watch;
}

static const vigil_item *take_one(void)
{
    const vigil_item *item = NULL;
    int code = vigil_queue_take(queue, 0, &item);
    assert_true(code == VIGIL_OK || (code == VIGIL_ERROR_TIMEOUT && !item));
    queue_check(queue);
    return item;
}

static void release(const vigil_item *item)
{
    vigil_item_release(item);
    queue_check(queue);
    turn();
}

/* Takes one event of each revision from this one on until there is none, and returns the revision
 * that follows. */
static int64_t take_events(int64_t revision)
{
    const vigil_item *item;
    while ((item = take_one()) && item->batch->what == VIGIL_WATCH_EVENTS) {
        assert_int_equal(item->batch->event_count, 1);
        assert_int_equal(item->batch->events->kv->mod_revision, revision);
        assert_int_equal(vigil_watch_revision(item->watch), revision++);
        release(item);
    }
    assert_null(item);
    return revision;
}

/* Sends events until the watch is cancelled, and returns the revision that was not received. */
static int64_t fill(int64_t id, int64_t revision)
{
    size_t before = cancels;
    for (; cancels == before; revision++) {
        assert_true(revision < 100);
        answer_event(id, revision);
    }
    answer_canceled(id);
    return revision - 1;
}

static void full_watch_is_created_again_when_half_was_taken(void **state)
{
    (void)state;
    vigil_watch *watch = add_queued(1);
    int64_t next = fill(1, 11), taken = 11;
    assert_true(next > 12);
    assert_true(stat_queued() > BUFFER / 2 && stat_queued() < 2 * BUFFER);
    assert_int_equal(watch->state, WATCH_PARKED);
    vigil_watch_resume(watch); /* without effect */
    turn();
    assert_int_equal(watch->state, WATCH_PARKED);
    size_t before = creates;
    for (; creates == before; taken++) {
        const vigil_item *item = take_one();
        assert_non_null(item);
        assert_int_equal(item->batch->revision, taken);
        release(item);
    }
    assert_true(taken > 12 && taken <= next);
    assert_int_equal(last_create.start_revision, next);
    answer_created(2);
    answer_event(2, next);
    assert_int_equal(take_events(taken), next + 1);
    assert_int_equal(stat_queued(), 0);
    vigil_watch_free(watch);
    turn();
}

/* The others are not paused. */
static void watch_that_is_not_released_waits_alone(void **state)
{
    (void)state;
    vigil_watch *slow = add_queued(1), *quick = add_queued(2);
    answer_event(1, 11);
    const vigil_item *kept = take_one();
    assert_ptr_equal(kept->watch, slow);
    int64_t next = fill(1, 12);
    for (int64_t revision = 11; revision < 100; revision++) {
        answer_event(2, revision);
        assert_int_equal(take_events(revision), revision + 1);
    }
    assert_int_equal(quick->state, WATCH_LIVE);
    assert_int_equal(kept->batch->events->kv->mod_revision, 11);
    release(kept);
    assert_int_equal(take_events(12), next);
    assert_int_equal(last_create.start_revision, next);
    vigil_watch_free(slow);
    vigil_watch_free(quick);
    turn();
}

/* What was received comes before the end, although the item is full, and without another turn. */
static void ended_watch_delivers_what_it_has(void **state)
{
    (void)state;
    vigil_watch *watch = add_queued(1);
    int64_t next = 11;
    while (!watch->held)
        answer_event(1, next++);
    answer_canceled(1); /* by the server */
    assert_int_equal(watch->state, WATCH_ENDED);
    const vigil_item *item;
    for (int64_t revision = 11; revision < next; revision++) {
        item = take_one();
        assert_int_equal(item->batch->revision, revision);
        vigil_item_release(item);
    }
    item = take_one();
    assert_int_equal(item->batch->what, VIGIL_WATCH_ENDED);
    assert_int_equal(item->batch->revision, next - 1);
    assert_ptr_equal(item->error, item->batch->error);
    release(item);
    assert_null(take_one());
    vigil_watch_free(watch);
    turn();
}

/* Whatever allocation fails: a beginning of the events is delivered, and the end once. */
static void lost_memory_ends_a_queued_watch(void **state)
{
    bool complete = false;
    for (size_t fail = 1; !complete; fail++) {
        assert_int_equal(set_up_queue(state), 0);
        vigil_watch *watch = add_queued(1);
        answer_event(1, 11);
        AUTO(buf_fini) struct buf message = {0};
        struct pb_key_value kv = {.mod_revision = 12};
        struct pb_event event = {.kv = &kv};
        struct pb_watch_response response = {.watch_id = 1, .events = &event, .events_count = 1};
        assert_int_equal(pb_append(&pb_watch_response_table, &response, &message), ST_OK);
        memory_fail_at = fail;
        stream->hooks->on_message(stream, buf_slice(&message));
        complete = memory_fail_at > 0;
        memory_fail_at = 0;
        turn();
        const vigil_item *first = take_one();
        assert_int_equal(first->batch->revision, 11);
        release(first);
        const vigil_item *second = take_one();
        assert_int_equal(second->batch->what, complete ? VIGIL_WATCH_EVENTS : VIGIL_WATCH_ENDED);
        assert_int_equal(second->batch->revision, complete ? 12 : 11);
        assert_int_equal(second->error ? second->error->code : VIGIL_OK,
                         complete ? VIGIL_OK : VIGIL_ERROR_MEMORY);
        assert_int_equal(stream->wanted, complete); /* the watch has left its stream */
        release(second);
        assert_null(take_one());
        vigil_watch_free(watch);
        turn();
        assert_int_equal(stat_queued(), 0);
        assert_int_equal(tear_down_queue(state), 0);
        assert_true(fail < 10);
    }
}

static void queue_is_not_created_without_memory(void **state)
{
    assert_int_equal(set_up(state), 0);
    memory_fail_at = 1;
    assert_int_equal(vigil_queue_new(client, &queue), VIGIL_ERROR_MEMORY);
    assert_int_equal(vigil_queue_new(client, &queue), VIGIL_OK);
    vigil_watch_options options;
    vigil_watch *watch = NULL;
    vigil_lease *lease = NULL;
    vigil_watch_options_init(&options);
    options.key = vigil_text("key");
    int code = VIGIL_ERROR_MEMORY;
    for (size_t fail = 1; code != VIGIL_OK; fail++) {
        memory_fail_at = fail;
        code = vigil_queue_watch(queue, &options, NULL, &watch);
        assert_true(code == VIGIL_OK || (code == VIGIL_ERROR_MEMORY && !watch));
    }
    for (size_t fail = 1; !lease; fail++) {
        memory_fail_at = fail;
        code = vigil_queue_lease(queue, 1, 1, NULL, &lease);
        assert_int_equal(code, lease ? VIGIL_OK : VIGIL_ERROR_MEMORY);
    }
    memory_fail_at = 0;
    assert_int_equal(stat_watches(), 1);
    vigil_watch_free(watch);
    vigil_lease_free(lease);
    assert_int_equal(tear_down_queue(state), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_queue, tear_down_queue)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(full_watch_is_created_again_when_half_was_taken),
        TEST(watch_that_is_not_released_waits_alone),
        TEST(ended_watch_delivers_what_it_has),
        cmocka_unit_test(lost_memory_ends_a_queued_watch),
        cmocka_unit_test(queue_is_not_created_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
