/*
 * With an engine in front of a cluster: the requests of a Watch call while the cluster decides
 * whether one of its watches may be created, or while the mirror lacks what was written before a
 * request for progress. Later requests of the call wait behind it, so that their order is kept.
 *
 *     idle ── start ──► pending ── the cluster's answer ──► idle ──► freed, or the next one
 *                          │
 *                          └── the call ends ──► abandoned ── the answer ──► freed
 *
 * It exists only while something waits, so that an idle call does not pay for it. On the
 * connection's thread.
 */
#ifndef VIGIL_ETCD_CLUSTER_WATCH_ADMISSION_H
#define VIGIL_ETCD_CLUSTER_WATCH_ADMISSION_H

#include "base/slice.h"
#include "base/status.h"
#include "codec/pb/rpc.pb.h"

struct account;
struct etcd_api;
struct watch_admission;

/* Bytes of requests that wait; the client gets no more window meanwhile, so it can hardly be
 * reached. */
enum { WATCH_ADMISSION_QUEUE_BYTES_MAX = 1 << 20 };

struct watch_admission_owner {
    /* The answer is known. Not called from within watch_admission_start. */
    void (*answered)(void *ctx);
    void *ctx;
};

/* What waits is charged to the account, which may be NULL. NULL: no memory. */
struct watch_admission *watch_admission_new(struct etcd_api *api, struct account *account,
                                            struct watch_admission_owner owner);
/* The call has ended, or nothing waits: frees it, once it is answered. Accepts NULL. */
void watch_admission_free(struct watch_admission *admission);

/*
 * Asks whether the watch of this request may be created, or its progress reported, which needs no
 * rights. The message is copied. ST_AGAIN: the
 * answer will come, and until then the admission is pending; ST_OK: there is an answer; ST_NOMEM.
 */
MUST_CHECK
enum status watch_admission_start(struct watch_admission *admission, struct slice token,
                                  struct slice message);
bool watch_admission_is_pending(const struct watch_admission *admission); /* accepts NULL */

/* The answer, and the request that it is about. Valid until the next start. */
/* The cluster must be asked for the events, too: see engine_admission. */
bool watch_admission_is_foreign(const struct watch_admission *admission);
enum status watch_admission_status(const struct watch_admission *admission);
struct slice watch_admission_text(const struct watch_admission *admission);
const struct pb_watch_request *watch_admission_request(const struct watch_admission *admission);

/* Lets a message wait. ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status watch_admission_queue(struct watch_admission *admission, struct slice message);
/* The next message that waits; valid until something is queued. False: there is none. */
bool watch_admission_next(struct watch_admission *admission, struct slice *ret_message);

#endif
