/* Questions of the writer and reports of a shard, in one thread. */
#include "engine/local/state/read_progress.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct bed {
    struct waker waker;
    struct mailbox mailbox;
    struct read_progress progress;
};

static int set_up(void **state)
{
    static struct bed bed;
    bed = (struct bed){0};
    waker_init_thread(&bed.waker);
    mailbox_init(&bed.mailbox, &bed.waker);
    *state = &bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    read_progress_check(&bed->progress);
    waker_fini(&bed->waker);
    return 0;
}

/* How many questions have arrived at the shard. */
static unsigned questions(struct bed *bed)
{
    unsigned count = 0;
    for (struct mailbox_node *node = mailbox_take(&bed->mailbox); node; node = node->next)
        count++;
    return count;
}

static void without_a_shard_nothing_is_awaited(void **state)
{
    struct bed *bed = *state;
    read_progress_ask(&bed->progress, 5);
    assert_int_equal(read_progress_ns(&bed->progress), CLOCK_NEVER);
    assert_int_equal(questions(bed), 0);
}

static void only_one_question_is_open_at_a_time(void **state)
{
    struct bed *bed = *state;
    read_progress_begin(&bed->progress, &bed->mailbox, 10);
    assert_int_equal(read_progress_ns(&bed->progress), 10);
    read_progress_ask(&bed->progress, 20);
    read_progress_ask(&bed->progress, 30);
    assert_int_equal(questions(bed), 1);
    assert_int_equal(read_progress_wanted(&bed->progress), 20);
    read_progress_check(&bed->progress);
    assert_int_equal(read_progress_ns(&bed->progress), 10);
    read_progress_report(&bed->progress, 25);
    read_progress_check(&bed->progress);
    assert_int_equal(read_progress_ns(&bed->progress), 25);
    read_progress_ask(&bed->progress, 30);
    assert_int_equal(questions(bed), 1);
}

static void ended_shard_gets_no_question(void **state)
{
    struct bed *bed = *state;
    read_progress_begin(&bed->progress, &bed->mailbox, 10);
    read_progress_end(&bed->progress);
    read_progress_ask(&bed->progress, 20);
    assert_int_equal(questions(bed), 0);
    assert_int_equal(read_progress_ns(&bed->progress), CLOCK_NEVER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_shard_nothing_is_awaited),
        TEST(only_one_question_is_open_at_a_time),
        TEST(ended_shard_gets_no_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
