/* A vigil_v2_watch with a client in the program's loop, against a server that follows a script:
 * which events the actions become, batches, pauses, missing memory. */
#include "client/v2/v2_watch.h"

#include "base/failing_memory_test.h"
#include "client/v2/v2_server_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4096 };

struct world {
    struct loop *server_loop;
    struct v2_server server;
    char bodies[SCRIPT_MAX][TEXT_BYTES];
    size_t body_count;
    vigil_client *client;
    vigil_v2_watch *watch;
    vigil_v2_watch_options options;
    /* What the watch has delivered. */
    char events[TEXT_BYTES]; /* "ADDED /a=1@3 " … */
    size_t batches, batch_max, event_count;
    unsigned bookmarks, ended;
    int64_t index;
    vigil_object_error error;
    bool pauses, frees;
    long decoded, released;
};

#define OK_HEAD "HTTP/1.1 200 OK\r\nX-Etcd-Index: 10\r\n"

static void world_begin(struct world *w)
{
    *w = (struct world){0};
    must(network_loop_new(network_posix(), &w->server_loop) == ST_OK);
    server_listen(&w->server, network_posix(), w->server_loop);
    w->server.is_silent = true;
    vigil_v2_watch_options_init(&w->options);
    w->options.key = vigil_text("/");
    w->options.recursive = 1;
    w->options.index = 10;
}

/* The server waits after the last response of its script. */
static void answer_with(struct world *w, const char *format, ...)
{
    size_t n = w->body_count++;
    va_list args;
    must(n < SCRIPT_MAX);
    va_start(args, format);
    must(vsnprintf(w->bodies[n], TEXT_BYTES, format, args) < TEXT_BYTES);
    va_end(args);
    w->server.script[n] = (struct answer){.text = OK_HEAD, .body = w->bodies[n]};
}

static void world_fini(struct world *w)
{
    vigil_v2_watch_free(w->watch);
    vigil_client_free(w->client);
    server_fini(&w->server);
    loop_free(w->server_loop);
    assert_int_equal(w->decoded, w->released);
}

static void note(struct world *w, const vigil_object_event *event)
{
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    const vigil_object *o = &event->object;
    size_t len = strlen(w->events);
    w->event_count += event->type <= VIGIL_OBJECT_DELETED;
    w->bookmarks += event->type == VIGIL_OBJECT_BOOKMARK;
    if (event->type == VIGIL_OBJECT_ERROR)
        w->error = *event->error;
    if (event->type > VIGIL_OBJECT_DELETED || len > TEXT_BYTES - 200)
        return;
    snprintf(w->events + len, TEXT_BYTES - len, "%s%s %.*s=%.*s@%" PRId64, len ? ", " : "",
             names[event->type], (int)o->key.size, (const char *)o->key.data, (int)o->value.size,
             (const char *)o->value.data, o->revision);
}

