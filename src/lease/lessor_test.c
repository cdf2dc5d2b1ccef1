#include "lease/lessor.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/yield_point.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t seconds(int64_t s)
{
    return s * NS_PER_S;
}

static int set_up(void **state)
{
    *state = lessor_new(1);
    return 0;
}

static int tear_down(void **state)
{
    lessor_check(*state);
    lessor_free(*state);
    return 0;
}

static void attach(struct lessor *lessor, const char *key, int64_t from, int64_t to)
{
    lessor_move_key(lessor, slice_from_text(key), from, to);
}

/* The keys of a lease, sorted, with spaces between. */
static const char *keys_of(struct lessor *lessor, int64_t id)
{
    static char text[256];
    struct slice keys[32];
    struct lessor_lease lease;
    text[0] = 0;
    if (!lessor_get(lessor, id, &lease))
        return "none";
    assert_true(lease.key_count <= 32);
    lessor_keys(lessor, id, keys);
    lessor_keys_sort(keys, lease.key_count);
    for (size_t i = 0; i < lease.key_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s", i ? " " : "",
                 (int)keys[i].len, (const char *)keys[i].ptr);
    return text;
}

static void a_lease_expires_when_its_time_has_passed_and_not_before(void **state)
{
    struct lessor *lessor = *state;
    assert_int_equal(lessor_next_ns(lessor), CLOCK_NEVER);
    lessor_grant(lessor, 7, 10, seconds(100));
    assert_int_equal(lessor_next_ns(lessor), seconds(110));
    assert_int_equal(lessor_expired(lessor, seconds(110) - 1), 0);
    assert_int_equal(lessor_expired(lessor, seconds(110)), 7);
    assert_true(lessor_has(lessor, 7)); /* until it is revoked */
    lessor_revoke(lessor, 7);
    assert_false(lessor_has(lessor, 7));
    assert_int_equal(lessor_expired(lessor, seconds(200)), 0);
}

static void a_renewal_gives_the_whole_time_again(void **state)
{
    struct lessor *lessor = *state;
    int64_t ttl;
    lessor_grant(lessor, 7, 10, 0);
    lessor_grant(lessor, 8, 11, 0);
    assert_int_equal(lessor_renew(lessor, 7, seconds(9), seconds(9), &ttl), ST_OK);
    assert_int_equal(ttl, 10);
    assert_int_equal(lessor_expired(lessor, seconds(18)), 8);
    lessor_revoke(lessor, 8);
    assert_int_equal(lessor_expired(lessor, seconds(18)), 0);
    assert_int_equal(lessor_next_ns(lessor), seconds(19));
    assert_int_equal(lessor_expired(lessor, seconds(19)), 7);
}

static void an_expired_lease_is_not_renewed_and_a_missing_one_not_found(void **state)
{
    struct lessor *lessor = *state;
    int64_t ttl = -5;
    lessor_grant(lessor, 7, 10, 0);
    assert_int_equal(lessor_renew(lessor, 7, seconds(10), seconds(10), &ttl), ST_AGAIN);
    assert_int_equal(lessor_renew(lessor, 8, 0, 0, &ttl), ST_LEASE_NOT_FOUND);
    assert_int_equal(ttl, -5);
}

static void a_renewal_counts_from_its_arrival(void **state)
{
    struct lessor *lessor = *state;
    int64_t ttl;
    lessor_grant(lessor, 7, 10, 0);
    assert_int_equal(lessor_renew(lessor, 7, seconds(10) - 1, seconds(12), &ttl), ST_OK);
    assert_int_equal(lessor_expired(lessor, seconds(21)), 0);
    assert_int_equal(lessor_expired(lessor, seconds(22)), 7);
}

static void grants_are_refused_in_etcds_order(void **state)
{
    struct lessor *lessor = *state;
    lessor_grant(lessor, 7, LEASE_TTL_MAX_S, seconds(1000));
    assert_int_equal(lessor_check_grant(lessor, 7, LEASE_TTL_MAX_S + 1), ST_LEASE_TTL_TOO_LARGE);
    assert_int_equal(lessor_check_grant(lessor, 7, 1), ST_LEASE_EXIST);
    assert_int_equal(lessor_check_grant(lessor, -7, INT64_MIN), ST_OK);
    lessor_grant(lessor, -7, 1, 0);
    assert_true(lessor_has(lessor, -7));
}

static void longest_ttl_does_not_overflow(void **state)
{
    struct lessor *lessor = *state;
    lessor_grant(lessor, 7, LEASE_TTL_MAX_S, INT64_MAX - 5);
    assert_int_equal(lessor_expired(lessor, INT64_MAX - 1), 0);
}

