/*
 * An informer: a copy of a collection that is kept up to date, with indexes, and handlers for its
 * changes.
 *
 *     created ──start──► syncing ──► synced ──(a gap in the history)──┐
 *                           ▲           ▲                             │
 *                           │           └──(listed again)─────────────┤
 *                           └── errors are retried for ever ──────────┘
 *
 * It lists and watches as client-go's reflector does: with a streaming list where the server knows
 * that, after breaks from the last version that it has, and with a new list when the server has
 * forgotten that version. Whatever happens, it converges on the server's state. Until it does, its
 * copy is an older state, and its versions never go back.
 *
 * Informers of one client with the same target and the same selectors share one watch and one copy.
 * An informer makes one request at a time, with pauses after failures; these do not count for the
 * client's limit of calls per second.
 *
 *     vigil_kube_informer_new(kube, &options, &informer);
 *     vigil_kube_informer_add_handler(informer, &handler_options, &handler);
 *     vigil_kube_informer_start(informer);
 *     vigil_kube_informer_wait_synced(informer, -1);
 *     pod = vigil_kube_informer_get(informer, vigil_text("default/web"));
 *
 * Memory: the objects as the server sent them, and about 200 bytes for each. Objects that the
 * program holds stay valid and unchanged, whatever becomes of the copy.
 *
 * Example: examples/kube_reload.c
 */
#ifndef VIGIL_KUBE_INFORMER_H
#define VIGIL_KUBE_INFORMER_H

#include <vigil/kube/client.h>
#include <vigil/kube/object.h>
#include <vigil/kube/status.h>
#include <vigil/kube/target.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_kube_informer vigil_kube_informer;
typedef struct vigil_kube_handler vigil_kube_handler;

/* What to keep, and how. Set all fields with vigil_kube_informer_options_init. */
typedef struct vigil_kube_informer_options {
    size_t size;
    vigil_kube_target target; /* a collection, without a name */
    const char *label_selector, *field_selector;
    uint8_t protobuf;     /* objects are Kubernetes' protobuf; not for custom resources */
    uint8_t no_streaming; /* list and watch separately, as for servers before 1.32 */
    size_t bytes_max;     /* limit on the size of all objects; 0: no limit. When it is exceeded, the
                             informer keeps what it has, reports the failure, and tries again. */
    int64_t page_limit;   /* objects in a page of a list; default 500 */
} vigil_kube_informer_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_kube_informer_options_init(vigil_kube_informer_options *options);

/* Creates an informer, which does nothing until it is started. If the client has one with the same
 * target, selectors and encoding, this returns another reference to it, and the other options stay
 * as they are. Returns a vigil_code: VIGIL_ERROR_ARGUMENT, VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_kube_informer_new(vigil_kube *kube, const vigil_kube_informer_options *options,
                                      vigil_kube_informer **ret_informer);
/* Gives the reference back; the last one stops the informer and ends its handlers. Accepts NULL. */
VIGIL_API void vigil_kube_informer_free(vigil_kube_informer *informer);

/* Collects the values that an object has in an index. */
typedef struct vigil_kube_index_values vigil_kube_index_values;
/* Adds a value; it is copied. */
VIGIL_API void vigil_kube_index_values_add(vigil_kube_index_values *values, vigil_bytes value);
/* Adds the values that an object has in an index. The same object always has the same ones. It is
 * called on the thread that makes callbacks, and must not call functions of the informer. */
typedef void (*vigil_kube_index_fn)(const vigil_kube_object *object,
                                    vigil_kube_index_values *values, void *user);
/* Adds an index, before the informer is started. Two indexes exist already: "namespace", and
 * "owner" with the uids of an object's owners; they take memory only once they are read.
 * VIGIL_ERROR_ARGUMENT: the name is in use, or it is started. */
VIGIL_API int vigil_kube_informer_add_index(vigil_kube_informer *informer, const char *name,
                                            vigil_kube_index_fn fn, void *user);

/* Starts to list and watch. It has no effect if it is started already. VIGIL_ERROR_CANCELED: the
 * client was shut down. */
VIGIL_API int vigil_kube_informer_start(vigil_kube_informer *informer);
/* Returns 1 once the copy has been complete for the first time. */
VIGIL_API int vigil_kube_informer_has_synced(const vigil_kube_informer *informer);
/* Waits for that, at most timeout_ms; -1: without a limit. VIGIL_ERROR_TIMEOUT;
 * VIGIL_ERROR_CANCELED: it was ended; VIGIL_ERROR_WOULD_BLOCK inside a callback. */
VIGIL_API int vigil_kube_informer_wait_synced(vigil_kube_informer *informer, int timeout_ms);

/* -- Reading the copy -- */

/* The object with this key, "namespace/name" or "name", with a reference for the caller; NULL if
 * there is none. */
VIGIL_API vigil_kube_object *vigil_kube_informer_get(vigil_kube_informer *informer,
                                                     vigil_bytes key);
/* Some objects, in no particular order. */
typedef struct vigil_kube_objects {
    vigil_kube_object **items; /* a reference each */
    size_t count;
} vigil_kube_objects;
/* All objects as of one moment. Free them with vigil_kube_objects_free. VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_kube_informer_list(vigil_kube_informer *informer,
                                       vigil_kube_objects *ret_objects);
/* Those with this value in an index. VIGIL_ERROR_ARGUMENT: there is no such index. */
VIGIL_API int vigil_kube_informer_find(vigil_kube_informer *informer, const char *index,
                                       vigil_bytes value, vigil_kube_objects *ret_objects);
