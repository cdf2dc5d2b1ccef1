/*
 * Watches of objects: for programs that keep objects in etcd as Kubernetes does. An object is a
 * key with a value. The program can supply a function that decodes values and one that selects
 * objects, and it receives what happens to the selected objects: they are added, modified and
 * deleted.
 *
 *     vigil_object_options_init(&options);
 *     options.key = vigil_text("/registry/pods/");
 *     options.prefix = 1;
 *     vigil_object_watch_new(client, &options, on_batch, user, &watch);
 *
 *     new ──► listing ──► watching       every state ──► ended
 *      └──────────────────────▲
 *
 * With revision 0 the watch begins with the state: every object that exists is ADDED, in the order
 * of the keys and as of one revision, which is read in pages. A BOOKMARK that is marked as initial
 * ends the state. Every later change follows. With another revision the watch yields the changes
 * after it. A broken connection is survived: nothing is lost, repeated or reordered.
 *
 * Which event a change yields follows from `matches` for the object before and after it:
 *
 *     before   after
 *     no       yes      ADDED      with the new value
 *     yes      yes      MODIFIED   with the new value
 *     yes      no       DELETED    with the last value that matched
 *     no       no       none
 *
 * What ends the watch with an ERROR:
 *
 *     status                     cause
 *     410 "Expired"              the revision has been compacted
 *     500 "StorageReadError"     a deleted value cannot be decoded
 *     500 "InternalError"        another value cannot be decoded; an event has no previous value,
 *                                because that has been compacted; every other error
 *
 * This is what the storage layer of Kubernetes does (watchChan), with these differences: the end of
 * the state is always marked, an empty value is an object like any other, and a server without a
 * leader ends the watch only with require_leader.
 *
 * Example: examples/objects.c
 */
#ifndef VIGIL_OBJECT_H
#define VIGIL_OBJECT_H

#include <vigil/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What happened to an object. */
typedef enum vigil_object_event_type {
    VIGIL_OBJECT_ADDED,
    VIGIL_OBJECT_MODIFIED,
    VIGIL_OBJECT_DELETED,
    VIGIL_OBJECT_BOOKMARK, /* everything up to the revision has been delivered */
    VIGIL_OBJECT_ERROR     /* nothing follows */
} vigil_object_event_type;

/* A key with a value. */
typedef struct vigil_object {
    vigil_bytes key;
    vigil_bytes value;
    /* The revision of the last change. A DELETED object has the revision of the change that deleted
     * it or after which it no longer matches. */
    int64_t revision;
    void *decoded; /* the result of the decode function; NULL without one */
} vigil_object;

/*
 * The functions of the program that handle objects are called on the thread that makes callbacks,
 * and must not free the watch.
 *
 * decode sets object->decoded and returns 0. Any other result ends the watch with an ERROR, whose
 * text contains error->text, if decode has set it; a watch over the v2 API skips the value instead.
 */
typedef int (*vigil_object_decode)(vigil_object *object, vigil_error *error, void *user);
/* Frees what decode has made. It may be called after the callback has freed the watch. */
typedef void (*vigil_object_release)(void *decoded);
/* Returns whether the object is selected. */
typedef int (*vigil_object_matches)(const vigil_object *object, void *user);

/* Why a watch of objects has ended. */
typedef struct vigil_object_error {
    int status;               /* 410: the revision is gone, so begin again with the state; or 500 */
    const char *reason;       /* "Expired", "InternalError", "StorageReadError" */
    int64_t compact_revision; /* with 410: of the store; 0 if the server did not tell it */
    vigil_error error;        /* with the text that Kubernetes has for it */
} vigil_object_error;

/* One event of a watch of objects. */
typedef struct vigil_object_event {
    int type; /* enum vigil_object_event_type */
    /* ADDED: the object is part of the state. BOOKMARK: the state is complete. */
    uint8_t initial;
    /* BOOKMARK: only with the revision. ERROR: empty. To keep object.decoded, the program sets it
     * to NULL here and releases it later; otherwise it is released after the callback. */
    vigil_object object;
    const vigil_object_error *error; /* with ERROR; otherwise NULL */
} vigil_object_event;

