/*
 * What the services of the face share: its insides, the rows each file brings, and the few steps
 * that every call takes.
 */
#ifndef VIGIL_ETCD_SERVICE_H
#define VIGIL_ETCD_SERVICE_H

#include "base/rate_limit.h"
#include "codec/pb/pb.h"
#include "engine/auth.h"
#include "etcd/face.h"
#include "etcd/gateway/gateway.h"
#include "etcd/service/kv_encode.h"
#include "etcd/slow_log.h"

struct auth_desk;
struct etcd_callers;
struct pb_response_header;

struct etcd_face {
    const struct etcd_config *config;
    struct engine *engine;
    struct engine_shard *shard;
    struct engine_identity identity;
    struct kv_ids ids;                  /* of identity */
    size_t under_way;                   /* operations the engine has not answered */
    struct grpc_services *services;     /* owned */
    struct http_routes *routes;         /* owned */
    struct http_routes *metrics_routes; /* owned */
    struct bucket http_lines;           /* of the log that HTTP clients may cause */
    uint64_t http_unlogged;             /* since the last of them */
    struct metric_block *counts;        /* of this shard; NULL: nobody counts */
    struct slow_log slow;
    struct etcd_callers *callers; /* owned */
    struct auth_desk *desk;       /* owned; NULL: no password can be hashed */
    /* Calls of Watch, and those of them that are yet to be asked again (watch_service.c). */
    struct list watches;
    size_t watch_count, recheck_left;
    struct engine_auth_listener rights;
    uint32_t rights_changes;
    struct loop *loop; /* NULL: they are asked in one go */
    struct deferred recheck;
    struct gateway gateway; /* over services; unused when config has none */
};

enum status auth_service_add(struct etcd_face *face);
enum status kv_service_add(struct etcd_face *face);
enum status lease_service_add(struct etcd_face *face);
enum status lock_service_add(struct etcd_face *face);
enum status election_service_add(struct etcd_face *face);
enum status maintenance_service_add(struct etcd_face *face);
enum status cluster_service_add(struct etcd_face *face);
enum status health_service_add(struct etcd_face *face);
enum status http_service_add(struct etcd_face *face);

/* The rows for KV.Range and KV.RangeStream. */
void kv_range_on_message(struct grpc_call *call, void *face, struct slice message);
void kv_range_stream_on_message(struct grpc_call *call, void *face, struct slice message);
void kv_range_on_end(struct grpc_call *call, void *face);

/* The row for Maintenance.Snapshot. */
void snapshot_on_message(struct grpc_call *call, void *face, struct slice message);
void snapshot_on_end(struct grpc_call *call, void *face);

/* Checks the request's metadata and decodes its message into *ret_struct, in the call's arena.
 * False: the call was answered with an error. */
MUST_CHECK
bool etcd_call_decode(struct grpc_call *call, const struct pb_message *type, struct slice message,
                      void *ret_struct);

/* The same, into an arena of the caller's: for calls with many messages. */
MUST_CHECK
bool etcd_call_decode_in(struct grpc_call *call, struct arena *arena, const struct pb_message *type,
                         struct slice message, void *ret_struct);

/* Whether a write of this length may be one: as etcd counts it. */
MUST_CHECK
enum status etcd_check_size(const struct etcd_face *face, size_t message_bytes);

struct kv_header etcd_header(const struct etcd_face *face, int64_t revision);
/* The same as a message. */
void etcd_header_fill(const struct etcd_face *face, int64_t revision,
                      struct pb_response_header *ret_header);
/* With the revision as this shard knows it. */
struct kv_header etcd_header_now(const struct etcd_face *face);

/* Answers with one message, or with an error if there is no room for it. */
void etcd_call_reply(struct grpc_call *call, const struct pb_message *type, const void *message);
/* Answers a failed operation. */
void etcd_call_fail_op(struct grpc_call *call, const struct engine_op *op);
/* grpc-go sends no longer message; this says so as it does. */
#define ETCD_MESSAGE_BYTES_MAX ((uint64_t)INT32_MAX)
void etcd_call_fail_length(struct grpc_call *call, uint64_t message_bytes);

#endif