static int on_batch(vigil_v2_watch *watch, vigil_object_batch *batch, void *user)
{
    struct world *w = user;
    assert_int_equal(w->ended, 0);
    w->batches++;
    w->ended += batch->ended;
    w->index = batch->revision;
    if (batch->event_count > w->batch_max)
        w->batch_max = batch->event_count;
    for (size_t i = 0; i < batch->event_count; i++)
        note(w, &batch->events[i]);
    if (w->frees) {
        vigil_v2_watch_free(watch);
        w->watch = NULL;
    }
    return w->pauses ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static int start(struct world *w)
{
    vigil_options options;
    char address[ADDRESS_TEXT_BYTES], url[ADDRESS_TEXT_BYTES + 16];
    vigil_options_init(&options);
    address_format(&w->server.listener.address, address);
    snprintf(url, sizeof(url), "http://%s", address);
    options.endpoints = url;
    options.own_thread = 0;
    options.backoff_min_ms = 1;
    options.backoff_max_ms = 10;
    int code = vigil_client_new(&options, &w->client, NULL);
    if (code == VIGIL_OK)
        code = vigil_v2_watch_new(w->client, &w->options, on_batch, w, &w->watch);
    return code;
}

static void turn(struct world *w)
{
    vigil_client_process(w->client);
    if (w->watch)
        v2_watch_check(w->watch);
    loop_turn(w->server_loop, NS_PER_MS / 10);
}

/* Until all responses of the script are delivered, and a poll waits; or until the watch has ended.
 */
static void run(struct world *w)
{
    for (int i = 0; i < 20000 && !w->ended; i++) {
        vigil_v2_watch_stats stats;
        turn(w);
        vigil_v2_watch_get_stats(w->watch, &stats, sizeof(stats));
        if (w->server.answered > w->body_count && stats.queued == 0)
            return;
    }
    assert_int_equal(w->ended, 1);
}

/* -- Actions -- */

struct row {
    const char *response;
    const char *events;
    unsigned skipped, bad_values, filtered;
};

#define NODE(value, modified, created)                                     \
    "{\"key\":\"/k\",\"value\":\"" value "\",\"modifiedIndex\":" #modified \
    ",\"createdIndex\":" #created "}"

static int decode(vigil_object *object, vigil_error *error, void *user)
{
    struct world *w = user;
    (void)error;
    if (object->value.size >= 3 && memcmp(object->value.data, "bad", 3) == 0)
        return 1;
    w->decoded++;
    object->decoded = &w->released;
    return 0;
}

static void release(void *decoded)
{
    ++*(long *)decoded;
}

static int matches(const vigil_object *object, void *user)
{
    (void)user;
    assert_non_null(object->decoded);
    return object->value.size >= 3 && memcmp(object->value.data, "yes", 3) == 0;
}

static int include(vigil_bytes key, void *user)
{
    (void)user;
    return key.size != 7 || memcmp(key.data, "/hidden", 7) != 0;
}

/* The cases of etcdWatcher's own test, and more. */
static const struct row rows[] = {
    /* get and create look at nothing but the node */
    {"{\"action\":\"create\",\"node\":" NODE("yes", 11, 11) "}", "ADDED /k=yes@11", 0, 0, 0},
    {"{\"action\":\"create\",\"node\":" NODE("yes", 12, 11) "}", "MODIFIED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"get\",\"node\":" NODE("yes", 12, 11) "}", "MODIFIED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"get\",\"node\":" NODE("yes", 11, 11) "}", "ADDED /k=yes@11", 0, 0, 0},
    {"{\"action\":\"create\",\"node\":" NODE("no", 11, 11) "}", "", 0, 0, 1},
    {"{\"action\":\"create\",\"node\":" NODE("bad", 11, 11) "}", "", 0, 1, 0},
    {"{\"action\":\"create\"}", "", 1, 0, 0},
    /* the others compare with what was before */
    {"{\"action\":\"set\",\"node\":" NODE("yes", 11, 11) "}", "ADDED /k=yes@11", 0, 0, 0},
    {"{\"action\":\"set\",\"node\":" NODE("yes2", 12, 12) ",\"prevNode\":" NODE("yes1", 11, 11) "}",
     "MODIFIED /k=yes2@12", 0, 0, 0},
    {"{\"action\":\"update\",\"node\":" NODE("yes2", 12, 11) ",\"prevNode\":" NODE("yes1", 11,
                                                                                   11) "}",
     "MODIFIED /k=yes2@12", 0, 0, 0},
    {"{\"action\":\"compareAndSwap\",\"node\":" NODE("yes", 12, 11) ",\"prevNode\":" NODE("no", 11,
                                                                                          11) "}",
     "ADDED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"compareAndSwap\",\"node\":" NODE("no", 12, 11) ",\"prevNode\":" NODE("yes", 11,
                                                                                         11) "}",
     "DELETED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"set\",\"node\":" NODE("no", 12, 12) ",\"prevNode\":" NODE("no", 11, 11) "}", "",
     0, 0, 1},
    {"{\"action\":\"set\",\"node\":" NODE("yes", 12, 12) ",\"prevNode\":" NODE("bad", 11, 11) "}",
     "ADDED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"set\",\"node\":" NODE("no", 12, 12) ",\"prevNode\":" NODE("bad", 11, 11) "}",
     "", 0, 0, 1},
    {"{\"action\":\"set\",\"node\":" NODE("bad", 12, 12) ",\"prevNode\":" NODE("yes", 11, 11) "}",
     "", 0, 1, 0},
    {"{\"action\":\"set\",\"node\":{\"key\":\"/k\",\"dir\":true,\"modifiedIndex\":12}}", "", 1, 0,
     0},
    {"{\"action\":\"set\",\"prevNode\":" NODE("yes", 11, 11) "}", "", 1, 0, 0},
    /* a deleted object has the index of its deletion */
    {"{\"action\":\"delete\",\"node\":{\"key\":\"/k\",\"modifiedIndex\":12},\"prevNode\":" NODE(
         "yes", 11, 11) "}",
     "DELETED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"expire\",\"node\":{\"key\":\"/k\",\"modifiedIndex\":12},\"prevNode\":" NODE(
         "yes", 11, 11) "}",
     "DELETED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"compareAndDelete\",\"node\":{\"key\":\"/k\",\"modifiedIndex\":12},"
     "\"prevNode\":" NODE("yes", 11, 11) "}",
     "DELETED /k=yes@12", 0, 0, 0},
    {"{\"action\":\"delete\",\"prevNode\":" NODE("yes", 11, 11) "}", "DELETED /k=yes@11", 0, 0, 0},
    {"{\"action\":\"delete\",\"node\":{\"modifiedIndex\":12},\"prevNode\":" NODE("no", 11, 11) "}",
     "", 0, 0, 1},
    {"{\"action\":\"delete\",\"node\":{\"modifiedIndex\":12},\"prevNode\":" NODE("bad", 11, 11) "}",
     "", 0, 1, 0},
    {"{\"action\":\"delete\",\"node\":{\"modifiedIndex\":12}}", "", 1, 0, 0},
    {"{\"action\":\"delete\",\"node\":{\"modifiedIndex\":12},\"prevNode\":{\"dir\":true}}", "", 1,
     0, 0},
    /* whatever else a server may say */
    {"{\"action\":\"rename\",\"node\":" NODE("yes", 11, 11) "}", "", 1, 0, 0},
    {"{\"action\":\"set\",\"node\":{\"key\":\"/"
     "hidden\",\"value\":\"bad\",\"modifiedIndex\":11}}",
     "", 0, 0, 1},
    {"{\"action\":\"set\",\"node\":{\"key\":\"/"
     "k\",\"value\":\"yes\\ud800\",\"modifiedIndex\":11}}",
     "", 0, 1, 0},
};

static void actions_become_the_events_of_the_original(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world w;
        vigil_v2_watch_stats stats;
        world_begin(&w);
        w.options.decode = decode;
        w.options.release = release;
        w.options.matches = matches;
        w.options.include = include;
        answer_with(&w, "%s", rows[i].response);
        assert_int_equal(start(&w), VIGIL_OK);
        run(&w);
        assert_string_equal(w.events, rows[i].events);
        vigil_v2_watch_get_stats(w.watch, &stats, sizeof(stats));
        assert_int_equal(stats.skipped, rows[i].skipped);
        assert_int_equal(stats.bad_values, rows[i].bad_values);
        assert_int_equal(stats.filtered, rows[i].filtered);
        assert_int_equal(stats.events, *rows[i].events != '\0');
        world_fini(&w);
    }
}

