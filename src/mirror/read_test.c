/* Reads that the mirror answers, rights, and giving up. */
#include "mirror/read_fixture_test.h"

/* -- From the mirror -- */

static void a_serializable_read_is_given_to_the_mirror_at_once(void **state)
{
    (void)state;
    expect_mirror(serializable(0), 10);
    expect_mirror(start(1, (struct pb_range_request){.serializable = true}, NULL), 10);
    assert_int_equal(cluster.started, 0);
    assert_int_equal(atomic_load(&f.shared.state.reads_mirrored), 2);
}

static void a_read_waits_for_the_writes_before_it(void **state)
{
    (void)state;
    mirror_state_wrote(&f.shared.state, 12);
    struct reading *early = serializable(0);
    mirror_state_wrote(&f.shared.state, 14);
    struct reading *late = serializable(1);
    turn();
    assert_int_equal(early->done + late->done, 0);
    mirror_has(12);
    assert_true(loop_next_ns(f.loop) <= loop_now_ns(f.loop)); /* the thread is woken */
    turn();
    expect_mirror(early, 12);
    assert_int_equal(late->done, 0);
    mirror_has(15);
    turn();
    expect_mirror(late, 15);
    assert_int_equal(loop_next_ns(f.loop) < loop_now_ns(f.loop) + 100 * WAIT_NS, false);
    assert_int_equal(cluster.started, 0);
}

static void a_mirror_that_is_late_is_not_waited_for(void **state)
{
    (void)state;
    mirror_state_wrote(&f.shared.state, 12);
    struct reading *r = serializable(0);
    run_ns(WAIT_NS / 2);
    assert_int_equal(cluster.started, 0);
    run_ns(WAIT_NS / 2 + 1);
    assert_int_equal(cluster.started, 1);
    /* A member that is behind would not have the write. */
    assert_false(range_of(call_at(0)).serializable);
    assert_true(slice_is(buf_slice(&call_at(0)->token), "t"));
    mirror_has(12); /* too late */
    turn();
    assert_int_equal(r->done, 0);
    answer_kvs(call_at(0), 13, 2, 3);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->range.op.revision, 13);
    assert_int_equal(atomic_load(&f.shared.state.written), 13);
    engine_range_close(&r->range);
}

/* They would keep the cluster from what makes the mirror newer. */
static void a_late_mirror_does_not_send_all_reads_to_the_cluster(void **state)
{
    (void)state;
    mirror_state_wrote(&f.shared.state, 12);
    for (size_t i = 0; i < READS; i++)
        serializable(i);
    run_ns(WAIT_NS + 1);
    assert_int_equal(cluster.count, MIRROR_LATE_MAX);
    answer_kvs(call_at(0), 12, 1, 1);
    call_end(call_at(0), GRPC_UNAVAILABLE, "x");
    engine_give_up(&reading_at(2)->range.op);
    turn();
    assert_int_equal(cluster.count, MIRROR_LATE_MAX); /* the next three */
    assert_int_equal(cluster.started, MIRROR_LATE_MAX + 3);
    mirror_has(12);
    turn();
    expect_mirror(reading_at(READS - 1), 12);
    assert_int_equal(atomic_load(&f.shared.state.reads_mirrored), READS - MIRROR_LATE_MAX - 3);
    while (cluster.count)
        answer_kvs(call_at(0), 12, 1, 1);
    for (size_t i = 0; i < READS; i++) {
        assert_int_equal(reading_at(i)->done, 1);
        engine_range_close(&reading_at(i)->range);
    }
}

static void linearizable_reads_wait_for_the_revision_of_a_probe(void **state)
{
    (void)state;
    struct reading *r = linearizable(0);
    assert_int_equal(r->done, 0);
    turn();
    mirror_has(11);
    turn();
    assert_int_equal(r->done, 0);
    call_answer_revision(call_at(0), 12);
    turn();
    assert_int_equal(r->done, 0);
    mirror_has(12);
    turn();
    expect_mirror(r, 12);
    struct reading *next = linearizable(1);
    turn();
    call_answer_revision(call_at(0), 12); /* nothing new */
    expect_mirror(next, 12);
}