static void chosen_ids_are_positive_and_free(void **state)
{
    struct lessor *lessor = *state;
    for (int i = 0; i < 1000; i++) {
        int64_t id = lessor_choose_id(lessor);
        assert_true(id > 0 && !lessor_has(lessor, id));
        lessor_grant(lessor, id, 5, 0);
    }
    assert_int_equal(lessor_count(lessor), 1000);
}

static void keys_move_between_leases_and_are_listed_in_order(void **state)
{
    struct lessor *lessor = *state;
    lessor_grant(lessor, 1, 5, 0);
    lessor_grant(lessor, 2, 5, 0);
    attach(lessor, "c", 0, 1);
    attach(lessor, "a", 0, 1);
    attach(lessor, "b", 0, 1);
    assert_string_equal(keys_of(lessor, 1), "a b c");
    attach(lessor, "b", 1, 2);
    attach(lessor, "a", 1, 0);
    assert_string_equal(keys_of(lessor, 1), "c");
    assert_string_equal(keys_of(lessor, 2), "b");
    attach(lessor, "x", 9, 8); /* neither exists */
    lessor_revoke(lessor, 1);
    assert_int_equal(lessor_key_count(lessor), 1);
    attach(lessor, "c", 1, 2); /* its lease was removed before it */
    assert_string_equal(keys_of(lessor, 2), "b c");
}

static void stored_leases_are_loaded_with_their_full_ttl(void **state)
{
    struct lessor *lessor = *state;
    const struct lessor_kept kept[] = {
        {.id = 2, .ttl_s = 50}, {.id = -1, .ttl_s = 5}, {.id = INT64_MAX, .ttl_s = 70}};
    lessor_load(lessor, kept, COUNT_OF(kept), seconds(1000));
    assert_int_equal(lessor_count(lessor), 3);
    assert_true(lessor_has(lessor, -1) && lessor_has(lessor, 2) && lessor_has(lessor, INT64_MAX));
    assert_int_equal(lessor_next_ns(lessor), seconds(1005));
    assert_int_equal(lessor_expired(lessor, seconds(1005)), -1);
}

/* -- Against a model -- */

enum { IDS = 24, KEYS = 40, STEPS = 40000 };

struct model {
    int64_t ttl_s[IDS + 1]; /* 0: the lease does not exist */
    int64_t expires_ns[IDS + 1];
    int64_t lease_of[KEYS]; /* as in the keys' versions; the lease may have been removed */
};

static void check_lease(struct lessor *lessor, const struct model *model, int64_t id)
{
    struct lessor_lease lease;
    assert_int_equal(lessor_get(lessor, id, &lease), model->ttl_s[id] != 0);
    if (!model->ttl_s[id])
        return;
    assert_int_equal(lease.ttl_s, model->ttl_s[id]);
    assert_int_equal(lease.expires_ns, model->expires_ns[id]);
    struct slice keys[KEYS];
    lessor_keys(lessor, id, keys);
    lessor_keys_sort(keys, lease.key_count);
    uint32_t count = 0;
    for (int key = 0; key < KEYS; key++) {
        char name[16];
        snprintf(name, sizeof(name), "key-%02d", key);
        if (model->lease_of[key] == id)
            assert_true(slice_equal(keys[count++], slice_from_text(name)));
    }
    assert_int_equal(count, lease.key_count);
}

/* Takes all expired leases, and compares each with the model. */
static void expire(struct lessor *lessor, struct model *model, int64_t now_ns)
{
    for (int64_t id; (id = lessor_expired(lessor, now_ns)) != 0;) {
        assert_true(model->ttl_s[id] && model->expires_ns[id] <= now_ns);
        lessor_revoke(lessor, id);
        model->ttl_s[id] = 0;
        for (int key = 0; key < KEYS; key++) {
            if (model->lease_of[key] == id)
                model->lease_of[key] = 0;
        }
    }
    for (int64_t id = 1; id <= IDS; id++)
        assert_true(!model->ttl_s[id] || model->expires_ns[id] > now_ns);
}

static void random_requests_match_a_model(void **state)
{
    struct lessor *lessor = *state;
    struct model model = {0};
    struct random random;
    random_init(&random, 99);
    int64_t now_ns = 0, ttl;
    for (int step = 0; step < STEPS; step++) {
        int64_t id = random_between(&random, 1, IDS);
        uint64_t what = random_below(&random, 100);
        if (what < 20 && !model.ttl_s[id]) {
            model.ttl_s[id] = random_between(&random, 1, 30);
            model.expires_ns[id] = now_ns + seconds(model.ttl_s[id]);
            lessor_grant(lessor, id, model.ttl_s[id], now_ns);
        } else if (what < 50) {
            enum status status = lessor_renew(lessor, id, now_ns, now_ns, &ttl);
            assert_int_equal(status, model.ttl_s[id] ? ST_OK : ST_LEASE_NOT_FOUND);
            if (status == ST_OK)
                model.expires_ns[id] = now_ns + seconds(model.ttl_s[id]);
        } else if (what < 90) {
            char name[16];
            int key = (int)random_below(&random, KEYS);
            int64_t to = model.ttl_s[id] && what < 85 ? id : 0;
            snprintf(name, sizeof(name), "key-%02d", key);
            if (to != model.lease_of[key])
                lessor_move_key(lessor, slice_from_text(name), model.lease_of[key], to);
            model.lease_of[key] = to;
        } else {
            now_ns += (int64_t)random_below(&random, (uint64_t)seconds(3));
            expire(lessor, &model, now_ns);
        }
        check_lease(lessor, &model, id);
        if (step % 1000 == 0)
            lessor_check(lessor);
    }
}

