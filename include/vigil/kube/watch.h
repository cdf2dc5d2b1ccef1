/*
 * A watch of a collection: every change after a version, as the server sends it. For a copy of the
 * collection that is kept up to date use an informer (vigil/kube/informer.h).
 *
 *     requesting ──► receiving ──► ended
 *       ▲  │             │
 *       └──┘ retried     └──► requesting, with `resume`
 *
 * Without `resume` this is one request, as Request.Watch and StreamWatcher of client-go make it. It
 * is repeated until the server has accepted it: at most 10 times, after the time that Retry-After
 * names, or one second if the connection breaks. When these attempts have been used up by an error
 * that may pass, the watch ends as if the server had ended it; it also ends if the server refuses
 * it or cannot be reached. Once it was accepted, an end of the connection or a timeout ends it
 * silently, and the program begins a new one at the version that it knows.
 *
 * With `resume` it is client-go's RetryWatcher: it continues after the last version that it has
 * received, at most once per second, until the server says that the version is too old (410) or
 * that the program may not watch (401, 403). Nothing is lost, repeated or reordered before such an
 * end. Other refusals, for instance of a selector that is wrong, are repeated; the log of the
 * client says so once.
 */
#ifndef VIGIL_KUBE_WATCH_H
#define VIGIL_KUBE_WATCH_H

#include <vigil/kube/client.h>
#include <vigil/kube/object.h>
#include <vigil/kube/status.h>
#include <vigil/kube/target.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_kube_watch vigil_kube_watch;

/* What a watch delivers. */
typedef enum vigil_kube_event_type {
    VIGIL_KUBE_ADDED,
    VIGIL_KUBE_MODIFIED,
    VIGIL_KUBE_DELETED,
    VIGIL_KUBE_BOOKMARK, /* everything up to the version has been delivered */
    VIGIL_KUBE_ERROR,    /* the server's, or one of decoding; VIGIL_KUBE_ENDED follows */
    VIGIL_KUBE_ENDED     /* nothing follows */
} vigil_kube_event_type;

/* Why a watch has ended. */
typedef enum vigil_kube_end {
    VIGIL_KUBE_END_COMPLETE, /* the server ended it in an orderly way */
    VIGIL_KUBE_END_CUT_OFF,  /* within an event, or the connection broke */
    VIGIL_KUBE_END_TIMEOUT,  /* the connection did not answer any more */
    VIGIL_KUBE_END_RETRIES,  /* the attempts were used up by errors that may pass */
    VIGIL_KUBE_END_REFUSED,  /* the server refused the request: see status */
    VIGIL_KUBE_END_FAILED, /* the server cannot be reached, there are no credentials, or its answer
                              is not a watch: see status, whose code is 0 without an answer */
    VIGIL_KUBE_END_ERROR,  /* after VIGIL_KUBE_ERROR */
    VIGIL_KUBE_END_CANCELED, /* the client was shut down */
    VIGIL_KUBE_END_MEMORY    /* out of memory */
} vigil_kube_end;

/* One event. It and everything that it points to are valid during the callback. */
typedef struct vigil_kube_event {
    int type;                        /* enum vigil_kube_event_type */
    const vigil_kube_object *object; /* ADDED, MODIFIED, DELETED; it may be kept with
                                        vigil_kube_object_ref; otherwise NULL */
    vigil_bytes version;             /* version of the object, or of a BOOKMARK */
    uint8_t initial_end;             /* BOOKMARK: the state is complete (sendInitialEvents) */
    int end;                         /* ENDED: enum vigil_kube_end */
    const vigil_kube_status *status; /* ERROR, END_REFUSED and END_FAILED; otherwise NULL */
    const char *reason;              /* ENDED: one line for people */
} vigil_kube_event;

/* What the callback returns. */
enum vigil_kube_watch_answer {
    VIGIL_KUBE_CONTINUE = 0,
    VIGIL_KUBE_PAUSE = 1 /* nothing follows until vigil_kube_watch_resume; the server stops sending
                            when about 256 KiB are on their way */
};

/* Receives events; returns enum vigil_kube_watch_answer. */
typedef int (*vigil_kube_watch_fn)(vigil_kube_watch *watch, const vigil_kube_event *event,
                                   void *user);

/* What to watch, and how. Set all fields with vigil_kube_watch_options_init. */
typedef struct vigil_kube_watch_options {
    size_t size;
    vigil_kube_target target; /* a collection; with a name, the one object of this name */
    const char *label_selector, *field_selector;
    const char *version; /* changes after this resourceVersion; NULL: the state, as ADDED, and then
                            the changes; "0": the same, beginning with any state that is cached */
    uint8_t bookmarks;   /* the server may send bookmarks; default 1 */
    uint8_t initial_events; /* sendInitialEvents: the state, then a BOOKMARK, then the changes */
    uint8_t resume;    /* see above; needs a version that is not "0"; not with initial_events */
    uint8_t protobuf;  /* objects are Kubernetes' protobuf; not for custom resources */
    int64_t timeout_s; /* when the server ends the watch; 0: it chooses. If the server is silent for
                          30 seconds after this time, the watch ends with VIGIL_KUBE_END_TIMEOUT; a
                          connection of HTTP/1.1 that has become silent is hardly noticed otherwise
                          */
} vigil_kube_watch_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_kube_watch_options_init(vigil_kube_watch_options *options);

/* Begins to watch. fn is called later, also for errors of the server; *ret_watch is set before.
 * Returns a vigil_code: VIGIL_ERROR_ARGUMENT if the target cannot be requested, or for `resume`
 * without a version or with initial_events; VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_kube_watch_new(vigil_kube *kube, const vigil_kube_watch_options *options,
                                   vigil_kube_watch_fn fn, void *user,
                                   vigil_kube_watch **ret_watch);
/* Ends the watch in any state. fn is not called any more; if it is running on another thread just
 * now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_kube_watch_free(vigil_kube_watch *watch);
/* Continues a watch whose callback has returned VIGIL_KUBE_PAUSE. It has no effect on others. */
VIGIL_API void vigil_kube_watch_resume(vigil_kube_watch *watch);

/* Counters of one watch. */
typedef struct vigil_kube_watch_stats {
    uint64_t events, bookmarks, bytes;
    uint64_t requests;      /* that were sent */
    uint64_t retries;       /* repetitions of a request that was not accepted */
    uint64_t ends_complete; /* accepted requests, by the way they ended */
    uint64_t ends_cut_off, ends_timeout, ends_error;
} vigil_kube_watch_stats;

/* Reads the counters. size is sizeof(vigil_kube_watch_stats), so that the struct may grow. */
VIGIL_API void vigil_kube_watch_get_stats(const vigil_kube_watch *watch,
                                          vigil_kube_watch_stats *ret_stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
