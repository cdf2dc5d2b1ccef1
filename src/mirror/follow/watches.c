#include "mirror/follow/watches.h"

#include "base/xalloc.h"
#include "client/call/stream.h"
#include "client/connect/error.h"
#include "client/watch/watch_decoder.h"
#include "mirror/answer/possible.h"

enum { SCRATCH_BYTES = 16 * 1024, ID_ALL = -1 };

enum watches_state { WATCHES_CLOSED, WATCHES_OPEN, WATCHES_CREATING, WATCHES_LIVE };

#define TO(state) (1u << WATCHES_##state)

/* Drawn in watches.h. */
static const uint8_t moves[] = {
    [WATCHES_CLOSED] = TO(OPEN) | TO(CLOSED),
    [WATCHES_OPEN] = TO(CREATING) | TO(CLOSED),
    [WATCHES_CREATING] = TO(LIVE) | TO(CLOSED),
    [WATCHES_LIVE] = TO(CLOSED),
};

/* Why the owner has no stream any more, beyond that it broke. */
enum end_kind { END_BROKEN, END_REFUSED, END_COMPACTED, END_LOST };

struct watches {
    struct client_stream stream;
    const struct watches_ops *ops;
    void *ctx;
    enum watches_state state;
    int64_t *ids; /* ids of the watches, in the order of their ranges; owned */
    size_t count, created;
    struct merge *merge; /* borrowed; NULL unless creating or live */
    bool trust_progress;
    struct watch_decoder decoder;

    enum end_kind end; /* to be reported when the stream has been closed */
    enum grpc_code end_code;
    int64_t compact_revision;
    struct buf end_text;
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES];
};

static void move(struct watches *watches, enum watches_state next)
{
    assert(moves[watches->state] & (1u << next));
    watches->state = next;
    watches_check(watches);
}

void watches_check(const struct watches *watches)
{
    bool has_watches = watches->state == WATCHES_CREATING || watches->state == WATCHES_LIVE;
    assert(has_watches == (watches->merge != NULL));
    assert(watches->created <= watches->count);
    assert(watches->state != WATCHES_LIVE || watches->created == watches->count);
    client_stream_check(&watches->stream);
}

static struct watches *watches_of(struct client_stream *stream)
{
    return CONTAINER_OF(stream, struct watches, stream);
}

/* -- Ends -- */

static void report_end(struct watches *watches)
{
    enum end_kind end = watches->end;
    watches->end = END_BROKEN;
    watches->ops->broken(watches->ctx, end == END_BROKEN);
    if (end == END_COMPACTED)
        watches->ops->compacted(watches->ctx, watches->compact_revision);
    else if (end == END_LOST)
        watches->ops->lost(watches->ctx);
    else if (end == END_REFUSED)
        watches->ops->refused(watches->ctx, watches->end_code, buf_slice(&watches->end_text));
}

static void on_break(struct client_stream *stream)
{
    struct watches *watches = watches_of(stream);
    watches->merge = NULL;
    watches->count = watches->created = 0;
    move(watches, WATCHES_CLOSED);
    if (stream->wanted || watches->end != END_BROKEN)
        report_end(watches); /* otherwise on_refused follows */
}

static void set_text(struct watches *watches, struct slice text)
{
    watches->end_text.len = 0;
    xalloc_check(buf_append(&watches->end_text, text) == ST_OK ? watches : NULL, text.len);
}

static void on_refused(struct client_stream *stream, enum grpc_code code, struct slice text)
{
    struct watches *watches = watches_of(stream);
    watches->end = END_REFUSED;
    watches->end_code = code;
    set_text(watches, text);
    report_end(watches);
}

/* Closes the stream, which is not opened again by itself. */
static void end(struct watches *watches, enum end_kind kind)
{
    watches->end = kind;
    client_stream_want(&watches->stream, false);
}

/* False: no server sends that. */
static bool is_possible(const struct pb_watch_response *response)
{
    int64_t revision = response->header ? response->header->revision : POSSIBLE_REVISION_MAX;
    if (revision < 0 || revision > POSSIBLE_REVISION_MAX || response->compact_revision < 0 ||
        response->compact_revision > revision)
        return false;
    for (size_t i = 0; i < response->events_count; i++) {
        const struct pb_event *event = &response->events[i];
        const struct pb_key_value *kv = event->kv;
        bool is_put = event->type == PB_EVENT_TYPE_PUT;
        if (!kv || kv->mod_revision <= 0 || kv->mod_revision > revision ||
            (is_put &&
             !possible_numbers(kv->create_revision, kv->mod_revision, kv->version, revision)))
            return false;
    }
    return true;
}

static void on_canceled(struct watches *watches, const struct pb_watch_response *response)
{
    if (response->compact_revision) {
        watches->compact_revision = response->compact_revision;
        end(watches, END_COMPACTED);
    } else if (client_status_of(response->cancel_reason) == ST_CORRUPT) {
        end(watches, END_LOST); /* the server cannot read what comes next */
    } else if (!client_stream_renew_token(&watches->stream, response->cancel_reason)) {
        watches->end_code = GRPC_UNKNOWN;
        set_text(watches, response->cancel_reason.len ? response->cancel_reason
                                                      : SLICE_LITERAL("the watch was canceled"));
        end(watches, END_REFUSED);
    }
}

/* -- Messages -- */

static void on_open(struct client_stream *stream)
{
    struct watches *watches = watches_of(stream);
    watches->decoder.header_len = 0;
    move(watches, WATCHES_OPEN);
    watches->ops->opened(watches->ctx);
}