/* -- Many -- */

static void a_hundred_thousand_leases_are_kept_alive_without_a_scan(void **state)
{
    enum { LEASES = 100000, ROUNDS = 3 };
    struct lessor *lessor = *state;
    int64_t ttl;
    for (int64_t id = 1; id <= LEASES; id++)
        lessor_grant(lessor, id, 60, 0);
    size_t bytes = lessor_bytes(lessor);
    printf("%zu bytes a lease\n", bytes / LEASES);
    assert_true(bytes <= 110u * LEASES);
    for (int64_t round = 1; round <= ROUNDS; round++) {
        for (int64_t id = 1; id <= LEASES; id++)
            assert_int_equal(
                lessor_renew(lessor, id, seconds(20 * round), seconds(20 * round), &ttl), ST_OK);
    }
    /* The heap is updated in parts, and meanwhile nothing expires. */
    unsigned calls = 0;
    while (lessor_next_ns(lessor) <= seconds(61)) {
        assert_int_equal(lessor_expired(lessor, seconds(61)), 0);
        calls++;
    }
    assert_true(calls > 20 && calls < 30);
    assert_int_equal(lessor_next_ns(lessor), seconds(20 * ROUNDS + 60));
    for (int64_t id = 1; id <= LEASES; id++)
        lessor_revoke(lessor, id);
    assert_int_equal(lessor_count(lessor), 0);
}

static void attached_key_takes_little_memory(void **state)
{
    enum { ATTACHED = 100000, KEY_BYTES = 32 };
    struct lessor *lessor = *state;
    lessor_grant(lessor, 1, 60, 0);
    size_t before = lessor_bytes(lessor);
    char key[KEY_BYTES + 8];
    for (int i = 0; i < ATTACHED; i++) {
        snprintf(key, sizeof(key), "/registry/events/default/%07d", i);
        attach(lessor, key, 0, 1);
    }
    size_t bytes = lessor_bytes(lessor) - before;
    printf("%zu bytes a key of %d\n", bytes / ATTACHED, KEY_BYTES);
    assert_true(bytes <= 76u * ATTACHED);
    struct slice *keys = calloc(ATTACHED, sizeof(*keys));
    lessor_keys(lessor, 1, keys);
    lessor_keys_sort(keys, ATTACHED);
    for (int i = 1; i < ATTACHED; i++)
        assert_true(slice_compare(keys[i - 1], keys[i]) < 0);
    free(keys);
}

static void the_remaining_time_is_used_once(void **state)
{
    (void)state;
    AUTO(lessor_freep) struct lessor *lessor = lessor_new(1);
    const struct lessor_kept kept = {.id = 7, .ttl_s = 100, .remaining_s = 30};
    lessor_load(lessor, &kept, 1, seconds(1000));
    struct lessor_lease lease;
    assert_true(lessor_get(lessor, 7, &lease));
    assert_int_equal(lease.ttl_s, 100);
    assert_int_equal(lease.expires_ns, seconds(1030));
    int64_t ttl_s;
    assert_int_equal(lessor_renew(lessor, 7, seconds(1010), seconds(1010), &ttl_s), ST_OK);
    assert_int_equal(ttl_s, 100);
    assert_true(lessor_get(lessor, 7, &lease));
    assert_int_equal(lease.expires_ns, seconds(1110));
    lessor_check(lessor);
}

static void lease_with_a_fixed_end_cannot_be_renewed(void **state)
{
    (void)state;
    AUTO(lessor_freep) struct lessor *lessor = lessor_new(1);
    const struct lessor_kept kept = {
        .id = 7, .ttl_s = 100, .fixed = true, .expires_ns = seconds(1001)};
    lessor_load(lessor, &kept, 1, seconds(1000));
    int64_t ttl_s;
    assert_int_equal(lessor_renew(lessor, 7, seconds(1000), seconds(1000), &ttl_s), ST_OK);
    assert_int_equal(lessor_next_ns(lessor), seconds(1001));
    lessor_grant_until(lessor, 8, 100, seconds(2000));
    lessor_move_key(lessor, SLICE_LITERAL("a"), 0, 8);
    lessor_move_key(lessor, SLICE_LITERAL("b"), 0, 8);
    lessor_move_key(lessor, SLICE_LITERAL("a"), 8, 8); /* put again */
    lessor_move_key(lessor, SLICE_LITERAL("a"), 8, 0);
    assert_int_equal(lessor_expired(lessor, seconds(1000)), 0);
    lessor_move_key(lessor, SLICE_LITERAL("b"), 8, 7);
    assert_int_equal(lessor_expired(lessor, seconds(1000)), 8);
    lessor_revoke(lessor, 8);
    assert_int_equal(lessor_expired(lessor, seconds(1001)), 7);
    lessor_check(lessor);
}

