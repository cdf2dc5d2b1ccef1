/* The set of gRPC methods a server answers: filled at start, read-only afterwards, shared by
 * shards. */
#ifndef VIGIL_WIRE_GRPC_SERVICE_H
#define VIGIL_WIRE_GRPC_SERVICE_H

#include "base/memory/budget.h"
#include "base/metric/metric.h"
#include "wire/grpc/call.h"

struct grpc_services;

enum { GRPC_CODES = GRPC_UNAUTHENTICATED + 1 };

/* What is counted of each method: slots in a row of a metric block. */
enum grpc_count {
    GRPC_COUNT_STARTED,
    GRPC_COUNT_RECEIVED, /* messages */
    GRPC_COUNT_RECEIVED_BYTES,
    GRPC_COUNT_SENT,
    GRPC_COUNT_SENT_BYTES,                                /* with their prefixes */
    GRPC_COUNT_HANDLED,                                   /* one for each code */
    GRPC_COUNT_SECONDS = GRPC_COUNT_HANDLED + GRPC_CODES, /* a histogram */
    GRPC_COUNTS = GRPC_COUNT_SECONDS + METRIC_SLOTS
};
extern const struct metric_buckets grpc_seconds;

/*
 * How long calls take: the time, and who is told of a call with one request and one answer whose
 * answer took longer than slow_ns. The call is whole then; grpc_call_request and its like may be
 * asked. Borrowed; used on the thread that answers.
 */
struct grpc_timing {
    int64_t (*now_ns)(void *ctx); /* of the same clock as the connection's, and not older */
    int64_t slow_ns;
    void (*on_slow)(void *ctx, const struct grpc_call *call, int64_t took_ns);
    void *ctx;
};

/*
 * Whether a caller may: asked before each message is handed to its method, those of streams too. A
 * status other than ST_OK fails the call; the service hears nothing of the message. Borrowed; used
 * on the thread that answers.
 */
struct grpc_row;
struct grpc_guard {
    enum status (*admit)(void *ctx, struct grpc_call *call, const struct grpc_row *row);
    void *ctx;
};

/* A method that is answered. */
struct grpc_row {
    struct slice path;
    const struct grpc_method *method;
    void *service;
    struct metric_block *counts; /* NULL: nobody counts */
    unsigned first_count;
    const struct grpc_timing *timing; /* NULL: nobody asks */
    const struct grpc_guard *guard;   /* NULL: everybody may */
};

MUST_CHECK
enum status grpc_services_new(struct grpc_services **ret_services);
void grpc_services_free(struct grpc_services *services);
DEFINE_CLEANUP(struct grpc_services *, grpc_services_free)

/* The rows are borrowed and outlive the set. `service` is handed to each of their functions. */
MUST_CHECK
enum status grpc_services_add(struct grpc_services *services, const struct grpc_method *methods,
                              size_t count, void *service);

/* NULL when no such method is registered. Rows stay where they are once all are added. */
const struct grpc_row *grpc_services_find(const struct grpc_services *services, struct slice path);

/* All of them, by path. */
const struct grpc_row *grpc_services_rows(const struct grpc_services *services, size_t *ret_count);

/*
 * Counts its calls from now on: the n-th row in the slots from n * GRPC_COUNTS. After the last row
 * was added; the block is that of the thread that answers.
 */
void grpc_services_count(struct grpc_services *services, struct metric_block *block);

/* From now on, as grpc_services_count. */
void grpc_services_time(struct grpc_services *services, const struct grpc_timing *timing);

/* From now on, for every method. */
void grpc_services_guard(struct grpc_services *services, const struct grpc_guard *guard);

/* From now on a call with an Origin field, which only browsers send, is refused if it comes over a
 * guarded connection (wire_server_guard). */
void grpc_services_refuse_pages(struct grpc_services *services);
bool grpc_services_refuses_pages(const struct grpc_services *services);

/*
 * Decompresses a message that came with the encoding gzip: zip/gunzip.h has the contract. Without
 * one, such calls are refused as grpc-go refuses them.
 */
typedef enum status grpc_gunzip(struct slice bytes, size_t bytes_max, struct account *account,
                                struct buf *out, const char **ret_reason);
void grpc_services_set_gunzip(struct grpc_services *services, grpc_gunzip *gunzip);
grpc_gunzip *grpc_services_gunzip(const struct grpc_services *services); /* may be NULL */

/* Whether any method's path begins so: "/etcdserverpb.KV/". */
bool grpc_services_has(const struct grpc_services *services, struct slice prefix);

#endif
