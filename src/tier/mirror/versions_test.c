/* Versions and revisions, also compared with a plain model of random histories. */
#include "tier/mirror/versions.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_revision(const struct tier_versions *v, uint64_t version, int64_t expected)
{
    int64_t revision = -1;
    bool found = tier_versions_revision(v, version, &revision);
    assert_int_equal(found, expected > 0);
    if (found)
        assert_int_equal(revision, expected);
}

static void assert_version(const struct tier_versions *v, int64_t revision, uint64_t expected)
{
    uint64_t version = 0;
    bool found = tier_versions_version(v, revision, &version);
    assert_int_equal(found, expected > 0);
    if (found)
        assert_int_equal(version, expected);
}

static void add(struct tier_versions *v, uint64_t version, int64_t revision)
{
    assert_int_equal(tier_versions_add(v, version, revision), ST_OK);
}

static void translates_both_ways(void **state)
{
    struct tier_versions v = {0};
    (void)state;
    assert_version(&v, 100, 0);
    assert_revision(&v, 100, 0);
    add(&v, 100, 40);
    add(&v, 105, 41);
    add(&v, 110, 57);
    add(&v, 117, 57);
    add(&v, 130, 63);
    assert_revision(&v, 99, 0);
    assert_revision(&v, 100, 40);
    assert_revision(&v, 104, 40);
    assert_revision(&v, 112, 57);
    assert_revision(&v, 118, 57);
    assert_revision(&v, 129, 57);
    assert_revision(&v, 1000, 63);
    assert_version(&v, 39, 0);
    assert_version(&v, 40, 100);
    assert_version(&v, 56, 105);
    assert_version(&v, 57, 117);
    assert_version(&v, 62, 117);
    assert_version(&v, 63, 130);
    assert_int_equal(tier_versions_oldest(&v), 100);
    assert_int_equal(tier_versions_newest(&v), 130);
    uint64_t change;
    assert_true(tier_versions_change(&v, 57, &change));
    assert_int_equal(change, 110); /* and not what a bookmark has shown there */
    assert_true(tier_versions_change(&v, 63, &change));
    assert_int_equal(change, 130);
    assert_false(tier_versions_change(&v, 56, &change));
    assert_false(tier_versions_change(&v, 64, &change));
    tier_versions_fini(&v);
}

static void drops_from_the_front(void **state)
{
    struct tier_versions v = {0};
    (void)state;
    for (int i = 1; i <= 1000; i++)
        add(&v, (uint64_t)i * 10, i * 2);
    tier_versions_drop(&v, 1); /* before the first one */
    assert_int_equal(tier_versions_oldest(&v), 10);
    tier_versions_drop(&v, 1001);
    assert_int_equal(tier_versions_oldest(&v), 5000);
    assert_revision(&v, 5000, 1000);
    assert_revision(&v, 4999, 0);
    assert_revision(&v, 5010, 1002);
    tier_versions_drop(&v, 5000); /* the last one stays: it is the present */
    assert_int_equal(v.count, 1);
    assert_true(v.capacity <= 512);
    assert_revision(&v, 10001, 2000);
    tier_versions_fini(&v);
}

static void many_bookmarks_are_one_entry(void **state)
{
    struct tier_versions v = {0};
    (void)state;
    add(&v, 1, 7);
    for (uint64_t version = 2; version < 100000; version++)
        add(&v, version, 7);
    assert_int_equal(v.count, 2);
    assert_version(&v, 7, 99999);
    assert_revision(&v, 50000, 7);
    tier_versions_fini(&v);
}

enum { STEPS = 2000 };

static void agrees_with_a_model(void **state)
{
    struct tier_versions v = {0};
    struct random random;
    static int64_t newest_at[STEPS * 4 + 1]; /* version up to which a revision has everything */
    uint64_t version = 1;
    int64_t revision = 1;
    (void)state;
    random_init(&random, 34);
    add(&v, version, revision);
    newest_at[revision] = (int64_t)version;
    for (int i = 0; i < STEPS; i++) {
        bool change = random_chance(&random, 2, 3);
        version += 1 + random_below(&random, 3);
        int64_t next = revision + (change ? (int64_t)(1 + random_below(&random, 3)) : 0);
        for (; revision < next; revision++)
            newest_at[revision + 1] = newest_at[revision];
        newest_at[revision] = (int64_t)version;
        add(&v, version, revision);
    }
    for (int64_t r = 1; r <= revision; r++)
        assert_version(&v, r, (uint64_t)newest_at[r]);
    for (uint64_t at = 1; at <= version; at++) {
        int64_t found;
        assert_true(tier_versions_revision(&v, at, &found));
        /* Everything newer comes after it, and nothing newer is in it that has its own revision. */
        assert_true(found == 1 || (uint64_t)newest_at[found - 1] < at);
        if (found < revision)
            assert_true((uint64_t)newest_at[found + 1] > at ||
                        newest_at[found + 1] == newest_at[found]);
    }
    tier_versions_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translates_both_ways),
        cmocka_unit_test(drops_from_the_front),
        cmocka_unit_test(many_bookmarks_are_one_entry),
        cmocka_unit_test(agrees_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
