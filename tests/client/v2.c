/* Watches over the v2 keys API. The driver (v2_test.py) does what v2 clients do: "ask v2 PUT …". */
#include "suite.h"

#include <unistd.h>

enum { SEEN_MAX = 2048, TEXT_BYTES = 96 };

struct seen {
    int type;
    bool initial;
    char key[TEXT_BYTES], value[TEXT_BYTES];
    int64_t index;
};

/* What a watch has delivered. Events are written before the latch is counted. */
struct v2_record {
    struct latch events, bookmarks, ended;
    struct seen seen[SEEN_MAX];
    long count;
    int64_t state_index;
    vigil_object_error error;
    bool pause; /* answer every batch with a pause */
    bool free_inside;
    long decoded, released;
};

static struct v2_record *record_new(void)
{
    struct v2_record *record = calloc(1, sizeof(*record));
    struct latch latch = LATCH_INIT;
    CHECK(record);
    record->events = record->bookmarks = record->ended = latch;
    return record;
}

static void copy_text(char to[TEXT_BYTES], vigil_bytes from)
{
    CHECK(from.size < TEXT_BYTES);
    if (from.size)
        memcpy(to, from.data, from.size);
    to[from.size] = '\0';
}

static void note(struct v2_record *record, const vigil_object_event *event)
{
    struct seen *seen = &record->seen[record->count++];
    CHECK(record->count < SEEN_MAX);
    seen->type = event->type;
    seen->initial = event->initial != 0;
    seen->index = event->object.revision;
    copy_text(seen->key, event->object.key);
    copy_text(seen->value, event->object.value);
    latch_add(&record->events, 1);
}

static int on_batch(vigil_v2_watch *watch, vigil_object_batch *batch, void *user)
{
    struct v2_record *record = user;
    CHECK(vigil_v2_watch_user(watch) == user && latch_count(&record->ended) == 0);
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_object_event *event = &batch->events[i];
        if (event->type == VIGIL_OBJECT_BOOKMARK) {
            CHECK(event->initial && event->object.revision == batch->revision);
            record->state_index = batch->revision;
            latch_add(&record->bookmarks, 1);
        } else if (event->type == VIGIL_OBJECT_ERROR) {
            CHECK(batch->ended && i + 1 == batch->event_count);
            record->error = *event->error;
        } else {
            note(record, event);
        }
    }
    if (record->free_inside)
        vigil_v2_watch_free(watch);
    if (batch->ended || record->free_inside)
        latch_add(&record->ended, 1);
    return record->pause ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static vigil_v2_watch *watch_with(vigil_client *client, const vigil_v2_watch_options *options,
                                  struct v2_record *record)
{
    vigil_v2_watch *watch = NULL;
    CHECK(vigil_v2_watch_new(client, options, on_batch, record, &watch) == VIGIL_OK);
    return watch;
}

static vigil_v2_watch *watch_all(vigil_client *client, const char *key, struct v2_record *record)
{
    vigil_v2_watch_options options;
    vigil_v2_watch_options_init(&options);
    options.key = vigil_text(key);
    options.recursive = 1;
    return watch_with(client, &options, record);
}

/* The nth event is this one. */
static void expect(struct v2_record *record, long n, int type, const char *key, const char *value)
{
    latch_wait(&record->events, n + 1);
    const struct seen *seen = &record->seen[n];
    if (seen->type == type && strcmp(seen->key, key) == 0 && strcmp(seen->value, value) == 0)
        return;
    fprintf(stderr, "event %ld: expected %d %s=%s, got %d %s=%s\n", n, type, key, value, seen->type,
            seen->key, seen->value);
    abort();
}

static void finish(vigil_client *client, vigil_v2_watch *watch, struct v2_record *record)
{
    vigil_v2_watch_free(watch);
    vigil_client_free(client);
    CHECK(record->decoded == record->released);
    free(record);
}

static bool has_state(const struct v2_record *record, long count, const char *key,
                      const char *value, int type)
{
    for (long i = 0; i < count; i++) {
        const struct seen *seen = &record->seen[i];
        if (strcmp(seen->key, key) == 0 && strcmp(seen->value, value) == 0)
            return seen->initial && seen->type == type;
    }
    return false;
}

