/* Locks and elections over a real connection and the fake engine, which answers late and in any
 * order: which call holds the lock, and what remains of calls whose clients disconnect. */
#include "codec/pb/election.pb.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

#include <stdio.h>

enum { CALLERS = 5, STEPS = 120, SEEDS = 60, LEASES = CALLERS + STEPS };

/* Runs until nothing changes any more. */
static void settle(struct peer *p)
{
    do {
        peer_turn(p);
    } while (fake_step(p->engine));
    peer_turn(p);
}

static int64_t grant(struct peer *p)
{
    struct pb_lease_grant_request request = {.ttl = 100};
    struct pb_lease_grant_response response;
    uint32_t call =
        peer_call(p, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request);
    settle(p);
    assert_answers(p, call, &pb_lease_grant_response_table, &response);
    return response.id;
}

static void revoke(struct peer *p, int64_t lease)
{
    struct pb_lease_revoke_request request = {.id = lease};
    peer_call(p, PB_LEASE_LEASE_REVOKE_PATH, &pb_lease_revoke_request_table, &request);
    settle(p);
}

static uint32_t start_lock(struct peer *p, int64_t lease)
{
    struct pb_lock_request request = {.name = SLICE_LITERAL("name"), .lease = lease};
    return peer_call(p, PB_LOCK_LOCK_PATH, &pb_lock_request_table, &request);
}

static uint32_t start_unlock(struct peer *p, int64_t lease)
{
    char key[64];
    snprintf(key, sizeof(key), "name/%llx", (unsigned long long)lease);
    struct pb_unlock_request request = {.key = slice_from_text(key)};
    return peer_call(p, PB_LOCK_UNLOCK_PATH, &pb_unlock_request_table, &request);
}

static uint32_t start_campaign(struct peer *p, int64_t lease, const char *value)
{
    struct pb_campaign_request request = {
        .name = SLICE_LITERAL("name"), .lease = lease, .value = slice_from_text(value)};
    return peer_call(p, PB_ELECTION_CAMPAIGN_PATH, &pb_campaign_request_table, &request);
}

static int64_t count_keys(struct peer *p)
{
    struct pb_range_request request = {
        .key = SLICE_LITERAL("name/"), .range_end = SLICE_LITERAL("name0"), .count_only = true};
    struct pb_range_response response;
    uint32_t call = peer_call(p, PB_KV_RANGE_PATH, &pb_range_request_table, &request);
    settle(p);
    assert_answers(p, call, &pb_range_response_table, &response);
    return response.count;
}

static bool answered(struct peer *p, uint32_t call)
{
    return peer_stream(p, call)->ended && peer_stream(p, call)->code == GRPC_OK;
}

static void locks_are_granted_one_after_another(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 50) {
        struct peer *p = peer_new(1, percent, PEER_WINDOW);
        int64_t leases[3];
        uint32_t calls[3];
        for (int i = 0; i < 3; i++) {
            leases[i] = grant(p);
            calls[i] = start_lock(p, leases[i]);
            settle(p);
        }
        for (int i = 0; i < 3; i++) {
            struct pb_lock_response response;
            assert_answers(p, calls[i], &pb_lock_response_table, &response);
            assert_int_equal(response.header->member_id, 9);
            for (int j = i + 1; j < 3; j++)
                assert_false(peer_stream(p, calls[j])->ended);
            start_unlock(p, leases[i]);
            settle(p);
        }
        assert_int_equal(count_keys(p), 0);
        peer_free(p);
    }
}

/* A client that reads at the revision of the answer must find no older key than that of the lock.
 */
static void lock_is_answered_at_a_revision_at_which_it_is_held(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct peer *p = peer_new(seed, 70, PEER_WINDOW);
        int64_t first = grant(p), second = grant(p);
        start_lock(p, first);
        settle(p);
        uint32_t lock = start_lock(p, second);
        uint32_t unlock = start_unlock(p, first);
        settle(p);
        struct pb_unlock_response released;
        struct pb_lock_response held;
        assert_answers(p, unlock, &pb_unlock_response_table, &released);
        int64_t free_since = released.header->revision;
        assert_answers(p, lock, &pb_lock_response_table, &held);
        assert_true(held.header->revision >= free_since);
        peer_free(p);
    }
}

