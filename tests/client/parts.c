/* Calls whose answer comes in parts: ranges as streams and pages, snapshots, observed elections. */
#include "suite.h"

#include <unistd.h>
#include <vigil/poll.h>

enum { KEYS = 2500, MEDIUM_KEYS = 160, MEDIUM_BYTES = 64 << 10, LARGE_BYTES = 1 << 20 };

/* What a streamed call has delivered. */
struct parts {
    struct latch received, completed;
    long pause_at; /* the number of the part that is answered with a pause; 0: none */
    long keys;     /* in order: the next one has this number */
    bool with_values;
    size_t page_keys_max;
    uint64_t bytes;
    int64_t count, more; /* count and more of the last part of a range */
    char value[64];      /* value of the last leader */
    FILE *file;
};

static void parts_init(struct parts *parts)
{
    struct latch latch = LATCH_INIT;
    memset(parts, 0, sizeof(*parts));
    parts->received = parts->completed = latch;
    parts->with_values = true;
}

static int answer(struct parts *parts)
{
    latch_add(&parts->received, 1);
    return latch_count(&parts->received) == parts->pause_at ? VIGIL_PART_PAUSE
                                                            : VIGIL_PART_CONTINUE;
}

static int on_range(vigil_call *call, const vigil_range_response *part, void *user)
{
    struct parts *parts = user;
    CHECK(latch_count(&parts->completed) == 0);
    CHECK(vigil_call_error(call)->code == VIGIL_OK && !vigil_call_header(call));
    for (size_t i = 0; i < part->kv_count; i++) {
        char key[32];
        snprintf(key, sizeof(key), "k/%05ld", parts->keys++);
        CHECK(bytes_equal(part->kvs[i].key, key)); /* nothing lost, repeated or reordered */
        CHECK((part->kvs[i].value.size > 0) == parts->with_values);
        parts->bytes += part->kvs[i].value.size;
    }
    if (part->kv_count > parts->page_keys_max)
        parts->page_keys_max = part->kv_count;
    parts->count = part->count;
    parts->more = part->more;
    return answer(parts);
}

static int on_snapshot(vigil_call *call, const vigil_snapshot_part *part, void *user)
{
    struct parts *parts = user;
    (void)call;
    parts->bytes += part->blob.size;
    if (parts->file)
        CHECK(fwrite(part->blob.data, 1, part->blob.size, parts->file) == part->blob.size);
    return answer(parts);
}

static int on_leader(vigil_call *call, const vigil_leader_response *leader, void *user)
{
    struct parts *parts = user;
    (void)call;
    CHECK(leader->header && leader->kv->value.size < sizeof(parts->value));
    memcpy(parts->value, leader->kv->value.data, leader->kv->value.size);
    parts->value[leader->kv->value.size] = '\0';
    return answer(parts);
}

static void on_done(vigil_call *call, void *user)
{
    (void)call;
    latch_add(&((struct parts *)user)->completed, 1);
}

/* Waits for a callback, also in the program's loop. */
static void wait_for(vigil_client *client, struct latch *latch, long count)
{
    struct pollfd fd;
    while (vigil_client_fd(client) >= 0 && latch_count(latch) < count) {
        int timeout_ms = 60000;
        vigil_poll_prepare(client, &fd, &timeout_ms);
        CHECK(poll(&fd, 1, timeout_ms) > 0 || timeout_ms < 60000);
        vigil_client_process(client);
    }
    latch_wait(latch, count);
}

static void start(vigil_call *call, struct parts *parts)
{
    CHECK(vigil_call_start(call, on_done, parts) == VIGIL_OK);
}

static vigil_range_request all_keys(void)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("k/");
    request.range_end = vigil_text("k0");
    return request;
}

static void put_keys(vigil_client *client, long count, size_t value_bytes)
{
    char *value = malloc(value_bytes), key[32];
    memset(value, 'v', value_bytes);
    for (long i = 0; i < count;) {
        vigil_txn *txn = vigil_txn_new(client);
        for (size_t bytes = 0; i < count && bytes < (1u << 20) && (i % 100 || bytes == 0);
             i++, bytes += value_bytes) {
            snprintf(key, sizeof(key), "k/%05ld", i);
            vigil_txn_put(txn, vigil_text(key), vigil_bytes_of(value, value_bytes), 0);
        }
        must(vigil_txn_call(txn));
        vigil_txn_free(txn);
    }
    free(value);
}

