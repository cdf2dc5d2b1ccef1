/*
 * Whether a collection is current: runs its fences, one at a time, for the readers that want one
 * (wait.h), and compares what is known with the server's state after an outage and in long silence.
 *
 * Fences are numbered, also the states that are read again: a reader wants the next one that is
 * begun. A fence that ends because the history is lost does not fail, because the state that is
 * read next has a higher number.
 *
 * The collections of a resource, one for each encoding, take turns: there is one list of a fence at
 * a time (struct fence_line).
 *
 * Embedded by the follower of a collection; its thread.
 */
#ifndef VIGIL_TIER_MIRROR_CURRENCY_H
#define VIGIL_TIER_MIRROR_CURRENCY_H

#include "base/random.h"
#include "tier/mirror/fence.h"
#include "tier/mirror/generations.h"

/* Shared by all collections of a mirror. */
struct fence_line {
    struct loop *loop;
    struct list listing; /* tier_currency.in_line: the list of a fence is under way */
    struct list waiting; /* … and those that begin one when that of another encoding has come */
    struct deferred again;
};

void fence_line_init(struct fence_line *line, struct loop *loop);
void fence_line_fini(struct fence_line *line); /* nothing is served */

/* They may cause currency_serve from within. */
struct tier_currency_ops {
    /* What is known is not of the server's history: it was restored, or an event is missing.
     * is_behind: consistent lists have been older than what is known for a while. */
    void (*lost)(void *ctx, const char *reason, bool is_behind);
    /* The watch does not deliver what the server has. */
    void (*stalled)(void *ctx, const char *reason);
};

struct tier_currency {
    const struct tier_currency_ops *ops;
    void *ctx;
    struct tier_collection *collection;
    struct tier_generations *generations;
    const uint64_t *newest; /* everything up to this version was delivered; borrowed */
    struct random random;
    int64_t fence_ns;
    struct tier_fence fence;
    struct fence_line *line; /* borrowed */
    struct list in_line;
    bool is_serving; /* the current generation is published, and its watch is followed */
    uint64_t number; /* the number of the fence under way; 0: a glance */
    bool is_matched; /* it waits until readers see this revision */
    int64_t awaited;
    uint64_t version;            /* what it has shown */
    unsigned late, behind;       /* ends of fences in a row */
    int64_t behind_ns;           /* the first of those */
    int64_t check_ns, glance_ns; /* when to compare; CLOCK_NEVER: there is no need */
    int64_t heard_ns;            /* the last sign of the server's state */
};

void currency_init(struct tier_currency *c, struct tier_collection *collection,
                   struct tier_generations *generations, const uint64_t *newest,
                   struct vigil_kube *kube, struct request_queue *queue, struct fence_line *line,
                   const struct fetcher_scope *scope, int64_t fence_ns, uint64_t seed,
                   const struct tier_currency_ops *ops, void *ctx);
void currency_fini(struct tier_currency *c); /* it does not serve */

/* Begins what readers want, as soon as it can. */
void currency_look(struct tier_currency *c);
/* While it does not serve, nothing is begun. */
void currency_serve(struct tier_currency *c, bool serves);
/* No fence can succeed: all that are wanted fail. */
void currency_fail(struct tier_currency *c);

/* A state is requested, and was published; the number is what the first one returns. */
uint64_t currency_state_begins(struct tier_currency *c);
void currency_state_is_published(struct tier_currency *c, uint64_t number);

/* The watch has delivered something, which was applied to the generation. */
void currency_advance(struct tier_currency *c);
/* More is visible to readers. */
void currency_applied(struct tier_currency *c);
/* The watch was accepted again: the server may have been replaced meanwhile. A glance suffices if
 * nothing else hints at that. */
void currency_check_soon(struct tier_currency *c, bool glance_suffices);
void currency_tick(struct tier_currency *c);

#endif