/* Gives all references back. */
VIGIL_API void vigil_kube_objects_free(vigil_kube_objects *objects);

/* -- Handlers -- */

/* What happened to an object. */
typedef enum vigil_kube_change_kind {
    VIGIL_KUBE_CHANGE_ADDED,
    VIGIL_KUBE_CHANGE_UPDATED,
    VIGIL_KUBE_CHANGE_DELETED
} vigil_kube_change_kind;

/* A change of the copy. For a handler that is slow, so that 1,024 changes or 8 MiB wait for it,
 * further changes of one object become one: `before` is always what it saw last. */
typedef struct vigil_kube_change {
    int kind;                        /* enum vigil_kube_change_kind */
    const vigil_kube_object *before; /* NULL if it was added */
    const vigil_kube_object *object; /* as it is now; of a deleted object its last known state */
    uint8_t initial;                 /* it was part of a list, and not of a watch */
    uint8_t state_unknown;           /* DELETED: the deletion was not seen, so the last state may be
                                        another */
    uint8_t resync;                  /* UPDATED: nothing has changed; see resync_ms */
} vigil_kube_change;

/* Where the function of a handler is called. */
enum vigil_kube_handler_place {
    VIGIL_KUBE_HANDLER_THREAD,   /* on a thread of its own: a slow handler delays no other */
    VIGIL_KUBE_HANDLER_CALLBACK, /* where callbacks are made: it must be quick */
    VIGIL_KUBE_HANDLER_TAKE      /* nowhere: the program takes changes, on a thread that it chooses,
                                    with vigil_kube_handler_take */
};

/* Receives a change. The change and its objects are valid during the callback; objects may be kept
 * with vigil_kube_object_ref. */
typedef void (*vigil_kube_handler_fn)(vigil_kube_handler *handler, const vigil_kube_change *change,
                                      void *user);

/* Set all fields with vigil_kube_handler_options_init. */
typedef struct vigil_kube_handler_options {
    size_t size;
    int place; /* enum vigil_kube_handler_place */
    vigil_kube_handler_fn fn;
    void *user;
    int64_t resync_ms; /* every object is reported again so often, from 1000 on; default 0: never */
} vigil_kube_handler_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_kube_handler_options_init(vigil_kube_handler_options *options);

/* Adds a handler, at any time: it gets every object that is there as added, and then the changes.
 * With a thread of its own, its function may be called before this one returns, after *ret_handler
 * is set. VIGIL_ERROR_ARGUMENT, VIGIL_ERROR_MEMORY, VIGIL_ERROR_SYSTEM (no thread or descriptor),
 * VIGIL_ERROR_CANCELED: the informer has ended. */
VIGIL_API int vigil_kube_informer_add_handler(vigil_kube_informer *informer,
                                              const vigil_kube_handler_options *options,
                                              vigil_kube_handler **ret_handler);
/* Ends it, and may be called in its function. Otherwise its function is not called any more; if it
 * is running on another thread just now, this waits for it. There is one exception: inside a
 * callback of the client this does not wait for a function that itself waits for the client, for
 * example with vigil_kube_call_run, because each would wait for the other. Such a function returns
 * later, and what it uses must exist until then. Handlers that the program holds must also be freed
 * after their informer or client has ended. Accepts NULL. */
VIGIL_API void vigil_kube_handler_free(vigil_kube_handler *handler);
/* Returns 1 once everything that the first complete copy had was taken, or its function has
 * returned for it. */
VIGIL_API int vigil_kube_handler_has_synced(const vigil_kube_handler *handler);

/* With VIGIL_KUBE_HANDLER_TAKE: takes the next change, and waits for it at most timeout_ms; 0 does
 * not wait, -1 waits without a limit. The change is valid until the next call on this handler,
 * which one thread at a time makes. Waiting does not drive a client in the program's loop.
 * VIGIL_ERROR_TIMEOUT; VIGIL_ERROR_CANCELED: it was ended; VIGIL_ERROR_ARGUMENT: its place is
 * another. */
VIGIL_API int vigil_kube_handler_take(vigil_kube_handler *handler, int timeout_ms,
                                      vigil_kube_change *ret_change);
/* Readable while a change can be taken, and after the end. Only wait for it. -1 if its place is
 * another. */
VIGIL_API int vigil_kube_handler_fd(const vigil_kube_handler *handler);

/* -- State -- */

/* How an informer is doing. */
typedef struct vigil_kube_informer_stats {
    uint64_t objects, bytes; /* now */
    uint64_t lists, watches; /* requests */
    uint64_t events, bookmarks;
    uint64_t failures;              /* requests that failed and were repeated */
    uint64_t relists;               /* complete lists after the first one */
    int64_t last_event_ms;          /* wall-clock time of the last event or bookmark; 0: none */
    char version[128];              /* up to which everything is known; "": unknown */
    vigil_kube_status last_failure; /* its code is 0 and its message "" if nothing has failed */
} vigil_kube_informer_stats;

/* Reads the state. size is sizeof(vigil_kube_informer_stats), so that the struct may grow. */
VIGIL_API void vigil_kube_informer_get_stats(const vigil_kube_informer *informer,
                                             vigil_kube_informer_stats *ret_stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
