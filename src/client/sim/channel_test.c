/* How a client chooses, keeps and leaves its connections, on a simulated network. */
#include "client/sim/sim_world_test.h"
#include "codec/pb/lock.pb.h"
#include "wire/h2/client_test.h"

static void begin(struct world *w, uint64_t seed)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.seed = seed;
    world_init(w, &options);
}

/* The member answers with SETTINGS, allows no stream, and every connection breaks after a few
 * bytes: so the connection becomes ready while a call waits. */
static void connections_that_break_soon_are_followed_by_pauses(void **state)
{
    (void)state;
    for (size_t members = 1; members <= WORLD_MEMBERS; members++) {
        struct world w;
        begin(&w, members);
        for (size_t i = 0; i < WORLD_MEMBERS; i++)
            w.members[i].wire.limits.h2.streams_max = 0;
        assert_true(world_start(&w, members));
        faults.kind = FAULT_EVERY;
        faults.at = 30;
        struct world_call *c = world_get(&w);
        world_run(&w, 10 * NS_PER_S);
        assert_int_equal(c->completions, 0);
        assert_true(faults.connects > 5);
        assert_true(faults.connects < 12 * members + 4);
        world_fini(&w);
    }
}

static void get_soon(struct world *w)
{
    int64_t begun = world_now(w);
    struct world_call *c = world_get(w);
    WORLD_RUN_UNTIL(w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
    assert_true(world_now(w) - begun < 100 * NS_PER_MS);
}

static void restart(struct world *w)
{
    etcd_member_stop(&w->members[0]);
    etcd_member_start(&w->members[0], sim_network(w->sim));
    world_run(w, 10 * NS_PER_MS);
}

/* It has answered a call or sent an event, or it has just lasted. */
static void connection_that_was_of_use_is_replaced_without_a_pause(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 3);
    w.options.backoff_min_ms = w.options.backoff_max_ms = 1000;
    assert_true(world_start(&w, 1));
    for (int i = 0; i < 5; i++) {
        get_soon(&w);
        restart(&w);
    }
    assert_int_equal(faults.connects, 5);
    struct world_watch *v = world_watch_from(&w, 1);
    for (size_t i = 1; i <= 5; i++) {
        world_change(&w, "w", 1);
        world_run(&w, 100 * NS_PER_MS);
        assert_int_equal(v->count, i);
        restart(&w);
    }
    world_run(&w, 1500 * NS_PER_MS);
    restart(&w);
    get_soon(&w);
    world_fini(&w);
}

static size_t connects_in_a_second(int64_t min_ms, int64_t max_ms)
{
    struct world w;
    begin(&w, 4);
    w.options.backoff_min_ms = min_ms;
    w.options.backoff_max_ms = max_ms;
    assert_true(world_start(&w, 1));
    etcd_member_stop(&w.members[0]);
    struct world_call *c = world_get(&w);
    world_run(&w, 1 * NS_PER_S);
    size_t connects = faults.connects;
    assert_int_equal(c->completions, 0);
    world_fini(&w);
    return connects;
}

static void back_off_of_zero_is_a_short_pause(void **state)
{
    (void)state;
    assert_in_range(connects_in_a_second(0, 0), 500, 1500);
    assert_in_range(connects_in_a_second(0, 3000), 5, 15);
    assert_in_range(connects_in_a_second(25, 3000), 3, 10);
}

/* The member of the watch; the other one is returned. */
static struct etcd_member *other_member(struct world *w)
{
    for (size_t i = 0; i < WORLD_MEMBERS; i++)
        if (w->members[i].watch_requests)
            return &w->members[1 - i];
    fail_msg("no member has a watch");
    return NULL;
}

static bool has_all(const struct world *w)
{
    return w->watches[0].count == world_expected(w, 1);
}

