/* For tests of watches and their stream: the client_stream below is replaced, so that the test sees
 * each request and gives each answer. The linker redirects its functions (src/client/layer.cmake).
 */
#ifndef VIGIL_CLIENT_WATCH_WATCH_FIXTURE_TEST_H
#define VIGIL_CLIENT_WATCH_WATCH_FIXTURE_TEST_H

#include "base/failing_memory_test.h"
#include "client/call/call.h"
#include "client/call/server_version.h"
#include "client/call/stream.h"
#include "client/connect/metadata.h"
#include "client/watch/watch.h"
#include "client/watch/watch_stream.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    /* Limit on the requests of each kind, see client/watch/watch_stream.c. */
    UNANSWERED_MAX = 4096,
    MEMBER_ID = 77, /* id of the server */
};

/* -- The stream -- */

static struct client_stream *stream;
static size_t creates, cancels, progress_requests; /* sent in all */
static struct pb_watch_create_request last_create;
static int64_t last_cancel;

void __real_client_stream_init(struct client_stream *s, struct vigil_client *client,
                               const struct client_stream_hooks *hooks, struct slice path,
                               bool require_leader);
void __wrap_client_stream_init(struct client_stream *s, struct vigil_client *client,
                               const struct client_stream_hooks *hooks, struct slice path,
                               bool require_leader);
void __wrap_client_stream_fini(struct client_stream *s);
void __wrap_client_stream_want(struct client_stream *s, bool wanted);
void __wrap_client_stream_give_up(struct client_stream *s);
void __wrap_client_stream_send(struct client_stream *s, const struct pb_message *type,
                               const void *message);

void __wrap_client_stream_init(struct client_stream *s, struct vigil_client *client,
                               const struct client_stream_hooks *hooks, struct slice path,
                               bool require_leader)
{
    __real_client_stream_init(s, client, hooks, path, require_leader);
    stream = s;
}

void __wrap_client_stream_fini(struct client_stream *s)
{
    s->wanted = s->given_up = false;
    s->state = STREAM_IDLE;
}

void __wrap_client_stream_want(struct client_stream *s, bool wanted)
{
    s->wanted = wanted;
}

void __wrap_client_stream_give_up(struct client_stream *s)
{
    s->given_up |= s->state == STREAM_OPEN;
}

void __wrap_client_stream_send(struct client_stream *s, const struct pb_message *type,
                               const void *message)
{
    const struct pb_watch_request *request = message;
    assert_int_equal(s->state, STREAM_OPEN);
    assert_ptr_equal(type, &pb_watch_request_table);
    if (request->request_union_case == PB_WATCH_REQUEST_CREATE_REQUEST) {
        creates++;
        last_create = *request->create_request;
    } else if (request->request_union_case == PB_WATCH_REQUEST_CANCEL_REQUEST) {
        cancels++;
        last_cancel = request->cancel_request->watch_id;
    } else {
        progress_requests++;
    }
}

/* -- The version of the server -- */

static struct server_inquiry *inquiry; /* the running one; NULL: none */

enum status __wrap_server_inquiry_begin(struct server_inquiry *asked, struct vigil_client *of);
void __wrap_server_inquiry_end(struct server_inquiry *asked);

enum status __wrap_server_inquiry_begin(struct server_inquiry *asked, struct vigil_client *of)
{
    static struct vigil_call call; /* is not used, but shows that there is a request */
    (void)of;
    assert_null(asked->call);
    asked->call = &call;
    inquiry = asked;
    return ST_OK;
}

void __wrap_server_inquiry_end(struct server_inquiry *asked)
{
    asked->call = NULL;
    if (inquiry == asked)
        inquiry = NULL;
}

/* NULL: no server has answered. */
static inline void answer_version(const char *version)
{
    struct server_inquiry *answered = inquiry;
    assert_non_null(answered);
    inquiry = NULL;
    answered->call = NULL;
    answered->is_final = version != NULL;
    answered->member_id = version ? MEMBER_ID : 0;
    answered->version = version ? slice_from_text(version) : SLICE_EMPTY;
    answered->answered(answered);
}

/* -- What a user sees -- */

struct record {
    vigil_watch *watch;
    unsigned created, batches, events, progress, ended;
    int64_t revision; /* revision of the last batch */
    vigil_error error;
    int64_t compact_revision;
    bool pauses; /* the answer to every batch */
};

static inline int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct record *record = user;
    assert_ptr_equal(vigil_watch_user(watch), record);
    assert_int_equal(record->ended, 0);
    record->batches++;
    record->created += batch->what == VIGIL_WATCH_CREATED;
    record->progress += batch->what == VIGIL_WATCH_PROGRESS;
    record->ended += batch->what == VIGIL_WATCH_ENDED;
    record->events += (unsigned)batch->event_count;
    record->revision = batch->revision;
    record->compact_revision = batch->compact_revision;
    if (batch->error)
        record->error = *batch->error;
    return record->pauses ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static vigil_client *client;

