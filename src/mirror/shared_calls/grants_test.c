#include "mirror/shared_calls/grants.h"

#include "mirror/link/fake_upstream_test.h"
#include "mirror/link/state.h"
#include "simulated/sim.h"

#define FRESH_NS NS_PER_S

struct reader {
    struct grants_waiter waiter;
    unsigned done;
    char text[64];
};

static struct {
    struct sim *sim;
    struct loop *loop;
    struct mirror_state state;
    struct grants *grants;
    unsigned changed;
} f;

static void on_done(struct grants_waiter *waiter)
{
    struct reader *reader = CONTAINER_OF(waiter, struct reader, waiter);
    reader->done++;
    snprintf(reader->text, sizeof(reader->text), "%.*s", SLICE_ARGS(waiter->text));
}

static void on_changed(void *ctx)
{
    (void)ctx;
    f.changed++;
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    cluster_begin();
    f.sim = sim_new(&SIM_OPTIONS_DEFAULT);
    assert_int_equal(network_loop_new(sim_network(f.sim), &f.loop), ST_OK);
    f.grants = grants_new(&(struct grants_options){
        .loop = f.loop, .state = &f.state, .fresh_ns = FRESH_NS, .changed = on_changed});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    grants_check(f.grants);
    grants_free(f.grants);
    assert_int_equal(cluster.count, 0);
    loop_free(f.loop);
    sim_free(f.sim);
    return 0;
}

static struct reader reader_of(const char *token, const char *key)
{
    return (struct reader){
        .waiter = {.done = on_done, .token = slice_from_text(token), .key = slice_from_text(key)}};
}

static void ask(struct reader *reader)
{
    grants_ask(f.grants, &reader->waiter);
}

static void run_ns(int64_t ns)
{
    sim_run_until(f.sim, clock_mono_ns(sim_clock(f.sim)) + ns);
    loop_turn(f.loop, 0);
}

static void expect(const struct reader *reader, enum status status)
{
    assert_int_equal(reader->done, 1);
    assert_int_equal(reader->waiter.status, status);
}

/* Answers all questions: readers of "all" may read everything, those of "some" keys that begin with
 * "a", and those of "none" nothing. */
static void answer_all(bool auth_enabled)
{
    while (cluster.count) {
        struct upstream_call *call = call_at(0);
        struct pb_range_request request = range_of(call);
        struct slice token = buf_slice(&call->token);
        assert_false(call->request.caller.is_self);
        bool connected = atomic_load(&f.state.connected);
        assert_int_equal(request.serializable, !connected);
        assert_int_equal(call->request.require_leader, connected);
        assert_int_equal(request.revision, INT64_MAX);
        if (!auth_enabled || slice_is(token, "all") ||
            (slice_is(token, "some") && request.key.ptr[0] == 'a'))
            call_fail(call, ST_FUTURE_REV);
        else if (token.len == 0)
            call_fail(call, ST_USER_EMPTY);
        else
            call_fail(call, slice_is(token, "old") ? ST_INVALID_AUTH_TOKEN : ST_PERMISSION_DENIED);
    }
    grants_check(f.grants);
}

/* A member that is cut off does not know of rights that were taken back meanwhile. */
static void the_question_is_linearizable_while_the_mirror_follows(void **state)
{
    (void)state;
    struct reader before = reader_of("x", "a"), after = reader_of("x", "a");
    atomic_store(&f.state.connected, true);
    ask(&before);
    assert_false(range_of(call_at(0)).serializable);
    answer_all(false);
    expect(&before, ST_OK);
    atomic_store(&f.state.connected, false);
    run_ns(2 * FRESH_NS);
    ask(&after);
    assert_true(range_of(call_at(0)).serializable);
    answer_all(false);
    expect(&after, ST_OK);
}

