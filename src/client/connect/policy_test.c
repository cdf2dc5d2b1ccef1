#include "client/connect/policy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct error_policy of(enum grpc_code code, const char *text)
{
    return error_policy_of(code, slice_from_text(text));
}

/* Its code differs between versions of etcd. */
static void learner_is_left_and_has_done_nothing(void **state)
{
    (void)state;
    static const char text[] = "etcdserver: rpc not supported for learner";
    for (int i = 0; i < 2; i++) {
        struct error_policy policy = of(i ? GRPC_UNAVAILABLE : GRPC_FAILED_PRECONDITION, text);
        assert_true(policy.leaves && policy.is_not_done);
    }
}

static void member_without_a_quorum_is_left(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "etcdserver: no leader",
        "etcdserver: request timed out",
        "etcdserver: request timed out, possibly due to previous leader failure",
        "etcdserver: request timed out, possibly due to connection lost",
        "a proxy cannot reach its server",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct error_policy policy = of(GRPC_UNAVAILABLE, texts[i]);
        assert_true(policy.leaves && !policy.is_not_done);
    }
}

static void other_errors_are_the_same_everywhere(void **state)
{
    (void)state;
    assert_false(of(GRPC_UNAVAILABLE, "etcdserver: leader changed").leaves);
    assert_false(of(GRPC_PERMISSION_DENIED, "etcdserver: permission denied").leaves);
    assert_false(of(GRPC_UNKNOWN, "context deadline exceeded").leaves);
    assert_false(of(GRPC_RESOURCE_EXHAUSTED, "etcdserver: too many requests").leaves);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(learner_is_left_and_has_done_nothing),
        cmocka_unit_test(member_without_a_quorum_is_left),
        cmocka_unit_test(other_errors_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