static void expired_waiter_gets_an_error(void **state)
{
    (void)state;
    struct peer *p = peer_new(2, 50, PEER_WINDOW);
    int64_t first = grant(p), second = grant(p);
    start_lock(p, first);
    settle(p);
    uint32_t waits = start_lock(p, second);
    settle(p);
    revoke(p, second);
    assert_false(peer_stream(p, waits)->ended);
    revoke(p, first);
    assert_fails(p, waits, GRPC_UNKNOWN, "mutex: session is expired");
    peer_free(p);
}

/* An observer holds the leader's value and the encoded answer; both are charged to its account. */
static void observed_values_are_charged(void **state)
{
    (void)state;
    enum { OBSERVERS = 4, VALUE_BYTES = 20000 };
    static char value[VALUE_BYTES + 1];
    memset(value, 'v', VALUE_BYTES);
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    struct fake_options options = {.seed = 1};
    peer_init(p, &peer_config, &options, PEER_WINDOW, 1 << 20);
    start_campaign(p, grant(p), value);
    settle(p);
    size_t before = account_held_bytes(p->memory.account);
    struct pb_leader_request request = {.name = SLICE_LITERAL("name")};
    for (int i = 0; i < OBSERVERS; i++)
        peer_call(p, PB_ELECTION_OBSERVE_PATH, &pb_leader_request_table, &request);
    settle(p);
    assert_true(account_held_bytes(p->memory.account) >= before + 2 * OBSERVERS * VALUE_BYTES);
    peer_free(p);
}

static void engine_failure_is_reported(void **state)
{
    (void)state;
    /* First the claim fails, then the read after it. */
    for (int after = 0; after < 2; after++) {
        struct peer *p = peer_new(3, 0, PEER_WINDOW);
        int64_t lease = grant(p);
        uint32_t call = start_lock(p, lease);
        peer_turn(p);
        if (after)
            assert_true(fake_step(p->engine));
        fake_fail_next(p->engine, ST_TIMEOUT, SLICE_EMPTY);
        settle(p);
        assert_fails(p, call, GRPC_UNKNOWN, status_text(ST_TIMEOUT));
        assert_int_equal(count_keys(p), 0); /* the key was deleted again */
        peer_free(p);
    }
}

/* They are writes like others, with the same limit. */
static void request_past_the_limit_of_writes_is_refused(void **state)
{
    (void)state;
    static uint8_t name[64 * 1024];
    struct peer *p = peer_new(5, 100, PEER_WINDOW);
    memset(name, 'n', sizeof(name));
    struct pb_lock_request lock = {.name = slice_of(name, sizeof(name))};
    struct pb_unlock_request unlock = {.key = lock.name};
    struct pb_campaign_request campaign = {.name = lock.name};
    struct pb_leader_key leader = {.name = lock.name, .key = SLICE_LITERAL("k")};
    struct pb_resign_request resign = {.leader = &leader};
    uint32_t calls[] = {
        peer_call(p, PB_LOCK_LOCK_PATH, &pb_lock_request_table, &lock),
        peer_call(p, PB_LOCK_UNLOCK_PATH, &pb_unlock_request_table, &unlock),
        peer_call(p, PB_ELECTION_CAMPAIGN_PATH, &pb_campaign_request_table, &campaign),
        peer_call(p, PB_ELECTION_RESIGN_PATH, &pb_resign_request_table, &resign),
    };
    settle(p);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        assert_fails(p, calls[i], GRPC_UNKNOWN, status_text(ST_REQUEST_TOO_LARGE));
    peer_free(p);
}

static void campaign_of_the_leader_proclaims(void **state)
{
    (void)state;
    struct peer *p = peer_new(4, 0, PEER_WINDOW);
    int64_t lease = grant(p);
    struct pb_campaign_response first, again;
    uint32_t call = start_campaign(p, lease, "one");
    settle(p);
    assert_answers(p, call, &pb_campaign_response_table, &first);
    call = start_campaign(p, lease, "two");
    settle(p);
    assert_answers(p, call, &pb_campaign_response_table, &again);
    assert_int_equal(again.leader->rev, first.leader->rev);

    struct pb_leader_request ask = {.name = SLICE_LITERAL("name")};
    struct pb_leader_response leader;
    call = peer_call(p, PB_ELECTION_LEADER_PATH, &pb_leader_request_table, &ask);
    settle(p);
    assert_answers(p, call, &pb_leader_response_table, &leader);
    assert_true(slice_is(leader.kv->value, "two"));
    peer_free(p);
}