/* Without functions of the program every value is an object, also an empty one. */
static void everything_is_selected_by_default(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    answer_with(&w, "{\"action\":\"set\",\"node\":" NODE("", 11, 11) "}");
    answer_with(&w, "{\"action\":\"set\",\"node\":" NODE("x", 12,
                                                         12) ",\"prevNode\":" NODE("", 11, 11) "}");
    assert_int_equal(start(&w), VIGIL_OK);
    run(&w);
    assert_string_equal(w.events, "ADDED /k=@11, MODIFIED /k=x@12");
    assert_int_equal(vigil_v2_watch_index(w.watch), 12);
    world_fini(&w);

    world_begin(&w);
    w.options.decode = decode;
    w.options.release = release;
    answer_with(&w, "{\"action\":\"set\",\"node\":" NODE("x", 12, 12) ",\"prevNode\":" NODE(
                        "bad", 11, 11) "}");
    assert_int_equal(start(&w), VIGIL_OK);
    run(&w);
    assert_string_equal(w.events, "ADDED /k=x@12");
    world_fini(&w);
}

/* -- The state -- */

/* The first answer is a state with this many nodes, whose text is in the buffer. */
static void answer_with_nodes(struct world *w, int count, struct buf *body)
{
    w->options.index = 0;
    must(buf_append_text(body, "{\"node\":{\"dir\":true,\"nodes\":[") == ST_OK);
    for (int i = 0; i < count; i++)
        must(buf_append_format(body, "%s{\"key\":\"/%d\",\"value\":\"v\",\"modifiedIndex\":%d}",
                               i ? "," : "", i, i) == ST_OK);
    must(buf_append(body, slice_of("]}}", 4)) == ST_OK);
    w->server.script[0] = (struct answer){.text = OK_HEAD, .body = (const char *)body->ptr};
    w->body_count = 1;
}

