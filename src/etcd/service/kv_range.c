/*
 * KV.Range and KV.RangeStream. The engine knows the total size of the key-values before it returns
 * the first, so the length of a message can be sent at once and its content as the connection has
 * room: a list of any size is never held in memory. Small responses are encoded directly into the
 * output.
 *
 * A range stream is the same list, cut into messages as etcd cuts it: ten keys first, then twice as
 * many while a message is smaller than half of the request limit, and half as many when it is
 * larger than twice the limit. Only the last message has the header, more and count.
 */
#include "etcd/service/kv_range.h"

#include "codec/pb/rpc.pb.h"
#include "etcd/cluster/forward.h"
#include "etcd/service/kv_check.h"
#include "etcd/service/service_call.h"

enum {
    STREAM_FIRST_KEYS = 10,
    /* gRPC prefix, head of the RangeResponse in a stream's message, response header */
    HEAD_BYTES_MAX = GRPC_PREFIX_BYTES + 1 + PB_VARINT_BYTES_MAX + KV_HEADER_BYTES_MAX,
};

/* The bytes before or after the key-values. */
struct range_chunk {
    uint8_t len;
    uint8_t at; /* bytes written so far */
    uint8_t bytes[HEAD_BYTES_MAX];
};

/* One call. In the call's arena, whose first block should suffice for a small response. */
struct range_call {
    struct engine_range range; /* first */
    struct service_call base;
    bool streams;
    struct pb_range_request request;
};

/* A long response: the message that is being sent, and the state of the rest. */
struct range_output {
    struct grpc_source source;
    struct range_call *range;
    struct range_chunk head;
    struct range_chunk tail;
    uint64_t kvs_bytes_left; /* part of this message that is left */
    int64_t kvs_left;        /* after this message */
    int64_t keys_per_message;
    uint64_t messages; /* begun */
};

/* -- Messages -- */

/* The size that etcd compares with its target: as if every message had the header and count. */
static uint64_t chunk_weight(const struct range_output *o, int64_t keys, uint64_t bytes)
{
    struct kv_header header = {.revision = o->range->range.op.revision};
    bool more = o->kvs_left > 0;
    return kv_header_size(&header) + bytes + kv_range_tail_size(more, keys + more);
}

static int64_t next_keys(int64_t keys, uint64_t weight, uint64_t target)
{
    if (weight < target / 2)
        return keys < INT64_MAX / 2 ? keys * 2 : keys;
    if (weight > target * 2)
        return keys > 1 ? keys / 2 : 1;
    return keys;
}

static void message_begin(struct range_output *o, uint64_t kvs_bytes, bool last)
{
    const struct range_call *r = o->range;
    struct kv_header header = etcd_header(r->base.api, r->range.op.revision);
    uint64_t body = kvs_bytes;
    if (last)
        body += kv_header_size(&header) + kv_range_tail_size(r->range.more, r->range.count);
    o->messages++;
    uint64_t message = r->streams ? pb_message_head_size(1, body) + body : body;
    assert(message <= UINT32_MAX);

    uint8_t *p = o->head.bytes;
    grpc_prefix_write(p, (uint32_t)message);
    p += GRPC_PREFIX_BYTES;
    if (r->streams)
        p = pb_message_head_write(p, 1, body);
    if (last)
        p = kv_header_write(p, &header);
    o->head.len = (uint8_t)(p - o->head.bytes);
    o->head.at = 0;

    p = o->tail.bytes;
    if (last)
        p = kv_range_tail_write(p, r->range.more, r->range.count);
    o->tail.len = (uint8_t)(p - o->tail.bytes);
    o->tail.at = 0;
    o->kvs_bytes_left = kvs_bytes;
}

