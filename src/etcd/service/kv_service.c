/*
 * The KV service: the table of its methods, and those that write. A long answer (what a delete
 * replaced, what a transaction read) is produced as the connection has room, like a list.
 */
#include "codec/pb/rpc.pb.h"
#include "etcd/authentication.h"
#include "etcd/service.h"
#include "etcd/service/kv_check.h"

enum { DIRECT_BYTES_MAX = 16 * 1024 }; /* encoded into the output at once */
/*
 * For a long answer to be taken. It refers to the state the write saw, which cannot be freed
 * meanwhile; a list would go over to a newer one, but what a write saw has none.
 */
static const int64_t take_within_ns = INT64_C(60000000000);

/* One write. In the call's arena; the connection's thread. */
struct write_call {
    struct engine_write write; /* first */
    struct grpc_call *call;
    struct etcd_face *face;
    bool pending; /* the engine has not answered */
    bool open;    /* it has, and the answer is in use */
    bool ended;   /* the peer is gone; held until the engine answers */
    union {
        struct pb_put_request put;
        struct pb_delete_range_request delete_range;
        struct pb_txn_request txn;
        struct pb_compaction_request compaction;
    };
};

/* -- Answers -- */

/* A long answer on its way out. In the call's arena. */
struct output {
    struct grpc_source source;
    struct write_call *write;
    struct kv_plan plan;
    struct kv_writer writer;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    size_t prefix_at;   /* bytes of it written */
    size_t left;        /* bytes of the message to come */
    int64_t give_up_ns; /* on the connection's clock */
};

static void close_write(struct write_call *w)
{
    engine_write_close(&w->write);
    w->open = false;
}

/*
 * It was done, and there is no room to say so. A client may take most errors for a promise that
 * nothing was done, so this is told as etcd tells an outcome that is not known. Closes first:
 * failing may end the call, and its memory with it.
 */
static void fail_done(struct write_call *w)
{
    close_write(w);
    grpc_call_fail(w->call, ST_TIMEOUT);
}

static enum grpc_fill source_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                  size_t *ret_len)
{
    struct output *o = CONTAINER_OF(source, struct output, source);
    if (grpc_call_now(o->write->call) > o->give_up_ns) {
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
    uint8_t *dst = grpc_call_message(w->call, plan->bytes);
    if (!dst) {
        fail_done(w);
        return;
    }
    struct kv_writer writer;
    kv_writer_init(&writer, plan);
    size_t n = kv_writer_fill(&writer, dst, plan->bytes);
    assert(n == plan->bytes);
    close_write(w);
    grpc_call_finish(w->call);
}

static void reply_long(struct write_call *w, const struct kv_plan *plan)
{
    struct output *o = arena_alloc(grpc_call_arena(w->call), sizeof(*o));
    if (!o) {
        fail_done(w);
        return;
    }
    o->source.fill = source_fill;
    o->write = w;
    o->plan = *plan;
    o->prefix_at = 0;
    o->left = plan->bytes;
    o->give_up_ns = grpc_call_now(w->call) + take_within_ns;
    grpc_prefix_write(o->prefix, (uint32_t)plan->bytes);
    kv_writer_init(&o->writer, &o->plan);
    grpc_call_set_source(w->call, &o->source);
}

static void reply(struct write_call *w)
{
    struct kv_header header = etcd_header(w->face, w->write.op.revision);
    struct kv_plan plan;
    if (kv_plan_make(&plan, &w->write.answer, &header, grpc_call_arena(w->call)) != ST_OK) {
        fail_done(w);
    } else if (plan.bytes <= DIRECT_BYTES_MAX) {
        reply_direct(w, &plan);
    } else if (plan.bytes > ETCD_MESSAGE_BYTES_MAX) {
        close_write(w);
        etcd_call_fail_length(w->call, plan.bytes);
    } else {
        reply_long(w, &plan);
    }
}

static void write_done(struct engine_op *op)
{
    struct write_call *w = CONTAINER_OF(op, struct write_call, write.op);
    struct grpc_call *call = w->call;
    w->pending = false;
    w->open = true;
    w->face->under_way--;
    if (w->ended) {
        close_write(w);
        grpc_call_release(call);
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
    w->pending = false;
    w->face->under_way--;
    if (w->ended) {
        grpc_call_release(w->call);
        return;
    }
    if (op->status != ST_OK) {
        etcd_call_fail_op(w->call, op);
        return;
    }
    struct kv_header header = etcd_header(w->face, op->revision);
    uint8_t *dst = grpc_call_message(w->call, kv_header_size(&header));
    if (!dst) {
        grpc_call_fail(w->call, ST_TIMEOUT); /* as in fail_done */
        return;
    }
    kv_header_write(dst, &header);
    grpc_call_finish(w->call);
}

static void write_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct write_call *w = grpc_call_user(call);
    if (!w)
        return; /* refused before the engine heard of it */
    w->ended = true;
    if (w->pending) {
        engine_write_give_up(&w->write);
        grpc_call_hold(call);
    } else if (w->open) {
        close_write(w);
    }
}

/* -- Requests -- */

static struct write_call *write_call_new(struct grpc_call *call, struct etcd_face *face)
{
    struct write_call *w = arena_calloc(grpc_call_arena(call), 1, sizeof(*w));
    if (!w) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    w->call = call;
    w->face = face;
    w->write.op.done = write_done;
    w->write.op.arena = grpc_call_arena(call);
    w->write.op.principal = etcd_call_principal(call);
    return w;
}

/*
 * etcd limits the request as it goes into its log: wrapped, with a header that holds a number made
 * of the member's last two bytes and 48 more bits.
 */
enum status etcd_check_size(const struct etcd_face *face, size_t message_bytes)
{
    uint64_t log_id = (face->identity.member_id << 48) | (UINT64_C(1) << 47);
    size_t log_header = 2 + 1 + 1 + pb_varint_size(log_id);
    size_t bytes = 1 + pb_varint_size(message_bytes) + message_bytes + log_header;
    return bytes > face->config->request_bytes_max ? ST_REQUEST_TOO_LARGE : ST_OK;
}

/* True: the request may be started, and is then pending. */
static bool admit(struct write_call *w, enum status checked)
{
    if (checked != ST_OK) {
        grpc_call_fail(w->call, checked);
        return false;
    }
    grpc_call_set_user(w->call, w);
    w->pending = true;
    w->face->under_way++;
    return true;
}

static void put_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    struct write_call *w = write_call_new(call, face);
    if (!w || !etcd_call_decode(call, &pb_put_request_table, message, &w->put))
        return;
    enum status status = kv_check_put(&w->put);
    if (status == ST_OK)
        status = etcd_check_size(face, message.len);
    if (admit(w, status))
        engine_put(face->shard, &w->write, &w->put);
}