/* Without a quorum it has no answer. */
static void a_linearizable_question_becomes_serializable(void **state)
{
    (void)state;
    struct reader reader = reader_of("x", "a");
    atomic_store(&f.state.connected, true);
    ask(&reader);
    call_end(call_at(0), GRPC_DEADLINE_EXCEEDED, "too late");
    assert_false(range_of(call_at(0)).serializable); /* the mirror still follows */
    atomic_store(&f.state.connected, false);
    call_end(call_at(0), GRPC_UNAVAILABLE, "etcdserver: no leader");
    assert_true(range_of(call_at(0)).serializable);
    assert_int_equal(reader.done, 0);
    answer_all(false);
    expect(&reader, ST_OK);
}

static void without_authentication_one_question_is_enough(void **state)
{
    (void)state;
    struct reader first = reader_of("x", "a"), second = reader_of("", "b");
    ask(&first);
    ask(&second);
    assert_int_equal(cluster.count, 1);
    answer_all(false);
    expect(&first, ST_OK);
    expect(&second, ST_OK);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        struct reader more = reader_of(key, key);
        ask(&more);
        expect(&more, ST_OK);
    }
    assert_int_equal(cluster.started, 1);
    assert_false(grants_enabled(f.grants));
}

static void callers_get_their_own_rights(void **state)
{
    (void)state;
    struct reader all = reader_of("all", "b"), some = reader_of("some", "a1"),
                  other = reader_of("some", "b"), none = reader_of("none", "a1"),
                  old = reader_of("old", "a1"), nobody = reader_of("", "a1");
    struct reader *readers[] = {&all, &some, &other, &none, &old, &nobody};
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        ask(readers[i]);
    answer_all(true);
    expect(&all, ST_OK);
    expect(&some, ST_OK);
    expect(&other, ST_PERMISSION_DENIED);
    expect(&none, ST_PERMISSION_DENIED);
    assert_string_equal(none.text, "etcdserver: permission denied");
    expect(&old, ST_INVALID_AUTH_TOKEN);
    expect(&nobody, ST_USER_EMPTY);
    assert_string_equal(nobody.text, "etcdserver: user name is empty");
    assert_true(grants_enabled(f.grants));
}

/* The parts of a caller and a range do not run together. */
static void ids_do_not_collide(void **state)
{
    (void)state;
    struct reader first = reader_of("some", "a1"), second = reader_of("somea", "1");
    ask(&first);
    answer_all(true);
    ask(&second);
    assert_true(cluster.count > 0);
    answer_all(true);
    expect(&first, ST_OK);
    expect(&second, ST_PERMISSION_DENIED);
    struct reader range = reader_of("some", "a");
    range.waiter.range_end = SLICE_LITERAL("1");
    ask(&range);
    assert_int_equal(cluster.count, 1);
    answer_all(true);
}

static void a_permission_is_used_for_less_than_its_time(void **state)
{
    (void)state;
    struct reader other = reader_of("some", "b"), first = reader_of("some", "a1");
    ask(&other);
    answer_all(true);
    ask(&first);
    run_ns(FRESH_NS * 3 / 4); /* the question is as old as its sending */
    answer_all(true);
    struct reader second = reader_of("some", "a1");
    ask(&second);
    expect(&second, ST_OK);
    run_ns(FRESH_NS * 3 / 4 + 1);
    struct reader third = reader_of("some", "a1");
    ask(&third);
    assert_int_equal(third.done, 0);
    answer_all(true);
    expect(&third, ST_OK);
}

/* Or else no reader would ever get one. */
static void answers_of_a_slow_cluster_count(void **state)
{
    (void)state;
    struct reader first = reader_of("", "a1");
    ask(&first);
    run_ns(3 * FRESH_NS);
    answer_all(false);
    expect(&first, ST_OK);
}

