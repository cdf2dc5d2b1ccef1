#include "kubeclient/data/list_reader.h"

#include "base/failing_memory_test.h"
#include "base/random.h"
#include "codec/pb/wire.h"
#include "kubeclient/data/object.h"
#include "kubeclient/data/protobuf.h"
#include "kubeclient/data/samples_test.h"

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

static void expect_error_in(enum framer_format format, struct slice body, size_t item_bytes_max,
                            enum status status, const char *text)
{
    for (size_t piece_bytes = 1; piece_bytes <= body.len + 1; piece_bytes++) {
        struct list_reader reader;
        list_reader_init(&reader, format);
        if (item_bytes_max)
            reader.framer.bytes_max = item_bytes_max;
        struct reading reading = read_list(&reader, body, piece_bytes);
        assert_int_equal(reading.status, status);
        assert_non_null(strstr(reading.error.text, text));
        buf_fini(&reading.items);
        list_reader_fini(&reader);
    }
}

static void expect_error(struct slice body, size_t item_bytes_max, enum status status,
                         const char *text)
{
    expect_error_in(FRAMER_JSON, body, item_bytes_max, status, text);
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

/* -- Protobuf -- */

static void expect_protobuf(struct slice body, struct slice items, const char *shown)
{
    for (size_t piece_bytes = 1; piece_bytes <= body.len; piece_bytes++) {
        struct list_reader reader;
        list_reader_init(&reader, FRAMER_PROTOBUF);
        struct reading reading = read_list(&reader, body, piece_bytes);
        assert_int_equal(reading.status, ST_OK);
        assert_true(slice_equal(slice_of(reading.items.ptr, reading.items.len - 1), items));
        struct list_info info = list_reader_info(&reader);
        assert_string_equal(show(&info), shown);
        buf_fini(&reading.items);
        list_reader_fini(&reader);
    }
}

/* The envelope of a pod without the two empty fields at its end. */
static struct slice pod_of_list(void)
{
    return slice_of(SAMPLE_POD, sizeof(SAMPLE_POD) - 1 - 4);
}

static void lists_in_protobuf_may_be_cut_anywhere(void **state)
{
    (void)state;
    struct buf items = {0};
    append(&items, pod_of_list());
    append(&items, SLICE_LITERAL("|"));
    size_t second = items.len;
    append(&items, pod_of_list());
    append(&items, SLICE_LITERAL("|"));
    items.ptr[second + 22] = 'b'; /* its name */
    items.ptr[second + 38] = '3'; /* and the last digit of its version */
    expect_protobuf(SLICE_LITERAL(SAMPLE_LIST), buf_slice(&items), "PodList v1 Pod 34 tok 7");
    expect_protobuf(SLICE_LITERAL(SAMPLE_EMPTY_LIST), SLICE_EMPTY, "PodList v1 Pod 34 tok 7");
    buf_fini(&items);
}

static void items_in_protobuf_are_objects(void **state)
{
    (void)state;
    struct list_reader reader;
    struct slice item;
    struct error error;
    vigil_kube_object *object;
    list_reader_init(&reader, FRAMER_PROTOBUF);
    list_reader_feed(&reader, SLICE_LITERAL(SAMPLE_LIST));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(list_reader_next(&reader, &item, &error), ST_OK);
        assert_int_equal(object_new(item, &object), ST_OK);
        assert_true(slice_equal(object_key(object), slice_from_text(i ? "n/b" : "n/a")));
        vigil_bytes kind = vigil_kube_object_kind(object);
        assert_true(slice_equal(slice_of(kind.data, kind.size), SLICE_LITERAL("Pod")));
        vigil_kube_object_unref(object);
    }
    assert_int_equal(list_reader_next(&reader, &item, &error), ST_AGAIN);
    assert_int_equal(list_reader_end(&reader, &error), ST_OK);
    list_reader_fini(&reader);
}

#define TYPE_META "\x0a\x09\x12\x07PodList"

static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    expect_protobuf(SLICE_LITERAL("k8s\0" TYPE_META "\x28\xac\x02\x31"
                                  "12345678\x3d"
                                  "1234\x42\x02xx"
                                  "\x12\x19"
                                  "\x18\x07\x12\x03"
                                  "a\0b\x22\x01y\x29"
                                  "12345678\x12\x00\x10\x05"
                                  "\x1a\x00" TYPE_META),
                    SLICE_LITERAL("k8s\0\x0a\x05\x12\x03Pod\x12\x03"
                                  "a\0b|"
                                  "k8s\0\x0a\x05\x12\x03Pod\x12\x00|"),
                    "PodList  Pod   -1");
    expect_protobuf(SLICE_LITERAL("k8s\0" TYPE_META), SLICE_EMPTY, "PodList  Pod   -1");
    expect_protobuf(SLICE_LITERAL("k8s\0" TYPE_META "\x12\x00"), SLICE_EMPTY, "PodList  Pod   -1");
    /* The first ListMeta counts; a count below 0 is unknown. */
    expect_protobuf(SLICE_LITERAL("k8s\0" TYPE_META "\x12\x14\x0a\x0d\x12\x00\x20"
                                  "\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x03\x12\x01"
                                  "1"),
                    SLICE_EMPTY, "PodList  Pod   -1");
}

