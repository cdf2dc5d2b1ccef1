#include "kube/jobs/job.h"

#include "base/clock.h"

#include <stdlib.h>

#define TO(state) (1u << KUBE_JOB_##state)

static const unsigned moves[] = {
    [KUBE_JOB_READY] = TO(READY) | TO(RUNNING) | TO(WAITING) | TO(ENDED),
    [KUBE_JOB_RUNNING] = TO(READY) | TO(ENDED),
    [KUBE_JOB_WAITING] = TO(READY) | TO(ENDED),
    [KUBE_JOB_ENDED] = 0,
};

static void move(struct kube_job *job, enum kube_job_state next)
{
    assert(moves[job->state] & 1u << next);
    if (job->state == KUBE_JOB_RUNNING)
        job->api->under_way--;
    if (next == KUBE_JOB_RUNNING)
        job->api->under_way++;
    job->state = next;
}

static struct kube_job *job_at(struct list *link)
{
    return CONTAINER_OF(link, struct kube_job, in_jobs);
}

/* -- All jobs -- */

void kube_jobs_init(struct kube_jobs *jobs)
{
    list_init(&jobs->all);
}

static bool ends_with_stop(const struct kube_job *job)
{
    return job->api->jobs->stopped && !job->type->finishes;
}

void kube_jobs_stop(struct kube_jobs *jobs)
{
    jobs->stopped = true;
    struct list *next;
    for (struct list *at = jobs->all.next; at != &jobs->all; at = next) {
        next = at->next;
        /* A running job waits for an operation that refers to it. It ends with its next step
         * (kube_job_next). */
        if (job_at(at)->state != KUBE_JOB_RUNNING && ends_with_stop(job_at(at)))
            kube_job_end(job_at(at));
    }
}

void kube_jobs_check(const struct kube_jobs *jobs)
{
    for (struct list *at = jobs->all.next; at != &jobs->all; at = at->next) {
        const struct kube_job *job = job_at(at);
        assert(job->type && job->api->jobs == jobs);
        assert(job->state != KUBE_JOB_ENDED);
        assert(job->state != KUBE_JOB_RUNNING || job->api->under_way > 0);
        assert(job->state == KUBE_JOB_RUNNING || !ends_with_stop(job));
    }
}

struct kube_job *kube_jobs_find(const struct kube_jobs *jobs, const struct kube_job_type *type,
                                const struct kube_job *after)
{
    struct list *at = after ? after->in_jobs.next : jobs->all.next;
    for (; at != &jobs->all; at = at->next)
        if (job_at(at)->type == type)
            return job_at(at);
    return NULL;
}

/* -- One job -- */

static void on_next(struct deferred *deferred)
{
    struct kube_job *job = CONTAINER_OF(deferred, struct kube_job, next);
    assert(job->state == KUBE_JOB_READY);
    job->type->step(job);
}

static void on_timer(struct timer *timer)
{
    kube_job_hurry(CONTAINER_OF(timer, struct kube_job, timer));
}

void kube_job_start(struct kube_job *job, const struct kube_job_type *type, struct kube_api *api)
{
    assert(!api->jobs->stopped || type->finishes);
    job->type = type;
    job->api = api;
    job->next.fn = on_next;
    job->timer.fn = on_timer;
    list_push_back(&api->jobs->all, &job->in_jobs);
    loop_defer(api->loop, &job->next);
}

void kube_job_next(struct kube_job *job)
{
    if (ends_with_stop(job)) {
        kube_job_end(job);
        return;
    }
    move(job, KUBE_JOB_READY);
    /* The step runs in another turn of the loop, so that jobs with many steps leave time for
     * requests. */
    loop_defer(job->api->loop, &job->next);
}

void kube_job_wait(struct kube_job *job, int64_t delay_s)
{
    kube_job_wait_until(job, clock_add(loop_now_ns(job->api->loop), delay_s * NS_PER_S));
}

void kube_job_wait_until(struct kube_job *job, int64_t at_ns)
{
    move(job, KUBE_JOB_WAITING);
    loop_timer_set(job->api->loop, &job->timer, at_ns);
}

void kube_job_hurry(struct kube_job *job)
{
    /* A job that is ready or running looks for news anyway before it waits. */
    if (job->state != KUBE_JOB_WAITING)
        return;
    loop_timer_cancel(job->api->loop, &job->timer);
    kube_job_next(job);
}

void kube_job_end(struct kube_job *job)
{
    move(job, KUBE_JOB_ENDED);
    list_remove(&job->in_jobs);
    loop_defer_cancel(&job->next);
    loop_timer_cancel(job->api->loop, &job->timer);
    job->type->fini(job);
    arena_fini(&job->arena);
    free(job);
}

/* -- Operations -- */

void kube_job_reset_arena(struct kube_job *job, size_t bytes_max)
{
    arena_fini(&job->arena);
    arena_init(&job->arena, NULL, 0, bytes_max);
}

void kube_job_run(struct kube_job *job)
{
    move(job, KUBE_JOB_RUNNING);
}

void kube_job_begin(struct kube_job *job, struct engine_op *op, void (*done)(struct engine_op *op))
{
    *op = (struct engine_op){.done = done, .arena = &job->arena, .principal = ENGINE_SERVER};
    move(job, KUBE_JOB_RUNNING);
}

void kube_job_read(struct kube_job *job, void (*done)(struct engine_op *op))
{
    kube_job_begin(job, &job->range.op, done);
    engine_range_start(job->api->shard, &job->range, &job->request);
}

void kube_job_put(struct kube_job *job, void (*done)(struct engine_op *op))
{
    kube_job_begin(job, &job->write.engine.op, done);
    kube_storage_put(job->api->shard, &job->write);
}

void kube_job_delete(struct kube_job *job, void (*done)(struct engine_op *op))
{
    kube_job_begin(job, &job->write.engine.op, done);
    kube_storage_delete(job->api->shard, &job->write);
}

struct kube_job *kube_job_of_range(struct engine_op *op)
{
    return CONTAINER_OF(op, struct kube_job, range.op);
}

struct kube_job *kube_job_of_write(struct engine_op *op)
{
    return CONTAINER_OF(op, struct kube_job, write.engine.op);
}

void kube_job_read_kinds(struct kube_job *job, void (*done)(struct kube_registry_wait *wait))
{
    move(job, KUBE_JOB_RUNNING);
    job->kinds_wait.go = done;
    kube_registry_read(job->api->registry, &job->kinds_wait);
}

struct kube_job *kube_job_of_kinds(struct kube_registry_wait *wait)
{
    return CONTAINER_OF(wait, struct kube_job, kinds_wait);
}
