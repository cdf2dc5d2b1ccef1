#include "codec/json/scanner.h"

#include "base/random.h"
#include "codec/json/plain.h"
#include "codec/json/string.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A letter for each token. */
static const char letters[] = {
    [JSON_OBJECT] = '{', [JSON_OBJECT_END] = '}', [JSON_ARRAY] = '[',  [JSON_ARRAY_END] = ']',
    [JSON_KEY] = 'k',    [JSON_STRING] = 's',     [JSON_NUMBER] = '1', [JSON_TRUE] = 't',
    [JSON_FALSE] = 'f',  [JSON_NULL] = 'n',       [JSON_END] = '$',    [JSON_FAULT] = '!',
};

/* A separate allocation, so that the sanitizer finds a read past the end. */
static const char *scan(const char *text, char to[64], struct json_scanner *s)
{
    static uint8_t *copy;
    size_t n = 0, len = strlen(text);
    free(copy);
    copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    json_scanner_init(s, slice_of(copy, len));
    do
        to[n++] = letters[json_next(s)];
    while (n < 63 && to[n - 1] != '$' && to[n - 1] != '!');
    to[n] = '\0';
    return to;
}

static void values_become_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *text, *tokens;
    } rows[] = {
        {"{}", "{}$"},
        {" [ ] ", "[]$"},
        {"\"\"", "s$"},
        {"{\"a\":1,\"b\":[true,false,null,{}],\"c\":\"x\"}", "{k1k[tfn{}]ks}$"},
        {"\t[-0.5e+10 , 0, 12E3]\r\n", "[111]$"},
        {"[[[]],[]]", "[[[]][]]$"},
        {"\"0123456789abcdef\\n\\u00e9\\\"\\\\/\"", "s$"},
        {"12", "1$"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char got[64];
        struct json_scanner s;
        assert_string_equal(scan(rows[i].text, got, &s), rows[i].tokens);
    }
}

static void errors_are_in_the_words_of_go(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "EOF"},
        {" \n ", "EOF"},
        {"{", "unexpected EOF"},
        {"{\"a\"", "unexpected EOF"},
        {"[1,", "unexpected EOF"},
        {"\"abc", "unexpected EOF"},
        {"\"abc\\", "unexpected EOF"},
        {"\"\\u12", "unexpected EOF"},
        {"-", "unexpected EOF"},
        {"1.", "unexpected EOF"},
        {"1e", "unexpected EOF"},
        {"tru", "unexpected EOF"},
        {"bad", "invalid character 'b' looking for beginning of value"},
        {"[,]", "invalid character ',' looking for beginning of value"},
        {"[1,]", "invalid character ']' looking for beginning of value"},
        {"]", "invalid character ']' looking for beginning of value"},
        {"{]", "invalid character ']' looking for beginning of object key string"},
        {"{\"a\":1,}", "invalid character '}' looking for beginning of object key string"},
        {"{\"a\" 1}", "invalid character '1' after object key"},
        {"{\"a\":1 2}", "invalid character '2' after object key:value pair"},
        {"[1 2]", "invalid character '2' after array element"},
        {"[01]", "invalid character '1' after array element"},
        {"{} x", "invalid character 'x' after top-level value"},
        {"\"a\nb\"", "invalid character '\\n' in string literal"},
        {"\"a\x01\"", "invalid character '\\x01' in string literal"},
        {"\"\\x\"", "invalid character 'x' in string escape code"},
        {"\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"},
        {"-a", "invalid character 'a' in numeric literal"},
        {"1.x", "invalid character 'x' after decimal point in numeric literal"},
        {"1ex", "invalid character 'x' in exponent of numeric literal"},
        {"trux", "invalid character 'x' in literal true (expecting 'e')"},
        {"nul\'", "invalid character '\\'' in literal null (expecting 'l')"},
        {"\xe9", "invalid character '\xc3\xa9' looking for beginning of value"},
        {"\x80", "invalid character '\\u0080' looking for beginning of value"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char got[64], text[JSON_FAULT_TEXT_BYTES];
        struct json_scanner s;
        const char *tokens = scan(rows[i].text, got, &s);
        assert_int_equal(tokens[strlen(tokens) - 1], '!');
        assert_string_equal(json_fault_text(&s, text), rows[i].words);
        assert_int_equal(json_next(&s), JSON_FAULT); /* it is returned again */
    }
}