/* The servers before etcd 3.7 have no such call, and then the test is over. */
static bool has_range_stream(vigil_client *client)
{
    struct parts parts;
    vigil_range_request request = all_keys();
    parts_init(&parts);
    request.limit = 1;
    vigil_call *call = vigil_range_stream(client, &request, on_range, &parts);
    bool has = vigil_call_run(call) != VIGIL_ERROR_UNIMPLEMENTED;
    CHECK_CODE(call, has ? VIGIL_OK : VIGIL_ERROR_UNIMPLEMENTED);
    vigil_call_free(call);
    return has;
}

/* -- Ranges -- */

static void range_comes_as_a_stream(void)
{
    struct parts parts;
    vigil_range_request request = all_keys();
    vigil_client *client = new_client();
    put_keys(client, KEYS, 100);
    if (!has_range_stream(client)) {
        vigil_client_free(client);
        return;
    }
    parts_init(&parts);
    vigil_call *call = vigil_range_stream(client, &request, on_range, &parts);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(parts.keys == KEYS && parts.count == KEYS && !parts.more);
    CHECK(latch_count(&parts.received) > 1 && vigil_call_header(call)->revision > 1);
    CHECK(vigil_range_result(call) == NULL); /* nothing is kept */
    vigil_call_resume(call);                 /* no effect */
    vigil_call_free(call);

    parts_init(&parts);
    parts.with_values = false;
    request.limit = 1234;
    request.keys_only = 1;
    call = vigil_range_stream(client, &request, on_range, &parts);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(parts.keys == 1234 && parts.more);
    vigil_call_free(call);

    request.sort_order = VIGIL_SORT_DESCEND;
    call = vigil_range_stream(client, &request, on_range, &parts);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_UNIMPLEMENTED);
    vigil_call_free(call);
    call = vigil_range_stream(client, &request, NULL, NULL);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_ARGUMENT);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void range_comes_in_pages(void)
{
    static const struct {
        int64_t limit;
        long pages;
    } cases[] = {{0, 3}, {KEYS, 1}, {KEYS - 1, 2}, {7, (KEYS + 6) / 7}};
    vigil_client *client = new_client();
    put_keys(client, KEYS, 100);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct parts parts;
        vigil_range_request request = all_keys();
        parts_init(&parts);
        parts.with_values = i % 2;
        request.keys_only = !parts.with_values;
        request.limit = cases[i].limit;
        request.sort_order = VIGIL_SORT_ASCEND;
        vigil_call *call = vigil_range_pages(client, &request, on_range, &parts);
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_OK);
        CHECK(parts.keys == KEYS && !parts.more && vigil_call_header(call)->revision > 1);
        CHECK(latch_count(&parts.received) == cases[i].pages);
        vigil_call_free(call);
    }
    vigil_client_free(client);
}

static void pages_of_few_keys_are_delivered_too(void)
{
    struct parts parts;
    vigil_range_request request = all_keys();
    vigil_client *client = new_client();
    parts_init(&parts);
    vigil_call *call = vigil_range_pages(client, &request, on_range, &parts);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(parts.keys == 0 && latch_count(&parts.received) == 1);
    vigil_call_free(call);
    put(client, "k/00000", "v");
    vigil_range_request_init(&request);
    request.key = vigil_text("k/00000");
    call = vigil_range_pages(client, &request, on_range, &parts);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(parts.keys == 1 && parts.count == 1);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void pages_refuse_another_order(void)
{
    vigil_client *client = new_client();
    for (int i = 0; i < 2; i++) {
        struct parts parts;
        vigil_range_request request = all_keys();
        parts_init(&parts);
        request.sort_order = i ? VIGIL_SORT_DESCEND : VIGIL_SORT_NONE;
        request.sort_target = i ? VIGIL_SORT_KEY : VIGIL_SORT_MOD;
        vigil_call *call = vigil_range_pages(client, &request, on_range, &parts);
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_ERROR_ARGUMENT);
        CHECK(strstr(vigil_call_error(call)->text, "order") && !latch_count(&parts.received));
        vigil_call_free(call);
    }
    vigil_client_free(client);
}

