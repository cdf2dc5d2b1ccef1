#include "wire/http/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct {
    struct http_exchange *exchange; /* exchange of a handler that answers later */
    int answers, ends;
    bool own;
    const char *own_account;
    struct slice body;
} seen;

static void on_answer(void *ctx)
{
    (void)ctx;
    seen.answers++;
}

static int64_t now_ns(void *ctx)
{
    (void)ctx;
    return 7;
}

static const struct http_local_owner owner = {.on_answer = on_answer, .now_ns = now_ns};

static void on_end(struct http_exchange *x, void *service)
{
    (void)x;
    (void)service;
    seen.ends++;
}

static void keep(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    seen.exchange = x;
    seen.own = request->own;
    seen.own_account = request->own_account;
    seen.body = request->body;
}

static const struct http_route later = {.on_request = keep, .on_end = on_end};

static struct http_local *send(void)
{
    struct http_local_request request = {.method = SLICE_LITERAL("POST"),
                                         .path = SLICE_LITERAL("/a"),
                                         .body = SLICE_LITERAL("{}"),
                                         .account = "a"};
    struct http_local *local;
    assert_int_equal(http_local_send(&later, NULL, &request, &owner, &local), ST_OK);
    return local;
}

static int begin(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    return 0;
}

static void a_handler_answers_as_to_a_client(void **state)
{
    (void)state;
    struct http_local *local = send();
    assert_true(seen.own);
    assert_string_equal(seen.own_account, "a");
    assert_true(slice_equal(seen.body, SLICE_LITERAL("{}")));
    assert_int_equal(http_exchange_now(seen.exchange), 7);
    assert_int_equal(seen.answers, 0);
    http_respond(seen.exchange, 201, SLICE_LITERAL("text/plain"), SLICE_LITERAL("made"));
    assert_int_equal(seen.answers, 1);
    assert_int_equal(http_local_code(local), 201);
    assert_true(slice_equal(http_local_body(local), SLICE_LITERAL("made")));
    assert_int_equal(seen.ends, 0);
    http_local_close(local);
    assert_int_equal(seen.ends, 1);
}

static void a_long_answer_is_cut(void **state)
{
    static uint8_t bytes[HTTP_LOCAL_ANSWER_BYTES + 1];
    (void)state;
    struct http_local *local = send();
    http_respond(seen.exchange, 200, SLICE_EMPTY, slice_of(bytes, sizeof(bytes)));
    assert_int_equal(http_local_body(local).len, HTTP_LOCAL_ANSWER_BYTES);
    http_local_close(local);
}

static void an_answer_that_is_cut_off_has_no_code(void **state)
{
    (void)state;
    struct http_local *local = send();
    http_begin(seen.exchange, 200, SLICE_EMPTY);
    http_abort(seen.exchange);
    assert_int_equal(seen.answers, 1);
    assert_int_equal(http_local_code(local), 0);
    http_local_close(local);
}

static void the_owner_may_leave_before_the_answer(void **state)
{
    (void)state;
    http_local_close(send());
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.answers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_handler_answers_as_to_a_client, begin),
        cmocka_unit_test_setup(a_long_answer_is_cut, begin),
        cmocka_unit_test_setup(an_answer_that_is_cut_off_has_no_code, begin),
        cmocka_unit_test_setup(the_owner_may_leave_before_the_answer, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
