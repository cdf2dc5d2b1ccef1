/*
 * A job: something that the server does by itself, without a request. It takes one step at a time,
 * each started from the loop of its API; a step starts at most one operation.
 *
 *     kube_job_start ─► READY ─► step ─┬─► kube_job_read, …_put, …: RUNNING ─► done ─► kube_job_next
 *                         ▲            ├─► kube_job_next ─────────────────────────────────┐
 *                         ├────────────┼──────────────────────────────────────────────────┘
 *                         └─ timer ◄───├─► kube_job_wait: WAITING
 *                                      └─► kube_job_end: freed
 *
 * When an API stops, jobs that are not RUNNING are freed at once, the others when their operation
 * completes, except jobs for which requests wait: these finish. On the thread of the API.
 */
#ifndef VIGIL_KUBE_JOBS_JOB_H
#define VIGIL_KUBE_JOBS_JOB_H

#include "io/loop.h"
#include "kube/call/api_state.h"
#include "kube/call/registry.h"
#include "kube/types/storage.h"

enum kube_job_state {
    KUBE_JOB_READY,   /* its step is called in the next turn, or runs */
    KUBE_JOB_RUNNING, /* an operation is under way */
    KUBE_JOB_WAITING, /* for its timer */
    KUBE_JOB_ENDED,
};

struct kube_job;

struct kube_job_type {
    void (*step)(struct kube_job *job);
    void (*fini)(struct kube_job *job); /* frees what the job owns besides struct kube_job */
    bool finishes;                      /* a stop does not end it, because requests wait for it */
};

/* The first member of a job, which is allocated with xcalloc and freed by kube_job_end. */
struct kube_job {
    const struct kube_job_type *type;
    struct kube_api *api;
    enum kube_job_state state;
    struct list in_jobs;
    struct deferred next;
    struct timer timer;
    struct arena arena; /* memory of the operation under way */
    struct pb_range_request request;
    struct engine_range range;
    struct kube_write write;
    struct kube_registry_wait kinds_wait;
};

/* The jobs of an API. */
struct kube_jobs {
    struct list all;
    bool stopped;
};

void kube_jobs_init(struct kube_jobs *jobs);
/* No more jobs are started. */
void kube_jobs_stop(struct kube_jobs *jobs);
/* For tests: every job is in the list with a valid state. */
void kube_jobs_check(const struct kube_jobs *jobs);

/* The next job of this type after `after` (NULL: the first), or NULL. */
struct kube_job *kube_jobs_find(const struct kube_jobs *jobs, const struct kube_job_type *type,
                                const struct kube_job *after);

/* A zeroed job; its first step is in the next turn. Not after kube_jobs_stop, unless the type
 * finishes. */
void kube_job_start(struct kube_job *job, const struct kube_job_type *type, struct kube_api *api);

/* -- For steps -- */

/* Empties the arena for the next operation. */
void kube_job_reset_arena(struct kube_job *job, size_t bytes_max);

/* Something else is under way, such as a request of its own: kube_job_next is its end. */
void kube_job_run(struct kube_job *job);
/* Any operation of the engine: fills in its head, and the caller starts it. */
void kube_job_begin(struct kube_job *job, struct engine_op *op, void (*done)(struct engine_op *op));
/* Operations: each ends in `done`, which uses the result, closes it and calls kube_job_next. They
 * are done in the name of the server. */
void kube_job_read(struct kube_job *job, void (*done)(struct engine_op *op)); /* job->request */
void kube_job_put(struct kube_job *job, void (*done)(struct engine_op *op));  /* job->write */
void kube_job_delete(struct kube_job *job, void (*done)(struct engine_op *op));
struct kube_job *kube_job_of_range(struct engine_op *op);
struct kube_job *kube_job_of_write(struct engine_op *op);
/* Reads all definitions; `done` gets the job by kube_job_of_kinds. */
void kube_job_read_kinds(struct kube_job *job, void (*done)(struct kube_registry_wait *wait));
struct kube_job *kube_job_of_kinds(struct kube_registry_wait *wait);

/* Another step in the next turn. The job may be freed. */
void kube_job_next(struct kube_job *job);
/* Another step after a delay. */
void kube_job_wait(struct kube_job *job, int64_t delay_s);
void kube_job_wait_until(struct kube_job *job, int64_t at_ns); /* monotonic */
/* Ends the delay of a job that waits; else nothing. */
void kube_job_hurry(struct kube_job *job);
void kube_job_end(struct kube_job *job);

#endif