static void busy_readers_do_not_wait_for_new_answers(void **state)
{
    (void)state;
    struct reader first = reader_of("some", "a1");
    ask(&first);
    answer_all(true);
    for (int i = 0; i < 40; i++) {
        run_ns(FRESH_NS / 8);
        struct reader next = reader_of("some", "a1");
        ask(&next);
        expect(&next, ST_OK);
        answer_all(true);
    }
    assert_true(cluster.started < 45);
}

static void a_refusal_is_confirmed_each_time(void **state)
{
    (void)state;
    struct reader first = reader_of("some", "b"), second = reader_of("some", "b");
    ask(&first);
    answer_all(true);
    expect(&first, ST_PERMISSION_DENIED);
    ask(&second);
    assert_int_equal(cluster.count, 1); /* and not whether it may read everything */
    call_fail(call_at(0), ST_FUTURE_REV);
    expect(&second, ST_OK);
}

/* Users or roles were changed through this server: neither what is known nor the answer of a
 * question that was sent before counts. */
static void a_change_of_rights_makes_answers_old(void **state)
{
    (void)state;
    struct reader before = reader_of("", "b"), known = reader_of("", "b"),
                  meanwhile = reader_of("", "b"), after = reader_of("", "b");
    ask(&before);
    answer_all(false);
    expect(&before, ST_OK);
    ask(&known);
    expect(&known, ST_OK);
    atomic_fetch_add(&f.state.rights_changes, 1);
    ask(&meanwhile);
    assert_int_equal(cluster.count, 1);
    atomic_fetch_add(&f.state.rights_changes, 1);
    ask(&after);
    call_fail(call_at(0), ST_FUTURE_REV); /* the answer of the time between the changes */
    assert_int_equal(meanwhile.done + after.done, 0);
    answer_all(true);
    expect(&meanwhile, ST_USER_EMPTY);
    expect(&after, ST_USER_EMPTY);
}

static void equal_questions_are_sent_once(void **state)
{
    (void)state;
    enum { READERS = 1000 };
    struct reader readers[READERS];
    struct reader first = reader_of("some", "b");
    ask(&first);
    answer_all(true);
    size_t before = cluster.started;
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = reader_of("some", "a1");
        ask(&readers[i]);
    }
    answer_all(true);
    for (size_t i = 0; i < READERS; i++)
        expect(&readers[i], ST_OK);
    assert_int_equal(cluster.started - before, 1);
    assert_int_equal(atomic_load(&f.state.grants_asked), cluster.started);
}

static void failures_are_passed_on_and_not_remembered(void **state)
{
    (void)state;
    struct reader first = reader_of("some", "a1"), second = reader_of("some", "a1");
    ask(&first);
    call_end(call_at(0), GRPC_UNAVAILABLE, "the cluster cannot be reached: refused");
    expect(&first, ST_AGAIN);
    assert_string_equal(first.text, "the cluster cannot be reached: refused");
    assert_int_equal(
        grants_known(f.grants, SLICE_LITERAL("some"), SLICE_LITERAL("a1"), SLICE_EMPTY), ST_OK);
    ask(&second);
    answer_all(true);
    expect(&second, ST_OK);
    cluster.start_fails = ST_NOMEM;
    struct reader third = reader_of("some", "a2");
    ask(&third);
    expect(&third, ST_NOMEM);
}

/* A mirror of a cluster without users is still of use. */
static void without_authentication_reads_continue_when_the_cluster_is_away(void **state)
{
    (void)state;
    struct reader first = reader_of("", "a1"), second = first, third = first, last = first;
    ask(&first);
    answer_all(false);
    run_ns(10 * FRESH_NS);
    ask(&second);
    assert_int_equal(second.done, 0);
    while (cluster.count)
        call_end(call_at(0), GRPC_UNAVAILABLE, "the cluster cannot be reached: refused");
    expect(&second, ST_OK);
    run_ns(10 * FRESH_NS);
    ask(&third); /* does not even wait */
    expect(&third, ST_OK);
    answer_all(true); /* it is back */
    ask(&last);
    answer_all(true);
    expect(&last, ST_USER_EMPTY);
}

