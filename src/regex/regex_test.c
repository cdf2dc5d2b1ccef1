#include "regex/regex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static enum status compile(struct arena *arena, const char *pattern, const struct regex **ret_regex,
                           struct error *error)
{
    return regex_compile(arena, slice_from_text(pattern), ret_regex, error);
}

static enum regex_result match(const char *pattern, const char *text, int64_t steps)
{
    struct arena arena;
    struct error error = {0};
    const struct regex *regex = NULL;
    arena_init(&arena, NULL, 0, 16 << 20);
    assert_int_equal(compile(&arena, pattern, &regex, &error), ST_OK);
    struct regex_scratch scratch = {.arena = &arena};
    enum regex_result result = regex_match(regex, slice_from_text(text), &scratch, &steps);
    size_t held = arena.held_bytes;
    int64_t again = steps + 1000000;
    if (result != REGEX_GAVE_UP)
        assert_int_equal(regex_match(regex, slice_from_text(text), &scratch, &again), result);
    assert_int_equal(arena.held_bytes, held);
    arena_fini(&arena);
    return result;
}

static void patterns_match_as_in_go(void **state)
{
    static const struct {
        const char *pattern, *yes[4], *no[4];
    } rows[] = {
        {"", {"", "x"}, {NULL}},
        {"^$", {""}, {"x", "\n"}},
        {"a", {"a", "xa", "ba"}, {"", "b"}},
        {"^a.c$",
         {"abc", "a\xc3\xa4"
                 "c"},
         {"ac", "abcd", "a\nc"}},
        {"^(a|bc|)d$", {"ad", "bcd", "d"}, {"bd", "abcd"}},
        {"^a*b+c?$", {"b", "aabb", "bc"}, {"a", "bcc", ""}},
        {"^[a-c]{2,3}$", {"ab", "abc"}, {"a", "abca", "ad"}},
        {"^(ab){2}$", {"abab"}, {"ab", "ababab"}},
        {"^(ab){0,2}$", {"", "ab", "abab"}, {"ababab", "a"}},
        {"^(ab){2,}$", {"abab", "ababab"}, {"ab"}},
        {"^a{0}$", {""}, {"a"}},
        {"^a{,2}$", {"a{,2}"}, {"a"}},
        {"^\\d+\\.\\w\\s$", {"12.x ", "1._\t"}, {"a.x ", "12x "}},
        {"^\\D\\W\\S$", {"a-b"}, {"1-b", "aab"}},
        {"^[^a-z\\d]$", {"A", "-", "\xe2\x82\xac"}, {"a", "5"}},
        {"^[]a-]+$", {"]a-"}, {"b"}},
        {"^[[:alpha:]_]+$", {"aB_"}, {"a1"}},
        {"^[[:^alpha:]]+$", {"1_"}, {"a"}},
        {"(?i)^abc[d-f]$", {"AbCE", "abcd"}, {"abx"}},
        {"^(?i:a)b$", {"Ab", "ab"}, {"aB"}},
        {"(?m)^b$", {"a\nb\nc"}, {"ab"}},
        {"(?s)^a.b$", {"a\nb"}, {"ab"}},
        {"\\bfoo\\b", {"a foo b", "foo"}, {"afoo", "foob"}},
        {"\\Boo", {"foo"}, {"oo"}},
        {"\\Aa\\z", {"a"}, {"aa"}},
        {"^\\x41\\x{20ac}\\n\\.$", {"A\xe2\x82\xac\n."}, {"A"}},
        {"^(?P<name>a+)(?:b)(?<n>c)$", {"aabc"}, {"ab"}},
        {"^\\Qa.b\\E$", {"a.b"}, {"axb"}},
        {"^a+?$", {"aaa"}, {""}},
        {"^((a*)*)*$", {"", "aaaa"}, {"b"}},
        {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
         {"a.b-c.d", "x"},
         {"A", "-a", "a..b"}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t k = 0; k < 4; k++) {
            if (rows[i].yes[k] && match(rows[i].pattern, rows[i].yes[k], 100000) != REGEX_MATCH)
                fail_msg("%s does not match %s", rows[i].pattern, rows[i].yes[k]);
            if (rows[i].no[k] && match(rows[i].pattern, rows[i].no[k], 100000) != REGEX_NO_MATCH)
                fail_msg("%s matches %s", rows[i].pattern, rows[i].no[k]);
        }
    }
}

