#include "cmd/ctl/offline/kv_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void append(struct buf *to, const char *key, int64_t revision)
{
    struct pb_key_value kv = {.key = slice_from_text(key), .mod_revision = revision};
    uint64_t len = pb_size(&pb_key_value_table, &kv);
    assert_int_equal(buf_append(to, slice_of(&len, sizeof(len))), ST_OK);
    assert_int_equal(pb_append(&pb_key_value_table, &kv, to), ST_OK);
}

static bool key_is(const struct kv_frame *frame, const char *key)
{
    struct arena none = {0};
    struct pb_key_value kv;
    return pb_decode(&pb_key_value_table, frame->value, &none, &kv) == ST_OK &&
           slice_is(kv.key, key);
}

static void keys_are_sorted_and_the_last_of_a_revision_wins(void **state)
{
    (void)state;
    struct kv_frames frames;
    struct buf answer = {0};
    struct error error;
    append(&answer, "b", 5);
    append(&answer, "a", 3);
    append(&answer, "c", 5);
    kv_frames_init(&frames, KV_FRAMES_BYTES_MAX);
    for (size_t i = 0; i < answer.len; i++) /* in the smallest pieces */
        assert_int_equal(kv_frames_feed(&frames, slice_of(answer.ptr + i, 1), &error), ST_OK);
    assert_int_equal(kv_frames_end(&frames, &error), ST_OK);
    assert_int_equal(frames.count, 2);
    assert_true(key_is(&frames.all[0], "a"));
    assert_true(key_is(&frames.all[1], "c"));
    kv_frames_fini(&frames);
    buf_fini(&answer);
}

static enum status feed_and_end(struct slice bytes, uint64_t bytes_max)
{
    struct kv_frames frames;
    struct error error;
    kv_frames_init(&frames, bytes_max);
    enum status status = kv_frames_feed(&frames, bytes, &error);
    if (status == ST_OK)
        status = kv_frames_end(&frames, &error);
    kv_frames_fini(&frames);
    return status;
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    uint64_t len = KV_FRAME_BYTES_MAX + 1;
    assert_int_equal(feed_and_end(slice_of(&len, sizeof(len)), KV_FRAMES_BYTES_MAX), ST_LIMIT);
    len = UINT64_MAX;
    assert_int_equal(feed_and_end(slice_of(&len, sizeof(len)), KV_FRAMES_BYTES_MAX), ST_LIMIT);
    const struct slice cut = SLICE_LITERAL("\3\0\0\0\0\0\0\0\x18");
    assert_int_equal(feed_and_end(cut, KV_FRAMES_BYTES_MAX), ST_DAMAGED);
    const struct slice no_kv = SLICE_LITERAL("\1\0\0\0\0\0\0\0\xff");
    assert_int_equal(feed_and_end(no_kv, KV_FRAMES_BYTES_MAX), ST_DAMAGED);
    const struct slice no_revision = SLICE_LITERAL("\0\0\0\0\0\0\0\0");
    assert_int_equal(feed_and_end(no_revision, KV_FRAMES_BYTES_MAX), ST_DAMAGED);
    assert_int_equal(feed_and_end(SLICE_EMPTY, KV_FRAMES_BYTES_MAX), ST_OK);
}

static void all_keys_together_have_a_limit(void **state)
{
    (void)state;
    struct buf answer = {0};
    for (int i = 1; i <= 3; i++)
        append(&answer, "key", i);
    assert_int_equal(feed_and_end(buf_slice(&answer), 2 * sizeof(struct kv_frame)), ST_LIMIT);
    assert_int_equal(feed_and_end(buf_slice(&answer), 6 * sizeof(struct kv_frame)), ST_OK);
    buf_fini(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_sorted_and_the_last_of_a_revision_wins),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(all_keys_together_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
