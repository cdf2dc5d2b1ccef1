/*
 * The Lease service: the table of its methods, and the unary methods. LeaseKeepAlive is in
 * lease_keep_alive.c.
 */
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "engine/forward.h"
#include "etcd/service/lease_keep_alive.h"
#include "etcd/service/service_call.h"
#include "etcd/service/services.h"

#include <stdlib.h>

/* One call. In its arena, on the connection's thread. */
struct lease_call {
    struct engine_lease lease; /* first */
    struct service_call base;
    void (*reply)(struct lease_call *l, struct pb_response_header *header);
};

static void lease_done(struct engine_op *op)
{
    struct lease_call *l = CONTAINER_OF(op, struct lease_call, lease.op);
    if (!service_call_answered(&l->base)) {
        service_call_release(&l->base);
    } else if (op->status != ST_OK) {
        etcd_call_fail_op(l->base.call, op);
    } else {
        struct pb_response_header header;
        etcd_header_fill(l->base.api, op->revision, &header);
        l->reply(l, &header);
    }
}

static void lease_on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct lease_call *l = grpc_call_user(call);
    if (l)
        service_call_end(&l->base);
}

/* The caller fills it in and starts its operation. NULL: the call was answered with an error. */
static struct lease_call *lease_call_new(struct grpc_call *call, struct etcd_api *api,
                                         void (*reply)(struct lease_call *l,
                                                       struct pb_response_header *header))
{
    struct lease_call *l = arena_calloc(grpc_call_arena(call), 1, sizeof(*l));
    if (!l) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    service_call_init(&l->base, call, api, &l->lease.op, lease_done);
    service_call_begin(&l->base);
    l->reply = reply;
    grpc_call_set_user(call, l);
    return l;
}

/* -- Grant -- */

static void grant_reply(struct lease_call *l, struct pb_response_header *header)
{
    struct pb_lease_grant_response response = {
        .header = header,
        .id = l->lease.id,
        .ttl = l->lease.ttl_s,
    };
    etcd_call_reply(l->base.call, &pb_lease_grant_response_table, &response);
}

static void grant_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_lease_grant_request request;
    if (!etcd_call_decode(call, &pb_lease_grant_request_table, message, &request))
        return;
    struct lease_call *l = lease_call_new(call, api, grant_reply);
    if (!l)
        return;
    l->lease.id = request.id;
    l->lease.ttl_s = request.ttl;
    engine_lease_grant(api->shard, &l->lease);
}

/* -- Revoke -- */

static void revoke_reply(struct lease_call *l, struct pb_response_header *header)
{
    struct pb_lease_revoke_response response = {.header = header};
    etcd_call_reply(l->base.call, &pb_lease_revoke_response_table, &response);
}

static void revoke_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_lease_revoke_request request;
    if (!etcd_call_decode(call, &pb_lease_revoke_request_table, message, &request))
        return;
    struct lease_call *l = lease_call_new(call, api, revoke_reply);
    if (!l)
        return;
    l->lease.id = request.id;
    engine_lease_revoke(api->shard, &l->lease);
}

/* -- Long responses: ids or keys, written as the connection has room -- */

enum { AT_ONCE_BYTES = 16 << 10 }; /* items up to this size are encoded in one step */

/* In the call's arena. */
struct long_output {
    struct grpc_source source;
    const struct engine_lease *lease;
    void (*begin)(struct long_output *o); /* writes item `next` into head and body */
    size_t next, count;
    uint8_t bytes[128];      /* memory of head */
    struct slice head, body; /* the rest of the current item */
};

static enum grpc_fill long_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    struct long_output *o = CONTAINER_OF(source, struct long_output, source);
    size_t len = 0;
    while (len < room) {
        struct slice *part = o->head.len ? &o->head : &o->body;
        if (part->len == 0) {
            if (o->next == o->count)
                break;
            o->begin(o);
            o->next++;
            continue;
        }
        size_t n = size_min(room - len, part->len);
        memcpy(dst + len, part->ptr, n);
        *part = slice_sub(*part, n, part->len - n);
        len += n;
    }
    *ret_len = len;
    bool more = o->head.len || o->body.len || o->next < o->count;
    return more ? GRPC_FILL_MORE : GRPC_FILL_DONE;
}

/* rest: the response without its items, which are its last fields and have item_bytes. */
static void reply_long(struct lease_call *l, const struct pb_message *type, const void *rest,
                       struct long_output items, uint64_t item_bytes)
{
    struct long_output *o = arena_alloc(grpc_call_arena(l->base.call), sizeof(*o));
    size_t rest_bytes = pb_size(type, rest);
    if (!o) {
        grpc_call_fail(l->base.call, ST_NOMEM);
        return;
    }
    if (rest_bytes + item_bytes > ETCD_MESSAGE_BYTES_MAX) {
        etcd_call_fail_length(l->base.call, rest_bytes + item_bytes);
        return;
    }
    *o = items;
    o->source.fill = long_fill;
    o->lease = &l->lease;
    assert(GRPC_PREFIX_BYTES + rest_bytes <= sizeof(o->bytes));
    grpc_prefix_write(o->bytes, (uint32_t)(rest_bytes + item_bytes));
    pb_encode(type, rest, o->bytes + GRPC_PREFIX_BYTES, rest_bytes);
    o->head = slice_of(o->bytes, GRPC_PREFIX_BYTES + rest_bytes);
    grpc_call_set_source(l->base.call, &o->source);
}