/* The follower has a connection of its own: authentication may have been enabled since. */
static void while_the_cluster_is_away_news_are_not_shown(void **state)
{
    (void)state;
    struct reader first = reader_of("", "a1"), known = first, news = first, changed = first;
    ask(&first);
    atomic_store(&f.state.mirrored, 5);
    answer_all(false);
    atomic_store(&f.state.mirrored, 6); /* before the next question */
    run_ns(FRESH_NS);
    call_end(call_at(0), GRPC_UNAVAILABLE, "refused");
    ask(&known);
    expect(&known, ST_OK);
    run_ns(FRESH_NS);
    atomic_store(&f.state.mirrored, 7);
    ask(&news);
    assert_int_equal(news.done, 0);
    call_end(call_at(0), GRPC_UNAVAILABLE, "refused");
    expect(&news, ST_AGAIN);
    atomic_store(&f.state.mirrored, 6);
    atomic_fetch_add(&f.state.rights_changes, 1); /* it may just have been enabled from here */
    ask(&changed);
    call_end(call_at(0), GRPC_UNAVAILABLE, "refused");
    expect(&changed, ST_AGAIN);
}

/* Nothing changes in a cluster without a quorum. */
static void a_question_that_is_not_answered_in_time_stops_no_reader(void **state)
{
    (void)state;
    struct reader first = reader_of("", "a1"), second = first, third = first;
    atomic_store(&f.state.connected, true);
    ask(&first);
    answer_all(false);
    run_ns(FRESH_NS);
    ask(&second);
    call_end(call_at(0), GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    expect(&second, ST_OK);
    run_ns(FRESH_NS / 4);
    ask(&third);
    expect(&third, ST_OK);
    answer_all(false);
}

static void cancelled_readers_are_not_called(void **state)
{
    (void)state;
    struct reader first = reader_of("some", "a1"), second = reader_of("some", "a1");
    ask(&first);
    ask(&second);
    grants_cancel(&first.waiter);
    grants_cancel(&first.waiter);
    answer_all(true);
    assert_int_equal(first.done, 0);
    expect(&second, ST_OK);
}

/* -- Watches -- */

static enum status known(const char *token, const char *key)
{
    return grants_known(f.grants, slice_from_text(token), slice_from_text(key), SLICE_EMPTY);
}

static void a_lost_permission_is_noticed_within_its_time(void **state)
{
    (void)state;
    struct reader watch = reader_of("some", "a1");
    ask(&watch);
    answer_all(true);
    run_ns(FRESH_NS + 1); /* the tick, at which all watches are checked again */
    f.changed = 0;
    assert_int_equal(known("some", "a1"), ST_OK);
    while (cluster.count) {
        bool nobody = call_at(0)->token.len == 0;
        call_fail(call_at(0), nobody ? ST_USER_EMPTY : ST_PERMISSION_DENIED);
    }
    loop_turn(f.loop, 0);
    assert_int_equal(f.changed, 1);
    assert_int_equal(known("some", "a1"), ST_PERMISSION_DENIED);
    run_ns(FRESH_NS + 1);
    /* Too old for a refusal: the permission may have been given back. */
    assert_int_equal(known("some", "a1"), ST_AGAIN);
    answer_all(true);
    loop_turn(f.loop, 0);
    assert_int_equal(known("some", "a1"), ST_OK);
}

static void a_watch_whose_entry_was_forgotten_is_checked_too(void **state)
{
    (void)state;
    struct reader any = reader_of("some", "a1");
    ask(&any);
    answer_all(true);
    loop_turn(f.loop, 0);
    f.changed = 0;
    assert_int_equal(known("none", "a1"), ST_AGAIN);
    answer_all(true);
    loop_turn(f.loop, 0);
    assert_int_equal(f.changed, 1);
    assert_int_equal(known("none", "a1"), ST_PERMISSION_DENIED);
}

static void enabled_authentication_is_noticed_without_reads(void **state)
{
    (void)state;
    loop_turn(f.loop, 0);
    answer_all(false);
    assert_int_equal(known("", "a1"), ST_OK);
    assert_int_equal(f.changed, 0);
    run_ns(FRESH_NS + 1);
    answer_all(true);
    loop_turn(f.loop, 0);
    assert_int_equal(f.changed, 1);
    assert_int_equal(known("", "a1"), ST_AGAIN);
    answer_all(true);
    loop_turn(f.loop, 0);
    assert_int_equal(known("", "a1"), ST_USER_EMPTY);
    /* While it is enabled, watches are checked again and again. */
    f.changed = 0;
    run_ns(FRESH_NS + 1);
    assert_int_equal(f.changed, 1);
}

static void watches_keep_the_last_answer_while_the_cluster_is_away(void **state)
{
    (void)state;
    struct reader watch = reader_of("some", "a1");
    ask(&watch);
    answer_all(true);
    for (int i = 0; i < 10; i++) {
        run_ns(FRESH_NS + 1);
        assert_int_equal(known("some", "a1"), ST_OK);
        while (cluster.count)
            call_end(call_at(0), GRPC_UNAVAILABLE, "the cluster cannot be reached");
    }
    assert_true(grants_enabled(f.grants));
}

/* Answers whether authentication is enabled, and nothing else. */
static void answer_open_only(void)
{
    while (cluster.count) {
        bool nobody = call_at(0)->token.len == 0;
        call_end(call_at(0), nobody ? GRPC_INVALID_ARGUMENT : GRPC_RESOURCE_EXHAUSTED,
                 nobody ? "etcdserver: user name is empty" : "etcdserver: too many requests");
    }
}

static void an_old_answer_does_not_confirm_while_the_cluster_answers(void **state)
{
    (void)state;
    struct reader watch = reader_of("some", "a1"), all = reader_of("all", "b");
    ask(&watch);
    ask(&all);
    answer_all(true);
    for (int i = 0; i < GRANTS_CONFIRMED_S - 1; i++) {
        run_ns(FRESH_NS);
        assert_int_equal(known("some", "a1"), ST_OK);
        assert_int_equal(known("all", "b"), ST_OK);
        answer_open_only();
    }
    run_ns(FRESH_NS + 1);
    answer_open_only();
    assert_int_equal(known("some", "a1"), ST_AGAIN);
    assert_int_equal(known("all", "b"), ST_AGAIN);
    answer_all(true);
    assert_int_equal(known("some", "a1"), ST_OK);
    assert_int_equal(known("all", "b"), ST_OK);
}

/* -- Limits -- */

static bool is_asked_by(const char *token)
{
    for (size_t i = 0; i < cluster.count; i++)
        if (slice_is(buf_slice(&call_at(i)->token), token))
            return true;
    return false;
}

static void check_many(const char *token, int count)
{
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof(key), "a%d", i);
        enum status status = known(token, key);
        assert_true(status == ST_OK || status == ST_AGAIN);
    }
}

