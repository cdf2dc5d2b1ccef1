#include "client/watch/watch_fixture_test.h"

/* -- Creating -- */

static void creates_are_matched_by_order(void **state)
{
    (void)state;
    struct record records[3] = {0};
    for (size_t i = 0; i < COUNT_OF(records); i++)
        add(&records[i], (int64_t)i + 5, 100);
    open_stream();
    assert_int_equal(creates, 3);
    answer_created(30);
    answer((struct pb_watch_response){.watch_id = -1,
                                      .created = true,
                                      .canceled = true,
                                      .cancel_reason = SLICE_LITERAL("not allowed")},
           10);
    answer_created(20);
    answer_event(20, 11);
    answer_event(30, 12);
    assert_int_equal(records[0].revision, 12);
    assert_int_equal(records[2].revision, 11);
    assert_int_equal(records[1].created, 0);
    assert_int_equal(records[1].ended, 1);
    assert_string_equal(records[1].error.text, "not allowed");
    assert_int_equal(stat_watches(), 2);
    assert_int_equal(cancels, 0);
    for (size_t i = 0; i < COUNT_OF(records); i++)
        drop(&records[i]);
}

static void refused_create_without_a_reason_is_a_future_revision(void **state)
{
    (void)state;
    struct record record = {0};
    add(&record, 100, 100);
    open_stream();
    answer((struct pb_watch_response){.watch_id = -1, .created = true, .canceled = true}, 10);
    assert_int_equal(record.ended, 1);
    assert_int_equal(record.error.grpc_code, GRPC_OUT_OF_RANGE);
    drop(&record);
}

static void created_is_delivered_once(void **state)
{
    (void)state;
    struct record record = {0};
    add_live(&record, 1, 100);
    answer_event(1, 11);
    break_stream();
    open_stream();
    assert_int_equal(last_create.start_revision, 12);
    answer_created(1);
    answer_event(1, 12);
    assert_int_equal(record.created, 1);
    assert_int_equal(record.events, 2);
    drop(&record);
}

static void unexpected_answers_break_the_stream(void **state)
{
    (void)state;
    struct record record = {0}, other = {0};
    add_live(&record, 1, 100);
    answer_created(2); /* without a request */
    assert_true(stream->given_up);
    break_stream();
    add(&other, 0, 100);
    open_stream();
    answer_created(1);
    answer_created(1); /* the id of a live watch */
    assert_true(stream->given_up);
    break_stream();
    open_stream();
    answer_created(-1); /* accepted without an id */
    assert_true(stream->given_up);
    break_stream();
    drop(&record);
    drop(&other);
    assert_int_equal(stat_watches(), 0);
}

static void watches_share_a_stream_per_metadata(void **state)
{
    (void)state;
    struct record plain[2] = {0}, red[2] = {0}, blue = {0}, green = {0};
    add_live(&plain[0], 1, 100);
    struct client_stream *first = stream;
    char value[] = "red";
    add_metadata = (vigil_metadata){"colour", value};
    add_live(&red[0], 1, 100);
    struct client_stream *second = stream;
    assert_ptr_not_equal(first, second);
    assert_int_equal(second->metadata->count, 1);
    value[0] = 'x'; /* it was copied */
    add_metadata.value = "red";
    add(&red[1], 0, 100);
    add_metadata.value = "blue";
    add_live(&blue, 1, 100);
    assert_ptr_not_equal(stream, first);
    assert_ptr_not_equal(stream, second);
    add_metadata = (vigil_metadata){0};
    add(&plain[1], 0, 100);
    struct client_stream *last = stream;
    stream = second;
    answer_created(2); /* the second red one */
    request_progress(&red[0], "3.7.0");
    answer_progress(-1, 15);
    assert_int_equal(red[0].progress + red[1].progress, 2);
    assert_int_equal(plain[0].progress + blue.progress, 0);
    drop(&red[0]);
    drop(&red[1]);
    break_stream(); /* it is idle now, and used again for other metadata */
    add_metadata = (vigil_metadata){"colour", "green"};
    add_live(&green, 1, 100);
    assert_ptr_equal(stream, second);
    assert_true(slice_equal(second->metadata->fields[0].value, SLICE_LITERAL("green")));
    stream = last;
    drop(&plain[0]);
    drop(&plain[1]);
    drop(&blue);
    drop(&green);
}

