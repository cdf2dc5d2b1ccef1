#include "kube/request/continue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_fini(*state);
    return 0;
}

static void a_token_is_what_kube_apiserver_makes(void **state)
{
    struct slice token;
    struct kube_continue from;
    struct kube_status status;
    assert_int_equal(kube_continue_write(*state, 6, slice_of("default/b\0", 10), &token), ST_OK);
    assert_true(slice_is(token,
                         "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Niwic3RhcnQiOiJkZWZhdWx0L2JcdTAw"
                         "MDAifQ"));
    assert_true(kube_continue_read(*state, token, &from, &status));
    assert_int_equal(from.revision, 6);
    assert_true(slice_equal(from.suffix, slice_of("default/b\0", 10)));
}

static void tokens_of_every_length_are_decoded(void **state)
{
    static const char name[] = "abcdefghijklmnop";
    for (size_t len = 1; len < sizeof(name); len++) {
        struct slice token;
        struct kube_continue from;
        struct kube_status status;
        assert_int_equal(kube_continue_write(*state, KUBE_AT_NEWEST, slice_of(name, len), &token),
                         ST_OK);
        assert_true(kube_continue_read(*state, token, &from, &status));
        assert_int_equal(from.revision, KUBE_AT_NEWEST);
        assert_true(slice_equal(from.suffix, slice_of(name, len)));
    }
}

static void invalid_tokens_are_refused(void **state)
{
    static const struct {
        int64_t revision;
        const char *suffix;
    } wrong[] = {{0, "a"}, {-2, "a"}, {1, ""}, {1, "../x"}, {1, "a/./b"}, {1, "a//b"}, {1, "a/"}};
    struct kube_continue from;
    struct kube_status status;
    struct slice token;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(kube_continue_write(*state, wrong[i].revision,
                                             slice_from_text(wrong[i].suffix), &token),
                         ST_OK);
        assert_false(kube_continue_read(*state, token, &from, &status));
        assert_int_equal(kube_status_code(&status), 400);
    }
    static const char *const texts[] = {"", "x", "=", "e30", "e30=", "bnVsbA"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_false(kube_continue_read(*state, slice_from_text(texts[i]), &from, &status));
    static uint8_t much[KUBE_TOKEN_BYTES_MAX + 1];
    memset(much, 'A', sizeof(much));
    assert_false(kube_continue_read(*state, slice_of(much, sizeof(much)), &from, &status));
}

static void lack_of_memory_is_not_an_invalid_token(void **state)
{
    struct kube_continue from;
    struct slice token;
    assert_int_equal(kube_continue_write(*state, 5, SLICE_LITERAL("a\\b"), &token), ST_OK);
    for (size_t limit = 0; limit < 2048; limit += 16) {
        struct kube_status status = {0};
        struct arena arena;
        arena_init(&arena, NULL, 0, limit);
        if (!kube_continue_read(&arena, token, &from, &status))
            assert_int_equal(kube_status_code(&status), 429);
        else
            assert_true(slice_is(from.suffix, "a\\b"));
        arena_fini(&arena);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_what_kube_apiserver_makes),
        TEST(tokens_of_every_length_are_decoded),
        TEST(invalid_tokens_are_refused),
        TEST(lack_of_memory_is_not_an_invalid_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
