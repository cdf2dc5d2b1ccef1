/*
 * Long answers of the cluster that their owners keep when the call has ended, until the client has
 * read them. Each keeps its claim of room (link/receive_budget.h), so that clients which do not
 * read cannot make the server hold more than the limit. If other answers wait for that room, the
 * one that was kept longest must make room after UPSTREAM_HOLD_NS.
 *
 * One list for each upstream, on its thread.
 */
#ifndef VIGIL_MIRROR_LINK_KEPT_ANSWERS_H
#define VIGIL_MIRROR_LINK_KEPT_ANSWERS_H

#include "io/loop.h"
#include "mirror/link/receive_budget.h"

#define UPSTREAM_HOLD_NS (INT64_C(10) * 1000 * 1000 * 1000)

/* Embedded by its owner. Zeroed, it holds nothing. */
struct upstream_hold {
    /* Set by the owner: others wait for the room. It may release it at once or later. */
    void (*overdue)(struct upstream_hold *hold);
    struct upstream_holds *holds; /* private; NULL: it holds nothing */
    struct upstream_claim claim;  /* private */
    int64_t since_ns;             /* private */
    struct list in_holds;         /* private */
};

struct upstream_holds {
    struct loop *loop;
    struct upstream_room *room;
    void (*released)(struct upstream_holds *holds); /* there may be room for others */
    struct list all;                                /* the oldest first */
    struct timer due;                               /* set while others wait */
};

void upstream_holds_init(struct upstream_holds *holds, struct loop *loop,
                         struct upstream_room *room,
                         void (*released)(struct upstream_holds *holds));
/* Nothing is held any more: every owner has released its own. Accepts a zeroed one. */
void upstream_holds_fini(struct upstream_holds *holds);

/* Moves the claim of an answer to its owner. No effect unless it is one that is to be held, and the
 * owner holds nothing yet. */
void upstream_hold_take(struct upstream_holds *holds, struct upstream_hold *hold,
                        struct upstream_claim *claim);
void upstream_hold_release(struct upstream_hold *hold); /* no effect if it holds nothing */
/* To be called when an answer has to wait for room. */
void upstream_holds_watch(struct upstream_holds *holds);

#endif