static void what_is_not_a_list_in_protobuf_is_an_error(void **state)
{
    (void)state;
#define BODY(text) SLICE_LITERAL("k8s\0" text)
    static const struct slice malformed[] = {
        {(const uint8_t *)"k8t", 3},
        {(const uint8_t *)"{}", 2},
        BODY("\x0b"),                                             /* a group */
        BODY("\x0f"),                                             /* no such type */
        BODY("\x00\x00"),                                         /* the number 0 */
        BODY("\x80\x80\x80\x80\x10\x00"),                         /* 2^29 */
        BODY("\x8a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),     /* a tag without end */
        BODY("\x0a\x8a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"), /* a length */
        BODY("\x12\x02\x0a\x00"),                                 /* before its kind */
        BODY(TYPE_META "\x12\x00\x12\x00"),                       /* two lists */
        BODY(TYPE_META "\x12\x03\x12\x05"
                       "abcde"),                /* longer than the list */
        BODY(TYPE_META "\x12\x02\x12\xff\x01"), /* a head, too */
        BODY(TYPE_META "\x12\x01\x12\x00"),
        BODY(TYPE_META "\x1a\x04gzip"),
        BODY(TYPE_META "\x22\x10"
                       "application/json"),
        BODY("\x0a\x03\x12\x01\xff"),
        BODY(TYPE_META "\x12\x05\x0a\x03\x12\x01\xff"),
        BODY(TYPE_META "\x12\x05\x0a\x03\x1a\x01\xff"),
    };
    for (size_t i = 0; i < COUNT_OF(malformed); i++)
        expect_error_in(FRAMER_PROTOBUF, malformed[i], 0, ST_MALFORMED,
                        "not valid protobuf: at byte ");
    expect_error_in(FRAMER_PROTOBUF, SLICE_LITERAL(SAMPLE_STATUS), 0, ST_MALFORMED,
                    "no list, but an object of kind Status");
    expect_error_in(FRAMER_PROTOBUF, SLICE_LITERAL(SAMPLE_POD), 0, ST_MALFORMED,
                    "no list, but an object of kind Pod");
}

static void list_in_protobuf_that_ends_early_is_an_error(void **state)
{
    (void)state;
    struct slice body = SLICE_LITERAL(SAMPLE_LIST);
    for (size_t len = 0; len < body.len; len++) {
        bool whole = len == 19 || len == body.len - 4 || len == body.len - 2;
        if (!whole)
            expect_error_in(FRAMER_PROTOBUF, slice_sub(body, 0, len), 0, ST_MALFORMED,
                            "ended early");
    }
}

static void lengths_of_protobuf_have_limits(void **state)
{
    (void)state;
    struct slice list = SLICE_LITERAL("k8s\0" TYPE_META "\x12\x0c\x12\x0a"
                                      "123456789a");
    expect_protobuf(list,
                    SLICE_LITERAL("k8s\0\x0a\x05\x12\x03Pod\x12\x0a"
                                  "123456789a|"),
                    "PodList  Pod   -1");
    expect_error_in(FRAMER_PROTOBUF, list, 9, ST_LIMIT, "too long: at byte 19");
    /* At once, and not when it has arrived; the longest list that can be announced. */
    expect_error_in(
        FRAMER_PROTOBUF,
        BODY(TYPE_META "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x81\x80\x80\x08"), 0,
        ST_LIMIT, "too long");
    struct buf body = {0};
    append(&body, BODY("\x0a\x85\x80\x04\x12\x81\x80\x04"));
    append_many(&body, 'k', LIST_TEXT_BYTES_MAX + 1);
    struct list_reader reader;
    list_reader_init(&reader, FRAMER_PROTOBUF);
    struct reading reading = read_list(&reader, buf_slice(&body), 1000);
    assert_int_equal(reading.status, ST_LIMIT);
    buf_fini(&reading.items);
    buf_fini(&body);
    list_reader_fini(&reader);
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

static void read_protobuf_with_failures(void *ctx)
{
    struct list_reader reader;
    bool fails = memory_fail_at > 0;
    list_reader_init(&reader, FRAMER_PROTOBUF);
    struct reading reading = read_list(&reader, SLICE_LITERAL(SAMPLE_LIST), *(size_t *)ctx);
    assert_int_equal(reading.status, fails ? ST_NOMEM : ST_OK);
    buf_fini(&reading.items);
    list_reader_fini(&reader);
}

static void missing_memory_for_protobuf_is_reported(void **state)
{
    (void)state;
    for (size_t piece_bytes = 1; piece_bytes < 400; piece_bytes *= 3)
        assert_true(each_allocation_fails(read_protobuf_with_failures, &piece_bytes) >= 5);
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
        cmocka_unit_test(lists_in_protobuf_may_be_cut_anywhere),
        cmocka_unit_test(items_in_protobuf_are_objects),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(what_is_not_a_list_in_protobuf_is_an_error),
        cmocka_unit_test(list_in_protobuf_that_ends_early_is_an_error),
        cmocka_unit_test(lengths_of_protobuf_have_limits),
        cmocka_unit_test(missing_memory_for_protobuf_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