static void v2_state_has_nested_directories(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    ask("v2 PUT /s/a value=1");
    ask("v2 PUT /s/b/c value=2");
    ask("v2 PUT /s/b/d/e value=a%20%22quoted%22%20%C3%A4");
    ask("v2 PUT /s/b/c value=3 prevValue=2");
    ask("v2 PUT /s/empty dir=true");
    ask("v2 PUT /other value=x");
    vigil_v2_watch *watch = watch_all(client, "/s", record);
    latch_wait(&record->bookmarks, 1);
    CHECK(latch_count(&record->events) == 3);
    CHECK(has_state(record, 3, "/s/a", "1", VIGIL_OBJECT_ADDED));
    CHECK(has_state(record, 3, "/s/b/c", "3", VIGIL_OBJECT_MODIFIED));
    CHECK(has_state(record, 3, "/s/b/d/e", "a \"quoted\" \xc3\xa4", VIGIL_OBJECT_ADDED));
    CHECK(vigil_v2_watch_index(watch) == record->state_index && record->state_index > 0);
    ask("v2 PUT /s/z value=4");
    expect(record, 3, VIGIL_OBJECT_ADDED, "/s/z", "4");
    CHECK(!record->seen[3].initial && vigil_v2_watch_index(watch) == record->seen[3].index);
    finish(client, watch, record);
}

static void v2_actions_become_events(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch *watch = watch_all(client, "/e", record);
    latch_wait(&record->bookmarks, 1); /* the key does not exist */
    ask("v2 PUT /e/a value=1 prevExist=false");
    expect(record, 0, VIGIL_OBJECT_ADDED, "/e/a", "1");
    ask("v2 PUT /e/a value=2");
    expect(record, 1, VIGIL_OBJECT_MODIFIED, "/e/a", "2");
    ask("v2 PUT /e/a value=3 prevExist=true"); /* update */
    expect(record, 2, VIGIL_OBJECT_MODIFIED, "/e/a", "3");
    ask("v2 PUT /e/a value=4 prevValue=3");
    expect(record, 3, VIGIL_OBJECT_MODIFIED, "/e/a", "4");
    ask("v2 DELETE /e/a");
    expect(record, 4, VIGIL_OBJECT_DELETED, "/e/a", "4");
    CHECK(record->seen[4].index > record->seen[3].index);
    ask("v2 PUT /e/b value=5");
    expect(record, 5, VIGIL_OBJECT_ADDED, "/e/b", "5");
    ask("v2 DELETE /e/b prevValue=5");
    expect(record, 6, VIGIL_OBJECT_DELETED, "/e/b", "5");
    ask("v2 PUT /e/c value=6 ttl=1");
    expect(record, 7, VIGIL_OBJECT_ADDED, "/e/c", "6");
    expect(record, 8, VIGIL_OBJECT_DELETED, "/e/c", "6"); /* expire */
    ask("v2 POST /e value=7");
    latch_wait(&record->events, 10);
    CHECK(record->seen[9].type == VIGIL_OBJECT_ADDED && strcmp(record->seen[9].value, "7") == 0);
    finish(client, watch, record);
}

static int starts_with_yes(const vigil_object *object, void *user)
{
    (void)user;
    return object->value.size >= 3 && memcmp(object->value.data, "yes", 3) == 0;
}

