#include "suite.h"

#include <unistd.h>

/* What a watch has delivered. */
struct record {
    struct latch events, created, progress, ended;
    int64_t last_revision;
    int64_t progress_revision;
    int64_t expected; /* the value of the next event, if values are numbers in order; -1: not */
    vigil_error error;
    int64_t compact_revision;
    bool pause; /* answer every batch with a pause */
    size_t batches;
};
#define RECORD_INIT                                                                             \
    {                                                                                           \
        LATCH_INIT, LATCH_INIT, LATCH_INIT, LATCH_INIT, 0, 0, -1, {0, 0, 0, 0, ""}, 0, false, 0 \
    }

static void note_event(struct record *record, const vigil_event *event)
{
    CHECK(event->kv->mod_revision >= record->last_revision);
    CHECK(event->kv->mod_revision > record->progress_revision);
    record->last_revision = event->kv->mod_revision;
    if (record->expected < 0)
        return;
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "%lld", (long long)record->expected++);
    CHECK(bytes_equal(event->kv->value, wanted)); /* nothing lost, repeated or reordered */
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct record *record = user;
    CHECK(vigil_watch_user(watch) == user);
    CHECK(latch_count(&record->ended) == 0);
    record->batches++;
    for (size_t i = 0; i < batch->event_count; i++)
        note_event(record, &batch->events[i]);
    if (batch->what == VIGIL_WATCH_ENDED) {
        record->error = *batch->error;
        record->compact_revision = batch->compact_revision;
        latch_add(&record->ended, 1);
    } else if (batch->what == VIGIL_WATCH_EVENTS) {
        CHECK(batch->event_count > 0 && batch->revision == record->last_revision);
        latch_add(&record->events, (long)batch->event_count);
    } else {
        CHECK(batch->event_count == 0 && batch->header);
        if (batch->what == VIGIL_WATCH_PROGRESS)
            record->progress_revision = batch->revision;
        latch_add(batch->what == VIGIL_WATCH_CREATED ? &record->created : &record->progress, 1);
    }
    return record->pause ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static vigil_watch *watch_with(vigil_client *client, struct record *record,
                               const vigil_watch_options *options)
{
    vigil_watch *watch = NULL;
    CHECK(vigil_watch_new(client, options, on_batch, record, &watch) == VIGIL_OK);
    return watch;
}

/* From a revision on, or from now on; then it returns once the watch exists. */
static vigil_watch *watch_key(vigil_client *client, const char *key, int64_t revision,
                              struct record *record)
{
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text(key);
    options.revision = revision;
    options.created_notify = 1;
    vigil_watch *watch = watch_with(client, record, &options);
    latch_wait(&record->created, 1);
    return watch;
}

static int64_t put_number(vigil_client *client, const char *key, long number)
{
    char text[32];
    snprintf(text, sizeof(text), "%ld", number);
    return put(client, key, text);
}

