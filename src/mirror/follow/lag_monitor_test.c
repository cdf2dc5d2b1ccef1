/* The question to the member that is followed; how it is judged: follow/judgement_test.c. */
#include "mirror/follow/lag_monitor.h"

#include "mirror/link/member_test.h"
#include "mirror/link/state.h"

static struct {
    struct mirror_state state;
    struct lag_monitor *lag_monitor;
    unsigned left;
    int64_t received;
} f;

static int64_t received_of(void *ctx)
{
    (void)ctx;
    return f.received;
}

static void on_leave(void *ctx, const char *reason)
{
    (void)ctx, (void)reason;
    f.left++;
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    member_begin();
    member_connect(1 << 20);
    f.lag_monitor = lag_monitor_new(&(struct lag_monitor_options){
        .client = m.client,
        .key = SLICE_LITERAL("k"),
        .state = &f.state,
        .received = received_of,
        .leave = on_leave,
    });
    lag_monitor_start(f.lag_monitor);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lag_monitor_free(f.lag_monitor);
    member_end();
    return 0;
}

static void run(int64_t ns)
{
    unsigned never = 0;
    member_run(ns, &never);
}

static void an_answer_says_what_the_cluster_has(void **state)
{
    (void)state;
    m.cluster.revision = f.received = 7;
    run(20 * NS_PER_S);
    assert_int_equal(atomic_load(&f.state.heard), 7);
    assert_in_range(m.cluster.ranges, 2, 4);
    assert_int_equal(f.left, 0);
    m.cluster.revision = 8; /* its watch does not deliver it */
    member_run(2 * LAG_MONITOR_LATE_NS + 3 * NS_PER_S, &f.left);
    assert_int_equal(f.left, 1);
}

/* One damaged answer must not make the mirror late for good. */
static void a_revision_that_was_never_true_is_forgotten(void **state)
{
    (void)state;
    m.cluster.revision = f.received = 7;
    mirror_state_wrote(&f.state, INT64_MAX); /* no cluster has it, so it is not even noted */
    assert_int_equal(atomic_load(&f.state.heard), 0);
    mirror_state_wrote(&f.state, INT64_C(1) << 61);
    run(LAG_MONITOR_LATE_NS + 3 * NS_PER_S);
    assert_int_equal(atomic_load(&f.state.heard), 7);
    assert_int_equal(atomic_load(&f.state.written), 7);
    run(LAG_MONITOR_AGAIN_NS);
    assert_int_equal(f.left, 0);
}

/* It has got an event that the cluster does not have. */
static void a_mirror_that_is_newer_than_the_cluster_needs_another_look(void **state)
{
    (void)state;
    m.cluster.revision = f.received = 7;
    mirror_state_mirrored(&f.state, 1000);
    member_run(2 * LAG_MONITOR_LATE_NS + 3 * NS_PER_S, &f.left);
    assert_int_equal(f.left, 1);
}

/* To answer it would need everything that the others have. */
static void a_member_that_does_not_answer_is_left(void **state)
{
    (void)state;
    m.member.answer = ETCD_IS_SILENT;
    member_run(2 * LAG_MONITOR_LATE_NS + 3 * NS_PER_S, &f.left);
    assert_int_equal(f.left, 1);
    run(LAG_MONITOR_AGAIN_NS / 2);
    assert_int_equal(f.left, 1);
    lag_monitor_stop(f.lag_monitor);
    run(10 * LAG_MONITOR_AGAIN_NS);
    assert_int_equal(f.left, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_says_what_the_cluster_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_revision_that_was_never_true_is_forgotten, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_mirror_that_is_newer_than_the_cluster_needs_another_look,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_member_that_does_not_answer_is_left, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
