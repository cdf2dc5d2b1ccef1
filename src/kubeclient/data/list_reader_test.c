#include "kubeclient/data/list_reader.h"

#include "base/failing_memory_test.h"
#include "base/random.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Items with a bar after each, and then the result. */
struct reading {
    struct buf items;
    enum status status;
    struct error error;
};

static void append(struct buf *to, struct slice bytes)
{
    memory_exempt = true;
    assert_int_equal(buf_append(to, bytes), ST_OK);
    memory_exempt = false;
}

/* A separate allocation for each piece, so that the sanitizer finds a read past its end. */
static uint8_t *copy_of(struct slice bytes)
{
    uint8_t *copy = __real_malloc(bytes.len ? bytes.len : 1);
    assert_non_null(copy);
    slice_copy(copy, bytes);
    return copy;
}

static enum status take_items(struct list_reader *reader, struct reading *reading)
{
    enum status status;
    struct slice item;
    while ((status = list_reader_next(reader, &item, &reading->error)) == ST_OK) {
        list_reader_check(reader);
        append(&reading->items, item);
        append(&reading->items, SLICE_LITERAL("|"));
    }
    list_reader_check(reader);
    return status;
}

static struct reading read_list(struct list_reader *reader, struct slice body, size_t piece_bytes)
{
    struct reading reading = {.status = ST_AGAIN};
    for (size_t at = 0; at < body.len && reading.status == ST_AGAIN; at += piece_bytes) {
        size_t n = size_min(piece_bytes, body.len - at);
        uint8_t *piece = copy_of(slice_sub(body, at, n));
        list_reader_feed(reader, slice_of(piece, n));
        reading.status = take_items(reader, &reading);
        free(piece);
    }
    if (reading.status == ST_AGAIN)
        reading.status = list_reader_end(reader, &reading.error);
    append(&reading.items, slice_of("", 1));
    return reading;
}

static const char *show(const struct list_info *info)
{
    static char text[256];
    snprintf(text, sizeof(text), "%.*s %.*s %.*s %.*s %.*s %" PRId64, SLICE_ARGS(info->kind),
             SLICE_ARGS(info->api_version), SLICE_ARGS(info->item_kind), SLICE_ARGS(info->version),
             SLICE_ARGS(info->continue_token), info->remaining);
    return text;
}

static void expect(const char *body, const char *items, const char *shown)
{
    for (size_t piece_bytes = 1; piece_bytes <= strlen(body); piece_bytes++) {
        struct list_reader reader;
        list_reader_init(&reader, FRAMER_JSON);
        struct reading reading = read_list(&reader, slice_from_text(body), piece_bytes);
        assert_int_equal(reading.status, ST_OK);
        assert_string_equal((const char *)reading.items.ptr, items);
        struct list_info info = list_reader_info(&reader);
        assert_string_equal(show(&info), shown);
        buf_fini(&reading.items);
        list_reader_fini(&reader);
    }
}

static void expect_error(struct slice body, size_t item_bytes_max, enum status status,
                         const char *text)
{
    for (size_t piece_bytes = 1; piece_bytes <= body.len + 1; piece_bytes++) {
        struct list_reader reader;
        list_reader_init(&reader, FRAMER_JSON);
        if (item_bytes_max)
            reader.framer.bytes_max = item_bytes_max;
        struct reading reading = read_list(&reader, body, piece_bytes);
        assert_int_equal(reading.status, status);
        assert_non_null(strstr(reading.error.text, text));
        buf_fini(&reading.items);
        list_reader_fini(&reader);
    }
}

static void items_and_metadata_may_be_cut_anywhere(void **state)
{
    (void)state;
    expect("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"12\","
           "\"continue\":\"abc\",\"remainingItemCount\":77},\"items\":[{\"a\":\"]}\"},{\"b\":[1,"
           "{}]}]}\n",
           "{\"a\":\"]}\"}|{\"b\":[1,{}]}|", "PodList v1 Pod 12 abc 77");
    expect("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}", "",
           "PodList v1 Pod   -1");
}

static void members_have_any_order_and_white_space(void **state)
{
    (void)state;
    expect(" {\n\t\"items\" : [ { \"a\" : 1 } , {} \r\n ] , \"metadata\" :{ \"resourceVersion\" : "
           "\"1\" } , \"x\" : 12 ,\"y\":true, \"z\":\"s\",\"w\":[[1,2],{}], \"kind\":\"AList\"  } ",
           "{ \"a\" : 1 }|{}|", "AList  A 1  -1");
}

static void escapes_are_decoded(void **state)
{
    (void)state;
    expect("{\"\\u006bind\":\"\\u0050odList\",\"i\\u0074ems\":[{}],"
           "\"metadata\":{\"continue\":\"\\u003d\\\"\"}}",
           "{}|", "PodList  Pod  =\" -1");
}

