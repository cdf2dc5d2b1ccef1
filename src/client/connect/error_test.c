#include "client/connect/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void texts_of_a_server_become_codes(void **state)
{
    (void)state;
    vigil_error error;
    client_error_from_server(&error, GRPC_OUT_OF_RANGE, slice_from_text(status_text(ST_COMPACTED)));
    assert_int_equal(error.code, VIGIL_ERROR_COMPACTED);
    assert_int_equal(error.grpc_code, GRPC_OUT_OF_RANGE);
    assert_int_equal(error.outcome, VIGIL_REFUSED);
    assert_string_equal(error.text, status_text(ST_COMPACTED));
    client_error_from_server(&error, GRPC_UNAVAILABLE, SLICE_LITERAL("etcdserver: no leader"));
    assert_int_equal(error.code, VIGIL_ERROR_NO_LEADER);
    client_error_from_server(&error, GRPC_UNAVAILABLE, SLICE_LITERAL("something else"));
    assert_int_equal(error.code, VIGIL_ERROR_UNAVAILABLE);
    client_error_from_server(&error, GRPC_DATA_LOSS, SLICE_LITERAL("something else"));
    assert_int_equal(error.code, VIGIL_ERROR_SERVER);
}

static void long_texts_are_cut_off(void **state)
{
    (void)state;
    vigil_error error;
    char text[1000];
    memset(text, 'x', sizeof(text));
    client_error_from_server(&error, GRPC_UNKNOWN, slice_of(text, sizeof(text)));
    assert_int_equal(strlen(error.text), VIGIL_ERROR_TEXT_BYTES - 1);
    client_error_from_server(&error, GRPC_UNKNOWN, SLICE_EMPTY);
    assert_string_equal(error.text, "the server answered with the gRPC code 2");
}

static void outcome_is_unknown_when_the_server_stopped_waiting(void **state)
{
    (void)state;
    vigil_error error;
    client_error_from_server(&error, GRPC_UNAVAILABLE, slice_from_text(status_text(ST_TIMEOUT)));
    assert_int_equal(error.outcome, VIGIL_UNKNOWN);
    client_error_from_server(&error, GRPC_DEADLINE_EXCEEDED, SLICE_LITERAL("x"));
    assert_int_equal(error.outcome, VIGIL_UNKNOWN);
    client_error_from_server(&error, GRPC_UNAVAILABLE, slice_from_text(status_text(ST_NO_LEADER)));
    assert_int_equal(error.outcome, VIGIL_REFUSED);
    client_error_from_server(&error, GRPC_UNKNOWN, SLICE_LITERAL("context deadline exceeded"));
    assert_int_equal(error.outcome, VIGIL_UNKNOWN); /* the answer of etcd 3.4 */
    assert_int_equal(error.code, VIGIL_ERROR_TIMEOUT);
    client_error_from_server(&error, GRPC_INTERNAL, SLICE_LITERAL("x"));
    assert_int_equal(error.outcome, VIGIL_UNKNOWN);
    client_error_from_server(&error, GRPC_FAILED_PRECONDITION, SLICE_LITERAL("x"));
    assert_int_equal(error.outcome, VIGIL_REFUSED);
    client_error_from_server(&error, GRPC_RESOURCE_EXHAUSTED,
                             slice_from_text(status_text(ST_NO_SPACE)));
    assert_int_equal(error.outcome, VIGIL_UNKNOWN); /* etcd may have applied the change */
}

/* A server in front of the cluster has sent it, and has no answer. */
static void outcome_is_unknown_when_a_server_in_between_lost_its_connection(void **state)
{
    (void)state;
    vigil_error error;
    client_error_from_server(&error, GRPC_UNAVAILABLE,
                             SLICE_LITERAL("connection error: lost the connection to a:2379"));
    assert_int_equal(error.outcome, VIGIL_UNKNOWN);
    assert_int_equal(error.code, VIGIL_ERROR_UNAVAILABLE);
}

static void every_code_has_a_name_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(vigil_code_name(VIGIL_OK), "VIGIL_OK");
    assert_string_equal(vigil_code_name(VIGIL_ERROR_UNIMPLEMENTED), "VIGIL_ERROR_UNIMPLEMENTED");
    assert_string_equal(vigil_code_name(-1), "unknown");
    for (int i = VIGIL_ERROR_COMPACTED; i <= VIGIL_ERROR_UNIMPLEMENTED; i++)
        assert_string_not_equal(vigil_code_name(i), "unknown");
}

static void statuses_are_found_by_their_text(void **state)
{
    (void)state;
    assert_int_equal(client_status_of(slice_from_text(status_text(ST_INVALID_AUTH_TOKEN))),
                     ST_INVALID_AUTH_TOKEN);
    assert_int_equal(client_status_of(SLICE_LITERAL("no such text")), ST_COUNT);
    assert_int_equal(client_status_of(SLICE_EMPTY), ST_COUNT);
}

static void reasons_of_cancelled_watches_have_codes(void **unused)
{
    vigil_error error;
    (void)unused;
    client_error_from_reason(&error,
                             SLICE_LITERAL("rpc error: code = PermissionDenied desc = etcdserver: "
                                           "permission denied"));
    assert_int_equal(error.code, VIGIL_ERROR_PERMISSION_DENIED);
    assert_int_equal(error.grpc_code, GRPC_PERMISSION_DENIED);
    assert_string_equal(error.text, "etcdserver: permission denied");
    static const char *const others[] = {"not allowed", "rpc error: code = ", " desc = x",
                                         "rpc error: code = Unknown desc = not allowed"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        client_error_from_reason(&error, slice_from_text(others[i]));
        assert_int_equal(error.code, VIGIL_ERROR_SERVER);
        assert_int_equal(error.grpc_code, GRPC_UNKNOWN);
        assert_string_equal(error.text, i < 3 ? others[i] : "not allowed");
    }
    client_error_from_reason(&error, (struct slice){0});
    assert_int_equal(error.code, VIGIL_ERROR_SERVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_a_server_become_codes),
        cmocka_unit_test(long_texts_are_cut_off),
        cmocka_unit_test(outcome_is_unknown_when_the_server_stopped_waiting),
        cmocka_unit_test(outcome_is_unknown_when_a_server_in_between_lost_its_connection),
        cmocka_unit_test(every_code_has_a_name_of_its_own),
        cmocka_unit_test(statuses_are_found_by_their_text),
        cmocka_unit_test(reasons_of_cancelled_watches_have_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