/* Clients lock, wait, disconnect and unlock at random. Two never hold the lock, and no key remains.
 * A client that locks again uses another lease, because its old key may still be withdrawn. */
struct lock_crowd {
    struct peer *p;
    int64_t leases[LEASES];
    size_t next_lease;
    int64_t lease[CALLERS];
    uint32_t call[CALLERS];
    bool campaigns;
};

static void come(struct lock_crowd *c, unsigned who)
{
    c->lease[who] = c->leases[c->next_lease++];
    c->call[who] = c->campaigns ? start_campaign(c->p, c->lease[who], "value")
                                : start_lock(c->p, c->lease[who]);
}

static void step(struct lock_crowd *c, unsigned who, unsigned what)
{
    if (!c->call[who]) {
        come(c, who);
    } else if (answered(c->p, c->call[who])) {
        start_unlock(c->p, c->lease[who]);
        c->call[who] = 0;
    } else if (what == 0) {
        peer_reset(c->p, c->call[who]);
        c->call[who] = 0;
    } else if (what < 5) {
        fake_step(c->p->engine);
    }
    peer_turn(c->p);
}

static int holders(const struct lock_crowd *c)
{
    int n = 0;
    for (int i = 0; i < CALLERS; i++)
        n += c->call[i] && answered(c->p, c->call[i]);
    return n;
}

static void clients_may_disconnect_at_any_point(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lock_crowd c = {.p = peer_new(seed, (unsigned)(seed % 3) * 40, PEER_WINDOW),
                               .campaigns = seed % 2};
        uint64_t random = seed * 0x9e3779b97f4a7c15u;
        for (int i = 0; i < LEASES; i++)
            c.leases[i] = grant(c.p);
        for (int i = 0; i < STEPS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            step(&c, (unsigned)(random >> 33) % CALLERS, (unsigned)(random >> 49) % 8);
            assert_in_range(holders(&c), 0, 1);
        }
        for (int i = 0; i < CALLERS; i++) {
            if (c.call[i] && !answered(c.p, c.call[i]))
                peer_reset(c.p, c.call[i]);
            else if (c.call[i])
                start_unlock(c.p, c.lease[i]);
        }
        settle(c.p);
        assert_int_equal(count_keys(c.p), 0);
        peer_free(c.p);
    }
}

static void observer_sees_each_leader(void **state)
{
    (void)state;
    struct peer *p = peer_new(5, 50, PEER_WINDOW);
    struct pb_leader_request ask = {.name = SLICE_LITERAL("name")};
    uint32_t observer = peer_call(p, PB_ELECTION_OBSERVE_PATH, &pb_leader_request_table, &ask);
    settle(p);
    static const char *const values[] = {"one", "two", "three"};
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct pb_leader_response leader;
        assert_false(next_message(p, observer, &at, &pb_leader_response_table, &leader));
        int64_t lease = grant(p);
        start_campaign(p, lease, values[i]);
        settle(p);
        assert_true(next_message(p, observer, &at, &pb_leader_response_table, &leader));
        assert_true(slice_is(leader.kv->value, values[i]));
        revoke(p, lease);
    }
    peer_reset(p, observer);
    peer_free(p);
}

/* A key that is equal to the prefix can lead like any other; after it, the call waits for the whole
 * prefix. */
static void observer_waits_for_the_prefix_after_its_bare_key(void **state)
{
    (void)state;
    struct peer *p = peer_new(8, 50, PEER_WINDOW);
    struct pb_leader_request ask = {.name = SLICE_LITERAL("name")};
    struct pb_leader_response leader;
    struct pb_put_request put = {.key = SLICE_LITERAL("name/")};
    struct pb_delete_range_request removal = {.key = put.key};
    size_t at = 0;
    peer_call(p, PB_KV_PUT_PATH, &pb_put_request_table, &put);
    settle(p);
    uint32_t observer = peer_call(p, PB_ELECTION_OBSERVE_PATH, &pb_leader_request_table, &ask);
    settle(p);
    assert_true(next_message(p, observer, &at, &pb_leader_response_table, &leader));
    peer_call(p, PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table, &removal);
    settle(p);
    start_campaign(p, grant(p), "next");
    settle(p);
    assert_true(next_message(p, observer, &at, &pb_leader_response_table, &leader));
    assert_true(slice_is(leader.kv->value, "next"));
    peer_reset(p, observer);
    peer_free(p);
}