static void watch_leaves_an_endpoint_that_calls_avoid(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 5);
    assert_true(world_start(&w, WORLD_MEMBERS));
    struct world_watch *v = world_watch_from(&w, 1);
    world_change(&w, "w0", 1);
    WORLD_RUN_UNTIL(&w, has_all(&w));
    struct etcd_member *other = other_member(&w);
    w.members[other == &w.members[0]].answer = ETCD_CALLS_FAIL;
    struct world_call *c = world_get(&w);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
    world_run(&w, 100 * NS_PER_MS);
    assert_int_equal(other->watch_requests, 1);
    world_change(&w, "w1", 1);
    WORLD_RUN_UNTIL(&w, has_all(&w));
    world_check_events(&w, v, 1);
    assert_int_equal(v->count, 2);
    assert_int_equal(v->ended, 0);
    world_fini(&w);
}

/* Calls fail everywhere. The watch moves now and then, not with every attempt. */
static void watch_does_not_follow_every_attempt_of_calls(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 6);
    assert_true(world_start(&w, WORLD_MEMBERS));
    struct world_watch *v = world_watch_from(&w, 1);
    world_change(&w, "w0", 1);
    WORLD_RUN_UNTIL(&w, has_all(&w));
    w.members[0].answer = w.members[1].answer = ETCD_CALLS_FAIL;
    struct world_call *c = world_get(&w);
    world_run(&w, 30 * NS_PER_S);
    assert_int_equal(c->completions, 1);
    assert_true(w.cluster.ranges > 10);
    assert_in_range(w.members[0].watch_requests + w.members[1].watch_requests, 2, 5);
    world_change(&w, "w1", 1);
    WORLD_RUN_UNTIL(&w, has_all(&w));
    world_check_events(&w, v, 1);
    assert_int_equal(v->count, 2);
    world_fini(&w);
}

/* The first endpoint accepts the connection and says nothing, as a stopped process does. */
static void silent_endpoint_does_not_delay_the_others(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 29);
    assert_true(world_start(&w, WORLD_MEMBERS));
    faults.kind = FAULT_SILENCE;
    faults.at = 0;
    int64_t begun = world_now(&w);
    struct world_call *c = world_put(&w, 1);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
    assert_true(world_now(&w) - begun < 1 * NS_PER_S); /* connect_timeout_ms is 5 s */
    assert_int_equal(faults.connects, 2);
    get_soon(&w);
    world_run(&w, 10 * NS_PER_S);
    assert_int_equal(faults.connects, 2);
    world_fini(&w);
}

/* -- Members of little use -- */

/* Wherever the client connects first. */
static void begin_with(struct world *w, size_t member, enum etcd_answer answer)
{
    begin(w, 30);
    w->members[member].answer = answer;
    w->options.call_timeout_ms = 5000;
    assert_true(world_start(w, WORLD_MEMBERS));
}

static void calls_leave_a_learner(void **state)
{
    (void)state;
    for (size_t learner = 0; learner < WORLD_MEMBERS; learner++) {
        struct world w;
        begin_with(&w, learner, ETCD_IS_LEARNER);
        int64_t begun = world_now(&w);
        struct world_call *put = world_put(&w, 1);
        WORLD_RUN_UNTIL(&w, put->completions);
        assert_int_equal(put->code, VIGIL_OK);
        assert_int_equal(w.cluster.executed[1], 1);
        assert_true(world_now(&w) - begun < 100 * NS_PER_MS);
        struct world_watch *v = world_watch_from(&w, 1);
        world_change(&w, "w0", 1);
        WORLD_RUN_UNTIL(&w, v->count);
        assert_int_equal(v->ended, 0);
        world_fini(&w);
    }
}

