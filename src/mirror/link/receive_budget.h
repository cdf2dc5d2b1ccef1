/*
 * The memory for messages of the cluster that arrive in pieces, of all calls of one upstream. A
 * message takes a share for its whole length when its prefix has come, so nothing is kept that was
 * not counted.
 *
 *     begins ──► short, long, or held ──► complete: released, or kept by its owner (link/kept_answers.h)
 *        │             ▲
 *        ├──► waits ───┤   in line; the cluster gets no window, so no more than one comes
 *        └──► paused ──┘   its owner wants no more now; the same
 *
 * Each kind has a limit of its own, so that clients which do not read do not take the room of the
 * others. A long message waits for room; beyond the limit of those that wait it is refused. Those
 * that are to be held have a line of their own.
 */
#ifndef VIGIL_MIRROR_LINK_RECEIVE_BUDGET_H
#define VIGIL_MIRROR_LINK_RECEIVE_BUDGET_H

#include "base/container/list.h"
#include "wire/h2/limits.h"

#include <stdbool.h>
#include <stddef.h>

enum receive_kind {
    RECEIVE_NONE,
    RECEIVE_SHORT, /* fits in a stream's window, so it comes whether it is wanted or not */
    RECEIVE_LONG,
    RECEIVE_HELD, /* long, and kept until a client has read it */
    RECEIVE_WAITING,
    RECEIVE_PAUSED,
    RECEIVE_KINDS,
};

enum {
    UPSTREAM_WINDOW_BYTES = H2_CLIENT_STREAM_WINDOW, /* what comes of a message that waits */
    /* Limits of each kind. A long message of the greatest length must fit. */
    UPSTREAM_SHORT_BYTES_MAX = 32 << 20,
    UPSTREAM_LONG_BYTES_MAX = 64 << 20,    /* and the same for those that are held */
    UPSTREAM_STALLED_BYTES_MAX = 64 << 20, /* that wait, and the same for those that are paused */
};

struct receive_budget {
    size_t held[RECEIVE_KINDS]; /* bytes */
    /* receive_share.in_line, the oldest first: of long messages, and of those that are held. */
    struct list line, held_line;
};

/* What one call has of the budget. Zeroed, it has nothing. */
struct receive_share {
    enum receive_kind kind;
    size_t message;      /* its length */
    bool keeps;          /* the owner keeps the message */
    struct list in_line; /* its links are NULL until first used */
};

void receive_budget_init(struct receive_budget *budget);

/* A message has begun. False: there is no room, and nothing was taken. */
bool receive_budget_take(struct receive_budget *budget, struct receive_share *share, size_t message,
                         bool keeps, bool paused);
/* The message is complete, or the call has ended. No effect without a share. */
void receive_budget_release(struct receive_budget *budget, struct receive_share *share);
void receive_budget_pause(struct receive_budget *budget, struct receive_share *share, bool paused);
/* The first in one of the lines, for which there is room now: it waits no more. NULL: there is
 * none. */
struct receive_share *receive_budget_next(struct receive_budget *budget);

/* The share of a complete message, which does not wait. `from` has none afterwards. */
void receive_share_move(struct receive_share *to, struct receive_share *from);
/* Messages that are to be held wait for room. */
bool receive_budget_is_awaited(const struct receive_budget *budget);

/* The cluster must get no window for the message. */
static inline bool receive_share_is_stalled(const struct receive_share *share)
{
    return share->kind >= RECEIVE_WAITING;
}

#endif
