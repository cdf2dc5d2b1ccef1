/* Rows of members as they are loaded: complete, in any order, or invalid. */
#include "engine/local/state/members.h"

#include "base/buf.h"
#include "codec/pb/rpc.pb.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SELF = 9 };

static enum status take(struct member_list *list, uint64_t id, const char *url, bool learner)
{
    AUTO(buf_fini) struct buf value = {0};
    uint64_t id_be = htobe64(id);
    struct slice urls[] = {slice_from_text(url)};
    struct pb_member member = {
        .id = id, .is_learner = learner, .peer_urls = urls, .peer_urls_count = 1};
    assert_int_equal(pb_append(&pb_member_table, &member, &value), ST_OK);
    return local_members_load_row(list, &(struct row){.table = ROW_MEMBER,
                                                      .key = slice_of(&id_be, sizeof(id_be)),
                                                      .value = buf_slice(&value)});
}

static enum status take_deleted(struct member_list *list, uint64_t id)
{
    uint64_t id_be = htobe64(id);
    return local_members_load_row(list, &(struct row){.table = ROW_MEMBER,
                                                      .deleted = true,
                                                      .key = slice_of(&id_be, sizeof(id_be))});
}

static void later_rows_replace_earlier_ones(void **state)
{
    (void)state;
    struct member_list list = {0};
    assert_int_equal(take(&list, 5, "http://a:1", true), ST_OK);
    assert_int_equal(take(&list, 3, "http://b:1", false), ST_OK);
    assert_int_equal(take(&list, 5, "http://c:1", true), ST_OK);
    assert_int_equal(take_deleted(&list, 3), ST_OK);
    assert_int_equal(take_deleted(&list, 4), ST_OK); /* it did not exist */
    assert_int_equal(list.count, 1);
    assert_true(slice_is(member_list_find(&list, 5)->peer_urls[0], "http://c:1"));
    assert_true(member_list_find(&list, 5)->learner);
    member_list_fini(&list);
}

static void this_server_has_the_urls_of_its_flags_until_they_are_changed(void **state)
{
    (void)state;
    struct slice flags = SLICE_LITERAL("http://flags:1");
    struct member_list list = {0};
    local_members_open(&list, SELF, &flags, 1);
    assert_true(slice_equal(member_list_find(&list, SELF)->peer_urls[0], flags));
    member_list_fini(&list);

    assert_int_equal(take(&list, SELF, "http://stored:1", false), ST_OK);
    local_members_open(&list, SELF, &flags, 1);
    assert_int_equal(list.count, 1);
    assert_true(slice_is(member_list_find(&list, SELF)->peer_urls[0], "http://stored:1"));
    member_list_fini(&list);
}

static void invalid_rows_are_damage(void **state)
{
    (void)state;
    struct member_list list = {0};
    struct row short_key = {.table = ROW_MEMBER, .key = SLICE_LITERAL("1234567")};
    struct row no_message = {
        .table = ROW_MEMBER, .key = SLICE_LITERAL("12345678"), .value = SLICE_LITERAL("\x1a\xff")};
    assert_int_equal(local_members_load_row(&list, &short_key), ST_DAMAGED);
    assert_int_equal(local_members_load_row(&list, &no_message), ST_DAMAGED);
    for (uint64_t id = 1; id <= ENGINE_MEMBERS_MAX; id++)
        assert_int_equal(take(&list, id, "http://a:1", false), ST_OK);
    assert_int_equal(take(&list, 1000, "http://a:1", false), ST_DAMAGED);
    assert_int_equal(take(&list, 1, "http://b:1", false), ST_OK);
    local_members_open(&list, 1000, &SLICE_LITERAL("http://self:1"), 1);
    assert_non_null(member_list_find(&list, 1000));
    member_list_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_rows_replace_earlier_ones),
        cmocka_unit_test(this_server_has_the_urls_of_its_flags_until_they_are_changed),
        cmocka_unit_test(invalid_rows_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
