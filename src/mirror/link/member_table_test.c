#include "mirror/link/member_table.h"

#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct member_table member_table;

static int set_up(void **state)
{
    (void)state;
    member_table_init(&member_table, "http://a:1,https://b:2,,c:3");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    member_table_fini(&member_table);
    return 0;
}

static void answer(size_t at, uint64_t id, const char *version, const char *storage)
{
    struct pb_response_header header = {.member_id = id};
    member_table_note(&member_table, at,
                      &(struct pb_status_response){.header = &header,
                                                   .version = slice_from_text(version),
                                                   .storage_version = slice_from_text(storage),
                                                   .leader = 2,
                                                   .is_learner = id == 3});
}

static void expect_versions(uint64_t followed, const char *server, const char *cluster,
                            const char *storage)
{
    struct engine_versions versions;
    assert_true(member_table_versions(&member_table, followed, &versions));
    assert_string_equal(versions.server, server);
    assert_string_equal(versions.cluster, cluster);
    assert_string_equal(versions.storage, storage);
}

static void members_are_known_by_what_they_say(void **state)
{
    (void)state;
    assert_int_equal(member_table.count, 3);
    assert_string_equal(member_table_get(&member_table, 1).endpoint, "https://b:2");
    assert_string_equal(member_table_get(&member_table, 2).endpoint, "c:3");
    assert_false(member_table_get(&member_table, 0).answers);
    answer(1, 2, "3.5.1", "");
    answer(2, 3, "3.5.1", "");
    assert_true(member_table_get(&member_table, 1).is_leader &&
                !member_table_get(&member_table, 1).is_learner);
    assert_true(!member_table_get(&member_table, 2).is_leader &&
                member_table_get(&member_table, 2).is_learner);
    member_table_note(&member_table, 2, NULL);
    assert_false(member_table_get(&member_table, 2).answers);
    assert_int_equal(member_table_get(&member_table, 2).member_id, 3);
}

static void the_cluster_has_the_lowest_version_of_its_members(void **state)
{
    (void)state;
    struct engine_versions versions;
    assert_false(member_table_versions(&member_table, 0, &versions));
    answer(0, 1, "3.7.3", "3.7.0");
    expect_versions(0, "3.7.3", "3.7.0", "3.7.0");
    answer(1, 2, "3.6.10", "3.6.0");
    expect_versions(1, "3.7.3", "3.6.0", "3.7.0");
    expect_versions(2, "3.6.10", "3.6.0", "3.6.0");
    answer(2, 3, "3.10.0", "");
    expect_versions(3, "3.10.0", "3.6.0", "");
    member_table_note(&member_table, 1, NULL); /* it is still a member */
    expect_versions(3, "3.10.0", "3.6.0", "");
}

static void a_downgrade_says_where_to(void **state)
{
    (void)state;
    struct pb_response_header header = {.member_id = 1};
    struct pb_downgrade_info down = {.enabled = true, .target_version = SLICE_LITERAL("3.6.0")};
    member_table_note(&member_table, 0,
                      &(struct pb_status_response){.header = &header,
                                                   .version = SLICE_LITERAL("3.7.3"),
                                                   .storage_version = SLICE_LITERAL("3.6.0"),
                                                   .downgrade_info = &down});
    expect_versions(1, "3.7.3", "3.6.0", "3.6.0");
}

static void say(size_t at, uint64_t id, uint64_t leader, uint64_t term)
{
    struct pb_response_header header = {.member_id = id};
    member_table_note(&member_table, at,
                      &(struct pb_status_response){.header = &header,
                                                   .leader = leader,
                                                   .raft_term = term,
                                                   .raft_index = 10 * id,
                                                   .raft_applied_index = 10 * id - 1});
}

static void expect_membership(uint64_t followed, bool has_leader, bool is_leader, uint64_t changes)
{
    struct engine_membership found;
    assert_true(member_table_membership(&member_table, followed, &found));
    assert_int_equal(found.has_leader, has_leader);
    assert_int_equal(found.is_leader, is_leader);
    assert_int_equal(found.leader_changes, changes);
}

static void leaders_are_counted_by_their_terms(void **state)
{
    (void)state;
    struct engine_membership found;
    assert_false(member_table_membership(&member_table, 1, &found));
    say(0, 1, 0, 2);
    expect_membership(1, false, false, 0);
    say(0, 1, 1, 2);
    say(1, 2, 1, 2);
    expect_membership(1, true, true, 1);
    expect_membership(2, true, false, 1);
    expect_membership(9, true, false, 1);
    say(1, 2, 2, 3);
    expect_membership(2, true, true, 2);
    say(2, 3, 1, 2); /* it is behind */
    expect_membership(2, true, true, 2);
    member_table_note(&member_table, 1, NULL);
    expect_membership(2, true, false, 2);
    assert_true(member_table_membership(&member_table, 2, &found));
    assert_int_equal(found.raft_index, 20);
    assert_int_equal(found.applied_index, 19);
    say(0, 1, 0, 4);
    say(2, 3, 0, 4);
    expect_membership(1, false, false, 2);
    say(2, 3, 2, 4); /* the same one again */
    expect_membership(1, true, false, 2);
}

/* They end in pages of JSON and of metrics. */
static void nonsense_is_not_a_version(void **state)
{
    (void)state;
    struct engine_versions versions;
    answer(0, 1, "", "");
    assert_false(member_table_versions(&member_table, 0, &versions));
    answer(0, 1, "main", "x");
    assert_false(member_table_versions(&member_table, 0, &versions));
    answer(0, 1, "3.7.\"}\n\\evil and much longer than a version can be", "");
    expect_versions(1, "3.7.?}??evil?and?much?longer?th", "3.7.0", "");
    answer(0, 1, "99999999999.99999999999.0", "");
    (void)member_table_versions(&member_table, 0, &versions);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(members_are_known_by_what_they_say),
        TEST(the_cluster_has_the_lowest_version_of_its_members),
        TEST(a_downgrade_says_where_to),
        TEST(leaders_are_counted_by_their_terms),
        TEST(nonsense_is_not_a_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