static void expect_client_stats(const struct world *w, uint64_t watches, uint64_t events,
                                bool queued)
{
    vigil_client_stats stats;
    vigil_client_get_stats(w->client, &stats, sizeof(stats));
    assert_int_equal(stats.watches, watches);
    assert_int_equal(stats.watch_events, events);
    assert_int_equal(stats.queued_bytes > 0, queued);
}

static void state_comes_in_batches(void **state)
{
    (void)state;
    enum { NODES = 1000 };
    struct world w;
    AUTO(buf_fini) struct buf body = {0};
    world_begin(&w);
    answer_with_nodes(&w, NODES, &body);
    assert_int_equal(start(&w), VIGIL_OK);
    run(&w);
    assert_int_equal(w.event_count, NODES);
    assert_int_equal(w.bookmarks, 1);
    assert_int_equal(w.index, 10);
    expect_client_stats(&w, 1, NODES, false);
    assert_true(w.batches >= NODES / 128 && w.batch_max <= 129);
    world_fini(&w);
}

/* Its beginning is delivered; the program begins again anyway. */
static void state_that_is_cut_off_ends_with_500(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.options.index = 0;
    answer_with(&w, "{\"node\":{\"dir\":true,\"nodes\":[" NODE("v", 3, 3) ",");
    assert_int_equal(start(&w), VIGIL_OK);
    run(&w);
    assert_int_equal(w.ended, 1);
    assert_int_equal(w.error.status, 500);
    assert_string_equal(w.error.reason, "InternalError");
    assert_string_equal(w.error.error.text, "the response is not valid JSON");
    assert_int_equal(w.index, 0);
    world_fini(&w);
}

/* -- Pauses and the end -- */

static void error_comes_after_what_is_queued(void **state)
{
    (void)state;
    enum { NODES = 300 };
    struct world w;
    AUTO(buf_fini) struct buf body = {0};
    world_begin(&w);
    w.pauses = true;
    answer_with_nodes(&w, NODES, &body);
    answer_with(&w, "{\"action\":\"set\",\"node\":" NODE("1", 11, 11) "}");
    answer_with(&w, "{\"errorCode\":401,\"message\":\"m\",\"cause\":\"c\",\"index\":5000}");
    w.server.script[2].text = "HTTP/1.1 400 Bad Request\r\n";
    assert_int_equal(start(&w), VIGIL_OK);
    for (int i = 0; i < 20000 && w.watch->state != V2_WATCH_ENDING; i++)
        turn(&w);
    assert_int_equal(w.batches, 1);
    assert_int_equal(w.bookmarks, 0);
    while (!w.ended) {
        vigil_v2_watch_resume(w.watch);
        turn(&w);
    }
    assert_int_equal(w.event_count, NODES + 1);
    assert_int_equal(w.bookmarks, 1);
    assert_int_equal(w.index, 11);
    assert_int_equal(w.error.status, 410);
    assert_int_equal(w.error.compact_revision, 5000);
    assert_int_equal(w.error.error.code, VIGIL_ERROR_COMPACTED);
    world_fini(&w);
}