static inline void check(void)
{
    for (struct client_watch_stream *s = client->watch_streams; s; s = client_watch_stream_next(s))
        client_watch_stream_check(s);
}

/* Runs all commands. */
static inline void turn(void)
{
    do
        vigil_client_process(client);
    while (!mailbox_empty(client->driver.mailbox));
    check();
}

static vigil_metadata add_metadata; /* metadata of the watches that are added; "": none */

static inline void add(struct record *record, int64_t revision, size_t buffer_bytes)
{
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text("key");
    options.revision = revision;
    options.created_notify = 1;
    options.buffer_bytes = buffer_bytes;
    options.metadata = &add_metadata;
    options.metadata_count = add_metadata.name != NULL;
    assert_int_equal(vigil_watch_new(client, &options, on_batch, record, &record->watch), VIGIL_OK);
    turn();
}

static inline void drop(struct record *record)
{
    vigil_watch_free(record->watch);
    record->watch = NULL;
    turn();
}

static inline void resume(struct record *record)
{
    vigil_watch_resume(record->watch);
    turn();
}

static inline uint64_t stat_watches(void)
{
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    return stats.watches;
}

static inline uint64_t stat_queued(void)
{
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    return stats.queued_bytes;
}

/* -- What the server does -- */

static inline void open_stream(void)
{
    assert_true(stream->wanted);
    stream->state = STREAM_OPEN;
    stream->hooks->on_open(stream);
    check();
}

static inline void break_stream(void)
{
    stream->state = stream->wanted ? STREAM_PAUSING : STREAM_IDLE;
    stream->given_up = false;
    stream->hooks->on_break(stream);
    check();
}

static inline void refuse_stream(enum grpc_code code, const char *text)
{
    stream->wanted = false;
    break_stream();
    stream->hooks->on_refused(stream, code, slice_from_text(text));
    check();
}

static inline void answer(struct pb_watch_response response, int64_t revision)
{
    AUTO(buf_fini) struct buf message = {0};
    struct pb_response_header header = {.revision = revision, .member_id = MEMBER_ID};
    response.header = &header;
    assert_int_equal(pb_append(&pb_watch_response_table, &response, &message), ST_OK);
    stream->hooks->on_message(stream, buf_slice(&message));
    check();
}

static inline void answer_created(int64_t id)
{
    answer((struct pb_watch_response){.watch_id = id, .created = true}, 10);
}

static inline void answer_canceled(int64_t id)
{
    answer((struct pb_watch_response){.watch_id = id, .canceled = true}, 10);
}

static inline void answer_progress(int64_t id, int64_t revision)
{
    answer((struct pb_watch_response){.watch_id = id}, revision);
}

/* A request of the user, which is sent; the server has this version if the client requests it. */
static inline void request_progress(struct record *record, const char *version)
{
    size_t before = progress_requests;
    vigil_watch_request_progress(record->watch);
    turn();
    if (inquiry)
        answer_version(version);
    assert_int_equal(progress_requests, before + 1);
}

static inline void answer_part(int64_t id, int64_t revision, size_t value_len, bool fragment)
{
    static uint8_t value[4096];
    assert_true(value_len <= sizeof(value));
    struct pb_key_value kv = {
        .key = SLICE_LITERAL("key"),
        .value = slice_of(value, value_len),
        .mod_revision = revision,
    };
    struct pb_event event = {.kv = &kv};
    answer(
        (struct pb_watch_response){
            .watch_id = id, .events = &event, .events_count = 1, .fragment = fragment},
        revision);
}

static inline void answer_event(int64_t id, int64_t revision)
{
    answer_part(id, revision, 10, false);
}

static inline int set_up(void **state)
{
    (void)state;
    vigil_options options;
    vigil_options_init(&options);
    options.own_thread = 0;
    creates = cancels = progress_requests = 0;
    memory_fail_at = 0;
    add_metadata = (vigil_metadata){0};
    stream = NULL;
    inquiry = NULL;
    return vigil_client_new(&options, &client, NULL);
}

static inline int tear_down(void **state)
{
    (void)state;
    vigil_client_free(client);
    return 0;
}

/* A watch from now on, live with this id. */
static inline void add_live(struct record *record, int64_t id, size_t buffer_bytes)
{
    add(record, 0, buffer_bytes);
    if (stream->state != STREAM_OPEN)
        open_stream();
    answer_created(id);
    assert_int_equal(record->created, 1);
}

/* Paused by its created response. */
static inline void add_paused(struct record *record, int64_t id, size_t buffer_bytes)
{
    record->pauses = true;
    add_live(record, id, buffer_bytes);
    record->pauses = false;
}

#endif