static void fixed_lease_survives_when_its_last_key_is_put_again(void **state)
{
    (void)state;
    AUTO(lessor_freep) struct lessor *lessor = lessor_new(1);
    struct lessor_lease lease;
    lessor_grant_until(lessor, 8, 100, seconds(2000));
    lessor_move_key(lessor, SLICE_LITERAL("a"), 0, 8);
    lessor_move_key(lessor, SLICE_LITERAL("a"), 8, 0);
    assert_true(lessor_get(lessor, 8, &lease));
    assert_int_equal(lease.expires_ns, 0);
    lessor_move_key(lessor, SLICE_LITERAL("a"), 0, 8);
    assert_int_equal(lessor_expired(lessor, seconds(1999)), 0);
    assert_int_equal(lessor_next_ns(lessor), seconds(2000));
    assert_true(lessor_get(lessor, 8, &lease));
    assert_int_equal(lease.expires_ns, seconds(2000));
    lessor_check(lessor);
    assert_int_equal(lessor_expired(lessor, seconds(2000)), 8);
    lessor_move_key(lessor, SLICE_LITERAL("a"), 8, 0);
    assert_int_equal(lessor_expired(lessor, seconds(1000)), 8);
}

static void count_yield(void *ctx)
{
    unsigned *yields = ctx;
    (*yields)++;
}

/* The writer sorts the keys of an expired lease and renews other leases meanwhile; so does the
 * keeper. */
static void long_sorts_pass_yield_points_and_sort(void **state)
{
    (void)state;
    enum { MANY = 10 * YIELD_POINT_WORK + 77, BYTES = 4 };
    static uint8_t bytes[MANY][BYTES];
    static struct slice keys[MANY];
    static struct lessor_entry entries[MANY];
    static const size_t counts[] = {
        0, 1, 2, YIELD_POINT_WORK, YIELD_POINT_WORK + 1, 3 * YIELD_POINT_WORK, MANY};
    struct random random;
    random_init(&random, 7);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        for (size_t at = 0; at < counts[i]; at++) {
            uint64_t number = random_u64(&random);
            memcpy(bytes[at], &number, BYTES);
            keys[at] = slice_of(bytes[at], BYTES);
            entries[at] =
                (struct lessor_entry){.id = (int64_t)number, .expires_ns = (int64_t)at % 7};
        }
        unsigned yields = 0;
        struct yield_point point = {.fn = count_yield, .ctx = &yields};
        yield_point_here = &point;
        lessor_keys_sort(keys, counts[i]);
        yield_point_here = NULL;
        for (size_t at = 1; at < counts[i]; at++)
            assert_true(slice_compare(keys[at - 1], keys[at]) <= 0);
        assert_true(yields + 1 >= counts[i] / YIELD_POINT_WORK);
        yields = 0;
        yield_point_here = &point;
        lessor_list_sort(entries, counts[i]);
        yield_point_here = NULL;
        assert_true(yields + 1 >= counts[i] / YIELD_POINT_WORK);
    }
}

int main(void)
{
#define LESSOR(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_remaining_time_is_used_once),
        cmocka_unit_test(lease_with_a_fixed_end_cannot_be_renewed),
        cmocka_unit_test(long_sorts_pass_yield_points_and_sort),
        cmocka_unit_test(fixed_lease_survives_when_its_last_key_is_put_again),
        LESSOR(a_lease_expires_when_its_time_has_passed_and_not_before),
        LESSOR(a_renewal_gives_the_whole_time_again),
        LESSOR(an_expired_lease_is_not_renewed_and_a_missing_one_not_found),
        LESSOR(a_renewal_counts_from_its_arrival),
        LESSOR(grants_are_refused_in_etcds_order),
        LESSOR(longest_ttl_does_not_overflow),
        LESSOR(chosen_ids_are_positive_and_free),
        LESSOR(keys_move_between_leases_and_are_listed_in_order),
        LESSOR(stored_leases_are_loaded_with_their_full_ttl),
        LESSOR(random_requests_match_a_model),
        LESSOR(a_hundred_thousand_leases_are_kept_alive_without_a_scan),
        LESSOR(attached_key_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
