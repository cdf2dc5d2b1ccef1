/*
 * The KV service: the table of its methods, and the methods that write. A long response (the
 * previous values of a delete, the reads of a transaction) is sent as the connection has room, like
 * a list.
 */
#include "codec/pb/rpc.pb.h"
#include "engine/forward.h"
#include "etcd/service/kv_check.h"
#include "etcd/service/kv_range.h"
#include "etcd/service/service_call.h"
#include "etcd/service/services.h"

/*
 * How long a client may take to read a long response. The response refers to the state that the
 * write saw, which cannot be freed meanwhile. (A list can switch to a newer state; the response to
 * a write cannot.)
 */
static const int64_t take_within_ns = INT64_C(60000000000);

/* One write. In the call's arena, on the connection's thread. */
struct write_call {
    struct engine_write write; /* first */
    struct service_call base;
    bool open; /* the engine has answered, and the answer is in use */
    union {
        struct pb_put_request put;
        struct pb_delete_range_request delete_range;
        struct pb_txn_request txn;
        struct pb_compaction_request compaction;
    };
};

/* -- Answers -- */

/* A long response that is being sent. In the call's arena. */
struct write_output {
    struct grpc_source source;
    struct write_call *write;
    struct kv_plan plan;
    struct kv_writer writer;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    size_t prefix_at;   /* bytes of the prefix that are written */
    size_t left;        /* bytes of the message that are not written */
    int64_t give_up_ns; /* by the connection's clock */
};

static void close_write(struct write_call *w)
{
    engine_write_close(&w->write);
    w->open = false;
}

/*
 * The write was done, but there is no memory for the response. Clients may understand most errors
 * as a promise that nothing was done, so the error is the one that etcd uses for an unknown
 * outcome. The write is closed first, because failing may end the call and free its memory.
 */
static void fail_done(struct write_call *w)
{
    close_write(w);
    grpc_call_fail(w->base.call, ST_TIMEOUT);
}

static enum grpc_fill source_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                  size_t *ret_len)
{
    struct write_output *o = CONTAINER_OF(source, struct write_output, source);
    if (grpc_call_now(o->write->base.call) > o->give_up_ns) {
        *ret_len = 0;
        fail_done(o->write);
        return GRPC_FILL_PARKED;
    }
    size_t n = size_min(room, GRPC_PREFIX_BYTES - o->prefix_at);
    memcpy(dst, o->prefix + o->prefix_at, n);
    o->prefix_at += n;
    size_t filled = kv_writer_fill(&o->writer, dst + n, room - n);
    o->left -= filled;
    *ret_len = n + filled;
    if (o->left > 0)
        return GRPC_FILL_MORE;
    close_write(o->write);
    return GRPC_FILL_DONE;
}

static void reply_direct(struct write_call *w, const struct kv_plan *plan)
{
    uint8_t *dst = grpc_call_message(w->base.call, plan->bytes);
    if (!dst) {
        fail_done(w);
        return;
    }
    struct kv_writer writer;
    kv_writer_init(&writer, plan);
    size_t n = kv_writer_fill(&writer, dst, plan->bytes);
    assert(n == plan->bytes);
    close_write(w);
    grpc_call_finish(w->base.call);
}

static void reply_long(struct write_call *w, const struct kv_plan *plan)
{
    struct write_output *o = arena_alloc(grpc_call_arena(w->base.call), sizeof(*o));
    if (!o) {
        fail_done(w);
        return;
    }
    o->source.fill = source_fill;
    o->write = w;
    o->plan = *plan;
    o->prefix_at = 0;
    o->left = plan->bytes;
    o->give_up_ns = grpc_call_now(w->base.call) + take_within_ns;
    grpc_prefix_write(o->prefix, (uint32_t)plan->bytes);
    kv_writer_init(&o->writer, &o->plan);
    grpc_call_set_source(w->base.call, &o->source);
}

static void reply(struct write_call *w)
{
    struct kv_header header = etcd_header(w->base.api, w->write.op.revision);
    struct kv_plan plan;
    if (kv_plan_make(&plan, &w->write.answer, &header, grpc_call_arena(w->base.call)) != ST_OK) {
        fail_done(w);
    } else if (plan.bytes <= KV_DIRECT_BYTES_MAX) {
        reply_direct(w, &plan);
    } else if (plan.bytes > ETCD_MESSAGE_BYTES_MAX) {
        close_write(w);
        etcd_call_fail_length(w->base.call, plan.bytes);
    } else {
        reply_long(w, &plan);
    }
}

