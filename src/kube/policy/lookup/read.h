/*
 * Reads objects of one kind for one request, because their namespace is not held
 * (kube/policy/lookup/stock.h): one object by its name, or all of a namespace, of which only those
 * are kept that the caller wants. The store is read in turns, and what is kept is charged to the
 * request, so that the cost of a large namespace is that of the requests in it.
 *
 *     start ─► its turn? ─► range ─► some objects per turn ─► go
 *                 └─► queued: a few at a time, and only one of each namespace, so that requests in
 *                     one namespace do not delay those in another
 *
 * On the thread of the lookup.
 */
#ifndef VIGIL_KUBE_POLICY_LOOKUP_READ_H
#define VIGIL_KUBE_POLICY_LOOKUP_READ_H

#include "base/memory/arena.h"
#include "io/loop.h"
#include "kube/policy/lookup/lookup.h"

struct account;
struct http_exchange;

enum {
    KUBE_LOOKUP_READS_MAX = 4,             /* that run at the same time, of one kind on a thread */
    KUBE_LOOKUP_READ_BYTES_MAX = 32 << 20, /* what one keeps */
};

/* Embedded by its caller until go. */
struct kube_lookup_read {
    /* Set by the caller; borrowed until go. */
    struct slice namespace;
    struct slice name;                                                 /* empty: all objects */
    bool (*wants)(void *ctx, const struct kube_lookup_object *object); /* NULL: every one */
    void *ctx;
    struct account *account;             /* charged with what is kept; may be NULL */
    struct http_exchange *const *client; /* which is NULL when the client has gone; may be NULL */
    void (*go)(struct kube_lookup_read *read);

    /* In go: ST_OK and the objects, until kube_lookup_read_fini. ST_NOMEM: they take too much
     * memory. ST_CANCELED: the caller has given up, or its client has gone. */
    enum status status;
    struct kube_shelf *shelf;

    /* Private. */
    struct kube_lookup *lookup;
    struct list in_lookup;
    bool queued, given_up;
    bool is_open; /* the range is done, and read in turns */
    size_t charged;
    struct deferred more;
    struct arena arena;
    struct pb_range_request request;
    struct engine_range range;
};

/* Calls go, perhaps at once. */
void kube_lookup_read_start(struct kube_lookup *lookup, struct kube_lookup_read *read);
/* The caller no longer needs the objects: go follows soon, or now. */
void kube_lookup_read_give_up(struct kube_lookup_read *read);
/* Releases the objects. Not before go; accepts a zeroed one. */
void kube_lookup_read_fini(struct kube_lookup_read *read);

#endif