/* The cluster may have been restored to another history at the same revision. */
static void linearizable_reads_need_a_mirror_that_follows(void **state)
{
    (void)state;
    atomic_store(&f.shared.state.connected, false);
    struct reading *late = linearizable(0);
    expect_mirror(serializable(1), 10);
    turn();
    call_answer_revision(call_at(0), 10);
    turn();
    assert_int_equal(late->done, 0);
    run_ns(WAIT_NS + 1);
    answer_kvs(call_at(0), 10, 1, 1);
    assert_int_equal(late->done, 1);
    engine_range_close(&late->range);
    struct reading *soon = linearizable(2);
    turn();
    call_answer_revision(call_at(0), 10);
    turn();
    atomic_store(&f.shared.state.connected, true);
    mirror_reads_notify(&f.shared);
    turn();
    expect_mirror(soon, 10);
}

static void the_wait_begins_with_the_answer_of_the_probe(void **state)
{
    (void)state;
    struct reading *r = linearizable(0);
    turn();
    run_ns(20 * WAIT_NS);
    call_answer_revision(call_at(0), 12);
    run_ns(WAIT_NS / 2);
    assert_int_equal(cluster.count, 0);
    run_ns(WAIT_NS / 2 + 1);
    assert_int_equal(cluster.count, 1);
    assert_int_equal(range_of(call_at(0)).limit, 1);
    answer_kvs(call_at(0), 12, 1, 1);
    assert_int_equal(r->done, 1);
    engine_range_close(&r->range);
}

static void thousands_of_reads_cost_few_probes(void **state)
{
    (void)state;
    for (size_t i = 0; i < READS; i++) {
        linearizable(i);
        if (i % 100 == 99)
            turn();
    }
    while (cluster.count) {
        call_answer_revision(call_at(0), 10);
        turn();
    }
    for (size_t i = 0; i < READS; i++)
        expect_mirror(reading_at(i), 10);
    assert_int_equal(cluster.started, 2);
    assert_int_equal(atomic_load(&f.shared.state.probes), 2);
}

static void a_failed_probe_fails_the_read_with_its_text(void **state)
{
    (void)state;
    struct reading *r = linearizable(0);
    turn();
    call_end(call_at(0), GRPC_UNAVAILABLE, "etcdserver: no leader");
    expect_failed(r, ST_NO_LEADER, "etcdserver: no leader");
    /* Vigil's own user lacks the right: the client may have it. */
    r = linearizable(0);
    turn();
    call_fail(call_at(0), ST_USER_EMPTY);
    assert_true(slice_is(buf_slice(&call_at(0)->token), "t"));
    answer_kvs(call_at(0), 12, 1, 1);
    assert_int_equal(r->done, 1);
    engine_range_close(&r->range);
    r = start(0, (struct pb_range_request){0}, NULL);
    turn();
    call_fail(call_at(0), ST_PERMISSION_DENIED);
    expect_failed(r, ST_PERMISSION_DENIED, "etcdserver: permission denied");
}

static void before_the_first_sync_reads_fail(void **state)
{
    (void)state;
    const char *loading = "vigil: the mirror of the cluster is not complete yet";
    atomic_store(&f.shared.state.synced, false);
    atomic_store(&f.shared.state.reached, true);
    expect_failed(linearizable(0), ST_NOT_SYNCED, loading);
    expect_failed(serializable(1), ST_NOT_SYNCED, loading);
    assert_int_equal(status_code(ST_NOT_SYNCED), GRPC_UNAVAILABLE);
}