static void events_arrive_in_order(void)
{
    vigil_client *client = new_client();
    struct record record = RECORD_INIT;
    record.expected = 0;
    vigil_watch *watch = watch_key(client, "w", 0, &record);
    int64_t last = 0;
    for (long i = 0; i < 500; i++)
        last = put_number(client, "w", i);
    latch_wait(&record.events, 500);
    CHECK(record.last_revision == last && vigil_watch_revision(watch) == last);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static void watch_from_the_past(void)
{
    vigil_client *client = new_client();
    struct record record = RECORD_INIT;
    int64_t first = put_number(client, "past", 0);
    for (long i = 1; i < 300; i++)
        put_number(client, "past", i);
    record.expected = 0;
    vigil_watch *watch = watch_key(client, "past", first, &record);
    latch_wait(&record.events, 300);
    put_number(client, "past", 300);
    latch_wait(&record.events, 301);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static int check_filtered(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_event *event = &batch->events[i];
        CHECK(event->type == VIGIL_DELETE);
        CHECK(event->prev_kv && bytes_equal(event->prev_kv->value, "old"));
        CHECK(bytes_equal(event->kv->key, "f/1"));
    }
    latch_add((struct latch *)user, (long)batch->event_count);
    return VIGIL_WATCH_CONTINUE;
}

static void filters_and_previous_values(void)
{
    vigil_client *client = new_client();
    struct latch events = LATCH_INIT;
    vigil_watch_options options;
    vigil_watch *watch;
    int64_t revision = put(client, "f/1", "old");
    vigil_watch_options_init(&options);
    options.key = vigil_text("f/");
    options.prefix = 1;
    options.no_put = 1;
    options.prev_kv = 1;
    options.revision = revision;
    CHECK(vigil_watch_new(client, &options, check_filtered, &events, &watch) == VIGIL_OK);
    put(client, "f/2", "new");
    must(vigil_delete(client, vigil_text("f/1")));
    latch_wait(&events, 1);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

/* It would be too large again after every resume. */
static void event_over_the_limit_ends_the_watch(void)
{
    enum { BYTES = 200000 };
    static char value[BYTES];
    vigil_options options;
    vigil_client *client;
    struct record record = RECORD_INIT;
    default_options(&options);
    options.receive_bytes_max = BYTES / 2;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    vigil_watch *watch = watch_key(client, "wide", 0, &record);
    must(vigil_put(client, vigil_text("wide"), vigil_bytes_of(value, BYTES), 0));
    latch_wait(&record.ended, 1);
    CHECK(record.error.code == VIGIL_ERROR_TOO_LARGE);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static void compacted_watch_ends_with_the_revision(void)
{
    vigil_client *client = new_client();
    struct record record = RECORD_INIT;
    vigil_watch_options options;
    for (long i = 0; i < 10; i++)
        put_number(client, "c", i);
    int64_t revision = put(client, "c", "last");
    must(vigil_compact(client, revision, 1));
    vigil_watch_options_init(&options);
    options.key = vigil_text("c");
    options.revision = revision - 5;
    vigil_watch *watch = watch_with(client, &record, &options);
    latch_wait(&record.ended, 1);
    CHECK(record.error.code == VIGIL_ERROR_COMPACTED);
    CHECK(record.compact_revision == revision);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static void watch_resumes_after_a_restart(void)
{
    vigil_client *client = new_client(), *writer = new_client();
    struct record record = RECORD_INIT;
    record.expected = 0;
    vigil_watch *watch = watch_key(client, "r", 0, &record);
    long n = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++)
            put_number(writer, "r", n++);
        ask("restart");
        for (int i = 0; i < 50; i++)
            put_number(writer, "r", n++);
    }
    latch_wait(&record.events, n);
    CHECK(latch_count(&record.created) == 1); /* not again after a resume */
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.watches == 1);
    CHECK(stats.watch_events == (uint64_t)n);
    CHECK(stats.watch_resumes >= 1);
    vigil_watch_free(watch);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void thousand_watches_resume_after_a_restart(void)
{
    enum { WATCHES = 1000 };
    static struct record records[WATCHES];
    vigil_watch *watches[WATCHES];
    vigil_client *client = new_client();
    char key[32];
    for (int i = 0; i < WATCHES; i++) {
        vigil_watch_options options;
        records[i] = (struct record)RECORD_INIT;
        records[i].expected = 0;
        snprintf(key, sizeof(key), "t/%d", i);
        vigil_watch_options_init(&options);
        options.key = vigil_text(key);
        options.created_notify = 1;
        watches[i] = watch_with(client, &records[i], &options);
    }
    for (int i = 0; i < WATCHES; i++)
        latch_wait(&records[i].created, 1);
    for (long round = 0; round < 3; round++) {
        for (int i = 0; i < WATCHES; i++) {
            snprintf(key, sizeof(key), "t/%d", i);
            put_number(client, key, round);
        }
        if (round < 2)
            ask("restart");
    }
    for (int i = 0; i < WATCHES; i++) {
        latch_wait(&records[i].events, 3);
        vigil_watch_free(watches[i]);
    }
    vigil_client_free(client);
}

/* The buffer is small, so the watch is cancelled at the server and created again. */
static void paused_watch_loses_nothing(void)
{
    vigil_client *client = new_client();
    struct record paused = RECORD_INIT, other = RECORD_INIT;
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text("pause");
    options.created_notify = 1;
    options.buffer_bytes = 500;
    paused.expected = other.expected = 0;
    paused.pause = true;
    vigil_watch *watch = watch_with(client, &paused, &options);
    latch_wait(&paused.created, 1);
    vigil_watch *beside = watch_key(client, "pause", 0, &other);
    for (long i = 0; i < 200; i++)
        put_number(client, "pause", i);
    latch_wait(&other.events, 200);
    CHECK(latch_count(&paused.events) == 0);
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.queued_bytes <= 500);
    vigil_watch_stats behind, up_to_date;
    vigil_watch_get_stats(watch, &behind, sizeof(behind));
    vigil_watch_get_stats(beside, &up_to_date, sizeof(up_to_date));
    CHECK(behind.queued_bytes == stats.queued_bytes && behind.lag == 200);
    CHECK(up_to_date.queued_bytes == 0 && up_to_date.lag == 0 && up_to_date.resumes == 0);
    for (long seen = 0; seen < 200; seen = latch_count(&paused.events)) {
        vigil_watch_resume(watch); /* delivers at least one batch, then pauses again */
        latch_wait(&paused.events, seen + 1);
    }
    vigil_watch_get_stats(watch, &behind, sizeof(behind));
    CHECK(behind.revision == up_to_date.revision && behind.lag == 0 && behind.resumes >= 1);
    vigil_watch_free(beside);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static void watches_can_be_freed_in_every_state(void)
{
    vigil_client *client = new_client();
    struct record record = RECORD_INIT, kept = RECORD_INIT;
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text("free");
    kept.expected = 0;
    vigil_watch *survivor = watch_key(client, "free", 0, &kept);
    for (int i = 0; i < 200; i++) {
        vigil_watch *watch = watch_with(client, &record, &options);
        if (i % 4 == 0)
            put_number(client, "free", i / 4);
        vigil_watch_free(watch); /* waiting, creating or live */
    }
    latch_wait(&kept.events, 50);
    ask("stop");
    for (int i = 0; i < 50; i++) {
        vigil_watch *watch = watch_with(client, &record, &options);
        vigil_watch_free(watch); /* while there is no connection */
    }
    ask("start");
    put_number(client, "free", 50);
    latch_wait(&kept.events, 51);
    vigil_client_stats stats;
    do
        vigil_client_get_stats(client, &stats, sizeof(stats));
    while (stats.watches != 1);
    vigil_watch_free(survivor);
    vigil_client_free(client);
}

/* More than the library cancels at a time. The others do not notice. */
static void thousands_of_watches_are_freed_at_once(void)
{
    enum { WATCHES = 6000 };
    static vigil_watch *watches[WATCHES];
    vigil_client *client = new_client();
    struct record record = RECORD_INIT, freed = RECORD_INIT;
    vigil_watch_options options;
    vigil_client_stats stats;
    vigil_watch_options_init(&options);
    options.key = vigil_text("many");
    options.created_notify = 1;
    for (int i = 0; i < WATCHES; i++)
        watches[i] = watch_with(client, &freed, &options);
    record.expected = 0;
    vigil_watch *survivor = watch_key(client, "one", 0, &record);
    latch_wait(&freed.created, WATCHES);
    for (int i = 0; i < WATCHES; i++)
        vigil_watch_free(watches[i]);
    for (long i = 0; i < 10; i++)
        put_number(client, "one", i);
    latch_wait(&record.events, 10);
    do {
        usleep(1000);
        vigil_client_get_stats(client, &stats, sizeof(stats));
    } while (stats.watches != 1); /* the server has confirmed all */
    CHECK(stats.watch_resumes == 0);
    vigil_watch_free(survivor);
    vigil_client_free(client);
}

static void paused_watch_receives_requested_progress(void)
{
    vigil_client *client = new_client();
    struct record paused = RECORD_INIT, other = RECORD_INIT;
    paused.pause = true;
    vigil_watch *watch = watch_key(client, "progress", 0, &paused);
    vigil_watch *beside = watch_key(client, "progress", 0, &other);
    put(client, "progress", "x");
    latch_wait(&other.events, 1);
    vigil_watch_request_progress(watch);
    latch_wait(&other.progress, 1);
    CHECK(latch_count(&paused.events) == 0 && latch_count(&paused.progress) == 0);
    vigil_watch_resume(watch);
    latch_wait(&paused.events, 1);
    vigil_watch_resume(watch);
    latch_wait(&paused.progress, 1);
    vigil_watch_free(watch);
    vigil_watch_free(beside);
    vigil_client_free(client);
}

static void progress_on_request(void)
{
    vigil_client *client = new_client();
    struct record record = RECORD_INIT;
    vigil_watch *watch = watch_key(client, "progress", 0, &record);
    int64_t revision = put(client, "elsewhere", "x");
    vigil_watch_request_progress(watch);
    latch_wait(&record.progress, 1);
    CHECK(record.progress_revision >= revision || progress_is_early(client));
    CHECK(record.progress_revision == vigil_watch_revision(watch)); /* it resumes after that */
    CHECK(latch_count(&record.events) == 0);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

/* While progress is requested, watches of the past begin on the same stream. Their events must not
 * come after progress that covers them, which note_event checks: the confirmation of a watch may
 * overtake answers to older requests, and old servers answer before they have sent the past. */
static void progress_never_covers_what_follows(void)
{
    enum { PUTS = 100, ROUNDS = 15, REQUESTS = 50 };
    vigil_client *client = new_client();
    struct record quiet = RECORD_INIT;
    vigil_watch *watch = watch_key(client, "quiet", 0, &quiet);
    int64_t last = 0;
    for (int i = 0; i < PUTS; i++)
        last = put(client, "past", "x");
    vigil_watch_request_progress(watch);
    latch_wait(&quiet.progress, 1); /* the version of the server is known */
    for (int round = 0; round < ROUNDS; round++) {
        struct record record = RECORD_INIT;
        vigil_watch_options options;
        vigil_watch_options_init(&options);
        options.key = vigil_text("past");
        options.revision = last - PUTS + 1;
        for (int i = 0; i < REQUESTS; i++) {
            vigil_watch_request_progress(watch);
            usleep(20);
        }
        vigil_watch *past = watch_with(client, &record, &options);
        while (latch_count(&record.events) < PUTS) {
            vigil_watch_request_progress(past);
            usleep(3000);
        }
        CHECK(record.last_revision == last);
        vigil_watch_free(past);
    }
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static void large_revisions_are_joined(void)
{
    enum { KEYS = 100, BYTES = 50000 };
    vigil_client *client = new_client();
    struct record record = RECORD_INIT;
    vigil_watch_options options;
    char *value = malloc(BYTES), key[32];
    memset(value, 'v', BYTES);
    vigil_watch_options_init(&options);
    options.key = vigil_text("frag/");
    options.prefix = 1;
    options.created_notify = 1;
    options.prev_kv = 1;
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "frag/%d", i);
        must(vigil_put(client, vigil_text(key), vigil_bytes_of(value, BYTES), 0));
    }
    vigil_watch *watch = watch_with(client, &record, &options);
    latch_wait(&record.created, 1);
    must(vigil_delete_prefix(client, vigil_text("frag/"))); /* 5 MB of previous values */
    latch_wait(&record.events, KEYS);
    CHECK(record.batches == 2); /* created, and one with everything */
    vigil_watch_free(watch);
    free(value);
    vigil_client_free(client);
}

/* etcd sends the past as one response in many fragments. */
static void past_may_exceed_the_receive_limit(void)
{
    enum { EVENTS = 30, BYTES = 300000 };
    static char value[BYTES];
    vigil_options options;
    vigil_client *client;
    struct record record = RECORD_INIT;
    int64_t first = 0;
    default_options(&options);
    options.receive_bytes_max = 10 * BYTES;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    for (int i = 0; i < EVENTS; i++) {
        vigil_call *call = vigil_put(client, vigil_text("wide"), vigil_bytes_of(value, BYTES), 0);
        int64_t revision = must(call);
        first = first ? first : revision;
    }
    vigil_watch *watch = watch_key(client, "wide", first, &record);
    latch_wait(&record.events, EVENTS);
    CHECK(latch_count(&record.ended) == 0 && record.last_revision == first + EVENTS - 1);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

const struct suite_test watch_tests[] = {
    {"past_may_exceed_the_receive_limit", past_may_exceed_the_receive_limit},
    {"events_arrive_in_order", events_arrive_in_order},
    {"watch_from_the_past", watch_from_the_past},
    {"filters_and_previous_values", filters_and_previous_values},
    {"event_over_the_limit_ends_the_watch", event_over_the_limit_ends_the_watch},
    {"compacted_watch_ends_with_the_revision", compacted_watch_ends_with_the_revision},
    {"watch_resumes_after_a_restart", watch_resumes_after_a_restart},
    {"thousand_watches_resume_after_a_restart", thousand_watches_resume_after_a_restart},
    {"paused_watch_loses_nothing", paused_watch_loses_nothing},
    {"watches_can_be_freed_in_every_state", watches_can_be_freed_in_every_state},
    {"thousands_of_watches_are_freed_at_once", thousands_of_watches_are_freed_at_once},
    {"paused_watch_receives_requested_progress", paused_watch_receives_requested_progress},
    {"progress_on_request", progress_on_request},
    {"progress_never_covers_what_follows", progress_never_covers_what_follows},
    {"large_revisions_are_joined", large_revisions_are_joined},
    {NULL, NULL},
};
