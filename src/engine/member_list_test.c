#include "engine/member_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SELF = 100 };

static void list_setup(struct member_list *list)
{
    *list = (struct member_list){.self = SELF, .learners_max = 1};
    struct engine_member *self = member_dup(&(struct engine_member){
        .id = SELF, .peer_urls = &SLICE_LITERAL("http://self:1"), .peer_url_count = 1});
    assert_non_null(self);
    member_list_put(list, self);
}

static enum status change(struct member_list *list, enum engine_member_call call, uint64_t id,
                          const char *url, bool learner)
{
    struct slice text = slice_from_text(url);
    struct engine_members request = {
        .call = call,
        .member = {.id = id, .learner = learner, .peer_urls = &text, .peer_url_count = *url != 0},
    };
    return member_list_change(list, &request);
}

static void voters_are_added_while_a_majority_has_started(void **state)
{
    (void)state;
    struct member_list list;
    list_setup(&list);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 1, "http://a:1", false), ST_OK);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 2, "http://b:1", false),
                     ST_MEMBER_NOT_ENOUGH_STARTED);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 3, "http://c:1", true), ST_OK);
    assert_int_equal(list.count, 3);
    /* An unknown member gives the same error: etcd computes the quorum without it first. */
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, 9, "", false),
                     ST_MEMBER_NOT_ENOUGH_STARTED);
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, 3, "", false), ST_OK);
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, 1, "", false), ST_OK);
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, 1, "", false), ST_MEMBER_NOT_FOUND);
    member_list_fini(&list);
}

static void this_server_always_stays_a_member(void **state)
{
    (void)state;
    struct member_list list;
    list_setup(&list);
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, SELF, "", false),
                     ST_MEMBER_NOT_ENOUGH_STARTED);
    list.lax = true;
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, SELF, "", false),
                     ST_MEMBER_NOT_ENOUGH_STARTED);
    assert_int_equal(change(&list, ENGINE_MEMBER_REMOVE, 9, "", false), ST_MEMBER_NOT_FOUND);
    assert_non_null(member_list_find(&list, SELF));
    member_list_fini(&list);
}

static void urls_belong_to_one_member(void **state)
{
    (void)state;
    struct member_list list;
    list_setup(&list);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 1, "http://self:1", true), ST_PEER_URL_EXIST);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, SELF, "http://x:1", true), ST_MEMBER_EXIST);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 1, "http://a:1", true), ST_OK);
    assert_int_equal(change(&list, ENGINE_MEMBER_UPDATE, 1, "http://self:1", false),
                     ST_PEER_URL_EXIST);
    assert_int_equal(change(&list, ENGINE_MEMBER_UPDATE, 2, "http://b:1", false),
                     ST_MEMBER_NOT_FOUND);
    assert_int_equal(change(&list, ENGINE_MEMBER_UPDATE, 1, "http://b:1", false), ST_OK);
    assert_true(member_list_find(&list, 1)->learner);
    assert_int_equal(change(&list, ENGINE_MEMBER_UPDATE, SELF, "http://a:1", false), ST_OK);
    assert_false(member_list_find(&list, SELF)->learner);
    member_list_fini(&list);
}

static void learners_are_limited_and_never_ready(void **state)
{
    (void)state;
    struct member_list list;
    list_setup(&list);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 1, "http://a:1", true), ST_OK);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 2, "http://b:1", true), ST_TOO_MANY_LEARNERS);
    assert_int_equal(change(&list, ENGINE_MEMBER_PROMOTE, 1, "", false), ST_LEARNER_NOT_READY);
    assert_int_equal(change(&list, ENGINE_MEMBER_PROMOTE, 2, "", false), ST_MEMBER_NOT_FOUND);
    assert_int_equal(change(&list, ENGINE_MEMBER_PROMOTE, SELF, "", false), ST_MEMBER_NOT_LEARNER);
    member_list_fini(&list);
}

static void members_and_their_urls_have_a_limit(void **state)
{
    (void)state;
    struct member_list list;
    list_setup(&list);
    list.lax = true;
    for (unsigned i = 1; i <= ENGINE_MEMBERS_MAX; i++) {
        char url[32];
        snprintf(url, sizeof(url), "http://h:%u", i);
        /* Odd IDs ascend and even IDs descend; the list is sorted nevertheless. */
        uint64_t id = i % 2 ? i : 1000 - i;
        assert_int_equal(change(&list, ENGINE_MEMBER_ADD, id, url, false),
                         i < ENGINE_MEMBERS_MAX ? ST_OK : ST_LIMIT);
    }
    member_list_check(&list);
    static char longest[ENGINE_PEER_URL_BYTES_MAX + 2];
    memset(longest, 'x', ENGINE_PEER_URL_BYTES_MAX + 1);
    assert_int_equal(change(&list, ENGINE_MEMBER_UPDATE, SELF, longest, false), ST_LIMIT);
    longest[ENGINE_PEER_URL_BYTES_MAX] = 0;
    assert_int_equal(change(&list, ENGINE_MEMBER_UPDATE, SELF, longest, false), ST_OK);
    member_list_fini(&list);
}

static void the_answer_outlives_the_list(void **state)
{
    (void)state;
    struct member_list list;
    list_setup(&list);
    assert_int_equal(change(&list, ENGINE_MEMBER_ADD, 1, "http://a:1", true), ST_OK);
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_members answer = {.op.arena = &arena};
    assert_int_equal(member_list_copy(&list, &answer), ST_OK);
    member_list_fini(&list);
    assert_int_equal(answer.count, 2);
    assert_int_equal(answer.list[0].id, 1);
    assert_true(answer.list[0].learner);
    assert_true(slice_is(answer.list[1].peer_urls[0], "http://self:1"));
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(voters_are_added_while_a_majority_has_started),
        cmocka_unit_test(this_server_always_stays_a_member),
        cmocka_unit_test(urls_belong_to_one_member),
        cmocka_unit_test(learners_are_limited_and_never_ready),
        cmocka_unit_test(members_and_their_urls_have_a_limit),
        cmocka_unit_test(the_answer_outlives_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