static void delete_range_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    struct write_call *w = write_call_new(call, face);
    if (!w || !etcd_call_decode(call, &pb_delete_range_request_table, message, &w->delete_range))
        return;
    enum status status = kv_check_delete_range(&w->delete_range);
    if (status == ST_OK)
        status = etcd_check_size(face, message.len);
    if (admit(w, status))
        engine_delete_range(face->shard, &w->write, &w->delete_range);
}

static void txn_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    if (kv_txn_is_too_long(message, face->config->txn_ops_max)) {
        grpc_call_fail(call, ST_TOO_MANY_OPS);
        return;
    }
    struct write_call *w = write_call_new(call, face);
    if (!w || !etcd_call_decode(call, &pb_txn_request_table, message, &w->txn))
        return;
    enum status status = kv_check_txn(&w->txn, face->config->txn_ops_max, grpc_call_arena(call));
    if (status == ST_OK && !kv_txn_reads_only(&w->txn))
        status = etcd_check_size(face, message.len);
    if (admit(w, status))
        engine_txn(face->shard, &w->write, &w->txn);
}

static void compact_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    struct write_call *w = write_call_new(call, face);
    if (!w || !etcd_call_decode(call, &pb_compaction_request_table, message, &w->compaction))
        return;
    w->write.op.done = compact_done;
    if (admit(w, ST_OK))
        engine_compact(face->shard, &w->write.op, &w->compaction);
}

static const struct grpc_method methods[] = {
    {
        .path = PB_KV_RANGE_PATH,
        .bulk = true,
        .on_message = kv_range_on_message,
        .on_end = kv_range_on_end,
    },
    {
        .path = PB_KV_RANGE_STREAM_PATH,
        .server_streams = true,
        .bulk = true,
        .on_message = kv_range_stream_on_message,
        .on_end = kv_range_on_end,
    },
    {.path = PB_KV_PUT_PATH, .on_message = put_on_message, .on_end = write_on_end},
    {.path = PB_KV_DELETE_RANGE_PATH,
     .on_message = delete_range_on_message,
     .on_end = write_on_end},
    {.path = PB_KV_TXN_PATH, .on_message = txn_on_message, .on_end = write_on_end},
    {.path = PB_KV_COMPACT_PATH, .on_message = compact_on_message, .on_end = write_on_end},
};

enum status kv_service_add(struct etcd_face *face)
{
    return grpc_services_add(face->services, methods, COUNT_OF(methods), face);
}
