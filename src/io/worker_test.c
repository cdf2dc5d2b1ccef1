#include "io/worker.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { QUEUE_MAX = 100 };

struct desk {
    struct waker waker;
    struct mailbox answers;
    struct worker *worker;
};

struct job {
    struct worker_job job; /* first */
    pthread_t ran_on;
    unsigned ran;
};

static int set_up(void **state)
{
    struct desk *desk = aligned_alloc(64, align_up(sizeof(*desk), 64));
    assert_non_null(desk);
    waker_init_thread(&desk->waker);
    mailbox_init(&desk->answers, &desk->waker);
    desk->worker = worker_new("test-worker", QUEUE_MAX);
    *state = desk;
    return 0;
}

static int tear_down(void **state)
{
    struct desk *desk = *state;
    assert_true(mailbox_empty(&desk->answers));
    worker_leave(desk->worker, &desk->answers);
    worker_free(desk->worker);
    waker_fini(&desk->waker);
    free(desk);
    return 0;
}

static void run(struct worker_job *job)
{
    struct job *one = (struct job *)job;
    one->ran_on = pthread_self();
    one->ran++;
}

static struct job make_job(struct desk *desk, uint64_t share)
{
    return (struct job){.job = {.answers = &desk->answers, .run = run, .share = share}};
}

static void submit(struct desk *desk, struct job *job, enum status expected)
{
    assert_int_equal(worker_submit(desk->worker, &job->job), expected);
}

/* Takes this many jobs back, in the order in which they arrive. */
static void take_back(struct desk *desk, struct job **back, size_t count)
{
    for (size_t i = 0; i < count;) {
        struct mailbox_node *node = mailbox_take(&desk->answers);
        if (!node)
            mailbox_wait(&desk->answers, CLOCK_NEVER);
        for (struct mailbox_node *next; node; node = next) {
            next = node->next;
            back[i++] = CONTAINER_OF(node, struct job, job.in_mailbox);
        }
    }
}

/* All jobs are submitted before the worker starts, so that their order does not depend on timing.
 */
static void run_all(struct desk *desk, struct job **back, size_t count)
{
    assert_int_equal(worker_start(desk->worker), ST_OK);
    take_back(desk, back, count);
}

static size_t place_of(struct job **back, size_t count, const struct job *job)
{
    for (size_t i = 0; i < count; i++) {
        if (back[i] == job)
            return i;
    }
    fail_msg("it did not come back");
    return count;
}

static void jobs_of_a_share_run_on_the_worker_and_return_in_order(void **state)
{
    struct desk *desk = *state;
    struct job jobs[QUEUE_MAX], *back[QUEUE_MAX];
    for (size_t i = 0; i < QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, 7);
        submit(desk, &jobs[i], ST_OK);
    }
    run_all(desk, back, QUEUE_MAX);
    for (size_t i = 0; i < QUEUE_MAX; i++) {
        assert_ptr_equal(back[i], &jobs[i]);
        assert_int_equal(jobs[i].ran, 1);
        assert_int_equal(jobs[i].job.status, ST_OK);
        assert_false(pthread_equal(jobs[i].ran_on, pthread_self()));
    }
}

static void jobs_beyond_the_queue_limit_are_refused_until_there_is_room(void **state)
{
    struct desk *desk = *state;
    static struct job jobs[QUEUE_MAX + 1], *back[QUEUE_MAX];
    for (size_t i = 0; i <= QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, 7);
        submit(desk, &jobs[i], i < QUEUE_MAX ? ST_OK : ST_REQUEST_TOO_MANY_REQUESTS);
    }
    run_all(desk, back, QUEUE_MAX);
    assert_int_equal(jobs[QUEUE_MAX].ran, 0);
    submit(desk, &jobs[QUEUE_MAX], ST_OK);
    take_back(desk, back, 1);
    assert_int_equal(jobs[QUEUE_MAX].ran, 1);
}

/* One share posts ten times as many jobs as the queue holds. Others are still accepted, and each of
 * them is served after at most one job of each share. */