/* -- Compaction -- */

/* Opens the window of a call. Until then its watch is not read. */
static void open_call(struct peer *p, uint32_t call)
{
    peer_open_window(p, call, 1 << 20);
    settle(p);
}

static void put(struct peer *p, int64_t lease, const char *value)
{
    char key[64];
    snprintf(key, sizeof(key), "name/%llx", (unsigned long long)lease);
    struct pb_put_request request = {
        .key = slice_from_text(key), .value = slice_from_text(value), .lease = lease};
    open_call(p, peer_call(p, PB_KV_PUT_PATH, &pb_put_request_table, &request));
}

/* Changes the key of the lease a few times, then compacts to the newest revision. */
static void compact_past(struct peer *p, int64_t lease, const char *newest)
{
    struct pb_put_response done;
    for (int i = 0; i < 5; i++)
        put(p, lease, "passing");
    put(p, lease, newest);
    struct pb_put_request mark = {.key = SLICE_LITERAL("mark")};
    uint32_t call = peer_call(p, PB_KV_PUT_PATH, &pb_put_request_table, &mark);
    open_call(p, call);
    assert_answers(p, call, &pb_put_response_table, &done);
    struct pb_compaction_request request = {.revision = done.header->revision};
    struct pb_compaction_response compacted;
    call = peer_call(p, PB_KV_COMPACT_PATH, &pb_compaction_request_table, &request);
    open_call(p, call);
    assert_answers(p, call, &pb_compaction_response_table, &compacted);
}

static int64_t grant_closed(struct peer *p)
{
    struct pb_lease_grant_request request = {.ttl = 100};
    struct pb_lease_grant_response response;
    uint32_t call =
        peer_call(p, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request);
    open_call(p, call);
    assert_answers(p, call, &pb_lease_grant_response_table, &response);
    return response.id;
}

static void waiter_continues_after_a_compaction(void **state)
{
    (void)state;
    for (int campaigns = 0; campaigns < 2; campaigns++) {
        struct peer *p = peer_new(6, 50, 0);
        int64_t first = grant_closed(p), second = grant_closed(p);
        open_call(p, start_campaign(p, first, "first"));
        uint32_t waits = campaigns ? start_campaign(p, second, "second") : start_lock(p, second);
        settle(p);
        compact_past(p, first, "newest");
        open_call(p, waits);
        assert_false(peer_stream(p, waits)->ended);
        open_call(p, start_unlock(p, first));
        assert_true(answered(p, waits));
        peer_free(p);
    }
}

static void observer_continues_after_a_compaction(void **state)
{
    (void)state;
    struct peer *p = peer_new(7, 50, 0);
    struct pb_leader_request ask = {.name = SLICE_LITERAL("name")};
    struct pb_leader_response leader;
    size_t at = 0;
    int64_t lease = grant_closed(p);
    open_call(p, start_campaign(p, lease, "first"));
    uint32_t observer = peer_call(p, PB_ELECTION_OBSERVE_PATH, &pb_leader_request_table, &ask);
    settle(p);
    compact_past(p, lease, "newest");
    open_call(p, observer);
    static const char *const values[] = {"first", "newest", "last"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        if (i == 2)
            put(p, lease, values[i]);
        assert_true(next_message(p, observer, &at, &pb_leader_response_table, &leader));
        assert_true(slice_is(leader.kv->value, values[i]));
    }
    peer_reset(p, observer);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_are_granted_one_after_another),
        cmocka_unit_test(lock_is_answered_at_a_revision_at_which_it_is_held),
        cmocka_unit_test(expired_waiter_gets_an_error),
        cmocka_unit_test(observed_values_are_charged),
        cmocka_unit_test(engine_failure_is_reported),
        cmocka_unit_test(request_past_the_limit_of_writes_is_refused),
        cmocka_unit_test(campaign_of_the_leader_proclaims),
        cmocka_unit_test(clients_may_disconnect_at_any_point),
        cmocka_unit_test(observer_sees_each_leader),
        cmocka_unit_test(observer_waits_for_the_prefix_after_its_bare_key),
        cmocka_unit_test(waiter_continues_after_a_compaction),
        cmocka_unit_test(observer_continues_after_a_compaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
