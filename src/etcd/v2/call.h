/*
 * One request of the v2 API, and the forms of its answers. Used by the handlers of v2 (routes.h has
 * the overview), on the shard's thread.
 */
#ifndef VIGIL_ETCD_V2_CALL_H
#define VIGIL_ETCD_V2_CALL_H

#include "etcd/http/http.h"
#include "etcd/v2/error.h"
#include "etcd/v2/form.h"
#include "etcd/v2/node.h"

struct password_job;
struct v2_guard;

enum { V2_CALL_BYTES_MAX = 16 << 20 }; /* limit on the size of a call's arena */

/*
 *     ready ◄──────► pending       the engine or the hasher works on it
 *       │               │
 *       │         the exchange ends
 *       ▼               ▼
 *     over ◄─────── abandoned      nothing is sent any more, but the operation must complete
 */
enum v2_call_state { V2_CALL_READY, V2_CALL_PENDING, V2_CALL_ABANDONED, V2_CALL_OVER };

/*
 * The first member of the state of each kind of request, which is on the heap. Freed when its
 * exchange has ended and the engine has answered.
 */
struct v2_call {
    struct http_exchange *exchange;
    struct etcd_api *api;
    struct arena arena;
    struct v2_form form;
    struct v2_key key;
    enum v2_call_state state;
    struct password_job *job; /* a password that is being hashed for it, or NULL */
    struct v2_guard *guard;   /* in the arena; NULL: no permission is needed */
    void (*fini)(struct v2_call *call);
};

/* For routes: the exchange has ended, and its user is a call or NULL. */
void v2_call_on_end(struct http_exchange *x, void *service);
/* Called before an operation of the engine, and when it is done. False: the exchange has ended
 * meanwhile, and the call was freed. */
void v2_call_start(struct v2_call *call);
bool v2_call_done(struct v2_call *call);
/* While an operation is pending: the exchange has ended, so there is nothing to answer. */
static inline bool v2_call_is_abandoned(const struct v2_call *call)
{
    return call->state == V2_CALL_ABANDONED;
}

/* Answer with an error of /v2/keys; the second one has the path of a key as its cause. */
void v2_fail(struct v2_call *call, enum v2_code code, struct slice cause, int64_t index);
void v2_fail_key(struct v2_call *call, enum v2_code code, struct slice key, int64_t index);
void v2_fail_status(struct v2_call *call, enum status status);
/* Add the header fields of every answer, and of every answer about keys. False: there was no
 * memory, and the exchange was aborted. */
MUST_CHECK
bool v2_add_cluster_id(struct http_exchange *x, const struct etcd_api *api);
MUST_CHECK
bool v2_add_index(struct v2_call *call, int64_t index);

/* A JSON answer that is not about a key, with the cluster's id. */
void v2_reply_json(struct http_exchange *x, const struct etcd_api *api, unsigned status,
                   struct slice body);
/* {"message": …} */
void v2_reply_message(struct http_exchange *x, const struct etcd_api *api, unsigned status,
                      const char *message);
/* While authentication of v3 is enabled, the v2 API refuses everything, because its requests have
 * no token of v3. */
bool v2_is_blocked(const struct etcd_api *api);
/* Whether the method is in a list such as "GET,PUT". False: the request was answered with 405. */
MUST_CHECK
bool v2_allows(struct http_exchange *x, const struct http_request *request, const char *methods);
/* The same for requests that are not about keys, which also fails while v2 is blocked. */
MUST_CHECK
bool v2_admits(struct http_exchange *x, const struct etcd_api *api,
               const struct http_request *request, const char *methods);

#endif
