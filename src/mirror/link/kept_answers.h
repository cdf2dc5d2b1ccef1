/*
 * Long answers of the cluster that their owners keep when the call has ended, until the client has
 * read them. Each keeps its share of the budget (link/receive_budget.h), so that clients which do
 * not read cannot make the server hold more than the limit. If other answers wait for that room,
 * the one that was kept longest must make room after KEPT_ANSWER_NS.
 *
 * One list for each upstream, on its thread.
 */
#ifndef VIGIL_MIRROR_LINK_KEPT_ANSWERS_H
#define VIGIL_MIRROR_LINK_KEPT_ANSWERS_H

#include "io/loop.h"
#include "mirror/link/receive_budget.h"

#define KEPT_ANSWER_NS (INT64_C(10) * 1000 * 1000 * 1000)

/* Embedded by its owner. Zeroed, nothing is kept. */
struct kept_answer {
    /* Set by the owner: others wait for the room. It may release it at once or later. */
    void (*overdue)(struct kept_answer *answer);
    struct kept_answers *answers; /* private; NULL: nothing is kept */
    struct receive_share share;   /* private */
    int64_t since_ns;             /* private */
    struct list in_answers;       /* private */
};

struct kept_answers {
    struct loop *loop;
    struct receive_budget *budget;
    void (*released)(struct kept_answers *answers); /* there may be room for others */
    struct list all;                                /* the oldest first */
    struct timer due;                               /* set while others wait */
};

void kept_answers_init(struct kept_answers *answers, struct loop *loop,
                       struct receive_budget *budget,
                       void (*released)(struct kept_answers *answers));
/* Nothing is held any more: every owner has released its own. Accepts a zeroed one. */
void kept_answers_fini(struct kept_answers *answers);

/* Moves the share of an answer to its owner. No effect unless it is one that is to be kept, and the
 * owner keeps nothing yet. */
void kept_answer_take(struct kept_answers *answers, struct kept_answer *answer,
                      struct receive_share *share);
void kept_answer_release(struct kept_answer *answer); /* no effect if nothing is kept */
/* To be called when an answer has to wait for room. */
void kept_answers_watch(struct kept_answers *answers);

#endif
