/*
 * A thread for work that would block an I/O thread: it runs jobs one at a time and posts each back
 * to the mailbox that the job names.
 *
 *   any thread ── submit ──► queue, bounded ── thread: run ──► the job's mailbox
 *
 * Groups of jobs (the address of a client) take turns, and so do the shares of a group (a
 * connection): the first job of a group waits for the current job and for at most one job of each
 * other group. When the queue is full, a job of a group with fewer jobs takes the place of the
 * newest job of the largest share of the largest group, which is then posted back with
 * ST_REQUEST_TOO_MANY_REQUESTS; within a group that holds for its shares.
 *
 * A job is an object with an embedded struct worker_job. From submit until it is posted back it
 * belongs to the worker: what run uses must not be used elsewhere meanwhile, or must be immutable.
 * It is always posted back; a submitter that no longer needs it waits for it and drops it. Any
 * thread may submit. Aborts without memory.
 */
#ifndef VIGIL_IO_WORKER_H
#define VIGIL_IO_WORKER_H

#include "base/status.h"
#include "io/mailbox.h"

struct turn;
struct worker;

enum { WORKER_QUEUE_MAX = 256 }; /* for the server's worker for large requests */

struct worker_job {
    struct mailbox_node in_mailbox;
    struct mailbox *answers;             /* where it is posted when it is done */
    void (*run)(struct worker_job *job); /* called on the worker's thread; may set status */
    uint64_t group, share;               /* what it counts for; a share belongs to one group */
    bool must_run; /* is always accepted and never loses its place: for work that can no longer be
                      refused, one at a time per call */
    _Atomic bool given_up; /* the result is not needed any more, so it need not run */
    /* Valid when it is posted back. ST_OK: it has run. Otherwise it has not: ST_CANCELED: it was
     * given up; ST_STOPPED; ST_REQUEST_TOO_MANY_REQUESTS. */
    enum status status;
};

/* thread_name: borrowed. queue_max: waiting jobs, except those that must run. */
struct worker *worker_new(const char *thread_name, unsigned queue_max);
/* Measures its turns, one per job. Only before it is started. */
void worker_set_turn(struct worker *worker, struct turn *turn);
/* Starts the thread; jobs wait until then. */
MUST_CHECK
enum status worker_start(struct worker *worker);
/* Jobs that have not begun are posted back with ST_STOPPED. No thread may submit any more. Accepts
 * NULL. */
void worker_free(struct worker *worker);
DEFINE_CLEANUP(struct worker *, worker_free)

/* ST_REQUEST_TOO_MANY_REQUESTS: the queue is full, and no group has two jobs more than this one,
 * and none of its shares two more than this share; the caller keeps the job. */
MUST_CHECK
enum status worker_submit(struct worker *worker, struct worker_job *job);

/* Returns once no job is being posted to the mailbox. When all its jobs have returned, the mailbox
 * and its loop may then be freed. Accepts NULL. */
void worker_leave(const struct worker *worker, const struct mailbox *answers);

#endif