static void calls_fail_if_there_are_only_learners(void **state)
{
    (void)state;
    for (size_t members = 1; members <= WORLD_MEMBERS; members++) {
        struct world w;
        begin(&w, 31);
        w.members[0].answer = w.members[1].answer = ETCD_IS_LEARNER;
        w.options.call_timeout_ms = 5000;
        assert_true(world_start(&w, members));
        struct world_call *put = world_put(&w, 1);
        WORLD_RUN_UNTIL(&w, put->completions);
        assert_int_equal(put->code, members == 1 ? VIGIL_ERROR_SERVER : VIGIL_ERROR_UNAVAILABLE);
        assert_int_equal(put->outcome, members == 1 ? VIGIL_REFUSED : VIGIL_NOT_SENT);
        assert_non_null(strstr(vigil_call_error(put->call)->text, "not supported for learner"));
        assert_true(faults.connects < 30);
        world_fini(&w);
    }
}

static void get_serializable(struct world *w)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text("k");
    request.serializable = 1;
    struct world_call *c = world_begin(w, vigil_range(w->client, &request), 0);
    WORLD_RUN_UNTIL(w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
}

/* It answers serializable reads, so the connection is not silent. */
static void calls_leave_a_member_without_a_quorum(void **state)
{
    (void)state;
    for (size_t member = 0; member < WORLD_MEMBERS; member++) {
        struct world w;
        begin_with(&w, member, ETCD_HAS_NO_LEADER);
        bool done = false;
        get_serializable(&w);
        for (unsigned i = 1; i <= 2 && !done; i++) {
            struct world_call *put = world_put(&w, i);
            world_run(&w, 2 * NS_PER_S);
            get_serializable(&w);
            WORLD_RUN_UNTIL(&w, put->completions);
            done = put->code == VIGIL_OK;
        }
        assert_true(done);
        world_fini(&w);
    }
}

static void slow_calls_do_not_blame_a_member_that_answers_others(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 32);
    assert_true(world_start(&w, WORLD_MEMBERS));
    get_soon(&w);
    world_run(&w, 2 * NS_PER_S);
    w.members[0].answer = w.members[1].answer = ETCD_IS_SILENT;
    struct world_call *slow = world_get(&w);
    world_run(&w, 1 * NS_PER_S);
    w.members[0].answer = w.members[1].answer = ETCD_ANSWERS;
    get_soon(&w);
    WORLD_RUN_UNTIL(&w, slow->completions);
    assert_int_equal(slow->code, VIGIL_ERROR_TIMEOUT);
    get_soon(&w);
    assert_int_equal(faults.connects, 1);
    world_fini(&w);
}

/* Nothing answers in time. Connections are left now and then, not with every call. */
static void short_timeouts_do_not_change_connections_often(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 33);
    w.members[0].answer = w.members[1].answer = ETCD_IS_SILENT;
    assert_true(world_start(&w, WORLD_MEMBERS));
    for (int i = 0; i < 200; i++) {
        vigil_call *call = vigil_get(w.client, vigil_text("k"));
        vigil_call_set_timeout(call, 20);
        assert_int_equal(vigil_call_start(call, NULL, NULL), VIGIL_OK);
        world_run(&w, 25 * NS_PER_MS);
        vigil_call_free(call);
    }
    assert_in_range(faults.connects, 3, 7);
    world_fini(&w);
}

static struct {
    vigil_client *client;
    vigil_watch *watch;
    unsigned begun, created;
} stubborn;

static int on_stubborn_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user);

static void begin_stubborn(void)
{
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text("w");
    options.require_leader = 1;
    options.created_notify = 1;
    stubborn.begun++;
    assert_int_equal(
        vigil_watch_new(stubborn.client, &options, on_stubborn_batch, NULL, &stubborn.watch),
        VIGIL_OK);
}

static int on_stubborn_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)user;
    stubborn.created += batch->what == VIGIL_WATCH_CREATED;
    if (batch->what != VIGIL_WATCH_ENDED)
        return VIGIL_WATCH_CONTINUE;
    assert_int_equal(batch->error->code, VIGIL_ERROR_NO_LEADER);
    vigil_watch_free(watch);
    begin_stubborn();
    return VIGIL_WATCH_CONTINUE;
}