static vigil_call *pages_paused_at(vigil_client *client, struct parts *parts, long page)
{
    vigil_range_request request = all_keys();
    parts_init(parts);
    parts->pause_at = page;
    request.limit = 10;
    vigil_call *call = vigil_range_pages(client, &request, on_range, parts);
    start(call, parts);
    wait_for(client, &parts->received, page);
    return call;
}

static void pages_have_one_revision(void)
{
    struct parts parts;
    vigil_client *client = new_client();
    put_keys(client, 35, 10);
    vigil_call *call = pages_paused_at(client, &parts, 2);
    int64_t later = put(client, "k/00020x", "new");
    must(vigil_delete(client, vigil_text("k/00030")));
    CHECK(latch_count(&parts.received) == 2);
    vigil_call_resume(call);
    wait_for(client, &parts.completed, 1);
    CHECK_CODE(call, VIGIL_OK);
    CHECK(parts.keys == 35 && vigil_call_header(call)->revision == later - 1);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void compaction_between_pages_is_an_error(void)
{
    struct parts parts;
    vigil_client *client = new_client();
    put_keys(client, 35, 10);
    vigil_call *call = pages_paused_at(client, &parts, 2);
    must(vigil_compact(client, put(client, "k/00020", "new"), 1));
    vigil_call_resume(call);
    wait_for(client, &parts.completed, 1);
    CHECK_CODE(call, VIGIL_ERROR_COMPACTED);
    CHECK(parts.keys == 20 && !vigil_call_header(call));
    vigil_call_free(call);
    vigil_client_free(client);
}

static void pages_survive_a_restart(void)
{
    struct parts parts;
    vigil_client *client = new_client();
    put_keys(client, 35, 10);
    vigil_call *call = pages_paused_at(client, &parts, 2);
    ask("restart");
    vigil_call_resume(call);
    wait_for(client, &parts.completed, 1);
    CHECK_CODE(call, VIGIL_OK);
    CHECK(parts.keys == 35);
    vigil_call_free(call);
    vigil_client_free(client);
}

/* 40 values of 300 KB in pages of 16 would not be received: fewer keys are requested then. */
static void large_pages_become_smaller(void)
{
    enum { VALUE_BYTES = 300000, COUNT = 40 };
    struct parts parts;
    vigil_options options;
    vigil_client *client;
    vigil_range_request request = all_keys();
    default_options(&options);
    options.receive_bytes_max = 1000000;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    put_keys(client, COUNT, VALUE_BYTES);
    parts_init(&parts);
    request.limit = 16;
    vigil_call *call = vigil_range_pages(client, &request, on_range, &parts);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_OK);
    CHECK(parts.keys == COUNT && parts.page_keys_max == 2);
    vigil_call_free(call);

    vigil_client_free(client);
    options.receive_bytes_max = VALUE_BYTES; /* not even one */
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    parts_init(&parts);
    call = vigil_range_pages(client, &request, on_range, &parts);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_TOO_LARGE);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void streamed_calls_add_and_remove_the_prefix(void)
{
    vigil_options options;
    vigil_client *inner, *outer = new_client();
    default_options(&options);
    options.prefix = "team/";
    CHECK(vigil_client_new(&options, &inner, NULL) == VIGIL_OK);
    put_keys(inner, 35, 10);
    put(outer, "k/00001", "v");
    put(outer, "tean", "v");
    for (int i = has_range_stream(inner) ? 0 : 1; i < 2; i++) {
        struct parts parts;
        vigil_range_request request = all_keys();
        parts_init(&parts);
        request.range_end = vigil_bytes_of("", 1); /* everything, which ends with the prefix */
        request.limit = i ? 8 : 0;
        vigil_call *call = i ? vigil_range_pages(inner, &request, on_range, &parts)
                             : vigil_range_stream(inner, &request, on_range, &parts);
        vigil_call_run(call);
        CHECK_CODE(call, VIGIL_OK);
        CHECK(parts.keys == 35);
        vigil_call_free(call);
    }
    vigil_client_free(inner);
    vigil_client_free(outer);
}

