/* The Watch service over an engine in front of a cluster, which decides late who may watch what. */
#include "etcd/cluster/watch_admission.h"

#include "base/memory/budget.h"
#include "etcd/service/watch_calls_test.h"
#include "simulated/sim.h"

enum { ASKED_MAX = 64 };

static struct engine_ops ops; /* the fake's, and the functions below */

static struct {
    struct engine_admission *asked[ASKED_MAX];
    size_t count;
    bool at_once;           /* admissions are answered from within */
    enum status recheck;    /* the answer for running watches … */
    char recheck_token[64]; /* … the caller they were about … */
    size_t rechecks;        /* … and how many were asked about; reset by the test */
    struct sim *sim;        /* owned; most tests have none */
    struct loop *loop;      /* owned */
} cluster;

/* -- The engine -- */

static void answer(enum status status, const char *text)
{
    struct engine_admission *asked = cluster.asked[0];
    assert_true(cluster.count > 0);
    cluster.count--;
    memmove(cluster.asked, cluster.asked + 1, cluster.count * sizeof(*cluster.asked));
    asked->op.status = status;
    asked->op.text = slice_from_text(text);
    asked->op.done(&asked->op);
}

static void watch_admit(struct engine_op *op)
{
    assert_true(cluster.count < ASKED_MAX);
    cluster.asked[cluster.count++] = CONTAINER_OF(op, struct engine_admission, op);
    if (cluster.at_once)
        answer(ST_OK, "");
}

static enum status watch_recheck(struct engine_shard *shard, const struct auth_principal *principal,
                                 struct slice key, struct slice range_end)
{
    (void)shard;
    (void)range_end;
    cluster.rechecks++;
    snprintf(cluster.recheck_token, sizeof(cluster.recheck_token), "%.*s",
             SLICE_ARGS(principal->token));
    return key.ptr[0] == 'a' ? cluster.recheck : ST_OK;
}

static void forward_start(struct engine_shard *shard, struct engine_forward *forward)
{
    (void)shard;
    (void)forward;
}

static void prepare(struct engine *engine)
{
    ops = *engine->ops;
    ops.start[ENGINE_WATCH_ADMIT] = watch_admit;
    ops.watch_recheck = watch_recheck;
    ops.forward_start = forward_start;
    engine->ops = &ops;
}

/* -- The client -- */

static int set_up(void **state)
{
    memset(&cluster, 0, sizeof(cluster));
    peer_prepare = prepare;
    *state = peer_new(1, 100, 1 << 30);
    ((struct peer *)*state)->metadata = token;
    return 0;
}

static int tear_down(void **state)
{
    struct peer *p = *state;
    while (cluster.count)
        answer(ST_OK, "");
    peer_free(p);
    if (!cluster.sim)
        return 0;
    loop_free(cluster.loop);
    sim_free(cluster.sim);
    return 0;
}

/* -- Tests -- */

static void a_watch_is_created_when_the_cluster_has_permitted_it(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    assert_string_equal(responses(p, id, &at), "");
    assert_int_equal(cluster.count, 1);
    assert_true(slice_is(cluster.asked[0]->op.principal.token, "anna.1"));
    assert_true(slice_is(cluster.asked[0]->key, "a"));
    assert_true(etcd_api_busy(p->api));
    answer(ST_OK, "");
    assert_string_equal(responses(p, id, &at), "0 created;");
    assert_false(etcd_api_busy(p->api));
    cluster.at_once = true;
    for (int i = 1; i < 100; i++)
        create(p, id, "a", 0);
    assert_int_equal(strlen(responses(p, id, &at)), 9 * 10 + 90 * 11);
}

/* As etcd, which understands it as the first key. */
static void a_watch_without_a_key_is_about_the_first(void **state)
{
    struct peer *p = *state;
    create(p, open_watch(p), "", 0);
    assert_true(slice_equal(cluster.asked[0]->key, SLICE_LITERAL("\0")));
}