/* Whenever it ends, the program begins it again at once. */
static void watch_that_requires_a_leader_leaves_a_member_without_one(void **state)
{
    (void)state;
    for (size_t healthy = 0; healthy <= WORLD_MEMBERS; healthy++) {
        struct world w;
        begin(&w, 34);
        for (size_t i = 0; i < WORLD_MEMBERS; i++)
            w.members[i].answer = i == healthy ? ETCD_ANSWERS : ETCD_HAS_NO_LEADER;
        assert_true(world_start(&w, WORLD_MEMBERS));
        memset(&stubborn, 0, sizeof(stubborn));
        stubborn.client = w.client;
        begin_stubborn();
        world_run(&w, 20 * NS_PER_S);
        assert_int_equal(stubborn.created, healthy < WORLD_MEMBERS);
        if (stubborn.created)
            assert_in_range(stubborn.begun, 1, 2);
        else
            assert_in_range(stubborn.begun, 10, 40); /* without a pause: hundreds of thousands */
        vigil_watch_free(stubborn.watch);
        world_fini(&w);
    }
}

/* -- Servers that allow no streams -- */

static void use_users(struct world *w)
{
    w->cluster.token = 1;
    w->options.user = "u";
    w->options.password = "p";
}

static void authentication_may_be_enabled_while_connected(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 9);
    use_users(&w);
    w.cluster.token = 0;
    assert_true(world_start(&w, 1));
    get_soon(&w);
    w.cluster.token = 3;
    get_soon(&w);
    struct world_call *c = world_put(&w, 1);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
    assert_int_equal(w.cluster.executed[1], 1);
    assert_int_equal(w.cluster.authentications, 1);
    world_fini(&w);
}

/* A client without a user is one that is known by its certificate. */
static void call_is_repeated_if_users_have_changed_meanwhile(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 9);
    assert_true(world_start(&w, 1));
    w.cluster.outdated = 1;
    struct world_call *c = world_put(&w, 1);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
    assert_int_equal(w.cluster.executed[1], 1);
    w.cluster.outdated = 100; /* but not for ever */
    c = world_put(&w, 2);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_ERROR_UNAUTHENTICATED);
    assert_in_range(w.cluster.outdated, 90, 99);
    world_fini(&w);
}

/* Whichever is tried first, with and without a user. */
static void endpoint_that_allows_no_streams_is_left(void **state)
{
    (void)state;
    for (size_t seed = 0; seed < 4 * WORLD_MEMBERS; seed++) {
        struct world w;
        begin(&w, seed);
        w.members[seed % WORLD_MEMBERS].wire.limits.h2.streams_max = 0;
        if (seed / WORLD_MEMBERS % 2)
            use_users(&w);
        assert_true(world_start(&w, WORLD_MEMBERS));
        get_soon(&w);
        struct world_watch *v = world_watch_from(&w, 1);
        struct world_call *c = world_put(&w, 1);
        world_change(&w, "w0", 1);
        WORLD_RUN_UNTIL(&w, has_all(&w) && c->completions);
        assert_int_equal(c->code, VIGIL_OK);
        assert_int_equal(v->ended, 0);
        assert_true(faults.connects <= 3);
        world_fini(&w);
    }
}

/* There is no other one, so the connection is kept. */
static void only_endpoint_may_allow_streams_later(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 7);
    w.members[0].wire.limits.h2.streams_max = 0;
    w.options.call_timeout_ms = 3000;
    assert_true(world_start(&w, 1));
    struct world_call *c = world_get(&w);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(c->completions, 0);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(c->code, VIGIL_ERROR_UNAVAILABLE);
    assert_non_null(strstr(vigil_call_error(c->call)->text, "the server allows no streams"));
    assert_int_equal(faults.connects, 1);
    world_fini(&w);
}

