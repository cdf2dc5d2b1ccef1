/*
 * Maintenance.Snapshot: sends the engine's snapshot file in messages of 32 KiB, as etcd does, and
 * its digest in the last message. Each piece is requested when the one before is sent, so a client
 * that stops reading costs only what the engine holds for it. The transport's timeouts limit how
 * long that may be.
 */
#include "etcd/service/snapshot.h"

#include "base/log/log.h"
#include "codec/json/writer.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "engine/engine.h"
#include "etcd/service/service_call.h"

#include <stdlib.h>

enum {
    BLOB_BYTES = 32 << 10,
    /* The first version whose files contain their storage version. Files of later versions have the
     * same format; older versions are recognised by its absence. */
    STORAGE_VERSION_MINOR = 6,
    VERSION_BYTES_MAX = 32,
    HEAD_BYTES_MAX = GRPC_PREFIX_BYTES + 2 * (1 + PB_VARINT_BYTES_MAX),
    TAIL_BYTES_MAX = 2 + VERSION_BYTES_MAX,
};
#define STORAGE_VERSION "3.6.0"

_Static_assert(ENGINE_SNAPSHOT_PIECE_BYTES % BLOB_BYTES == 0, "a message has bytes of one piece");

struct snapshot_part {
    uint8_t bytes[HEAD_BYTES_MAX > TAIL_BYTES_MAX ? HEAD_BYTES_MAX : TAIL_BYTES_MAX];
    size_t len, at;
};

/* One call. In its arena. */
struct snapshot_call {
    struct engine_snapshot snapshot; /* first */
    struct grpc_source source;
    struct service_call base;
    struct buf member;    /* JSON; owned until the end */
    struct slice version; /* the storage version in each message; empty before 3.6 */
    int64_t begun_ns;
    bool started; /* the engine has started the snapshot */
    bool filling; /* within fill, so the call need not be woken */
    bool digest_begun;
    uint64_t left;     /* bytes of the file that are in no message yet */
    uint64_t messages; /* begun so far */
    size_t piece_at;   /* bytes of the engine's piece that are in messages */
    /* The message that is being sent: */
    struct snapshot_part head, tail;
    struct slice blob; /* its bytes of the file that are not sent yet */
};

/* -- Messages -- */

static void message_begin(struct snapshot_call *s, struct slice blob)
{
    size_t bytes =
        pb_uint_size(2, s->left) + pb_bytes_size(3, blob.len) + pb_bytes_size(4, s->version.len);
    uint8_t *end = s->head.bytes;
    grpc_prefix_write(end, (uint32_t)bytes);
    end = pb_uint_write(end + GRPC_PREFIX_BYTES, 2, s->left);
    end = pb_message_head_write(end, 3, blob.len);
    s->head.len = (size_t)(end - s->head.bytes);
    s->tail.len = (size_t)(pb_bytes_write(s->tail.bytes, 4, s->version) - s->tail.bytes);
    s->head.at = s->tail.at = 0;
    s->blob = blob;
    s->messages++;
}

static size_t part_copy(struct snapshot_part *part, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, part->len - part->at);
    memcpy(dst, part->bytes + part->at, n);
    part->at += n;
    return n;
}

static size_t message_fill(struct snapshot_call *s, uint8_t *dst, size_t room)
{
    size_t at = part_copy(&s->head, dst, room);
    size_t n = size_min(room - at, s->blob.len);
    slice_copy(dst + at, slice_sub(s->blob, 0, n));
    s->blob = slice_sub(s->blob, n, s->blob.len - n);
    at += n;
    return s->blob.len ? at : at + part_copy(&s->tail, dst + at, room - at);
}

static bool message_is_whole(const struct snapshot_call *s)
{
    return s->head.at == s->head.len && s->blob.len == 0 && s->tail.at == s->tail.len;
}

/* Begins the next message. False: there is none, because the engine is busy, has failed, or has
 * returned everything. */
static bool message_next(struct snapshot_call *s)
{
    if (s->left == 0 && s->digest_begun)
        return false;
    if (s->left == 0) {
        log_info("sending database sha256 checksum to client",
                 LOG_U64("total-bytes", s->snapshot.bytes),
                 LOG_U64("checksum-size", ENGINE_SNAPSHOT_DIGEST_BYTES));
        s->digest_begun = true;
        message_begin(s, slice_of(s->snapshot.digest, sizeof(s->snapshot.digest)));
        return true;
    }
    if (s->piece_at == s->snapshot.piece.len) {
        s->piece_at = 0;
        service_call_begin(&s->base);
        engine_snapshot_read(&s->snapshot);
        if (service_call_is_pending(&s->base) || s->snapshot.op.status != ST_OK)
            return false;
    }
    struct slice piece = s->snapshot.piece;
    struct slice blob =
        slice_sub(piece, s->piece_at, size_min(BLOB_BYTES, piece.len - s->piece_at));
    s->piece_at += blob.len;
    s->left -= blob.len;
    message_begin(s, blob);
    return true;
}

