#include "engine/hasher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct desk {
    struct waker waker;
    struct mailbox answers;
};

static int set_up(void **state)
{
    struct desk *desk = aligned_alloc(64, align_up(sizeof(*desk), 64));
    assert_non_null(desk);
    waker_init_thread(&desk->waker);
    mailbox_init(&desk->answers, &desk->waker);
    *state = desk;
    return 0;
}

static int tear_down(void **state)
{
    struct desk *desk = *state;
    assert_true(mailbox_empty(&desk->answers));
    waker_fini(&desk->waker);
    free(desk);
    return 0;
}

static struct hasher *start(void)
{
    struct hasher *hasher = hasher_new();
    assert_int_equal(hasher_start(hasher), ST_OK);
    return hasher;
}

static struct hasher_job make_job(struct desk *desk, unsigned cost)
{
    return (struct hasher_job){.answers = &desk->answers,
                               .task = HASHER_MAKE,
                               .password = SLICE_LITERAL("password"),
                               .cost = cost};
}

/* The next that comes back. */
static struct hasher_job *wait_for_one(struct desk *desk)
{
    struct mailbox_node *node;
    while (!(node = mailbox_take(&desk->answers)))
        mailbox_wait(&desk->answers, CLOCK_NEVER);
    assert_null(node->next);
    return CONTAINER_OF(node, struct hasher_job, in_mailbox);
}

/* How many are back, all with this status. */
static size_t count_back(struct desk *desk, enum status status)
{
    size_t count = 0;
    for (struct mailbox_node *node = mailbox_take(&desk->answers); node; node = node->next) {
        assert_int_equal(CONTAINER_OF(node, struct hasher_job, in_mailbox)->status, status);
        count++;
    }
    return count;
}

static void a_hash_that_was_made_is_known_again(void **state)
{
    AUTO(hasher_freep) struct hasher *hasher = start();
    struct hasher_job made = make_job(*state, 4);
    assert_int_equal(hasher_submit(hasher, &made), ST_OK);
    assert_ptr_equal(wait_for_one(*state), &made);
    assert_int_equal(made.status, ST_OK);
    struct hasher_job check = made;
    check.task = HASHER_CHECK;
    check.hash = slice_of(made.made, sizeof(made.made));
    assert_int_equal(hasher_submit(hasher, &check), ST_OK);
    assert_int_equal(wait_for_one(*state)->status, ST_OK);
    check.password = SLICE_LITERAL("passwort");
    assert_int_equal(hasher_submit(hasher, &check), ST_OK);
    assert_int_equal(wait_for_one(*state)->status, ST_AUTH_FAILED);
}

static void more_than_the_queue_holds_are_refused_until_there_is_room(void **state)
{
    struct desk *desk = *state;
    static struct hasher_job jobs[HASHER_QUEUE_MAX + 1];
    AUTO(hasher_freep) struct hasher *hasher = hasher_new();
    for (size_t i = 0; i <= HASHER_QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, AUTH_BCRYPT_COST_MIN);
        assert_int_equal(hasher_submit(hasher, &jobs[i]),
                         i < HASHER_QUEUE_MAX ? ST_OK : ST_REQUEST_TOO_MANY_REQUESTS);
    }
    assert_int_equal(hasher_start(hasher), ST_OK);
    for (size_t back = 0; back < HASHER_QUEUE_MAX;) {
        back += count_back(desk, ST_OK);
        if (back < HASHER_QUEUE_MAX)
            mailbox_wait(&desk->answers, CLOCK_NEVER);
    }
    assert_int_equal(hasher_submit(hasher, &jobs[HASHER_QUEUE_MAX]), ST_OK);
    assert_int_equal(wait_for_one(desk)->status, ST_OK);
}

/* In the order in which they come back. */
static void wait_for_all(struct desk *desk, struct hasher_job **back, size_t count)
{
    for (size_t i = 0; i < count;) {
        struct mailbox_node *node = mailbox_take(&desk->answers);
        if (!node)
            mailbox_wait(&desk->answers, CLOCK_NEVER);
        for (; node; node = node->next)
            back[i++] = CONTAINER_OF(node, struct hasher_job, in_mailbox);
    }
}

