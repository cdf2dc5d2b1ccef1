#include "io/mailbox.h"

#include "io/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

struct letter {
    union {
        struct mailbox_node node;
        struct mailbox_link in_chain;
    };
    unsigned from;
    unsigned number;
};

static struct letter *letter_of(struct mailbox_node *node)
{
    return CONTAINER_OF(node, struct letter, node);
}

static void post_chain(struct mailbox *mailbox, struct letter *letters, unsigned count)
{
    struct mailbox_chain chain = {0};
    for (unsigned i = 0; i < count; i++)
        mailbox_chain_add(&chain, &letters[i].node);
    mailbox_post_chain(mailbox, &chain);
}

static void messages_come_in_the_order_posted(void **state)
{
    (void)state;
    struct waker waker;
    struct mailbox mailbox;
    waker_init_thread(&waker);
    mailbox_init(&mailbox, &waker);
    assert_true(mailbox_empty(&mailbox));

    struct letter letters[9];
    for (unsigned i = 0; i < 9; i++)
        letters[i].number = i;
    mailbox_post(&mailbox, &letters[0].node);
    post_chain(&mailbox, &letters[1], 3);
    mailbox_post(&mailbox, &letters[4].node);
    post_chain(&mailbox, &letters[5], 1);
    post_chain(&mailbox, &letters[6], 2);
    mailbox_post(&mailbox, &letters[8].node);
    assert_false(mailbox_empty(&mailbox));

    unsigned expect = 0;
    for (struct mailbox_node *node = mailbox_take(&mailbox); node; node = node->next)
        assert_int_equal(letter_of(node)->number, expect++);
    assert_int_equal(expect, 9);
    assert_null(mailbox_take(&mailbox));
}

static void wait_ends_at_its_timeout(void **state)
{
    (void)state;
    struct waker waker;
    struct mailbox mailbox;
    waker_init_thread(&waker);
    mailbox_init(&mailbox, &waker);
    int64_t start = clock_mono_ns(clock_system());
    mailbox_wait(&mailbox, 3 * NS_PER_MS);
    assert_true(clock_mono_ns(clock_system()) - start >= 2 * NS_PER_MS);
}

struct two {
    struct waker waker;
    struct mailbox waited_for, other;
    atomic_bool flag;
};

static void *wake_by_other_means(void *arg)
{
    struct two *two = arg;
    static struct mailbox_node nodes[1000];
    for (int i = 0; i < 1000; i++) {
        mailbox_post(&two->other, &nodes[i]);
        if (i % 100 == 0)
            usleep(100);
    }
    atomic_store_explicit(&two->flag, true, memory_order_release);
    waker_wake(&two->waker);
    return NULL;
}

/* A thread that waits for one mailbox is woken for everything that shares its waker: nothing is
 * lost between its last check and its sleep. */
static void wait_ends_for_every_wake_of_a_shared_waker(void **state)
{
    (void)state;
    static struct two two;
    waker_init_thread(&two.waker);
    mailbox_init(&two.waited_for, &two.waker);
    mailbox_init(&two.other, &two.waker);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_by_other_means, &two), 0);
    int taken = 0;
    while (taken < 1000 || !atomic_load_explicit(&two.flag, memory_order_acquire)) {
        struct mailbox_node *node = mailbox_take(&two.other);
        for (; node; node = node->next)
            taken++;
        if (taken < 1000 || !atomic_load_explicit(&two.flag, memory_order_acquire))
            mailbox_wait(&two.waited_for, CLOCK_NEVER);
    }
    pthread_join(thread, NULL);
    assert_int_equal(taken, 1000);
}

static void wake_while_awake_is_kept_for_one_wait(void **state)
{
    (void)state;
    struct waker waker;
    struct mailbox mailbox;
    waker_init_thread(&waker);
    mailbox_init(&mailbox, &waker);
    waker_wake(&waker);
    waker_wake(&waker);
    mailbox_wait(&mailbox, CLOCK_NEVER);
    int64_t start = clock_mono_ns(clock_system());
    mailbox_wait(&mailbox, 3 * NS_PER_MS);
    assert_true(clock_mono_ns(clock_system()) - start >= 2 * NS_PER_MS);
}

static unsigned received;

static void receive_and_post_again(void *owner, struct mailbox_node *node)
{
    struct mailbox *mailbox = owner;
    if (++received < 3)
        mailbox_post(mailbox, node);
}

