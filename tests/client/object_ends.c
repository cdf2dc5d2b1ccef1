/* How watches of objects end: with an error, silently, or with their client. See objects.c for the
 * names. */
#include "objects.h"

/* -- Errors -- */

static void watch_error(void)
{
    vigil_client *client = new_client();
    int64_t revision = current_revision(client);
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    int64_t revisions[] = {revision, 0}; /* in a change, and in the state */
    for (size_t i = 0; i < COUNT(revisions); i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        objects_options(&options, "/pods/ns/foo", false, revisions[i]);
        record->refuse = true;
        record_start(record, &options);
        record_expect_end(record, 500, "InternalError", "Internal error occurred: bits flipped");
        CHECK(record->error.error.code == VIGIL_ERROR_DECODE);
        CHECK(vigil_object_watch_revision(record->watch) == revisions[i]);
        record_free(record);
    }
    objects_finish(client);
}

/* Events before the error are delivered, and none after it. */
static void watch_error_event_is_blocking_further_event(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/foo", "ns/foo@-#2");
    put(client, "/pods/ns/foo", "garbage");
    put(client, "/pods/ns/foo", "ns/foo@-#3");
    struct record *record = watch_pods(client, "/pods/ns/", true, revision, NULL);
    record_expect(record, MODIFIED, "/pods/ns/foo", "ns/foo@-#2", revision + 1);
    record_expect_end(record, 500, "InternalError", "Internal error occurred: bits flipped");
    CHECK(vigil_object_watch_revision(record->watch) == revision + 1);
    put(client, "/pods/ns/foo", "ns/foo@-#4");
    struct record *other = watch_pods(client, "/pods/ns/", true, revision + 4 - 1, NULL);
    record_expect(other, MODIFIED, "/pods/ns/foo", "ns/foo@-#4", revision + 4);
    CHECK(latch_count(&record->events) == 1);
    record_free(other);
    record_free(record);
    objects_finish(client);
}

/* A value that cannot be decoded was deleted; and, with a selector, one that was replaced. */
static void watch_with_unsafe_delete(void)
{
    vigil_client *client = new_client();
    const struct selector any = {0};
    int64_t revision = put(client, "/pods/ns/foo", "garbage");
    int64_t other = put(client, "/pods/ns/bar", "garbage");
    must(vigil_delete(client, vigil_text("/pods/ns/foo")));
    put(client, "/pods/ns/bar", "ns/bar@-#1");
    struct record *record = watch_pods(client, "/pods/ns/foo", false, revision, NULL);
    record_expect_end(record, 500, "StorageReadError",
                      "saw a DELETED event, but object data is corrupt - bits flipped");
    record_free(record);
    record = watch_pods(client, "/pods/ns/bar", false, other, &any);
    record_expect_end(record, 500, "InternalError", "Internal error occurred: bits flipped");
    record_free(record);
    record = watch_pods(client, "/pods/ns/bar", false, other, NULL);
    record_expect(record, MODIFIED, "/pods/ns/bar", "ns/bar@-#1", other + 2);
    record_free(record);
    objects_finish(client);
}

static void compacted_revision_is_expired(void)
{
    vigil_client *client = new_client();
    int64_t first = put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/foo", "ns/foo@-#2");
    int64_t last = put(client, "/pods/ns/foo", "ns/foo@-#3");
    must(vigil_compact(client, last, 1));
    struct record *record = watch_pods(client, "/pods/ns/foo", false, first, NULL);
    record_expect_end(record, 410, "Expired",
                      "The resourceVersion for the provided watch is too old.");
    CHECK(record->error.compact_revision == last);
    CHECK(record->error.error.code == VIGIL_ERROR_COMPACTED);
    record_free(record);
    objects_finish(client);
}

