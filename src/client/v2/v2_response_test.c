#include "client/v2/v2_response.h"

#include "base/buf.h"
#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static bool is(struct slice s, const char *text)
{
    return slice_equal(s, slice_from_text(text));
}

static struct v2_event event_of(const char *text)
{
    struct v2_event event;
    assert_int_equal(v2_event_read(slice_from_text(text), &arena, &event), ST_OK);
    return event;
}

static void event_has_its_nodes(void **state)
{
    (void)state;
    struct v2_event e = event_of(
        "{\"action\":\"compareAndSwap\",\"node\":{\"key\":\"/"
        "a\\u002fb\",\"value\":\"{\\\"x\\\":1}\","
        "\"modifiedIndex\":9,\"createdIndex\":7,\"expiration\":\"2020\",\"ttl\":3},\n"
        "\"prevNode\":{\"createdIndex\":7,\"modifiedIndex\":8,\"value\":\"\",\"key\":\"/a/b\"},"
        "\"other\":[{\"node\":{}}]}");
    assert_int_equal(e.action, V2_ACTION_COMPARE_AND_SWAP);
    assert_true(e.node.present && !e.node.dir && !e.node.bad_text);
    assert_true(is(e.node.key, "/a/b") && is(e.node.value, "{\"x\":1}"));
    assert_int_equal(e.node.modified, 9);
    assert_int_equal(e.node.created, 7);
    assert_true(e.prev.present && e.prev.value.len == 0);
    assert_int_equal(e.prev.modified, 8);
}

static void actions_have_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum v2_action action;
    } rows[] = {
        {"{\"action\":\"get\"}", V2_ACTION_GET},
        {"{\"action\":\"create\"}", V2_ACTION_CREATE},
        {"{\"action\":\"set\"}", V2_ACTION_SET},
        {"{\"action\":\"update\"}", V2_ACTION_UPDATE},
        {"{\"action\":\"delete\"}", V2_ACTION_DELETE},
        {"{\"action\":\"expire\"}", V2_ACTION_EXPIRE},
        {"{\"action\":\"compareAndDelete\"}", V2_ACTION_COMPARE_AND_DELETE},
        {"{\"action\":\"Set\"}", V2_ACTION_UNKNOWN},
        {"{\"action\":\"\"}", V2_ACTION_UNKNOWN},
        {"{\"action\":1}", V2_ACTION_UNKNOWN},
        {"{}", V2_ACTION_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(event_of(rows[i].text).action, rows[i].action);
}

static void missing_parts_are_missing(void **state)
{
    (void)state;
    struct v2_event e = event_of("{\"action\":\"set\",\"node\":null,\"prevNode\":{}}");
    assert_false(e.node.present);
    assert_true(e.prev.present && e.prev.key.len == 0 && e.prev.modified == 0);
    e = event_of("{\"node\":{\"dir\":true,\"nodes\":[{\"key\":\"/x\"}],\"key\":\"/d\"}}");
    assert_true(e.node.dir && is(e.node.key, "/d"));
    e = event_of("{\"node\":{\"key\":1,\"value\":[],\"dir\":1,\"modifiedIndex\":\"1\"}}");
    assert_true(!e.node.dir && e.node.modified == 0);
}

static void text_that_is_not_utf8_is_marked(void **state)
{
    (void)state;
    assert_true(event_of("{\"node\":{\"value\":\"\xff\"}}").node.bad_text);
    assert_true(event_of("{\"node\":{\"value\":\"\\ud800\"}}").node.bad_text);
    assert_true(event_of("{\"node\":{\"key\":\"\xff\"}}").node.bad_text);
    assert_false(event_of("{\"node\":{\"value\":\"\xc3\xa4\"}}").node.bad_text);
}

static void malformed_events_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "null",
        "[]",
        "1",
        "{",
        "{}x",
        "{\"node\":1}",
        "{\"node\":[]}",
        "{\"node\":{\"modifiedIndex\":-1}}",
        "{\"node\":{\"modifiedIndex\":1.5}}",
        "{\"node\":{\"modifiedIndex\":9223372036854775808}}",
        "{\"node\":{\"value\":\"\\x\"}}",
        "{\"node\":{\"value\":}}",
        "{\"action\":\"\xff\"}",
        "{\"other\":}",
    };
    struct v2_event event;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(v2_event_read(slice_from_text(rows[i]), &arena, &event), ST_MALFORMED);
}

/* The keys of a tree, separated by spaces. */
static enum status keys_of(struct slice body, struct buf *to)
{
    struct v2_tree_reader reader;
    struct v2_node node;
    enum status status;
    v2_tree_begin(&reader, body);
    while ((status = v2_tree_next(&reader, &arena, &node)) == ST_OK) {
        assert_true(node.present && !node.dir);
        TRY(buf_append(to, node.key));
        TRY(buf_append(to, SLICE_LITERAL(" ")));
    }
    return status;
}