static void receiving_may_post_to_the_same_mailbox(void **state)
{
    (void)state;
    struct loop *loop = NULL;
    assert_int_equal(loop_new(clock_system(), &loop), ST_OK);
    struct mailbox mailbox;
    struct letter letter;
    loop_attach(loop, &mailbox, receive_and_post_again, &mailbox);
    mailbox_post(&mailbox, &letter.node);
    received = 0;
    while (received < 3)
        loop_turn(loop, CLOCK_NEVER);
    mailbox_detach(&mailbox);
    loop_free(loop);
}

/* -- many producers, one receiver: nothing is lost or duplicated, and each producer's order is kept
 * -- */

enum { PRODUCERS = 4, LETTERS = 20000 };

static struct letter sent[PRODUCERS][LETTERS];
static unsigned next_from[PRODUCERS];
static unsigned total;

struct stress {
    struct mailbox mailbox;
    struct loop *loop; /* NULL: a plain thread receives */
};

struct producer {
    struct mailbox *mailbox;
    unsigned index;
};

static void count_letter(void *owner, struct mailbox_node *node)
{
    unsigned *count = owner;
    assert_int_equal(letter_of(node)->number, (*count)++);
}

static void messages_beyond_the_limit_of_a_turn_arrive_in_the_next(void **state)
{
    (void)state;
    struct letter *letters = sent[0];
    AUTO(loop_freep) struct loop *loop = NULL;
    assert_int_equal(loop_new(clock_system(), &loop), ST_OK);
    struct mailbox mailbox;
    unsigned count = 0;
    loop_attach(loop, &mailbox, count_letter, &count);
    struct mailbox_chain chain = {0};
    for (unsigned i = 0; i < LETTERS; i++) {
        letters[i].number = i;
        mailbox_chain_add(&chain, &letters[i].node);
    }
    mailbox_post_chain(&mailbox, &chain);
    loop_turn(loop, NS_PER_S);
    assert_in_range(count, 1, LETTERS - 1);
    for (unsigned i = 1, before = 0; i < LETTERS && count < LETTERS; i++) {
        before = count;
        loop_turn(loop, CLOCK_NEVER); /* it does not wait */
        assert_true(count > before);
    }
    assert_int_equal(count, LETTERS);
    mailbox_detach(&mailbox);
}

static void *produce(void *arg)
{
    struct producer *me = arg;
    struct letter *mine = sent[me->index];
    for (unsigned i = 0; i < LETTERS;) {
        struct mailbox_chain chain = {0};
        for (unsigned end = i + 1 + i % 7; i < end && i < LETTERS; i++) {
            mine[i] = (struct letter){.from = me->index, .number = i};
            mailbox_chain_add(&chain, &mine[i].node);
        }
        if (chain.first == chain.last)
            mailbox_post(me->mailbox, chain.first);
        else
            mailbox_post_chain(me->mailbox, &chain);
        if (i % 512 < 7)
            usleep(50); /* lets the receiver sleep now and then */
    }
    return NULL;
}

static void check_letter(void *owner, struct mailbox_node *node)
{
    struct stress *stress = owner;
    struct letter *letter = letter_of(node);
    assert_int_equal(letter->number, next_from[letter->from]);
    next_from[letter->from]++;
    if (++total == PRODUCERS * LETTERS && stress->loop)
        loop_stop(stress->loop);
}

