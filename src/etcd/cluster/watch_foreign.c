#include "etcd/cluster/watch_foreign.h"

#include "base/memory/budget.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "engine/forward.h"
#include "etcd/cluster/forward.h"
#include "etcd/shared/authenticator.h"
#include "etcd/shared/service.h"
#include "wire/grpc/call.h"

#include <stdlib.h>

struct foreign_watch {
    int64_t id;
    size_t key_len, end_len;
    uint8_t bytes[]; /* the key and the end of its range, as in the request */
};

/* Positions are counted in bytes from the beginning of the call. */
struct watch_foreign {
    struct engine_forward forward;
    struct watch_foreign_owner owner;
    struct account *account; /* the connection's, borrowed: charged with all buffers */
    bool ended, paused;
    struct etcd_api *api;
    struct foreign_watch *watches[WATCH_FOREIGN_MAX]; /* owned */
    size_t count;
    int64_t revision;  /* the newest of any response */
    size_t unanswered; /* creates */
    struct buf queue;  /* framed responses; those before `sent` are written */
    size_t queue_sent;
    uint64_t sent, received; /* positions of what was written, and of what was queued */
    struct buf ends;         /* uint64_t: where responses end behind which others may be written */
    size_t ends_at;
    uint64_t last_end;   /* the last of them that was written */
    uint64_t created_at; /* everything up to the last answer of a create */
    uint64_t progress_at;
    int64_t progress_revision; /* 0: none has come */
    struct buf progress;       /* the response */
};

/* -- Responses -- */

struct response {
    int64_t revision, watch_id;
    bool created, canceled, fragment, has_events;
};

/* A field at p: its number, and its value or bytes. NULL: it is malformed. */
static const uint8_t *field_read(const uint8_t *p, const uint8_t *end, uint32_t *ret_number,
                                 uint64_t *ret_value, struct slice *ret_bytes)
{
    uint64_t tag;
    size_t len;
    *ret_value = 0;
    *ret_bytes = SLICE_EMPTY;
    p = pb_varint_read(p, end, &tag);
    if (!p || tag >> 3 > PB_NUMBER_MAX)
        return NULL;
    *ret_number = (uint32_t)(tag >> 3);
    if ((tag & 7) == PB_WIRE_VARINT)
        return pb_varint_read(p, end, ret_value);
    if ((tag & 7) != PB_WIRE_LEN)
        return NULL;
    p = pb_len_read(p, end, &len);
    *ret_bytes = slice_of(p, p ? len : 0);
    return p ? p + len : NULL;
}

static bool header_read(struct slice header, int64_t *ret_revision)
{
    const uint8_t *p = header.ptr, *end = p + header.len;
    while (p < end) {
        uint32_t number;
        uint64_t value;
        struct slice bytes;
        p = field_read(p, end, &number, &value, &bytes);
        if (!p)
            return false;
        if (number == 3)
            *ret_revision = (int64_t)value;
    }
    return true;
}

/* The numbers of the fields are those of etcd's rpc.proto. */
static bool response_take(struct response *response, uint32_t number, uint64_t value,
                          struct slice bytes)
{
    switch (number) {
    case 1:
        return header_read(bytes, &response->revision);
    case 2:
        response->watch_id = (int64_t)value;
        return true;
    case 3:
        response->created = value != 0;
        return true;
    case 4:
        response->canceled = value != 0;
        return true;
    case 7:
        response->fragment = value != 0;
        return true;
    case 11:
        response->has_events = true;
        return true;
    default:
        return true;
    }
}

static bool response_read(struct slice message, struct response *ret_response)
{
    const uint8_t *p = message.ptr, *end = p + message.len;
    *ret_response = (struct response){0};
    while (p < end) {
        uint32_t number;
        uint64_t value;
        struct slice bytes;
        p = field_read(p, end, &number, &value, &bytes);
        if (!p || !response_take(ret_response, number, value, bytes))
            return false;
    }
    return true;
}

/* -- The queue -- */

static void set_paused(struct watch_foreign *f, bool paused)
{
    if (f->paused == paused)
        return;
    f->paused = paused;
    engine_forward_pause(&f->forward, paused);
}

static enum status queue_message(struct watch_foreign *f, struct slice message, bool may_end)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];
    if (f->queue_sent > f->queue.len / 2) {
        buf_consume(&f->queue, f->queue_sent);
        f->queue_sent = 0;
    }
    grpc_prefix_write(prefix, (uint32_t)message.len);
    TRY(account_append(f->account, &f->queue, slice_of(prefix, sizeof(prefix))));
    TRY(account_append(f->account, &f->queue, message));
    f->received += sizeof(prefix) + message.len;
    if (!may_end)
        return ST_OK;
    if (f->ends_at > f->ends.len / 2) {
        buf_consume(&f->ends, f->ends_at);
        f->ends_at = 0;
    }
    return account_append(f->account, &f->ends, slice_of(&f->received, sizeof(f->received)));
}