static void metadata_that_cannot_be_sent_is_refused(void **state)
{
    static const vigil_metadata wrong[] = {
        {"Upper", "x"},         {"", "x"},        {":path", "x"},
        {"grpc-timeout", "1S"}, {"te", "x"},      {"image-bin", "AAAA"},
        {"a b", "x"},           {"name", "a\nb"}, {NULL, "x"},
        {"name", NULL},
    };
    (void)state;
    vigil_watch *watch = NULL;
    struct record record = {0};
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.metadata_count = 1;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        options.metadata = &wrong[i];
        assert_int_equal(vigil_watch_new(client, &options, on_batch, &record, &watch),
                         VIGIL_ERROR_ARGUMENT);
    }
    vigil_metadata many[33];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = (vigil_metadata){"name", "value"};
    options.metadata = many;
    options.metadata_count = COUNT_OF(many);
    assert_int_equal(vigil_watch_new(client, &options, on_batch, &record, &watch),
                     VIGIL_ERROR_ARGUMENT);
    static char large[8193];
    memset(large, 'x', sizeof(large) - 1);
    many[0].value = large;
    options.metadata_count = 1;
    assert_int_equal(vigil_watch_new(client, &options, on_batch, &record, &watch),
                     VIGIL_ERROR_ARGUMENT);
    assert_null(watch);
}

/* -- Cancelling -- */

/* More than may be cancelled at a time: the others do not notice. */
static void many_watches_are_freed_at_once(void **state)
{
    enum { WATCHES = UNANSWERED_MAX + 1000 };
    (void)state;
    static struct record records[WATCHES];
    struct record survivor = {0};
    add_live(&survivor, WATCHES, 100);
    memset(records, 0, sizeof(records));
    for (int i = 0; i < WATCHES; i++) {
        add(&records[i], 0, 100);
        answer_created(i);
    }
    for (int i = 0; i < WATCHES; i++)
        vigil_watch_free(records[i].watch);
    turn();
    assert_false(stream->given_up);
    assert_int_equal(cancels, UNANSWERED_MAX);
    answer_event(WATCHES, 11);
    for (int i = 0; i < WATCHES; i++)
        answer_canceled(i);
    answer_event(WATCHES, 12);
    assert_false(stream->given_up);
    assert_int_equal(cancels, WATCHES);
    assert_int_equal(survivor.events, 2);
    assert_int_equal(stat_watches(), 1);
    assert_int_equal(creates, WATCHES + 1); /* none was created again */
    drop(&survivor);
}

static void creates_wait_for_answers(void **state)
{
    enum { WATCHES = UNANSWERED_MAX + 1 };
    (void)state;
    static struct record records[WATCHES];
    memset(records, 0, sizeof(records));
    for (int i = 0; i < WATCHES; i++)
        add(&records[i], 0, 100);
    open_stream();
    assert_int_equal(creates, UNANSWERED_MAX);
    answer_created(0);
    assert_int_equal(creates, WATCHES);
    for (int i = 0; i < WATCHES; i++)
        vigil_watch_free(records[i].watch);
    turn();
}

static void unknown_id_is_cancelled_once(void **state)
{
    (void)state;
    struct record record = {0};
    add_live(&record, 1, 100);
    for (int i = 0; i < 3; i++)
        answer_event(7, 11 + i);
    assert_int_equal(cancels, 1);
    assert_int_equal(last_cancel, 7);
    answer_canceled(7);
    answer_canceled(8); /* is over already */
    assert_int_equal(cancels, 1);
    answer_event(7, 15);
    assert_int_equal(cancels, 2);
    assert_int_equal(record.events, 0);
    assert_false(stream->given_up);
    for (int i = 0; i < UNANSWERED_MAX; i++)
        answer_event(100 + i, 20);
    assert_true(stream->given_up);
    break_stream();
    drop(&record);
}

enum moment { QUEUED, CREATING, LIVE, PAUSED, PARKING, PARKED, LEAVING, BROKEN, REFUSED, MOMENTS };