/* However many ranges another has. */
static void tokens_take_turns_in_asking(void **state)
{
    (void)state;
    struct reader any = reader_of("some", "a1");
    ask(&any);
    answer_all(true);
    check_many("some", 10 * GRANTS_QUESTIONS_MAX);
    assert_int_equal(known("none", "a1"), ST_AGAIN);
    for (int i = 0; i < 8 && !is_asked_by("none"); i++)
        call_fail(call_at(0), ST_FUTURE_REV);
    assert_true(is_asked_by("none"));
    answer_all(true);
    assert_int_equal(known("none", "a1"), ST_PERMISSION_DENIED);
}

/* Reads that wait have the first questions, but not only they. */
static void reads_do_not_keep_watches_from_being_checked(void **state)
{
    (void)state;
    enum { READERS = 2 * GRANTS_QUESTIONS_MAX };
    struct reader readers[READERS], any = reader_of("some", "b");
    char keys[READERS][16];
    ask(&any);
    answer_all(true);
    for (int i = 0; i < READERS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "a%d", i);
        readers[i] = reader_of("some", keys[i]);
        ask(&readers[i]);
    }
    assert_int_equal(known("none", "a1"), ST_AGAIN);
    for (int i = 0; i < 8 && !is_asked_by("none"); i++)
        call_fail(call_at(0), ST_FUTURE_REV);
    assert_true(is_asked_by("none"));
    answer_all(true);
}