static void pass_ends(struct watch_foreign *f, uint64_t *ret_responses)
{
    uint64_t end;
    while (f->ends_at < f->ends.len) {
        memcpy(&end, f->ends.ptr + f->ends_at, sizeof(end));
        if (end > f->sent)
            return;
        f->last_end = end;
        f->ends_at += sizeof(end);
        ++*ret_responses;
    }
    account_buf_reset(f->account, &f->ends, 1024);
    f->ends_at = 0;
}

size_t watch_foreign_fill(struct watch_foreign *f, uint8_t *dst, size_t room,
                          uint64_t *ret_responses)
{
    size_t queued = f->queue.len - f->queue_sent, n = size_min(room, queued);
    slice_copy(dst, slice_sub(buf_slice(&f->queue), f->queue_sent, n));
    f->queue_sent += n;
    f->sent += n;
    pass_ends(f, ret_responses);
    if (queued - n <= FORWARD_QUEUED_BYTES_LOW)
        set_paused(f, false);
    if (n == queued) {
        account_buf_reset(f->account, &f->queue, FORWARD_QUEUED_BYTES_LOW);
        f->queue_sent = 0;
    }
    return n;
}

bool watch_foreign_is_within(const struct watch_foreign *f)
{
    return f->sent != f->last_end;
}

bool watch_foreign_has_more(const struct watch_foreign *f)
{
    return f->sent < f->received;
}

/* -- The call -- */

static void remove_at(struct watch_foreign *f, size_t i)
{
    struct foreign_watch *watch = f->watches[i];
    f->watches[i] = f->watches[--f->count];
    account_release(f->account, sizeof(*watch) + watch->key_len + watch->end_len);
    free(watch);
}

static void remove_id(struct watch_foreign *f, int64_t id)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->watches[i]->id == id) {
            remove_at(f, i);
            return;
        }
}

static enum status add_watch(struct watch_foreign *f, const struct pb_watch_create_request *create)
{
    struct slice key = create->key.len ? create->key : slice_of("", 1); /* as etcd reads it */
    size_t bytes = sizeof(struct foreign_watch) + key.len + create->range_end.len;
    struct foreign_watch *watch = account_charge(f->account, bytes) ? malloc(bytes) : NULL;
    if (!watch)
        return ST_NOMEM;
    *watch = (struct foreign_watch){
        .id = create->watch_id, .key_len = key.len, .end_len = create->range_end.len};
    slice_copy(watch->bytes, key);
    slice_copy(watch->bytes + key.len, create->range_end);
    f->watches[f->count++] = watch;
    return ST_OK;
}

static void fail(struct watch_foreign *f, enum grpc_code code, struct slice text)
{
    engine_forward_cancel(&f->forward);
    f->ended = true;
    f->owner.failed(f->owner.ctx, code, text);
}

static bool is_progress(const struct response *response)
{
    return response->watch_id == -1 && !response->created && !response->canceled &&
           !response->has_events;
}

static void note(struct watch_foreign *f, const struct response *response)
{
    if (response->created) {
        f->unanswered -= f->unanswered > 0;
        f->created_at = f->received;
    }
    if (response->canceled)
        remove_id(f, response->watch_id);
}

/* Without memory for it the answer is left out, as etcd may do. */
static void keep_progress(struct watch_foreign *f, struct slice message, int64_t revision)
{
    f->progress.len = 0;
    bool kept = account_append(f->account, &f->progress, message) == ST_OK;
    f->progress_at = f->received;
    f->progress_revision = kept ? revision : 0;
}

static void on_message(struct engine_forward *forward, struct slice message)
{
    struct watch_foreign *f = CONTAINER_OF(forward, struct watch_foreign, forward);
    struct response response;
    if (!response_read(message, &response)) {
        fail(f, GRPC_UNAVAILABLE,
             SLICE_LITERAL("vigil: a watch response of the cluster is malformed"));
        return;
    }
    if (message.len > WATCH_FOREIGN_RESPONSE_BYTES_MAX) {
        fail(f, GRPC_RESOURCE_EXHAUSTED,
             SLICE_LITERAL("vigil: a watch response of the cluster is too long to be passed on"));
        return;
    }
    if (response.revision > f->revision)
        f->revision = response.revision;
    if (response.watch_id != -1 && !response.created && !watch_foreign_has(f, response.watch_id))
        return; /* it was ended here */
    if (is_progress(&response)) {
        keep_progress(f, message, response.revision);
    } else if (queue_message(f, message, !response.fragment) != ST_OK) {
        fail(f, status_code(ST_NOMEM), slice_from_text(status_text(ST_NOMEM)));
        return;
    } else {
        note(f, &response);
    }
    if (f->queue.len - f->queue_sent >= FORWARD_QUEUED_BYTES_MAX)
        set_paused(f, true);
    f->owner.wake(f->owner.ctx);
}

static void on_end(struct engine_forward *forward, enum grpc_code code, struct slice text)
{
    struct watch_foreign *f = CONTAINER_OF(forward, struct watch_foreign, forward);
    f->ended = true;
    if (code == GRPC_OK) {
        code = GRPC_UNAVAILABLE;
        text = SLICE_LITERAL("vigil: the cluster has ended the watch");
    }
    f->owner.failed(f->owner.ctx, code, text);
}

