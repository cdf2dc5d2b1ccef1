/*
 * With an engine in front of a cluster that mirrors only some prefixes: the watches of a Watch call
 * whose ranges are not mirrored. They are made at the cluster, over one call in the client's own
 * name, with the ids that they have here, and the cluster's responses are passed on as they are.
 *
 *     create ──► the cluster ──► created, events, canceled ──► queue ── fill ──► DATA
 *                                progress: for the watch stream of the call, see below
 *
 * The cluster checks the caller's rights when a watch is created and never again, so that is done
 * here, as for the other watches of the call. What it sends for a watch that was ended is dropped.
 *
 * The queue is bounded: a client that does not read stops the cluster. Nothing is written between
 * the fragments of a response. Exists only if the call has such watches; on its thread.
 */
#ifndef VIGIL_ETCD_CLUSTER_WATCH_FOREIGN_H
#define VIGIL_ETCD_CLUSTER_WATCH_FOREIGN_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etcd_api;
struct grpc_call;
struct pb_watch_create_request;
struct watch_foreign;

enum {
    WATCH_FOREIGN_MAX = 1000, /* watches of one call */
    /* Limit on the size of one response; a longer one ends the call. */
    WATCH_FOREIGN_RESPONSE_BYTES_MAX = 64 << 20,
};

struct watch_foreign_owner {
    void (*wake)(void *ctx); /* there is something to fill */
    /* The call at the cluster has ended, and so must the client's. The last function called. */
    void (*failed)(void *ctx, enum grpc_code code, struct slice text);
    void *ctx;
};

/* Starts a call of the cluster. NULL: no memory. */
struct watch_foreign *watch_foreign_new(struct etcd_api *api, struct grpc_call *call,
                                        struct watch_foreign_owner owner);
void watch_foreign_free(struct watch_foreign *foreign); /* accepts NULL */

/* A watch with this id, which is not in use. ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status watch_foreign_create(struct watch_foreign *foreign,
                                 const struct pb_watch_create_request *request, int64_t id);
bool watch_foreign_has(const struct watch_foreign *foreign, int64_t id); /* accepts NULL */
size_t watch_foreign_count(const struct watch_foreign *foreign);         /* accepts NULL */
MUST_CHECK
enum status watch_foreign_cancel(struct watch_foreign *foreign, int64_t id);
/*
 * Ends every watch for whose range `keep` returns false, with the reason in its canceled response:
 * the cluster itself would let it continue. ST_NOMEM: some were not ended.
 */
MUST_CHECK
enum status watch_foreign_keep(struct watch_foreign *foreign,
                               bool (*keep)(void *ctx, struct slice key, struct slice range_end),
                               void *ctx, struct slice reason);
/* A create was not answered, or its answer not written: later requests must wait. Accepts NULL. */
bool watch_foreign_is_pending(const struct watch_foreign *foreign);

/*
 * Asks the cluster for progress. Once its answer has come and everything before it was written,
 * take_progress returns its revision, once; 0: not yet.
 */
MUST_CHECK
enum status watch_foreign_progress(struct watch_foreign *foreign);
int64_t watch_foreign_take_progress(struct watch_foreign *foreign);
/* Queues the cluster's answer itself, for a call that has no other watches. */
MUST_CHECK
enum status watch_foreign_pass_progress(struct watch_foreign *foreign);

/* Writes at most room bytes of framed responses, and counts those that it completes. */
size_t watch_foreign_fill(struct watch_foreign *foreign, uint8_t *dst, size_t room,
                          uint64_t *ret_responses);
/* What was written ends within a response, or between fragments: nothing else may follow. */
bool watch_foreign_is_within(const struct watch_foreign *foreign);
bool watch_foreign_has_more(const struct watch_foreign *foreign);

#endif
