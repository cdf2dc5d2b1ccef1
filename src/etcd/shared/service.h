/*
 * What the services of the etcd API share: the fields of struct etcd_api, and the steps that every
 * call takes. Used only within this layer; etcd/api.h is for the rest of the program.
 */
#ifndef VIGIL_ETCD_SHARED_SERVICE_H
#define VIGIL_ETCD_SHARED_SERVICE_H

#include "base/container/list.h"
#include "base/rate_limit.h"
#include "codec/pb/pb.h"
#include "engine/engine.h"
#include "etcd/shared/config.h"
#include "etcd/shared/kv_encode.h"
#include "etcd/shared/slow_log.h"
#include "wire/grpc/service.h"
#include "wire/http/routes.h"

struct authenticator;
struct forward_rows;
struct gateway;
struct password_queue;
struct pb_response_header;

/* The permissions of a call's watches are checked again, over several turns. A call that waits for
 * this sends nothing, and an idle one has no memory for it. */
struct watch_recheck {
    const void *call; /* NULL: none */
    uint32_t at;      /* position in watch_stream_keep */
    uint32_t changes; /* api.rights_changes when it was begun */
    bool is_old;      /* the cluster does not accept the caller's token any more */
    bool unconfirmed; /* the cluster has not confirmed a permission */
};

struct etcd_api {
    const struct etcd_config *config;
    struct engine *engine;
    struct engine_shard *shard;
    struct engine_identity identity;
    struct kv_ids ids;                  /* encoded from identity */
    size_t under_way;                   /* operations that the engine has not answered */
    struct grpc_services *services;     /* owned */
    struct http_routes *routes;         /* owned */
    struct http_routes *metrics_routes; /* owned */
    struct rate_limit http_lines;       /* limits the log lines that HTTP clients can cause */
    uint64_t http_unlogged;             /* lines suppressed since the last one */
    struct metric_block *counts;        /* counters of this shard; NULL: calls are not counted */
    struct slow_log slow;
    struct authenticator *authenticator; /* owned */
    struct password_queue *passwords;    /* owned; NULL: no password can be hashed */
    struct gateway *gateway;             /* owned */
    struct forward_rows *forwards;       /* owned; NULL: the engine has its own data */
    struct loop *loop;                   /* NULL: nothing is deferred to a later turn */
    /* The open calls of Watch, and how many of them still have to be examined because permissions
     * have changed (watch_service.c). */
    struct list watches;
    size_t watch_count, recheck_left;
    struct engine_auth_listener rights;
    uint32_t rights_changes;
    struct deferred recheck;
    size_t recheck_units; /* watches that the fills of this turn may still check */
    /* Checks of the call that is first in `watches`, if they have begun. */
    struct watch_recheck checks;
};

/* Checks the request's metadata and decodes its message into *ret_struct, in the call's arena.
 * False: the call was answered with an error. */
MUST_CHECK
bool etcd_call_decode(struct grpc_call *call, const struct pb_message *type, struct slice message,
                      void *ret_struct);

/* The same with the caller's arena, for calls with many messages. */
MUST_CHECK
bool etcd_call_decode_in(struct grpc_call *call, struct arena *arena, const struct pb_message *type,
                         struct slice message, void *ret_struct);

/* Whether a write of this length is within etcd's limit. ST_REQUEST_TOO_LARGE. */
MUST_CHECK
enum status etcd_check_size(const struct etcd_api *api, size_t message_bytes);

struct kv_header etcd_header(struct etcd_api *api, int64_t revision);
/* The same as a message. */
void etcd_header_fill(struct etcd_api *api, int64_t revision,
                      struct pb_response_header *ret_header);
/* With the newest revision that this shard knows. */
struct kv_header etcd_header_now(struct etcd_api *api);

/* Answers with one message, or with an error if there is no memory for it. */
void etcd_call_reply(struct grpc_call *call, const struct pb_message *type, const void *message);
/* Answers a failed operation. */
void etcd_call_fail_op(struct grpc_call *call, const struct engine_op *op);
/* grpc-go does not send longer messages; the call fails with its text. */
#define ETCD_MESSAGE_BYTES_MAX ((uint64_t)INT32_MAX)
void etcd_call_fail_length(struct grpc_call *call, uint64_t message_bytes);

#endif
