#include "etcd/face.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "codec/utf8.h"
#include "engine/auth.h"
#include "etcd/authentication.h"
#include "etcd/http/metrics.h"
#include "etcd/service/password_queue.h"
#include "etcd/service/watch_service.h"
#include "etcd/v2/service.h"

#include <stdio.h>

static enum status count_calls(struct etcd_face *face)
{
    struct metric_block *block;
    size_t methods;
    if (!face->config->method_counts)
        return ST_OK;
    (void)grpc_services_rows(face->services, &methods);
    assert(methods <= ETCD_METHODS_MAX);
    TRY(metric_set_join(face->config->method_counts, &block));
    grpc_services_count(face->services, block);
    face->counts = block;
    return ST_OK;
}

static enum status face_fill(struct etcd_face *face)
{
    TRY(grpc_services_new(&face->services));
    TRY(http_routes_new(&face->routes));
    TRY(http_routes_new(&face->metrics_routes));
    TRY(auth_service_add(face));
    TRY(kv_service_add(face));
    TRY(lease_service_add(face));
    TRY(lock_service_add(face));
    TRY(election_service_add(face));
    TRY(maintenance_service_add(face));
    TRY(cluster_service_add(face));
    TRY(health_service_add(face));
    TRY(watch_service_add(face));
    TRY(http_service_add(face));
    if (face->config->v2)
        TRY(v2_service_add(face));
    face->callers = etcd_callers_new(face->config, face->shard, face->services);
    if (!face->config->origins_given)
        grpc_services_refuse_pages(face->services);
    return count_calls(face);
}

enum status etcd_face_new(const struct etcd_config *config, struct engine *engine,
                          struct engine_shard *shard, struct etcd_face **ret_face)
{
    AUTO(etcd_face_freep) struct etcd_face *face = xcalloc(1, sizeof(*face));
    face->config = config;
    face->engine = engine;
    face->shard = shard;
    face->identity = engine_identity_get(engine);
    kv_ids_init(&face->ids, face->identity.cluster_id, face->identity.member_id);
    list_init(&face->watches);
    face->rights.changed = watch_service_rights_changed;
    face->rights.ctx = face;
    engine_auth_listen(shard, &face->rights);
    TRY(face_fill(face));
    gateway_init(&face->gateway, config, face->services, face->callers);
    if (config->gateway_calls_max)
        TRY(gateway_add(&face->gateway, face->routes));
    *ret_face = TAKE(face);
    return ST_OK;
}

void etcd_face_free(struct etcd_face *face)
{
    if (!face)
        return;
    assert(face->under_way == 0);
    if (face->gateway.server.services)
        gateway_fini(&face->gateway);
    engine_auth_unlisten(face->shard, &face->rights);
    if (face->loop)
        loop_defer_cancel(&face->recheck);
    auth_desk_free(face->desk);
    grpc_services_free(face->services);
    etcd_callers_free(face->callers);
    http_routes_free(face->routes);
    http_routes_free(face->metrics_routes);
    free(face);
}

void etcd_face_set_clock(struct etcd_face *face, int64_t (*now_ns)(void *ctx), void *ctx)
{
    const struct etcd_config *config = face->config;
    if (config->warn_apply_ns || config->warn_unary_ns)
        slow_log_init(&face->slow, face->services, config->warn_apply_ns, config->warn_unary_ns,
                      now_ns, ctx);
    face->slow.counts = face->counts;
    face->slow.apply_slot = ETCD_SLOW_APPLY_SLOT;
}

void etcd_face_set_loop(struct etcd_face *face, struct loop *loop)
{
    assert(!face->desk);
    face->desk = auth_desk_new(loop, face->config->hasher);
    face->loop = loop;
    gateway_set_loop(&face->gateway, loop, face->config->worker);
}

bool etcd_face_busy(const struct etcd_face *face)
{
    return face->under_way > 0 || gateway_busy(&face->gateway);
}

const struct grpc_services *etcd_face_services(const struct etcd_face *face)
{
    return face->services;
}

const struct http_routes *etcd_face_routes(const struct etcd_face *face)
{
    return face->routes;
}

const struct http_routes *etcd_face_metrics_routes(const struct etcd_face *face)
{
    return face->metrics_routes;
}

/* -- Steps of every call -- */

/* Bytes of the peer are at fault in every case but one; the code is grpc-go's for all of those. */
static void fail_decoding(struct grpc_call *call, enum status status)
{
    if (status == ST_MALFORMED)
        grpc_call_fail_text(call, GRPC_INTERNAL,
                            SLICE_LITERAL("grpc: error unmarshalling request: "
                                          "proto: cannot parse invalid wire-format data"));
    else if (status == ST_LIMIT)
        grpc_call_fail_text(call, GRPC_INTERNAL,
                            SLICE_LITERAL("grpc: error unmarshalling request: "
                                          "nested too deeply, or too large when decoded"));
    else
        grpc_call_fail(call, status);
}

bool etcd_call_decode_in(struct grpc_call *call, struct arena *arena, const struct pb_message *type,
                         struct slice message, void *ret_struct)
{
    struct slice version;
    if (grpc_call_metadata(call, SLICE_LITERAL("client-api-version"), &version) &&
        !utf8_valid(version)) {
        grpc_call_fail(call, ST_INVALID_CLIENT_API_VERSION);
        return false;
    }
    enum status status = pb_decode(type, message, arena, ret_struct);
    if (status != ST_OK)
        fail_decoding(call, status);
    return status == ST_OK;
}

bool etcd_call_decode(struct grpc_call *call, const struct pb_message *type, struct slice message,
                      void *ret_struct)
{
    return etcd_call_decode_in(call, grpc_call_arena(call), type, message, ret_struct);
}

struct kv_header etcd_header(const struct etcd_face *face, int64_t revision)
{
    return (struct kv_header){
        .ids = &face->ids,
        .revision = revision,
        .raft_term = face->identity.raft_term,
    };
}

void etcd_header_fill(const struct etcd_face *face, int64_t revision,
                      struct pb_response_header *ret_header)
{
    *ret_header = (struct pb_response_header){
        .cluster_id = face->identity.cluster_id,
        .member_id = face->identity.member_id,
        .revision = revision,
        .raft_term = face->identity.raft_term,
    };
}

struct kv_header etcd_header_now(const struct etcd_face *face)
{
    struct engine_status status;
    engine_status_get(face->shard, &status);
    return etcd_header(face, status.revision);
}

void etcd_call_reply(struct grpc_call *call, const struct pb_message *type, const void *message)
{
    size_t size = pb_size(type, message);
    uint8_t *dst = grpc_call_message(call, size);
    if (!dst) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    pb_encode(type, message, dst, size);
    grpc_call_finish(call);
}

void etcd_call_fail_op(struct grpc_call *call, const struct engine_op *op)
{
    if (op->text.len)
        grpc_call_fail_text(call, status_code(op->status), op->text);
    else
        grpc_call_fail(call, op->status);
}

void etcd_call_fail_length(struct grpc_call *call, uint64_t message_bytes)
{
    char text[128];
    int len =
        snprintf(text, sizeof(text), "grpc: trying to send message larger than max (%llu vs. %d)",
                 (unsigned long long)message_bytes, INT32_MAX);
    grpc_call_fail_text(call, GRPC_RESOURCE_EXHAUSTED, slice_of(text, (size_t)len));
}