static void before_a_member_has_answered_reads_name_the_endpoints(void **state)
{
    (void)state;
    const char *text = "vigil: the mirror of the cluster is not complete yet: no member of the "
                       "cluster can be followed yet (http://a:1,http://b:2): connection refused";
    atomic_store(&f.shared.state.synced, false);
    f.shared.options.upstream.endpoints = "http://a:1,http://b:2";
    follow_failure_set(&f.shared.state.follow_failure, "connection refused");
    expect_failed(linearizable(0), ST_NOT_SYNCED, text);
    expect_failed(serializable(1), ST_NOT_SYNCED, text);
}

static void linearizable_reads_that_are_forwarded_need_no_mirror(void **state)
{
    (void)state;
    atomic_store(&f.shared.state.synced, false);
    f.shared.options.reads = MIRROR_READS_FORWARD;
    struct reading *r = linearizable(0);
    turn();
    assert_int_equal(cluster.count, 1);
    call_fail(call_at(0), ST_PERMISSION_DENIED);
    expect_failed(r, ST_PERMISSION_DENIED, "etcdserver: permission denied");
    expect_failed(serializable(1), ST_NOT_SYNCED,
                  "vigil: the mirror of the cluster is not complete yet: no member of the cluster "
                  "can be followed yet");
}

/* -- Rights -- */

static void callers_without_the_right_are_refused(void **state)
{
    (void)state;
    run_ns(2 * NS_PER_S);
    while (cluster.count)
        call_fail(call_at(0), ST_USER_EMPTY);
    struct reading *refused = serializable(0);
    struct reading *permitted = start(1, (struct pb_range_request){.serializable = true}, "good");
    while (cluster.count) {
        bool good = slice_is(buf_slice(&call_at(0)->token), "good");
        call_fail(call_at(0), good ? ST_FUTURE_REV : ST_PERMISSION_DENIED);
    }
    expect_failed(refused, ST_PERMISSION_DENIED, "etcdserver: permission denied");
    expect_mirror(permitted, 10);
    expect_mirror(start(2, (struct pb_range_request){.serializable = true}, NULL), 10);
}

static unsigned admissions_done;

static void on_admission(struct engine_op *op)
{
    (void)op;
    admissions_done++;
}

static struct engine_admission admission_of(const char *token)
{
    struct engine_admission admission = {
        .op = {.done = on_admission, .arena = &f.arena},
        .key = SLICE_LITERAL("/a/"),
        .range_end = SLICE_LITERAL("/a0"),
    };
    if (token)
        admission.op.principal.token = slice_from_text(token);
    else
        admission.op.principal = ENGINE_SERVER;
    return admission;
}

static void watches_are_admitted_by_the_cluster(void **state)
{
    (void)state;
    struct engine_admission early = admission_of("t"), own = admission_of(NULL),
                            good = admission_of("good"), bad = admission_of("bad");
    admissions_done = 0;
    atomic_store(&f.shared.state.synced, false);
    engine_watch_admit(&f.shard.base, &early);
    assert_int_equal(early.op.status, ST_NOT_SYNCED);
    assert_true(slice_has_prefix(early.op.text, SLICE_LITERAL("vigil: the mirror")));
    atomic_store(&f.shared.state.synced, true);
    engine_watch_admit(&f.shard.base, &own);
    assert_int_equal(own.op.status, ST_OK);
    run_ns(2 * NS_PER_S);
    while (cluster.count)
        call_fail(call_at(0), ST_USER_EMPTY);
    engine_watch_admit(&f.shard.base, &good);
    engine_watch_admit(&f.shard.base, &bad);
    assert_int_equal(admissions_done, 2);
    while (cluster.count) {
        bool permitted =
            slice_is(buf_slice(&call_at(0)->token), "good") && range_of(call_at(0)).key.len == 3;
        call_fail(call_at(0), permitted ? ST_FUTURE_REV : ST_PERMISSION_DENIED);
    }
    assert_int_equal(admissions_done, 4);
    assert_int_equal(good.op.status, ST_OK);
    assert_int_equal(bad.op.status, ST_PERMISSION_DENIED);
    assert_true(slice_is(bad.op.text, "etcdserver: permission denied"));
    assert_int_equal(
        mirror_watch_recheck(&f.shard.base, &good.op.principal, good.key, good.range_end), ST_OK);
    assert_int_equal(mirror_watch_recheck(&f.shard.base, &bad.op.principal, bad.key, bad.range_end),
                     ST_PERMISSION_DENIED);
    assert_int_equal(mirror_watch_recheck(&f.shard.base, &own.op.principal, own.key, own.range_end),
                     ST_OK);
    static const char key[GRANTS_RANGE_BYTES_MAX + 1] = "/a/";
    good.key = slice_of(key, sizeof(key)); /* only the cluster decides about it */
    good.range_end = SLICE_EMPTY;
    admissions_done = 0;
    engine_watch_admit(&f.shard.base, &good);
    assert_true(good.is_foreign);
    assert_int_equal(admissions_done, 0);
    struct pb_range_request first = range_of(call_at(0));
    assert_true(slice_equal(first.key, good.key) && !first.serializable && first.count_only);
    call_end(call_at(0), GRPC_UNAVAILABLE, "x"); /* the watch itself will find out */
    assert_int_equal(admissions_done, 1);
    assert_int_equal(good.op.status, ST_OK);
}