static size_t place_of(struct hasher_job **back, size_t count, const struct hasher_job *job)
{
    for (size_t i = 0; i < count; i++) {
        if (back[i] == job)
            return i;
    }
    fail_msg("it did not come back");
    return count;
}

/* The queue is full of one peer's jobs: others still get in, and wait for one hash of each peer. */
static void flood_of_one_peer_keeps_nobody_out(void **state)
{
    enum { FLOODER = 1, OTHERS = 3, ALL = HASHER_QUEUE_MAX + OTHERS };
    struct desk *desk = *state;
    static struct hasher_job jobs[HASHER_QUEUE_MAX], others[OTHERS], more;
    AUTO(hasher_freep) struct hasher *hasher = hasher_new();
    for (size_t i = 0; i < HASHER_QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, AUTH_BCRYPT_COST_MIN);
        jobs[i].peer = FLOODER;
        assert_int_equal(hasher_submit(hasher, &jobs[i]), ST_OK);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        others[i] = make_job(desk, AUTH_BCRYPT_COST_MIN);
        others[i].peer = FLOODER + 1 + i;
        assert_int_equal(hasher_submit(hasher, &others[i]), ST_OK);
    }
    more = make_job(desk, AUTH_BCRYPT_COST_MIN);
    more.peer = FLOODER;
    assert_int_equal(hasher_submit(hasher, &more), ST_REQUEST_TOO_MANY_REQUESTS);

    assert_int_equal(hasher_start(hasher), ST_OK);
    struct hasher_job *back[ALL];
    wait_for_all(desk, back, ALL);
    /* The flooder's newest are refused, and before anything is hashed. */
    for (size_t i = 0; i < OTHERS; i++) {
        assert_int_equal(back[i]->status, ST_REQUEST_TOO_MANY_REQUESTS);
        assert_ptr_equal(back[i], &jobs[HASHER_QUEUE_MAX - 1 - i]);
        assert_int_equal(others[i].status, ST_OK);
        assert_true(place_of(back, ALL, &others[i]) <= OTHERS + 1 + i);
    }
}

/* Peers with equal shares of a full queue cannot push each other out. */
static void equal_shares_of_a_full_queue_stay(void **state)
{
    struct desk *desk = *state;
    static struct hasher_job jobs[HASHER_QUEUE_MAX + 1];
    struct hasher *hasher = hasher_new();
    for (size_t i = 0; i <= HASHER_QUEUE_MAX; i++) {
        jobs[i] = make_job(desk, AUTH_BCRYPT_COST_MAX);
        jobs[i].peer = i; /* one each */
        assert_int_equal(hasher_submit(hasher, &jobs[i]),
                         i < HASHER_QUEUE_MAX ? ST_OK : ST_REQUEST_TOO_MANY_REQUESTS);
    }
    hasher_free(hasher);
    assert_int_equal(count_back(desk, ST_STOPPED), HASHER_QUEUE_MAX);
}

static void what_has_not_begun_comes_back_when_it_stops(void **state)
{
    struct hasher_job jobs[3];
    struct hasher *hasher = hasher_new();
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        jobs[i] = make_job(*state, AUTH_BCRYPT_COST_MAX);
        assert_int_equal(hasher_submit(hasher, &jobs[i]), ST_OK);
    }
    hasher_free(hasher);
    assert_int_equal(count_back(*state, ST_STOPPED), COUNT_OF(jobs));
}

static void one_that_is_given_up_is_not_hashed(void **state)
{
    AUTO(hasher_freep) struct hasher *hasher = start();
    struct hasher_job job = make_job(*state, AUTH_BCRYPT_COST_MAX); /* would take days */
    atomic_store(&job.given_up, true);
    assert_int_equal(hasher_submit(hasher, &job), ST_OK);
    assert_int_equal(wait_for_one(*state)->status, ST_CANCELED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_hash_that_was_made_is_known_again),
        TEST(more_than_the_queue_holds_are_refused_until_there_is_room),
        TEST(flood_of_one_peer_keeps_nobody_out),
        TEST(equal_shares_of_a_full_queue_stay),
        TEST(what_has_not_begun_comes_back_when_it_stops),
        TEST(one_that_is_given_up_is_not_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
