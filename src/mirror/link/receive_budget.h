/*
 * Room for messages of the cluster that arrive in pieces, of all calls of one upstream. A message
 * claims room for its whole length when its prefix has come, so nothing is kept that was not
 * counted.
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

enum upstream_room_kind {
    UPSTREAM_ROOM_NONE,
    UPSTREAM_ROOM_SHORT, /* fits in a stream's window, so it comes whether it is wanted or not */
    UPSTREAM_ROOM_LONG,
    UPSTREAM_ROOM_HELD, /* long, and kept until a client has read it */
    UPSTREAM_ROOM_WAITING,
    UPSTREAM_ROOM_PAUSED,
    UPSTREAM_ROOM_KINDS,
};

enum {
    UPSTREAM_WINDOW_BYTES = H2_CLIENT_STREAM_WINDOW, /* what comes of a message that waits */
    /* Limits of each kind. A long message of the greatest length must fit. */
    UPSTREAM_SHORT_BYTES_MAX = 32 << 20,
    UPSTREAM_LONG_BYTES_MAX = 64 << 20,    /* and the same for those that are held */
    UPSTREAM_STALLED_BYTES_MAX = 64 << 20, /* that wait, and the same for those that are paused */
};

struct upstream_room {
    size_t held[UPSTREAM_ROOM_KINDS]; /* bytes */
    /* upstream_claim.in_line, the oldest first: of long messages, and of those that are held. */
    struct list line, held_line;
};

/* The room that one call has. Zeroed, it has none. */
struct upstream_claim {
    enum upstream_room_kind kind;
    size_t message;      /* its length */
    bool holds;          /* the owner keeps the message */
    struct list in_line; /* its links are NULL until first used */
};

void upstream_room_init(struct upstream_room *room);

/* A message has begun. False: there is no room, and nothing was claimed. */
bool upstream_room_claim(struct upstream_room *room, struct upstream_claim *claim, size_t message,
                         bool holds, bool paused);
/* The message is complete, or the call has ended. No effect without a claim. */
void upstream_room_release(struct upstream_room *room, struct upstream_claim *claim);
void upstream_room_pause(struct upstream_room *room, struct upstream_claim *claim, bool paused);
/* The first in one of the lines, for which there is room now: it waits no more. NULL: there is
 * none. */
struct upstream_claim *upstream_room_grant(struct upstream_room *room);

/* The claim of a complete message, which does not wait. `from` has none afterwards. */
void upstream_claim_move(struct upstream_claim *to, struct upstream_claim *from);
/* Messages that are to be held wait for room. */
bool upstream_room_is_awaited(const struct upstream_room *room);

/* The cluster must get no window for the message. */
static inline bool upstream_claim_is_stalled(const struct upstream_claim *claim)
{
    return claim->kind >= UPSTREAM_ROOM_WAITING;
}

#endif
