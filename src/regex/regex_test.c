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

/* x so many times, y once, z so many times. */
static struct slice repeated(char *room, const char *x, const char *y, const char *z, size_t count)
{
    size_t len = 0;
    const char *const parts[] = {x, y, z};
    for (size_t part = 0; part < COUNT_OF(parts); part++)
        for (size_t i = 0; i < (part == 1 ? 1 : count); i++)
            for (const char *c = parts[part]; *c; c++)
                room[len++] = *c;
    return slice_of(room, len);
}

static void large_patterns_are_refused(void **state)
{
    (void)state;
    struct arena arena;
    struct error error = {0};
    const struct regex *regex;
    char room[6 * REGEX_DEPTH_MAX];
    arena_init(&arena, NULL, 0, 64 << 20);
    struct slice all = repeated(room, "a", "", "", 101);
    char large[128];
    int len = snprintf(large, sizeof(large), "(%.*s){1000}", SLICE_ARGS(all));
    assert_int_equal(regex_compile(&arena, slice_of(large, (size_t)len), &regex, &error), ST_LIMIT);
    all = repeated(room, "(", "a", ")", REGEX_DEPTH_MAX - 1);
    assert_int_equal(regex_compile(&arena, all, &regex, &error), ST_OK);
    all = repeated(room, "(", "a", ")", REGEX_DEPTH_MAX);
    assert_int_equal(regex_compile(&arena, all, &regex, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "expression nests too deeply"));
    /* Groups without a meaning of their own do not count. */
    all = repeated(room, "(?:b", "a", ")", REGEX_DEPTH_MAX);
    assert_int_equal(regex_compile(&arena, all, &regex, &error), ST_OK);
    /* Nested repeats count together. */
    assert_int_equal(compile(&arena, "(a{10}){100}", &regex, &error), ST_OK);
    assert_int_equal(compile(&arena, "(a{10}){101}", &regex, &error), ST_INVALID);
    assert_int_equal(compile(&arena, "((((){1000}){1000}){1000}){1000}", &regex, &error),
                     ST_INVALID);
    arena_fini(&arena);
}

static void classes_of_unicode_and_folding_are_those_of_go(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        enum regex_result result;
    } rows[] = {
        {"^\\p{L}+$", "a\xc3\xa9\xce\xa9", REGEX_MATCH},
        {"^\\p{L}+$", "a1", REGEX_NO_MATCH},
        {"^\\pN$", "\xc2\xb2", REGEX_MATCH},
        {"^[\\p{Greek}-]+$", "\xce\xa9-\xce\xb1", REGEX_MATCH},
        {"^\\P{greek}$", "\xce\xa9", REGEX_NO_MATCH},
        {"^\\p{^Greek}$", "a", REGEX_MATCH},
        {"^\\p{Uppercase_Letter}$", "\xc3\x89", REGEX_MATCH},
        {"^\\p{Lu}$", "\xc3\xa9", REGEX_NO_MATCH},
        {"(?i)^\\p{Lu}$", "\xc3\xa9", REGEX_MATCH},
        {"(?i)^k$", "\xe2\x84\xaa", REGEX_MATCH},          /* the sign of kelvin */
        {"(?i)^\xce\xa3$", "\xcf\x82", REGEX_MATCH},       /* a final sigma */
        {"(?i)^[^\xc3\xa9]$", "\xc3\x89", REGEX_NO_MATCH}, /* e with acute */
        {"^\\p{Any}$", "\n", REGEX_MATCH},
        {"^[[:cntrl:]]$", "\x7f", REGEX_MATCH},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (match(rows[i].pattern, rows[i].text, 100000) != rows[i].result)
            fail_msg("%s with %s", rows[i].pattern, rows[i].text);
}

static void the_match_of_a_backtracking_matcher_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        size_t from, begin, end;
    } rows[] = {
        {"a|ab", "xab", 0, 1, 2},    {"ab|a", "xab", 0, 1, 3},     {"a+", "baaac", 0, 1, 4},
        {"a+?", "baaac", 0, 1, 2},   {"(?U)a+", "baaac", 0, 1, 2}, {"(a|b)*c|b", "abd", 0, 1, 2},
        {"", "abc", 2, 2, 2},        {"^a|b", "ab", 1, 1, 2},      {"\\bb", "ab b", 1, 3, 4},
        {"(|a)*", "aa", 0, 0, 0},    {"(|a)+", "aa", 0, 0, 0},     {"(a|)*", "aa", 0, 0, 2},
        {"x{2,3}", "xxxx", 0, 0, 3}, {"x{2,3}?", "xxxx", 0, 0, 2},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena;
        struct error error = {0};
        const struct regex *regex;
        size_t begin = 99, end = 99;
        int64_t steps = 10000;
        arena_init(&arena, NULL, 0, 1 << 20);
        struct regex_scratch scratch = {.arena = &arena};
        assert_int_equal(compile(&arena, rows[i].pattern, &regex, &error), ST_OK);
        enum regex_result result = regex_find(regex, slice_from_text(rows[i].text), rows[i].from,
                                              &scratch, &steps, &begin, &end);
        if (result != REGEX_MATCH || begin != rows[i].begin || end != rows[i].end)
            fail_msg("%s in %s: %zu to %zu", rows[i].pattern, rows[i].text, begin, end);
        arena_fini(&arena);
    }
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
        cmocka_unit_test(large_patterns_are_refused),
        cmocka_unit_test(classes_of_unicode_and_folding_are_those_of_go),
        cmocka_unit_test(the_match_of_a_backtracking_matcher_is_found),
        cmocka_unit_test(long_patterns_are_refused),
        cmocka_unit_test(brackets_without_a_class_name_are_literal),
        cmocka_unit_test(matching_time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