/* Returns the state in which the watch is freed. */
static enum watch_state reach(struct record *record, enum moment moment)
{
    if (moment == QUEUED || moment == CREATING || moment == REFUSED) {
        add(record, 0, 100);
        if (moment == QUEUED)
            return WATCH_QUEUED;
        open_stream();
        return WATCH_CREATING;
    }
    if (moment == LIVE || moment == BROKEN)
        add_live(record, 2, 100);
    else
        add_paused(record, 2, 100);
    if (moment == BROKEN)
        break_stream();
    if (moment == PARKING || moment == PARKED)
        for (int i = 0; i < 10; i++)
            answer_event(2, 11 + i);
    if (moment == PARKED)
        answer_canceled(2);
    if (moment == PAUSED)
        answer_event(2, 11);
    static const enum watch_state states[] = {
        [LIVE] = WATCH_LIVE,     [PAUSED] = WATCH_LIVE,  [PARKING] = WATCH_PARKING,
        [PARKED] = WATCH_PARKED, [LEAVING] = WATCH_LIVE, [BROKEN] = WATCH_QUEUED};
    return states[moment];
}

/* The server answers whatever is open. */
static void answer_all(enum moment moment)
{
    if (stream->state != STREAM_OPEN && stream->wanted)
        open_stream();
    if (moment == CREATING)
        answer_created(2);
    if (moment == REFUSED)
        answer((struct pb_watch_response){.watch_id = -1, .created = true, .canceled = true}, 10);
    if (cancels)
        answer_canceled(2);
}

static void watch_is_freed_in_every_state(void **state)
{
    for (enum moment moment = QUEUED; moment < MOMENTS; moment++)
        for (int breaks = 0; breaks < 2; breaks++) {
            struct record record = {0}, survivor = {0};
            assert_int_equal(set_up(state), 0);
            add_live(&survivor, 1, 100);
            if (moment == QUEUED)
                break_stream();
            enum watch_state expected = reach(&record, moment);
            assert_int_equal(record.watch->state, expected);
            drop(&record);
            if (breaks) {
                break_stream();
                open_stream();
                answer_created(1);
            } else {
                answer_all(moment);
                if (stream->state == STREAM_OPEN && (moment == QUEUED || moment == BROKEN))
                    answer_created(1);
            }
            answer_event(1, 21);
            assert_int_equal(stat_watches(), 1);
            assert_int_equal(stat_queued(), 0);
            assert_int_equal(survivor.events, 1);
            assert_false(stream->given_up);
            drop(&survivor);
            tear_down(state);
        }
}

/* It is not kept open for answers that no watch needs. */
static void stream_closes_with_the_last_watch(void **state)
{
    (void)state;
    struct record creating = {0}, live = {0};
    add_live(&live, 1, 100);
    add(&creating, 0, 100);
    drop(&live);
    assert_true(stream->wanted);
    drop(&creating);
    assert_false(stream->wanted);
    assert_int_equal(cancels, 1); /* that of the first only: the rest ends with the stream */
    break_stream();
    assert_int_equal(stat_watches(), 0);
}

/* -- Pausing -- */

static void full_watch_is_parked_and_created_again(void **state)
{
    (void)state;
    struct record record = {0}, beside = {0};
    add_paused(&record, 1, 100);
    add_live(&beside, 2, 100);
    for (int i = 0; i < 10; i++) {
        answer_event(1, 11 + i);
        answer_event(2, 11 + i);
    }
    assert_true(stat_queued() > 0 && stat_queued() <= 100);
    assert_int_equal(cancels, 1);
    resume(&record); /* before the server has confirmed */
    assert_true(record.events > 0 && record.events < 10);
    assert_int_equal(creates, 2);
    answer_canceled(1);
    assert_int_equal(creates, 3);
    assert_int_equal(last_create.start_revision, 11 + record.events);
    answer_created(3);
    while (record.events < 10)
        answer_event(3, 11 + record.events);
    assert_int_equal(record.created, 1);
    assert_int_equal(beside.events, 10);
    drop(&record);
    drop(&beside);
}

static void fragments_for_a_paused_watch_fit_in_its_buffer(void **state)
{
    (void)state;
    struct record record = {0};
    add_paused(&record, 1, 1000);
    for (int i = 0; i < 3; i++)
        answer_part(1, 11, 400, true);
    assert_int_equal(record.watch->state, WATCH_PARKING);
    answer_canceled(1);
    resume(&record);
    answer_created(2);
    for (int i = 0; i < 3; i++) /* nothing is held now, so it may be larger */
        answer_part(2, 11, 400, i < 2);
    assert_int_equal(record.events, 3);
    assert_int_equal(record.batches, 2);
    drop(&record);
}

