/*
 * One request of the API under way, and the steps that all have in common. A handler starts an
 * operation of the engine and goes on in its done; a call whose peer has gone is freed when its
 * last operation is done, and what it would have answered is dropped.
 *
 *     on_request ─► kube_call_begin ─► handler ─► operation … done ─► answer ─► on_end ─► freed
 */
#ifndef VIGIL_KUBE_API_CALL_H
#define VIGIL_KUBE_API_CALL_H

#include "base/random.h"
#include "kube/api/accept.h"
#include "kube/api/event_ttl.h"
#include "kube/api/face.h"
#include "kube/api/keeper.h"
#include "kube/api/metrics.h"
#include "kube/api/offload.h"
#include "kube/api/registry.h"
#include "kube/api/request.h"
#include "kube/api/search_budget.h"
#include "kube/api/selection.h"
#include "kube/api/watches.h"
#include "kube/api/write_queue.h"
#include "kube/object/object.h"
#include "kube/resource/kind.h"
#include "kube/storage/storage.h"

struct kube_sights;

/* Who answers an exchange, as HTTP knows him: a call, or what has taken its place. */
struct kube_life {
    void (*end)(struct kube_life *life); /* nothing more is heard of the exchange */
};

struct kube_face {
    const struct kube_config *config;
    struct engine *engine;
    struct engine_shard *shard;
    struct loop *loop;
    struct http_routes *routes; /* owned */
    struct random random;       /* for uids, names, and what should not happen everywhere at once */
    size_t under_way;           /* operations the engine has not answered */
    size_t gathered_bytes;      /* of lists in protobuf, which are held until they are sent */
    unsigned packers;           /* lists that are compressed as they are sent */
    void (*write_metrics)(void *ctx, struct metric_page *page); /* NULL: no such page */
    void *metrics_ctx;
    struct clock *clock; /* for the times in metadata */
    struct list purges;  /* namespaces being emptied: struct kube_purge */
    struct kube_namespaces namespaces;
    struct kube_keep keep;
    struct kube_registry *registry; /* owned: which kinds there are */
    struct kube_expiry expiry;
    struct kube_sights *sights; /* owned; what watches share in a turn (sight.h) */
    struct kube_selections selections;
    struct kube_line line;   /* changes of the same object */
    struct kube_looks looks; /* of lists and watches */
    struct kube_counter counter;
    struct kube_watches watches;
    struct mailbox worked;                    /* calls that come back from the worker (work.h) */
    bool stopped;                             /* nothing is begun any more that nobody asks for */
    size_t call_bytes_max, attempt_bytes_max; /* of the arenas of a call and of its attempts */
};

/* What one request may make us hold besides its body. */
enum { KUBE_CALL_ARENA_BYTES_MAX = 64 << 20 };

struct kube_call {
    struct kube_life life;
    struct kube_face *face;
    struct http_exchange *exchange;     /* NULL once it is over */
    const struct http_request *request; /* of a call that writes a copy, which stays */
    struct arena arena, *ops_arena;     /* of engine operations, if a handler begins very many */
    struct auth_principal principal;    /* see kube_principal */
    struct kube_path path;
    struct kube_query query;
    struct kube_accept accept;
    struct kube_accept accept_fail; /* of what went wrong */
    struct kube_accept accept_json; /* the clause that takes JSON, */
    bool takes_json;                /* if there is one */
    const struct kube_kind *kind;
    struct kube_kinds *kinds;       /* counted: the picture that kind is in */
    struct kube_registry_wait wait; /* for its kind */
    struct kube_namespaces_wait namespaces_wait;
    enum kube_verb verb;
    unsigned code; /* of the answer; 0: none has begun */
    bool written;  /* what it was sent for: it is too late to ask for it again */
    int64_t started_ns;
    struct buf warnings;       /* Warning fields of the answer, each with a NUL behind it */
    struct kube_status status; /* what to answer if it fails */
    struct engine_range range;
    struct kube_write write;
    struct kube_turn turn; /* a change's; it leaves with the answer */
    struct kube_work work;
    unsigned under_way;                      /* operations of this call */
    void *handler;                           /* the handler's own, in the arena */
    void (*on_end)(struct kube_call *call);  /* the handler's; may be NULL */
    void (*on_free)(struct kube_call *call); /* its last moment; may be NULL */
};

/* -- For handlers -- */

/* Answers with call->status. */
void kube_call_fail(struct kube_call *call);
/* Adds a Warning field to the answer; cutting call->warnings takes it back. */
void kube_call_warn(struct kube_call *call, struct slice warning);
/* Answers with JSON bytes, which are copied; pretty or in another format if that was asked for. */
void kube_call_respond(struct kube_call *call, unsigned code, struct slice json);
/* The head of an answer whose body comes as it is made. */
void kube_call_begin(struct kube_call *call, unsigned code, struct slice content_type);
/* A stored object in the shape that was asked for, in the arena. False: the status says why. */
MUST_CHECK
bool kube_call_object(struct kube_call *call, struct slice json, int64_t revision,
                      struct slice *ret_json);
/* Begins the range of a request in the arena; `done` gets the call by kube_call_of_range. */
void kube_call_range(struct kube_call *call, const struct pb_range_request *request,
                     void (*done)(struct engine_op *op));
/* Begins call->write, whose key, value and expected are set: a put, which holds only while the
 * definition of its kind is the one it was checked by, or a delete. */
void kube_call_put(struct kube_call *call, void (*done)(struct engine_op *op));
void kube_call_delete(struct kube_call *call, void (*done)(struct engine_op *op));
struct kube_call *kube_call_of_range(struct engine_op *op);
struct kube_call *kube_call_of_write(struct engine_op *op);
/* In each done, after what the operation has was looked at and it was closed; answers come after
 * this. False: the peer has gone, and the call is freed now unless another operation runs. */
MUST_CHECK
bool kube_call_done(struct kube_call *call);

/*
 * For an answer that outlives its request: from here on the exchange is `life`'s, which is told of
 * its end. The call stays until it is released: when it is needed no more, or at that end. It is
 * freed then, or with its last operation. Its on_end is not called.
 */
void kube_call_hand_over(struct kube_call *call, struct kube_life *life);
void kube_call_release(struct kube_call *call);

/* The key of the object that the path names; fails the call if there is no memory. */
MUST_CHECK
bool kube_call_key(struct kube_call *call, struct slice *ret_key);

/* -- The handlers, one file each -- */

void kube_get(struct kube_call *call);
void kube_list(struct kube_call *call);
void kube_watch(struct kube_call *call);
/* POST, PUT, PATCH, DELETE (write.h); false: it is another method. */
MUST_CHECK
bool kube_mutate(struct kube_call *call, const struct http_request *request);

#endif