/* -- Time to live -- */

enum { KEYS_NUMBER = 5 }; /* number of the field */

static void key_begin(struct long_output *o)
{
    o->body = o->lease->keys[o->next];
    const uint8_t *end = pb_message_head_write(o->bytes, KEYS_NUMBER, o->body.len);
    o->head = slice_of(o->bytes, (size_t)(end - o->bytes));
}

static void time_to_live_reply(struct lease_call *l, struct pb_response_header *header)
{
    struct pb_lease_time_to_live_response response = {
        .header = header,
        .id = l->lease.id,
        .ttl = l->lease.ttl_s,
        .granted_ttl = l->lease.granted_ttl_s,
    };
    uint64_t bytes = 0;
    for (size_t i = 0; i < l->lease.key_count; i++)
        bytes += pb_message_head_size(KEYS_NUMBER, l->lease.keys[i].len) + l->lease.keys[i].len;
    if (bytes > AT_ONCE_BYTES) {
        struct long_output keys = {.begin = key_begin, .count = l->lease.key_count};
        reply_long(l, &pb_lease_time_to_live_response_table, &response, keys, bytes);
        return;
    }
    response.keys = l->lease.keys;
    response.keys_count = l->lease.key_count;
    etcd_call_reply(l->base.call, &pb_lease_time_to_live_response_table, &response);
}

static void time_to_live_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_lease_time_to_live_request request;
    if (!etcd_call_decode(call, &pb_lease_time_to_live_request_table, message, &request))
        return;
    struct lease_call *l = lease_call_new(call, api, time_to_live_reply);
    if (!l)
        return;
    l->lease.id = request.id;
    l->lease.want_keys = request.keys;
    engine_lease_time_to_live(api->shard, &l->lease);
}

/* -- List -- */

enum { LEASES_NUMBER = 2, ID_NUMBER = 1 }; /* numbers of the fields */

static size_t id_size(int64_t id)
{
    size_t status_bytes = pb_uint_size(ID_NUMBER, (uint64_t)id);
    return pb_message_head_size(LEASES_NUMBER, status_bytes) + status_bytes;
}

static void id_begin(struct long_output *o)
{
    uint64_t id = (uint64_t)o->lease->ids[o->next];
    uint8_t *p = pb_message_head_write(o->bytes, LEASES_NUMBER, pb_uint_size(ID_NUMBER, id));
    o->head = slice_of(o->bytes, (size_t)(pb_uint_write(p, ID_NUMBER, id) - o->bytes));
}

static void list_reply(struct lease_call *l, struct pb_response_header *header)
{
    struct pb_lease_leases_response response = {.header = header};
    size_t count = l->lease.id_count;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += id_size(l->lease.ids[i]);
    if (bytes > AT_ONCE_BYTES) {
        struct long_output ids = {.begin = id_begin, .count = count};
        reply_long(l, &pb_lease_leases_response_table, &response, ids, bytes);
        return;
    }
    response.leases = arena_calloc(grpc_call_arena(l->base.call), count, sizeof(*response.leases));
    if (!response.leases) {
        grpc_call_fail(l->base.call, ST_NOMEM);
        return;
    }
    for (size_t i = 0; i < count; i++)
        response.leases[i].id = l->lease.ids[i];
    response.leases_count = count;
    etcd_call_reply(l->base.call, &pb_lease_leases_response_table, &response);
}

static void list_on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_api *api = service;
    struct pb_lease_leases_request request;
    if (!etcd_call_decode(call, &pb_lease_leases_request_table, message, &request))
        return;
    struct lease_call *l = lease_call_new(call, api, list_reply);
    if (l)
        engine_lease_list(api->shard, &l->lease);
}

/* In front of a cluster only the first one is answered here (etcd/cluster/forward.h). */
static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_LEASE_LEASE_KEEP_ALIVE_PATH, lease_keep_alive_on_message,
                lease_keep_alive_on_end, .client_streams = true, .server_streams = true,
                .parks = true, .on_half_close = lease_keep_alive_on_half_close),
    GRPC_METHOD(PB_LEASE_LEASE_GRANT_PATH, grant_on_message, lease_on_end),
    GRPC_METHOD(PB_LEASE_LEASE_REVOKE_PATH, revoke_on_message, lease_on_end),
    GRPC_METHOD(PB_LEASE_LEASE_TIME_TO_LIVE_PATH, time_to_live_on_message, lease_on_end),
    GRPC_METHOD(PB_LEASE_LEASE_LEASES_PATH, list_on_message, lease_on_end),
};

enum status lease_service_add(struct etcd_api *api)
{
    size_t count = engine_forwards(api->engine) ? 1 : COUNT_OF(methods);
    return grpc_services_add(api->services, methods, count, api);
}
