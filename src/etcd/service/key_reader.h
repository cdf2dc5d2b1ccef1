/*
 * Reads one key-value for a call, and can wait until that key changes. What locks and elections are
 * made of: who is first under a prefix, who came before me, is my key still there.
 *
 *     look_start ──► done ──► (look_wait ──► the call is woken ──► look_drain ──► look_start …)
 *
 * Embedded in the service's own state, in the call's arena; the connection's thread.
 */
#ifndef VIGIL_ETCD_SERVICE_KEY_READER_H
#define VIGIL_ETCD_SERVICE_KEY_READER_H

#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/service.h"

struct watch_stream;

struct look {
    struct engine_range range; /* first */
    struct etcd_face *face;
    struct grpc_call *call;
    void (*done)(struct look *look);
    struct pb_range_request request;
    bool pending; /* the engine has not answered */

    /* What was found, until the next look. range.op has the status and the revision. */
    bool found;
    struct pb_key_value kv;
    struct arena arena;

    struct watch_stream *stream; /* owned; NULL: nothing is waited for */
    struct buf watched;          /* the key it is on, */
    bool wide;                   /* or the first key of the range it is on */
};

void look_init(struct look *look, struct grpc_call *call, struct etcd_face *face,
               void (*done)(struct look *look));
/* Not while pending. */
void look_fini(struct look *look);

/* Each asks for one key-value at most; their slices are borrowed until done. */
void look_key(struct look *look, struct slice key);
void look_oldest(struct look *look, struct slice prefix, struct slice prefix_end);
/* The youngest that was created before a revision. Without its value. */
void look_before(struct look *look, struct slice prefix, struct slice prefix_end,
                 int64_t create_revision);

/*
 * The call is woken when the key, or one in [key, end), changes after the revision of the latest
 * look: when it is deleted, or with `puts` for every change. A wait for the same key goes on.
 * ST_TOO_MANY_WATCHES: the server has no room for another watch, and nothing is waited for.
 */
MUST_CHECK
enum status look_wait(struct look *look, struct slice key, struct slice end, bool puts);
enum look_news {
    LOOK_NOTHING,
    LOOK_AGAIN, /* something happened, the wait has only begun, or it ended and must begin anew */
};
/* For the call's source, which alone may call it, and does so until it returns LOOK_NOTHING. */
enum look_news look_drain(struct look *look);

/* The first key after all that begin with the prefix, in the arena. prefix is not empty. */
MUST_CHECK
enum status look_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end);

/* The key-value of a field `12 len KeyValue` as the store keeps it. */
MUST_CHECK
enum status look_decode(struct slice field, struct arena *arena, struct pb_key_value *ret_kv);

#endif
