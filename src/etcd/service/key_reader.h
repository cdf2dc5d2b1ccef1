/*
 * Reads one key-value for a call, and can wait until that key changes. Locks and elections are made
 * from such reads: of the oldest key of a prefix, of the key created before another, or of the key
 * that the call has created.
 *
 *     get ──► done ──► (wait ──► the call is woken ──► drain ──► get …)
 *
 * Embedded in the state of a service, in the call's arena, on the connection's thread.
 */
#ifndef VIGIL_ETCD_SERVICE_KEY_READER_H
#define VIGIL_ETCD_SERVICE_KEY_READER_H

#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/shared/service.h"

struct watch_stream;

struct key_reader {
    struct engine_range range; /* first */
    struct etcd_api *api;
    struct grpc_call *call;
    void (*done)(struct key_reader *reader);
    struct pb_range_request request;
    bool pending; /* the engine has not answered */

    /* The result, valid until the next read. range.op has the status and the revision. */
    bool found;
    struct pb_key_value kv;
    struct arena arena;

    struct watch_stream *stream; /* owned; NULL: it waits for nothing */
    struct buf watched;          /* the key, or first key of the range, that it waits for */
    bool wide;                   /* it waits for a range */
};

void key_reader_init(struct key_reader *reader, struct grpc_call *call, struct etcd_api *api,
                     void (*done)(struct key_reader *reader));
/* Must not be pending. */
void key_reader_fini(struct key_reader *reader);

/* Start a read of at most one key-value. The slices are borrowed until done is called. */
void key_reader_get(struct key_reader *reader, struct slice key);
void key_reader_get_oldest(struct key_reader *reader, struct slice prefix, struct slice prefix_end);
/* Reads the youngest key that was created before a revision, without its value. */
void key_reader_get_before(struct key_reader *reader, struct slice prefix, struct slice prefix_end,
                           int64_t create_revision);

/*
 * Wakes the call when the key, or a key in [key, end), changes after the revision of the latest
 * read: when it is deleted or, with `puts`, at every change. A wait for the same key continues.
 * ST_TOO_MANY_WATCHES: the server has no room for another watch, and the call will not be woken.
 */
MUST_CHECK
enum status key_reader_wait(struct key_reader *reader, struct slice key, struct slice end,
                            bool puts);
/*
 * Consumes the events of the wait. True: the key must be read again, because it changed, the wait
 * has only begun, or the wait has ended and must be started again. Only the call's source may call
 * this, and must do so until it returns false.
 */
bool key_reader_drain(struct key_reader *reader);

/* The first key after all keys with the prefix, in the arena. prefix is not empty. */
MUST_CHECK
enum status key_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end);

/* Decodes the key-value in a field `12 len KeyValue`, the form in which the store returns it. */
MUST_CHECK
enum status key_value_decode(struct slice field, struct arena *arena, struct pb_key_value *ret_kv);

#endif
