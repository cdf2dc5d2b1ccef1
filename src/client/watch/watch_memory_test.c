/* Watches when there is no memory. */
#include "client/watch/watch_fixture_test.h"

#include <vigil/queue.h>

enum moment { QUEUED, CREATING, LIVE, PARKING, ENDING };

/* A paused watch with two events, and the stream as `moment` says. */
static void prepare_held(struct record *record, enum moment moment)
{
    add_paused(record, 2, 1000);
    answer_event(2, 11);
    answer_event(2, 12);
    if (moment == CREATING || moment == QUEUED)
        break_stream();
    if (moment == CREATING)
        open_stream();
    if (moment == PARKING)
        answer_part(2, 13, 2000, false);
    if (moment == ENDING)
        answer_canceled(2);
}

/* Whatever allocation fails while the watch is resumed: it delivers everything, or its end once. */
static void lost_memory_ends_a_resumed_watch_once(void **state)
{
    static const enum moment moments[] = {QUEUED, CREATING, LIVE, PARKING, ENDING};
    for (size_t i = 0; i < COUNT_OF(moments); i++) {
        bool complete = false;
        for (size_t fail = 1; !complete; fail++) {
            struct record record = {0}, survivor = {0};
            assert_int_equal(set_up(state), 0);
            add_live(&survivor, 1, 100);
            prepare_held(&record, moments[i]);
            memory_fail_at = fail;
            resume(&record);
            complete = memory_fail_at > 0;
            memory_fail_at = 0;
            assert_true(complete || record.ended == 1);
            assert_int_equal(record.events, complete ? 2 : record.events);
            assert_true(complete || record.error.code == VIGIL_ERROR_MEMORY);
            if (moments[i] == CREATING) {
                answer_created(1);
                answer_created(2);
            }
            if (cancels)
                answer_canceled(2);
            assert_int_equal(stat_queued(), 0);
            assert_int_equal(stat_watches(), record.ended ? 1 : 2);
            drop(&record);
            drop(&survivor);
            tear_down(state);
        }
    }
}

static void lost_memory_ends_a_live_watch_once(void **state)
{
    for (int paused = 0; paused < 2; paused++) {
        struct record record = {0}, survivor = {0};
        assert_int_equal(set_up(state), 0);
        add_live(&survivor, 1, 100);
        if (paused)
            add_paused(&record, 2, 1000);
        else
            add_live(&record, 2, 1000);
        AUTO(buf_fini) struct buf message = {0};
        struct pb_key_value kv = {.mod_revision = 11};
        struct pb_event event = {.kv = &kv};
        struct pb_watch_response part = {
            .watch_id = 2, .events = &event, .events_count = 1, .fragment = !paused};
        assert_int_equal(pb_append(&pb_watch_response_table, &part, &message), ST_OK);
        memory_fail_at = 1;
        stream->hooks->on_message(stream, buf_slice(&message));
        assert_int_equal(memory_fail_at, 0);
        assert_int_equal(record.ended, 1);
        assert_int_equal(record.error.code, VIGIL_ERROR_MEMORY);
        assert_int_equal(cancels, 1);
        answer_event(2, 12);
        answer_canceled(2);
        assert_int_equal(stat_watches(), 1);
        drop(&record);
        drop(&survivor);
        tear_down(state);
    }
}

/* The end cannot be held: another end follows what is held. */
static void lost_end_is_replaced(void **state)
{
    for (unsigned events = 0; events < 2; events++) {
        struct record record = {0}, survivor = {0};
        assert_int_equal(set_up(state), 0);
        add_live(&survivor, 1, 100);
        add_paused(&record, 2, 100);
        if (events)
            answer_event(2, 11);
        AUTO(buf_fini) struct buf message = {0};
        struct pb_watch_response last = {.watch_id = 2, .canceled = true};
        assert_int_equal(pb_append(&pb_watch_response_table, &last, &message), ST_OK);
        memory_fail_at = 1;
        stream->hooks->on_message(stream, buf_slice(&message));
        assert_int_equal(memory_fail_at, 0);
        assert_int_equal(record.ended, 0);
        record.pauses = events > 0;
        resume(&record);
        assert_int_equal(record.events, events);
        record.pauses = false;
        if (events) {
            assert_int_equal(record.ended, 0);
            resume(&record);
        }
        assert_int_equal(record.ended, 1);
        assert_int_equal(record.error.code, VIGIL_ERROR_MEMORY);
        assert_int_equal(stat_watches(), 1);
        drop(&record);
        drop(&survivor);
        tear_down(state);
    }
}

static int new_watch(vigil_queue *queue, const vigil_watch_options *options, struct record *record)
{
    return queue ? vigil_queue_watch(queue, options, record, &record->watch)
                 : vigil_watch_new(client, options, on_batch, record, &record->watch);
}

/* Nothing is lost, which the address sanitizer checks. */
static void watch_is_not_made_without_memory(void **state)
{
    static const vigil_metadata metadata = {"name", "value"};
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.metadata = &metadata;
    options.metadata_count = 1;
    for (int queued = 0; queued < 2; queued++) {
        vigil_queue *queue = NULL;
        assert_int_equal(set_up(state), 0);
        if (queued)
            assert_int_equal(vigil_queue_new(client, &queue), VIGIL_OK);
        int code = VIGIL_ERROR_MEMORY;
        for (size_t fail = 1; code != VIGIL_OK; fail++) {
            struct record record = {0};
            memory_fail_at = fail;
            code = new_watch(queue, &options, &record);
            memory_fail_at = 0;
            assert_true(code == VIGIL_OK || (code == VIGIL_ERROR_MEMORY && !record.watch));
            vigil_watch_free(record.watch);
        }
        turn();
        assert_int_equal(stat_watches(), 0);
        vigil_queue_free(queue);
        tear_down(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_memory_ends_a_resumed_watch_once),
        cmocka_unit_test(lost_memory_ends_a_live_watch_once),
        cmocka_unit_test(lost_end_is_replaced),
        cmocka_unit_test(watch_is_not_made_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
