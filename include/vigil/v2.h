/*
 * Watches of objects over the v2 keys API of etcd 3.4 (--enable-v2) and of Vigil: for programs that
 * still keep their objects there, as Kubernetes did before version 1.6. The events are those of
 * vigil/object.h.
 *
 *     vigil_v2_watch_options_init(&options);
 *     options.key = vigil_text("/registry/pods");
 *     options.recursive = 1;
 *     vigil_v2_watch_new(client, &options, on_batch, user, &watch);
 *
 *     new ──► reading ──► polling ──► ended        every state ──► ended
 *      └────────────────────▲
 *
 * With index 0 the watch begins with the state: every object below the key, also in directories
 * within directories, is read with a quorum, and a BOOKMARK that is marked as initial ends the
 * state. Then it polls for the changes, one after the other. With another index the watch yields
 * the changes after it. What becomes of a change:
 *
 *     get, create                         ADDED; MODIFIED if the node was modified since its
 *                                         creation
 *     set, update, compareAndSwap         ADDED, MODIFIED or DELETED, depending on whether the
 *                                         object is selected before and after
 *     delete, expire, compareAndDelete    DELETED, if the object was selected
 *
 * A directory, a change without its node and an unknown action are skipped. A value that cannot be
 * decoded is skipped too: a watch that ended there could never get beyond it. Both are counted.
 *
 * A broken connection and an unavailable server are survived: the poll is repeated, at another
 * endpoint if there is one, and nothing is lost or repeated. What ends the watch with an ERROR:
 *
 *     status                  cause
 *     410 "Expired"           the server has no history any more at the index: it keeps the last
 *                             1000 changes of all keys; compact_revision is its current index
 *     500 "InternalError"     every other error
 *
 * This is what the storage layer of Kubernetes did (etcdWatcher), with these differences: `update`
 * is treated as `set` instead of being ignored, the end of the state is marked, an empty value is
 * an object like any other, directories are never decoded, and an unavailable cluster is tried
 * again instead of ending the watch. Changes are polled for one by one because the stream of a
 * server (stream=true) is not reliable: etcd sends only the first change of the past on it.
 *
 * The prefix of the client (vigil_options.prefix) is not used. Its user and password are sent as a
 * user of the v2 API.
 */
#ifndef VIGIL_V2_H
#define VIGIL_V2_H

#include <vigil/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A watch of objects over the v2 API. */
typedef struct vigil_v2_watch vigil_v2_watch;

/* Receives what the watch delivers. Returns an enum vigil_watch_answer. */
typedef int (*vigil_v2_watch_fn)(vigil_v2_watch *watch, vigil_object_batch *batch, void *user);

/* Returns whether objects with this key are wanted; the others are not even decoded. */
typedef int (*vigil_v2_include)(vigil_bytes key, void *user);

/* What to watch. Set all fields with vigil_v2_watch_options_init. */
typedef struct vigil_v2_watch_options {
    size_t size;
    vigil_bytes key;              /* key of a node or a directory, "/registry/pods" */
    uint8_t recursive;            /* everything below the key, otherwise only the node itself */
    uint8_t no_quorum;            /* the state may be an old one, from one member of the cluster */
    int64_t index;                /* 0: the state and every later change; otherwise changes after
                                     it */
    vigil_v2_include include;     /* NULL: every key is included */
    vigil_object_decode decode;   /* NULL: values are not decoded */
    vigil_object_release release; /* NULL: nothing has to be freed */
    vigil_object_matches matches; /* NULL: every object is selected */
    /* Responses that are kept while the watch is paused, in number and in bytes; then it does not
     * poll until it is resumed. Defaults 100, as in Kubernetes, and 1 MiB. */
    size_t queue_max;
    size_t buffer_bytes;
} vigil_v2_watch_options;

/* Sets all fields to their defaults. */
VIGIL_API void vigil_v2_watch_options_init(vigil_v2_watch_options *options);

/* Begins a watch. Returns a vigil_code. fn is called later, also for errors of the server. include,
 * decode and matches get the same user. */
VIGIL_API int vigil_v2_watch_new(vigil_client *client, const vigil_v2_watch_options *options,
                                 vigil_v2_watch_fn fn, void *user, vigil_v2_watch **ret_watch);

/* Ends the watch in any state, silently: fn is not called any more; if it is running on another
 * thread just now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_v2_watch_free(vigil_v2_watch *watch);

/* Continues after fn has answered VIGIL_WATCH_PAUSE. */
VIGIL_API void vigil_v2_watch_resume(vigil_v2_watch *watch);

/* Returns the index up to which everything has been delivered: another watch that begins with it
 * continues this one. 0 while the state is incomplete. */
VIGIL_API int64_t vigil_v2_watch_index(const vigil_v2_watch *watch);

/* Returns the pointer that vigil_v2_watch_new was given. */
VIGIL_API void *vigil_v2_watch_user(const vigil_v2_watch *watch);

/* Counters of one watch. */
typedef struct vigil_v2_watch_stats {
    uint64_t events;           /* delivered: ADDED, MODIFIED and DELETED */
    uint64_t filtered;         /* nodes and changes that are not included or not selected */
    uint64_t skipped;          /* directories, changes without their node, unknown actions */
    uint64_t bad_values;       /* nodes and changes whose value cannot be decoded */
    uint64_t requests;         /* sent to a server */
    uint64_t retries;          /* how many of them were repeated because of a failure */
    uint64_t queued;           /* responses that are not delivered completely, now */
    uint64_t queued_max;       /* high-water mark of queued */
    uint64_t queued_bytes;     /* their bytes */
    uint64_t queued_bytes_max; /* high-water mark of queued_bytes */
} vigil_v2_watch_stats;

/* Reads the counters. size: sizeof(vigil_v2_watch_stats), so that the struct may grow. */
VIGIL_API void vigil_v2_watch_get_stats(const vigil_v2_watch *watch,
                                        vigil_v2_watch_stats *ret_stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
