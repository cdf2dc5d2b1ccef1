#include "etcd/service/key_reader.h"

#include "etcd/authentication.h"
#include "watch/stream.h"

#include <string.h>

enum {
    ANSWER_BYTES_MAX = 8 << 20, /* a key-value fits in any limit on requests, twice */
    DRAIN_BYTES = 4096,
    DRAINS_MAX = 64, /* in one turn */
};

void look_init(struct look *look, struct grpc_call *call, struct etcd_face *face,
               void (*done)(struct look *look))
{
    *look = (struct look){.face = face, .call = call, .done = done};
    arena_init(&look->arena, NULL, 0, ANSWER_BYTES_MAX);
}

static void stop_waiting(struct look *look)
{
    watch_stream_free(look->stream);
    look->stream = NULL;
}

void look_fini(struct look *look)
{
    assert(!look->pending);
    stop_waiting(look);
    buf_fini(&look->watched);
    arena_fini(&look->arena);
}

enum status look_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end)
{
    struct slice end;
    TRY(arena_dup(arena, prefix, &end));
    uint8_t *bytes = (uint8_t *)(uintptr_t)end.ptr;
    /* Callers' prefixes end in a slash, which can be counted up. */
    assert(end.len > 0 && bytes[end.len - 1] != 0xff);
    bytes[end.len - 1]++;
    *ret_end = end;
    return ST_OK;
}

enum status look_decode(struct slice field, struct arena *arena, struct pb_key_value *ret_kv)
{
    uint64_t len;
    const uint8_t *end = field.ptr + field.len;
    const uint8_t *message = pb_varint_read(field.ptr + 1, end, &len);
    assert(message && len == (uint64_t)(end - message)); /* our own bytes */
    return pb_decode(&pb_key_value_table, slice_of(message, (size_t)len), arena, ret_kv);
}

/* -- Looking -- */

static enum status take(struct look *look)
{
    if (look->range.kvs == 0)
        return ST_OK;
    size_t bytes = (size_t)look->range.kvs_bytes;
    uint8_t *field = arena_alloc(&look->arena, bytes);
    if (!field)
        return ST_NOMEM;
    size_t n = engine_range_fill(&look->range, field, bytes);
    if (n < bytes)
        return look->range.op.status != ST_OK ? look->range.op.status : ST_LIMIT;
    TRY(look_decode(slice_of(field, bytes), &look->arena, &look->kv));
    look->found = true;
    return ST_OK;
}

static void range_done(struct engine_op *op)
{
    struct look *look = CONTAINER_OF(op, struct look, range.op);
    look->pending = false;
    look->face->under_way--;
    if (op->status == ST_OK) {
        enum status status = take(look);
        engine_range_close(&look->range);
        op->status = status;
    }
    look->done(look);
}

static void start(struct look *look)
{
    assert(!look->pending);
    arena_fini(&look->arena);
    arena_init(&look->arena, NULL, 0, ANSWER_BYTES_MAX);
    arena_charge(&look->arena, grpc_call_arena(look->call)->account);
    look->found = false;
    look->pending = true;
    look->face->under_way++;
    look->range.op.done = range_done;
    look->range.op.arena = &look->arena;
    look->range.op.principal = etcd_callers_again(look->face->callers, look->call);
    engine_range_start(look->face->shard, &look->range, &look->request);
}

void look_key(struct look *look, struct slice key)
{
    look->request = (struct pb_range_request){.key = key};
    start(look);
}

void look_oldest(struct look *look, struct slice prefix, struct slice prefix_end)
{
    look->request = (struct pb_range_request){
        .key = prefix,
        .range_end = prefix_end,
        .limit = 1,
        .sort_order = PB_SORT_ORDER_ASCEND,
        .sort_target = PB_SORT_TARGET_CREATE,
    };
    start(look);
}

void look_before(struct look *look, struct slice prefix, struct slice prefix_end,
                 int64_t create_revision)
{
    assert(create_revision > 1); /* 0 would ask for all */
    look->request = (struct pb_range_request){
        .key = prefix,
        .range_end = prefix_end,
        .limit = 1,
        .sort_order = PB_SORT_ORDER_DESCEND,
        .sort_target = PB_SORT_TARGET_CREATE,
        .max_create_revision = create_revision - 1,
        .keys_only = true,
    };
    start(look);
}

/* -- Waiting -- */

static void wake(void *ctx)
{
    struct look *look = ctx;
    grpc_call_wake(look->call);
}

/* The stream will be woken again: it has a watcher, and no message was broken off. */
static bool is_alive(const struct look *look)
{
    return watch_stream_watchers(look->stream) > 0 && watch_stream_status(look->stream) == ST_OK;
}

static bool waits_for(const struct look *look, struct slice key, struct slice end)
{
    return look->stream && is_alive(look) && look->wide == (end.len > 0) &&
           slice_equal(buf_slice(&look->watched), key);
}

enum status look_wait(struct look *look, struct slice key, struct slice end, bool puts)
{
    if (waits_for(look, key, end))
        return ST_OK;
    stop_waiting(look);
    buf_reset(&look->watched, SIZE_MAX);
    TRY(buf_append(&look->watched, key));
    look->wide = end.len > 0;
    look->stream = watch_stream_new(engine_watch_hub(look->face->shard),
                                    (struct watch_stream_owner){.wake = wake, .ctx = look});
    struct watch_create create = {
        .key = key,
        .range_end = end,
        .start_revision = look->range.op.revision + 1,
        .no_put = !puts,
    };
    TRY(watch_stream_create(look->stream, &create));
    if (is_alive(look))
        return ST_OK;
    stop_waiting(look);
    return ST_TOO_MANY_WATCHES;
}

enum look_news look_drain(struct look *look)
{
    uint8_t drop[DRAIN_BYTES];
    bool more = look->stream != NULL, some = false;
    for (int i = 0; more && i < DRAINS_MAX; i++)
        some |= watch_stream_fill(look->stream, drop, sizeof(drop), &more) > 0;
    if (more) {
        grpc_call_wake(look->call);
    } else if (look->stream && !is_alive(look)) {
        /* Its watcher was canceled, for instance by a compaction. Only another look can say what
         * happened meanwhile, and it begins another wait. */
        stop_waiting(look);
        some = true;
    }
    return some ? LOOK_AGAIN : LOOK_NOTHING;
}