static const char tree[] =
    "{\"action\":\"get\",\"node\":{\"key\":\"/\",\"dir\":true,\"nodes\":["
    "{\"key\":\"/a\",\"value\":\"1\",\"modifiedIndex\":3,\"createdIndex\":3},"
    "{\"key\":\"/b\",\"dir\":true,\"nodes\":[{\"nodes\":[{\"value\":\"2\",\"key\":\"/b\\u002fc/"
    "d\"}],"
    "\"dir\":true,\"key\":\"/b/c\",\"value\":\"no\"},{\"key\":\"/b/e\",\"value\":\"\"}],"
    "\"modifiedIndex\":4,\"createdIndex\":4},{\"key\":\"/empty\",\"dir\":true},"
    "{\"key\":\"/none\",\"dir\":true,\"nodes\":[]},{\"key\":\"/odd\",\"nodes\":[]},{\"key\":\"/f\"}"
    "],\"modifiedIndex\":1},\"other\":{\"nodes\":[{\"key\":\"/wrong\"}]}}";

static void nodes_of_nested_directories_are_found(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf keys = {0};
    assert_int_equal(keys_of(slice_from_text(tree), &keys), ST_END);
    assert_true(is(buf_slice(&keys), "/a /b/c/d /b/e /f "));
    keys.len = 0;
    assert_int_equal(keys_of(SLICE_LITERAL("{\"node\":{\"key\":\"/x\",\"value\":\"1\"}}"), &keys),
                     ST_END);
    assert_true(is(buf_slice(&keys), "/x "));
    keys.len = 0;
    assert_int_equal(keys_of(SLICE_LITERAL("{\"action\":\"get\",\"node\":null}"), &keys), ST_END);
    assert_int_equal(keys.len, 0);
}

static void tree_that_is_cut_off_is_malformed(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(tree) - 1; len++) {
        AUTO(buf_fini) struct buf keys = {0};
        uint8_t *copy = malloc(len + 1); /* the sanitizer finds every read behind it */
        memcpy(copy, tree, len);
        assert_int_equal(keys_of(slice_of(copy, len), &keys), ST_MALFORMED);
        free(copy);
    }
}

static void malformed_trees_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "[]",
        "1",
        "{\"node\":{\"nodes\":[1]}}",
        "{\"node\":{\"nodes\":[[]]}}",
        "{\"node\":{\"nodes\":[null]}}",
        "{\"node\":{}}}",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(buf_fini) struct buf keys = {0};
        assert_int_equal(keys_of(slice_from_text(rows[i]), &keys), ST_MALFORMED);
    }
}

/* Depth costs neither stack nor memory; the scanner has the limit. */
static void depth_is_limited(void **state)
{
    (void)state;
    for (int deeper = 0; deeper < 2; deeper++) {
        AUTO(buf_fini) struct buf body = {0}, keys = {0};
        int levels = JSON_DEPTH_MAX / 2 - 1 + deeper; /* a node and its array */
        assert_int_equal(buf_append_text(&body, "{\"node\":"), ST_OK);
        for (int i = 0; i < levels; i++)
            assert_int_equal(buf_append_text(&body, "{\"nodes\":["), ST_OK);
        assert_int_equal(buf_append_text(&body, "{\"key\":\"/x\"}"), ST_OK);
        for (int i = 0; i < levels; i++)
            assert_int_equal(buf_append_text(&body, "]}"), ST_OK);
        assert_int_equal(buf_append_text(&body, "}"), ST_OK);
        assert_int_equal(keys_of(buf_slice(&body), &keys), deeper ? ST_MALFORMED : ST_END);
        assert_int_equal(keys.len, deeper ? 0 : 3);
    }
}

static void errors_are_read(void **state)
{
    (void)state;
    struct v2_error e;
    struct slice text =
        SLICE_LITERAL("{\"errorCode\":401,\"message\":\"a \\\"b\\\"\",\"cause\":\"c\","
                      "\"index\":2007,\"more\":{}}\n");
    assert_int_equal(v2_error_read(text, &arena, &e), ST_OK);
    assert_int_equal(e.code, 401);
    assert_int_equal(e.index, 2007);
    assert_true(is(e.message, "a \"b\"") && is(e.cause, "c"));
    assert_int_equal(v2_error_read(SLICE_LITERAL("{}"), &arena, &e), ST_OK);
    assert_int_equal(e.code, 0);
    assert_int_equal(v2_error_read(SLICE_LITERAL("404 page not found\n"), &arena, &e),
                     ST_MALFORMED);
    assert_int_equal(v2_error_read(SLICE_EMPTY, &arena, &e), ST_MALFORMED);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    struct v2_event event;
    AUTO(buf_fini) struct buf keys = {0};
    assert_int_equal(buf_reserve(&keys, 1000), ST_OK);
    memory_fail_at = 1;
    assert_int_equal(v2_event_read(SLICE_LITERAL("{\"node\":{\"value\":\"\\n\"}}"), &arena, &event),
                     ST_NOMEM);
    memory_fail_at = 1;
    assert_int_equal(keys_of(slice_from_text(tree), &keys), ST_NOMEM);
    memory_fail_at = 0;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(event_has_its_nodes),
        CASE(actions_have_their_names),
        CASE(missing_parts_are_missing),
        CASE(text_that_is_not_utf8_is_marked),
        CASE(malformed_events_are_refused),
        CASE(nodes_of_nested_directories_are_found),
        CASE(tree_that_is_cut_off_is_malformed),
        CASE(malformed_trees_are_refused),
        CASE(depth_is_limited),
        CASE(errors_are_read),
        CASE(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
