/* The Maintenance service of a single node. Snapshot is in etcd/service/snapshot.c. */
#include "base/log/log.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/service/downgrade.h"
#include "etcd/service/service_call.h"
#include "etcd/service/services.h"
#include "etcd/service/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

static struct pb_response_header header_at(struct etcd_api *api, int64_t revision)
{
    struct pb_response_header header;
    etcd_header_fill(api, revision, &header);
    return header;
}

/* -- Status -- */

enum { ALARM_TEXT_BYTES = 64 };

/* The text format of the protobuf message, which etcd uses here. */
static struct slice alarm_text(const struct engine_alarm_row *row, char text[ALARM_TEXT_BYTES])
{
    char member[32] = "", type[16];
    if (row->member_id)
        snprintf(member, sizeof(member), "memberID:%" PRIu64 " ", row->member_id);
    snprintf(type, sizeof(type), "%" PRId32, row->type);
    const char *name = row->type == ENGINE_ALARM_NOSPACE   ? "NOSPACE"
                       : row->type == ENGINE_ALARM_CORRUPT ? "CORRUPT"
                                                           : type;
    int len = snprintf(text, ALARM_TEXT_BYTES, "%salarm:%s", member, name);
    return slice_of(text, (size_t)len);
}

static void status_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_status_request request;
    if (!etcd_call_decode(call, &pb_status_request_table, message, &request))
        return;
    struct engine_status status;
    engine_status_get(api->shard, &status);
    struct engine_alarm_row alarms[ENGINE_ALARMS_MAX];
    char texts[ENGINE_ALARMS_MAX][ALARM_TEXT_BYTES];
    struct slice errors[ENGINE_ALARMS_MAX + 1];
    size_t error_count = engine_alarms_get(api->shard, alarms);
    for (size_t i = 0; i < error_count; i++)
        errors[i] = alarm_text(&alarms[i], texts[i]);
    /* The alarm does not say whether the disk or the quota has no space left. */
    char reason[ENGINE_REASON_BYTES];
    if (!engine_ready(api->engine, reason))
        errors[error_count++] = slice_from_text(reason);
    struct pb_response_header header = header_at(api, status.revision);
    struct pb_downgrade_info downgrade = {
        .enabled = status.downgrade_target[0] != '\0',
        .target_version = slice_from_text(status.downgrade_target),
    };
    struct pb_status_response response = {
        .header = &header,
        .version = slice_from_text(api->config->version),
        .db_size = status.db_size_bytes,
        .leader = api->identity.member_id,
        .raft_index = status.raft_index,
        .raft_term = api->identity.raft_term,
        .raft_applied_index = status.applied_index,
        .errors = errors,
        .errors_count = error_count,
        .db_size_in_use = status.db_size_in_use_bytes,
        .storage_version = slice_from_text(api->config->cluster_version),
        .db_size_quota = status.quota_bytes,
        .downgrade_info = &downgrade,
    };
    etcd_call_reply(call, &pb_status_response_table, &response);
}

static void move_leader_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_move_leader_request request;
    if (!etcd_call_decode(call, &pb_move_leader_request_table, message, &request))
        return;
    struct pb_move_leader_response response = {0};
    if (request.target_id == api->identity.member_id)
        etcd_call_reply(call, &pb_move_leader_response_table, &response);
    else
        grpc_call_fail(call, ST_BAD_LEADER_TRANSFEREE);
}

/* -- Operations of the engine -- */

/* One call that the engine answers. In the call's arena. */
struct maintenance_call {
    union {
        struct engine_op op; /* the first member of each */
        struct engine_hash hash;
        struct engine_alarm alarm;
    };
    struct service_call base;
    void (*reply)(struct maintenance_call *m); /* called if the operation succeeded */
    bool defragments;
    bool cancels; /* a downgrade is canceled, which succeeds with any result */
    struct pb_alarm_request alarm_request;
    char target[DOWNGRADE_TARGET_BYTES];
};