static void nesting_ends_at_its_limit(void **state)
{
    (void)state;
    enum { OVER = JSON_DEPTH_MAX + 1 };
    char *text = malloc(2 * OVER);
    struct json_scanner s;
    struct slice value;
    assert_non_null(text);
    memset(text, '[', OVER);
    memset(text + OVER, ']', OVER);
    json_scanner_init(&s, slice_of(text + 1, 2 * OVER - 2));
    assert_true(json_next_value(&s, &value));
    json_scanner_init(&s, slice_of(text, 2 * OVER));
    assert_false(json_next_value(&s, &value));
    assert_int_equal(s.fault, JSON_TOO_DEEP);
    free(text);
}

static void values_are_returned_one_after_another(void **state)
{
    (void)state;
    struct json_scanner s;
    struct slice value;
    json_scanner_init(&s, SLICE_LITERAL(" {\"a\":[1,{}]}{} \n[2] 3 x"));
    static const char *const values[] = {"{\"a\":[1,{}]}", "{}", "[2]", "3"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_true(json_next_value(&s, &value));
        assert_true(slice_equal(value, slice_from_text(values[i])));
    }
    assert_false(json_next_value(&s, &value));
    assert_int_equal(s.fault, JSON_NO_VALUE);
    json_scanner_init(&s, SLICE_LITERAL("{} "));
    assert_true(json_next_value(&s, &value));
    assert_false(json_next_value(&s, &value));
    assert_int_equal(s.fault, JSON_EMPTY);
}

static void skipping_continues_after_the_value(void **state)
{
    (void)state;
    struct json_scanner s;
    json_scanner_init(&s, SLICE_LITERAL("{\"skip\":{\"a\":[[],{}]},\"next\":7}"));
    assert_int_equal(json_next(&s), JSON_OBJECT);
    assert_int_equal(json_next(&s), JSON_KEY);
    assert_true(slice_equal(s.raw, SLICE_LITERAL("\"skip\"")));
    assert_true(json_skip(&s, JSON_KEY));
    assert_int_equal(json_next(&s), JSON_KEY);
    assert_int_equal(json_position(&s), 22);
    assert_int_equal(json_next(&s), JSON_NUMBER);
    assert_true(slice_equal(s.raw, SLICE_LITERAL("7")));
    assert_true(json_skip(&s, JSON_NUMBER));
    assert_int_equal(json_next(&s), JSON_OBJECT_END);
    assert_int_equal(json_next(&s), JSON_END);
}

/* -- Skipping, compared with reading every token -- */

static enum json_token read_rest(struct json_scanner *s)
{
    enum json_token token = json_next(s);
    while (s->depth > 0 && token != JSON_FAULT)
        token = json_next(s);
    return token;
}

/* Skips the value, which is an object or an array. */
static void compare_skipping(struct slice text)
{
    struct json_scanner skips, reads;
    uint8_t *copy = malloc(text.len ? text.len : 1);
    assert_non_null(copy);
    slice_copy(copy, text);
    json_scanner_init(&skips, slice_of(copy, text.len));
    json_scanner_init(&reads, slice_of(copy, text.len));
    bool skipped = json_skip(&skips, json_next(&skips));
    assert_int_equal(skipped, read_rest(&reads) != JSON_FAULT);
    assert_ptr_equal(skips.at, reads.at);
    assert_int_equal(skips.fault, reads.fault);
    assert_int_equal(skips.depth, reads.depth);
    assert_int_equal(skips.expects, reads.expects);
    if (skipped)
        assert_true(skips.raw.ptr == reads.raw.ptr && skips.raw.len == reads.raw.len);
    free(copy);
}

static size_t append_text(char *to, const char *text)
{
    size_t len = strlen(text);
    slice_copy(to, slice_of(text, len));
    return len;
}