/* -- The call -- */

/* Releases the snapshot and the member's JSON. May be called twice. */
static void release(struct snapshot_call *s)
{
    engine_snapshot_close(&s->snapshot);
    buf_fini(&s->member);
}

/* The snapshot is released first, because failing may end the call and free its memory. */
static void fail(struct snapshot_call *s)
{
    struct engine_op op = s->snapshot.op;
    log_warn("failed to send database snapshot to client", LOG_STATUS(op.status));
    release(s);
    etcd_call_fail_op(s->base.call, &op);
}

static void log_sent(const struct snapshot_call *s)
{
    log_info("successfully sent database snapshot to client",
             LOG_U64("total-bytes", s->snapshot.bytes),
             LOG_DURATION("took", grpc_call_now(s->base.call) - s->begun_ns),
             LOG_SLICE("storage-version", s->version));
}

static enum grpc_fill source_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                  size_t *ret_len)
{
    struct snapshot_call *s = CONTAINER_OF(source, struct snapshot_call, source);
    size_t at = 0;
    s->filling = true;
    while (at < room && !service_call_is_pending(&s->base)) {
        at += message_fill(s, dst + at, room - at);
        if (message_is_whole(s) && !message_next(s))
            break;
    }
    s->filling = false;
    *ret_len = at;
    if (service_call_is_pending(&s->base))
        return GRPC_FILL_PARKED;
    if (s->snapshot.op.status != ST_OK) {
        fail(s);
        return GRPC_FILL_PARKED;
    }
    if (!message_is_whole(s) || s->left > 0 || !s->digest_begun)
        return GRPC_FILL_MORE;
    grpc_call_sent(s->base.call, s->messages);
    log_sent(s);
    release(s);
    return GRPC_FILL_DONE;
}

static void started(struct snapshot_call *s)
{
    s->started = true;
    s->left = s->snapshot.bytes;
    s->snapshot.piece = SLICE_EMPTY;
    log_info("sending database snapshot to client", LOG_U64("total-bytes", s->snapshot.bytes),
             LOG_SLICE("storage-version", s->version));
    s->source.fill = source_fill;
    grpc_call_set_source(s->base.call, &s->source);
}

static void snapshot_done(struct engine_op *op)
{
    struct snapshot_call *s = CONTAINER_OF(op, struct snapshot_call, snapshot.op);
    struct grpc_call *call = s->base.call;
    if (!service_call_answered(&s->base)) {
        release(s);
        service_call_release(&s->base);
    } else if (s->filling) {
        return; /* fill continues by itself */
    } else if (op->status != ST_OK) {
        fail(s);
    } else if (!s->started) {
        started(s);
    } else {
        grpc_call_wake(call);
    }
}

void snapshot_on_end(struct grpc_call *call, void *api)
{
    (void)api;
    struct snapshot_call *s = grpc_call_user(call);
    if (!s)
        return; /* refused before the operation was started */
    if (service_call_end(&s->base))
        release(s);
    else
        engine_give_up(&s->snapshot.op);
}

/* -- The member and version in the file -- */

static enum status member_write(const struct etcd_api *api, struct buf *out)
{
    const struct etcd_config *config = api->config;
    struct json_writer w;
    json_writer_init(&w, out);
    json_begin_object(&w);
    json_member_u64(&w, "id", api->identity.member_id);
    json_key(&w, "peerURLs");
    json_strings(&w, config->peer_urls, config->peer_url_count);
    json_member_text(&w, "name", config->member_name);
    json_key(&w, "clientURLs");
    json_strings(&w, config->client_urls, config->client_url_count);
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* cluster_version: such as "3.7.0". The major version is always 3. */
static bool has_storage_version(const char *cluster_version)
{
    const char *dot = strchr(cluster_version, '.');
    return dot && strtoul(dot + 1, NULL, 10) >= STORAGE_VERSION_MINOR;
}

void snapshot_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_snapshot_request request;
    if (!etcd_call_decode(call, &pb_snapshot_request_table, message, &request))
        return;
    struct snapshot_call *s = arena_calloc(grpc_call_arena(call), 1, sizeof(*s));
    if (!s || member_write(api, &s->member) != ST_OK) {
        if (s)
            buf_fini(&s->member);
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    const char *version = api->config->cluster_version;
    bool has_version = has_storage_version(version) && strlen(version) < VERSION_BYTES_MAX;
    service_call_init(&s->base, call, api, &s->snapshot.op, snapshot_done);
    s->begun_ns = grpc_call_now(call);
    s->version = has_version ? slice_from_text(version) : SLICE_EMPTY;
    s->snapshot.about = (struct engine_snapshot_about){
        .storage_version = has_version ? STORAGE_VERSION : "",
        .cluster_version = version,
        .member = buf_slice(&s->member),
    };
    grpc_call_set_user(call, s);
    service_call_begin(&s->base);
    engine_snapshot_start(api->shard, &s->snapshot);
}