static void a_token_cannot_take_the_room_of_others(void **state)
{
    (void)state;
    struct reader any = reader_of("some", "a1"), other = reader_of("other", "a1");
    ask(&any);
    answer_all(true);
    check_many("some", GRANTS_SHARE_MAX + 10);
    assert_int_equal(known("some", "z"), ST_AGAIN); /* no room, so it is not confirmed */
    assert_int_equal(known("none", "a1"), ST_AGAIN);
    ask(&other);
    assert_int_equal(other.done, 0); /* not refused */
    answer_all(true);
    expect(&other, ST_PERMISSION_DENIED);
    assert_int_equal(known("none", "a1"), ST_PERMISSION_DENIED);
}

/* The cluster decides about them with each call. */
static void very_long_ranges_are_not_decided_here(void **state)
{
    (void)state;
    static char key[GRANTS_RANGE_BYTES_MAX + 1];
    memset(key, 'a', sizeof(key));
    struct slice too_long = slice_of(key, sizeof(key)), longest = slice_of(key, sizeof(key) - 1);
    struct reader reader = reader_of("some", "");
    assert_true(grants_can_decide(f.grants, longest, SLICE_EMPTY));
    assert_false(grants_can_decide(f.grants, too_long, SLICE_EMPTY));
    loop_turn(f.loop, 0);
    answer_all(false);
    assert_true(grants_can_decide(f.grants, too_long, SLICE_EMPTY));
    run_ns(2 * FRESH_NS);
    reader.waiter.key = too_long; /* authentication is enabled meanwhile */
    ask(&reader);
    answer_all(true);
    expect(&reader, ST_AGAIN);
    assert_false(grants_can_decide(f.grants, longest, SLICE_LITERAL("b")));
}

/* The cluster has permitted it when it was created there. */
static void a_running_watch_of_a_very_long_range_is_checked(void **state)
{
    (void)state;
    static char key[1 << 20];
    memset(key, 'a', sizeof(key));
    struct slice token = SLICE_LITERAL("some"), range = slice_of(key, sizeof(key));
    loop_turn(f.loop, 0);
    answer_all(true);
    assert_int_equal(grants_known(f.grants, token, range, SLICE_EMPTY), ST_AGAIN);
    answer_all(true);
    assert_int_equal(grants_known(f.grants, token, range, SLICE_EMPTY), ST_OK);
    grants_check(f.grants);
    run_ns(FRESH_NS);
    f.changed = 0;
    assert_int_equal(grants_known(f.grants, token, range, SLICE_EMPTY), ST_OK);
    while (cluster.count)
        call_fail(call_at(0), ST_PERMISSION_DENIED);
    loop_turn(f.loop, 0);
    assert_true(f.changed > 0);
    assert_int_equal(grants_known(f.grants, token, range, SLICE_EMPTY), ST_PERMISSION_DENIED);
    /* A token has a share of the memory, however long the ranges are. */
    for (int i = 0; i < GRANTS_SHARE_BYTES_MAX / (1 << 20) + 3; i++) {
        memcpy(key, &i, sizeof(i));
        assert_int_equal(grants_known(f.grants, token, range, SLICE_EMPTY), ST_AGAIN);
        while (cluster.count)
            call_fail(call_at(0), ST_PERMISSION_DENIED);
        grants_check(f.grants);
    }
}