/* So that it shows what was written before; but it receives the events when the mirror has them. */
static void a_watch_with_a_start_revision_waits_for_the_mirror_only_a_while(void **state)
{
    (void)state;
    struct engine_admission from_now = admission_of(NULL), from_past = admission_of(NULL),
                            from_future = admission_of(NULL);
    from_past.start_revision = 1;
    from_future.start_revision = INT64_MAX;
    admissions_done = 0;
    mirror_state_wrote(&f.shared.state, atomic_load(&f.shared.state.mirrored) + 5);
    engine_watch_admit(&f.shard.base, &from_now);
    assert_int_equal(admissions_done, 0);
    engine_watch_admit(&f.shard.base, &from_past);
    engine_watch_admit(&f.shard.base, &from_future);
    assert_int_equal(admissions_done, 0);
    run_ns(2 * NS_PER_S);
    assert_int_equal(admissions_done, 2);
    assert_int_equal(from_past.op.status, ST_OK);
    assert_int_equal(from_future.op.status, ST_OK);
    mirror_has(atomic_load(&f.shared.state.written));
    run_ns(NS_PER_S);
    assert_int_equal(admissions_done, 3);
    assert_int_equal(from_now.op.status, ST_OK);
}

/* Answers all questions about rights: authentication is enabled, and the token "t" has the right to
 * /a/ or not. Other calls stay. */
static void answer_questions(bool permitted)
{
    for (size_t i = 0; i < cluster.count;) {
        struct upstream_call *call = call_at(i);
        if (range_of(call).revision != INT64_MAX)
            i++;
        else if (!call->token.len)
            call_fail(call, ST_USER_EMPTY);
        else
            call_fail(call, permitted && range_of(call).key.len > 1 ? ST_FUTURE_REV
                                                                    : ST_PERMISSION_DENIED);
    }
}

static void enable_authentication(void)
{
    run_ns(2 * NS_PER_S);
    answer_questions(true);
}

/* The permission that it was admitted with may have been taken back meanwhile. */
static void a_read_that_waits_long_for_a_probe_is_admitted_again(void **state)
{
    (void)state;
    struct reading *readings[2];
    enable_authentication();
    for (size_t i = 0; i < 2; i++) {
        bool permitted = i == 0;
        readings[i] = linearizable(i);
        answer_questions(true);
        turn();
        run_ns(2 * NS_PER_S);
        answer_questions(permitted); /* that authentication is enabled */
        assert_int_equal(cluster.count, 1);
        call_answer_revision(call_at(0), 10);
        assert_int_equal(readings[i]->done, 0);
        answer_questions(permitted);
    }
    expect_mirror(readings[0], 10);
    expect_failed(readings[1], ST_PERMISSION_DENIED, "etcdserver: permission denied");
}