static void v2_selection_before_and_after(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch_options options;
    vigil_v2_watch_options_init(&options);
    options.key = vigil_text("/p");
    options.recursive = 1;
    options.matches = starts_with_yes;
    ask("v2 PUT /p/state value=no");
    vigil_v2_watch *watch = watch_with(client, &options, record);
    latch_wait(&record->bookmarks, 1);
    ask("v2 PUT /p/a value=yes1");
    ask("v2 PUT /p/a value=yes2");
    ask("v2 PUT /p/a value=no");
    ask("v2 PUT /p/a value=no2");
    ask("v2 PUT /p/a value=yes3");
    ask("v2 DELETE /p/a");
    ask("v2 DELETE /p/state");
    ask("v2 PUT /p/b value=yes4");
    expect(record, 0, VIGIL_OBJECT_ADDED, "/p/a", "yes1");
    expect(record, 1, VIGIL_OBJECT_MODIFIED, "/p/a", "yes2");
    expect(record, 2, VIGIL_OBJECT_DELETED, "/p/a", "yes2");
    CHECK(record->seen[2].index > record->seen[1].index);
    expect(record, 3, VIGIL_OBJECT_ADDED, "/p/a", "yes3");
    expect(record, 4, VIGIL_OBJECT_DELETED, "/p/a", "yes3");
    expect(record, 5, VIGIL_OBJECT_ADDED, "/p/b", "yes4");
    finish(client, watch, record);
}

static int decode(vigil_object *object, vigil_error *error, void *user)
{
    struct v2_record *record = user;
    (void)error;
    if (object->value.size >= 3 && memcmp(object->value.data, "bad", 3) == 0)
        return 1;
    object->decoded = &record->released;
    record->decoded++;
    return 0;
}

static void release(void *decoded)
{
    ++*(long *)decoded;
}

static int is_included(vigil_bytes key, void *user)
{
    (void)user;
    return !bytes_equal(key, "/b/hidden");
}

static void v2_bad_values_are_skipped_and_counted(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch_options options;
    vigil_v2_watch_stats stats;
    vigil_v2_watch_options_init(&options);
    options.key = vigil_text("/b");
    options.recursive = 1;
    options.include = is_included;
    options.decode = decode;
    options.release = release;
    ask("v2 PUT /b/state value=bad");
    vigil_v2_watch *watch = watch_with(client, &options, record);
    latch_wait(&record->bookmarks, 1);
    CHECK(latch_count(&record->events) == 0);
    ask("v2 PUT /b/a value=1");
    ask("v2 PUT /b/a value=bad"); /* skipped */
    ask("v2 PUT /b/a value=2");   /* what was before cannot be decoded */
    ask("v2 PUT /b/hidden value=3");
    ask("v2 PUT /b/dir dir=true"); /* skipped */
    ask("v2 DELETE /b/state");     /* skipped */
    ask("v2 PUT /b/c value=4");
    expect(record, 0, VIGIL_OBJECT_ADDED, "/b/a", "1");
    expect(record, 1, VIGIL_OBJECT_ADDED, "/b/a", "2");
    expect(record, 2, VIGIL_OBJECT_ADDED, "/b/c", "4");
    vigil_v2_watch_get_stats(watch, &stats, sizeof(stats));
    CHECK(stats.bad_values == 3 && stats.skipped == 1 && stats.filtered == 1);
    CHECK(stats.events == 3 && stats.queued_max >= 1);
    finish(client, watch, record);
}

static void v2_watch_continues_after_an_index(void)
{
    struct v2_record *record = record_new(), *second = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch_options options;
    vigil_v2_watch *watch = watch_all(client, "/i", record);
    latch_wait(&record->bookmarks, 1);
    for (int i = 0; i < 3; i++)
        ask("v2 PUT /i/a value=1");
    latch_wait(&record->events, 3);
    vigil_v2_watch_options_init(&options);
    options.key = vigil_text("/i/a");
    options.index = record->seen[0].index;
    vigil_v2_watch *other = watch_with(client, &options, second);
    expect(second, 0, VIGIL_OBJECT_MODIFIED, "/i/a", "1");
    expect(second, 1, VIGIL_OBJECT_MODIFIED, "/i/a", "1");
    CHECK(second->seen[0].index == record->seen[1].index && latch_count(&second->bookmarks) == 0);
    vigil_v2_watch_free(other);
    free(second);
    finish(client, watch, record);
}

