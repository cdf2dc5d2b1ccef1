/* Which messages are taken, and from whom. */
#include "wire/grpc/fixture_test.h"

/* What does not unpack shows that nobody tried. */
static void caller_is_admitted_before_its_message_is_unpacked(void **state)
{
    struct fixture *f = *state;
    struct guard_test g = {0};
    struct grpc_guard guard = {.admit = guard_admit, .ctx = &g};
    const char *paths[] = {"/t.T/Echo", "/t.T/List", "/t.T/Chat"};
    grpc_services_guard(f->services, &guard);
    for (uint32_t i = 0; i < COUNT_OF(paths); i++) {
        uint32_t id = 2 * i + 1;
        g.asked = 0;
        test_call_with(&f->in, id, paths[i], 0, EXTRA("grpc-encoding", "gzip"));
        packed_message(&f->in, id, H2_FLAG_END_STREAM, SLICE_LITERAL("no gzip"));
        exchange(f);
        assert_int_equal(g.asked, 1);
        assert_ended(f, id, GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
    }
}

static void caller_is_admitted_before_a_part_of_its_message_is_kept(void **state)
{
    struct fixture *f = *state;
    struct guard_test g = {0};
    struct grpc_guard guard = {.admit = guard_admit, .ctx = &g};
    grpc_services_guard(f->services, &guard);
    test_call(&f->in, 1, "/t.T/Echo");
    test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("\0\0\0\0\11part"));
    exchange(f);
    assert_int_equal(g.asked, 1);
    assert_ended(f, 1, GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(caller_is_admitted_before_its_message_is_unpacked),
        TEST(caller_is_admitted_before_a_part_of_its_message_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