static void maintenance_done(struct engine_op *op)
{
    struct maintenance_call *m = CONTAINER_OF(op, struct maintenance_call, op);
    bool ended = !service_call_answered(&m->base);
    if (m->defragments && op->status == ST_OK)
        log_info("finished defragment");
    else if (m->defragments)
        log_warn("failed to defragment", LOG_STATUS(op->status));
    if (ended)
        service_call_release(&m->base);
    else if (op->status != ST_OK && !m->cancels)
        etcd_call_fail_op(m->base.call, op);
    else
        m->reply(m);
}

static void maintenance_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct maintenance_call *m = grpc_call_user(call);
    if (!m)
        return; /* refused before the operation was started */
    if (!service_call_end(&m->base))
        engine_give_up(&m->op);
}

static struct maintenance_call *maintenance_call_new(struct grpc_call *call, struct etcd_api *api,
                                                     void (*reply)(struct maintenance_call *m))
{
    struct maintenance_call *m = arena_calloc(grpc_call_arena(call), 1, sizeof(*m));
    if (!m) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    service_call_init(&m->base, call, api, &m->op, maintenance_done);
    m->reply = reply;
    return m;
}

/* Called just before the operation is started. */
static void mark_pending(struct maintenance_call *m)
{
    service_call_begin(&m->base);
    grpc_call_set_user(m->base.call, m);
}

/* -- Hashes -- */

static void hash_kv_reply(struct maintenance_call *m)
{
    struct pb_response_header header = header_at(m->base.api, m->op.revision);
    struct pb_hash_kv_response response = {
        .header = &header,
        .hash = m->hash.hash,
        .compact_revision = m->hash.compact_revision,
        .hash_revision = m->hash.hash_revision,
    };
    etcd_call_reply(m->base.call, &pb_hash_kv_response_table, &response);
}

static void hash_reply(struct maintenance_call *m)
{
    struct pb_response_header header = header_at(m->base.api, m->op.revision);
    struct pb_hash_response response = {.header = &header, .hash = m->hash.hash};
    etcd_call_reply(m->base.call, &pb_hash_response_table, &response);
}

static void hash_start(struct maintenance_call *m, int64_t revision)
{
    m->hash.at_revision = revision;
    mark_pending(m);
    engine_hash_kv(m->base.api->shard, &m->hash);
}

static void hash_kv_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_hash_kv_request request;
    if (!etcd_call_decode(call, &pb_hash_kv_request_table, message, &request))
        return;
    struct maintenance_call *m = maintenance_call_new(call, service, hash_kv_reply);
    if (m)
        hash_start(m, request.revision);
}

/* etcd hashes its whole file. Our files have another format, so all stored revisions are hashed. */
static void hash_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct pb_hash_request request;
    if (!etcd_call_decode(call, &pb_hash_request_table, message, &request))
        return;
    struct maintenance_call *m = maintenance_call_new(call, service, hash_reply);
    if (m)
        hash_start(m, 0);
}

/* -- Alarms -- */

static void alarm_reply(struct maintenance_call *m)
{
    struct pb_response_header header = header_at(m->base.api, m->op.revision);
    struct pb_alarm_response response = {.header = &header};
    size_t count = m->alarm.row_count;
    response.alarms = arena_calloc(grpc_call_arena(m->base.call), count, sizeof(*response.alarms));
    if (!response.alarms && count) {
        grpc_call_fail(m->base.call, ST_NOMEM);
        return;
    }
    for (size_t i = 0; i < count; i++)
        response.alarms[i] = (struct pb_alarm_member){
            .member_id = m->alarm.rows[i].member_id,
            .alarm = m->alarm.rows[i].type,
        };
    response.alarms_count = count;
    etcd_call_reply(m->base.call, &pb_alarm_response_table, &response);
}

