#include "codec/base64.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void encoded_text_decodes_to_the_same_bytes(void **state)
{
    (void)state;
    uint8_t bytes[64], text[96], back[96];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 250);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        size_t got;
        base64_encode(slice_of(bytes, len), text);
        struct slice encoded = slice_of(text, base64_encoded_len(len));
        assert_true(base64_decode(encoded, back, &got));
        assert_true(slice_equal(slice_of(back, got), slice_of(bytes, len)));
        while (encoded.len && encoded.ptr[encoded.len - 1] == '=')
            encoded.len--;
        assert_true(base64_decode(encoded, back, &got)); /* without padding */
        assert_true(slice_equal(slice_of(back, got), slice_of(bytes, len)));
        assert_true(base64_decode(encoded, text, &got)); /* in place */
        assert_true(slice_equal(slice_of(text, got), slice_of(bytes, len)));
    }
}

static void both_alphabets_are_read(void **state)
{
    (void)state;
    uint8_t a[16], b[16];
    size_t a_len, b_len;
    assert_true(base64_decode(SLICE_LITERAL("-_-_"), a, &a_len));
    assert_true(base64_decode(SLICE_LITERAL("+/+/"), b, &b_len));
    assert_true(slice_equal(slice_of(a, a_len), slice_of(b, b_len)));
    assert_true(base64_decode(SLICE_LITERAL("Zm\nFy"
                                            "\r\n\r"),
                              a, &a_len));
    assert_true(slice_equal(slice_of(a, a_len), SLICE_LITERAL("far")));
}

/* The expected results are Go's. */
static void other_text_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"Z",    "Zm9vY", "Zg=",     "Zm9=v",    "Z===", "====",
                                       "-_+/", "Zm 9v", "Zm9\x80", "Zg==Zg==", "A=BC", "Zm9v="};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t room[16];
        size_t len = 99;
        assert_false(base64_decode(slice_from_text(rows[i]), room, &len));
        assert_int_equal(len, 99);
    }
}

static void faults_of_bytes_in_json_are_named_as_go_does(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ssize_t at;
    } rows[] = {{"", -1},      {"W10=", -1}, {"W1\n0=\r\n", -1}, {"W10", 0}, {"W1_0", 2},
                {"W1!0", 2},   {"+/+/", -1}, {"Zg==", -1},       {"Zg=", 3}, {"Zg=x", 2},
                {"Zg==Zg", 4}, {"=", 0},     {"ZmZmZ", 4},       {"Z===", 1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(base64_fault(slice_from_text(rows[i].text)), rows[i].at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoded_text_decodes_to_the_same_bytes),
        cmocka_unit_test(both_alphabets_are_read),
        cmocka_unit_test(other_text_is_refused),
        cmocka_unit_test(faults_of_bytes_in_json_are_named_as_go_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
