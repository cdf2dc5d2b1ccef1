/*
 * Waiting for a collection of the mirror (mirror.h). One tier_reader for each I/O thread;
 * everything here is used on that thread.
 */
#ifndef VIGIL_TIER_MIRROR_WAIT_H
#define VIGIL_TIER_MIRROR_WAIT_H

#include "base/container/list.h"
#include "base/status.h"
#include "io/loop.h"

struct tier_collection;
struct tier_mirror;
struct tier_reader;
struct tier_reader_use;

/* Aborts without memory. Before the mirror is used on this thread. */
struct tier_reader *tier_reader_new(struct tier_mirror *mirror, struct loop *loop);
void tier_reader_free(struct tier_reader *reader); /* nothing may wait; accepts NULL */

/* Called on the reader's thread when a generation of a collection has ended, or the collection was
 * refused: watches look at it again. Embedded; zeroed except for changed, it is not added. It may
 * be removed from within, and freed then. */
struct tier_change_listener {
    void (*changed)(struct tier_change_listener *listener);
    /* private */
    struct tier_reader_use *use;
    struct list in_use;
};
/* The caller keeps its reference to the collection until it is removed. */
void tier_reader_listen(struct tier_reader *reader, struct tier_change_listener *listener,
                        struct tier_collection *collection);
void tier_reader_unlisten(
    struct tier_change_listener *listener); /* accepts one that is not added */

enum tier_wait_kind {
    /* Until there is a generation that reads may use, or it is refused. */
    TIER_WAIT_STATE,
    TIER_WAIT_VERSION, /* until readers see everything up to a version, which a fence may show */
    /* Until readers see everything that happened before this wait began: a fence, one list of the
     * objects' metadata that was begun afterwards, is matched by what was received. Those who wait
     * share it, and there is one at a time for each resource. */
    TIER_WAIT_CURRENT,
};

/* Embedded by its owner; zeroed except for what is set before the start, it is idle. The owner
 * keeps its reference to the collection. */
struct tier_wait {
    /* ST_OK; ST_TIMEOUT: not in time; ST_UNAVAILABLE: it is refused, or the fence has failed. Not
     * called from within start. It may free the wait, start it again, and cancel others. */
    void (*done)(struct tier_wait *wait, enum status status);
    enum tier_wait_kind kind;
    /* For TIER_WAIT_VERSION. After TIER_WAIT_CURRENT: the version of the fence. The state at the
     * revision below has everything up to it; one that is read later may have older changes in
     * addition, of which the fence has shown that they are undone, but the undoing is missing. */
    uint64_t version;
    int64_t timeout_ns; /* from now */
    /* TIER_WAIT_STATE: it also ends if the server fails to answer (500), so that the caller is
     * passed on at once and gets its error. */
    bool ends_with_failure;
    /* Set before done with ST_OK: a read must see at least this revision of the store. */
    int64_t revision;
    /* private */
    struct tier_reader_use *use; /* NULL: it is idle */
    uint64_t fence;              /* the one whose success is wanted; 0: none */
    int64_t until_ns;
    struct timer timer;
    struct deferred soon;
    enum status result; /* what soon reports */
    struct list in_use;
};

void tier_wait_start(struct tier_reader *reader, struct tier_wait *wait,
                     struct tier_collection *collection);
void tier_wait_cancel(struct tier_wait *wait); /* no effect if it is idle */

#endif