/* The state is compacted between two pages. */
static void state_that_is_compacted_is_expired(void)
{
    vigil_client *client = new_client();
    struct record *record = record_new(client);
    vigil_object_options options;
    put(client, "/pods/ns/bar", "ns/bar@-#1");
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    objects_options(&options, "/pods/", true, 0);
    options.page_limit = 1;
    record->pause_after = 1;
    record_start(record, &options);
    (void)record_next(record);
    CHECK(record->notes[0].batch_revision == 0);
    must(vigil_compact(client, put(client, "/pods/ns/bar", "ns/bar@-#2"), 1));
    vigil_object_watch_resume(record->watch);
    record_expect_end(record, 410, "Expired",
                      "The resourceVersion for the provided watch is too old.");
    CHECK(vigil_object_watch_revision(record->watch) == 0);
    record_free(record);
    objects_finish(client);
}

/* The change can still be watched; etcd has no longer the value before it, Vigil has. */
static void previous_value_is_there_or_its_absence_is_an_error(void)
{
    vigil_client *client = new_client();
    char text[2 * TEXT_BYTES];
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    int64_t last = put(client, "/pods/ns/foo", "ns/foo@-#2");
    must(vigil_compact(client, last, 1));
    struct record *record = watch_pods(client, "/pods/ns/foo", false, last - 1, NULL);
    objects_wait(client, &record->callbacks, 1);
    snprintf(text, sizeof(text),
             "Internal error occurred: etcd event received with PrevKv=nil (key=\"/pods/ns/foo\", "
             "modRevision=%lld, type=PUT)",
             (long long)last);
    if (latch_count(&record->events) == 0)
        record_expect_end(record, 500, "InternalError", text);
    else
        record_expect(record, MODIFIED, "/pods/ns/foo", "ns/foo@-#2", last);
    record_free(record);
    objects_finish(client);
}

static void watch_error_incorrect_configuration(void)
{
    vigil_client *client = new_client();
    vigil_object_options options, good;
    vigil_object_watch *unset = NULL;
    objects_options(&good, "k", false, 0);
    CHECK(vigil_object_watch_new(client, &good, NULL, NULL, &unset) == VIGIL_ERROR_ARGUMENT);
    options = good;
    options.revision = -1;
    CHECK(vigil_object_watch_new(client, &options, record_batch, NULL, &unset) ==
          VIGIL_ERROR_ARGUMENT);
    options.revision = INT64_MAX;
    CHECK(vigil_object_watch_new(client, &options, record_batch, NULL, &unset) ==
          VIGIL_ERROR_ARGUMENT);
    options = good;
    options.page_limit = 0;
    CHECK(vigil_object_watch_new(client, &options, record_batch, NULL, &unset) ==
          VIGIL_ERROR_ARGUMENT);
    options = good;
    options.size = sizeof(options) + 1;
    CHECK(vigil_object_watch_new(client, &options, record_batch, NULL, &unset) ==
          VIGIL_ERROR_ARGUMENT);
    CHECK(!unset);
    objects_finish(client);
}

/* -- The end -- */

/* Silent in every state: before the start, while listing, paused, watching, and after an error. */
static void watch_context_cancel(void)
{
    vigil_client *client = new_client();
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/garbage", "garbage");
    for (int i = 0; i < 100; i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        objects_options(&options, i % 2 ? "/pods/ns/foo" : "/pods/", true, 0);
        options.page_limit = 1;
        record->pause_after = i % 3 ? 1 : 0;
        record_start(record, &options);
        if (i % 5 > 1)
            objects_wait(client, &record->events, 1);
        if (i % 5 == 4)
            vigil_object_watch_resume(record->watch);
        record_free(record);
    }
    objects_finish(client);
}

static int free_inside(vigil_object_watch *object_watch, vigil_object_batch *batch, void *user)
{
    CHECK(batch->event_count > 0 && batch->events[0].object.decoded);
    vigil_object_watch_free(object_watch);
    struct record *record = user;
    latch_add(&record->ended, 1);
    return VIGIL_WATCH_CONTINUE;
}