/* True: the index of the watch. */
static bool find(const struct watches *watches, int64_t id, size_t *ret_index)
{
    for (size_t i = 0; i < watches->created; i++) {
        if (watches->ids[i] == id) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* The server creates watches in the order of the requests. */
static void on_created(struct watches *watches, const struct pb_watch_response *response)
{
    size_t index;
    if (watches->state != WATCHES_CREATING || find(watches, response->watch_id, &index)) {
        /* No such watch was requested, or it exists already. */
        client_stream_give_up(&watches->stream);
        return;
    }
    client_stream_works(&watches->stream);
    watches->ids[watches->created++] = response->watch_id;
    if (watches->created < watches->count)
        return;
    move(watches, WATCHES_LIVE);
    watches->ops->live(watches->ctx);
}

static enum status merge_response(struct watches *watches, const struct pb_watch_response *response)
{
    size_t index;
    int64_t revision = response->header ? response->header->revision : 0;
    bool is_progress = response->events_count == 0 && !response->fragment;
    if (is_progress && !watches->trust_progress)
        return ST_OK; /* the server may announce a revision before it has sent its events */
    if (is_progress && response->watch_id == ID_ALL) {
        merge_pass_all(watches->merge, revision);
        return ST_OK;
    }
    if (!find(watches, response->watch_id, &index))
        return ST_INVALID;
    if (is_progress) {
        merge_pass(watches->merge, index, revision);
        return ST_OK;
    }
    client_stream_progressed(&watches->stream);
    return merge_add(watches->merge, index, response->events, response->events_count,
                     response->fragment);
}

static void on_events(struct watches *watches, const struct pb_watch_response *response)
{
    enum status status = merge_response(watches, response);
    if (status == ST_OK)
        watches->ops->received(watches->ctx, (const vigil_header *)response->header,
                               response->events_count);
    else
        end(watches, END_LOST);
}

static void dispatch(struct watches *watches, const struct pb_watch_response *response)
{
    if (!watches->merge || !is_possible(response))
        client_stream_give_up(&watches->stream); /* nothing was requested, or not this */
    else if (response->canceled)
        on_canceled(watches, response);
    else if (response->created)
        on_created(watches, response);
    else
        on_events(watches, response);
}

static void on_message(struct client_stream *stream, struct slice message)
{
    struct watches *watches = watches_of(stream);
    struct pb_watch_response response;
    struct arena arena;
    arena_init(&arena, watches->scratch, sizeof(watches->scratch),
               client_decode_bytes_max(stream->client));
    enum status status = watch_decode(&watches->decoder, message, &arena, &response);
    if (status == ST_OK)
        dispatch(watches, &response);
    else if (status == ST_LIMIT)
        client_stream_overflow(stream);
    else
        client_stream_give_up(stream);
    arena_fini(&arena);
}

/* -- For the owner -- */

struct watches *watches_new(vigil_client *client, const struct watches_ops *ops, void *ctx)
{
    static const struct client_stream_hooks hooks = {
        .on_open = on_open,
        .on_message = on_message,
        .on_break = on_break,
        .on_refused = on_refused,
    };
    struct watches *watches = xcalloc(1, sizeof(*watches));
    client_stream_init(&watches->stream, client, &hooks, SLICE_LITERAL("/etcdserverpb.Watch/Watch"),
                       true);
    watches->ops = ops;
    watches->ctx = ctx;
    return watches;
}

void watches_free(struct watches *watches)
{
    if (!watches)
        return;
    client_stream_fini(&watches->stream);
    buf_fini(&watches->end_text);
    free(watches->ids);
    free(watches);
}

void watches_open(struct watches *watches)
{
    client_stream_want(&watches->stream, true);
}

bool watches_is_open(const struct watches *watches)
{
    return watches->state == WATCHES_OPEN && client_stream_is_open(&watches->stream);
}

static void send_create(struct watches *watches, const struct range *range, int64_t revision)
{
    struct pb_watch_create_request create = {
        .key = range->key,
        .range_end = range->range_end,
        .start_revision = revision,
        .progress_notify = watches->trust_progress,
        .fragment = true,
    };
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
        .create_request = &create,
    };
    client_stream_send(&watches->stream, &pb_watch_request_table, &request);
}

void watches_create(struct watches *watches, const struct watches_request *request)
{
    assert(watches_is_open(watches) && request->count > 0);
    watches->ids = xrealloc(watches->ids, request->count * sizeof(*watches->ids));
    watches->count = request->count;
    watches->created = 0;
    watches->merge = request->merge;
    watches->trust_progress = request->trust_progress;
    move(watches, WATCHES_CREATING);
    for (size_t i = 0; i < request->count; i++)
        send_create(watches, &request->ranges[i], request->revision);
}

void watches_give_up(struct watches *watches)
{
    client_stream_give_up(&watches->stream);
}

void watches_avoid_server(struct watches *watches)
{
    channel_avoid(watches->stream.client->channel, watches->stream.generation);
}

void watches_pause(struct watches *watches, bool paused)
{
    if (watches->stream.state == STREAM_OPEN)
        grpc_client_call_withhold(&watches->stream.call, paused);
}

void watches_request_progress(struct watches *watches)
{
    struct pb_watch_progress_request progress = {0};
    struct pb_watch_request request = {
        .request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
        .progress_request = &progress,
    };
    if (watches->state == WATCHES_LIVE && client_stream_is_open(&watches->stream))
        client_stream_send(&watches->stream, &pb_watch_request_table, &request);
}
