/* The leases of the local engine on a simulated disk, in one thread and with a simulated clock. */
#include "engine/local/state/lease.h"

#include "base/clock.h"
#include "store/fixture_test.h"

enum { TTL_MIN_S = 2 };

struct bed {
    struct fixture f;
    struct local_lease lease;
    struct auth_state auth;
    struct metric_set *metrics;
    int64_t now_ns;
};

static enum status take_row(void *ctx, const struct row *row)
{
    struct bed *bed = ctx;
    return row->table == ROW_LEASE ? local_lease_load_row(&bed->lease, row) : ST_OK;
}

static void start(struct bed *bed)
{
    auth_state_init(&bed->auth);
    auth_state_open(&bed->auth);
    local_lease_init(&bed->lease, &bed->auth, TTL_MIN_S, 1);
    bed->lease.counts = local_metrics_join(bed->metrics);
    bed->f.row_seen = take_row;
    bed->f.row_ctx = bed;
    fixture_start(&bed->f);
    local_lease_start(&bed->lease, bed->f.store, bed->now_ns);
}

static void stop(struct bed *bed)
{
    local_lease_check(&bed->lease);
    fixture_stop(&bed->f);
    local_lease_fini(&bed->lease);
    auth_state_fini(&bed->auth);
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    fixture_init(&bed->f);
    bed->now_ns = 1000 * NS_PER_S;
    bed->metrics = local_metrics_new();
    start(bed);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    stop(bed);
    fixture_fini(&bed->f);
    metric_set_free(bed->metrics);
    free(bed);
    return 0;
}

/* -- Calls -- */

static enum status call(struct bed *bed, struct engine_lease *op, enum engine_kind kind)
{
    op->op.arena = &bed->f.arena;
    op->op.kind = (uint8_t)kind;
    bool writes = kind == ENGINE_LEASE_GRANT || kind == ENGINE_LEASE_REVOKE;
    if (writes)
        local_lease_execute(&bed->lease, &op->op, bed->now_ns);
    else
        assert_true(local_lease_read(&bed->lease, &op->op, bed->now_ns));
    return op->op.status;
}

static void grant(struct bed *bed, int64_t id, int64_t ttl_s)
{
    struct engine_lease op = {.id = id, .ttl_s = ttl_s};
    assert_int_equal(call(bed, &op, ENGINE_LEASE_GRANT), ST_OK);
}

/* Grants a lease that ends at a time of the real clock, this far from now. */
static void grant_until(struct bed *bed, int64_t id, int64_t left_ns)
{
    struct engine_lease op = {
        .id = id, .ttl_s = 1000, .until_ns = clock_real_ns(clock_system()) + left_ns};
    assert_int_equal(call(bed, &op, ENGINE_LEASE_GRANT), ST_OK);
}

static int64_t revoke(struct bed *bed, int64_t id)
{
    struct engine_lease op = {.id = id};
    assert_int_equal(call(bed, &op, ENGINE_LEASE_REVOKE), ST_OK);
    return op.op.revision;
}

static int64_t put(struct bed *bed, const char *key, int64_t lease)
{
    struct pb_put_request request = {
        .key = slice_from_text(key), .value = SLICE_LITERAL("v"), .lease = lease};
    struct kv_answer answer;
    assert_int_equal(applier_put(store_applier(bed->f.store), &request, &bed->f.arena, &answer),
                     ST_OK);
    return answer.revision;
}

/* "left/granted: key key …" */
static const char *show(struct bed *bed, int64_t id)
{
    static char text[256];
    struct engine_lease op = {.id = id, .want_keys = true};
    assert_int_equal(call(bed, &op, ENGINE_LEASE_TIME_TO_LIVE), ST_OK);
    snprintf(text, sizeof(text), "%lld/%lld:", (long long)op.ttl_s, (long long)op.granted_ttl_s);
    for (size_t i = 0; i < op.key_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %.*s", (int)op.keys[i].len,
                 (const char *)op.keys[i].ptr);
    return text;
}

static int64_t renew(struct bed *bed, int64_t id)
{
    struct engine_renewal item = {.id = id, .ttl_s = -7};
    struct engine_renewals op = {
        .op.kind = ENGINE_LEASE_RENEW, .items = &item, .count = 1, .asked_ns = bed->now_ns};
    if (!local_lease_read(&bed->lease, &op.op, bed->now_ns))
        local_lease_execute(&bed->lease, &op.op, bed->now_ns);
    assert_int_equal(op.op.status, ST_OK);
    return item.ttl_s;
}

static void wait(struct bed *bed, int64_t ms)
{
    bed->now_ns += ms * NS_PER_MS;
}

static void expire(struct bed *bed)
{
    assert_int_equal(local_lease_expire(&bed->lease, bed->now_ns, SIZE_MAX), ST_OK);
    fixture_commit(&bed->f);
}

