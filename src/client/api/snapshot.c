/*
 * A snapshot as a call with parts. etcd appends the SHA-256 of the database to it: the last 32
 * bytes of all blobs together. (A database is a whole number of pages of 512 bytes, by which
 * etcdctl knows that a digest was appended.)
 */
#include "client/call/parts.h"
#include "codec/pb/rpc.pb.h"
#include "net/sha256.h"

enum { DATABASE_UNIT_BYTES = 512 };

struct snapshot_call {
    struct parts_call parts;    /* first */
    struct sha256 *sum;         /* checksum of everything before the tail; owned */
    uint8_t tail[SHA256_BYTES]; /* the last bytes so far */
    size_t tail_len;
    uint64_t bytes; /* so far */
};

static const void *open_part(struct parts_call *parts, void *response)
{
    /* What the new bytes push out of the tail belongs to the database. */
    struct snapshot_call *snapshot = CONTAINER_OF(parts, struct snapshot_call, parts);
    struct slice bytes = ((struct pb_snapshot_response *)response)->blob;
    size_t total = snapshot->tail_len + bytes.len;
    size_t kept = size_min(total, SHA256_BYTES);
    size_t from_bytes = size_min(kept, bytes.len);
    size_t from_tail = kept - from_bytes;
    size_t pushed = snapshot->tail_len - from_tail;
    sha256_add(snapshot->sum, slice_of(snapshot->tail, pushed));
    sha256_add(snapshot->sum, slice_sub(bytes, 0, bytes.len - from_bytes));
    memmove(snapshot->tail, snapshot->tail + pushed, from_tail);
    slice_copy(snapshot->tail + from_tail, slice_sub(bytes, bytes.len - from_bytes, from_bytes));
    snapshot->tail_len = kept;
    snapshot->bytes += bytes.len;
    return response;
}

static int call_back(struct parts_call *parts, const void *part)
{
    return parts->fn.snapshot(&parts->call, part, parts->user);
}

static const char *check_digest(struct parts_call *parts)
{
    struct snapshot_call *snapshot = CONTAINER_OF(parts, struct snapshot_call, parts);
    uint8_t digest[SHA256_BYTES];
    if (snapshot->bytes % DATABASE_UNIT_BYTES != SHA256_BYTES)
        return "the snapshot has no digest at its end, so it may not be complete";
    if (sha256_finish(snapshot->sum, digest) != ST_OK)
        return "the digest of the snapshot cannot be computed";
    if (memcmp(digest, snapshot->tail, sizeof(digest)) != 0)
        return "the snapshot is damaged: its digest is wrong";
    return NULL;
}

static void release(struct parts_call *parts)
{
    sha256_free(TAKE(CONTAINER_OF(parts, struct snapshot_call, parts)->sum));
}

static const struct client_method snapshot_method = {
    .path = "/etcdserverpb.Maintenance/Snapshot",
    .request = &pb_snapshot_request_table,
    .response = &pb_snapshot_response_table,
    .reads = true,
    .parts = &parts_stream_ops,
};
static const struct parts_hooks snapshot_hooks = {
    .open = open_part,
    .call_back = call_back,
    .check = check_digest,
    .release = release,
};

vigil_call *vigil_snapshot(vigil_client *client, vigil_snapshot_fn fn, void *user)
{
    struct pb_snapshot_request message = {0};
    struct parts_call *parts = parts_call_new(client, &snapshot_method, &snapshot_hooks,
                                              sizeof(struct snapshot_call), user);
    if (!parts)
        return NULL;
    struct snapshot_call *snapshot = CONTAINER_OF(parts, struct snapshot_call, parts);
    parts->fn.snapshot = fn;
    snapshot->sum = sha256_new();
    if (!snapshot->sum) {
        vigil_call_free(&parts->call);
        return NULL;
    }
    client_call_wait_long(&parts->call);
    return parts_call_with(parts, &message);
}
