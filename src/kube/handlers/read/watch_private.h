/*
 * A watch, for its two files: watch.c decides what is sent and when, watch_show.c makes events that
 * are not sent in their stored form. On the thread of its API.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_WATCH_PRIVATE_H
#define VIGIL_KUBE_HANDLERS_READ_WATCH_PRIVATE_H

#include "base/xalloc.h"
#include "kube/call/gate.h"
#include "kube/handlers/read/converted_event.h"
#include "kube/handlers/read/converted_range.h"
#include "kube/handlers/read/event_conversions.h"
#include "kube/handlers/read/search_budget.h"
#include "kube/handlers/read/watches.h"

struct beginning;
struct watch_conversion;

/* Converting one byte counts as examining this many. */
enum { KUBE_WATCH_CONVERTED = 32 };

/* Drawn in watch.c. */
enum watch_phase { WATCH_NEW, WATCH_WAITING, WATCH_INITIAL, WATCH_LIVE, WATCH_FAILED, WATCH_ENDED };

/* The fields that every event uses come first: there may be many watches, and most of them are in
 * no cache. */
struct kube_watch {
    struct http_source source;
    struct http_exchange *exchange;
    struct kube_api *api;
    struct watch_cursor *cursor;      /* owned; NULL while waiting, and after a failure */
    struct kube_selection *selection; /* a reference */
    enum watch_phase phase : 8;
    enum kube_event_type change : 8; /* type of the event that is being sent */
    bool protobuf : 1;               /* else JSON */
    bool as_stored : 1;              /* every event is sent as it is stored */
    bool bookmarks : 1;              /* were requested */
    bool columns_sent : 1;           /* the columns of a Table were sent */
    bool bookmark_due : 1;
    bool begun : 1;   /* counted as begun */
    bool trusted : 1; /* see struct kube_sender */
    bool reads : 1;   /* bytes were sent since the last bookmark was due */
    bool ending : 1;  /* the deadline has passed, or the server stops */
    uint32_t made_at; /* bytes of `made` that were sent */
    struct kube_shaping shaping;
    struct kube_converted_event_job *away; /* an event on the worker; NULL: none */
    size_t at;                             /* bytes of the cursor's event that were sent */
    struct buf made;                       /* to be sent before anything else */
    size_t charged;                        /* bytes of it charged to the connection */
    struct beginning *begins;              /* NULL once the initial events are sent */
    /* Its definition has changed: the watch ends after this revision; 0: it has not. */
    int64_t last;
    struct kube_searcher searcher;

    struct kube_life life;
    struct kube_call *call;        /* owned; NULL once it is not needed */
    struct kube_registry_use *use; /* owned; of a custom resource */
    struct list in_api;            /* links kube_watches.all */
    struct timer bookmark;         /* the next bookmark, or the end of waiting for the client */
    int64_t deadline_ns;           /* by the loop's clock */
    int64_t bookmark_revision;     /* no bookmark has a lower revision */
    struct watch_conversion *conversion; /* owned; NULL: no webhook converts its objects */
    int64_t requested;                   /* the requested revision; 0: none */
    const char *peer_name;               /* see struct kube_sender */
};

/* Whether objects are sent whole and as JSON. */
static inline bool kube_watch_is_plain(const struct kube_watch *w)
{
    return w->shaping.shape == KUBE_WHOLE && !w->protobuf;
}

/* Whether making an event takes more than scanning the object. */
static inline bool kube_watch_converts(const struct kube_watch *w)
{
    return w->protobuf || w->shaping.shape == KUBE_TABLE;
}

/* Whether objects may be stored in another version than the watch serves. */
static inline bool kube_watch_kind_converts(const struct kube_watch *w)
{
    return w->shaping.kind->flags & (KUBE_CUSTOM | KUBE_STORED_CONVERTED);
}

/* Sends the status as an ERROR event, which is the last. */
MUST_CHECK
enum status kube_watch_fail(struct kube_watch *w, const struct kube_status *status);
MUST_CHECK
enum status kube_watch_fail_engine(struct kube_watch *w, enum status engine);
/* After the exchange has ended. */
void kube_watch_free(struct kube_watch *w);

/* Each of these makes the bytes that are sent next (w->made), if any, or fails the watch. */

/* An event in the shape and format of the watch. */
MUST_CHECK
enum status kube_watch_make(struct kube_watch *w, enum kube_event_type change,
                            const struct kube_object *object, int64_t revision);
/* A value that is not an object: reported or skipped. Any other error ends the watch. */
MUST_CHECK
enum status kube_watch_undecodable(struct kube_watch *w, struct slice key, int64_t revision,
                                   bool deleted, enum status looked);
/* The objects with which a watch begins, if a webhook converts them. */
struct kube_converted_beginning {
    bool used;
    struct kube_watch *watch;
    struct kube_converted_range range;
    size_t at;          /* in its batch */
    enum status status; /* the result of its last `ready` */
};

/* Waits for a webhook: watch_convert.c. */
void kube_watch_convert_init(struct kube_watch *w);
void kube_watch_convert_fini(struct kube_watch *w);
/* Whether the event is stored in the version that is served. */
bool kube_watch_is_as_stored(const struct kube_watch *w, const struct watch_event *event,
                             int64_t revision);
/* Replaces the objects of an event by converted ones, which are valid until `drop`. ST_AGAIN: the
 * watch is woken when there are any; ST_CANCELED: it has failed, and its last event is made. */
MUST_CHECK
enum status kube_watch_await(struct kube_watch *w, struct kube_event_pair *pair);
void kube_watch_convert_drop(struct kube_watch *w);
/* The same for the initial events. ST_END: there are no more. */
void kube_watch_begin_converted(struct kube_watch *w, struct kube_converted_beginning *beginning,
                                const struct kube_converted_range *range);
MUST_CHECK
enum status kube_watch_step_converted(struct kube_watch *w,
                                      struct kube_converted_beginning *beginning);
/* An event that must be converted. ST_AGAIN: it is large and on the worker; nothing is sent until
 * it is back (w->away). */
MUST_CHECK
enum status kube_watch_show(struct kube_watch *w, const struct kube_event_pair *pair);

#endif