/* No endpoint allows streams: they are tried in turn, with pauses. */
static void endpoints_without_streams_are_not_tried_in_a_busy_loop(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 8);
    for (size_t i = 0; i < WORLD_MEMBERS; i++)
        w.members[i].wire.limits.h2.streams_max = 0;
    assert_true(world_start(&w, WORLD_MEMBERS));
    struct world_call *c = world_get(&w);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_ERROR_UNAVAILABLE);
    assert_in_range(faults.connects, 4, 60);
    world_fini(&w);
}

/* -- Calls whose answer may take any time -- */

static struct grpc_call *locking;
static bool refuses; /* streams of locks, as if they had not been processed */

static void take_lock(struct grpc_call *call, void *service, struct slice message)
{
    (void)service;
    (void)message;
    if (refuses)
        grpc_call_fail(call, ST_NO_LEADER); /* see refuse_streams */
    else
        locking = call;
}

static void forget_lock(struct grpc_call *call, void *service)
{
    (void)service;
    if (locking == call)
        locking = NULL;
}

static const struct grpc_method lock_method = {
    .path = "/v3lockpb.Lock/Lock", .on_message = take_lock, .on_end = forget_lock};

static void begin_with_locks(struct world *w, uint64_t seed)
{
    begin(w, seed);
    w->options.call_timeout_ms = 2000;
    for (size_t i = 0; i < WORLD_MEMBERS; i++)
        assert_int_equal(grpc_services_add(w->members[i].services, &lock_method, 1, &w->members[i]),
                         ST_OK);
}

static vigil_call *lock(struct world *w)
{
    return vigil_lock(w->client, vigil_text("l"), 1);
}

static int ignore_part(vigil_call *call, const vigil_snapshot_part *part, void *user)
{
    (void)call;
    (void)part;
    (void)user;
    return VIGIL_PART_CONTINUE;
}

static void long_calls_fail_if_no_server_is_reached(void **state)
{
    (void)state;
    struct world w;
    begin_with_locks(&w, 9);
    assert_true(world_start(&w, WORLD_MEMBERS));
    for (size_t i = 0; i < WORLD_MEMBERS; i++)
        etcd_member_stop(&w.members[i]);
    world_begin(&w, lock(&w), 0);
    world_begin(&w, vigil_campaign(w.client, vigil_text("e"), 1, vigil_text("me")), 0);
    world_begin(&w, vigil_snapshot(w.client, ignore_part, NULL), 0);
    world_begin(&w, lock(&w), 0);
    vigil_call *with_timeout = lock(&w);
    vigil_call_set_timeout(with_timeout, 500);
    struct world_call *hasty = world_begin(&w, with_timeout, 0);
    world_run(&w, 600 * NS_PER_MS);
    assert_int_equal(hasty->code, VIGIL_ERROR_UNAVAILABLE);
    world_run(&w, 1300 * NS_PER_MS);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(w.calls[i].completions, 0);
    world_run(&w, 200 * NS_PER_MS);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(w.calls[i].code, VIGIL_ERROR_UNAVAILABLE);
        assert_int_equal(w.calls[i].outcome, VIGIL_NOT_SENT);
    }
    world_fini(&w);
}

static void long_calls_wait_for_a_server_if_the_program_says_so(void **state)
{
    (void)state;
    struct world w;
    begin_with_locks(&w, 10);
    assert_true(world_start(&w, 1));
    etcd_member_stop(&w.members[0]);
    vigil_call *call = lock(&w);
    vigil_call_set_timeout(call, 0);
    struct world_call *c = world_begin(&w, call, 0);
    world_run(&w, 60 * NS_PER_S);
    assert_int_equal(c->completions, 0);
    etcd_member_start(&w.members[0], sim_network(w.sim));
    WORLD_RUN_UNTIL(&w, locking);
    assert_non_null(locking);
    world_fini(&w);
}

