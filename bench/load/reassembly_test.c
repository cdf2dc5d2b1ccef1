#include "load/reassembly.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static enum status note(void *argument, struct slice message)
{
    return buf_append_format(argument, "<%.*s>", SLICE_ARGS(message));
}

/* An empty message, one of one byte, and longer ones. */
static const struct slice three = SLICE_LITERAL("\0\0\0\0\0"
                                                "\0\0\0\0\1a"
                                                "\0\0\0\0\7bcdefgh"
                                                "\0\0\0\0\2ij");

static void take(struct bench_reassembly *reassembly, size_t from, size_t to, struct buf *seen)
{
    struct slice bytes = slice_sub(three, from, to - from);
    assert_int_equal(bench_reassembly_take(reassembly, bytes, note, seen), ST_OK);
}

static void messages_are_the_same_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t first = 0; first <= three.len; first++) {
        for (size_t second = first; second <= three.len; second++) {
            struct bench_reassembly reassembly = {0};
            AUTO(buf_fini) struct buf seen = {0};
            take(&reassembly, 0, first, &seen);
            take(&reassembly, first, second, &seen);
            take(&reassembly, second, three.len, &seen);
            assert_true(slice_equal(buf_slice(&seen), SLICE_LITERAL("<><a><bcdefgh><ij>")));
            assert_int_equal(reassembly.partial.len, 0);
            bench_reassembly_fini(&reassembly);
        }
    }
}

static void only_a_message_that_continues_is_copied(void **state)
{
    (void)state;
    struct bench_reassembly reassembly = {0};
    AUTO(buf_fini) struct buf seen = {0};
    take(&reassembly, 0, 13, &seen);
    assert_int_equal(reassembly.partial.len, 2);
    take(&reassembly, 13, three.len - 1, &seen);
    assert_int_equal(reassembly.partial.len, 6);
    take(&reassembly, three.len - 1, three.len, &seen);
    assert_true(slice_equal(buf_slice(&seen), SLICE_LITERAL("<><a><bcdefgh><ij>")));
    bench_reassembly_fini(&reassembly);
}

static void compressed_and_too_long_messages_are_refused(void **state)
{
    (void)state;
    static const struct slice bad[] = {SLICE_LITERAL("\1\0\0\0\0"), SLICE_LITERAL("\0\x04\0\0\1")};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct bench_reassembly reassembly = {0};
        AUTO(buf_fini) struct buf seen = {0};
        assert_int_equal(bench_reassembly_take(&reassembly, bad[i], note, &seen), ST_MALFORMED);
        struct slice start = slice_sub(bad[i], 0, 2), rest = slice_sub(bad[i], 2, 3);
        assert_int_equal(bench_reassembly_take(&reassembly, start, note, &seen), ST_OK);
        assert_int_equal(bench_reassembly_take(&reassembly, rest, note, &seen), ST_MALFORMED);
        bench_reassembly_fini(&reassembly);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_the_same_however_they_are_cut),
        cmocka_unit_test(only_a_message_that_continues_is_copied),
        cmocka_unit_test(compressed_and_too_long_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
