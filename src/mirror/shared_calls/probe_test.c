#include "mirror/shared_calls/probe.h"

#include "mirror/link/fake_upstream_test.h"
#include "mirror/link/state.h"
#include "simulated/sim.h"

enum { READS = 1000 };

struct read {
    struct probe_waiter waiter;
    unsigned done;
    char text[64];
    bool asks_again;
};

static struct {
    struct sim *sim;
    struct loop *loop;
    struct mirror_state state;
    struct probe *probe;
    struct read reads[READS];
} f;

static void on_done(struct probe_waiter *waiter)
{
    struct read *read = CONTAINER_OF(waiter, struct read, waiter);
    read->done++;
    snprintf(read->text, sizeof(read->text), "%.*s", SLICE_ARGS(waiter->text));
    if (read->asks_again) {
        read->asks_again = false;
        probe_ask(f.probe, waiter);
    }
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    cluster_begin();
    f.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(f.sim), &f.loop), ST_OK);
    f.probe = probe_new(f.loop, NULL, &f.state, SLICE_LITERAL("/registry/"));
    for (size_t i = 0; i < READS; i++)
        f.reads[i].waiter.done = on_done;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    probe_free(f.probe);
    assert_int_equal(cluster.count, 0);
    loop_free(f.loop);
    sim_free(f.sim);
    return 0;
}

static void ask(size_t from, size_t to)
{
    for (; from < to; from++)
        probe_ask(f.probe, &f.reads[from].waiter);
}

static void turn(void)
{
    loop_turn(f.loop, 0);
}

static void expect_done(size_t from, size_t to, int64_t revision)
{
    for (; from < to; from++) {
        assert_int_equal(f.reads[from].done, 1);
        assert_int_equal(f.reads[from].waiter.code, GRPC_OK);
        assert_int_equal(f.reads[from].waiter.revision, revision);
    }
}

static void the_question_is_linearizable_and_small(void **state)
{
    (void)state;
    ask(0, 1);
    turn();
    struct pb_range_request request = range_of(call_at(0));
    assert_true(call_at(0)->request.caller.is_self);
    assert_true(call_at(0)->request.reads);
    assert_true(call_at(0)->request.deadline_ns < CLOCK_NEVER);
    assert_true(slice_is(request.key, "/registry/"));
    assert_int_equal(request.range_end.len, 0);
    assert_true(request.count_only);
    assert_false(request.serializable);
    call_answer_revision(call_at(0), 7);
    expect_done(0, 1, 7);
    assert_int_equal(atomic_load(&f.state.heard), 7);
    assert_int_equal(atomic_load(&f.state.written), 0);
}

/* A member may have compacted it without the mirror's knowledge. */
static void the_question_is_at_the_oldest_revision_that_is_read(void **state)
{
    (void)state;
    f.reads[1].waiter.at = 6;
    f.reads[2].waiter.at = 5;
    ask(0, 3);
    turn();
    assert_int_equal(range_of(call_at(0)).revision, 5);
    call_answer_revision(call_at(0), 9);
    expect_done(0, 3, 9);
}

/* The others wait for the next question. */
static void a_compacted_revision_fails_only_reads_of_revisions(void **state)
{
    (void)state;
    f.reads[1].waiter.at = 6;
    f.reads[2].waiter.at = 5;
    ask(0, 3);
    turn();
    call_end(call_at(0), GRPC_OUT_OF_RANGE, status_text(ST_COMPACTED));
    assert_int_equal(f.reads[0].done, 0);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(f.reads[i].done, 1);
        assert_true(f.reads[i].waiter.is_unreadable);
    }
    turn();
    assert_int_equal(range_of(call_at(0)).revision, 0);
    call_answer_revision(call_at(0), 9);
    expect_done(0, 1, 9);
}

static void reads_of_one_turn_share_a_question(void **state)
{
    (void)state;
    ask(0, READS);
    assert_int_equal(cluster.started, 0);
    turn();
    assert_int_equal(cluster.started, 1);
    call_answer_revision(call_at(0), 9);
    expect_done(0, READS, 9);
    assert_int_equal(atomic_load(&f.state.probes), 1);
}

/* The cluster may have answered before the later read began. */
static void a_read_never_takes_the_answer_of_an_earlier_question(void **state)
{
    (void)state;
    ask(0, 1);
    turn();
    ask(1, READS);
    turn();
    assert_int_equal(cluster.count, 1); /* one at a time */
    call_answer_revision(call_at(0), 5);
    expect_done(0, 1, 5);
    for (size_t i = 1; i < READS; i++)
        assert_int_equal(f.reads[i].done, 0);
    turn();
    assert_int_equal(cluster.started, 2);
    call_answer_revision(call_at(0), 6);
    expect_done(1, READS, 6);
}

