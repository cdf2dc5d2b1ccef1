/* The inside of a lookup, for lookup.c and read.c. */
#ifndef VIGIL_KUBE_POLICY_LOOKUP_LOOKUP_PRIVATE_H
#define VIGIL_KUBE_POLICY_LOOKUP_LOOKUP_PRIVATE_H

#include "io/loop.h"
#include "kube/policy/lookup/lookup.h"

enum {
    KUBE_LOOKUP_TURN_BYTES = 64 << 10, /* parsed in one turn, 1 to 2 ms; one object may be longer */
    KUBE_LOOKUP_OBJECT_COST = 128,     /* what an object counts for at least */
};

struct kube_lookup {
    struct kube_lookup_options options;
    bool stopped;
    struct pb_range_request all; /* the range of the kind's keys */

    /* The version from which the thread decides, and the events after it. */
    struct kube_shelves *shelves; /* a reference */
    uint64_t version;             /* version of the stock when it was taken */
    struct watch_cursor *cursor;  /* NULL: not ready */
    struct kube_lookup_peek peek;
    struct deferred look;
    bool applied;             /* an event in this look */
    bool lost;                /* events are missing that no other thread has: all are read again */
    uint64_t lost_generation; /* when that happened */
    struct kube_shelves **retired; /* references: borrowed from until the end of the turn */
    size_t retired_count, retired_capacity;
    struct deferred retire;

    /* Waiting until it is ready. */
    struct list waiting;
    struct timer poll; /* set while another thread reads all objects */

    /* Reading all objects, some in each turn. */
    bool loading; /* the stock's reading is this thread's */
    bool reading; /* the range is open, or its operation is under way */
    struct deferred more;
    struct arena arena;
    struct engine_range range;
    struct kube_shelves *building;    /* owned until it is published */
    struct watch_cursor *next_cursor; /* events after what was read */
    struct timer reload;              /* set while there may be room for what is not held */

    /* Readings of single requests (kube/policy/lookup/read.h). */
    struct list reads_queued, reads_running;
    size_t running;
};

/* Ends those that wait, and those that run at their next step. */
void kube_lookup_reads_stop(struct kube_lookup *lookup);

#endif
