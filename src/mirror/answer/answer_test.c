#include "mirror/answer/answer.h"

#include "engine/operation.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct arena arena;

static struct engine_op failed(enum grpc_code code, const char *text)
{
    struct engine_op op = {.arena = &arena};
    cluster_fail(&op, code, slice_from_text(text));
    return op;
}

static void every_text_of_the_table_has_its_status(void **state)
{
    (void)state;
    for (unsigned i = ST_OK + 1; i < ST_COUNT; i++) {
        if (status_code(i) == GRPC_OK)
            continue;
        struct engine_op op = failed(status_code(i), status_text(i));
        assert_int_equal(op.status, i);
        assert_true(slice_is(op.text, status_text(i)));
    }
}

static void unknown_texts_keep_their_code(void **state)
{
    (void)state;
    for (enum grpc_code code = GRPC_CANCELLED; code <= GRPC_UNAUTHENTICATED; code++) {
        struct engine_op op = failed(code, "a text of a later version");
        assert_true(slice_is(op.text, "a text of a later version"));
        if (code != GRPC_ABORTED && code != GRPC_OUT_OF_RANGE)
            assert_int_equal(status_code(op.status), code);
        else
            assert_int_equal(op.status, ST_UPSTREAM);
    }
    assert_int_equal(failed((enum grpc_code)99, "x").status, ST_UPSTREAM);
}

/* A version that answers a known text with another code: the code is what clients act on. */
static void the_code_comes_before_the_text(void **state)
{
    (void)state;
    struct engine_op op = failed(GRPC_UNAVAILABLE, status_text(ST_PERMISSION_DENIED));
    assert_int_equal(status_code(op.status), GRPC_UNAVAILABLE);
}

int main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_of_the_table_has_its_status),
        cmocka_unit_test(unknown_texts_keep_their_code),
        cmocka_unit_test(the_code_comes_before_the_text),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    arena_fini(&arena);
    return failures;
}