static void message_next(struct range_output *o)
{
    int64_t keys;
    uint64_t bytes;
    engine_range_window(&o->range->range, o->keys_per_message, &keys, &bytes);
    /* After many small values there may be as many large ones. */
    while (bytes > ETCD_MESSAGE_BYTES_MAX - 2 * HEAD_BYTES_MAX)
        engine_range_window(&o->range->range, keys / 2, &keys, &bytes);
    assert(keys <= o->kvs_left);
    o->kvs_left -= keys;
    message_begin(o, bytes, o->kvs_left == 0);
    o->keys_per_message = next_keys(o->keys_per_message, chunk_weight(o, keys, bytes),
                                    o->range->base.api->config->request_bytes_max);
}

static size_t piece_copy(struct range_chunk *piece, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, (size_t)(piece->len - piece->at));
    memcpy(dst, piece->bytes + piece->at, n);
    piece->at = (uint8_t)(piece->at + n);
    return n;
}

static size_t message_fill(struct range_output *o, uint8_t *dst, size_t room)
{
    size_t at = piece_copy(&o->head, dst, room);
    if (o->kvs_bytes_left && at < room) {
        size_t n = engine_range_fill(&o->range->range, dst + at, room - at);
        assert(n <= o->kvs_bytes_left);
        assert(n > 0 || o->range->range.op.status != ST_OK);
        o->kvs_bytes_left -= n;
        at += n;
    }
    if (o->kvs_bytes_left == 0)
        at += piece_copy(&o->tail, dst + at, room - at);
    return at;
}

static bool message_is_whole(const struct range_output *o)
{
    return o->head.at == o->head.len && o->kvs_bytes_left == 0 && o->tail.at == o->tail.len;
}

static enum grpc_fill source_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                  size_t *ret_len)
{
    struct range_output *o = CONTAINER_OF(source, struct range_output, source);
    size_t at = message_fill(o, dst, room);
    while (message_is_whole(o) && o->kvs_left > 0 && at < room &&
           o->range->range.op.status == ST_OK) {
        message_next(o);
        at += message_fill(o, dst + at, room - at);
    }
    *ret_len = at;
    if (o->range->range.op.status != ST_OK) {
        /* The engine gave up within a message: the client gets the error instead of the rest. */
        struct grpc_call *call = o->range->base.call;
        struct engine_op op = o->range->range.op;
        engine_range_close(&o->range->range);
        etcd_call_fail_op(call, &op);
        return GRPC_FILL_PARKED;
    }
    if (!message_is_whole(o) || o->kvs_left > 0)
        return GRPC_FILL_MORE;
    grpc_call_sent(o->range->base.call, o->messages);
    engine_range_close(&o->range->range); /* releases the store before the client has read it all */
    return GRPC_FILL_DONE;
}

/* NULL: there was no memory, and the call was answered with that error. */
static struct range_output *output_new(struct range_call *r)
{
    struct range_output *o = arena_calloc(grpc_call_arena(r->base.call), 1, sizeof(*o));
    if (!o) {
        engine_range_close(&r->range);
        grpc_call_fail(r->base.call, ST_NOMEM);
        return NULL;
    }
    o->source.fill = source_fill;
    o->range = r;
    return o;
}

/* -- The call -- */

static void send_direct(struct range_call *r, const struct kv_header *header, size_t bytes)
{
    uint8_t *dst = grpc_call_message(r->base.call, bytes);
    if (dst) {
        dst = kv_header_write(dst, header);
        if (r->range.kvs_bytes) {
            size_t n = engine_range_fill(&r->range, dst, (size_t)r->range.kvs_bytes);
            assert(n == r->range.kvs_bytes || r->range.op.status != ST_OK);
            memset(dst + n, 0, (size_t)r->range.kvs_bytes - n);
            dst += r->range.kvs_bytes;
        }
        kv_range_tail_write(dst, r->range.more, r->range.count);
    }
    struct engine_op op = r->range.op;
    engine_range_close(&r->range);
    if (!dst)
        grpc_call_fail(r->base.call, ST_NOMEM);
    else if (op.status == ST_OK)
        grpc_call_finish(r->base.call);
    else
        etcd_call_fail_op(r->base.call, &op);
}

/* The range is closed first, because failing may end the call and free its memory. */
static void fail_length(struct range_call *r, uint64_t bytes)
{
    engine_range_close(&r->range);
    etcd_call_fail_length(r->base.call, bytes);
}

