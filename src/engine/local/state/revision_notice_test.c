#include "engine/local/state/revision_notice.h"

#include "base/clock.h"
#include "io/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bed {
    struct loop *loop;
    struct mailbox mailbox;
    struct revision_notice notice;
    unsigned received;
};

static void receive(void *owner, struct mailbox_node *node)
{
    struct bed *bed = owner;
    assert_ptr_equal(node, &bed->notice.node);
    revision_notice_received(&bed->notice);
    bed->received++;
}

static int setup(void **state)
{
    struct bed *bed = aligned_alloc(64, align_up(sizeof(*bed), 64));
    assert_non_null(bed);
    memset(bed, 0, sizeof(*bed));
    assert_int_equal(loop_new(clock_system(), &bed->loop), ST_OK);
    loop_attach(bed->loop, &bed->mailbox, receive, bed);
    bed->notice.to = &bed->mailbox;
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    revision_notice_end(&bed->notice);
    mailbox_detach(&bed->mailbox);
    loop_free(bed->loop);
    free(bed);
    return 0;
}

static void a_shard_that_does_not_listen_gets_no_notice(void **state)
{
    struct bed *bed = *state;
    revision_notice_send(&bed->notice);
    assert_true(mailbox_empty(&bed->mailbox));
    revision_notice_listen(&bed->notice, true);
    revision_notice_listen(&bed->notice, false);
    revision_notice_send(&bed->notice);
    loop_turn(bed->loop, 0);
    assert_int_equal(bed->received, 0);
}

static void at_most_one_message_is_in_flight(void **state)
{
    struct bed *bed = *state;
    revision_notice_listen(&bed->notice, true);
    for (int i = 0; i < 10; i++)
        revision_notice_send(&bed->notice);
    loop_turn(bed->loop, 0);
    assert_int_equal(bed->received, 1);
    revision_notice_send(&bed->notice);
    loop_turn(bed->loop, 0);
    assert_int_equal(bed->received, 2);
}

static void listening_again_while_a_message_is_in_flight_sends_no_second(void **state)
{
    struct bed *bed = *state;
    revision_notice_listen(&bed->notice, true);
    revision_notice_send(&bed->notice);
    revision_notice_listen(&bed->notice, false);
    revision_notice_listen(&bed->notice, true);
    revision_notice_send(&bed->notice);
    loop_turn(bed->loop, 0);
    assert_int_equal(bed->received, 1);
}

static void no_notice_is_sent_while_it_is_held_back(void **state)
{
    struct bed *bed = *state;
    revision_notice_listen(&bed->notice, true);
    assert_true(revision_notice_hold(&bed->notice));
    revision_notice_send(&bed->notice);
    loop_turn(bed->loop, 0);
    assert_int_equal(bed->received, 0);
    revision_notice_received(&bed->notice);
    revision_notice_send(&bed->notice);
    assert_false(revision_notice_hold(&bed->notice)); /* it is in flight */
    loop_turn(bed->loop, 0);
    assert_int_equal(bed->received, 1);
}

/* -- With a writer on another thread -- */

enum { PUBLISHED = 20000 };

struct race {
    struct bed *bed;
    _Atomic int published;
};

static void *publish_all(void *arg)
{
    struct race *race = arg;
    for (int i = 1; i <= PUBLISHED; i++) {
        atomic_store_explicit(&race->published, i, memory_order_release);
        revision_notice_send(&race->bed->notice);
    }
    return NULL;
}

static void nothing_published_is_missed(void **state)
{
    struct race race = {.bed = *state};
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, publish_all, &race), 0);
    int seen = 0;
    unsigned turns = 0;
    while (seen < PUBLISHED) {
        revision_notice_listen(&race.bed->notice, true);
        seen = atomic_load_explicit(&race.published, memory_order_acquire);
        /* The shard is notified of everything published after it looked: a lost message would block
         * here. */
        if (seen < PUBLISHED)
            loop_turn(race.bed->loop, CLOCK_NEVER);
        if (turns % 5 == 0 && revision_notice_hold(&race.bed->notice))
            revision_notice_received(&race.bed->notice);
        if (++turns % 7 == 0)
            revision_notice_listen(&race.bed->notice, false);
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_shard_that_does_not_listen_gets_no_notice),
        TEST(at_most_one_message_is_in_flight),
        TEST(listening_again_while_a_message_is_in_flight_sends_no_second),
        TEST(no_notice_is_sent_while_it_is_held_back),
        TEST(nothing_published_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
