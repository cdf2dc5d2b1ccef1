#include "io/worker.h"

#include "base/clock.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct desk {
    struct waker waker;
    struct mailbox answers;
    struct worker *worker;
};

struct job {
    struct worker_job job; /* first */
    sem_t *begun, *goes;   /* NULL: it does not wait */
    pthread_t ran_on;
    unsigned ran;
};

static int set_up(void **state)
{
    struct desk *desk = aligned_alloc(64, align_up(sizeof(*desk), 64));
    assert_non_null(desk);
    waker_init_thread(&desk->waker);
    mailbox_init(&desk->answers, &desk->waker);
    assert_int_equal(worker_start("test-worker", NULL, &desk->worker), ST_OK);
    *state = desk;
    return 0;
}

static int tear_down(void **state)
{
    struct desk *desk = *state;
    assert_true(mailbox_empty(&desk->answers));
    worker_leave(desk->worker, &desk->answers);
    worker_stop(desk->worker);
    waker_fini(&desk->waker);
    free(desk);
    return 0;
}

static void run(struct worker_job *job)
{
    struct job *one = (struct job *)job;
    if (one->begun)
        sem_post(one->begun);
    if (one->goes)
        sem_wait(one->goes);
    one->ran_on = pthread_self();
    one->ran++;
}

static struct job make_job(struct desk *desk)
{
    return (struct job){.job = {.answers = &desk->answers, .run = run}};
}

/* Takes so many back; they come in the order of `jobs`. */
static void take_back(struct desk *desk, struct job *jobs, size_t count)
{
    size_t taken = 0;
    while (taken < count) {
        struct mailbox_node *node = mailbox_take(&desk->answers);
        if (!node)
            mailbox_wait(&desk->answers, CLOCK_NEVER);
        for (struct mailbox_node *next; node; node = next) {
            next = node->next;
            assert_ptr_equal(node, &jobs[taken++].job.in_mailbox);
        }
    }
}

static void jobs_run_elsewhere_and_come_back_in_order(void **state)
{
    enum { JOBS = 100 };
    struct desk *desk = *state;
    struct job jobs[JOBS];
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = make_job(desk);
        assert_int_equal(worker_submit(desk->worker, &jobs[i].job), ST_OK);
    }
    take_back(desk, jobs, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].ran, 1);
        assert_false(pthread_equal(jobs[i].ran_on, pthread_self()));
    }
}

static void the_queue_has_an_end(void **state)
{
    struct desk *desk = *state;
    static struct job jobs[WORKER_QUEUE_MAX + 1];
    sem_t begun, goes;
    sem_init(&begun, 0, 0);
    sem_init(&goes, 0, 0);
    for (size_t i = 0; i < WORKER_QUEUE_MAX + 1; i++)
        jobs[i] = make_job(desk);
    jobs[0].begun = &begun;
    jobs[0].goes = &goes;
    for (size_t i = 0; i < WORKER_QUEUE_MAX; i++)
        assert_int_equal(worker_submit(desk->worker, &jobs[i].job), ST_OK);
    sem_wait(&begun);
    assert_int_equal(worker_submit(desk->worker, &jobs[WORKER_QUEUE_MAX].job),
                     ST_REQUEST_TOO_MANY_REQUESTS);
    sem_post(&goes);
    take_back(desk, jobs, WORKER_QUEUE_MAX);
    assert_int_equal(jobs[WORKER_QUEUE_MAX].ran, 0);
    /* And room again. */
    assert_int_equal(worker_submit(desk->worker, &jobs[WORKER_QUEUE_MAX].job), ST_OK);
    take_back(desk, &jobs[WORKER_QUEUE_MAX], 1);
    sem_destroy(&begun);
    sem_destroy(&goes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_run_elsewhere_and_come_back_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_queue_has_an_end, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