/* The server keeps the last 1000 changes of all keys. */
static void v2_cleared_index_ends_with_410(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch_options options;
    vigil_v2_watch_options_init(&options);
    options.key = vigil_text("/c");
    options.index = 1;
    ask("v2 clear history");
    vigil_v2_watch *watch = watch_with(client, &options, record);
    latch_wait(&record->ended, 1);
    CHECK(record->error.status == 410 && strcmp(record->error.reason, "Expired") == 0);
    CHECK(record->error.compact_revision > 1000 &&
          record->error.error.code == VIGIL_ERROR_COMPACTED);
    CHECK(strstr(record->error.error.text, "401: The event in requested index is outdated"));
    CHECK(vigil_v2_watch_index(watch) == 1);
    finish(client, watch, record);
}

static void v2_other_errors_end_with_500(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    ask("v2 PUT /file value=1");
    vigil_v2_watch *watch = watch_all(client, "/file/below", record);
    latch_wait(&record->ended, 1);
    CHECK(record->error.status == 500 && strcmp(record->error.reason, "InternalError") == 0);
    CHECK(record->error.compact_revision == 0 && strstr(record->error.error.text, "104: "));
    finish(client, watch, record);
}

static void put_numbers(int from, int to)
{
    char text[64];
    for (int i = from; i < to; i++) {
        snprintf(text, sizeof(text), "v2 PUT /r/a value=%d", i);
        ask(text);
    }
}

static void expect_numbers(struct v2_record *record, int from, int to)
{
    char text[32];
    for (int i = from; i < to; i++) {
        snprintf(text, sizeof(text), "%d", i);
        expect(record, i, i ? VIGIL_OBJECT_MODIFIED : VIGIL_OBJECT_ADDED, "/r/a", text);
    }
}

static void v2_watch_survives_a_killed_server(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch_stats stats;
    vigil_v2_watch *watch = watch_all(client, "/r", record);
    latch_wait(&record->bookmarks, 1);
    put_numbers(0, 5);
    expect_numbers(record, 0, 5);
    ask("kill 0");
    ask("start");
    put_numbers(5, 10);
    expect_numbers(record, 5, 10);
    ask("restart");
    put_numbers(10, 15);
    expect_numbers(record, 10, 15);
    vigil_v2_watch_get_stats(watch, &stats, sizeof(stats));
    CHECK(stats.retries > 0 && latch_count(&record->bookmarks) == 1);
    finish(client, watch, record);
}

static void v2_watch_begins_before_the_server(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    ask("stop");
    vigil_v2_watch *watch = watch_all(client, "/r", record);
    ask("start");
    latch_wait(&record->bookmarks, 1);
    finish(client, watch, record);
}

static void v2_paused_watch_has_a_bounded_queue(void)
{
    enum { QUEUE_MAX = 10, CHANGES = 60 };
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch_options options;
    vigil_v2_watch_stats stats;
    vigil_v2_watch_options_init(&options);
    options.key = vigil_text("/r");
    options.recursive = 1;
    options.queue_max = QUEUE_MAX;
    record->pause = true;
    vigil_v2_watch *watch = watch_with(client, &options, record);
    latch_wait(&record->bookmarks, 1);
    put_numbers(0, CHANGES);
    do {
        vigil_v2_watch_get_stats(watch, &stats, sizeof(stats));
        usleep(1000);
    } while (stats.queued < QUEUE_MAX);
    CHECK(latch_count(&record->events) == 0 && stats.queued_max == QUEUE_MAX);
    CHECK(stats.requests == 1 + QUEUE_MAX && stats.queued_bytes > 0);
    while (latch_count(&record->events) < CHANGES) {
        vigil_v2_watch_resume(watch);
        usleep(1000);
    }
    expect_numbers(record, 0, CHANGES);
    vigil_v2_watch_get_stats(watch, &stats, sizeof(stats));
    CHECK(stats.queued_max == QUEUE_MAX);
    finish(client, watch, record);
}