static void requests_keep_their_order(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p), other = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "b", 0);
    cancel(p, id, 0);
    create(p, id, "c", 0);
    create(p, other, "d", 0);
    assert_string_equal(responses(p, id, &at), "");
    assert_int_equal(cluster.count, 2); /* each call has its own order */
    answer(ST_OK, "");
    assert_string_equal(responses(p, id, &at), "0 created;");
    answer(ST_OK, "");
    at = 0;
    assert_string_equal(responses(p, other, &at), "0 created;");
    at = peer_stream(p, id)->body.len;
    answer(ST_PERMISSION_DENIED, "etcdserver: permission denied");
    assert_string_equal(responses(p, id, &at),
                        "-1 created canceled: rpc error: code = PermissionDenied desc = "
                        "etcdserver: permission denied;0 canceled;");
    answer(ST_OK, "");
    assert_string_equal(responses(p, id, &at), "1 created;");
}

static void refusals_have_the_texts_of_the_cluster(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "a", 0);
    answer(ST_INVALID_AUTH_TOKEN, "etcdserver: invalid auth token");
    answer(ST_USER_EMPTY, "");
    assert_string_equal(responses(p, id, &at),
                        "-1 created canceled: rpc error: code = Unauthenticated desc = "
                        "etcdserver: invalid auth token;"
                        "-1 created canceled: rpc error: code = InvalidArgument desc = "
                        "etcdserver: user name is empty;");
    assert_int_equal(peer_stream(p, id)->code, -1);
}

/* A client tries again after this code. */
static void a_cluster_that_cannot_decide_fails_the_call(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "b", 0);
    answer(ST_NOT_SYNCED, "");
    peer_turn(p);
    assert_fails(p, id, GRPC_UNAVAILABLE, "vigil: the mirror of the cluster is not complete yet");
    id = open_watch(p);
    create(p, id, "a", 0);
    answer(ST_AGAIN, "the cluster cannot be reached: refused");
    peer_turn(p);
    assert_fails(p, id, GRPC_UNAVAILABLE, "the cluster cannot be reached: refused");
    assert_int_equal(cluster.count, 0);
}

/* The watches of the call continue, although the mirror was too far behind to answer. */
static void a_question_for_progress_may_stay_without_an_answer(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    answer(ST_OK, "");
    assert_string_equal(responses(p, id, &at), "0 created;");
    ask_progress(p, id);
    answer(ST_AGAIN, "vigil: the mirror is behind the cluster");
    create(p, id, "b", 0);
    answer(ST_OK, "");
    assert_string_equal(responses(p, id, &at), "1 created;");
    assert_int_equal(peer_stream(p, id)->code, -1);
}

static void a_call_may_end_before_the_answer(void **state)
{
    struct peer *p = *state;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "b", 0);
    peer_reset(p, id);
    peer_turn(p);
    assert_true(etcd_api_busy(p->api));
    answer(ST_OK, "");
    assert_false(etcd_api_busy(p->api));
    assert_int_equal(cluster.count, 0);
}

static void what_waits_is_bounded(void **state)
{
    struct peer *p = *state;
    struct test_memory memory;
    static uint8_t message[64 << 10];
    struct slice taken;
    test_memory_init(&memory, 8 << 20);
    struct watch_admission *admission =
        watch_admission_new(p->api, memory.account, (struct watch_admission_owner){0});
    size_t queued = 0, before = account_held_bytes(memory.account);
    enum status status;
    while ((status = watch_admission_queue(admission, slice_of(message, sizeof(message)))) == ST_OK)
        message[0] = (uint8_t)++queued;
    assert_int_equal(status, ST_LIMIT);
    assert_true(queued * sizeof(message) <= WATCH_ADMISSION_QUEUE_BYTES_MAX);
    assert_true(queued * sizeof(message) > WATCH_ADMISSION_QUEUE_BYTES_MAX / 2);
    assert_true(account_held_bytes(memory.account) >= before + queued * sizeof(message));
    for (size_t i = 0; i < queued; i++) {
        assert_true(watch_admission_next(admission, &taken));
        assert_int_equal(taken.ptr[0], i);
    }
    assert_false(watch_admission_next(admission, &taken));
    assert_int_equal(watch_admission_queue(admission, slice_of(message, 1)), ST_OK);
    watch_admission_free(admission);
    assert_int_equal(account_held_bytes(memory.account), before);
    test_memory_fini(&memory);
}