/* Also after a pause, and while an error is being delivered. */
static void watch_err_result_not_block_after_cancel(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    int64_t revisions[] = {0, revision - 1};
    for (size_t i = 0; i < COUNT(revisions); i++) {
        struct record *record = record_new(client);
        vigil_object_options options;
        vigil_object_watch *object_watch;
        objects_options(&options, "/pods/", true, revisions[i]);
        CHECK(vigil_object_watch_new(client, &options, free_inside, record, &object_watch) ==
              VIGIL_OK);
        objects_wait(client, &record->ended, 1);
        record_free(record);
    }
    objects_finish(client);
}

/* The client ends: no error, but the program learns that nothing follows. */
static void shutdown_ends_object_watches_without_an_error(void)
{
    enum { WATCHES = 4 };
    vigil_client *client = new_client();
    struct record *records[WATCHES];
    int64_t revision = put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/goo", "ns/goo@-#1");
    for (int i = 0; i < WATCHES; i++) {
        vigil_object_options options;
        records[i] = record_new(client);
        objects_options(&options, "/pods/", true, i == 0 ? revision : 0);
        options.page_limit = 1;
        records[i]->pause_after = i == 1 ? 1 : 0; /* between two pages */
        record_start(records[i], &options);
        if (i < 3)
            (void)record_next(records[i]);
    }
    vigil_client_shutdown(client);
    for (int i = 0; i < WATCHES; i++) {
        objects_wait(client, &records[i]->ended, 1);
        CHECK(records[i]->error.status == 0);
    }
    struct record *late = watch_pods(client, "/pods/", true, 0, NULL);
    objects_wait(client, &late->ended, 1);
    record_free(late);
    for (int i = 0; i < WATCHES; i++)
        record_free(records[i]);
    objects_finish(client);
}

/* A client that is freed makes no callback; its watches must still be freed. */
static void client_is_freed_before_its_object_watches(void)
{
    enum { WATCHES = 3 };
    vigil_client *client = new_client();
    struct record *records[WATCHES];
    put(client, "/pods/ns/foo", "ns/foo@-#1");
    put(client, "/pods/ns/goo", "ns/goo@-#1");
    for (int i = 0; i < WATCHES; i++) {
        vigil_object_options options;
        records[i] = record_new(client);
        objects_options(&options, "/pods/", true, 0);
        options.page_limit = 1;
        records[i]->pause_after = i == 0;
        record_start(records[i], &options);
        if (i < 2)
            (void)record_next(records[i]);
    }
    vigil_client_free(client);
    for (int i = 0; i < WATCHES; i++) {
        CHECK(latch_count(&records[i]->ended) == 0);
        vigil_object_watch_resume(records[i]->watch);
        record_free(records[i]);
    }
    CHECK(live_pods == 0);
}

const struct suite_test object_end_tests[] = {
    {"objects_WatchError", watch_error},
    {"objects_WatchErrorEventIsBlockingFurtherEvent", watch_error_event_is_blocking_further_event},
    {"objects_WatchWithUnsafeDelete", watch_with_unsafe_delete},
    {"objects_WatchErrorIncorrectConfiguration", watch_error_incorrect_configuration},
    {"objects_WatchContextCancel", watch_context_cancel},
    {"objects_WatchErrResultNotBlockAfterCancel", watch_err_result_not_block_after_cancel},
    {"compacted_revision_is_expired", compacted_revision_is_expired},
    {"state_that_is_compacted_is_expired", state_that_is_compacted_is_expired},
    {"previous_value_is_there_or_its_absence_is_an_error",
     previous_value_is_there_or_its_absence_is_an_error},
    {"shutdown_ends_object_watches_without_an_error",
     shutdown_ends_object_watches_without_an_error},
    {"client_is_freed_before_its_object_watches", client_is_freed_before_its_object_watches},
    {NULL, NULL},
};