static void v2_watch_may_be_freed_at_any_time(void)
{
    vigil_client *client = new_client();
    struct v2_record *record = record_new();
    ask("v2 PUT /f/a value=1");
    for (int i = 0; i < 200; i++) { /* before the start, or soon after */
        vigil_v2_watch *watch = watch_all(client, "/f", record);
        if (i % 2)
            usleep((useconds_t)(i * 20));
        vigil_v2_watch_free(watch);
    }
    struct v2_record *inside = record_new();
    inside->free_inside = true;
    (void)watch_all(client, "/f", inside);
    latch_wait(&inside->ended, 1);
    struct v2_record *last = record_new();
    vigil_v2_watch *watch = watch_all(client, "/f", last);
    latch_wait(&last->bookmarks, 1);
    vigil_client_shutdown(client);
    latch_wait(&last->ended, 1);
    CHECK(last->error.status == 0); /* the end of the client is not an error */
    struct v2_record *too_late = record_new();
    vigil_v2_watch *late = watch_all(client, "/f", too_late);
    latch_wait(&too_late->ended, 1);
    vigil_v2_watch_free(late);
    free(record);
    free(inside);
    free(too_late);
    finish(client, watch, last);
}

static void v2_wrong_arguments_are_refused(void)
{
    vigil_client *client = new_client();
    vigil_v2_watch *watch;
    vigil_v2_watch_options options;
    static char key[10000];
    vigil_v2_watch_options_init(&options);
    CHECK(vigil_v2_watch_new(client, &options, NULL, NULL, &watch) == VIGIL_ERROR_ARGUMENT);
    options.index = -1;
    CHECK(vigil_v2_watch_new(client, &options, on_batch, NULL, &watch) == VIGIL_ERROR_ARGUMENT);
    vigil_v2_watch_options_init(&options);
    options.key = vigil_bytes_of(key, sizeof(key));
    CHECK(vigil_v2_watch_new(client, &options, on_batch, NULL, &watch) == VIGIL_ERROR_ARGUMENT);
    vigil_v2_watch_options_init(&options);
    options.queue_max = 0;
    CHECK(vigil_v2_watch_new(client, &options, on_batch, NULL, &watch) == VIGIL_ERROR_ARGUMENT);
    vigil_client_free(client);
}

static void v2_wrong_user_ends_with_the_reason(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch *watch = watch_all(client, "/private", record);
    latch_wait(&record->ended, 1);
    CHECK(record->error.status == 500);
    CHECK(record->error.error.code == VIGIL_ERROR_UNAUTHENTICATED);
    finish(client, watch, record);
}

static void v2_response_has_a_limit(void)
{
    struct v2_record *record = record_new();
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.receive_bytes_max = 1000;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    ask("v2 long value");
    vigil_v2_watch *watch = watch_all(client, "/long", record);
    latch_wait(&record->ended, 1);
    CHECK(record->error.status == 500 && record->error.error.code == VIGIL_ERROR_TOO_LARGE);
    finish(client, watch, record);
}

/* Between client and server there is a proxy that breaks connections. */
static void v2_watch_loses_nothing_when_connections_break(void)
{
    struct v2_record *record = record_new();
    vigil_client *client = new_client();
    vigil_v2_watch *watch = watch_all(client, "/r", record);
    latch_wait(&record->bookmarks, 1);
    put_numbers(0, 300);
    expect_numbers(record, 0, 300);
    CHECK(record->count == 300);
    finish(client, watch, record);
}

const struct suite_test v2_tests[] = {
#define TEST(name)  \
    {               \
#name, name \
    }
    TEST(v2_state_has_nested_directories),
    TEST(v2_actions_become_events),
    TEST(v2_selection_before_and_after),
    TEST(v2_bad_values_are_skipped_and_counted),
    TEST(v2_watch_continues_after_an_index),
    TEST(v2_cleared_index_ends_with_410),
    TEST(v2_other_errors_end_with_500),
    TEST(v2_watch_survives_a_killed_server),
    TEST(v2_watch_begins_before_the_server),
    TEST(v2_paused_watch_has_a_bounded_queue),
    TEST(v2_watch_may_be_freed_at_any_time),
    TEST(v2_wrong_arguments_are_refused),
    TEST(v2_wrong_user_ends_with_the_reason),
    TEST(v2_response_has_a_limit),
    TEST(v2_watch_loses_nothing_when_connections_break),
    {NULL, NULL},
};