static void a_read_that_waits_long_for_the_mirror_is_admitted_again(void **state)
{
    (void)state;
    enable_authentication();
    mirror_state_wrote(&f.shared.state, 12);
    for (size_t i = 0; i <= MIRROR_LATE_MAX; i++)
        serializable(i);
    answer_questions(true);
    run_ns(2 * NS_PER_S);
    answer_questions(true);
    assert_int_equal(cluster.count, MIRROR_LATE_MAX); /* one waits for the mirror */
    mirror_has(12);
    turn();
    struct reading *last = reading_at(MIRROR_LATE_MAX);
    assert_int_equal(last->done, 0);
    answer_questions(false);
    expect_failed(last, ST_PERMISSION_DENIED, "etcdserver: permission denied");
    for (size_t i = 0; i < MIRROR_LATE_MAX; i++) {
        answer_kvs(call_at(0), 12, 1, 1);
        engine_range_close(&reading_at(i)->range);
    }
}

static void a_watch_that_waits_long_for_the_mirror_is_admitted_again(void **state)
{
    (void)state;
    struct engine_admission kept = admission_of("t"), lost = admission_of("t");
    enable_authentication();
    for (int i = 0; i < 2; i++) {
        mirror_state_wrote(&f.shared.state, 12 + i);
        engine_watch_admit(&f.shard.base, i ? &lost : &kept);
        answer_questions(true);
        run_ns(NS_PER_S * 3 / 2);
        answer_questions(true);
        admissions_done = 0;
        mirror_has(12 + i);
        for (int turns = 0; turns < 3; turns++)
            run_ns(2 * NS_PER_MS);
        assert_int_equal(admissions_done, 0);
        answer_questions(i == 0);
        assert_int_equal(admissions_done, 1);
    }
    assert_int_equal(kept.op.status, ST_OK);
    assert_int_equal(lost.op.status, ST_PERMISSION_DENIED);
}

/* A revision that was never seen may never exist: reads of it must not keep others from being
 * forwarded. */
static void reads_of_future_revisions_take_no_place_of_late_reads(void **state)
{
    (void)state;
    enum { FUTURE = 2 * MIRROR_LATE_MAX };
    for (size_t i = 0; i < FUTURE; i++)
        start(i, (struct pb_range_request){.serializable = true, .revision = 1000}, "t");
    mirror_state_wrote(&f.shared.state, 12);
    struct reading *late = serializable(FUTURE);
    run_ns(WAIT_NS + 1);
    assert_int_equal(cluster.count, FUTURE + 1);
    assert_true(range_of(call_at(0)).serializable);
    assert_int_equal(range_of(call_at(FUTURE)).revision, 0);
    answer_kvs(call_at(FUTURE), 12, 1, 1);
    assert_int_equal(late->done, 1);
    engine_range_close(&late->range);
    for (size_t i = 0; i < FUTURE; i++) {
        call_fail(call_at(0), ST_FUTURE_REV);
        assert_int_equal(reading_at(i)->range.op.status, ST_FUTURE_REV);
    }
}

/* -- Giving up -- */

static void given_up(struct reading *r)
{
    assert_int_equal(r->done, 0);
    engine_give_up(&r->range.op);
    assert_int_equal(r->done, 0); /* not from within */
    engine_give_up(&r->range.op);
    turn();
    assert_int_equal(r->done, 1);
    assert_int_equal(r->range.op.status, ST_CANCELED);
}

static void reads_can_be_given_up_in_every_state(void **state)
{
    (void)state;
    struct reading *r = linearizable(0);
    given_up(r); /* before the probe is sent */
    r = linearizable(0);
    turn();
    given_up(r);
    call_answer_revision(call_at(0), 12);
    r = linearizable(0);
    turn();
    call_answer_revision(call_at(0), 12);
    given_up(r); /* it waits for the mirror */
    r = linearizable(0);
    turn();
    call_answer_revision(call_at(0), 12);
    run_ns(WAIT_NS + 1);
    assert_int_equal(cluster.count, 1);
    given_up(r);
    assert_int_equal(cluster.count, 0); /* the call is cancelled */
    f.compacted = 5;
    r = start(0, (struct pb_range_request){.revision = 4}, "t");
    answer_kvs(call_at(0), 10, 50000, 1);
    given_up(r); /* while it is scanned */
    run_ns(2 * NS_PER_S);
    while (cluster.count)
        call_fail(call_at(0), ST_USER_EMPTY);
    r = serializable(0);
    assert_true(cluster.count > 0);
    given_up(r); /* while the cluster decides about the caller */
    while (cluster.count)
        call_fail(call_at(0), ST_PERMISSION_DENIED);
}

