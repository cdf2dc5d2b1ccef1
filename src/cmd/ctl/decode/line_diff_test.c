#include "cmd/ctl/decode/line_diff.h"

#include "base/buf.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void collect(void *ctx, enum line_sign sign, struct slice line)
{
    assert_int_equal(buf_append_format(ctx, "%c%.*s\n", sign, SLICE_ARGS(line)), ST_OK);
}

static void assert_difference(const char *before, const char *after, unsigned context,
                              const char *expected)
{
    AUTO(buf_fini) struct buf out = {0};
    struct line_diff diff = {.context = context, .fn = collect, .ctx = &out};
    assert_int_equal(line_diff(&diff, slice_from_text(before), slice_from_text(after)), ST_OK);
    assert_int_equal(buf_append(&out, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)out.ptr, expected);
}

static void changed_lines_are_shown_with_their_context(void **state)
{
    (void)state;
    assert_difference("a\nb\nc\n", "a\nB\nc\n", 1, " a\n-b\n+B\n c\n");
    assert_difference("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n", 1, "@\n b\n-c\n+C\n d\n@\n");
    assert_difference("1\n2\n3\n4\n5\n6\n7\n", "x\n2\n3\n4\n5\n6\ny\n", 1,
                      "-1\n+x\n 2\n@\n 6\n-7\n+y\n");
    assert_difference("a\n", "a\nb\n", 3, " a\n+b\n");
    assert_difference("a\nb\n", "b\n", 0, "-a\n@\n");
}

static void equal_texts_have_no_difference(void **state)
{
    (void)state;
    assert_difference("", "", 3, "");
    assert_difference("a\nb\n", "a\nb\n", 3, "");
    assert_difference("a\nb", "a\nb\n", 3, "");
    assert_difference("", "a", 3, "+a\n");
    assert_difference("a", "", 3, "-a\n");
}

/* -- Random texts -- */

struct rebuilt {
    struct buf before, after;
    size_t changes;
};

static void rebuild(void *ctx, enum line_sign sign, struct slice line)
{
    struct rebuilt *r = ctx;
    assert_int_not_equal(sign, LINE_SKIPPED);
    if (sign != LINE_ADDED)
        assert_int_equal(buf_append_format(&r->before, "%.*s\n", SLICE_ARGS(line)), ST_OK);
    if (sign != LINE_REMOVED)
        assert_int_equal(buf_append_format(&r->after, "%.*s\n", SLICE_ARGS(line)), ST_OK);
    r->changes += sign != LINE_SAME;
}

/* The number of changes of the shortest difference, by the simple table of all pairs. */
static size_t shortest(struct slice before, struct slice after)
{
    static size_t table[40][40];
    size_t n = before.len / 2, m = after.len / 2; /* lines of one character */
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++)
            table[i][j] = i == 0   ? j
                          : j == 0 ? i
                          : before.ptr[2 * (i - 1)] == after.ptr[2 * (j - 1)]
                              ? table[i - 1][j - 1]
                              : 1 + size_min(table[i - 1][j], table[i][j - 1]);
    return table[n][m];
}

static void random_text(struct random *random, struct buf *to)
{
    size_t lines = random_u64(random) % 30;
    for (size_t i = 0; i < lines; i++)
        assert_int_equal(buf_append_format(to, "%c\n", (int)('a' + random_u64(random) % 4)), ST_OK);
}

static void every_difference_is_right_and_the_shortest(void **state)
{
    struct random random;
    (void)state;
    random_init(&random, 16);
    for (unsigned i = 0; i < 2000; i++) {
        AUTO(buf_fini) struct buf before = {0};
        AUTO(buf_fini) struct buf after = {0};
        struct rebuilt r = {0};
        struct line_diff diff = {.context = 100, .fn = rebuild, .ctx = &r};
        random_text(&random, &before);
        random_text(&random, &after);
        assert_int_equal(line_diff(&diff, buf_slice(&before), buf_slice(&after)), ST_OK);
        if (!slice_equal(buf_slice(&before), buf_slice(&after))) {
            assert_true(slice_equal(buf_slice(&r.before), buf_slice(&before)));
            assert_true(slice_equal(buf_slice(&r.after), buf_slice(&after)));
        }
        assert_int_equal(r.changes, shortest(buf_slice(&before), buf_slice(&after)));
        buf_fini(&r.before);
        buf_fini(&r.after);
    }
}

static void count_changes(void *ctx, enum line_sign sign, struct slice line)
{
    (void)line;
    *(size_t *)ctx += sign == LINE_ADDED || sign == LINE_REMOVED;
}

/* Every line is another one, so the shortest difference is far beyond the limit. */
static void texts_without_a_common_line_are_replaced(void **state)
{
    enum { LINES = 200 * 1000 };
    AUTO(buf_fini) struct buf before = {0};
    AUTO(buf_fini) struct buf after = {0};
    size_t changes = 0;
    struct line_diff diff = {.context = 3, .fn = count_changes, .ctx = &changes};
    (void)state;
    for (unsigned i = 0; i < LINES; i++) {
        assert_int_equal(buf_append_format(&before, "a%u\n", i), ST_OK);
        assert_int_equal(buf_append_format(&after, "b%u\n", i), ST_OK);
    }
    assert_int_equal(line_diff(&diff, buf_slice(&before), buf_slice(&after)), ST_OK);
    assert_int_equal(changes, 2 * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_lines_are_shown_with_their_context),
        cmocka_unit_test(equal_texts_have_no_difference),
        cmocka_unit_test(every_difference_is_right_and_the_shortest),
        cmocka_unit_test(texts_without_a_common_line_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
