#include "engine/hasher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct inbox {
    struct waker waker;
    struct mailbox answers;
};

static int set_up(void **state)
{
    struct inbox *inbox = aligned_alloc(64, align_up(sizeof(*inbox), 64));
    assert_non_null(inbox);
    waker_init_thread(&inbox->waker);
    mailbox_init(&inbox->answers, &inbox->waker);
    *state = inbox;
    return 0;
}

static int tear_down(void **state)
{
    struct inbox *inbox = *state;
    assert_true(mailbox_empty(&inbox->answers));
    waker_fini(&inbox->waker);
    free(inbox);
    return 0;
}

static struct worker *start(void)
{
    struct worker *hasher = hasher_new();
    assert_int_equal(worker_start(hasher), ST_OK);
    return hasher;
}

static struct hasher_job make_job(struct inbox *inbox, unsigned cost)
{
    return (struct hasher_job){.work.answers = &inbox->answers,
                               .task = HASHER_MAKE,
                               .password = SLICE_LITERAL("password"),
                               .cost = cost};
}

/* Waits for the next finished job. */
static struct hasher_job *wait_for_one(struct inbox *inbox)
{
    struct mailbox_node *node;
    while (!(node = mailbox_take(&inbox->answers)))
        mailbox_wait(&inbox->answers, CLOCK_NEVER);
    assert_null(node->next);
    return CONTAINER_OF(node, struct hasher_job, work.in_mailbox);
}

static void password_matches_the_hash_that_was_made(void **state)
{
    AUTO(worker_freep) struct worker *hasher = start();
    struct hasher_job made = make_job(*state, 4);
    assert_int_equal(hasher_submit(hasher, &made), ST_OK);
    assert_ptr_equal(wait_for_one(*state), &made);
    assert_int_equal(made.work.status, ST_OK);
    struct hasher_job check = made;
    check.task = HASHER_CHECK;
    check.hash = slice_of(made.made, sizeof(made.made));
    assert_int_equal(hasher_submit(hasher, &check), ST_OK);
    assert_int_equal(wait_for_one(*state)->work.status, ST_OK);
    check.password = SLICE_LITERAL("passwort");
    assert_int_equal(hasher_submit(hasher, &check), ST_OK);
    assert_int_equal(wait_for_one(*state)->work.status, ST_AUTH_FAILED);
}

static void canceled_job_is_not_hashed(void **state)
{
    AUTO(worker_freep) struct worker *hasher = start();
    struct hasher_job job = make_job(*state, AUTH_BCRYPT_COST_MAX); /* would take days */
    atomic_store(&job.work.given_up, true);
    assert_int_equal(hasher_submit(hasher, &job), ST_OK);
    assert_int_equal(wait_for_one(*state)->work.status, ST_CANCELED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(password_matches_the_hash_that_was_made),
        TEST(canceled_job_is_not_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