static void long_calls_have_no_timeout_once_they_are_sent(void **state)
{
    (void)state;
    struct world w;
    begin_with_locks(&w, 11);
    assert_true(world_start(&w, 1));
    struct world_call *c = world_begin(&w, lock(&w), 0);
    world_run(&w, 100 * NS_PER_S);
    assert_int_equal(c->completions, 0);
    assert_non_null(locking); /* no deadline was sent to the server either */
    etcd_send(locking, &pb_lock_response_table,
              &(struct pb_lock_response){.key = SLICE_LITERAL("l/1")});
    grpc_call_finish(locking);
    WORLD_RUN_UNTIL(&w, c->completions);
    assert_int_equal(c->code, VIGIL_OK);
    world_fini(&w);
}

static void refuse_streams(struct h2_frame frame, struct slice payload, struct buf *out)
{
    static const uint8_t code[] = {0, 0, 0, H2_REFUSED_STREAM};
    if (refuses && frame.type == H2_HEADERS)
        test_frame(out, H2_RST_STREAM, 0, frame.stream_id, slice_of(code, sizeof(code)));
    else
        test_frame(out, frame.type, frame.flags, frame.stream_id, payload);
}

/* Attempts that are refused soon do not prolong the time for reaching a server; one that has lasted
 * for long shows that there was a server. */
static void refused_long_calls_are_limited(void **state)
{
    (void)state;
    for (int lasts = 0; lasts < 2; lasts++) {
        struct world w;
        begin_with_locks(&w, 12);
        assert_true(world_start(&w, 1));
        faults.rewrite = refuse_streams;
        struct world_call *c = world_begin(&w, lock(&w), 0);
        if (lasts) {
            world_run(&w, 100 * NS_PER_S);
            grpc_call_fail(locking, ST_NO_LEADER);
        }
        refuses = true;
        WORLD_RUN_UNTIL(&w, c->call->attempts > 1);
        int64_t begun = world_now(&w);
        WORLD_RUN_UNTIL(&w, c->completions);
        assert_int_equal(c->code, VIGIL_ERROR_UNAVAILABLE);
        assert_int_equal(c->outcome, VIGIL_NOT_SENT);
        assert_in_range(world_now(&w) - begun, 1900 * NS_PER_MS, 2100 * NS_PER_MS);
        refuses = false;
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_that_break_soon_are_followed_by_pauses),
        cmocka_unit_test(connection_that_was_of_use_is_replaced_without_a_pause),
        cmocka_unit_test(back_off_of_zero_is_a_short_pause),
        cmocka_unit_test(watch_leaves_an_endpoint_that_calls_avoid),
        cmocka_unit_test(watch_does_not_follow_every_attempt_of_calls),
        cmocka_unit_test(silent_endpoint_does_not_delay_the_others),
        cmocka_unit_test(calls_leave_a_learner),
        cmocka_unit_test(calls_fail_if_there_are_only_learners),
        cmocka_unit_test(calls_leave_a_member_without_a_quorum),
        cmocka_unit_test(slow_calls_do_not_blame_a_member_that_answers_others),
        cmocka_unit_test(short_timeouts_do_not_change_connections_often),
        cmocka_unit_test(watch_that_requires_a_leader_leaves_a_member_without_one),
        cmocka_unit_test(authentication_may_be_enabled_while_connected),
        cmocka_unit_test(call_is_repeated_if_users_have_changed_meanwhile),
        cmocka_unit_test(endpoint_that_allows_no_streams_is_left),
        cmocka_unit_test(only_endpoint_may_allow_streams_later),
        cmocka_unit_test(endpoints_without_streams_are_not_tried_in_a_busy_loop),
        cmocka_unit_test(long_calls_fail_if_no_server_is_reached),
        cmocka_unit_test(long_calls_wait_for_a_server_if_the_program_says_so),
        cmocka_unit_test(long_calls_have_no_timeout_once_they_are_sent),
        cmocka_unit_test(refused_long_calls_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
