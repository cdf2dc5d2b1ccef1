/*
 * The cases of etcd's clientv3 for watches, under their names; clientv3_cases.txt has the list.
 * A closed channel of the original is a watch that was freed: it must not deliver anything more.
 * That nothing more comes is shown by a later event of the same stream, not by waiting.
 */
#include "inbox.h"

static void put_and_take(vigil_client *writer, struct inbox *inbox, const char *key,
                         const char *value)
{
    put(writer, key, value);
    inbox_take_value(inbox, value);
}

/* Everything that the server had to send on the stream of these watches has been received. */
static void fence(vigil_client *client)
{
    struct inbox inbox;
    inbox_open_key(&inbox, client, "fence");
    put_and_take(client, &inbox, "fence", "x");
    inbox_close(&inbox);
}

static void watch_multi_watcher(void)
{
    static const char *const keys[] = {"foo", "bar", "baz"};
    enum { UPDATES = 4 };
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox single[3], prefixed;
    char value[32];
    for (int i = 0; i < 3; i++)
        inbox_open_key(&single[i], client, keys[i]);
    inbox_open(&prefixed, client, prefix_options("b", 0));
    for (int update = 0; update < UPDATES; update++) {
        for (int i = 0; i < 3; i++) {
            snprintf(value, sizeof(value), "%s-%d", keys[i], update);
            put(writer, keys[i], value);
        }
    }
    put(writer, "bend", "end");
    for (int update = 0; update < UPDATES; update++) {
        for (int i = 0; i < 3; i++) {
            snprintf(value, sizeof(value), "%s-%d", keys[i], update);
            inbox_take_value(&single[i], value);
            if (*keys[i] == 'b')
                inbox_take_value(&prefixed, value);
        }
    }
    inbox_take_value(&prefixed, "end"); /* no other event before it */
    for (int i = 0; i < 3; i++) {
        CHECK(inbox_is_empty(&single[i]));
        inbox_close(&single[i]);
    }
    inbox_close(&prefixed);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void watch_range(void)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("a", 0);
    options.range_end = vigil_text("c");
    inbox_open(&inbox, client, options);
    put_and_take(writer, &inbox, "a", "a");
    put_and_take(writer, &inbox, "b", "b");
    put(writer, "c", "c");
    put_and_take(writer, &inbox, "bar", "bar");
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void watch_reconn_request(void)
{
    vigil_client *client = new_client(), *writer = direct_client();
    vigil_watch_options options = watch_options("a", 0);
    struct inbox inbox;
    options.created_notify = 1;
    inbox_begin(&inbox, client, &options);
    for (int i = 0; i < 20; i++)
        ask("drop");
    CHECK(inbox_take(&inbox).what == VIGIL_WATCH_CREATED);
    put_and_take(writer, &inbox, "a", "a");
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void reconnect(bool running)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    inbox_open_key(&inbox, client, "a");
    if (running)
        put_and_take(writer, &inbox, "a", "a");
    ask("drop");
    put_and_take(writer, &inbox, "a", "b");
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void watch_reconn_init(void)
{
    reconnect(false);
}

static void watch_reconn_running(void)
{
    reconnect(true);
}

static void watch_cancel_immediate(void)
{
    vigil_client *client = new_client();
    vigil_watch_options options = watch_options("a", 0);
    struct inbox inbox;
    options.created_notify = 1;
    inbox_begin(&inbox, client, &options);
    vigil_watch_free(inbox.watch);
    put(client, "a", "a");
    fence(client);
    CHECK(latch_count(&inbox.count) <= 1); /* created, if it was faster */
    vigil_client_free(client);
    inbox.watch = NULL;
    inbox_close(&inbox);
}

static void watch_cancel_init(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    inbox_open_key(&inbox, client, "a");
    vigil_watch_free(inbox.watch);
    put(client, "a", "a");
    fence(client);
    CHECK(inbox_is_empty(&inbox));
    vigil_client_free(client);
}

static void watch_cancel_running(void)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    inbox_open_key(&inbox, client, "a");
    put(writer, "a", "a");
    vigil_watch_free(inbox.watch);
    long count = latch_count(&inbox.count); /* with or without the event */
    CHECK(count <= 2);
    put(writer, "a", "b");
    fence(client);
    CHECK(latch_count(&inbox.count) == count);
    inbox.watch = NULL;
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

/* If a watch forgot where it begins, it would deliver a=4 first after the break, or nothing. */
static void resume_at_the_first_revision(const char *how)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    int64_t first = put(writer, "b", "2");
    put(writer, "a", "3");
    int64_t last = put(writer, "a", "4");
    CHECK(inbox_open(&inbox, client, watch_options("a", first)) >= last);
    ask(how);
    ask("release");
    inbox_take_value(&inbox, "3");
    inbox_take_value(&inbox, "4");
    put_and_take(writer, &inbox, "a", "5"); /* and nothing twice */
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void watch_resume_init_rev(void)
{
    resume_at_the_first_revision("drop");
}

static void watch_resume_after_disconnect(void)
{
    resume_at_the_first_revision("hold");
}

/* Until it is acknowledged: the cluster may be electing a leader. */
static void put_stubbornly(vigil_client *client, const char *key, const char *value)
{
    int code;
    do {
        vigil_call *call = vigil_put(client, vigil_text(key), vigil_text(value), 0);
        vigil_call_set_timeout(call, 2000);
        code = vigil_call_run(call);
        vigil_call_free(call);
    } while (code != VIGIL_OK);
}

/* The watch is at a member that is away while the revisions that it waits for are compacted. */
static void watch_resume_compacted(void)
{
    enum { PUTS = 5 };
    bool cluster = member_count() > 1;
    vigil_client *client = cluster ? client_of_member(0) : new_client();
    vigil_client *writer = cluster ? client_of_member(1) : direct_client();
    struct inbox inbox;
    int64_t next = put(writer, "foo", "first");
    inbox_open(&inbox, client, watch_options("foo", next));
    inbox_take_value(&inbox, "first");
    ask(cluster ? "kill 0" : "hold");
    for (int i = 0; i < PUTS; i++)
        put_stubbornly(writer, "foo", "bar");
    int64_t last = put(writer, "foo", "last");
    must(vigil_compact(writer, last - 1, 0));
    ask(cluster ? "start" : "release");
    for (;;) {
        struct delivery delivery = inbox_take(&inbox);
        if (delivery.what == VIGIL_WATCH_ENDED) {
            CHECK(delivery.error.code == VIGIL_ERROR_COMPACTED);
            CHECK(delivery.compact_revision == last - 1 && next + 1 < last);
            break;
        }
        /* A member that was behind sends everything before it compacts. */
        CHECK(delivery.mod_revision == ++next);
        if (next == last)
            break;
    }
    fence(client);
    CHECK(inbox_is_empty(&inbox));
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void watch_compact_revision(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    int64_t first = put(client, "foo", "bar");
    for (int i = 0; i < 4; i++)
        put(client, "foo", "bar");
    must(vigil_compact(client, first + 2, 0));
    vigil_watch_options options = watch_options("foo", first);
    inbox_begin(&inbox, client, &options);
    struct delivery end = inbox_take_end(&inbox, VIGIL_ERROR_COMPACTED);
    CHECK(end.compact_revision == first + 2);
    fence(client);
    CHECK(inbox_is_empty(&inbox));
    inbox_close(&inbox);
    vigil_client_free(client);
}

/* Progress comes by itself, then the put or progress with its revision. */
static void notify_progress(bool watch_on_put)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    options.progress_notify = 1;
    options.prefix = watch_on_put;
    inbox_begin(&inbox, client, &options);
    CHECK(inbox_take(&inbox).what == VIGIL_WATCH_PROGRESS);
    int64_t revision = put(client, "foox", "bar");
    struct delivery delivery;
    do
        delivery = inbox_take(&inbox);
    while (delivery.what == VIGIL_WATCH_PROGRESS && delivery.revision < revision);
    CHECK(delivery.what == (watch_on_put ? VIGIL_WATCH_EVENTS : VIGIL_WATCH_PROGRESS));
    CHECK(delivery.header_revision == revision && delivery.revision == revision);
    if (watch_on_put)
        CHECK(strcmp(delivery.key, "foox") == 0 && delivery.version == 1 &&
              delivery.create_revision == revision && delivery.mod_revision == revision);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void watch_with_progress_notify2(void)
{
    notify_progress(true);
}

static void watch_with_progress_notify_no_event(void)
{
    notify_progress(false);
}

/* The driver has configured a short interval for all servers. */
static void configurable_watch_progress_notify_interval(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    options.progress_notify = 1;
    inbox_begin(&inbox, client, &options);
    for (int i = 0; i < 2; i++)
        CHECK(inbox_take(&inbox).what == VIGIL_WATCH_PROGRESS);
    inbox_close(&inbox);
    vigil_client_free(client);
}

/* The original has a case without watches; here progress is requested of a watch. */
static void request_progress(int watches)
{
    vigil_client *client = new_client();
    struct inbox inboxes[2];
    for (int i = 0; i < watches; i++)
        inbox_open(&inboxes[i], client, prefix_options("/", 0));
    put(client, "/a", "1");
    for (int i = 0; i < watches; i++)
        inbox_take_value(&inboxes[i], "1");
    int64_t revision = put(client, "x", "1");
    vigil_watch_request_progress(inboxes[0].watch);
    for (int i = 0; i < watches; i++) {
        struct delivery delivery = inbox_take(&inboxes[i]);
        CHECK(delivery.what == VIGIL_WATCH_PROGRESS && delivery.header_revision == revision);
        CHECK(delivery.revision == revision || progress_is_early(client));
        inbox_close(&inboxes[i]);
    }
    vigil_client_free(client);
}

static void watch_request_progress(void)
{
    request_progress(1);
    request_progress(2);
}

/* A created key has the same two revisions, a modified one has not. */
static void check_type(struct inbox *inbox, int type, const char *key, bool created)
{
    struct delivery delivery = inbox_take_event(inbox);
    CHECK(delivery.type == type && strcmp(delivery.key, key) == 0);
    if (type == VIGIL_PUT)
        CHECK((delivery.create_revision == delivery.mod_revision) == created);
}

static void watch_event_type(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    inbox_open(&inbox, client, prefix_options("/", 0));
    put(client, "/toDelete", "foo");
    put(client, "/toDelete", "bar");
    must(vigil_delete(client, vigil_text("/toDelete")));
    vigil_call *call = vigil_lease_grant(client, 1, 0);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    must(vigil_put(client, vigil_text("/toExpire"), vigil_text("foo"),
                   vigil_lease_grant_result(call)->id));
    vigil_call_free(call);
    check_type(&inbox, VIGIL_PUT, "/toDelete", true);
    check_type(&inbox, VIGIL_PUT, "/toDelete", false);
    check_type(&inbox, VIGIL_DELETE, "/toDelete", false);
    check_type(&inbox, VIGIL_PUT, "/toExpire", true);
    check_type(&inbox, VIGIL_DELETE, "/toExpire", false);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void watch_err_conn_closed(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    inbox_begin(&inbox, client, &options);
    vigil_client_shutdown(client);
    inbox_take_end(&inbox, VIGIL_ERROR_CANCELED);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void watch_after_close(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    vigil_client_shutdown(client);
    inbox_begin(&inbox, client, &options);
    inbox_take_end(&inbox, VIGIL_ERROR_CANCELED);
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void watch_with_filter(void)
{
    vigil_client *client = new_client();
    struct inbox no_put, no_delete;
    vigil_watch_options options = watch_options("a", 0);
    options.no_put = 1;
    inbox_open(&no_put, client, options);
    options.no_put = 0;
    options.no_delete = 1;
    inbox_open(&no_delete, client, options);
    put(client, "a", "abc");
    must(vigil_delete(client, vigil_text("a")));
    struct delivery delivery = inbox_take_event(&no_put);
    CHECK(delivery.type == VIGIL_DELETE && delivery.event_count == 1);
    delivery = inbox_take_event(&no_delete);
    CHECK(delivery.type == VIGIL_PUT && delivery.event_count == 1);
    fence(client);
    CHECK(inbox_is_empty(&no_put) && inbox_is_empty(&no_delete));
    inbox_close(&no_put);
    inbox_close(&no_delete);
    vigil_client_free(client);
}

static void watch_with_created_notification(void)
{
    vigil_client *client = new_client();
    struct inbox with, without;
    vigil_watch_options options = watch_options("a", 0);
    inbox_begin(&without, client, &options);
    inbox_open_key(&with, client, "a"); /* requires that created comes first */
    put(client, "a", "x");
    inbox_take_value(&with, "x");
    inbox_take_value(&without, "x");
    inbox_close(&with);
    inbox_close(&without);
    vigil_client_free(client);
}

static void watch_with_created_notification_drop_conn(void)
{
    vigil_client *client = new_client(), *writer = direct_client();
    struct inbox inbox;
    inbox_open_key(&inbox, client, "a");
    ask("drop");
    put_and_take(writer, &inbox, "a", "x"); /* not created again */
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

/* Watches of different clients are on different streams. */
static void watch_mixed_prev_kv_on_same_key_separate_streams(void)
{
    enum { WATCHES = 10, WITH_PREVIOUS = 5, UPDATES = 10 };
    vigil_client *clients[WATCHES], *writer = direct_client();
    struct inbox inboxes[WATCHES];
    char value[32], previous[32] = "v0";
    put(writer, "prevkv-race-key", "v0");
    for (int i = 0; i < WATCHES; i++) {
        vigil_watch_options options = watch_options("prevkv-race-key", 0);
        options.prev_kv = i < WITH_PREVIOUS;
        clients[i] = new_client();
        inbox_open(&inboxes[i], clients[i], options);
    }
    for (int update = 1; update <= UPDATES; update++) {
        snprintf(value, sizeof(value), "v%d", update);
        put(writer, "prevkv-race-key", value);
        for (int i = 0; i < WATCHES; i++) {
            struct delivery delivery = inbox_take_value(&inboxes[i], value);
            CHECK(delivery.event_count == 1 && delivery.has_prev == (i < WITH_PREVIOUS));
            CHECK(!delivery.has_prev || strcmp(delivery.prev_value, previous) == 0);
        }
        memcpy(previous, value, sizeof(previous));
    }
    for (int i = 0; i < WATCHES; i++) {
        inbox_close(&inboxes[i]);
        vigil_client_free(clients[i]);
    }
    vigil_client_free(writer);
}

static void watch_cancel_on_server(void)
{
    enum { WATCHES = 10 };
    vigil_client *clients[WATCHES];
    struct inbox inboxes[WATCHES];
    char key[32];
    wait_for_watchers(0); /* those of the test before */
    for (int i = 0; i < WATCHES; i++) {
        snprintf(key, sizeof(key), "%d", i);
        clients[i] = new_client();
        inbox_open_key(&inboxes[i], clients[i], key);
    }
    wait_for_watchers(WATCHES);
    for (int i = 0; i < WATCHES; i++)
        inbox_close(&inboxes[i]);
    wait_for_watchers(0);
    for (int i = 0; i < WATCHES; i++)
        vigil_client_free(clients[i]);
}

/* -- A stream that closes with its last watch while the next watch is created -- */

struct overlap {
    vigil_client *client;
    int64_t revision;
    bool drop;
    unsigned seed;
};

static void drop_connections(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    ask("drop");
    pthread_mutex_unlock(&lock);
}

static void *overlap_watches(void *user)
{
    struct overlap *overlap = user;
    vigil_watch_options options = watch_options("abc", overlap->revision);
    struct inbox inboxes[2];
    bool open[2] = {false, false};
    for (int i = 0; i < 20; i++) {
        struct inbox *inbox = &inboxes[i % 2], *other = &inboxes[!(i % 2)];
        inbox_begin(inbox, overlap->client, &options);
        open[i % 2] = true;
        if (overlap->drop)
            drop_connections();
        if (rand_r(&overlap->seed) % 2 && open[!(i % 2)]) {
            inbox_close(other); /* before the new one has delivered */
            open[!(i % 2)] = false;
        }
        inbox_take_value(inbox, "def");
        if (open[!(i % 2)])
            inbox_close(other);
        open[!(i % 2)] = false;
        if (rand_r(&overlap->seed) % 2) {
            inbox_close(inbox); /* the last one: the stream closes */
            open[i % 2] = false;
        }
    }
    for (int i = 0; i < 2; i++)
        if (open[i])
            inbox_close(&inboxes[i]);
    return NULL;
}

static void overlap_context_cancel(bool drop)
{
    enum { STREAMS = 5 };
    struct overlap overlaps[STREAMS];
    pthread_t threads[STREAMS];
    vigil_client *writer = direct_client();
    int64_t revision = put(writer, "abc", "def");
    for (unsigned i = 0; i < STREAMS; i++) {
        overlaps[i] = (struct overlap){new_client(), revision, drop, i};
        CHECK(pthread_create(&threads[i], NULL, overlap_watches, &overlaps[i]) == 0);
    }
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
        vigil_client_free(overlaps[i].client);
    }
    vigil_client_free(writer);
}

static void watch_overlap_context_cancel(void)
{
    overlap_context_cancel(false);
}

static void watch_overlap_drop_conn_context_cancel(void)
{
    overlap_context_cancel(true);
}

/* -- Ends -- */

static void watch_cancel_and_close_client(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("abc", 0);
    inbox_begin(&inbox, client, &options);
    vigil_watch_free(inbox.watch);
    vigil_client_free(client);
    CHECK(inbox_is_empty(&inbox)); /* not even an end */
}

static void watch_stress_resume_close(void)
{
    enum { WATCHES = 2000 };
    static struct inbox inboxes[WATCHES];
    vigil_client *client = new_client();
    vigil_watch_options options = watch_options("abc", 0);
    for (int i = 0; i < WATCHES; i++)
        inbox_begin(&inboxes[i], client, &options);
    fence(client);
    ask("drop");
    for (int i = 0; i < WATCHES; i++)
        vigil_watch_free(inboxes[i].watch);
    vigil_client_free(client);
    for (int i = 0; i < WATCHES; i++)
        CHECK(inbox_is_empty(&inboxes[i]));
}

static void watch_cancel_disconnected(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_client_stats stats;
    inbox_open_key(&inbox, client, "abc");
    ask("stop");
    vigil_watch_free(inbox.watch);
    do
        vigil_client_get_stats(client, &stats, sizeof(stats));
    while (stats.watches != 0);
    CHECK(inbox_is_empty(&inbox));
    vigil_client_free(client);
}

static void watch_close(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    vigil_watch_options options = watch_options("a", 0);
    inbox_begin(&inbox, client, &options);
    vigil_watch_free(inbox.watch);
    vigil_client_shutdown(client);
    vigil_client_free(client);
    CHECK(inbox_is_empty(&inbox));
}

static int never_called(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch, (void)batch, (void)user;
    abort();
}

/* etcd calls a negative revision compacted; the library refuses it before it is sent. */
static void watch(void)
{
    vigil_client *client = new_client();
    struct inbox zero, positive;
    vigil_watch *refused = NULL;
    vigil_watch_options options = watch_options("/", -1);
    CHECK(vigil_watch_new(client, &options, never_called, NULL, &refused) == VIGIL_ERROR_ARGUMENT);
    CHECK(!refused);
    int64_t revision = put(client, "other", "x");
    inbox_open(&zero, client, watch_options("/", 0));
    inbox_open(&positive, client, watch_options("/", revision));
    fence(client);
    CHECK(inbox_is_empty(&zero) && inbox_is_empty(&positive));
    inbox_close(&zero);
    inbox_close(&positive);
    vigil_client_free(client);
}

static void namespace_watch(void)
{
    vigil_options options;
    vigil_client *client = new_client(), *inner;
    struct inbox outside, inside;
    default_options(&options);
    options.prefix = "foo/";
    CHECK(vigil_client_new(&options, &inner, NULL) == VIGIL_OK);
    int64_t revision = put(inner, "abc", "bar");
    inbox_open(&inside, inner, watch_options("abc", revision));
    inbox_open(&outside, client, watch_options("foo/abc", revision));
    struct delivery delivery = inbox_take_value(&inside, "bar");
    CHECK(strcmp(delivery.key, "abc") == 0 && delivery.mod_revision == revision);
    delivery = inbox_take_value(&outside, "bar");
    CHECK(strcmp(delivery.key, "foo/abc") == 0 && delivery.mod_revision == revision);
    inbox_close(&inside);
    inbox_close(&outside);
    vigil_client_free(inner);
    vigil_client_free(client);
}

/* -- Ten values of 1 MiB in one revision, with and without fragments -- */

static vigil_client *client_with_limit(size_t receive_bytes_max)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    if (receive_bytes_max)
        options.receive_bytes_max = receive_bytes_max;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    return client;
}

/* The values come as previous ones, because a request cannot have as many bytes. Servers differ in
 * how they divide what a watch from the past receives, but not in what belongs to a revision. */
static void receive_fragments(bool fragment, bool limited)
{
    enum { KEYS = 10, BYTES = 1 << 20 };
    vigil_client *writer = direct_client(),
                 *client = client_with_limit(limited ? BYTES * 3 / 2 : 0);
    vigil_watch_options options = prefix_options("foo", 0);
    struct inbox inbox;
    char *value = calloc(1, BYTES), key[32];
    CHECK(value);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "foo%d", i);
        options.revision =
            must(vigil_put(writer, vigil_text(key), vigil_bytes_of(value, BYTES), 0)) + 1;
    }
    options.prev_kv = 1;
    options.no_fragment = !fragment;
    inbox_open(&inbox, client, options);
    must(vigil_delete_prefix(writer, vigil_text("foo")));
    if (limited) /* the limit holds for a whole batch: a difference to clientv3 with fragments */
        inbox_take_end(&inbox, VIGIL_ERROR_TOO_LARGE);
    for (int i = 0; !limited && i < KEYS; i++) {
        struct delivery delivery = inbox_take_event(&inbox);
        CHECK(delivery.event_count == KEYS && delivery.prev_size == BYTES);
    }
    inbox_close(&inbox);
    free(value);
    vigil_client_free(client);
    vigil_client_free(writer);
}

static void watch_fragment_disable(void)
{
    receive_fragments(false, false);
}

static void watch_fragment_disable_with_grpc_limit(void)
{
    receive_fragments(false, true);
}

static void watch_fragment_enable(void)
{
    receive_fragments(true, false);
}

static void watch_fragment_enable_with_grpc_limit(void)
{
    receive_fragments(true, true);
}

#define CASE(name)  \
    {               \
#name, name \
    }

const struct suite_test ported_watch_tests[] = {
    CASE(watch_multi_watcher),
    CASE(watch_range),
    CASE(watch_reconn_request),
    CASE(watch_reconn_init),
    CASE(watch_reconn_running),
    CASE(watch_cancel_immediate),
    CASE(watch_cancel_init),
    CASE(watch_cancel_running),
    CASE(watch_resume_init_rev),
    CASE(watch_resume_after_disconnect),
    CASE(watch_resume_compacted),
    CASE(watch_compact_revision),
    CASE(watch_with_progress_notify2),
    CASE(watch_with_progress_notify_no_event),
    CASE(configurable_watch_progress_notify_interval),
    CASE(watch_request_progress),
    CASE(watch_event_type),
    CASE(watch_err_conn_closed),
    CASE(watch_after_close),
    CASE(watch_with_filter),
    CASE(watch_with_created_notification),
    CASE(watch_with_created_notification_drop_conn),
    CASE(watch_mixed_prev_kv_on_same_key_separate_streams),
    CASE(watch_cancel_on_server),
    CASE(watch_overlap_context_cancel),
    CASE(watch_overlap_drop_conn_context_cancel),
    CASE(watch_cancel_and_close_client),
    CASE(watch_stress_resume_close),
    CASE(watch_cancel_disconnected),
    CASE(watch_close),
    CASE(watch),
    CASE(namespace_watch),
    CASE(watch_fragment_disable),
    CASE(watch_fragment_disable_with_grpc_limit),
    CASE(watch_fragment_enable),
    CASE(watch_fragment_enable_with_grpc_limit),
    {NULL, NULL},
};