/* A fragment with one event of each of these revisions. */
static void answer_revisions(int64_t id, int64_t from, int64_t to, bool fragment)
{
    enum { EVENTS = 8 };
    struct pb_key_value kvs[EVENTS] = {0};
    struct pb_event events[EVENTS] = {0};
    struct pb_watch_response response = {.watch_id = id, .events = events, .fragment = fragment};
    for (int64_t revision = from; revision <= to; revision++) {
        size_t at = response.events_count++;
        assert_true(at < EVENTS);
        kvs[at] = (struct pb_key_value){.key = SLICE_LITERAL("key"), .mod_revision = revision};
        events[at].kv = &kvs[at];
    }
    answer(response, 100);
}

/* Together they exceed the receive limit, which only holds for a single revision. */
static void complete_revisions_of_fragments_are_delivered_at_once(void **state)
{
    (void)state;
    struct record record = {0};
    client->receive_bytes_max = 1000;
    add_live(&record, 1, 1000);
    answer_part(1, 11, 400, true);
    answer_part(1, 11, 400, true);
    assert_int_equal(record.events, 0);
    answer_part(1, 12, 400, true);
    assert_int_equal(record.events, 2);
    assert_int_equal(record.revision, 11);
    answer_part(1, 13, 400, true);
    assert_int_equal(record.events, 3);
    answer_revisions(1, 13, 16, true); /* the rest of 13, and a part of 16 */
    assert_int_equal(record.events, 7);
    assert_int_equal(record.batches, 3 + record.created);
    assert_int_equal(record.revision, 15);
    break_stream(); /* what is not complete is sent again */
    open_stream();
    answer_created(2);
    answer_revisions(2, 16, 17, true);
    answer_revisions(2, 17, 18, false);
    assert_int_equal(record.events, 11);
    assert_int_equal(record.revision, 18);
    for (int i = 0; i < 3; i++)
        answer_part(2, 19, 400, true);
    assert_int_equal(record.error.code, VIGIL_ERROR_TOO_LARGE);
    answer_canceled(2);
    drop(&record);
}

static void progress_reaches_all_live_watches(void **state)
{
    (void)state;
    struct record live[2] = {0}, parked = {0}, creating = {0};
    add_live(&live[0], 1, 100);
    add_live(&live[1], 2, 100);
    add_paused(&parked, 3, 1);
    answer_event(3, 11);
    answer_canceled(3);
    add(&creating, 0, 100);
    request_progress(&live[0], "3.7.0");
    answer_progress(-1, 15);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(live[i].progress, 1);
        assert_int_equal(live[i].revision, 15);
        assert_int_equal(vigil_watch_revision(live[i].watch), 15);
    }
    answer_progress(2, 16);
    assert_int_equal(live[0].progress, 1);
    assert_int_equal(vigil_watch_revision(live[1].watch), 16);
    resume(&parked);
    assert_int_equal(parked.progress + creating.progress, 0);
    drop(&live[0]);
    drop(&live[1]);
    drop(&parked);
    drop(&creating);
}

static void watch_resumes_after_requested_progress(void **state)
{
    (void)state;
    struct record record = {0};
    add_live(&record, 1, 100);
    request_progress(&record, "3.7.0");
    answer_progress(-1, 15);
    break_stream();
    open_stream();
    assert_int_equal(last_create.start_revision, 16);
    answer_created(1);
    assert_int_equal(vigil_watch_revision(record.watch), 15);
    drop(&record);
}

/* Servers before etcd 3.4.31 answer before they have sent the events. */
static void early_progress_says_nothing_new(void **state)
{
    (void)state;
    struct record record = {0}, paused = {0};
    add_live(&record, 1, 100);
    add_paused(&paused, 2, 100);
    request_progress(&record, "3.4.30");
    answer_progress(-1, 15);
    assert_int_equal(record.progress, 1);
    assert_int_equal(record.revision, 10);
    answer_event(1, 12);
    assert_int_equal(record.events, 1);
    answer_event(2, 12);
    request_progress(&record, NULL); /* the version is known already */
    answer_progress(-1, 15);
    assert_int_equal(record.revision, 12);
    resume(&paused);
    assert_int_equal(paused.events, 1);
    assert_int_equal(paused.progress, 2); /* before and after the event */
    assert_int_equal(paused.revision, 12);
    break_stream();
    open_stream();
    assert_int_equal(last_create.start_revision, 13);
    drop(&record);
    drop(&paused);
}

