/*
 * A watch as its two files know it: watch.c, which says when what is sent, and watch_show.c, which
 * makes what is not sent as it is stored.
 */
#ifndef VIGIL_KUBE_READ_WATCH_PRIVATE_H
#define VIGIL_KUBE_READ_WATCH_PRIVATE_H

#include "kube/read/converted_event.h"
#include "kube/read/search_budget.h"
#include "kube/read/watches.h"

struct beginning;

enum {
    KUBE_WATCH_CONVERTED = 32
}; /* converting a byte takes at most as long as scanning so many */

enum watch_phase { PHASE_WAITING, PHASE_INITIAL, PHASE_LIVE, PHASE_FAILED };

/* What an event touches stands first. */
struct kube_watch {
    struct kube_life life;
    struct http_source source;
    struct http_exchange *exchange;
    struct kube_face *face;
    struct watch_cursor *cursor;      /* owned; NULL while waiting, and after a failure */
    struct kube_selection *selection; /* a reference */
    enum watch_phase phase : 8;
    enum kube_event_type change : 8; /* that is told of the event under way */
    bool protobuf : 1;               /* else JSON */
    bool bookmarks : 1;              /* are wanted */
    bool columns_told : 1;           /* of a table */
    bool bookmark_due : 1;
    bool counted : 1;                      /* among those of its phase */
    bool begun : 1;                        /* among those of its kind */
    bool ending : 1;                       /* its time is up, or the server's */
    struct kube_converted_event_job *away; /* an event that is converted elsewhere; NULL: none */
    size_t at;                             /* bytes of the cursor's event that were sent */
    struct buf made;                       /* to be sent before anything else */
    size_t made_at;                        /* how much of it was */
    size_t charged;                        /* of its capacity, to the account of the connection */
    struct beginning *begins;              /* NULL once that is over */
    uint64_t sent;                         /* bytes, for who looks whether anything moves */
    size_t looked;                         /* bytes, in one step */
    int64_t last; /* its definition is no more what it was: ends behind this */
    struct kube_shaping shaping;
    struct kube_call *call;        /* owned; NULL once nobody needs it */
    struct kube_registry_use *use; /* owned; of a custom resource */
    struct kube_searcher searcher;
    struct kube_watches_link in_face;
    struct timer bookmark; /* the next one, or the end of patience */
    int64_t deadline_ns;   /* by the loop's clock */
    int64_t told;          /* bookmarks never go behind this */
    int64_t asked;         /* the revision that it began at; 0: from now */
    uint64_t sent_before;
};

/* The status is told, and then it is over. */
MUST_CHECK
enum status kube_watch_fail(struct kube_watch *w, const struct kube_status *status);
MUST_CHECK
enum status kube_watch_fail_engine(struct kube_watch *w, enum status engine);
/* The last of it, after its exchange has ended. */
void kube_watch_free(struct kube_watch *w);

/* Whether it is sent as it is stored. */
bool kube_watch_is_plain(const struct kube_watch *w);
/* Whether what is sent takes more than scanning what is stored. */
bool kube_watch_converts(const struct kube_watch *w);

/* Each of these makes what is sent next (w->made), if anything is, or the end of the watch. */

/* A change of an object, in the shape and format of the watch. */
MUST_CHECK
enum status kube_watch_make(struct kube_watch *w, enum kube_event_type change,
                            const struct kube_object *object, int64_t revision);
/* A value that is no object: told or passed over. Any other fault of a look ends the watch. */
MUST_CHECK
enum status kube_watch_undecodable(struct kube_watch *w, struct slice key, int64_t revision,
                                   bool deleted, enum status looked);
/* An event as it is shown. ST_AGAIN: it is large, converted elsewhere, and nothing is sent until it
 * is back (w->away). */
MUST_CHECK
enum status kube_watch_show(struct kube_watch *w, const struct kube_event_pair *pair);

#endif