static void a_read_that_asks_again_in_done_gets_a_new_question(void **state)
{
    (void)state;
    f.reads[0].asks_again = true;
    ask(0, 1);
    turn();
    call_answer_revision(call_at(0), 5);
    turn();
    assert_int_equal(f.reads[0].done, 1);
    call_answer_revision(call_at(0), 6);
    assert_int_equal(f.reads[0].done, 2);
    assert_int_equal(f.reads[0].waiter.revision, 6);
}

static void failures_reach_all_reads_with_their_text(void **state)
{
    (void)state;
    ask(0, 2);
    turn();
    ask(2, 3);
    call_end(call_at(0), GRPC_UNAVAILABLE, "etcdserver: no leader");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f.reads[i].waiter.code, GRPC_UNAVAILABLE);
        assert_string_equal(f.reads[i].text, "etcdserver: no leader");
    }
    turn();
    call_end(call_at(0), GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert_int_equal(f.reads[2].waiter.code, GRPC_UNAVAILABLE);
    assert_string_equal(f.reads[2].text, "etcdserver: request timed out");
    ask(3, 4);
    turn();
    call_end(call_at(0), GRPC_UNKNOWN, "context deadline exceeded");
    assert_int_equal(f.reads[3].waiter.code, GRPC_UNAVAILABLE);
    assert_string_equal(f.reads[3].text, "etcdserver: request timed out");
    cluster.start_fails = ST_NOMEM;
    ask(3, 4);
    turn();
    assert_int_equal(f.reads[3].waiter.code, GRPC_RESOURCE_EXHAUSTED);
}

static void wait_for_ms(int64_t ms)
{
    sim_run_until(f.sim, loop_now_ns(f.loop) + ms * NS_PER_MS);
    turn();
}

/* So that no read waits for two questions that are not answered, one after the other. */
static void reads_that_have_waited_fail_with_the_question_before(void **state)
{
    (void)state;
    ask(0, 1);
    turn();
    wait_for_ms(100);
    ask(1, 3);
    wait_for_ms(7000);
    ask(3, 4);
    wait_for_ms(100);
    call_end(call_at(0), GRPC_UNAVAILABLE, "gone");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f.reads[i].done, 1);
        assert_string_equal(f.reads[i].text, "gone");
    }
    assert_int_equal(f.reads[3].done, 0);
    turn();
    call_answer_revision(call_at(0), 5);
    expect_done(3, 4, 5);
}

static void answers_without_a_revision_are_failures(void **state)
{
    (void)state;
    ask(0, 1);
    turn();
    call_answer(call_at(0), &(struct pb_range_response){.count = 1});
    assert_int_equal(f.reads[0].waiter.code, GRPC_INTERNAL);
    ask(1, 2);
    turn();
    call_at(0)->ops->on_message(call_at(0), SLICE_LITERAL("\x0a\xff"));
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(f.reads[1].waiter.code, GRPC_INTERNAL);
}

static void cancelled_reads_are_not_called(void **state)
{
    (void)state;
    probe_cancel(&f.reads[0].waiter); /* it does not wait */
    ask(0, 3);
    probe_cancel(&f.reads[0].waiter);
    turn();
    probe_cancel(&f.reads[1].waiter);
    probe_cancel(&f.reads[1].waiter);
    call_answer_revision(call_at(0), 5);
    assert_int_equal(f.reads[0].done + f.reads[1].done, 0);
    expect_done(2, 3, 5);
    ask(0, 1);
    probe_cancel(&f.reads[0].waiter);
    turn();
    assert_int_equal(cluster.count, 0); /* no read is left */
}

static void expect_other_past(size_t at)
{
    assert_int_equal(f.reads[at].done, 1);
    assert_int_equal(f.reads[at].waiter.code, GRPC_UNAVAILABLE);
    assert_string_equal(f.reads[at].text, "vigil: the cluster has another past than the mirror");
}

/* A snapshot was restored, and the follower does not know it yet. */
static void an_answer_of_another_past_is_a_failure(void **state)
{
    (void)state;
    mirror_state_mirrored(&f.state, 10);
    ask(0, 1);
    turn();
    mirror_state_mirrored(&f.state, 12); /* meanwhile */
    call_answer_revision(call_at(0), 10);
    expect_done(0, 1, 10);
    ask(1, 2);
    turn();
    call_answer_revision(call_at(0), 11);
    expect_other_past(1);
    atomic_store(&f.state.cluster_id, 77);
    ask(2, 3);
    turn();
    call_answer_revision(call_at(0), 99);
    expect_other_past(2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_question_is_linearizable_and_small),
        TEST(the_question_is_at_the_oldest_revision_that_is_read),
        TEST(a_compacted_revision_fails_only_reads_of_revisions),
        TEST(reads_of_one_turn_share_a_question),
        TEST(a_read_never_takes_the_answer_of_an_earlier_question),
        TEST(a_read_that_asks_again_in_done_gets_a_new_question),
        TEST(failures_reach_all_reads_with_their_text),
        TEST(reads_that_have_waited_fail_with_the_question_before),
        TEST(answers_without_a_revision_are_failures),
        TEST(cancelled_reads_are_not_called),
        TEST(an_answer_of_another_past_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