static void odd_lists_are_read_as_elsewhere(void **state)
{
    (void)state;
    expect("{\"items\":null,\"kind\":\"TList\",\"apiVersion\":1}", "", "TList  T   -1");
    expect("{\"kind\":\"TList\"}", "", "TList  T   -1"); /* Go leaves out empty members */
    expect("{\"kind\":\"List\",\"items\":[{}]}", "{}|", "List     -1");
    expect("{\"kind\":\"A\",\"kind\":\"BList\",\"items\":[{}],\"items\":[{\"a\":1}],\"metadata\":{"
           "\"remainingItemCount\":-5},\"metadata\":{\"resourceVersion\":\"1\"}}",
           "{}|", "A     -1");
}

static void what_is_not_a_list_is_an_error(void **state)
{
    (void)state;
    static const char *const malformed[] = {
        "[]",
        "12 ",
        "{]",
        "{,",
        "{\"a\" 1}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 2}",
        "{\"a\":1}}",
        "{\"a\":1}{",
        "{\"a\":01}",
        "{\"a\":tru }",
        "{\"a\":\"\\x\"}",
        "{\"\\x\":1}",
        "{a:1}",
        "{\"items\":{}}",
        "{\"items\":1}",
        "{\"items\":[,",
        "{\"items\":[1]}",
        "{\"items\":[null]}",
        "{\"items\":[[]]}",
        "{\"items\":[{}{}]}",
        "{\"items\":[{},]}",
        "{\"items\":[{]}]}",
        "{\"items\":[{\"a\":1,}]}",
        "{\"items\":[{}}",
        "{\"kind\":\"\\ud800\"}",
        "{\"kind\":\"\xff\"}",
        "k8s",
    };
    for (size_t i = 0; i < COUNT_OF(malformed); i++)
        expect_error(slice_from_text(malformed[i]), 0, ST_MALFORMED, "not valid JSON: at byte ");
    expect_error(SLICE_LITERAL("{\"a\"\0:1}"), 0, ST_MALFORMED, "not valid JSON: at byte 4");
    expect_error(SLICE_LITERAL("{}\0"), 0, ST_MALFORMED, "not valid JSON: at byte 2");
    expect_error(SLICE_LITERAL("{\"kind\":\"Status\",\"status\":\"Failure\"}"), 0, ST_MALFORMED,
                 "no list, but an object of kind Status");
    expect_error(SLICE_LITERAL("{}"), 0, ST_MALFORMED, "no list");
}

static void body_that_ends_early_is_an_error(void **state)
{
    (void)state;
    static const char body[] = "{\"kind\":\"PodList\",\"items\":[{\"a\":1},{\"a\":\"\\u00e4\"}],"
                               "\"metadata\":{\"remainingItemCount\":7}}";
    for (size_t len = 0; len < sizeof(body) - 1; len++)
        expect_error(slice_of(body, len), 0, ST_MALFORMED, "ended early");
    expect("{\"items\":[]}", "", "     -1");
}

static void failure_is_returned_again(void **state)
{
    (void)state;
    struct list_reader reader;
    struct slice item;
    struct error error;
    list_reader_init(&reader, FRAMER_JSON);
    for (int i = 0; i < 2; i++) { /* the connection may have more bytes */
        list_reader_feed(&reader, SLICE_LITERAL("]{\"items\":[{}]}"));
        assert_int_equal(list_reader_next(&reader, &item, &error), ST_MALFORMED);
        assert_int_equal(list_reader_next(&reader, &item, &error), ST_MALFORMED);
    }
    assert_int_equal(list_reader_end(&reader, &error), ST_MALFORMED);
    list_reader_fini(&reader);
}

static void items_that_are_too_long_are_an_error(void **state)
{
    (void)state;
    expect_error(SLICE_LITERAL("{\"items\":[{\"a\":12},{\"a\":123}]}"), 8, ST_LIMIT,
                 "too long: at byte 2");
    expect_error(SLICE_LITERAL("{\"kind\":\"AList\",\"x\":123456789}"), 8, ST_LIMIT, "too long");
    struct list_reader reader;
    list_reader_init(&reader, FRAMER_JSON);
    assert_int_equal(reader.framer.bytes_max, 16 << 20);
    list_reader_fini(&reader);
}

static void append_many(struct buf *to, char byte, size_t count)
{
    for (size_t i = 0; i < count; i++)
        append(to, slice_of(&byte, 1));
}