static void progress_of_an_unknown_server_says_nothing_new(void **state)
{
    (void)state;
    struct record record = {0};
    add_live(&record, 1, 100);
    answer_progress(-1, 15); /* without a request */
    request_progress(&record, NULL);
    answer_progress(-1, 16);
    assert_int_equal(record.progress, 2);
    assert_int_equal(record.revision, 10);
    request_progress(&record, "3.7.0"); /* the version is requested again */
    answer_progress(-1, 17);
    assert_int_equal(record.revision, 17);
    vigil_watch_request_progress(record.watch);
    turn();
    answer((struct pb_watch_response){.watch_id = -1}, 18);
    assert_int_equal(record.revision, 18);
    break_stream(); /* the next server may be another one */
    open_stream();
    answer_created(1);
    vigil_watch_request_progress(record.watch);
    vigil_watch_request_progress(record.watch);
    turn();
    assert_non_null(inquiry);
    break_stream(); /* and this one never answers */
    assert_null(inquiry);
    drop(&record);
}

/* Its created response has overtaken the answer to an older request. */
static void progress_does_not_cover_a_younger_watch(void **state)
{
    (void)state;
    struct record old = {0}, young = {0}, current = {0};
    add_live(&old, 1, 100);
    request_progress(&old, "3.7.0");
    request_progress(&old, NULL);
    add(&young, 5, 100);
    answer_created(2);
    add(&current, 0, 100);
    answer_created(3);
    request_progress(&old, NULL);
    answer_progress(-1, 10); /* the first request */
    assert_int_equal(old.progress, 1);
    assert_int_equal(young.progress, 0);
    assert_int_equal(current.progress, 1); /* it has begun after this revision */
    answer_progress(-1, 10);               /* the second or the third request */
    assert_int_equal(young.progress, 0);
    answer_progress(-1, 10); /* the third request */
    assert_int_equal(old.progress, 3);
    assert_int_equal(young.progress, 1);
    assert_int_equal(young.revision, 10);
    drop(&old);
    drop(&young);
    drop(&current);
}

/* Requests that were sent before the watch was created have not been answered. */
static void progress_covers_a_watch_that_it_must_be_younger_than(void **state)
{
    (void)state;
    struct record old = {0}, young[2] = {0};
    add_live(&old, 1, 100);
    for (int i = 0; i < 100; i++)
        request_progress(&old, "3.7.0");
    add(&young[0], 5, 100);
    answer_created(2);
    request_progress(&old, NULL);
    answer_progress(-1, 11); /* above the revision of the created response */
    assert_int_equal(young[0].progress, 1);
    assert_int_equal(young[0].revision, 11);
    for (int i = 0; i < 100; i++)
        request_progress(&old, NULL);
    add(&young[1], 5, 100);
    answer_created(3);
    answer_event(3, 6);
    request_progress(&old, NULL);
    answer_progress(-1, 11); /* it has come after an event of the watch */
    assert_int_equal(young[1].progress, 1);
    assert_int_equal(young[1].revision, 11);
    drop(&old);
    drop(&young[0]);
    drop(&young[1]);
}

static void paused_watch_receives_progress_when_it_is_resumed(void **state)
{
    (void)state;
    struct record record = {0};
    add_paused(&record, 1, 100);
    request_progress(&record, "3.7.0");
    answer_event(1, 11);
    for (int64_t revision = 12; revision < 100; revision++)
        answer_progress(revision % 2 ? 1 : -1, revision);
    assert_int_equal(record.watch->state, WATCH_LIVE); /* they have not filled the buffer */
    assert_int_equal(vigil_watch_revision(record.watch), 10);
    resume(&record);
    assert_int_equal(record.events, 1);
    assert_int_equal(record.progress, 1); /* only the newest */
    assert_int_equal(record.revision, 99);
    assert_int_equal(vigil_watch_revision(record.watch), 99);
    drop(&record);
}