static void alarm_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct maintenance_call *m = maintenance_call_new(call, api, alarm_reply);
    if (!m || !etcd_call_decode(call, &pb_alarm_request_table, message, &m->alarm_request))
        return;
    mark_pending(m);
    engine_alarm(api->shard, &m->alarm, &m->alarm_request);
}

/* -- Defragment -- */

static void defragment_reply(struct maintenance_call *m)
{
    struct pb_defragment_response response = {0}; /* etcd sends no header */
    etcd_call_reply(m->base.call, &pb_defragment_response_table, &response);
}

static void defragment_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_defragment_request request;
    if (!etcd_call_decode(call, &pb_defragment_request_table, message, &request))
        return;
    struct maintenance_call *m = maintenance_call_new(call, api, defragment_reply);
    if (!m)
        return;
    log_info("starting defragment");
    m->defragments = true;
    mark_pending(m);
    engine_defragment(api->shard, &m->op);
}

/* -- Downgrade -- */

static void downgrade_reply(struct maintenance_call *m)
{
    struct pb_response_header header = header_at(m->base.api, m->op.revision);
    const char *version = m->base.api->config->cluster_version;
    const char *patch = strrchr(version, '.');
    struct pb_downgrade_response response = {
        .header = &header,
        .version = slice_of(version, patch ? (size_t)(patch - version) : strlen(version)),
    };
    etcd_call_reply(m->base.call, &pb_downgrade_response_table, &response);
}

static void downgrade_validate(struct maintenance_call *m)
{
    struct engine_status status;
    engine_status_get(m->base.api->shard, &status);
    m->op.revision = status.revision;
    if (status.downgrade_target[0])
        grpc_call_fail(m->base.call, ST_DOWNGRADE_IN_PROCESS);
    else
        downgrade_reply(m);
}

static void downgrade_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_downgrade_request request;
    if (!etcd_call_decode(call, &pb_downgrade_request_table, message, &request))
        return;
    struct maintenance_call *m = maintenance_call_new(call, api, downgrade_reply);
    if (!m)
        return;
    m->cancels = request.action == PB_DOWNGRADE_ACTION_CANCEL;
    if (!m->cancels && request.action != PB_DOWNGRADE_ACTION_VALIDATE &&
        request.action != PB_DOWNGRADE_ACTION_ENABLE) {
        grpc_call_fail_text(call, GRPC_UNKNOWN, SLICE_LITERAL("etcdserver: unknown method"));
        return;
    }
    enum status status =
        m->cancels ? ST_OK
                   : downgrade_check(request.version, api->config->cluster_version, m->target);
    if (status != ST_OK) {
        grpc_call_fail(call, status);
    } else if (request.action == PB_DOWNGRADE_ACTION_VALIDATE) {
        downgrade_validate(m);
    } else {
        mark_pending(m);
        engine_downgrade(api->shard, &m->op, m->target);
    }
}

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_MAINTENANCE_STATUS_PATH, status_on_message, NULL),
    GRPC_METHOD(PB_MAINTENANCE_MOVE_LEADER_PATH, move_leader_on_message, NULL),
    GRPC_METHOD(PB_MAINTENANCE_ALARM_PATH, alarm_on_message, maintenance_on_end),
    GRPC_METHOD(PB_MAINTENANCE_HASH_PATH, hash_on_message, maintenance_on_end),
    GRPC_METHOD(PB_MAINTENANCE_HASH_KV_PATH, hash_kv_on_message, maintenance_on_end),
    GRPC_METHOD(PB_MAINTENANCE_DEFRAGMENT_PATH, defragment_on_message, maintenance_on_end),
    GRPC_METHOD(PB_MAINTENANCE_DOWNGRADE_PATH, downgrade_on_message, maintenance_on_end),
    GRPC_METHOD(PB_MAINTENANCE_SNAPSHOT_PATH, snapshot_on_message, snapshot_on_end,
                .server_streams = true, .bulk = true),
};

enum status maintenance_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
