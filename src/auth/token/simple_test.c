#include "auth/token/simple.h"

#include "base/clock.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TTL (300 * NS_PER_S)

static struct random source;

static int set_up(void **state)
{
    random_init(&source, 1);
    *state = auth_tokens_new(TTL, 2);
    return 0;
}

static int tear_down(void **state)
{
    auth_tokens_check(*state);
    auth_tokens_free(*state);
    return 0;
}

/* A copy, because the text of a token is freed with it. */
struct text {
    char text[AUTH_TOKEN_TEXT_BYTES + 1];
};

static struct text assign(struct auth_tokens *tokens, const char *user, uint64_t index, int64_t now)
{
    uint8_t random[AUTH_TOKEN_RANDOM_BYTES];
    struct text text = {{0}};
    random_fill(&source, random, sizeof(random));
    slice_copy(text.text, auth_tokens_assign(tokens, slice_from_text(user), random, index, now));
    return text;
}

static const char *user_of(struct auth_tokens *tokens, const char *token, int64_t now)
{
    static char name[64];
    struct slice user;
    if (auth_tokens_use(tokens, slice_from_text(token), now, &user) != ST_OK)
        return "none";
    snprintf(name, sizeof(name), "%.*s", SLICE_ARGS(user));
    return name;
}

static void a_token_is_letters_a_dot_and_the_index(void **state)
{
    struct text token = assign(*state, "u", UINT64_MAX, 0);
    assert_int_equal(strspn(token.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                     AUTH_TOKEN_LETTERS);
    assert_string_equal(token.text + AUTH_TOKEN_LETTERS, ".18446744073709551615");
    assert_string_equal(user_of(*state, token.text, 1), "u");
}

static void a_token_that_was_not_issued_is_invalid(void **state)
{
    struct text token = assign(*state, "u", 5, 0);
    assert_string_equal(user_of(*state, "", 0), "none");
    assert_string_equal(user_of(*state, "abcdefghijklmnop.5", 0), "none");
    token.text[AUTH_TOKEN_LETTERS + 1] = '6';
    assert_string_equal(user_of(*state, token.text, 0), "none");
    token.text[AUTH_TOKEN_LETTERS] = 0;
    assert_string_equal(user_of(*state, token.text, 0), "none");
}

static void each_use_renews_a_token(void **state)
{
    struct text token = assign(*state, "u", 1, 0);
    assert_string_equal(user_of(*state, token.text, TTL - 1), "u");
    assert_string_equal(user_of(*state, token.text, 2 * TTL - 2), "u");
    assert_string_equal(user_of(*state, token.text, 3 * TTL - 2), "none");
}

static void expired_tokens_are_freed_in_steps_as_others_are_issued(void **state)
{
    struct auth_tokens *tokens = *state;
    struct text first = assign(tokens, "u", 1, 0);
    for (unsigned i = 2; i <= 20; i++)
        assign(tokens, "u", i, 0);
    assert_string_equal(user_of(tokens, first.text, 5), "u");
    assign(tokens, "u", 21, TTL - 1);
    assert_int_equal(auth_tokens_count(tokens), 21);
    assign(tokens, "u", 22, TTL);
    assert_int_equal(auth_tokens_count(tokens), 21 - 16 + 1);
    assign(tokens, "u", 23, TTL);
    assert_int_equal(auth_tokens_count(tokens), 4);
    assert_string_equal(user_of(tokens, first.text, TTL), "u");
}

static void only_the_tokens_of_the_user_are_removed(void **state)
{
    struct text a = assign(*state, "u", 1, 0), b = assign(*state, "v", 2, 0);
    struct text c = assign(*state, "u", 3, 0);
    auth_tokens_end_user(*state, SLICE_LITERAL("u"));
    assert_string_equal(user_of(*state, a.text, 1), "none");
    assert_string_equal(user_of(*state, b.text, 1), "v");
    assert_string_equal(user_of(*state, c.text, 1), "none");
    auth_tokens_end_all(*state);
    assert_string_equal(user_of(*state, b.text, 1), "none");
    assert_int_equal(auth_tokens_count(*state), 0);
}

static void a_user_replaces_its_own_tokens_at_the_limit(void **state)
{
    struct text first = assign(*state, "first", 1, 0), second = assign(*state, "second", 2, 0);
    struct text own = assign(*state, "u", 3, 0);
    for (unsigned i = 3; i < AUTH_TOKENS_MAX; i++)
        assign(*state, "u", i + 1, 1);
    assert_int_equal(auth_tokens_count(*state), AUTH_TOKENS_MAX);
    assert_string_equal(user_of(*state, first.text, 2), "first");
    assign(*state, "u", 0, 3);
    assert_int_equal(auth_tokens_count(*state), AUTH_TOKENS_MAX);
    assert_string_equal(user_of(*state, own.text, 4), "none");
    assert_string_equal(user_of(*state, first.text, 4), "first");
    auth_tokens_check(*state);
    /* A user without tokens takes the place of the least recently used one. */
    assign(*state, "new", AUTH_TOKENS_MAX + 1, 5);
    assert_int_equal(auth_tokens_count(*state), AUTH_TOKENS_MAX);
    assert_string_equal(user_of(*state, second.text, 6), "none");
    auth_tokens_end_user(*state, SLICE_LITERAL("u"));
    assert_int_equal(auth_tokens_count(*state), 2);
    auth_tokens_check(*state);
}

static void token_belongs_to_one_user(void **state)
{
    const uint8_t random[AUTH_TOKEN_RANDOM_BYTES] = {0};
    auth_tokens_assign(*state, SLICE_LITERAL("u"), random, 1, 0);
    auth_tokens_assign(*state, SLICE_LITERAL("v"), random, 1, 0);
    assert_int_equal(auth_tokens_count(*state), 1);
    assert_string_equal(user_of(*state, "aaaaaaaaaaaaaaaa.1", 1), "v");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_letters_a_dot_and_the_index),
        TEST(a_token_that_was_not_issued_is_invalid),
        TEST(each_use_renews_a_token),
        TEST(expired_tokens_are_freed_in_steps_as_others_are_issued),
        TEST(only_the_tokens_of_the_user_are_removed),
        TEST(a_user_replaces_its_own_tokens_at_the_limit),
        TEST(token_belongs_to_one_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
