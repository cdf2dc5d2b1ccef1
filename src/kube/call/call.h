/*
 * One request to the API, from its arrival to its answer. A handler starts an operation of the
 * engine and continues in its `done`. If the client disconnects meanwhile, the call is freed when
 * its last operation completes, and its answer is discarded; webhooks are not waited for.
 *
 *     kube/server/dispatch.c ─► handler ─► operation … done ─► answer ─► on_end ─► freed
 *
 * Belongs to the thread of its API, except while a step of it runs on the worker (call_offload.h).
 * Answers are in respond.h, operations in operation.h.
 */
#ifndef VIGIL_KUBE_CALL_CALL_H
#define VIGIL_KUBE_CALL_CALL_H

#include "kube/call/api_state.h"
#include "kube/call/registry.h"
#include "kube/request/accept.h"
#include "kube/request/life.h"
#include "kube/request/request.h"
#include "kube/types/kind.h"
#include "kube/types/object/object.h"
#include "kube/types/storage.h"
#include "wire/http/exchange.h"

struct kube_call;
struct kube_identity;
struct kube_user_info;

/* The state of the handler that serves a call, in the arena of the call. Each handler uses the
 * member of its file. */
union kube_handler {
    const struct pb_range_request *definition; /* kube/server/dispatch.c, before the others */
    struct discovery_document *discovery;      /* kube/server/discovery.c */
    struct get_state *get;                     /* kube/handlers/read/get.c */
    struct kube_list *list;                    /* kube/handlers/read/list.c */
    struct beginning *beginning;               /* kube/handlers/read/watch.c, until it has begun */
    struct kube_watch *watch;
    struct kube_change *change; /* kube/handlers/write/write.c, and those that embed it */
    struct review *review;      /* kube/handlers/write/review.c */
};

/* The body of an answer, ready to be sent. */
struct kube_answer {
    unsigned code;
    enum kube_format format;
    bool packed;       /* with gzip */
    struct slice body; /* in `made`, or as it was given */
    struct buf made;
};

/* A step that may run on the worker, see kube/call/call_offload.h. */
struct kube_work {
    struct kube_offload_job job;
    bool away;          /* the call is on the worker */
    bool keeps_request; /* call->request is a copy */
    void (*step)(struct kube_call *call);
    void (*next)(struct kube_call *call); /* what the step has ended in */
    struct kube_kinds *kinds;             /* a reference, while the call is away */
    /* Arguments of next. */
    const struct pb_range_request *request;
    void (*done)(struct engine_op *op);
    struct kube_answer answer;
};

struct kube_call {
    struct kube_life life;
    struct kube_api *api;
    struct http_exchange *exchange;     /* NULL once it has ended */
    const struct http_request *request; /* a copy, for a call that writes */
    struct arena arena;
    struct arena *ops_arena; /* for engine operations, if a handler starts very many; or NULL */
    struct auth_principal principal;   /* see kube_principal */
    struct kube_identity *identity;    /* owned; NULL: every client may do everything */
    const struct kube_user_info *user; /* see kube_call_user; NULL until it is needed */
    struct kube_path path;
    struct kube_query query;
    struct kube_accept accept;
    struct kube_accept accept_fail; /* format of a Status */
    struct kube_accept accept_json; /* the clause that accepts JSON, */
    bool takes_json;                /* if there is one */
    const struct kube_kind *kind;
    struct kube_kinds *kinds; /* a reference: contains kind, if it is a custom one */
    unsigned rules;           /* enum kube_kind_rule of kind; 0 for a read */
    enum kube_subresource subresource;
    struct kube_registry_wait wait; /* for kind */
    enum kube_verb verb;
    unsigned code;    /* code of the answer; 0: it has not begun */
    bool converted;   /* a webhook has made the object that is answered: it is as it is served */
    bool written;     /* the object was written: a client must not be asked to try again */
    size_t set_aside; /* charged to the account for the answer to the write; see kube_call_put */
    int64_t started_ns;
    struct buf warnings;       /* collected for the answer: kube/call/warning.h */
    struct kube_status status; /* the answer, if the call fails */
    struct engine_range range;
    struct kube_write write;
    struct kube_write_ticket ticket; /* ticket of a change; it leaves the queue with the answer */
    struct kube_write_ticket quota_ticket; /* the same for quotas: kube/handlers/write/charge.h */
    struct random random;                  /* its own, because its steps may run on two threads */
    struct kube_work work;
    void *outside; /* what it waits for outside of the engine, such as a webhook; NULL: nothing */
    void (*cancel)(void *outside); /* the client has disconnected */
    unsigned under_way;            /* operations of this call */
    union kube_handler handler;
    void (*on_end)(struct kube_call *call);  /* called at the end for the handler; may be NULL */
    void (*on_free)(struct kube_call *call); /* the last callback; may be NULL */
};

/* -- Life -- */

/* For an exchange that has just been dispatched; the request is borrowed. */
struct kube_call *kube_call_new(struct kube_api *api, struct http_exchange *exchange,
                                const struct http_request *request);

/* The answer is about to be made, with what was set aside for it. */
void kube_call_use_set_aside(struct kube_call *call);

/* One more operation is under way; kube_call_done is its end. */
void kube_call_hold(struct kube_call *call);

/* Every `done` calls this after it has used the result of its operation and closed it; it answers
 * afterwards. False: the client has disconnected, and the call is freed unless another operation is
 * under way. */
MUST_CHECK
bool kube_call_done(struct kube_call *call);

/*
 * For an answer that outlives its request: `life` becomes the owner of the exchange. The call stays
 * until it is released, at the latest at the end of the exchange. It is freed then, or with its
 * last operation. Its on_end is not called.
 */
void kube_call_hand_over(struct kube_call *call, struct kube_life *life);
void kube_call_release(struct kube_call *call);

/* The user in whose name the call is made, in its arena. Not on the worker. */
const struct kube_user_info *kube_call_user(struct kube_call *call);

/* Adds a Warning field to the answer; truncating call->warnings removes it. */
void kube_call_warn(struct kube_call *call, struct slice warning);

/* -- Steps that may run on the worker -- */

/* Whatever a step may end in begins with this: true while the call is on the worker, and `next` is
 * called when it is back. */
MUST_CHECK
bool kube_call_defers(struct kube_call *call, void (*next)(struct kube_call *call));

/* The current kinds, or those at the time when the call was sent to the worker. Borrowed. */
struct kube_kinds *kube_call_kinds(const struct kube_call *call);

#endif