static void many_tokens_do_not_take_more_memory(void **state)
{
    (void)state;
    for (int i = 0; i < GRANTS_MAX / 2 + 100; i++) { /* each has two questions */
        char token[32];
        snprintf(token, sizeof(token), "token%d", i);
        struct reader reader = reader_of(token, "b");
        ask(&reader);
        while (cluster.count)
            call_fail(call_at(0), ST_PERMISSION_DENIED);
        expect(&reader, ST_PERMISSION_DENIED);
    }
    grants_check(f.grants);
}

static void long_keys_do_not_take_more_memory(void **state)
{
    (void)state;
    static char key[GRANTS_RANGE_BYTES_MAX];
    memset(key, 'a', sizeof(key));
    for (int i = 0; i < GRANTS_SHARE_BYTES_MAX / GRANTS_RANGE_BYTES_MAX + 10; i++) {
        struct reader reader = reader_of("some", "");
        memcpy(key, &i, sizeof(i));
        reader.waiter.key = slice_of(key, sizeof(key));
        ask(&reader);
        while (cluster.count)
            call_fail(call_at(0), ST_PERMISSION_DENIED);
        expect(&reader, ST_PERMISSION_DENIED);
    }
    grants_check(f.grants);
}

static void only_some_questions_are_under_way(void **state)
{
    (void)state;
    enum { READERS = GRANTS_SHARE_MAX + 10 };
    struct reader *readers = calloc(READERS, sizeof(*readers)), first = reader_of("some", "b");
    size_t refused = 0;
    ask(&first);
    answer_all(true);
    for (int i = 0; i < READERS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "a%d", i);
        readers[i] = reader_of("some", key);
        ask(&readers[i]);
        refused += readers[i].waiter.status == ST_REQUEST_TOO_MANY_REQUESTS;
        assert_true(cluster.count <= GRANTS_QUESTIONS_MAX);
    }
    assert_true(refused > 0 && refused <= 12);
    answer_all(true);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(readers[i].done, 1);
    free(readers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_question_is_linearizable_while_the_mirror_follows),
        TEST(a_linearizable_question_becomes_serializable),
        TEST(without_authentication_one_question_is_enough),
        TEST(callers_get_their_own_rights),
        TEST(ids_do_not_collide),
        TEST(a_permission_is_used_for_less_than_its_time),
        TEST(answers_of_a_slow_cluster_count),
        TEST(busy_readers_do_not_wait_for_new_answers),
        TEST(a_refusal_is_confirmed_each_time),
        TEST(a_change_of_rights_makes_answers_old),
        TEST(equal_questions_are_sent_once),
        TEST(failures_are_passed_on_and_not_remembered),
        TEST(without_authentication_reads_continue_when_the_cluster_is_away),
        TEST(while_the_cluster_is_away_news_are_not_shown),
        TEST(a_question_that_is_not_answered_in_time_stops_no_reader),
        TEST(cancelled_readers_are_not_called),
        TEST(a_lost_permission_is_noticed_within_its_time),
        TEST(a_watch_whose_entry_was_forgotten_is_checked_too),
        TEST(enabled_authentication_is_noticed_without_reads),
        TEST(watches_keep_the_last_answer_while_the_cluster_is_away),
        TEST(an_old_answer_does_not_confirm_while_the_cluster_answers),
        TEST(tokens_take_turns_in_asking),
        TEST(reads_do_not_keep_watches_from_being_checked),
        TEST(a_token_cannot_take_the_room_of_others),
        TEST(very_long_ranges_are_not_decided_here),
        TEST(a_running_watch_of_a_very_long_range_is_checked),
        TEST(many_tokens_do_not_take_more_memory),
        TEST(long_keys_do_not_take_more_memory),
        TEST(only_some_questions_are_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
