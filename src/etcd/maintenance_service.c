/*
 * The Maintenance service as far as one node without alarms needs it. Methods that are not here
 * (Defragment, Snapshot, Downgrade) are answered as grpc-go answers what it does not know.
 */
#include "codec/pb/rpc.pb.h"
#include "etcd/service.h"

static struct pb_response_header header_now(const struct etcd_face *face)
{
    struct kv_header header = etcd_header_now(face);
    return (struct pb_response_header){
        .cluster_id = header.cluster_id,
        .member_id = header.member_id,
        .revision = header.revision,
        .raft_term = header.raft_term,
    };
}

static void status_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    struct pb_status_request request;
    if (!etcd_call_decode(call, &pb_status_request_table, message, &request))
        return;
    struct engine_status status;
    engine_status_get(face->shard, &status);
    struct pb_response_header header = header_now(face);
    struct pb_downgrade_info downgrade = {.enabled = false};
    struct pb_status_response response = {
        .header = &header,
        .version = slice_from_text(face->config->version),
        .db_size = status.db_size_bytes,
        .leader = face->identity.member_id,
        .raft_index = status.raft_index,
        .raft_term = face->identity.raft_term,
        .raft_applied_index = status.applied_index,
        .db_size_in_use = status.db_size_in_use_bytes,
        .storage_version = slice_from_text(face->config->cluster_version),
        .db_size_quota = status.quota_bytes,
        .downgrade_info = &downgrade,
    };
    etcd_call_reply(call, &pb_status_response_table, &response);
}

static void alarm_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    struct pb_alarm_request request;
    if (!etcd_call_decode(call, &pb_alarm_request_table, message, &request))
        return;
    if (request.action == PB_ALARM_ACTION_ACTIVATE) {
        grpc_call_fail(call, ST_UNIMPLEMENTED);
        return;
    }
    /* No alarm can be raised, so there is none to list or to disarm. */
    struct pb_response_header header = header_now(face);
    struct pb_alarm_response response = {.header = &header};
    etcd_call_reply(call, &pb_alarm_response_table, &response);
}

static void move_leader_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_face *face = service;
    struct pb_move_leader_request request;
    if (!etcd_call_decode(call, &pb_move_leader_request_table, message, &request))
        return;
    struct pb_move_leader_response response = {0};
    if (request.target_id == face->identity.member_id)
        etcd_call_reply(call, &pb_move_leader_response_table, &response);
    else
        grpc_call_fail(call, ST_BAD_LEADER_TRANSFEREE);
}

/* -- Hashes -- */

/* One Hash or HashKV. In the call's arena. */
struct hash_call {
    struct engine_hash hash; /* first */
    struct grpc_call *call;
    struct etcd_face *face;
    bool of_kv;
    bool pending;
    bool ended; /* held until the engine answers */
};

static void hash_reply(struct hash_call *h)
{
    struct kv_header ids = etcd_header(h->face, h->hash.op.revision);
    struct pb_response_header header = {
        .cluster_id = ids.cluster_id,
        .member_id = ids.member_id,
        .revision = ids.revision,
        .raft_term = ids.raft_term,
    };
    if (h->of_kv) {
        struct pb_hash_kv_response response = {
            .header = &header,
            .hash = h->hash.hash,
            .compact_revision = h->hash.compact_revision,
            .hash_revision = h->hash.hash_revision,
        };
        etcd_call_reply(h->call, &pb_hash_kv_response_table, &response);
    } else {
        struct pb_hash_response response = {.header = &header, .hash = h->hash.hash};
        etcd_call_reply(h->call, &pb_hash_response_table, &response);
    }
}

static void hash_done(struct engine_op *op)
{
    struct hash_call *h = CONTAINER_OF(op, struct hash_call, hash.op);
    h->pending = false;
    h->face->under_way--;
    if (h->ended)
        grpc_call_release(h->call);
    else if (op->status != ST_OK)
        etcd_call_fail_op(h->call, op);
    else
        hash_reply(h);
}

static void hash_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct hash_call *h = grpc_call_user(call);
    if (!h)
        return;
    h->ended = true;
    if (h->pending)
        grpc_call_hold(call);
}

static void hash_start(struct grpc_call *call, struct etcd_face *face, bool of_kv, int64_t revision)
{
    struct hash_call *h = arena_calloc(grpc_call_arena(call), 1, sizeof(*h));
    if (!h) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    h->call = call;
    h->face = face;
    h->of_kv = of_kv;
    h->pending = true;
    face->under_way++;
    h->hash.op.done = hash_done;
    h->hash.op.arena = grpc_call_arena(call);
    h->hash.at_revision = revision;
    grpc_call_set_user(call, h);
    engine_hash_kv(face->shard, &h->hash);
}

static void hash_kv_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_hash_kv_request request;
    if (etcd_call_decode(call, &pb_hash_kv_request_table, message, &request))
        hash_start(call, service, true, request.revision);
}

/* etcd hashes its whole file; ours has another form, so what is hashed is every revision kept. */
static void hash_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_hash_request request;
    if (etcd_call_decode(call, &pb_hash_request_table, message, &request))
        hash_start(call, service, false, 0);
}

static const struct grpc_method methods[] = {
    {.path = PB_MAINTENANCE_STATUS_PATH, .on_message = status_on_message},
    {.path = PB_MAINTENANCE_ALARM_PATH, .on_message = alarm_on_message},
    {.path = PB_MAINTENANCE_MOVE_LEADER_PATH, .on_message = move_leader_on_message},
    {
        .path = PB_MAINTENANCE_HASH_PATH,
        .on_message = hash_on_message,
        .on_end = hash_on_end,
    },
    {
        .path = PB_MAINTENANCE_HASH_KV_PATH,
        .on_message = hash_kv_on_message,
        .on_end = hash_on_end,
    },
};

enum status maintenance_service_add(struct etcd_face *face)
{
    return grpc_services_add(face->services, methods, COUNT_OF(methods), face);
}