/* -- Snapshots -- */

static void snapshot_is_a_file_of_etcd(void)
{
    struct parts parts;
    const char *path = getenv("VIGIL_SNAPSHOT_FILE");
    vigil_client *client = new_client();
    put_keys(client, KEYS, 1000);
    CHECK(path);
    parts_init(&parts);
    parts.file = fopen(path, "w");
    CHECK(parts.file);
    vigil_call *call = vigil_snapshot(client, on_snapshot, &parts);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_OK);
    CHECK(parts.bytes > KEYS * 1000 && parts.bytes % 512 == 32);
    CHECK(fclose(parts.file) == 0);
    vigil_call_free(call);
    ask("check-snapshot");
    vigil_client_free(client);
}

/* -- Pauses -- */

static int note_events(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    latch_add(user, (long)batch->event_count);
    return VIGIL_WATCH_CONTINUE;
}

/* 24 MiB by reads and 3 by a watch, while the streams could use a connection's window of 4 MiB. */
static void use_the_connection(vigil_client *client)
{
    static struct latch events = LATCH_INIT;
    vigil_watch_options options;
    vigil_watch *watch;
    char *value = malloc(LARGE_BYTES);
    memset(value, 'w', LARGE_BYTES);
    vigil_watch_options_init(&options);
    options.key = vigil_text("w");
    options.revision = put(client, "other", "x");
    CHECK(vigil_watch_new(client, &options, note_events, &events, &watch) == VIGIL_OK);
    for (int i = 0; i < 3; i++)
        must(vigil_put(client, vigil_text("w"), vigil_bytes_of(value, LARGE_BYTES), 0));
    for (int i = 0; i < 24; i++)
        must(vigil_get(client, vigil_text("w")));
    wait_for(client, &events, 3);
    vigil_watch_free(watch);
    free(value);
}

/* So many that their windows together exceed the connection's. */
enum { PAUSED_CALLS = 20, STREAM_WINDOW = 256 << 10 };

static void start_paused(vigil_client *client, bool as_snapshot, struct parts *parts,
                         vigil_call **ret_call)
{
    vigil_range_request request = all_keys();
    parts_init(parts);
    parts->pause_at = 1;
    *ret_call = as_snapshot ? vigil_snapshot(client, on_snapshot, parts)
                            : vigil_range_stream(client, &request, on_range, parts);
    start(*ret_call, parts);
}

static void paused_calls_leave_the_connection_to_others(void)
{
    struct parts parts[PAUSED_CALLS];
    vigil_call *calls[PAUSED_CALLS];
    vigil_client *client = new_client();
    vigil_client_stats stats, before;
    uint64_t expected = 28u << 20; /* by use_the_connection */
    put_keys(client, MEDIUM_KEYS, MEDIUM_BYTES);
    bool streams = has_range_stream(client);
    vigil_client_get_stats(client, &before, sizeof(before));
    for (int i = 0; i < PAUSED_CALLS; i++)
        start_paused(client, i < 2 || !streams, &parts[i], &calls[i]);
    for (int i = 0; i < PAUSED_CALLS; i++) {
        wait_for(client, &parts[i].received, 1);
        expected += parts[i].bytes + STREAM_WINDOW + STREAM_WINDOW / 8;
    }
    use_the_connection(client);
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.queued_bytes > 0 && stats.queued_bytes <= PAUSED_CALLS * STREAM_WINDOW);
    CHECK(stats.bytes_received - before.bytes_received < expected);
    for (int i = 0; i < 4; i++)
        vigil_call_resume(calls[i]);
    for (int i = 0; i < 4; i++) {
        wait_for(client, &parts[i].completed, 1);
        CHECK_CODE(calls[i], VIGIL_OK);
        CHECK(parts[i].bytes >= (uint64_t)MEDIUM_KEYS * MEDIUM_BYTES);
    }
    for (int i = 0; i < PAUSED_CALLS; i++) {
        CHECK(i < 4 || latch_count(&parts[i].received) == 1);
        vigil_call_free(calls[i]);
    }
    put(client, "end", "x");
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.queued_bytes == 0);
    vigil_client_free(client);
}

