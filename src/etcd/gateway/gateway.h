/*
 * The JSON gateway: every method of the face as POST /v3/…, as etcd's grpc-gateway answers it.
 *
 *     http exchange ──► JSON to message ──► grpc_local ──► the service, like any call
 *                  ◄── message to JSON ◄──────┘
 *
 * There is no second implementation of any method: a request becomes a call within the process, and
 * its answer is turned into JSON as it is pulled. A unary method answers with the message; one that
 * streams with {"result":…} lines. Errors have the HTTP status of their gRPC code.
 *
 * Nothing is pulled from a service before the HTTP side has room, so a client that does not read
 * holds one piece. Belongs to its face and its thread.
 */
#ifndef VIGIL_ETCD_GATEWAY_GATEWAY_H
#define VIGIL_ETCD_GATEWAY_GATEWAY_H

#include "base/container/list.h"
#include "codec/pb/pb.h"
#include "etcd/face.h"
#include "wire/grpc/local.h"

struct etcd_callers;
struct gateway_desk;
struct loop;
struct worker;

struct gateway_row {
    const char *path;   /* "/v3/kv/range" */
    const char *method; /* "/etcdserverpb.KV/Range" */
    const struct pb_message *request, *response;
};

/* NULL: there is none. */
const struct gateway_row *gateway_row_find(struct slice path);
const struct gateway_row *gateway_rows(size_t *ret_count);

/* One to a face. */
struct gateway {
    struct grpc_limits limits;
    struct grpc_server server;
    struct etcd_callers *callers; /* borrowed */
    bool before_3_5;              /* errors have their text twice */
    uint32_t calls_max;           /* open at the same time; the others wait */
    uint32_t calls;               /* open */
    struct list waiting;          /* struct gateway_call, the oldest first */
    struct loop *loop;            /* NULL: everything is done at once */
    struct gateway_desk *desk;    /* owned; NULL: large bodies are read at once, too */
};

/* fini: every exchange has ended, and no call is held. */
void gateway_init(struct gateway *gateway, const struct etcd_config *config,
                  const struct grpc_services *services, struct etcd_callers *callers);
void gateway_fini(struct gateway *gateway);
/* From now on many requests of a call are delivered in several turns, and large bodies are read by
 * the worker, unless that is NULL. */
void gateway_set_loop(struct gateway *gateway, struct loop *loop, struct worker *worker);
/* The worker has some body: the loop must go on. */
bool gateway_busy(const struct gateway *gateway);
MUST_CHECK
enum status gateway_add(struct gateway *gateway, struct http_routes *routes);

/* -- call.c: the answer -- */

/* One exchange. On the heap; lives until the exchange ends. */
struct gateway_call;

/*
 * Opens the call, or puts it on the waiting list, and answers it. body: JSON, borrowed until the
 * exchange ends; so is x. Returns what gateway_call_end takes; NULL: it was answered right away.
 */
struct gateway_call *gateway_call_start(struct gateway *gateway, const struct gateway_row *row,
                                        struct http_exchange *x);
void gateway_call_end(struct gateway_call *call);
/* Whether the method may be called with that metadata, before the body is read. False: it has
 * answered. */
MUST_CHECK
bool gateway_call_admit(struct gateway *gateway, const struct gateway_row *row,
                        struct http_exchange *x);

/* -- error.c -- */

unsigned gateway_http_status(enum grpc_code code);
/* Appends {"code":…,"message":…}. */
MUST_CHECK
enum status gateway_error_append(struct buf *out, enum grpc_code code, struct slice text);
/* Answers with it; under an emulated version before 3.5 with {"error":…,"message":…,"code":…}.
 * gateway: NULL for one that is not known. */
void gateway_respond_error(const struct gateway *gateway, struct http_exchange *x,
                           enum grpc_code code, struct slice text);

/* -- metadata.c -- */

enum { GATEWAY_FIELDS_MAX = 64, GATEWAY_FIELD_BYTES_MAX = 16 * 1024 };
/* What of the request's fields is metadata of the call. names: memory for those in lower case. */
struct gateway_metadata {
    struct http_field fields[GATEWAY_FIELDS_MAX];
    size_t count;
    uint8_t names[2048];
};
void gateway_metadata_take(struct gateway_metadata *metadata, const struct http_request *request);
/* How long the caller waits, in ns; INT64_MAX: for ever. False: ret_text says it, and says nothing.
 */
MUST_CHECK
bool gateway_timeout(const struct http_request *request, int64_t *ret_ns, struct slice *ret_text);

#endif