/* A client that does not care for its window is cut off before that. */
static void a_client_gets_no_window_while_it_waits(void **state)
{
    struct peer *p = *state;
    static char key[32 << 10];
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    memset(key, 'k', sizeof(key) - 1);
    for (size_t sent = 0; sent <= WATCH_ADMISSION_QUEUE_BYTES_MAX && !peer_stream(p, id)->ended;
         sent += sizeof(key) - 1) {
        create(p, id, key, 0);
        peer_turn(p);
    }
    assert_true(peer_stream(p, id)->ended);
    answer(ST_OK, "");
    assert_false(etcd_api_busy(p->api));
}

static void lost_permissions_end_watches(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    cluster.at_once = true;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "b", 0);
    assert_string_equal(responses(p, id, &at), "0 created;1 created;");
    engine_auth_notify(p->shard);
    assert_string_equal(responses(p, id, &at), "");
    assert_string_equal(cluster.recheck_token, "anna.1");
    cluster.recheck = ST_PERMISSION_DENIED;
    engine_auth_notify(p->shard);
    assert_string_equal(responses(p, id, &at),
                        "0 canceled: rpc error: code = PermissionDenied desc = etcdserver: "
                        "permission denied;");
}

/* It logs in again and resumes, if it still may. */
static void a_token_that_has_expired_ends_the_call(void **state)
{
    struct peer *p = *state;
    cluster.at_once = true;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    peer_turn(p);
    cluster.recheck = ST_INVALID_AUTH_TOKEN;
    engine_auth_notify(p->shard);
    peer_turn(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_UNAVAILABLE);
    assert_string_equal(peer_stream(p, id)->text, "etcdserver: invalid auth token");
}

static void use_loop(struct peer *p)
{
    cluster.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(cluster.sim), &cluster.loop), ST_OK);
    etcd_api_set_loop(p->api, cluster.loop);
}

/* Clients resume after this code. */
static void permissions_that_are_not_confirmed_for_long_end_the_call(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    use_loop(p);
    cluster.at_once = true;
    uint32_t id = open_watch(p);
    create(p, id, "a", 0);
    create(p, id, "b", 0);
    assert_string_equal(responses(p, id, &at), "0 created;1 created;");
    for (int second = 0; second < 20; second++) {
        /* Confirmed once: the time begins again. */
        cluster.recheck = second == 4 ? ST_OK : ST_AGAIN;
        sim_run_until(cluster.sim, clock_mono_ns(sim_clock(cluster.sim)) + NS_PER_S);
        engine_auth_notify(p->shard);
        loop_turn(cluster.loop, 0);
        assert_string_equal(responses(p, id, &at), "");
        assert_int_equal(peer_stream(p, id)->ended, second >= 10);
    }
    assert_int_equal(peer_stream(p, id)->code, GRPC_UNAVAILABLE);
}

enum { VERY_MANY = 5000, IN_A_TURN = 1024 + 16 };

/* Creates them, each hundredth of a key that will be forbidden. */
static uint32_t watch_very_many(struct peer *p, size_t *at)
{
    uint32_t id = open_watch(p);
    for (int i = 0; i < VERY_MANY; i++) {
        create(p, id, i % 100 ? "b" : "a", 0);
        if (i % 50 == 49)
            responses(p, id, at);
    }
    return id;
}