/* A random value with and without white space, escapes and kinds of numbers. */
static size_t append_value(struct random *random, char *to, int depth)
{
    static const char *const scalars[] = {
        "\"\"",     "\"a\"",        "\"a text of more than sixteen bytes\"",
        "\"\\\"\"", "\"\\u00e4b\"", "12",
        "0",        "-1",           "1.5",
        "7e3",      "true",         "false",
        "null",     "100",          "\"\xc3\xa4\""};
    static const char *const keys[] = {
        "\"k\":", "\"key\" :", "\"\\n\": ", "\"\":", "\"a longer key\":"};
    static const char *const commas[] = {",", ", ", ",", "\n,"};
    uint64_t kind = depth > 5    ? 0
                    : depth == 0 ? 1 + random_below(random, 2)
                                 : random_below(random, 3);
    if (kind == 0)
        return append_text(to, scalars[random_below(random, COUNT_OF(scalars))]);
    size_t n = append_text(to, kind == 1 ? "{" : "[");
    for (uint64_t i = 0, count = random_below(random, 5); i < count; i++) {
        if (i)
            n += append_text(to + n, commas[random_below(random, COUNT_OF(commas))]);
        if (kind == 1)
            n += append_text(to + n, keys[random_below(random, COUNT_OF(keys))]);
        n += append_value(random, to + n, depth + 1);
    }
    return n + append_text(to + n, kind == 1 ? "}" : "]");
}

static void skipping_finds_what_reading_finds(void **state)
{
    (void)state;
    static char text[1 << 20];
    static const char bytes[] = "{}[],:\"\\ 0e1.tn\x01";
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct random random;
        random_init(&random, seed);
        size_t len = append_value(&random, text, 0);
        text[len] = ' ';
        compare_skipping(slice_of(text, len));
        compare_skipping(slice_of(text, len + 1));
        for (int i = 0; i < 40; i++) {
            size_t at = (size_t)random_below(&random, len);
            char was = text[at];
            compare_skipping(slice_of(text, at)); /* cut off */
            text[at] = bytes[random_below(&random, sizeof(bytes) - 1)];
            compare_skipping(slice_of(text, len));
            text[at] = was;
        }
    }
}

/* Values are passed at once if they have the bytes of one that was passed. */
static void skipping_finds_the_end_of_repeated_values(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{\"f:env\":{\".\":{},\"k:{\\\"name\\\":\\\"A_0001\\\"}\":{\".\":{},\"f:name\":{},\"f:"
        "value\":{}},"
        "\"k:{\\\"name\\\":\\\"A_0002\\\"}\":{\".\":{},\"f:name\":{},\"f:value\":{}},"
        "\"k:{\\\"name\\\":\\\"A_0003\\\"}\":{\".\":{},\"f:name\":{},\"f:value\":{}}},\"f:x\":{}}  "
        "     ",
        "[{\"a\":1},{\"a\":1},{\"a\":2},{\"a\":1}]        ",
        "[{\"a\":[{}]},{\"a\":[{}]},[{\"a\":[{}]}],[{}],[{}]]        ",
        "[{\"a\":[1]},{\"a\":[1]},{\"b\":{\"a\":[1]}},{\"b\":{\"a\":[1]}}]        ",
        "[{\"b\":{\"a\":1}},{\"b\":{\"a\":1}},{\"c\":{\"a\":1}}]        ",
        "{\"a\":{\"k\":\"}\"},\"b\":{\"k\":\"}\"},\"c\":{\"k\":\"}\",\"l\":1}}        ",
        "[{\"a\":\"x\"},{\"a\":\"x\",\"b\":{\"a\":\"x\"}}]        ",
    };
    static const char bytes[] = "{}[],:\"\\ 0x\x01";
    char text[512];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t len = append_text(text, rows[i]);
        for (size_t at = 0; at < len; at++) {
            compare_skipping(slice_of(text, at));
            char was = text[at];
            for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
                text[at] = bytes[k];
                compare_skipping(slice_of(text, len));
            }
            text[at] = was;
        }
        compare_skipping(slice_of(text, len));
    }
}

/* Escapes and ends of strings are found wherever they are in the blocks that are examined. */
static void skipping_passes_escapes_everywhere(void **state)
{
    (void)state;
    static const char *const ends[] = {"\\\"",    "\\\\", "\\\\\\\"", "\\n\\/",
                                       "\\u0041", "\\x",  "\x01",     "\xc3\xa4"};
    static const char dots[] = "........................................";
    char text[256];
    for (size_t e = 0; e < COUNT_OF(ends); e++) {
        for (int before = 0; before < 40; before++) {
            for (int behind = 0; behind < 24; behind++) {
                int len = snprintf(text, sizeof(text), "{\"%.*s%s%.*s\":\"%.*s%s\"}%.*s", before,
                                   dots, ends[e], behind % 4, dots, before, dots, ends[e], behind,
                                   "                        ");
                compare_skipping(slice_of(text, (size_t)len));
                compare_skipping(slice_of(text, (size_t)len / 2));
            }
        }
    }
}

