/* Limits of the answers that arrive. */
#include "mirror/link/upstream_fixture_test.h"

static void a_call_has_its_own_limit_of_an_answer(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call c = {0};
    struct upstream_request request = request_of("/test/Answer", "t");
    request.receive_max = ANSWER_BYTES - 1;
    begin(&w, 1);
    start(&w, &c, &request, SLICE_EMPTY);
    run_until_end(&w, &c);
    assert_int_equal(c.code, GRPC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(c.text, "larger than max"));
    assert_true(c.too_long);
    finish(&w);
}

static void answers_that_arrive_wait_for_room(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call calls[3] = {0}, other = {0};
    struct upstream_request request = request_of("/test/Answer", "t");
    begin(&w, 1);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        start(&w, &calls[i], &request, SLICE_EMPTY);
        run(&w, 500 * NS_PER_MS);
    }
    assert_int_equal(w.answered[0], ANSWER_SENT_BYTES);
    assert_in_range(w.answered[1], 1, 300 << 10);
    assert_in_range(w.answered[2], 1, 300 << 10);
    start_get(&w, &other, "t"); /* others are answered */
    run_until_end(&w, &other);
    assert_int_equal(other.code, GRPC_OK);
    upstream_cancel(calls[0].call);
    run(&w, 500 * NS_PER_MS);
    assert_int_equal(w.answered[1], ANSWER_SENT_BYTES);
    assert_in_range(w.answered[2], 1, 300 << 10);
    etcd_member_stop(&w.members[0]); /* everything is given back */
    run_until_end(&w, &calls[1]);
    run_until_end(&w, &calls[2]);
    assert_false(calls[1].too_long);
    finish(&w);
}

static void on_overdue(struct kept_answer *kept)
{
    kept_answer_release(kept);
}

/* An answer that its owner keeps takes room when its call has ended. */
static void answers_that_are_kept_make_others_wait(void **state)
{
    (void)state;
    struct world w = {0};
    struct test_call first = {.kept.overdue = on_overdue}, second = first, other = {0};
    struct upstream_request request = request_of("/test/Answer", "t");
    request.keeps = true;
    begin(&w, 1);
    w.whole_answers = true;
    start(&w, &first, &request, SLICE_EMPTY);
    run_until_end(&w, &first);
    assert_int_equal(first.bytes, ANSWER_BYTES);
    w.whole_answers = false;
    start(&w, &second, &request, SLICE_EMPTY);
    run(&w, KEPT_ANSWER_NS / 2);
    assert_in_range(w.answered[1], 1, 300 << 10);
    start_get(&w, &other, "t");
    run_until_end(&w, &other);
    assert_int_equal(other.code, GRPC_OK);
    run(&w, KEPT_ANSWER_NS);
    assert_int_equal(w.answered[1], ANSWER_SENT_BYTES);
    assert_null(first.kept.answers);
    upstream_cancel(second.call);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_has_its_own_limit_of_an_answer),
        cmocka_unit_test(answers_that_arrive_wait_for_room),
        cmocka_unit_test(answers_that_are_kept_make_others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
