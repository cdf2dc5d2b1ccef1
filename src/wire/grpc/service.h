/* The set of gRPC methods that a server answers: filled at start, read-only afterwards. One set per
 * shard. */
#ifndef VIGIL_WIRE_GRPC_SERVICE_H
#define VIGIL_WIRE_GRPC_SERVICE_H

#include "base/memory/budget.h"
#include "base/metric/metric.h"
#include "wire/grpc/method.h"

struct grpc_services;

enum { GRPC_CODES = GRPC_UNAUTHENTICATED + 1 };

/* What is counted for each method: slots in a row of a metric block. */
enum grpc_count {
    GRPC_COUNT_STARTED,
    GRPC_COUNT_RECEIVED, /* messages */
    GRPC_COUNT_RECEIVED_BYTES,
    GRPC_COUNT_SENT,
    GRPC_COUNT_SENT_BYTES,                                /* including prefixes */
    GRPC_COUNT_HANDLED,                                   /* one for each code */
    GRPC_COUNT_SECONDS = GRPC_COUNT_HANDLED + GRPC_CODES, /* a histogram */
    GRPC_COUNTS = GRPC_COUNT_SECONDS + METRIC_SLOTS
};
extern const struct metric_buckets grpc_seconds;

/*
 * For measuring calls: a clock, and a function that is called when a unary call took longer than
 * slow_ns. The call is still complete then, so grpc_call_request and similar functions may be used.
 * Borrowed; used on the thread that answers.
 */
struct grpc_timing {
    int64_t (*now_ns)(void *now_ctx); /* the connection's clock, but the current time */
    void *now_ctx;
    int64_t slow_ns;
    void (*on_slow)(void *ctx, const struct grpc_call *call, int64_t took_ns);
    void *ctx;
};

/*
 * Decides whether a caller may send a message. admit is called before each message is passed to its
 * method, including those of streams. A status other than ST_OK fails the call, and the service
 * does not see the message. Borrowed; used on the thread that answers.
 */
struct grpc_row;
struct grpc_guard {
    enum status (*admit)(void *ctx, struct grpc_call *call, const struct grpc_row *row);
    void *ctx;
};

/* One method with its service. */
struct grpc_row {
    struct slice path;
    const struct grpc_method *method;
    void *service;
    struct metric_block *counts; /* NULL: calls are not counted */
    unsigned first_count;
    const struct grpc_timing *timing; /* NULL: calls are not measured */
    const struct grpc_guard *guard;   /* NULL: every caller is admitted */
};

MUST_CHECK
enum status grpc_services_new(struct grpc_services **ret_services);
void grpc_services_free(struct grpc_services *services);
DEFINE_CLEANUP(struct grpc_services *, grpc_services_free)

/* The rows are borrowed and outlive the set. `service` is passed to each of their functions. */
MUST_CHECK
enum status grpc_services_add(struct grpc_services *services, const struct grpc_method *methods,
                              size_t count, void *service);

/* NULL: no such method is registered. Rows do not move once all are added. */
const struct grpc_row *grpc_services_find(const struct grpc_services *services, struct slice path);

/* All methods, sorted by path. */
const struct grpc_row *grpc_services_rows(const struct grpc_services *services, size_t *ret_count);

/*
 * Counts calls from now on: those of the n-th row in the slots from n * GRPC_COUNTS. Only after the
 * last row was added; the block belongs to the thread that answers.
 */
void grpc_services_count(struct grpc_services *services, struct metric_block *block);

/* Measures calls from now on; also only after the last row was added. */
void grpc_services_time(struct grpc_services *services, const struct grpc_timing *timing);

/* Guards every method from now on. */
void grpc_services_guard(struct grpc_services *services, const struct grpc_guard *guard);

/* From now on a call with an Origin field, which only browsers send, is refused if its connection
 * is guarded (wire_server_guard). */
void grpc_services_refuse_pages(struct grpc_services *services);
bool grpc_services_refuses_pages(const struct grpc_services *services);

/*
 * Decompresses a message with the encoding gzip (the contract is in zip/gunzip.h). Without such a
 * function these calls are refused, as grpc-go does.
 */
typedef enum status grpc_gunzip(struct slice bytes, size_t bytes_max, struct account *account,
                                struct buf *out, const char **ret_reason);
void grpc_services_set_gunzip(struct grpc_services *services, grpc_gunzip *gunzip);
grpc_gunzip *grpc_services_gunzip(const struct grpc_services *services); /* may be NULL */

/* Whether any method's path begins with the prefix: "/etcdserverpb.KV/". */
bool grpc_services_has(const struct grpc_services *services, struct slice prefix);

#endif
