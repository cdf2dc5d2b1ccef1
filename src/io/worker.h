/*
 * A thread for work that would hold up an I/O thread: it takes jobs in their order, runs each and
 * posts it back to the mailbox that it names.
 *
 *   shard ── submit ──► queue, bounded ── thread: run ──► the shard's mailbox
 *
 * A job is an object with a struct worker_job in it. From submit until it is posted back it belongs
 * to the worker: what run uses must be nobody else's for that long, or never change. It always
 * comes back; whoever has lost interest waits for it and drops it. Any thread may submit.
 */
#ifndef VIGIL_IO_WORKER_H
#define VIGIL_IO_WORKER_H

#include "base/status.h"
#include "io/mailbox.h"

struct turn;
struct worker;

enum { WORKER_QUEUE_MAX = 256 };

struct worker_job {
    struct mailbox_node in_mailbox;
    struct mailbox *answers;             /* where it is posted when it has run */
    void (*run)(struct worker_job *job); /* on the worker */
};

/* Starts its thread. turn: where its turns, one for each job, are measured; NULL: nowhere. Aborts
 * without memory. */
MUST_CHECK
enum status worker_start(const char *thread_name, struct turn *turn, struct worker **ret_worker);
/* Every job must have come back. Accepts NULL. */
void worker_stop(struct worker *worker);

/* ST_REQUEST_TOO_MANY_REQUESTS: WORKER_QUEUE_MAX are there already; the job is the caller's still.
 */
MUST_CHECK
enum status worker_submit(struct worker *worker, struct worker_job *job);

/* Returns once nothing is being posted there: the mailbox, all of whose jobs have come back, and
 * its loop may then go. */
void worker_leave(const struct worker *worker, const struct mailbox *answers);

#endif