/* A part that was delivered is not delivered again: the call ends. */
static void broken_stream_is_not_repeated(void)
{
    struct parts parts;
    vigil_client *client = new_client();
    put_keys(client, MEDIUM_KEYS, MEDIUM_BYTES);
    parts_init(&parts);
    parts.pause_at = 1;
    vigil_call *call = vigil_snapshot(client, on_snapshot, &parts);
    start(call, &parts);
    wait_for(client, &parts.received, 1);
    ask("restart");
    must(vigil_get(client, vigil_text("x"))); /* over the next connection */
    CHECK(latch_count(&parts.received) == 1 && latch_count(&parts.completed) == 0);
    vigil_call_resume(call);
    wait_for(client, &parts.completed, 1);
    CHECK_CODE(call, VIGIL_ERROR_UNAVAILABLE);
    CHECK(parts.bytes < (uint64_t)MEDIUM_KEYS * MEDIUM_BYTES && !vigil_call_header(call));
    vigil_call_free(call);
    vigil_client_free(client);
}

/* The driver has set the server's --response-stall-timeout to a second. */
static void stream_that_is_paused_for_long_is_ended(void)
{
    struct parts parts;
    vigil_client *client = new_client();
    put_keys(client, MEDIUM_KEYS, MEDIUM_BYTES);
    parts_init(&parts);
    parts.pause_at = 1;
    vigil_call *call = vigil_snapshot(client, on_snapshot, &parts);
    start(call, &parts);
    wait_for(client, &parts.received, 1);
    sleep(4);
    vigil_call_resume(call);
    wait_for(client, &parts.completed, 1);
    CHECK_CODE(call, VIGIL_ERROR_UNAVAILABLE);
    put(client, "x", "1");
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.connects == 1); /* only the stream was ended */
    vigil_call_free(call);
    vigil_client_free(client);
}

static void stream_without_parts_times_out(void)
{
    struct parts parts;
    vigil_client *client = new_client();
    put(client, "x", "1");
    ask("pause");
    parts_init(&parts);
    vigil_call *call = vigil_snapshot(client, on_snapshot, &parts);
    vigil_call_set_timeout(call, 300);
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_TIMEOUT);
    vigil_call_free(call);
    ask("continue");
    vigil_client_free(client);
}

/* -- Ending inside a callback -- */

enum ending { CANCEL, FREE, FREE_CLIENT, SHUTDOWN, RESUME, ENDINGS };

struct end_case {
    struct parts parts;
    enum ending ending;
    vigil_client *client;
};

static int end_inside(vigil_call *call, const vigil_range_response *part, void *user)
{
    struct end_case *end = user;
    (void)part;
    CHECK(vigil_call_run(call) == VIGIL_ERROR_WOULD_BLOCK);
    if (end->ending == CANCEL)
        vigil_call_cancel(call);
    else if (end->ending == FREE)
        vigil_call_free(call);
    else if (end->ending == FREE_CLIENT)
        vigil_client_free(end->client);
    else if (end->ending == SHUTDOWN)
        vigil_client_shutdown(end->client);
    else
        vigil_call_resume(call); /* before the pause */
    latch_add(&end->parts.received, 1);
    return end->ending == RESUME ? VIGIL_PART_PAUSE : VIGIL_PART_CONTINUE;
}

