#include "mirror/answer/forwarded_range.h"

#include "base/memory/budget.h"
#include "base/random.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 20000 };

static struct buf response_of(int64_t keys)
{
    struct pb_key_value *kvs = calloc((size_t)keys + 1, sizeof(*kvs));
    struct pb_response_header header = {.revision = 77, .cluster_id = UINT64_MAX};
    struct pb_range_response response = {
        .header = &header, .kvs = kvs, .kvs_count = (size_t)keys, .more = true, .count = 5 * keys};
    struct buf bytes = {0};
    for (int64_t i = 0; i < keys; i++)
        kvs[i] = (struct pb_key_value){.key = slice_of("key-of-some-length", (size_t)(1 + i % 17)),
                                       .value = slice_of("value", (size_t)(i % 6)),
                                       .create_revision = 1,
                                       .mod_revision = 1 + i % 77,
                                       .version = 1};
    assert_int_equal(pb_append(&pb_range_response_table, &response, &bytes), ST_OK);
    free(kvs);
    return bytes;
}

/* The answer to a request for all keys that follow "k". */
static enum status take(struct forwarded_range *range, struct account *account,
                        struct slice message)
{
    return forwarded_range_take(range, account, message, SLICE_LITERAL("k"), slice_of("", 1));
}

static enum status scan(struct forwarded_range *range, unsigned *ret_steps)
{
    enum status status;
    *ret_steps = 0;
    do {
        ++*ret_steps;
        status = forwarded_range_scan(range);
    } while (status == ST_AGAIN);
    return status;
}

static struct forwarded_range taken(struct slice message)
{
    struct forwarded_range range;
    unsigned steps;
    assert_int_equal(take(&range, NULL, message), ST_OK);
    assert_int_equal(scan(&range, &steps), ST_OK);
    return range;
}

static void long_answers_are_scanned_in_steps(void **state)
{
    (void)state;
    struct buf bytes = response_of(KEYS);
    struct forwarded_range range;
    unsigned steps;
    assert_int_equal(take(&range, NULL, buf_slice(&bytes)), ST_OK);
    assert_int_equal(scan(&range, &steps), ST_OK);
    assert_true(steps >= 3);
    assert_int_equal(range.kvs, KEYS);
    assert_int_equal(range.count, 5 * KEYS);
    assert_int_equal(range.revision, 77);
    assert_true(range.more);
    forwarded_range_fini(&range);
    buf_fini(&bytes);
}

/* Whatever the windows and the room, the fields are those of the message. */
static void every_byte_comes_once_and_in_order(void **state)
{
    (void)state;
    struct buf bytes = response_of(300), first = {0}, again = {0};
    struct random random;
    random_init(&random, 7);
    struct forwarded_range range = taken(buf_slice(&bytes));
    uint64_t kvs_bytes = range.kvs_bytes;
    struct slice field;
    while (forwarded_range_next(&range, &field)) {
        assert_int_equal(field.ptr[0], 0x12);
        assert_int_equal(buf_append(&first, field), ST_OK);
    }
    assert_int_equal(first.len, kvs_bytes);
    forwarded_range_fini(&range);

    range = taken(buf_slice(&bytes));
    for (int64_t left = 300, keys; left; left -= keys) {
        uint64_t window, filled = 0;
        forwarded_range_window(&range, random_between(&random, 1, 40), &keys, &window);
        forwarded_range_window(&range, keys, &keys, &window); /* the same again */
        while (filled < window) {
            uint8_t dst[64];
            size_t n = forwarded_range_fill(&range, dst, (size_t)random_between(&random, 1, 64));
            assert_true(n > 0);
            assert_int_equal(buf_append(&again, slice_of(dst, n)), ST_OK);
            filled += n;
        }
        assert_int_equal(filled, window);
        uint8_t none;
        assert_int_equal(forwarded_range_fill(&range, &none, 1), 0);
    }
    assert_true(slice_equal(buf_slice(&first), buf_slice(&again)));
    forwarded_range_fini(&range);
    buf_fini(&first);
    buf_fini(&again);
    buf_fini(&bytes);
}

static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    struct slice message = SLICE_LITERAL("\x7a\x01x"            /* 15: bytes */
                                         "\x12\x03\x0a\x01k"    /* a key-value */
                                         "\x79"                 /* 15: fixed64 */
                                         "12345678\x7d"         /* 15: fixed32 */
                                         "1234\x0a\x02\x18\x09" /* the header */
                                         "\x12\x03\x0a\x01m\x20\x02");
    struct forwarded_range range = taken(message);
    struct slice field;
    assert_int_equal(range.kvs, 2);
    assert_int_equal(range.kvs_bytes, 10);
    assert_int_equal(range.revision, 9);
    assert_true(forwarded_range_next(&range, &field));
    assert_true(slice_is(field, "\x12\x03\x0a\x01k"));
    assert_true(forwarded_range_next(&range, &field));
    assert_true(slice_is(field, "\x12\x03\x0a\x01m"));
    assert_false(forwarded_range_next(&range, &field));
    forwarded_range_fini(&range);
}