static void write_done(struct engine_op *op)
{
    struct write_call *w = CONTAINER_OF(op, struct write_call, write.op);
    struct grpc_call *call = w->base.call;
    w->open = true;
    if (!service_call_answered(&w->base)) {
        close_write(w);
        service_call_release(&w->base);
    } else if (op->status != ST_OK) {
        close_write(w);
        etcd_call_fail_op(call, op);
    } else {
        reply(w);
    }
}

static void compact_done(struct engine_op *op)
{
    struct write_call *w = CONTAINER_OF(op, struct write_call, write.op);
    if (!service_call_answered(&w->base)) {
        service_call_release(&w->base);
        return;
    }
    if (op->status != ST_OK) {
        etcd_call_fail_op(w->base.call, op);
        return;
    }
    struct kv_header header = etcd_header(w->base.api, op->revision);
    uint8_t *dst = grpc_call_message(w->base.call, kv_header_size(&header));
    if (!dst) {
        grpc_call_fail(w->base.call, ST_TIMEOUT); /* as in fail_done */
        return;
    }
    kv_header_write(dst, &header);
    grpc_call_finish(w->base.call);
}

static void write_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct write_call *w = grpc_call_user(call);
    if (!w)
        return; /* refused before the operation was started */
    if (!service_call_end(&w->base))
        engine_give_up(&w->write.op);
    else if (w->open)
        close_write(w);
}

/* -- Requests -- */

static struct write_call *write_call_new(struct grpc_call *call, struct etcd_api *api)
{
    struct write_call *w = arena_calloc(grpc_call_arena(call), 1, sizeof(*w));
    if (!w) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    service_call_init(&w->base, call, api, &w->write.op, write_done);
    return w;
}

/* True: the request is valid and now pending; the caller starts its operation. */
static bool admit(struct write_call *w, enum status checked)
{
    if (checked != ST_OK) {
        grpc_call_fail(w->base.call, checked);
        return false;
    }
    grpc_call_set_user(w->base.call, w);
    service_call_begin(&w->base);
    return true;
}

static void put_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct write_call *w = write_call_new(call, api);
    if (!w || !etcd_call_decode(call, &pb_put_request_table, message, &w->put))
        return;
    enum status status = kv_check_put(&w->put);
    if (status == ST_OK)
        status = etcd_check_size(api, message.len);
    if (admit(w, status))
        engine_put(api->shard, &w->write, &w->put);
}

static void delete_range_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct write_call *w = write_call_new(call, api);
    if (!w || !etcd_call_decode(call, &pb_delete_range_request_table, message, &w->delete_range))
        return;
    enum status status = kv_check_delete_range(&w->delete_range);
    if (status == ST_OK)
        status = etcd_check_size(api, message.len);
    if (admit(w, status))
        engine_delete_range(api->shard, &w->write, &w->delete_range);
}

static void txn_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    if (kv_txn_is_too_long(message, api->config->txn_ops_max)) {
        grpc_call_fail(call, ST_TOO_MANY_OPS);
        return;
    }
    struct write_call *w = write_call_new(call, api);
    if (!w || !etcd_call_decode(call, &pb_txn_request_table, message, &w->txn))
        return;
    enum status status = kv_check_txn(&w->txn, api->config->txn_ops_max, grpc_call_arena(call));
    if (status == ST_OK && !kv_txn_reads_only(&w->txn))
        status = etcd_check_size(api, message.len);
    if (admit(w, status))
        engine_txn(api->shard, &w->write, &w->txn);
}

static void compact_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct write_call *w = write_call_new(call, api);
    if (!w || !etcd_call_decode(call, &pb_compaction_request_table, message, &w->compaction))
        return;
    w->write.op.done = compact_done;
    if (admit(w, ST_OK))
        engine_compact(api->shard, &w->write.op, &w->compaction);
}

/* The reads come first: in front of a cluster only they are answered here (etcd/cluster/forward.h).
 */
enum { READ_METHODS = 2 };

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_KV_RANGE_PATH, kv_range_on_message, kv_range_on_end, .bulk = true),
    GRPC_METHOD(PB_KV_RANGE_STREAM_PATH, kv_range_stream_on_message, kv_range_on_end,
                .server_streams = true, .bulk = true),
    GRPC_METHOD(PB_KV_PUT_PATH, put_on_message, write_on_end),
    GRPC_METHOD(PB_KV_DELETE_RANGE_PATH, delete_range_on_message, write_on_end),
    GRPC_METHOD(PB_KV_TXN_PATH, txn_on_message, write_on_end),
    GRPC_METHOD(PB_KV_COMPACT_PATH, compact_on_message, write_on_end),
};

enum status kv_service_add(struct etcd_api *api)
{
    size_t count = engine_forwards(api->engine) ? READ_METHODS : COUNT_OF(methods);
    return grpc_services_add(api->services, methods, count, api);
}