static void run_stress(struct stress *stress, void (*receive_all)(struct stress *))
{
    struct producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    total = 0;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        next_from[i] = 0;
        producers[i] = (struct producer){.mailbox = &stress->mailbox, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    receive_all(stress);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(total, PRODUCERS * LETTERS);
}

static void receive_by_waiting(struct stress *stress)
{
    while (total < PRODUCERS * LETTERS) {
        mailbox_wait(&stress->mailbox, CLOCK_NEVER);
        for (struct mailbox_node *node = mailbox_take(&stress->mailbox); node;) {
            struct mailbox_node *next = node->next;
            check_letter(stress, node);
            node = next;
        }
    }
}

static void receive_in_loop(struct stress *stress)
{
    loop_run(stress->loop);
}

static void plain_thread_gets_every_message_once(void **state)
{
    (void)state;
    struct waker waker;
    static struct stress stress;
    waker_init_thread(&waker);
    mailbox_init(&stress.mailbox, &waker);
    stress.loop = NULL;
    run_stress(&stress, receive_by_waiting);
}

static void loop_gets_every_message_once(void **state)
{
    (void)state;
    static struct stress stress;
    assert_int_equal(loop_new(clock_system(), &stress.loop), ST_OK);
    loop_attach(stress.loop, &stress.mailbox, check_letter, &stress);
    run_stress(&stress, receive_in_loop);
    mailbox_detach(&stress.mailbox);
    loop_free(stress.loop);
}

/* -- a message to a plain thread and back to a loop, like a put -- */

enum { TRIPS = 20000 };

struct echo {
    struct mailbox to_writer, to_shard;
    struct waker writer;
    struct loop *shard;
    struct letter letter;
    int trips;
    int64_t pause_ns; /* between trips */
    struct timer timer;
};

static void *writer_main(void *arg)
{
    struct echo *echo = arg;
    for (bool go_on = true; go_on;) {
        mailbox_wait(&echo->to_writer, CLOCK_NEVER);
        struct mailbox_node *node = mailbox_take(&echo->to_writer);
        if (!node)
            continue;
        go_on = letter_of(node)->number != 0;
        mailbox_post(&echo->to_shard, node);
    }
    return NULL;
}

static void send_next(struct timer *timer)
{
    struct echo *echo = CONTAINER_OF(timer, struct echo, timer);
    echo->letter.number = (unsigned)--echo->trips;
    mailbox_post(&echo->to_writer, &echo->letter.node);
}

static void came_back(void *owner, struct mailbox_node *node)
{
    struct echo *echo = owner;
    if (letter_of(node)->number == 0)
        loop_stop(echo->shard);
    else if (echo->pause_ns)
        loop_timer_set(echo->shard, &echo->timer, loop_now_ns(echo->shard) + echo->pause_ns);
    else
        send_next(&echo->timer);
}

static int64_t cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

static int64_t run_trips(int trips, int64_t pause_ns, int64_t *ret_cpu_ns)
{
    static struct echo echo;
    echo = (struct echo){.trips = trips, .pause_ns = pause_ns, .timer.fn = send_next};
    assert_int_equal(loop_new(clock_system(), &echo.shard), ST_OK);
    waker_init_thread(&echo.writer);
    mailbox_init(&echo.to_writer, &echo.writer);
    loop_attach(echo.shard, &echo.to_shard, came_back, &echo);
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, writer_main, &echo), 0);

    int64_t cpu = cpu_ns();
    int64_t start = clock_mono_ns(clock_system());
    send_next(&echo.timer);
    loop_run(echo.shard);
    int64_t took = clock_mono_ns(clock_system()) - start;
    *ret_cpu_ns = cpu_ns() - cpu;

    pthread_join(writer, NULL);
    mailbox_detach(&echo.to_shard);
    loop_free(echo.shard);
    return took;
}

static void round_trip_is_quick(void **state)
{
    (void)state;
    int64_t cpu;
    int64_t took = run_trips(TRIPS, 0, &cpu);
    printf("mailbox round trip, loop to thread and back: %.2f us (cpu %.2f us)\n",
           (double)took / TRIPS / 1000, (double)cpu / TRIPS / 1000);
    assert_true(took / TRIPS < 500 * NS_PER_US); /* generous: machines and sanitizers differ */
}

/* One round trip per millisecond: between them both sides must sleep, not poll. */
static void idle_receivers_do_not_poll(void **state)
{
    (void)state;
    enum { PAUSED_TRIPS = 200 };
    int64_t cpu;
    int64_t took = run_trips(PAUSED_TRIPS, NS_PER_MS, &cpu);
    printf("one trip a ms: %.1f us of cpu each, %.1f%% of a core\n",
           (double)cpu / PAUSED_TRIPS / 1000, 100.0 * (double)cpu / (double)took);
    assert_true(cpu < took / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_in_the_order_posted),
        cmocka_unit_test(wait_ends_at_its_timeout),
        cmocka_unit_test(wake_while_awake_is_kept_for_one_wait),
        cmocka_unit_test(wait_ends_for_every_wake_of_a_shared_waker),
        cmocka_unit_test(receiving_may_post_to_the_same_mailbox),
        cmocka_unit_test(messages_beyond_the_limit_of_a_turn_arrive_in_the_next),
        cmocka_unit_test(plain_thread_gets_every_message_once),
        cmocka_unit_test(loop_gets_every_message_once),
        cmocka_unit_test(round_trip_is_quick),
        cmocka_unit_test(idle_receivers_do_not_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