/* The first levels are skipped in another way than those within them. */
static void skipping_passes_deep_values(void **state)
{
    (void)state;
    static char text[4096];
    for (int depth = 50; depth < 140; depth++) {
        size_t n = 0;
        for (int i = 0; i < depth; i++)
            n += append_text(text + n, i % 3 ? "{\"k\":" : "[\"value\",");
        n += append_text(text + n, "1");
        for (int i = depth; i-- > 0;)
            n += append_text(text + n, i % 3 ? ",\"l\":2}" : ",\"other\"]");
        compare_skipping(slice_of(text, n));
        text[n - (size_t)depth * 3] = ']';
        compare_skipping(slice_of(text, n));
    }
}

static void skipping_ends_at_the_limit_of_nesting(void **state)
{
    (void)state;
    static char text[3 * JSON_DEPTH_MAX];
    for (size_t over = 0; over < 2; over++) {
        size_t depth = JSON_DEPTH_MAX + over;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        compare_skipping(slice_of(text, 2 * depth));
    }
}

static void strings_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text; /* NULL: refused */
    } rows[] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20aC\"", "A\xc3\xa9\xe2\x82\xac"},
        {"\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
        {"\"\xc3\xa9\"", "\xc3\xa9"},
        {"\"\xff\"", NULL},
        {"\"\xc3\"", NULL},
        {"\"\xed\xa0\x80\"", NULL},
        {"\"\\ud83d\"", NULL},
        {"\"\\ud83dx\\ude00\"", NULL},
        {"\"\\ud83d\\u0041\"", NULL},
        {"\"\\ude00\\ud83d\"", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct json_scanner s;
        uint8_t room[64];
        struct slice text;
        json_scanner_init(&s, slice_from_text(rows[i].json));
        assert_int_equal(json_next(&s), JSON_STRING);
        enum json_string_fault fault = json_string_get(&s, room, &text);
        assert_int_equal(fault == JSON_STRING_FINE, rows[i].text != NULL);
        if (rows[i].text)
            assert_true(slice_equal(text, slice_from_text(rows[i].text)));
        size_t counted = 0;
        assert_int_equal(json_string_decode(s.raw, NULL, &counted), fault);
        assert_true(!rows[i].text || counted == strlen(rows[i].text));
    }
}

/* The search works on words: the byte is found at every position and beside every other byte. */
static void plain_text_ends_at_the_first_special_byte(void **state)
{
    enum { LEN = 40 };
    static const uint8_t ends[] = {'"', '\\', 0, 0x1f};
    uint8_t text[LEN];
    (void)state;
    for (size_t e = 0; e < COUNT_OF(ends); e++) {
        for (size_t at = 0; at < LEN; at++) {
            for (size_t high = 0; high <= LEN; high++) {
                bool beyond_ascii = false;
                memset(text, '!', LEN);
                memset(text + at, ends[e], LEN - at);
                if (high < LEN)
                    text[high] = 0xa2; /* a quote, except for its high bit */
                size_t end = high == at ? size_min(at + 1, LEN) : at;
                const uint8_t *found = json_plain_end(text, text + LEN, &beyond_ascii);
                assert_int_equal(found - text, end);
                assert_int_equal(beyond_ascii, high < end);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_become_tokens),
        cmocka_unit_test(errors_are_in_the_words_of_go),
        cmocka_unit_test(nesting_ends_at_its_limit),
        cmocka_unit_test(values_are_returned_one_after_another),
        cmocka_unit_test(skipping_continues_after_the_value),
        cmocka_unit_test(skipping_finds_what_reading_finds),
        cmocka_unit_test(skipping_finds_the_end_of_repeated_values),
        cmocka_unit_test(skipping_passes_escapes_everywhere),
        cmocka_unit_test(skipping_passes_deep_values),
        cmocka_unit_test(skipping_ends_at_the_limit_of_nesting),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(plain_text_ends_at_the_first_special_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