static void send_unary(struct range_call *r)
{
    struct kv_header header = etcd_header(r->base.api, r->range.op.revision);
    uint64_t bytes = kv_header_size(&header) + r->range.kvs_bytes +
                     kv_range_tail_size(r->range.more, r->range.count);
    if (bytes <= KV_DIRECT_BYTES_MAX) {
        send_direct(r, &header, (size_t)bytes);
        return;
    }
    if (bytes > ETCD_MESSAGE_BYTES_MAX) {
        fail_length(r, bytes);
        return;
    }
    struct range_output *o = output_new(r);
    if (!o)
        return;
    message_begin(o, r->range.kvs_bytes, true);
    grpc_call_set_source(r->base.call, &o->source);
}

static void send_stream(struct range_call *r)
{
    /* A negative limit means that everything is sent in one message. */
    bool at_once = r->request.limit < 0;
    uint64_t bytes_max = r->range.kvs_bytes + 2 * HEAD_BYTES_MAX;
    if (at_once && bytes_max > ETCD_MESSAGE_BYTES_MAX) {
        fail_length(r, bytes_max);
        return;
    }
    struct range_output *o = output_new(r);
    if (!o)
        return;
    o->keys_per_message = at_once ? INT64_MAX : STREAM_FIRST_KEYS;
    o->kvs_left = r->range.kvs;
    message_next(o);
    grpc_call_set_source(r->base.call, &o->source);
}

static void range_done(struct engine_op *op)
{
    struct range_call *r = CONTAINER_OF(op, struct range_call, range.op);
    struct grpc_call *call = r->base.call;
    if (!service_call_answered(&r->base)) {
        if (op->status == ST_OK)
            engine_range_close(&r->range);
        service_call_release(&r->base);
    } else if (op->status != ST_OK && op->text.len) {
        forward_fail(call, r->base.api, status_code(op->status), op->text);
    } else if (op->status != ST_OK) {
        etcd_call_fail_op(call, op);
    } else if (r->streams) {
        send_stream(r);
    } else {
        send_unary(r);
    }
}

static struct range_call *range_call_new(struct grpc_call *call, struct etcd_api *api)
{
    struct range_call *r = arena_calloc(grpc_call_arena(call), 1, sizeof(*r));
    if (!r) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    service_call_init(&r->base, call, api, &r->range.op, range_done);
    return r;
}

static void range_start(struct range_call *r, struct slice message)
{
    r->range.sent = message;
    grpc_call_set_user(r->base.call, r);
    service_call_begin(&r->base);
    engine_range_start(r->base.api->shard, &r->range, &r->request);
}

void kv_range_on_message(struct grpc_call *call, void *api, struct slice message)
{
    struct range_call *r = range_call_new(call, api);
    if (!r || !etcd_call_decode(call, &pb_range_request_table, message, &r->request))
        return;
    enum status status = kv_check_range(&r->request);
    if (status != ST_OK)
        grpc_call_fail(call, status);
    else
        range_start(r, message);
}

void kv_range_stream_on_message(struct grpc_call *call, void *api, struct slice message)
{
    struct range_call *r = range_call_new(call, api);
    if (!r || !etcd_call_decode(call, &pb_range_request_table, message, &r->request))
        return;
    enum status status = kv_check_range(&r->request);
    const char *missing = kv_check_range_stream(&r->request);
    r->streams = true;
    if (status != ST_OK)
        grpc_call_fail(call, status);
    else if (missing)
        grpc_call_fail_text(call, GRPC_UNIMPLEMENTED, slice_from_text(missing));
    else
        range_start(r, message);
}

void kv_range_on_end(struct grpc_call *call, void *api)
{
    (void)api;
    struct range_call *r = grpc_call_user(call);
    if (!r)
        return; /* refused before the operation was started */
    if (service_call_end(&r->base))
        engine_range_close(&r->range);
    else
        engine_give_up(&r->range.op);
}