/* -- Everything together -- */

/* The cluster's revision grows; answers come in any order; the mirror follows in steps. */
static void no_read_is_stale_or_forgotten(void **state)
{
    (void)state;
    struct random random;
    int64_t newest = 10, floor[READS] = {0};
    size_t started = 0, mirrored = 0;
    random_init(&random, 20);
    for (size_t steps = 0; steps < 20000; steps++) {
        switch (random_below(&random, 8)) {
        case 0:
            newest++;
            break;
        case 1:
        case 2:
            if (started < READS) {
                floor[started] = newest;
                if (random_chance(&random, 1, 4)) {
                    mirror_state_wrote(&f.shared.state, newest);
                    serializable(started++);
                } else {
                    linearizable(started++);
                }
            }
            break;
        case 3:
            mirror_has(random_between(&random, atomic_load(&f.shared.state.mirrored), newest));
            break;
        case 4:
            run_ns(random_between(&random, 0, WAIT_NS / 2));
            break;
        case 5:
            if (started)
                engine_give_up(&f.readings[random_below(&random, started)].range.op);
            break;
        default:
            if (cluster.count) {
                struct upstream_call *call = call_at(random_below(&random, cluster.count));
                if (range_of(call).revision == INT64_MAX)
                    call_fail(call, ST_FUTURE_REV);
                else
                    answer_kvs(call, newest, 1, 1);
            }
        }
        turn();
    }
    while (cluster.count)
        answer_kvs(call_at(0), newest, 1, 1), turn();
    mirror_has(newest);
    turn();
    for (size_t i = 0; i < started; i++) {
        struct reading *r = reading_at(i);
        assert_int_equal(r->done, 1);
        if (r->range.op.status == ST_OK)
            assert_true(r->range.op.revision >= floor[i]);
        mirrored += r->mirrored_at > 0;
        engine_range_close(&r->range);
    }
    assert_int_equal(started, READS);
    assert_true(mirrored > READS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_serializable_read_is_given_to_the_mirror_at_once),
        TEST(a_read_waits_for_the_writes_before_it),
        TEST(a_mirror_that_is_late_is_not_waited_for),
        TEST(a_late_mirror_does_not_send_all_reads_to_the_cluster),
        TEST(linearizable_reads_wait_for_the_revision_of_a_probe),
        TEST(linearizable_reads_need_a_mirror_that_follows),
        TEST(the_wait_begins_with_the_answer_of_the_probe),
        TEST(thousands_of_reads_cost_few_probes),
        TEST(a_failed_probe_fails_the_read_with_its_text),
        TEST(before_the_first_sync_reads_fail),
        TEST(before_a_member_has_answered_reads_name_the_endpoints),
        TEST(linearizable_reads_that_are_forwarded_need_no_mirror),
        TEST(callers_without_the_right_are_refused),
        TEST(watches_are_admitted_by_the_cluster),
        TEST(a_watch_with_a_start_revision_waits_for_the_mirror_only_a_while),
        TEST(a_read_that_waits_long_for_a_probe_is_admitted_again),
        TEST(a_read_that_waits_long_for_the_mirror_is_admitted_again),
        TEST(a_watch_that_waits_long_for_the_mirror_is_admitted_again),
        TEST(reads_of_future_revisions_take_no_place_of_late_reads),
        TEST(reads_can_be_given_up_in_every_state),
        TEST(no_read_is_stale_or_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