struct watch_foreign *watch_foreign_new(struct etcd_api *api, struct grpc_call *call,
                                        struct watch_foreign_owner owner)
{
    static const struct engine_forward_ops ops = {.on_message = on_message, .on_end = on_end};
    struct watch_foreign *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->owner = owner;
    f->api = api;
    f->account = grpc_call_arena(call)->account;
    f->forward = (struct engine_forward){
        .ops = &ops,
        .path = SLICE_LITERAL(PB_WATCH_WATCH_PATH),
        .principal.token = etcd_call_token(call),
        .via = forward_via(call),
        .deadline_ns = CLOCK_NEVER,
        .reads = true,
        .lasts = true,
        .waits = true,
        .require_leader = forward_requires_leader(call),
    };
    engine_forward_start(api->shard, &f->forward);
    return f;
}

void watch_foreign_free(struct watch_foreign *f)
{
    if (!f)
        return;
    if (!f->ended)
        engine_forward_cancel(&f->forward);
    while (f->count)
        remove_at(f, f->count - 1);
    account_buf_fini(f->account, &f->queue);
    account_buf_fini(f->account, &f->ends);
    account_buf_fini(f->account, &f->progress);
    free(f);
}

/* -- Requests -- */

static enum status send_request(struct watch_foreign *f, const struct pb_watch_request *request)
{
    AUTO(buf_fini) struct buf bytes = {0};
    if (f->ended)
        return ST_OK; /* the client's call ends, too */
    TRY(pb_append(&pb_watch_request_table, request, &bytes));
    return engine_forward_send(&f->forward, buf_slice(&bytes));
}

enum status watch_foreign_create(struct watch_foreign *f,
                                 const struct pb_watch_create_request *request, int64_t id)
{
    struct pb_watch_create_request create = *request;
    struct pb_watch_request message = {.request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
                                       .create_request = &create};
    assert(id && !watch_foreign_has(f, id));
    if (f->count == WATCH_FOREIGN_MAX)
        return ST_LIMIT;
    create.watch_id = id;
    TRY(add_watch(f, &create));
    enum status status = send_request(f, &message);
    if (status == ST_OK)
        f->unanswered++;
    else
        remove_id(f, id);
    return status;
}

bool watch_foreign_has(const struct watch_foreign *f, int64_t id)
{
    for (size_t i = 0; f && i < f->count; i++)
        if (f->watches[i]->id == id)
            return true;
    return false;
}

size_t watch_foreign_count(const struct watch_foreign *f)
{
    return f ? f->count : 0;
}

enum status watch_foreign_cancel(struct watch_foreign *f, int64_t id)
{
    struct pb_watch_cancel_request cancel = {.watch_id = id};
    return send_request(
        f, &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_CANCEL_REQUEST,
                                      .cancel_request = &cancel});
}

/* Whatever the cluster has sent before, it was permitted then. */
static enum status end_watch(struct watch_foreign *f, size_t i, struct slice reason)
{
    AUTO(buf_fini) struct buf message = {0};
    struct pb_response_header header;
    struct pb_watch_response response = {.header = &header,
                                         .watch_id = f->watches[i]->id,
                                         .canceled = true,
                                         .cancel_reason = reason};
    etcd_header_fill(f->api, f->revision, &header);
    TRY(watch_foreign_cancel(f, f->watches[i]->id));
    TRY(pb_append(&pb_watch_response_table, &response, &message));
    TRY(queue_message(f, buf_slice(&message), true));
    remove_at(f, i);
    return ST_OK;
}

enum status watch_foreign_keep(struct watch_foreign *f,
                               bool (*keep)(void *ctx, struct slice key, struct slice range_end),
                               void *ctx, struct slice reason)
{
    for (size_t i = f->count; i-- > 0;) { /* backwards, because the last one takes a free place */
        const struct foreign_watch *watch = f->watches[i];
        if (!keep(ctx, slice_of(watch->bytes, watch->key_len),
                  slice_of(watch->bytes + watch->key_len, watch->end_len)))
            TRY(end_watch(f, i, reason));
    }
    return ST_OK;
}

bool watch_foreign_is_pending(const struct watch_foreign *f)
{
    return f && (f->unanswered || f->sent < f->created_at);
}

enum status watch_foreign_progress(struct watch_foreign *f)
{
    struct pb_watch_progress_request progress = {0};
    return send_request(
        f, &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
                                      .progress_request = &progress});
}

int64_t watch_foreign_take_progress(struct watch_foreign *f)
{
    int64_t revision = f->progress_revision;
    if (!revision || f->sent < f->progress_at || watch_foreign_is_within(f))
        return 0;
    f->progress_revision = 0;
    return revision;
}

enum status watch_foreign_pass_progress(struct watch_foreign *f)
{
    return queue_message(f, buf_slice(&f->progress), true);
}
