/*
 * The JSON gateway: serves every gRPC method as POST /v3/…, like etcd's grpc-gateway.
 *
 *     http exchange ──► JSON to message ──► grpc_local ──► the service, like any call
 *                  ◄── message to JSON ◄──────┘
 *
 * There is no second implementation of any method: a request becomes a call within the process, and
 * its response is converted to JSON as it is pulled. The response of a unary method is the message;
 * that of a streaming method has {"result":…} lines. Errors have the HTTP status of their gRPC code.
 *
 * Nothing is pulled from a service before the HTTP side has room, so only one piece is held for a
 * client that does not read. There is one gateway per API, used on its thread.
 */
#ifndef VIGIL_ETCD_GATEWAY_GATEWAY_H
#define VIGIL_ETCD_GATEWAY_GATEWAY_H

#include "base/container/list.h"
#include "codec/pb/pb.h"
#include "wire/grpc/local.h"
#include "wire/http/routes.h"

struct authenticator;
struct etcd_config;
struct gateway_offload;
struct loop;
struct worker;

struct gateway_row {
    const char *path;   /* "/v3/kv/range" */
    const char *method; /* "/etcdserverpb.KV/Range" */
    const struct pb_message *request, *response;
};

/* NULL: no method has this path. */
const struct gateway_row *gateway_row_find(struct slice path);
/* For tests. */
const struct gateway_row *gateway_rows(size_t *ret_count);

struct gateway {
    struct grpc_limits limits;
    struct grpc_server server;
    struct authenticator *authenticator; /* borrowed */
    bool before_3_5;                     /* errors have their text twice, as before etcd 3.5 */
    uint32_t calls_max;                  /* open at the same time; the others wait */
    uint32_t calls;                      /* open */
    struct list waiting;                 /* struct gateway_call, the oldest first */
    struct loop *loop;                   /* NULL: everything is done at once */
    struct gateway_offload *offload;     /* owned; NULL: large bodies are read at once, too */
};

struct gateway *gateway_new(const struct etcd_config *config, const struct grpc_services *services,
                            struct authenticator *authenticator);
/* Every exchange must have ended. Accepts NULL. */
void gateway_free(struct gateway *gateway);
/* From now on, many requests of one call are delivered over several turns, and large bodies are
 * parsed by the worker, unless that is NULL. */
void gateway_set_loop(struct gateway *gateway, struct loop *loop, struct worker *worker);
/* True while the worker parses a body: the loop must keep running. */
bool gateway_busy(const struct gateway *gateway);
MUST_CHECK
enum status gateway_add(struct gateway *gateway, struct http_routes *routes);

/* Asserts that calls and the waiting list are consistent; for tests. */
void gateway_check(const struct gateway *gateway);

/* -- call.c -- */

/* One exchange. On the heap; lives until the exchange ends. */
struct gateway_call;

/*
 * Opens a call for the exchange, or puts it on the waiting list. The exchange and its body are
 * borrowed until the exchange ends, when gateway_call_end is called. NULL: out of memory, and the
 * exchange was aborted.
 */
struct gateway_call *gateway_call_start(struct gateway *gateway, const struct gateway_row *row,
                                        struct http_exchange *x);
void gateway_call_end(struct gateway_call *call);
/* Checks before the body is received whether the client may call the method. False: the request was
 * answered with an error. */
MUST_CHECK
bool gateway_call_admit(struct gateway *gateway, const struct gateway_row *row,
                        struct http_exchange *x);

/* -- error.c -- */

unsigned gateway_http_status(enum grpc_code code);
/* Appends {"code":…,"message":…}. */
MUST_CHECK
enum status gateway_error_append(struct buf *out, enum grpc_code code, struct slice text);
/* Answers with such an error or, if the gateway emulates a version before 3.5, with
 * {"error":…,"message":…,"code":…}. */
void gateway_respond_error(const struct gateway *gateway, struct http_exchange *x,
                           enum grpc_code code, struct slice text);

/* -- metadata.c -- */

enum { GATEWAY_FIELDS_MAX = 64, GATEWAY_FIELD_BYTES_MAX = 16 * 1024 };
/* The metadata of a call, made from the fields of its request. */
struct gateway_metadata {
    struct http_field fields[GATEWAY_FIELDS_MAX];
    size_t count;
    uint8_t names[2048]; /* memory for names in lower case */
};
void gateway_metadata_take(struct gateway_metadata *metadata, const struct http_request *request);
/* The timeout of the request, in ns; INT64_MAX: none. False: *ret_text is not a valid timeout. */
MUST_CHECK
bool gateway_timeout(const struct http_request *request, int64_t *ret_ns, struct slice *ret_text);

#endif