static void texts_that_are_too_long_are_an_error(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        struct list_reader reader;
        struct buf body = {0};
        list_reader_init(&reader, FRAMER_JSON);
        append(&body, SLICE_LITERAL("{\"items\":[],\"metadata\":{\"continue\":\""));
        append_many(&body, 'c', LIST_TEXT_BYTES_MAX - 2 + over);
        append(&body, SLICE_LITERAL("\"}}"));
        struct reading reading = read_list(&reader, buf_slice(&body), 1000);
        assert_int_equal(reading.status, over ? ST_LIMIT : ST_OK);
        buf_fini(&reading.items);
        buf_fini(&body);
        list_reader_fini(&reader);
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        struct list_reader reader;
        struct buf body = {0};
        size_t depth = 10000 - 1 + over; /* within the item */
        list_reader_init(&reader, FRAMER_JSON);
        append(&body, SLICE_LITERAL("{\"items\":[{\"a\":"));
        append_many(&body, '[', depth);
        append_many(&body, ']', depth);
        append(&body, SLICE_LITERAL("}]}"));
        struct reading reading = read_list(&reader, buf_slice(&body), 777);
        assert_int_equal(reading.status, over ? ST_MALFORMED : ST_OK);
        buf_fini(&reading.items);
        buf_fini(&body);
        list_reader_fini(&reader);
    }
}

/* 200 MB of items that are cut in the middle of each. */
static void long_list_needs_the_memory_of_one_item(void **state)
{
    (void)state;
    enum { ITEM = 100 << 10, COUNT = 2000 };
    struct list_reader reader;
    struct error error;
    struct slice item;
    static char piece[ITEM + 8];
    list_reader_init(&reader, FRAMER_JSON);
    list_reader_feed(&reader, SLICE_LITERAL("{\"items\":[{\"a\":\""));
    assert_int_equal(list_reader_next(&reader, &item, &error), ST_AGAIN);
    memset(piece, 'x', ITEM);
    snprintf(piece + ITEM - 9, 16, "\"},{\"a\":\"");
    for (int i = 0; i < COUNT; i++) {
        list_reader_feed(&reader, slice_of(piece, ITEM));
        assert_int_equal(list_reader_next(&reader, &item, &error), ST_OK);
        assert_in_range(item.len, ITEM - 16, ITEM + 16);
        assert_int_equal(list_reader_next(&reader, &item, &error), ST_AGAIN);
        assert_in_range(reader.framer.held.capacity, 1, 2 * ITEM);
    }
    assert_int_equal(reader.item_count, COUNT);
    list_reader_fini(&reader);
}

/* -- Random lists -- */

static void append_item(struct random *random, struct buf *to)
{
    static const char *const parts[] = {"{}", "{\"a\":\"\\\"]\"}", "{ \"b\":[1, {\"c\":null}] }",
                                        "{\"d\":\"\xc3\xa4\"}"};
    append(to, slice_from_text(parts[random_below(random, COUNT_OF(parts))]));
}

static void random_lists_are_read(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random random;
        struct list_reader reader;
        struct buf body = {0}, expected = {0};
        random_init(&random, seed);
        append(&body, SLICE_LITERAL("{\"items\":["));
        for (uint64_t i = 0, n = random_below(&random, 30); i < n; i++) {
            append(&body, slice_from_text(i ? random_chance(&random, 1, 2) ? " ,\n" : "," : ""));
            size_t from = body.len;
            append_item(&random, &body);
            append(&expected, slice_of(body.ptr + from, body.len - from));
            append(&expected, SLICE_LITERAL("|"));
        }
        append(&expected, slice_of("", 1));
        append(&body, SLICE_LITERAL("]}"));
        list_reader_init(&reader, FRAMER_JSON);
        struct reading reading =
            read_list(&reader, buf_slice(&body), 1 + (size_t)random_below(&random, 40));
        assert_int_equal(reading.status, ST_OK);
        assert_string_equal((const char *)reading.items.ptr, (const char *)expected.ptr);
        list_reader_fini(&reader);
        buf_fini(&reading.items);
        buf_fini(&body);
        buf_fini(&expected);
    }
}

/* -- Memory -- */

static void read_with_failures(void *ctx)
{
    struct list_reader reader;
    struct slice body =
        SLICE_LITERAL("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":"
                      "\"abc\",\"resourceVersion\":\"7\"},\"items\":[{\"a\":1},{\"b\":[1,{}]}]}");
    bool fails = memory_fail_at > 0;
    list_reader_init(&reader, FRAMER_JSON);
    struct reading reading = read_list(&reader, body, *(size_t *)ctx);
    assert_int_equal(reading.status, fails ? ST_NOMEM : ST_OK);
    buf_fini(&reading.items);
    list_reader_fini(&reader);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (size_t piece_bytes = 1; piece_bytes < 200; piece_bytes *= 3)
        assert_true(each_allocation_fails(read_with_failures, &piece_bytes) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_and_metadata_may_be_cut_anywhere),
        cmocka_unit_test(members_have_any_order_and_white_space),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(odd_lists_are_read_as_elsewhere),
        cmocka_unit_test(what_is_not_a_list_is_an_error),
        cmocka_unit_test(body_that_ends_early_is_an_error),
        cmocka_unit_test(failure_is_returned_again),
        cmocka_unit_test(items_that_are_too_long_are_an_error),
        cmocka_unit_test(texts_that_are_too_long_are_an_error),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(long_list_needs_the_memory_of_one_item),
        cmocka_unit_test(random_lists_are_read),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