static void bytes_of_the_queue_are_limited(void **state)
{
    (void)state;
    struct world w;
    vigil_v2_watch_stats stats;
    world_begin(&w);
    w.options.index = 0;
    w.options.buffer_bytes = 200;
    w.pauses = true;
    answer_with(&w, "{}");
    for (int i = 11; i < 18; i++)
        answer_with(&w, "{\"action\":\"set\",\"node\":{\"key\":\"/k\",\"modifiedIndex\":%d}%60s}",
                    i, "");
    assert_int_equal(start(&w), VIGIL_OK);
    for (int i = 0; i < 500; i++)
        turn(&w);
    vigil_v2_watch_get_stats(w.watch, &stats, sizeof(stats));
    assert_int_equal(stats.queued, 2); /* the second one exceeds the limit */
    assert_true(stats.queued_bytes_max >= 200 && stats.queued_bytes_max < 400);
    assert_int_equal(w.server.answered, 3);
    expect_client_stats(&w, 1, 0, true);
    w.pauses = false;
    vigil_v2_watch_resume(w.watch);
    run(&w);
    assert_int_equal(w.event_count, 7);
    world_fini(&w);
}

static void watch_may_be_freed_in_its_callback(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.frees = true;
    answer_with(&w, "{\"action\":\"set\",\"node\":" NODE("1", 11, 11) "}");
    assert_int_equal(start(&w), VIGIL_OK);
    for (int i = 0; i < 20000 && !w.batches; i++)
        turn(&w);
    for (int i = 0; i < 10; i++)
        turn(&w);
    assert_int_equal(w.batches, 1);
    expect_client_stats(&w, 0, 1, false);
    world_fini(&w);
}

/* -- Memory -- */

/* Returns false when no allocation failed any more. The server's turns have memory. */
static bool live_without(size_t nth)
{
    struct world w;
    world_begin(&w);
    w.options.index = 0;
    w.options.decode = decode;
    w.options.release = release;
    answer_with(&w, "{\"node\":{\"nodes\":[" NODE("\\u0031", 3, 3) "]}}");
    answer_with(&w, "{\"action\":\"set\",\"node\":" NODE("\\u0032", 11, 11) "}");
    answer_with(&w, "{\"errorCode\":104,\"message\":\"\\u006d\",\"cause\":\"c\",\"index\":5}");
    w.server.script[2].text = "HTTP/1.1 400 Bad Request\r\n";
    memory_fail_at = nth;
    int code = start(&w);
    size_t left = memory_fail_at;
    memory_fail_at = 0;
    for (int i = 0; code == VIGIL_OK && i < 20000 && !w.ended; i++) {
        memory_fail_at = left;
        vigil_client_process(w.client);
        left = memory_fail_at;
        memory_fail_at = 0;
        v2_watch_check(w.watch);
        loop_turn(w.server_loop, NS_PER_MS / 10);
    }
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
    } else if (w.error.error.code == VIGIL_ERROR_MEMORY) {
        assert_int_equal(w.error.status, 500);
    } else { /* also after a connection without memory was replaced */
        assert_string_equal(w.events, "ADDED /k=1@3, ADDED /k=2@11");
        assert_int_equal(w.bookmarks, 1);
        assert_string_equal(w.error.error.text, "104: m (c) [5]");
    }
    assert_int_equal(w.ended, code == VIGIL_OK);
    world_fini(&w);
    return left == 0;
}

static void each_missing_allocation_is_reported_or_survived(void **state)
{
    (void)state;
    size_t nth = 1;
    while (live_without(nth))
        nth++;
    assert_true(nth > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_become_the_events_of_the_original),
        cmocka_unit_test(everything_is_selected_by_default),
        cmocka_unit_test(state_comes_in_batches),
        cmocka_unit_test(state_that_is_cut_off_ends_with_500),
        cmocka_unit_test(error_comes_after_what_is_queued),
        cmocka_unit_test(bytes_of_the_queue_are_limited),
        cmocka_unit_test(watch_may_be_freed_in_its_callback),
        cmocka_unit_test(each_missing_allocation_is_reported_or_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