/* A turn checks some watches. Returns whether anything was sent. */
static bool turn_of_checks(struct peer *p, uint32_t id, size_t *at)
{
    struct pb_watch_response r;
    cluster.rechecks = 0;
    loop_turn(cluster.loop, 0);
    peer_turn(p);
    assert_true(cluster.rechecks <= IN_A_TURN);
    size_t before = *at;
    bool sent = next_message(p, id, at, &pb_watch_response_table, &r);
    *at = before;
    return sent;
}

static void very_many_watches_are_checked_over_several_turns(void **state)
{
    struct peer *p = *state;
    size_t at = 0, other_at = 0, turns = 1, canceled = 0;
    struct pb_watch_response r;
    use_loop(p);
    cluster.at_once = true;
    uint32_t id = watch_very_many(p, &at), other = open_watch(p);
    create(p, other, "a", 0);
    assert_string_equal(responses(p, other, &other_at), "0 created;");
    cluster.recheck = ST_PERMISSION_DENIED;
    engine_auth_notify(p->shard);
    create(p, id, "c", 0); /* its answer must wait for the check */
    /* The table of watches shrinks meanwhile. */
    for (int64_t gone = 1; !turn_of_checks(p, id, &at) && turns < 100; turns++)
        for (int k = 0; k < 400; k++, gone++)
            cancel(p, id, gone % 100 ? gone : ++gone);
    assert_true(turns >= VERY_MANY / IN_A_TURN);
    while (next_message(p, id, &at, &pb_watch_response_table, &r))
        canceled += r.canceled && r.cancel_reason.len;
    for (; canceled < VERY_MANY / 100 && turns < 100; turns++)
        while (turn_of_checks(p, id, &at) && next_message(p, id, &at, &pb_watch_response_table, &r))
            canceled += r.canceled && r.cancel_reason.len;
    assert_int_equal(canceled, VERY_MANY / 100);
    while (turn_of_checks(p, other, &other_at) == false)
        assert_true(turns++ < 100);
    assert_true(next_message(p, other, &other_at, &pb_watch_response_table, &r) && r.canceled);
}

/* A second that passes counts as a change of permissions: the check continues, and ends. */
static void a_check_that_takes_longer_than_the_answers_count_is_completed(void **state)
{
    struct peer *p = *state;
    size_t at = 0, turns = 1;
    use_loop(p);
    cluster.at_once = true;
    uint32_t id = watch_very_many(p, &at);
    cluster.recheck = ST_PERMISSION_DENIED;
    for (engine_auth_notify(p->shard); !turn_of_checks(p, id, &at); turns++) {
        assert_true(turns < 100);
        engine_auth_notify(p->shard);
    }
    assert_true(turns >= VERY_MANY / IN_A_TURN);
}

static void a_call_may_end_while_it_is_checked(void **state)
{
    struct peer *p = *state;
    size_t at = 0;
    use_loop(p);
    cluster.at_once = true;
    uint32_t id = watch_very_many(p, &at);
    engine_auth_notify(p->shard);
    assert_false(turn_of_checks(p, id, &at));
    peer_reset(p, id);
    assert_false(turn_of_checks(p, id, &at));
    assert_int_equal(cluster.rechecks, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watch_is_created_when_the_cluster_has_permitted_it),
        TEST(a_watch_without_a_key_is_about_the_first),
        TEST(requests_keep_their_order),
        TEST(refusals_have_the_texts_of_the_cluster),
        TEST(a_cluster_that_cannot_decide_fails_the_call),
        TEST(a_question_for_progress_may_stay_without_an_answer),
        TEST(a_call_may_end_before_the_answer),
        TEST(what_waits_is_bounded),
        TEST(a_client_gets_no_window_while_it_waits),
        TEST(lost_permissions_end_watches),
        TEST(a_token_that_has_expired_ends_the_call),
        TEST(permissions_that_are_not_confirmed_for_long_end_the_call),
        TEST(very_many_watches_are_checked_over_several_turns),
        TEST(a_check_that_takes_longer_than_the_answers_count_is_completed),
        TEST(a_call_may_end_while_it_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
