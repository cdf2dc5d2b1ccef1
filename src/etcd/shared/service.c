#include "etcd/shared/service.h"

#include "codec/pb/rpc.pb.h"
#include "codec/utf8.h"
#include "engine/forward.h"

#include <stdio.h>

/* The client's bytes are the cause, except when memory runs out; grpc-go uses this code for all of
 * them. */
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

/*
 * etcd limits the length of the request as it is written to its log: wrapped, with a header whose
 * id is made from the last two bytes of the member's id and 48 more bits.
 */
enum status etcd_check_size(const struct etcd_api *api, size_t message_bytes)
{
    uint64_t log_id = (api->identity.member_id << 48) | (UINT64_C(1) << 47);
    size_t log_header = 2 + 1 + 1 + pb_varint_size(log_id);
    size_t bytes = 1 + pb_varint_size(message_bytes) + message_bytes + log_header;
    return bytes > api->config->request_bytes_max ? ST_REQUEST_TOO_LARGE : ST_OK;
}

/* A cluster may be known only after the start, and its term changes. */
static void renew_identity(struct etcd_api *api)
{
    if (LIKELY(!engine_forwards(api->engine)))
        return;
    struct engine_identity now = engine_identity_get(api->engine);
    if (now.cluster_id != api->identity.cluster_id || now.member_id != api->identity.member_id)
        kv_ids_init(&api->ids, now.cluster_id, now.member_id);
    api->identity = now;
}

struct kv_header etcd_header(struct etcd_api *api, int64_t revision)
{
    renew_identity(api);
    return (struct kv_header){
        .ids = &api->ids,
        .revision = revision,
        .raft_term = api->identity.raft_term,
    };
}

void etcd_header_fill(struct etcd_api *api, int64_t revision, struct pb_response_header *ret_header)
{
    renew_identity(api);
    *ret_header = (struct pb_response_header){
        .cluster_id = api->identity.cluster_id,
        .member_id = api->identity.member_id,
        .revision = revision,
        .raft_term = api->identity.raft_term,
    };
}

struct kv_header etcd_header_now(struct etcd_api *api)
{
    struct engine_status status;
    engine_status_get(api->shard, &status);
    return etcd_header(api, status.revision);
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
