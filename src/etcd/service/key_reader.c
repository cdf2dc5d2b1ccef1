#include "etcd/service/key_reader.h"

#include "etcd/shared/authenticator.h"
#include "watch/stream/stream.h"

#include <string.h>

enum {
    ANSWER_BYTES_MAX = 8 << 20, /* room for the encoded and the decoded key-value */
    DRAIN_BYTES = 4096,
    DRAINS_MAX = 64, /* per turn */
};

void key_reader_init(struct key_reader *reader, struct grpc_call *call, struct etcd_api *api,
                     void (*done)(struct key_reader *reader))
{
    *reader = (struct key_reader){.api = api, .call = call, .done = done};
    arena_init(&reader->arena, NULL, 0, ANSWER_BYTES_MAX);
}

static void stop_waiting(struct key_reader *reader)
{
    watch_stream_free(reader->stream);
    reader->stream = NULL;
}

void key_reader_fini(struct key_reader *reader)
{
    assert(!reader->pending);
    stop_waiting(reader);
    buf_fini(&reader->watched);
    arena_fini(&reader->arena);
}

enum status key_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end)
{
    struct slice end;
    TRY(arena_dup(arena, prefix, &end));
    uint8_t *bytes = (uint8_t *)(uintptr_t)end.ptr;
    /* Prefixes end in a slash, which can be incremented. */
    assert(end.len > 0 && bytes[end.len - 1] != 0xff);
    bytes[end.len - 1]++;
    *ret_end = end;
    return ST_OK;
}

enum status key_value_decode(struct slice field, struct arena *arena, struct pb_key_value *ret_kv)
{
    uint64_t len;
    const uint8_t *end = field.ptr + field.len;
    const uint8_t *message = pb_varint_read(field.ptr + 1, end, &len);
    assert(message && len == (uint64_t)(end - message)); /* our own bytes */
    return pb_decode(&pb_key_value_table, slice_of(message, (size_t)len), arena, ret_kv);
}

/* -- Reading -- */

static enum status take(struct key_reader *reader)
{
    if (reader->range.kvs == 0)
        return ST_OK;
    size_t bytes = (size_t)reader->range.kvs_bytes;
    uint8_t *field = arena_alloc(&reader->arena, bytes);
    if (!field)
        return ST_NOMEM;
    size_t n = engine_range_fill(&reader->range, field, bytes);
    if (n < bytes)
        return reader->range.op.status != ST_OK ? reader->range.op.status : ST_LIMIT;
    TRY(key_value_decode(slice_of(field, bytes), &reader->arena, &reader->kv));
    reader->found = true;
    return ST_OK;
}

static void range_done(struct engine_op *op)
{
    struct key_reader *reader = CONTAINER_OF(op, struct key_reader, range.op);
    reader->pending = false;
    reader->api->under_way--;
    if (op->status == ST_OK) {
        enum status status = take(reader);
        engine_range_close(&reader->range);
        op->status = status;
    }
    reader->done(reader);
}

static void start(struct key_reader *reader)
{
    assert(!reader->pending);
    arena_fini(&reader->arena);
    arena_init(&reader->arena, NULL, 0, ANSWER_BYTES_MAX);
    arena_charge(&reader->arena, grpc_call_arena(reader->call)->account);
    reader->found = false;
    reader->pending = true;
    reader->api->under_way++;
    reader->range.op.done = range_done;
    reader->range.op.arena = &reader->arena;
    reader->range.op.principal = authenticator_refresh(reader->api->authenticator, reader->call);
    engine_range_start(reader->api->shard, &reader->range, &reader->request);
}

void key_reader_get(struct key_reader *reader, struct slice key)
{
    reader->request = (struct pb_range_request){.key = key};
    start(reader);
}

void key_reader_get_oldest(struct key_reader *reader, struct slice prefix, struct slice prefix_end)
{
    reader->request = (struct pb_range_request){
        .key = prefix,
        .range_end = prefix_end,
        .limit = 1,
        .sort_order = PB_SORT_ORDER_ASCEND,
        .sort_target = PB_SORT_TARGET_CREATE,
    };
    start(reader);
}

void key_reader_get_before(struct key_reader *reader, struct slice prefix, struct slice prefix_end,
                           int64_t create_revision)
{
    assert(create_revision > 1); /* a max_create_revision of 0 would mean no limit */
    reader->request = (struct pb_range_request){
        .key = prefix,
        .range_end = prefix_end,
        .limit = 1,
        .sort_order = PB_SORT_ORDER_DESCEND,
        .sort_target = PB_SORT_TARGET_CREATE,
        .max_create_revision = create_revision - 1,
        .keys_only = true,
    };
    start(reader);
}

/* -- Waiting -- */

static void wake(void *ctx)
{
    struct key_reader *reader = ctx;
    grpc_call_wake(reader->call);
}

/* The stream can still wake the call: it has a watcher, and no message was truncated. */
static bool is_alive(const struct key_reader *reader)
{
    return watch_stream_watchers(reader->stream) > 0 &&
           watch_stream_status(reader->stream) == ST_OK;
}

static bool waits_for(const struct key_reader *reader, struct slice key, struct slice end)
{
    return reader->stream && is_alive(reader) && reader->wide == (end.len > 0) &&
           slice_equal(buf_slice(&reader->watched), key);
}

enum status key_reader_wait(struct key_reader *reader, struct slice key, struct slice end,
                            bool puts)
{
    if (waits_for(reader, key, end))
        return ST_OK;
    stop_waiting(reader);
    buf_reset(&reader->watched, SIZE_MAX);
    TRY(buf_append(&reader->watched, key));
    reader->wide = end.len > 0;
    reader->stream = watch_stream_new(engine_watch_hub(reader->api->shard),
                                      (struct watch_stream_owner){.wake = wake, .ctx = reader});
    struct watch_create create = {
        .key = key,
        .range_end = end,
        .start_revision = reader->range.op.revision + 1,
        .no_put = !puts,
    };
    TRY(watch_stream_create(reader->stream, &create));
    if (is_alive(reader))
        return ST_OK;
    stop_waiting(reader);
    return ST_TOO_MANY_WATCHES;
}

bool key_reader_drain(struct key_reader *reader)
{
    uint8_t drop[DRAIN_BYTES];
    bool more = reader->stream != NULL, some = false;
    for (int i = 0; more && i < DRAINS_MAX; i++)
        some |= watch_stream_fill(reader->stream, drop, sizeof(drop), &more) > 0;
    if (more) {
        grpc_call_wake(reader->call);
    } else if (reader->stream && !is_alive(reader)) {
        /* Its watcher was canceled, for instance by a compaction. Only another read can find what
         * happened meanwhile, and it starts another wait. */
        stop_waiting(reader);
        some = true;
    }
    return some;
}