static void what_is_not_a_response_is_malformed(void **state)
{
    (void)state;
    struct buf bytes = response_of(20);
    struct random random;
    unsigned steps;
    struct forwarded_range range;
    random_init(&random, 3);
    assert_int_equal(take(&range, NULL, SLICE_EMPTY), ST_OK);
    assert_int_equal(scan(&range, &steps), ST_MALFORMED); /* no header */
    forwarded_range_fini(&range);
    for (size_t len = 1; len < bytes.len; len++) {
        struct slice cut = slice_of(bytes.ptr, len);
        assert_int_equal(take(&range, NULL, cut), ST_OK);
        (void)scan(&range, &steps);
        forwarded_range_fini(&range);
    }
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)random_below(&random, bytes.len);
        uint8_t before = bytes.ptr[at];
        bytes.ptr[at] = (uint8_t)random_u64(&random);
        assert_int_equal(take(&range, NULL, buf_slice(&bytes)), ST_OK);
        if (scan(&range, &steps) == ST_OK) {
            uint64_t total = 0;
            struct slice field;
            while (forwarded_range_next(&range, &field))
                total += field.len;
            assert_int_equal(total, range.kvs_bytes);
        }
        forwarded_range_fini(&range);
        bytes.ptr[at] = before;
    }
    buf_fini(&bytes);
}

static enum status scan_kv(const struct pb_key_value *kv, int64_t revision, struct slice end)
{
    struct pb_response_header header = {.revision = revision};
    struct pb_range_response response = {
        .header = &header, .kvs = (struct pb_key_value *)kv, .kvs_count = 1, .count = 1};
    struct buf bytes = {0};
    struct forwarded_range range;
    unsigned steps;
    assert_int_equal(pb_append(&pb_range_response_table, &response, &bytes), ST_OK);
    assert_int_equal(forwarded_range_take(&range, NULL, buf_slice(&bytes), SLICE_LITERAL("k"), end),
                     ST_OK);
    enum status status = scan(&range, &steps);
    forwarded_range_fini(&range);
    buf_fini(&bytes);
    return status;
}

static void what_was_not_requested_and_cannot_be_true_is_malformed(void **state)
{
    (void)state;
    struct slice all = slice_of("", 1), one = SLICE_EMPTY, some = SLICE_LITERAL("m");
    struct pb_key_value kv = {
        .key = SLICE_LITERAL("k"), .create_revision = 2, .mod_revision = 5, .version = 3};
    assert_int_equal(scan_kv(&kv, 5, all), ST_OK);
    assert_int_equal(scan_kv(&kv, 5, some), ST_OK);
    assert_int_equal(scan_kv(&kv, 5, one), ST_OK);
    assert_int_equal(scan_kv(&kv, 4, all), ST_MALFORMED); /* newer than the answer */
    assert_int_equal(scan_kv(&kv, 0, all), ST_MALFORMED);
    assert_int_equal(scan_kv(&kv, INT64_MAX, all), ST_MALFORMED);
    assert_int_equal(scan_kv(&kv, INT64_MIN, all), ST_MALFORMED);
    kv.key = SLICE_LITERAL("l");
    assert_int_equal(scan_kv(&kv, 5, all), ST_OK);
    assert_int_equal(scan_kv(&kv, 5, one), ST_MALFORMED);
    static const char *const others[] = {"", "j", "x"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        kv.key = slice_from_text(others[i]);
        assert_int_equal(scan_kv(&kv, 5, some), ST_MALFORMED);
    }
    kv.key = SLICE_LITERAL("k");
    kv.create_revision = 6;
    assert_int_equal(scan_kv(&kv, 9, all), ST_MALFORMED);
    kv.create_revision = INT64_MIN;
    assert_int_equal(scan_kv(&kv, 9, all), ST_MALFORMED);
    kv.create_revision = 2;
    kv.version = -1;
    assert_int_equal(scan_kv(&kv, 9, all), ST_MALFORMED);
}

/* Those who read key-values do not look at the ends of their fields again. */
static void a_key_value_whose_fields_go_beyond_it_is_malformed(void **state)
{
    (void)state;
    static const struct slice messages[] = {
        SLICE_LITERAL("\x0a\x02\x18\x09\x12\x03\x0a\x7fk"),         /* a key of 127 bytes */
        SLICE_LITERAL("\x0a\x02\x18\x09\x12\x05\x0a\x01k\x2a\x7f"), /* a value */
        SLICE_LITERAL("\x0a\x02\x18\x09\x12\x04\x0a\x01k\x18"),     /* no number */
        SLICE_LITERAL("\x0a\x02\x18\x09\x12\x05\x0a\x01k\x28\x01"), /* a value as a number */
        SLICE_LITERAL("\x0a\x02\x18\x09\x12\x08\x0a\x01k\x7d"
                      "1234"), /* a fixed32 */
    };
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        struct forwarded_range range;
        unsigned steps;
        assert_int_equal(take(&range, NULL, messages[i]), ST_OK);
        assert_int_equal(scan(&range, &steps), ST_MALFORMED);
        forwarded_range_fini(&range);
    }
}

static void the_message_is_charged(void **state)
{
    (void)state;
    struct budget *budget;
    struct account *account;
    struct buf bytes = response_of(KEYS);
    struct forwarded_range range;
    assert_int_equal(budget_new(16 * bytes.len, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    size_t before = account_held_bytes(account);
    assert_int_equal(take(&range, account, buf_slice(&bytes)), ST_OK);
    assert_true(account_held_bytes(account) >= before + bytes.len);
    forwarded_range_fini(&range);
    forwarded_range_fini(&range);
    assert_int_equal(account_held_bytes(account), before);
    account_unref(account);
    budget_free(budget);

    assert_int_equal(budget_new(bytes.len, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    assert_int_equal(take(&range, account, buf_slice(&bytes)), ST_NOMEM);
    account_unref(account);
    budget_free(budget);
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_answers_are_scanned_in_steps),
        cmocka_unit_test(every_byte_comes_once_and_in_order),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(what_is_not_a_response_is_malformed),
        cmocka_unit_test(what_was_not_requested_and_cannot_be_true_is_malformed),
        cmocka_unit_test(a_key_value_whose_fields_go_beyond_it_is_malformed),
        cmocka_unit_test(the_message_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