/* What a watch of objects delivers. Valid during the callback. */
typedef struct vigil_object_batch {
    vigil_object_event *events;
    size_t event_count;
    /* Everything up to here has been delivered, so that another watch can begin with this revision.
     * 0 while the state is incomplete. */
    int64_t revision;
    /* Nothing follows. The last event is an ERROR, unless the client was shut down. */
    uint8_t ended;
} vigil_object_batch;

/* A watch of objects. */
typedef struct vigil_object_watch vigil_object_watch;

/* Receives what a watch of objects delivers. Returns an enum vigil_watch_answer. */
typedef int (*vigil_object_watch_fn)(vigil_object_watch *watch, vigil_object_batch *batch,
                                     void *user);

/* Set all fields with vigil_object_options_init. */
typedef struct vigil_object_options {
    size_t size;
    vigil_bytes key;
    uint8_t prefix;          /* all keys with the prefix `key`, which usually ends in "/" */
    uint8_t progress_notify; /* bookmarks now and then while nothing changes */
    uint8_t require_leader;  /* ends if the server loses its leader, as in Kubernetes */
    int64_t revision;        /* 0: the state and every later change; else: changes after it */
    int64_t page_limit;  /* number of objects in one page of the state; default 1000; a page that
                            exceeds receive_bytes_max is read again in smaller ones */
    size_t buffer_bytes; /* while the watch is paused; as in vigil_watch_options */
    vigil_object_decode decode;   /* NULL: values are not decoded */
    vigil_object_release release; /* NULL: nothing has to be freed */
    vigil_object_matches matches; /* NULL: every object is selected */
} vigil_object_options;

/* Sets the defaults: one key, from its state on, without functions of the program. */
VIGIL_API void vigil_object_options_init(vigil_object_options *options);

/* Begins a watch of objects. Returns a vigil_code. fn is called later, also for errors of the
 * server. decode and matches get the same user. */
VIGIL_API int vigil_object_watch_new(vigil_client *client, const vigil_object_options *options,
                                     vigil_object_watch_fn fn, void *user,
                                     vigil_object_watch **ret_watch);

/* Ends the watch in any state, silently: fn is not called any more; if it is running on another
 * thread just now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_object_watch_free(vigil_object_watch *watch);

/* Continues the watch after fn has answered VIGIL_WATCH_PAUSE. */
VIGIL_API void vigil_object_watch_resume(vigil_object_watch *watch);

/* Returns the revision with which another watch would continue this one; 0 while the state is
 * incomplete. */
VIGIL_API int64_t vigil_object_watch_revision(const vigil_object_watch *watch);

/* Returns the user pointer that vigil_object_watch_new was called with. */
VIGIL_API void *vigil_object_watch_user(const vigil_object_watch *watch);

/* What a watch of objects has done so far, and what is in its queue. */
typedef struct vigil_object_watch_stats {
    uint64_t events;    /* delivered: ADDED, MODIFIED and DELETED */
    uint64_t filtered;  /* objects and changes that yielded no event */
    uint64_t bookmarks; /* delivered */
    uint64_t pages;     /* pages of the state that have been read */
    uint64_t pauses;
    uint64_t queued_bytes;     /* received while paused and not yet delivered, now */
    uint64_t queued_bytes_max; /* high-water mark of queued_bytes */
    uint64_t batch_events_max; /* high-water mark of the events in one batch */
} vigil_object_watch_stats;

/* Copies the statistics. size is sizeof(vigil_object_watch_stats), so that the struct may grow. */
VIGIL_API void vigil_object_watch_get_stats(const vigil_object_watch *watch,
                                            vigil_object_watch_stats *ret_stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