static void end_one(enum ending ending, bool pages)
{
    struct end_case end;
    vigil_options options;
    vigil_range_request request = all_keys();
    parts_init(&end.parts);
    end.ending = ending;
    request.limit = pages ? 500 : 0;
    default_options(&options);
    options.own_thread = 1;
    CHECK(vigil_client_new(&options, &end.client, NULL) == VIGIL_OK);
    vigil_call *call = pages ? vigil_range_pages(end.client, &request, end_inside, &end)
                             : vigil_range_stream(end.client, &request, end_inside, &end);
    start(call, &end.parts);
    latch_wait(&end.parts.received, 1);
    bool completes = ending != FREE;
    if (completes)
        latch_wait(&end.parts.completed, 1);
    if (ending == CANCEL || ending == SHUTDOWN)
        CHECK_CODE(call, VIGIL_ERROR_CANCELED);
    if (ending == FREE)
        put(end.client, "after", "x"); /* what was under way is over */
    if (ending == RESUME)
        CHECK(latch_count(&end.parts.received) > 2);
    else if (ending != SHUTDOWN)
        CHECK(latch_count(&end.parts.received) == 1);
    if (ending != FREE)
        vigil_call_free(call);
    if (ending != FREE_CLIENT)
        vigil_client_free(end.client);
    CHECK(latch_count(&end.parts.completed) == completes);
}

static void streamed_calls_may_end_inside_their_callback(void)
{
    vigil_client *client = new_client();
    put_keys(client, KEYS, 100);
    bool streams = has_range_stream(client);
    for (int i = 0; i < ENDINGS; i++) {
        end_one((enum ending)i, true);
        if (streams)
            end_one((enum ending)i, false);
    }
    vigil_client_free(client);
}

/* A call that is paused ends when it is cancelled, when it is freed, and with its client. */
static void paused_calls_may_end(void)
{
    vigil_client *client = new_client();
    put_keys(client, 35, LARGE_BYTES / 4);
    for (int i = 0; i < 6; i++) {
        struct parts parts;
        vigil_client *other = new_client();
        parts_init(&parts);
        parts.pause_at = 1;
        vigil_call *call =
            i % 2 ? pages_paused_at(other, &parts, 1) : vigil_snapshot(other, on_snapshot, &parts);
        if (i % 2 == 0)
            start(call, &parts);
        wait_for(other, &parts.received, 1);
        if (i / 2 == 0)
            vigil_call_cancel(call);
        else if (i / 2 == 1)
            vigil_client_shutdown(other);
        if (i / 2 < 2) {
            wait_for(other, &parts.completed, 1);
            CHECK_CODE(call, VIGIL_ERROR_CANCELED);
            vigil_call_resume(call);
        }
        vigil_call_free(call);
        vigil_client_free(other);
        CHECK(latch_count(&parts.received) == 1);
    }
    vigil_client_free(client);
}

/* -- Through a proxy that breaks connections -- */

/* Pages continue after every break; a stream ends, and what it has delivered is the beginning of
 * the whole. */
static bool run_through_breaks(vigil_client *client, bool pages)
{
    struct parts parts;
    vigil_range_request request = all_keys();
    parts_init(&parts);
    request.limit = pages ? 20 : 0;
    vigil_call *call = pages ? vigil_range_pages(client, &request, on_range, &parts)
                             : vigil_range_stream(client, &request, on_range, &parts);
    bool succeeded = vigil_call_run(call) == VIGIL_OK;
    if (succeeded)
        CHECK(parts.keys == 150);
    else
        CHECK(!pages && vigil_call_error(call)->outcome == VIGIL_UNKNOWN && parts.keys > 0);
    vigil_call_free(call);
    return succeeded;
}

static void parts_are_delivered_once_when_connections_break(void)
{
    vigil_client *direct = direct_client(), *client = new_client();
    bool streams = has_range_stream(direct);
    put_keys(direct, 150, 20);
    for (int i = 0; i < 15; i++)
        CHECK(run_through_breaks(client, true));
    int broken = 0;
    for (int i = 0; streams && i < 30; i++)
        broken += !run_through_breaks(client, false);
    /* Over TLS the whole stream is one record, which arrives or does not. */
    bool secure = strncmp(getenv("VIGIL_ENDPOINTS"), "https", 5) == 0;
    CHECK(!streams || secure || (broken > 0 && broken < 30));
    vigil_client_free(client);
    vigil_client_free(direct);
}