/* -- Tests -- */

static void a_revoked_lease_deletes_its_keys_sorted_and_at_one_revision(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 60);
    assert_int_equal(put(bed, "c", 5), 2);
    put(bed, "a", 5);
    put(bed, "b", 5);
    put(bed, "free", 0);
    assert_string_equal(show(bed, 5), "60/60: a b c");
    assert_int_equal(revoke(bed, 5), 6);
    fixture_commit(&bed->f);
    assert_int_equal(store_view(bed->f.store)->revision, 6);
    assert_int_equal(store_view(bed->f.store)->root.live_keys, 1);
    assert_string_equal(show(bed, 5), "-1/0:");
    /* A lease without keys takes no revision. */
    grant(bed, 6, 60);
    assert_int_equal(revoke(bed, 6), 6);
}

static void keys_detach_when_they_are_put_without_the_lease_or_deleted(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 60);
    grant(bed, 6, 60);
    put(bed, "a", 5);
    put(bed, "b", 5);
    put(bed, "c", 5);
    put(bed, "d", 5);
    put(bed, "a", 0);
    put(bed, "b", 6);
    fixture_delete(&bed->f, "c", "");
    assert_string_equal(show(bed, 5), "60/60: d");
    assert_string_equal(show(bed, 6), "60/60: b");
    struct pb_put_request keep = {
        .key = SLICE_LITERAL("d"), .value = SLICE_LITERAL("2"), .ignore_lease = true};
    struct kv_answer answer;
    assert_int_equal(applier_put(store_applier(bed->f.store), &keep, &bed->f.arena, &answer),
                     ST_OK);
    assert_string_equal(show(bed, 5), "60/60: d");
}

static void leases_and_keys_exist_after_a_restart_with_their_full_ttl(void **state)
{
    struct bed *bed = *state;
    for (int checkpointed = 0; checkpointed < 2; checkpointed++) {
        int64_t id = 5 + checkpointed;
        grant(bed, id, 60);
        grant(bed, 10, 60);
        put(bed, checkpointed ? "b" : "a", id);
        put(bed, "moved", 10);
        put(bed, "moved", id);
        revoke(bed, 10);
        wait(bed, 50 * 1000);
        if (checkpointed)
            fixture_settle(&bed->f);
        fixture_commit(&bed->f);
        stop(bed);
        start(bed);
        assert_string_equal(show(bed, id), checkpointed ? "60/60: b moved" : "60/60: a moved");
        assert_string_equal(show(bed, 10), "-1/0:");
    }
    assert_string_equal(show(bed, 5), "60/60: a");
    assert_int_equal(bed->lease.leases, 2);
    assert_int_equal(bed->lease.attached, 3);
}

static void expired_leases_are_revoked_and_counted(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 1); /* which becomes two */
    put(bed, "a", 5);
    put(bed, "b", 5);
    wait(bed, 1999);
    expire(bed);
    assert_string_equal(show(bed, 5), "0/2: a b");
    wait(bed, 1);
    assert_true(local_lease_next_ns(&bed->lease) <= bed->now_ns);
    expire(bed);
    assert_string_equal(show(bed, 5), "-1/0:");
    assert_int_equal(store_view(bed->f.store)->revision, 4);
    assert_int_equal(store_view(bed->f.store)->root.live_keys, 0);
    assert_int_equal(metric_sum(bed->metrics, LOCAL_LEASES_EXPIRED), 1);
    assert_int_equal(metric_sum(bed->metrics, LOCAL_LEASES_REVOKED), 1);
    assert_true(local_lease_next_ns(&bed->lease) == CLOCK_NEVER);
}

/* As in etcd: a late renewal is answered once the keys are deleted, not before. */
static void a_renewal_that_comes_too_late_finds_the_lease_revoked(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 10);
    put(bed, "a", 5);
    wait(bed, 9999);
    assert_int_equal(renew(bed, 5), 10);
    wait(bed, 9999);
    assert_int_equal(renew(bed, 5), 10);
    wait(bed, 10000);
    assert_int_equal(renew(bed, 5), 0);
    fixture_commit(&bed->f);
    assert_int_equal(store_view(bed->f.store)->root.live_keys, 0);
    assert_int_equal(renew(bed, 5), 0);
    assert_int_equal(metric_sum(bed->metrics, LOCAL_LEASES_RENEWED), 2);
}

/* A put with an expired lease that is not revoked yet succeeds; the key is deleted with the lease.
 */
static void key_put_on_an_expired_lease_is_deleted_with_it(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 10);
    wait(bed, 11000);
    put(bed, "late", 5);
    expire(bed);
    assert_int_equal(store_view(bed->f.store)->root.live_keys, 0);
}