static void invalid_patterns_have_the_errors_of_go(void **state)
{
    static const char *const rows[][2] = {
        {"(a", "missing closing ): `(a`"},
        {"a)", "unexpected ): `a)`"},
        {"[a", "missing closing ]: `[a`"},
        {"*a", "missing argument to repetition operator: `*`"},
        {"a**", "invalid nested repetition operator: `**`"},
        {"a{1001}", "invalid repeat count: `{1001}`"},
        {"a{3,2}", "invalid repeat count: `{3,2}`"},
        {"[z-a]", "invalid character class range: `z-a`"},
        {"\\q", "invalid escape sequence: `\\q`"},
        {"a\\", "trailing backslash at end of expression: ``"},
        {"(?!a)", "invalid or unsupported Perl syntax: `(?!`"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena;
        struct error error = {0};
        const struct regex *regex;
        char wanted[128];
        arena_init(&arena, NULL, 0, 1 << 20);
        assert_int_equal(compile(&arena, rows[i][0], &regex, &error), ST_INVALID);
        snprintf(wanted, sizeof(wanted), "error parsing regexp: %s", rows[i][1]);
        assert_string_equal(error.text, wanted);
        arena_fini(&arena);
    }
}

static void unsupported_patterns_are_distinguished(void **state)
{
    (void)state;
    struct arena arena;
    struct error error = {0};
    const struct regex *regex;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(compile(&arena, "^\\p{L}+$", &regex, &error), ST_UNIMPLEMENTED);
    assert_int_equal(compile(&arena, "[\\pN]", &regex, &error), ST_UNIMPLEMENTED);
    arena_fini(&arena);
}

static void large_patterns_are_refused(void **state)
{
    (void)state;
    struct arena arena;
    struct error error = {0};
    const struct regex *regex;
    char deep[3 * REGEX_DEPTH_MAX];
    size_t len = 0;
    for (size_t i = 0; i <= REGEX_DEPTH_MAX; i++)
        deep[len++] = '(';
    deep[len] = '\0';
    arena_init(&arena, NULL, 0, 16 << 20);
    assert_int_equal(compile(&arena, "(a{1000}){1000}", &regex, &error), ST_LIMIT);
    assert_int_equal(compile(&arena, "((((){1000}){1000}){1000}){1000}", &regex, &error), ST_LIMIT);
    assert_int_equal(compile(&arena, deep, &regex, &error), ST_LIMIT);
    arena_fini(&arena);
}

/* Each byte of a pattern is examined a constant number of times, also on failing paths. */
static void long_patterns_are_refused(void **state)
{
    (void)state;
    static const char *const parts[] = {"[:", "(?i)", "(?iiiiiiii)", "(?i",
                                        "{1", "\\Q",  "(?P<a",       "x{0}"};
    char *pattern = malloc(REGEX_BYTES_MAX + 2);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct arena arena;
        struct error error = {0};
        const struct regex *regex;
        size_t len = strlen(parts[i]), steps = 200000;
        for (size_t at = 0; at < REGEX_BYTES_MAX + 1; at++)
            pattern[at] = at ? parts[i][(at - 1) % len] : i ? 'a' : '[';
        arena_init(&arena, NULL, 0, 16 << 20);
        struct slice all = slice_of(pattern, REGEX_BYTES_MAX + 1);
        assert_int_equal(regex_compile_within(&arena, all, &steps, &regex, &error), ST_LIMIT);
        assert_int_equal(steps, 200000);
        (void)!regex_compile_within(&arena, slice_of(pattern, REGEX_BYTES_MAX), &steps, &regex,
                                    &error);
        assert_true(steps <= 200000 - REGEX_BYTES_MAX / 16);
        arena_fini(&arena);
    }
    free(pattern);
}

static void brackets_without_a_class_name_are_literal(void **state)
{
    (void)state;
    assert_int_equal(match("^[[:a]+$", "[:a", 10000), REGEX_MATCH);
    assert_int_equal(match("^[[:[:a]+$", "[:a", 10000), REGEX_MATCH);
    assert_int_equal(match("^[[:digit:][:a]+$", "7:a[", 10000), REGEX_MATCH);
    assert_int_equal(match("^[[:digit:]]+[[:a]$", "7:", 10000), REGEX_MATCH);
}

static void matching_time_is_bounded(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    /* Exponential for backtracking matchers; here it is a few steps per character. */
    assert_int_equal(match("^(a+)+$", text, 200000), REGEX_MATCH);
    text[sizeof(text) - 2] = 'b';
    assert_int_equal(match("^(a+)+$", text, 200000), REGEX_NO_MATCH);
    assert_int_equal(match("(a{1,500}){2}c", text, 100000), REGEX_GAVE_UP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_in_go),
        cmocka_unit_test(invalid_patterns_have_the_errors_of_go),
        cmocka_unit_test(unsupported_patterns_are_distinguished),
        cmocka_unit_test(large_patterns_are_refused),
        cmocka_unit_test(long_patterns_are_refused),
        cmocka_unit_test(brackets_without_a_class_name_are_literal),
        cmocka_unit_test(matching_time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