/* -- Elections -- */

static int64_t new_lease(vigil_client *client)
{
    vigil_call *call = vigil_lease_grant(client, 600, 0);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    int64_t id = vigil_lease_grant_result(call)->id;
    vigil_call_free(call);
    return id;
}

static void observe(const char *prefix)
{
    struct parts parts;
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.prefix = prefix;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    parts_init(&parts);
    vigil_call *seen = vigil_observe(client, vigil_text("boss"), on_leader, &parts);
    start(seen, &parts);
    vigil_call *won =
        vigil_campaign(client, vigil_text("boss"), new_lease(client), vigil_text("one"));
    CHECK(vigil_call_run(won) == VIGIL_OK);
    wait_for(client, &parts.received, 1);
    CHECK(strcmp(parts.value, "one") == 0);
    const vigil_leader_key *leader = vigil_campaign_result(won)->leader;
    must(vigil_proclaim(client, leader, vigil_text("still one")));
    wait_for(client, &parts.received, 2);
    CHECK(strcmp(parts.value, "still one") == 0);
    ask("restart");
    must(vigil_get(client, vigil_text("x"))); /* over the next connection */
    must(vigil_proclaim(client, leader, vigil_text("again one")));
    wait_for(client, &parts.received, 3); /* the leader that was known before is not repeated */
    CHECK(strcmp(parts.value, "again one") == 0);
    must(vigil_resign(client, leader));
    vigil_call *next =
        vigil_campaign(client, vigil_text("boss"), new_lease(client), vigil_text("two"));
    CHECK(vigil_call_run(next) == VIGIL_OK);
    wait_for(client, &parts.received, 4);
    CHECK(strcmp(parts.value, "two") == 0);
    vigil_call_cancel(seen);
    wait_for(client, &parts.completed, 1);
    CHECK_CODE(seen, VIGIL_ERROR_CANCELED);
    must(vigil_resign(client, vigil_campaign_result(next)->leader));
    vigil_call_free(seen);
    vigil_call_free(won);
    vigil_call_free(next);
    vigil_client_free(client);
}

static void leaders_are_observed(void)
{
    observe(NULL);
}

static void leaders_are_observed_under_a_prefix(void)
{
    observe("team/");
}

const struct suite_test part_tests[] = {
    {"range_comes_as_a_stream", range_comes_as_a_stream},
    {"range_comes_in_pages", range_comes_in_pages},
    {"pages_of_few_keys_are_delivered_too", pages_of_few_keys_are_delivered_too},
    {"pages_refuse_another_order", pages_refuse_another_order},
    {"pages_have_one_revision", pages_have_one_revision},
    {"compaction_between_pages_is_an_error", compaction_between_pages_is_an_error},
    {"pages_survive_a_restart", pages_survive_a_restart},
    {"large_pages_become_smaller", large_pages_become_smaller},
    {"streamed_calls_add_and_remove_the_prefix", streamed_calls_add_and_remove_the_prefix},
    {"snapshot_is_a_file_of_etcd", snapshot_is_a_file_of_etcd},
    {"paused_calls_leave_the_connection_to_others", paused_calls_leave_the_connection_to_others},
    {"broken_stream_is_not_repeated", broken_stream_is_not_repeated},
    {"stream_without_parts_times_out", stream_without_parts_times_out},
    {"streamed_calls_may_end_inside_their_callback", streamed_calls_may_end_inside_their_callback},
    {"paused_calls_may_end", paused_calls_may_end},
    {"leaders_are_observed", leaders_are_observed},
    {"leaders_are_observed_under_a_prefix", leaders_are_observed_under_a_prefix},
    {NULL, NULL},
};

const struct suite_test part_access_tests[] = {
    {"stream_that_is_paused_for_long_is_ended", stream_that_is_paused_for_long_is_ended},
    {NULL, NULL},
};

const struct suite_test part_fault_tests[] = {
    {"parts_are_delivered_once_when_connections_break",
     parts_are_delivered_once_when_connections_break},
    {NULL, NULL},
};
