/*
 * How far a shard has read what clients sent. A renewal that lies in a socket, unread because its
 * shard is busy, is not late: before a lease expires the writer asks every shard, and waits until
 * each has read everything that had arrived by then.
 *
 *     writer: ask ──► shard: a turn or two ──► answer: heard up to … ──► writer: expires up to
 * there
 *
 * A shard that sleeps is asked too, since it may have been woken and not be running yet. Nothing
 * is published while nobody asks, so a turn costs nothing more.
 *
 * Owned by the engine and not by the shard, so that the writer never meets one that has gone.
 */
#ifndef VIGIL_ENGINE_LOCAL_READ_PROGRESS_H
#define VIGIL_ENGINE_LOCAL_READ_PROGRESS_H

#include "io/mailbox.h"

#include <stdatomic.h>

struct local_hearing {
    _Atomic(struct mailbox *) to; /* the shard's; NULL: there is none */
    _Atomic unsigned asking;      /* the writer may be looking at `to` */
    _Atomic bool asked;           /* the message is on its way, or with the shard */
    _Atomic int64_t wanted_ns;    /* what it asks for */
    _Atomic int64_t heard_ns;     /* the last answer */
    struct mailbox_node node;     /* the message */
};

/* -- The shard's side -- */

/* Nothing that a client of this shard sends is older than now_ns. */
void local_hearing_begin(struct local_hearing *hearing, struct mailbox *to, int64_t now_ns);
/* Nothing will be posted any more; what is in the mailbox stays there. */
void local_hearing_end(struct local_hearing *hearing);
/* Of a message that has come: answer as soon as so much was heard. */
int64_t local_hearing_wanted(const struct local_hearing *hearing);
/* Whatever came before heard_ns was read, and posted if it is for the writer. Wake that then. */
void local_hearing_answer(struct local_hearing *hearing, int64_t heard_ns);

/* -- The writer's side -- */

/* CLOCK_NEVER: there is no shard. Look into the mailboxes after this, not before. */
int64_t local_hearing_heard(const struct local_hearing *hearing);
/* Its answer will be now_ns or later. Harmless while one is awaited. */
void local_hearing_ask(struct local_hearing *hearing, int64_t now_ns);

#endif