static void many_expired_leases_are_revoked_in_limited_batches(void **state)
{
    enum { LEASES = 1000 };
    struct bed *bed = *state;
    for (int64_t id = 1; id <= LEASES; id++)
        grant(bed, id, 10);
    fixture_commit(&bed->f);
    wait(bed, 10000);
    unsigned groups = 0;
    for (uint64_t before = LEASES; before; groups++) {
        expire(bed);
        uint64_t left = bed->lease.leases;
        assert_true(left < before && before - left <= 256);
        before = left;
    }
    assert_true(groups >= 4);
    grant(bed, 1, 10);
    grant(bed, 2, 10);
    wait(bed, 10000);
    /* The bytes of a group are limited, too. */
    assert_int_equal(local_lease_expire(&bed->lease, bed->now_ns, 1), ST_OK);
    assert_int_equal(bed->lease.leases, 2);
}

static void time_while_the_server_was_stopped_does_not_count(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 10);
    grant(bed, 6, 10);
    fixture_commit(&bed->f);
    wait(bed, 9000);
    int64_t until_ns = local_lease_next_ns(&bed->lease);
    wait(bed, 60 * 1000);
    local_lease_away(&bed->lease, until_ns - NS_PER_S, bed->now_ns);
    assert_string_equal(show(bed, 5), "1/10:");
    expire(bed);
    assert_int_equal(bed->lease.leases, 2);
    assert_int_equal(local_lease_next_ns(&bed->lease), bed->now_ns + NS_PER_S);
    assert_int_equal(renew(bed, 5), 10); /* it waited in a socket */
    wait(bed, 1000);
    expire(bed);
    assert_string_equal(show(bed, 6), "-1/0:");
    assert_string_equal(show(bed, 5), "9/10:");
    /* The time never decreases. */
    local_lease_away(&bed->lease, 0, bed->now_ns);
    assert_string_equal(show(bed, 5), "9/10:");
    wait(bed, 9000);
    expire(bed);
    assert_int_equal(bed->lease.leases, 0);
}

static void a_renewal_that_waited_for_the_writer_is_not_late(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 10);
    struct engine_renewal item = {.id = 5};
    struct engine_renewals op = {.op.kind = ENGINE_LEASE_RENEW,
                                 .items = &item,
                                 .count = 1,
                                 .asked_ns = bed->now_ns + 10 * NS_PER_S - 1};
    wait(bed, 10500);
    assert_true(local_lease_read(&bed->lease, &op.op, bed->now_ns));
    assert_int_equal(item.ttl_s, 10);
    expire(bed);
    assert_string_equal(show(bed, 5), "10/10:");
}

/* etcd #9935, #10686: a lease that could not be revoked when it expired was never tried again. */
static void a_full_disk_leaves_the_lease_and_is_tried_again(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 10);
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof(key), "a%02d", i);
        put(bed, key, 5);
    }
    fixture_commit(&bed->f);
    wait(bed, 10000);
    fs_sim_fail(bed->f.sim, FS_SIM_ANY, 1, ST_DISK_FULL, true);
    /* There is space until the segment is full. */
    enum status status = ST_OK;
    for (int64_t id = 100; status == ST_OK; id++) {
        struct engine_lease op = {.id = id, .ttl_s = 1000};
        status = call(bed, &op, ENGINE_LEASE_GRANT);
    }
    assert_int_equal(status, ST_DISK_FULL);
    status = local_lease_expire(&bed->lease, bed->now_ns, SIZE_MAX);
    assert_int_equal(status, ST_DISK_FULL);
    assert_true(strncmp(show(bed, 5), "0/10: a00 a01 ", 14) == 0);
    assert_true(local_lease_next_ns(&bed->lease) > bed->now_ns);
    fs_sim_fail(bed->f.sim, FS_SIM_ANY, 0, ST_OK, false);
    wait(bed, 1000);
    expire(bed);
    assert_string_equal(show(bed, 5), "-1/0:");
}

static void lease_with_very_many_keys_is_revoked_in_several_records(void **state)
{
    struct bed *bed = *state;
    bed->lease.record_bytes_max = 250; /* a little more than two keys */
    grant(bed, 5, 10);
    grant(bed, 6, 10);
    for (const char *key = "abcde"; *key; key++)
        put(bed, (char[]){*key, 0}, 5);
    int64_t before = put(bed, "f", 6);
    wait(bed, 10000);
    expire(bed);
    assert_int_equal(bed->lease.leases, 0);
    assert_int_equal(bed->lease.attached, 0);
    assert_int_equal(store_view(bed->f.store)->root.live_keys, 0);
    assert_int_equal(store_view(bed->f.store)->revision, before + 4);
}

