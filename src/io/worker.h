/*
 * A thread for work that would hold up an I/O thread: it runs jobs one at a time and posts each
 * back to the mailbox that the job names.
 *
 *   any thread ── submit ──► queue, bounded ── thread: run ──► the job's mailbox
 *
 * Shares of the queue (a connection, an address: the submitter decides) take turns: the first job
 * of a share waits for the job under way and for at most one job of each other share. When the
 * queue is full, a job of a share with fewer jobs takes the place of the newest job of the share
 * with the most, which then comes back with ST_REQUEST_TOO_MANY_REQUESTS.
 *
 * A job is an object with a struct worker_job in it. From submit until it is posted back it belongs
 * to the worker: what run uses must be nobody else's for that long, or never change. It always
 * comes back; whoever has lost interest waits for it and drops it. Any thread may submit. Aborts
 * without memory.
 */
#ifndef VIGIL_IO_WORKER_H
#define VIGIL_IO_WORKER_H

#include "base/status.h"
#include "io/mailbox.h"

struct turn;
struct worker;

enum { WORKER_QUEUE_MAX = 256 }; /* of the server's worker for large requests */

struct worker_job {
    struct mailbox_node in_mailbox;
    struct mailbox *answers;             /* where it is posted when it is done */
    void (*run)(struct worker_job *job); /* on the worker; may set status */
    uint64_t share;                      /* whose it is */
    bool must_run;         /* is always accepted and never gives up its place: for what cannot be
                              refused any more, one at a time for each call */
    _Atomic bool given_up; /* nobody waits for it any more: it need not be run */
    /* When it is back. ST_OK: it has run. It has not: ST_CANCELED, it was given up; ST_STOPPED;
     * ST_REQUEST_TOO_MANY_REQUESTS. */
    enum status status;
};

/* thread_name: borrowed. queue_max: jobs that may wait, but for those that must run. */
struct worker *worker_new(const char *thread_name, unsigned queue_max);
/* Where its turns, one for each job, are measured. Before it is started. */
void worker_set_turn(struct worker *worker, struct turn *turn);
/* Starts its thread; until then jobs wait. */
MUST_CHECK
enum status worker_start(struct worker *worker);
/* Jobs that have not begun are posted back with ST_STOPPED. Nobody may submit any more. Accepts
 * NULL. */
void worker_free(struct worker *worker);
DEFINE_CLEANUP(struct worker *, worker_free)

/* ST_REQUEST_TOO_MANY_REQUESTS: the queue is full, and no share has two jobs more than this one;
 * the job is the caller's still. */
MUST_CHECK
enum status worker_submit(struct worker *worker, struct worker_job *job);

/* Returns once nothing is being posted there: the mailbox, all of whose jobs have come back, and
 * its loop may then go. Accepts NULL. */
void worker_leave(const struct worker *worker, const struct mailbox *answers);

#endif
