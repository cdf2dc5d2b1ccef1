/*
 * The cases that etcd has for its watch service, under their names; clientv3_cases.txt has the
 * list. The originals speak the protocol themselves; here the library does it for them. "Synced"
 * watches begin now, "unsynced" ones in the past.
 */
#include "inbox.h"

/* The watch that the writer of this test writes for has received everything up to now. */
static void fence_key(vigil_client *writer, struct inbox *inbox, const char *key)
{
    put(writer, key, "fence");
    inbox_take_value(inbox, "fence");
}

struct range_case {
    const char *key, *range_end;
    size_t end_size;
    const char *written;
    int writes;
    bool matches;
};

static void watch_a_range(const struct range_case *test)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options(test->key, 0);
    options.range_end = vigil_bytes_of(test->range_end, test->end_size);
    inbox_open(&inbox, client, options);
    int64_t first = 0;
    for (int i = 0; i < test->writes; i++) {
        int64_t revision = put(writer, test->written, "bar");
        first = first ? first : revision;
    }
    for (int i = 0; test->matches && i < test->writes; i++) {
        struct delivery delivery = inbox_take_value(&inbox, "bar");
        CHECK(strcmp(delivery.key, test->written) == 0 && delivery.type == VIGIL_PUT);
        CHECK(delivery.create_revision == first && delivery.mod_revision == first + i);
        CHECK(delivery.version == i + 1 && delivery.header_revision >= first + i);
    }
    fence_key(writer, &inbox, *test->key ? test->key : "foo");
    inbox_close(&inbox);
    must(vigil_delete_prefix(writer, vigil_text("")));
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void v3_watch_from_current_revision(void)
{
    static const struct range_case cases[] = {
        {"foo", NULL, 0, "foo", 1, true},      {"helloworld", NULL, 0, "foo", 1, false},
        {"foo", "fop", 3, "fooLong", 1, true}, {"helloworld", "helloworle", 10, "foo", 1, false},
        {"", "\0", 1, "fooLong", 1, true},     {"foo", NULL, 0, "foo", 3, true},
        {"foo", "fop", 3, "foo", 3, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        watch_a_range(&cases[i]);
}

static void v3_watch_future_revision(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    int64_t future = put(client, "foo", "bar") + 10, revision;
    inbox_open(&inbox, client, watch_options("foo", future));
    do
        revision = put(client, "foo", "bar");
    while (revision < future);
    struct delivery delivery = inbox_take_value(&inbox, "bar");
    CHECK(delivery.mod_revision == future && delivery.event_count == 1);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void v3_watch_wrong_range(void)
{
    static const struct {
        const char *key, *range_end;
        bool refused;
    } cases[] = {{"a", "a", true}, {"b", "a", true}, {"foo", "", false}};
    vigil_client *client = new_client();
    int64_t revision = put(client, "x", "x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct inbox inbox;
        vigil_watch_options options = watch_options(cases[i].key, revision);
        options.range_end = cases[i].refused ? vigil_text(cases[i].range_end)
                                             : vigil_bytes_of("\0", 1); /* all keys from key on */
        options.created_notify = 1;
        inbox_begin(&inbox, client, &options);
        CHECK(inbox_take(&inbox).what ==
              (cases[i].refused ? VIGIL_WATCH_ENDED : VIGIL_WATCH_CREATED));
        inbox_close(&inbox);
    }
    vigil_client_free(client);
}

static void cancel(bool synced)
{
    vigil_client *client = new_client();
    struct inbox cancelled, kept;
    int64_t revision = put(client, "other", "x");
    wait_for_watchers(0);
    inbox_open(&cancelled, client, watch_options("foo", synced ? 0 : revision));
    inbox_open_key(&kept, client, "foo");
    vigil_watch_free(cancelled.watch);
    wait_for_watchers(1);
    fence_key(client, &kept, "foo");
    CHECK(inbox_is_empty(&cancelled));
    inbox_close(&kept);
    vigil_client_free(client);
}

static void v3_watch_cancel_synced(void)
{
    cancel(true);
}

static void v3_watch_cancel_unsynced(void)
{
    cancel(false);
}

static void *put_concurrently(void *user)
{
    for (int i = 0; i < 8; i++)
        put(user, "foo", "bar");
    return NULL;
}

/* A watch that begins while others write misses nothing after the revision of its creation. */
static void v3_watch_current_put_overlap(void)
{
    enum { WRITERS = 4, WATCHES = 30 };
    vigil_client *client = new_client(), *writer = direct_client();
    pthread_t threads[WRITERS];
    struct inbox inboxes[WATCHES];
    int64_t created[WATCHES];
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, put_concurrently, writer) == 0);
    for (int i = 0; i < WATCHES; i++)
        created[i] = inbox_open(&inboxes[i], client, prefix_options("foo", 0));
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    int64_t last = put(writer, "foo", "last");
    for (int i = 0; i < WATCHES; i++) {
        for (int64_t revision = created[i] + 1; revision <= last; revision++)
            CHECK(inbox_take_event(&inboxes[i]).mod_revision == revision);
        CHECK(inbox_is_empty(&inboxes[i]));
        inbox_close(&inboxes[i]);
    }
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void v3_watch_empty_key(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    inbox_open_key(&inbox, client, "foo");
    int64_t revision = put(client, "foo", "");
    struct delivery delivery = inbox_take_value(&inbox, "");
    CHECK(delivery.type == VIGIL_PUT && delivery.value_size == 0 && delivery.version == 1);
    CHECK(delivery.create_revision == revision && delivery.mod_revision == revision);
    inbox_close(&inbox);
    vigil_client_free(client);
}

/* Some watches of a key, and one of a prefix that receives one more event. */
static void multiple_watchers(bool synced)
{
    enum { WATCHES = 5 };
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inboxes[WATCHES];
    int64_t revision = put(writer, "x", "x"), start = synced ? 0 : revision;
    for (int i = 0; i < WATCHES - 1; i++)
        inbox_open(&inboxes[i], client, watch_options("foo", start));
    inbox_open(&inboxes[WATCHES - 1], client, prefix_options("fo", start));
    put(writer, "foo", "bar");
    for (int i = 0; i < WATCHES; i++) {
        struct delivery delivery = inbox_take_value(&inboxes[i], "bar");
        CHECK(strcmp(delivery.key, "foo") == 0);
    }
    put(writer, "fo", "bar");
    struct delivery delivery = inbox_take_value(&inboxes[WATCHES - 1], "bar");
    CHECK(strcmp(delivery.key, "fo") == 0 && delivery.event_count == 1);
    put(writer, "foo", "end");
    for (int i = 0; i < WATCHES; i++) {
        inbox_take_value(&inboxes[i], "end");
        inbox_close(&inboxes[i]);
    }
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void v3_watch_multiple_watchers_synced(void)
{
    multiple_watchers(true);
}

static void v3_watch_multiple_watchers_unsynced(void)
{
    multiple_watchers(false);
}

static vigil_call *put_foos(vigil_client *client)
{
    vigil_txn *txn = vigil_txn_new(client);
    vigil_txn_put(txn, vigil_text("foo0"), vigil_text("bar"), 0);
    vigil_txn_put(txn, vigil_text("foo1"), vigil_text("bar"), 0);
    vigil_txn_put(txn, vigil_text("foo2"), vigil_text("bar"), 0);
    vigil_call *call = vigil_txn_call(txn);
    vigil_txn_free(txn);
    return call;
}

/* All events of a transaction have one revision and come in one batch. */
static void multiple_events_txn(bool synced)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    int64_t start = put(writer, "x", "x");
    inbox_open(&inbox, client, prefix_options("foo", synced ? 0 : start));
    int64_t revision = must(put_foos(writer));
    for (int i = 0; i < 3; i++) {
        struct delivery delivery = inbox_take_value(&inbox, "bar");
        CHECK(strncmp(delivery.key, "foo", 3) == 0 && delivery.key[3] == '0' + i);
        CHECK(delivery.mod_revision == revision && delivery.version == 1);
        CHECK(delivery.event_count == 3);
    }
    fence_key(writer, &inbox, "foo");
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void v3_watch_multiple_events_txn_synced(void)
{
    multiple_events_txn(true);
}

static void v3_watch_multiple_events_txn_unsynced(void)
{
    multiple_events_txn(false);
}

static void v3_watch_multiple_events_put_unsynced(void)
{
    static const char *const keys[] = {"foo0", "foo1", "foo0", "foo1"};
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    int64_t first = put(writer, "foo0", "bar");
    put(writer, "foo1", "bar");
    vigil_watch_options options = prefix_options("foo", first);
    inbox_begin(&inbox, client, &options);
    put(writer, "foo0", "bar");
    put(writer, "foo1", "bar");
    for (int i = 0; i < 4; i++) {
        struct delivery delivery = inbox_take_value(&inbox, "bar");
        CHECK(strcmp(delivery.key, keys[i]) == 0 && delivery.mod_revision == first + i);
        CHECK(delivery.create_revision == first + i % 2 && delivery.version == 1 + i / 2);
    }
    fence_key(writer, &inbox, "foo");
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

/* Progress tells the watch where it would resume; that must not repeat or lose an event. */
static void v3_watch_progress_on_member_restart(void)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    options.progress_notify = 1;
    inbox_open(&inbox, client, options);
    put(writer, "foo", "bar1");
    struct delivery delivery;
    do
        delivery = inbox_take(&inbox);
    while (delivery.what == VIGIL_WATCH_PROGRESS);
    CHECK(strcmp(delivery.value, "bar1") == 0);
    CHECK(inbox_take(&inbox).what == VIGIL_WATCH_PROGRESS);
    ask("restart");
    int64_t revision = put(writer, "foo", "bar2");
    do
        delivery = inbox_take(&inbox);
    while (delivery.what == VIGIL_WATCH_PROGRESS);
    CHECK(strcmp(delivery.value, "bar2") == 0 && delivery.mod_revision == revision);
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void multiple_streams(bool synced)
{
    enum { STREAMS = 5 };
    vigil_client *clients[STREAMS], *writer = direct_client();
    struct inbox inboxes[STREAMS];
    int64_t start = put(writer, "x", "x");
    for (int i = 0; i < STREAMS; i++) {
        clients[i] = new_client();
        inbox_open(&inboxes[i], clients[i], watch_options("foo", synced ? 0 : start));
    }
    int64_t revision = put(writer, "foo", "bar");
    put(writer, "foo", "end");
    for (int i = 0; i < STREAMS; i++) {
        struct delivery delivery = inbox_take_value(&inboxes[i], "bar");
        CHECK(delivery.mod_revision == revision && delivery.version == 1);
        inbox_take_value(&inboxes[i], "end");
        inbox_close(&inboxes[i]);
        vigil_client_free(clients[i]);
    }
    vigil_client_free(writer);
}

static void v3_watch_multiple_streams_synced(void)
{
    multiple_streams(true);
}

static void v3_watch_multiple_streams_unsynced(void)
{
    multiple_streams(false);
}

/* Only that one of two watches which requested progress gets it. */
static void watch_with_progress_notify(void)
{
    vigil_client *client = new_client();
    struct inbox with, without;
    int64_t revision = put(client, "x", "x");
    vigil_watch_options options = watch_options("foo", revision);
    inbox_open(&without, client, options);
    options.progress_notify = 1;
    inbox_open(&with, client, options);
    for (int i = 0; i < 2; i++) {
        struct delivery delivery = inbox_take(&with);
        CHECK(delivery.what == VIGIL_WATCH_PROGRESS && delivery.revision == revision);
    }
    CHECK(inbox_is_empty(&without));
    inbox_close(&with);
    inbox_close(&without);
    vigil_client_free(client);
}

static void *open_and_close_watches(void *user)
{
    vigil_client *client = new_client();
    vigil_watch_options options = watch_options("a", 0);
    struct inbox inboxes[10];
    (void)user;
    for (int i = 0; i < 10; i++)
        inbox_begin(&inboxes[i], client, &options);
    for (int i = 0; i < 10; i++)
        inbox_close(&inboxes[i]);
    vigil_client_free(client);
    return NULL;
}

static void v3_watch_close(void)
{
    enum { STREAMS = 10 };
    pthread_t threads[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        CHECK(pthread_create(&threads[i], NULL, open_and_close_watches, NULL) == 0);
    ask("drop");
    for (int i = 0; i < STREAMS; i++)
        pthread_join(threads[i], NULL);
    wait_for_watchers(0);
}

static void v3_watch_with_filter(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    options.no_put = 1;
    inbox_open(&inbox, client, options);
    put(client, "foo", "");
    int64_t revision = must(vigil_delete(client, vigil_text("foo")));
    struct delivery delivery = inbox_take_event(&inbox); /* the put was filtered */
    CHECK(delivery.type == VIGIL_DELETE && strcmp(delivery.key, "foo") == 0);
    CHECK(delivery.mod_revision == revision && delivery.create_revision == 0);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void v3_watch_with_prev_kv(void)
{
    static const char *const cases[][4] = {{"foo", "fop", "bar1", "bar2"},
                                           {"/abc", "/abd", "first", "second"}};
    vigil_client *client = new_client();
    for (int i = 0; i < 2; i++) {
        struct inbox inbox;
        vigil_watch_options options = watch_options(cases[i][0], 0);
        options.range_end = vigil_text(cases[i][1]);
        options.prev_kv = 1;
        put(client, cases[i][0], cases[i][2]);
        inbox_open(&inbox, client, options);
        put(client, cases[i][0], cases[i][3]);
        struct delivery delivery = inbox_take_value(&inbox, cases[i][3]);
        CHECK(delivery.has_prev && strcmp(delivery.prev_value, cases[i][2]) == 0);
        inbox_close(&inbox);
    }
    vigil_client_free(client);
}

static void cancel_a_thousand(vigil_client *client)
{
    vigil_watch_options options = watch_options("/foo", 0);
    for (int i = 0; i < 1000; i++) {
        struct inbox inbox;
        inbox_begin(&inbox, client, &options);
        inbox_close(&inbox);
    }
}

static void v3_watch_cancellation(void)
{
    vigil_client *client = new_client();
    struct inbox kept;
    wait_for_watchers(0);
    inbox_open_key(&kept, client, "/foo");
    cancel_a_thousand(client);
    fence_key(client, &kept, "/foo");
    wait_for_watchers(1);
    inbox_close(&kept);
    vigil_client_free(client);
}

static void v3_watch_close_cancel_race(void)
{
    vigil_client *client = new_client();
    wait_for_watchers(0);
    cancel_a_thousand(client);
    put(client, "x", "x");
    wait_for_watchers(0);
    vigil_client_free(client);
}

static void note_put(vigil_call *call, void *user)
{
    CHECK_CODE(call, VIGIL_OK);
    vigil_call_free(call);
    latch_add(user, 1);
}

static void v3_watch_progress_waits_for_sync(void)
{
    enum { PUTS = 1001 };
    static struct latch completed = LATCH_INIT;
    vigil_client *client = new_client();
    struct inbox inbox;
    bool early = progress_is_early(client);
    int64_t first = put(client, "foo", "bar");
    for (int i = 1; i < PUTS; i++) {
        vigil_call *call = vigil_put(client, vigil_text("foo"), vigil_text("bar"), 0);
        CHECK(vigil_call_start(call, note_put, &completed) == VIGIL_OK);
    }
    latch_wait(&completed, PUTS - 1);
    int64_t last = first + PUTS - 1;
    vigil_watch_options options = watch_options("foo", first);
    inbox_begin(&inbox, client, &options);
    vigil_watch_request_progress(inbox.watch);
    for (int64_t revision = first; revision <= last;) {
        struct delivery delivery = inbox_take(&inbox);
        if (delivery.what == VIGIL_WATCH_PROGRESS)
            CHECK(early && delivery.revision < revision);
        else
            CHECK(delivery.mod_revision == revision++);
    }
    vigil_watch_request_progress(inbox.watch);
    struct delivery delivery = inbox_take(&inbox);
    CHECK(delivery.what == VIGIL_WATCH_PROGRESS && delivery.revision == last);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void v3_watch_progress_waits_for_sync_no_events(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    int64_t revision = put(client, "bar", "1");
    vigil_watch_options options = watch_options("foo", revision);
    inbox_begin(&inbox, client, &options);
    do { /* a server may ignore requests until the watch has caught up */
        vigil_watch_request_progress(inbox.watch);
        put(client, "bar", "2");
    } while (inbox_is_empty(&inbox));
    struct delivery delivery = inbox_take(&inbox);
    CHECK(delivery.what == VIGIL_WATCH_PROGRESS && delivery.header_revision >= revision);
    inbox_close(&inbox);
    vigil_client_free(client);
}

/* The watch is slow because its consumer has paused it: it gets events without a gap and then the
 * compaction, and never continues after the gap. */
static void v3_no_events_lost_on_compact(void)
{
    enum { PUTS = 300 };
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", put(writer, "foo", "bar"));
    options.buffer_bytes = 1000;
    inbox_open(&inbox, client, options);
    int64_t next = inbox_take_value(&inbox, "bar").mod_revision + 1, last = 0;
    inbox.pause = true;
    for (int i = 0; i < PUTS; i++)
        last = put(writer, "foo", "bar");
    wait_for_watchers(0); /* its buffer is full: it was cancelled at the server */
    must(vigil_compact(writer, last, 0));
    inbox.pause = false;
    vigil_watch_resume(inbox.watch);
    for (;;) {
        struct delivery delivery = inbox_take(&inbox);
        if (delivery.what == VIGIL_WATCH_ENDED) {
            CHECK(delivery.error.code == VIGIL_ERROR_COMPACTED && next < last);
            CHECK(delivery.compact_revision == last);
            break;
        }
        CHECK(delivery.what == VIGIL_WATCH_EVENTS && delivery.mod_revision == next++);
    }
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

#define CASE(name)  \
    {               \
#name, name \
    }

const struct suite_test ported_v3_watch_tests[] = {
    CASE(v3_watch_from_current_revision),
    CASE(v3_watch_future_revision),
    CASE(v3_watch_wrong_range),
    CASE(v3_watch_cancel_synced),
    CASE(v3_watch_cancel_unsynced),
    CASE(v3_watch_current_put_overlap),
    CASE(v3_watch_empty_key),
    CASE(v3_watch_multiple_watchers_synced),
    CASE(v3_watch_multiple_watchers_unsynced),
    CASE(v3_watch_multiple_events_txn_synced),
    CASE(v3_watch_multiple_events_txn_unsynced),
    CASE(v3_watch_multiple_events_put_unsynced),
    CASE(v3_watch_progress_on_member_restart),
    CASE(v3_watch_multiple_streams_synced),
    CASE(v3_watch_multiple_streams_unsynced),
    CASE(watch_with_progress_notify),
    CASE(v3_watch_close),
    CASE(v3_watch_with_filter),
    CASE(v3_watch_with_prev_kv),
    CASE(v3_watch_cancellation),
    CASE(v3_watch_close_cancel_race),
    CASE(v3_watch_progress_waits_for_sync),
    CASE(v3_watch_progress_waits_for_sync_no_events),
    CASE(v3_no_events_lost_on_compact),
    {NULL, NULL},
};
