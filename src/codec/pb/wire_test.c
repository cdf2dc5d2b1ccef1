#include "codec/pb/wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void varints_grow_by_a_byte_for_seven_bits(void **state)
{
    (void)state;
    assert_int_equal(pb_varint_size(0), 1);
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t value = 1ull << bit;
        assert_int_equal(pb_varint_size(value), bit / 7 + 1);
        assert_int_equal(pb_varint_size(value | (value - 1)), bit / 7 + 1);
    }
}

static void varints_are_read_as_written(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (uint64_t off = 0; off < 3; off++) {
            uint64_t value = (1ull << bit) - 1 + off, got = ~value;
            uint8_t bytes[PB_VARINT_BYTES_MAX];
            uint8_t *end = pb_varint_write(bytes, value);
            assert_int_equal(end - bytes, pb_varint_size(value));
            assert_ptr_equal(pb_varint_read(bytes, end, &got), end);
            assert_true(got == value);
            assert_null(pb_varint_read(bytes, end - 1, &got));
        }
    }
}

/* With enough bytes behind it, it is read another way. */
static void varints_are_read_alike_whatever_follows(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (unsigned following = 0; following < 0x200; following += 0xff) {
            uint64_t value = 0xdeadbeefcafef00d >> bit, got = ~value;
            uint8_t bytes[2 * PB_VARINT_BYTES_MAX];
            memset(bytes, (uint8_t)following, sizeof(bytes));
            uint8_t *end = pb_varint_write(bytes, value);
            assert_ptr_equal(pb_varint_read(bytes, bytes + sizeof(bytes), &got), end);
            assert_true(got == value);
        }
    }
}

static void varints_past_ten_bytes_or_64_bits_are_refused(void **state)
{
    (void)state;
    const uint8_t largest[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    const uint8_t too_large[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    const uint8_t too_long[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    const uint8_t padded[] = "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00";
    uint64_t got = 0;
    assert_ptr_equal(pb_varint_read(largest, largest + 10, &got), largest + 10);
    assert_true(got == UINT64_MAX);
    assert_null(pb_varint_read(too_large, too_large + 10, &got));
    for (size_t len = 0; len <= 11; len++)
        assert_null(pb_varint_read(too_long, too_long + len, &got));
    assert_ptr_equal(pb_varint_read(padded, padded + 10, &got), padded + 10);
    assert_true(got == 1);
}

static void lengths_end_within_the_bytes(void **state)
{
    (void)state;
    const uint8_t bytes[] = {3, 'a', 'b', 'c'};
    size_t len = 0;
    assert_ptr_equal(pb_len_read(bytes, bytes + 4, &len), bytes + 1);
    assert_int_equal(len, 3);
    assert_null(pb_len_read(bytes, bytes + 3, &len));
    assert_null(pb_len_read(bytes, bytes, &len));
}

static void sizes_agree_with_what_is_written(void **state)
{
    (void)state;
    const uint32_t numbers[] = {1, 15, 16, 2047, 2048, PB_NUMBER_MAX};
    const uint64_t values[] = {0, 1, 127, 128, UINT32_MAX, UINT64_MAX};
    uint8_t text[300] = {0}, out[400];
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        uint32_t number = numbers[i];
        assert_int_equal(pb_tag_write(out, number, PB_WIRE_LEN) - out, pb_tag_size(number));
        for (size_t k = 0; k < COUNT_OF(values); k++)
            assert_int_equal(pb_uint_write(out, number, values[k]) - out,
                             pb_uint_size(number, values[k]));
        for (size_t len = 0; len < sizeof(text); len += 127) {
            assert_int_equal(pb_bytes_write(out, number, slice_of(text, len)) - out,
                             pb_bytes_size(number, len));
            assert_int_equal(pb_message_head_write(out, number, len) - out,
                             pb_message_head_size(number, len));
        }
    }
}

static void defaults_write_nothing(void **state)
{
    (void)state;
    uint8_t out[1];
    assert_ptr_equal(pb_uint_write(out, 1, 0), out);
    assert_ptr_equal(pb_bytes_write(out, 1, SLICE_EMPTY), out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_grow_by_a_byte_for_seven_bits),
        cmocka_unit_test(varints_are_read_as_written),
        cmocka_unit_test(varints_are_read_alike_whatever_follows),
        cmocka_unit_test(varints_past_ten_bytes_or_64_bits_are_refused),
        cmocka_unit_test(lengths_end_within_the_bytes),
        cmocka_unit_test(sizes_agree_with_what_is_written),
        cmocka_unit_test(defaults_write_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
