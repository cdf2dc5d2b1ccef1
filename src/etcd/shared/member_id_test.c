#include "etcd/shared/member_id.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void default_flags_give_the_well_known_ids(void **state)
{
    (void)state;
    struct slice url = SLICE_LITERAL("http://localhost:2380");
    uint64_t id = member_id_make(&url, 1, SLICE_LITERAL("etcd-cluster"));
    assert_true(id == UINT64_C(0x8e9e05c52164694d));
    assert_true(cluster_id_make(id) == UINT64_C(0xcdf818194e3a8c32));
}

static void order_of_the_urls_does_not_matter(void **state)
{
    (void)state;
    struct slice urls[2] = {SLICE_LITERAL("http://b:2380"), SLICE_LITERAL("http://a:2380")};
    struct slice swapped[2] = {urls[1], urls[0]};
    struct slice token = SLICE_LITERAL("t");
    assert_true(member_id_make(urls, 2, token) == member_id_make(swapped, 2, token));
    assert_false(member_id_make(urls, 2, token) == member_id_make(urls, 1, token));
}

static void member_added_later_has_the_time_in_its_id(void **state)
{
    (void)state;
    struct slice url = SLICE_LITERAL("http://127.0.0.1:2"); /* the id is from etcd 3.7.3 */
    assert_true(member_id_make_at(&url, 1, 1794731863) == UINT64_C(0xaea270536832c156));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_flags_give_the_well_known_ids),
        cmocka_unit_test(order_of_the_urls_does_not_matter),
        cmocka_unit_test(member_added_later_has_the_time_in_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
