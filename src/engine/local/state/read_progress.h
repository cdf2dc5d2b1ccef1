/*
 * How far a shard has read what its clients sent. A renewal that is still in a socket because its
 * shard is busy is not late: before a lease expires, the writer asks every shard, and waits until
 * each has read everything that had arrived by then.
 *
 *     writer: ask ──► shard: a turn or two ──► report: read up to … ──► writer: expires up to there
 *
 * The writer also asks a shard that sleeps, because it may have been woken and not be running yet.
 * Nothing is published unless the writer asks, so an ordinary turn costs nothing more.
 *
 * Owned by the engine and not by the shard, so that the writer never uses one that was freed.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_READ_PROGRESS_H
#define VIGIL_ENGINE_LOCAL_STATE_READ_PROGRESS_H

#include "base/clock.h"
#include "io/mailbox.h"

#include <stdatomic.h>

struct read_progress {
    _Atomic(struct mailbox *) to; /* the shard's; NULL: there is no shard */
    _Atomic unsigned asking;      /* the writer may be using `to` */
    _Atomic bool asked;           /* the message is on its way, or with the shard */
    _Atomic int64_t wanted_ns;    /* report when input was read up to this time */
    _Atomic int64_t read_ns;      /* the last report */
    struct mailbox_node node;     /* the message */
};

/* -- The shard's side -- */

/* Nothing that a client of this shard sends is older than now_ns. */
void read_progress_begin(struct read_progress *progress, struct mailbox *to, int64_t now_ns);
/* No message will be posted any more. A message that is in the mailbox stays there. */
void read_progress_end(struct read_progress *progress);
/* After the message was received: the shard reports as soon as it has read up to this time. */
int64_t read_progress_wanted(const struct read_progress *progress);
/* Everything that arrived before read_ns was read, and posted to the writer. The caller then wakes
 * the writer. */
void read_progress_report(struct read_progress *progress, int64_t read_ns);

/* -- The writer's side -- */

/* The last report; CLOCK_NEVER: there is no shard. Look into the mailboxes after this, not before.
 */
static inline int64_t read_progress_ns(const struct read_progress *progress)
{
    if (!atomic_load(&progress->to))
        return CLOCK_NEVER;
    return atomic_load_explicit(&progress->read_ns, memory_order_acquire);
}
/* The report will be now_ns or later. Does nothing while a report is awaited. */
void read_progress_ask(struct read_progress *progress, int64_t now_ns);

/* Asserts that it is consistent; for tests, while neither side uses it. */
void read_progress_check(const struct read_progress *progress);

#endif