/* The writer has not processed all waiting renewals. */
static void leases_that_may_have_unread_renewals_do_not_expire(void **state)
{
    struct bed *bed = *state;
    grant(bed, 5, 10);
    grant(bed, 6, 20);
    int64_t read_ns = bed->now_ns + 15 * NS_PER_S;
    wait(bed, 25 * 1000);
    assert_string_equal(show(bed, 6), "0/20:"); /* it has no time left */
    assert_int_equal(local_lease_expire(&bed->lease, read_ns, SIZE_MAX), ST_OK);
    assert_string_equal(show(bed, 5), "-1/0:");
    assert_string_equal(show(bed, 6), "0/20:");
    expire(bed);
    assert_string_equal(show(bed, 6), "-1/0:");
}

static void an_invalid_lease_row_is_damage(void **state)
{
    struct bed *bed = *state;
    int64_t id = 5, zero = 0, ttl = 10, too_long = LEASE_TTL_MAX_S + 1;
    struct row row = {.table = ROW_LEASE, .key = slice_of(&id, 4), .value = slice_of(&ttl, 8)};
    assert_int_equal(local_lease_load_row(&bed->lease, &row), ST_DAMAGED);
    row.key = slice_of(&zero, 8);
    assert_int_equal(local_lease_load_row(&bed->lease, &row), ST_DAMAGED);
    row.key = slice_of(&id, 8);
    row.value = slice_of(&too_long, 8);
    assert_int_equal(local_lease_load_row(&bed->lease, &row), ST_DAMAGED);
    row.value = slice_of(&zero, 8);
    assert_int_equal(local_lease_load_row(&bed->lease, &row), ST_DAMAGED);
    row.value = slice_of(&ttl, 7);
    assert_int_equal(local_lease_load_row(&bed->lease, &row), ST_DAMAGED);
    row.value = slice_of(&ttl, 8);
    assert_int_equal(local_lease_load_row(&bed->lease, &row), ST_OK);
}

/* A start gives other leases their full TTL again. */
static void fixed_end_of_a_lease_survives_a_restart(void **state)
{
    struct bed *bed = *state;
    grant_until(bed, 1, -NS_PER_S);
    grant_until(bed, 2, 3600 * NS_PER_S);
    grant(bed, 3, 1000);
    put(bed, "a", 1);
    put(bed, "b", 2);
    assert_int_equal(store_commit(bed->f.store), ST_OK);
    stop(bed);
    start(bed);
    assert_string_equal(show(bed, 1), "0/1000: a");
    assert_string_equal(show(bed, 3), "1000/1000:");
    struct lessor_lease found;
    assert_true(lessor_get(bed->lease.lessor, 2, &found));
    assert_in_range(found.expires_ns - bed->now_ns, 3000 * NS_PER_S, 3600 * NS_PER_S);
    assert_int_equal(local_lease_expire(&bed->lease, bed->now_ns, SIZE_MAX), ST_OK);
    assert_string_equal(show(bed, 1), "-1/0:");
    assert_string_equal(show(bed, 2), "3599/1000: b");
}

static void lease_with_a_fixed_end_is_removed_with_its_last_key(void **state)
{
    struct bed *bed = *state;
    grant_until(bed, 1, 3600 * NS_PER_S);
    grant_until(bed, 2, 3600 * NS_PER_S);
    put(bed, "a", 1);
    put(bed, "a", 2); /* moves */
    assert_int_equal(local_lease_expire(&bed->lease, bed->now_ns, SIZE_MAX), ST_OK);
    assert_string_equal(show(bed, 1), "-1/0:");
    put(bed, "a", 0);
    assert_int_equal(local_lease_expire(&bed->lease, bed->now_ns, SIZE_MAX), ST_OK);
    assert_string_equal(show(bed, 2), "-1/0:");
}

int main(void)
{
#define BED(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        BED(a_revoked_lease_deletes_its_keys_sorted_and_at_one_revision),
        BED(keys_detach_when_they_are_put_without_the_lease_or_deleted),
        BED(leases_and_keys_exist_after_a_restart_with_their_full_ttl),
        BED(expired_leases_are_revoked_and_counted),
        BED(a_renewal_that_comes_too_late_finds_the_lease_revoked),
        BED(key_put_on_an_expired_lease_is_deleted_with_it),
        BED(many_expired_leases_are_revoked_in_limited_batches),
        BED(time_while_the_server_was_stopped_does_not_count),
        BED(a_renewal_that_waited_for_the_writer_is_not_late),
        BED(a_full_disk_leaves_the_lease_and_is_tried_again),
        BED(lease_with_very_many_keys_is_revoked_in_several_records),
        BED(leases_that_may_have_unread_renewals_do_not_expire),
        BED(an_invalid_lease_row_is_damage),
        BED(fixed_end_of_a_lease_survives_a_restart),
        BED(lease_with_a_fixed_end_is_removed_with_its_last_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