static void flood_of_one_share_does_not_exclude_others(void **state)
{
    enum { FLOODER = 1, FLOOD = 10 * QUEUE_MAX, OTHERS = 3, ALL = QUEUE_MAX + OTHERS };
    struct desk *desk = *state;
    static struct job jobs[FLOOD], others[OTHERS], *back[ALL];
    for (size_t i = 0; i < FLOOD; i++) {
        jobs[i] = make_job(desk, FLOODER);
        submit(desk, &jobs[i], i < QUEUE_MAX ? ST_OK : ST_REQUEST_TOO_MANY_REQUESTS);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        others[i] = make_job(desk, FLOODER + 1 + i);
        submit(desk, &others[i], ST_OK);
    }
    submit(desk, &jobs[FLOOD - 1], ST_REQUEST_TOO_MANY_REQUESTS);
    run_all(desk, back, ALL);
    for (size_t i = 0; i < OTHERS; i++) {
        /* The newest jobs of the large share lose their places and are posted back before any job
         * runs. */
        assert_ptr_equal(back[i], &jobs[QUEUE_MAX - 1 - i]);
        assert_int_equal(back[i]->job.status, ST_REQUEST_TOO_MANY_REQUESTS);
        assert_int_equal(back[i]->ran, 0);
        assert_int_equal(others[i].job.status, ST_OK);
        assert_true(place_of(back, ALL, &others[i]) <= OTHERS + 1 + i);
    }
}

/* Each of two shares gets every other turn until one of them has no more jobs. */
static void shares_take_turns(void **state)
{
    enum { EACH = 10 };
    struct desk *desk = *state;
    struct job jobs[2][EACH], *back[2 * EACH];
    for (size_t share = 0; share < 2; share++) {
        for (size_t i = 0; i < EACH; i++) {
            jobs[share][i] = make_job(desk, share);
            submit(desk, &jobs[share][i], ST_OK);
        }
    }
    run_all(desk, back, COUNT_OF(back));
    for (size_t i = 0; i < COUNT_OF(back); i++)
        assert_ptr_equal(back[i], &jobs[i % 2][i / 2]);
}

/* One address fills the queue from as many connections as it has places. */
static void flood_of_one_group_does_not_exclude_others(void **state)
{
    enum { OTHERS = 4, ALL = QUEUE_MAX + OTHERS };
    struct desk *desk = *state;
    static struct job jobs[QUEUE_MAX + 1], others[OTHERS], *back[ALL];
    for (size_t i = 0; i <= QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, i);
        jobs[i].job.group = 1;
        submit(desk, &jobs[i], i < QUEUE_MAX ? ST_OK : ST_REQUEST_TOO_MANY_REQUESTS);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        others[i] = make_job(desk, i); /* the same shares, in other groups */
        others[i].job.group = 2 + i / 2;
        submit(desk, &others[i], ST_OK);
    }
    submit(desk, &jobs[QUEUE_MAX], ST_REQUEST_TOO_MANY_REQUESTS);
    run_all(desk, back, ALL);
    size_t refused = 0;
    for (size_t i = 0; i < QUEUE_MAX; i++)
        refused += jobs[i].job.status == ST_REQUEST_TOO_MANY_REQUESTS;
    assert_int_equal(refused, OTHERS);
    /* Those that lost their places come first; then the three groups take turns. */
    assert_true(place_of(back, ALL, &others[0]) < OTHERS + 3);
    assert_true(place_of(back, ALL, &others[2]) < OTHERS + 3);
    assert_true(place_of(back, ALL, &others[1]) < OTHERS + 6);
    assert_true(place_of(back, ALL, &others[3]) < OTHERS + 6);
}

/* Within a group the shares take turns, and the groups take turns, however many shares they have.
 */