static void progress_does_not_fill_the_buffer(void **state)
{
    (void)state;
    struct record record = {0};
    add_paused(&record, 1, 1);
    answer_progress(1, 12);
    assert_int_equal(record.watch->state, WATCH_LIVE);
    assert_int_equal(stat_queued(), 0);
    break_stream();
    open_stream();
    assert_int_equal(last_create.start_revision, 13);
    drop(&record);
}

/* -- Ending -- */

static void paused_watch_receives_its_end_when_it_is_resumed(void **state)
{
    for (unsigned events = 0; events < 2; events++) {
        struct record record = {0}, beside = {0};
        assert_int_equal(set_up(state), 0);
        add_paused(&record, 1, 100);
        add_live(&beside, 2, 100);
        if (events)
            answer_event(1, 11);
        answer((struct pb_watch_response){.watch_id = 1, .canceled = true, .compact_revision = 9},
               12);
        assert_int_equal(record.ended, 0);
        resume(&record);
        assert_int_equal(record.events, events);
        assert_int_equal(record.ended, 1);
        assert_int_equal(record.error.code, VIGIL_ERROR_COMPACTED);
        assert_int_equal(record.compact_revision, 9);
        assert_int_equal(stat_watches(), 1);
        drop(&record);
        drop(&beside);
        tear_down(state);
    }
}

static void refused_stream_ends_every_watch(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    struct record records[COUNT] = {0};
    add_live(&records[0], 0, 100);
    add_paused(&records[1], 1, 100);
    answer_event(1, 11);
    add_paused(&records[2], 2, 1);
    answer_event(2, 11); /* parking */
    add_paused(&records[3], 3, 1);
    answer_event(3, 11);
    answer_canceled(3); /* parked */
    add(&records[4], 0, 100);
    refuse_stream(GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(records[i].ended, i == 0 || i == 4);
        resume(&records[i]);
        assert_int_equal(records[i].ended, 1);
        assert_int_equal(records[i].error.grpc_code, GRPC_PERMISSION_DENIED);
    }
    assert_int_equal(records[1].events, 1);
    assert_int_equal(stat_watches(), 0);
    assert_int_equal(stat_queued(), 0);
    for (int i = 0; i < COUNT; i++)
        drop(&records[i]);
}

static void shutdown_ends_every_watch(void **state)
{
    (void)state;
    struct record records[4] = {0};
    add_live(&records[0], 0, 100);
    add_paused(&records[1], 1, 100);
    answer_event(1, 11);
    add_paused(&records[2], 2, 1);
    answer_event(2, 11); /* parking */
    add(&records[3], 0, 100);
    vigil_client_shutdown(client);
    turn();
    for (size_t i = 0; i < COUNT_OF(records); i++) {
        assert_int_equal(records[i].ended, 1);
        assert_int_equal(records[i].error.code, VIGIL_ERROR_CANCELED);
        drop(&records[i]);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(creates_are_matched_by_order),
        TEST(refused_create_without_a_reason_is_a_future_revision),
        TEST(created_is_delivered_once),
        TEST(unexpected_answers_break_the_stream),
        TEST(watches_share_a_stream_per_metadata),
        TEST(metadata_that_cannot_be_sent_is_refused),
        TEST(many_watches_are_freed_at_once),
        TEST(creates_wait_for_answers),
        TEST(unknown_id_is_cancelled_once),
        cmocka_unit_test(watch_is_freed_in_every_state),
        TEST(stream_closes_with_the_last_watch),
        TEST(full_watch_is_parked_and_created_again),
        TEST(fragments_for_a_paused_watch_fit_in_its_buffer),
        TEST(complete_revisions_of_fragments_are_delivered_at_once),
        TEST(progress_reaches_all_live_watches),
        TEST(watch_resumes_after_requested_progress),
        TEST(early_progress_says_nothing_new),
        TEST(progress_of_an_unknown_server_says_nothing_new),
        TEST(progress_does_not_cover_a_younger_watch),
        TEST(progress_covers_a_watch_that_it_must_be_younger_than),
        TEST(paused_watch_receives_progress_when_it_is_resumed),
        TEST(progress_does_not_fill_the_buffer),
        cmocka_unit_test(paused_watch_receives_its_end_when_it_is_resumed),
        TEST(refused_stream_ends_every_watch),
        TEST(shutdown_ends_every_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