static void groups_take_turns(void **state)
{
    enum { EACH = 12 };
    struct desk *desk = *state;
    struct job many[EACH], one[EACH / 2], *back[EACH + EACH / 2];
    for (size_t i = 0; i < EACH; i++) {
        many[i] = make_job(desk, 1 + i % 3);
        many[i].job.group = 1;
        submit(desk, &many[i], ST_OK);
    }
    for (size_t i = 0; i < EACH / 2; i++) {
        one[i] = make_job(desk, 1);
        one[i].job.group = 2;
        submit(desk, &one[i], ST_OK);
    }
    run_all(desk, back, COUNT_OF(back));
    for (size_t i = 0; i < EACH / 2; i++) {
        assert_ptr_equal(back[2 * i], &many[i]);
        assert_ptr_equal(back[2 * i + 1], &one[i]);
    }
}

static void equal_shares_of_a_full_queue_keep_their_places(void **state)
{
    struct desk *desk = *state;
    static struct job jobs[QUEUE_MAX + 1], *back[QUEUE_MAX];
    for (size_t i = 0; i <= QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, i); /* one job per share */
        submit(desk, &jobs[i], i < QUEUE_MAX ? ST_OK : ST_REQUEST_TOO_MANY_REQUESTS);
    }
    run_all(desk, back, QUEUE_MAX);
    for (size_t i = 0; i < QUEUE_MAX; i++)
        assert_ptr_equal(back[i], &jobs[i]);
}

/* In a full queue, and when others take places in it. */
static void jobs_that_must_run_are_never_refused(void **state)
{
    enum { SHARE = 1, MUST = 20, OTHERS = QUEUE_MAX / 2, ALL = QUEUE_MAX + MUST + OTHERS };
    struct desk *desk = *state;
    static struct job jobs[QUEUE_MAX], must[MUST], others[OTHERS], *back[ALL];
    for (size_t i = 0; i < QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, SHARE);
        submit(desk, &jobs[i], ST_OK);
    }
    for (size_t i = 0; i < MUST; i++) {
        must[i] = make_job(desk, SHARE);
        must[i].job.must_run = true;
        submit(desk, &must[i], ST_OK);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        others[i] = make_job(desk, SHARE + 1);
        submit(desk, &others[i], ST_OK);
    }
    run_all(desk, back, ALL);
    for (size_t i = 0; i < QUEUE_MAX; i++)
        assert_int_equal(jobs[i].ran, i < QUEUE_MAX - OTHERS);
    for (size_t i = 0; i < MUST; i++)
        assert_int_equal(must[i].ran, 1);
    for (size_t i = 0; i < OTHERS; i++)
        assert_int_equal(others[i].ran, 1);
    assert_ptr_equal(back[ALL - 1], &must[MUST - 1]);
}

static void jobs_that_are_given_up_do_not_run(void **state)
{
    struct desk *desk = *state;
    struct job job = make_job(desk, 7), *back[1];
    submit(desk, &job, ST_OK);
    atomic_store(&job.job.given_up, true);
    run_all(desk, back, 1);
    assert_int_equal(job.job.status, ST_CANCELED);
    assert_int_equal(job.ran, 0);
}

static void waiting_jobs_are_returned_when_the_worker_stops(void **state)
{
    struct desk *desk = *state;
    struct job jobs[3], *back[COUNT_OF(jobs)];
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        jobs[i] = make_job(desk, i / 2);
        submit(desk, &jobs[i], ST_OK);
    }
    worker_free(desk->worker);
    desk->worker = NULL;
    take_back(desk, back, COUNT_OF(jobs));
    for (size_t i = 0; i < COUNT_OF(jobs); i++)
        assert_int_equal(jobs[i].job.status, ST_STOPPED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(jobs_of_a_share_run_on_the_worker_and_return_in_order),
        TEST(jobs_beyond_the_queue_limit_are_refused_until_there_is_room),
        TEST(flood_of_one_share_does_not_exclude_others),
        TEST(shares_take_turns),
        TEST(flood_of_one_group_does_not_exclude_others),
        TEST(groups_take_turns),
        TEST(equal_shares_of_a_full_queue_keep_their_places),
        TEST(jobs_that_must_run_are_never_refused),
        TEST(jobs_that_are_given_up_do_not_run),
        TEST(waiting_jobs_are_returned_when_the_worker_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
