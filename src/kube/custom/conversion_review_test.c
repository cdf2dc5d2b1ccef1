#include "kube/custom/conversion_review.h"

#include "kube/custom/conversion_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define UID "0af3e83c-1c75-4c3d-8d39-5d8b7ab5e4a1"
#define ANSWER(type, rest) "{" type "\"response\":{" rest "}}"
#define V1 "\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\","
#define GOOD "\"uid\":\"" UID "\",\"result\":{\"status\":\"Success\"}"

static const struct conversion_review v1 = {"v1", SLICE_LITERAL(UID),
                                            SLICE_LITERAL("example.com/v2")};
static const struct conversion_review v1beta1 = {"v1beta1", SLICE_LITERAL(UID),
                                                 SLICE_LITERAL("example.com/v2")};

static int set_up(void **state)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    arena_init(arena, NULL, 0, 1 << 20);
    *state = arena;
    return 0;
}

static int tear_down(void **state)
{
    arena_fini(*state);
    free(*state);
    return 0;
}

static struct json_node *read_tree(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &root, &error), ST_OK);
    return root;
}

static void assert_text(const struct buf *buf, const char *expected)
{
    char *text = strndup(buf->len ? (const char *)buf->ptr : "", buf->len);
    assert_string_equal(text, expected);
    free(text);
}

/* -- The review -- */

static void a_question_has_all_objects(void **state)
{
    AUTO(buf_fini) struct buf to = {0};
    (void)state;
    assert_int_equal(conversion_review_begin(&v1beta1, &to), ST_OK);
    assert_int_equal(conversion_review_add(SLICE_LITERAL("{\"a\":1}"), true, &to), ST_OK);
    assert_int_equal(conversion_review_add(SLICE_LITERAL("{}"), false, &to), ST_OK);
    assert_int_equal(conversion_review_end(&to), ST_OK);
    assert_text(
        &to,
        "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"
        "v1beta1\",\"request\":{\"uid\":\"" UID "\",\"desiredAPIVersion\":\"example.com/"
        "v2\",\"objects\":[{\"a\":1},{}]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,"
        "\"result\":{\"metadata\":{}}}}");
}

static void the_first_version_that_is_known_is_spoken(void **state)
{
    static const struct {
        const char *versions, *expected;
    } rows[] = {{"[\"v1\",\"v1beta1\"]", "v1"},
                {"[\"v2\",\"v1beta1\",\"v1\"]", "v1beta1"},
                {"[\"v2\"]", NULL},
                {"[]", NULL},
                {"\"v1\"", NULL}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *got = conversion_review_version(read_tree(*state, rows[i].versions));
        if (rows[i].expected)
            assert_string_equal(got, rows[i].expected);
        else
            assert_null(got);
    }
}

/* error NULL: it has two objects. */
static void assert_answer(struct arena *arena, const struct conversion_review *review,
                          const char *answer, const char *error, enum conversion_failure failure)
{
    AUTO(buf_fini) struct buf why = {0};
    struct json_node *objects = NULL;
    enum conversion_failure got = CONVERSION_FAILURES;
    enum status status =
        conversion_review_read(arena, review, slice_from_text(answer), 2, &objects, &why, &got);
    assert_text(&why, error ? error : "");
    assert_int_equal(status, error ? ST_INVALID : ST_OK);
    assert_int_equal(got, failure);
    assert_true(error || objects->count == 2);
}

static void answers_are_checked_with_the_texts_of_kubernetes(void **state)
{
    static const struct {
        const char *answer, *error;
        enum conversion_failure failure;
    } rows[] = {
        {ANSWER(V1, GOOD ",\"convertedObjects\":[{},{}]"), NULL, CONVERSION_FINE},
        {ANSWER(V1, GOOD ",\"convertedObjects\":[{}]"), "returned 1 objects, expected 2",
         CONVERSION_PARTIAL},
        {ANSWER(V1, GOOD ",\"convertedObjects\":[{},{},{}]"), "returned 3 objects, expected 2",
         CONVERSION_PARTIAL},
        {ANSWER(V1, GOOD), "returned 0 objects, expected 2", CONVERSION_PARTIAL},
        {ANSWER(V1, GOOD ",\"convertedObjects\":null"), "returned 0 objects, expected 2",
         CONVERSION_PARTIAL},
        {ANSWER(V1, "\"uid\":\"x\",\"result\":{\"status\":\"Success\"}"),
         "failed: expected response.uid=\"" UID "\", got \"x\"", CONVERSION_MALFORMED},
        {ANSWER(V1, "\"uid\":\"" UID "\",\"result\":{\"status\":\"Failure\"}"),
         "failed: response.result.status was 'Failure', not 'Success'", CONVERSION_MALFORMED},
        {ANSWER(V1, "\"uid\":\"" UID "\""), "failed: response.result.status was '', not 'Success'",
         CONVERSION_MALFORMED},
        {ANSWER(V1, "\"uid\":\"" UID "\",\"result\":{\"status\":\"Failure\",\"message\":\"no\"}"),
         "failed: no", CONVERSION_MALFORMED},
        {"{" V1 "\"request\":{}}", "failed: no response provided", CONVERSION_MALFORMED},
        {"{" V1 "\"request\":{",
         "failed: couldn't get version/kind; json parse error: unexpected end of JSON input",
         CONVERSION_MALFORMED},
        {"{" V1 "\"request\":{]",
         "failed: couldn't get version/kind; json parse error: invalid character ']' looking for "
         "beginning of object key string",
         CONVERSION_MALFORMED},
        {ANSWER("", GOOD),
         "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got "
         "/, Kind=",
         CONVERSION_MALFORMED},
        {ANSWER(V1, "\"uid\":7"),
         "failed: json: cannot unmarshal number into Go struct field "
         "ConversionResponse.response.uid of type types.UID",
         CONVERSION_MALFORMED},
        {ANSWER(V1, "\"convertedObjects\":{}"),
         "failed: json: cannot unmarshal object into Go struct field "
         "ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
         CONVERSION_MALFORMED},
        {ANSWER("\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1beta1\",",
                GOOD),
         "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown "
         "conversion",
         CONVERSION_MALFORMED},
        {ANSWER("\"kind\":\"Pod\",\"apiVersion\":\"v1\",", GOOD),
         "failed: no kind \"Pod\" is registered for version \"v1\" in scheme "
         "\"pkg/runtime/scheme.go:111\"",
         CONVERSION_MALFORMED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_answer(*state, &v1, rows[i].answer, rows[i].error, rows[i].failure);
}

/* Its type and uid are not checked, as in Kubernetes. */
static void answers_of_v1beta1_have_fewer_checks(void **state)
{
    assert_answer(*state, &v1beta1,
                  ANSWER("", "\"result\":{\"status\":\"Success\"},\"convertedObjects\":[{},{}]"),
                  NULL, CONVERSION_FINE);
    assert_answer(*state, &v1beta1, ANSWER("", "\"result\":{\"status\":\"x\"}"),
                  "failed: response.result.status was 'x', not 'Success'", CONVERSION_MALFORMED);
}

static void other_bodies_are_refused(void **state)
{
    static const char *const texts[] = {"", "<html>", "[]", "\"x\"", "{\"response\":[]}", "{"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        AUTO(buf_fini) struct buf why = {0};
        struct json_node *objects;
        enum conversion_failure failure;
        assert_int_equal(conversion_review_read(*state, &v1, slice_from_text(texts[i]), 1, &objects,
                                                &why, &failure),
                         ST_INVALID);
        assert_int_equal(failure, CONVERSION_MALFORMED);
        assert_true(why.len > strlen("failed: "));
    }
}

/* -- Objects -- */

#define METADATA                                                                                   \
    "{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"labels\":{\"l\":\"1\"},\"generation\":2," \
    "\"finalizers\":[\"x/y\"]}"
#define CONVERTED(metadata) \
    "{\"apiVersion\":\"example.com/v2\",\"kind\":\"Widget\",\"metadata\":" metadata "}"
#define SAME "\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\""
#define BEGIN "conversion webhook for example.com/v1, Kind=Widget "

static enum status check(struct arena *arena, const char *text, struct buf *why,
                         struct json_node **ret_object)
{
    const struct conversion_original original = {
        SLICE_LITERAL("example.com/v1"), SLICE_LITERAL("Widget"), read_tree(arena, METADATA)};
    *ret_object = read_tree(arena, text);
    return conversion_check(arena, &original, SLICE_LITERAL("example.com/v2"), *ret_object, why);
}

static void an_object_keeps_its_identity(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"{\"apiVersion\":\"example.com/v3\",\"kind\":\"Widget\",\"metadata\":{" SAME "}}",
         BEGIN "returned invalid object at index 0: invalid groupVersion (expected "
               "example.com/v2, received example.com/v3)"},
        {"{\"apiVersion\":\"example.com/v2\",\"kind\":\"Gadget\",\"metadata\":{" SAME "}}",
         BEGIN "returned invalid object at index 0: invalid kind (expected Widget, received "
               "Gadget)"},
        {CONVERTED("{\"name\":\"b\",\"namespace\":\"n\",\"uid\":\"u\"}"),
         BEGIN "returned invalid object: must have the same name: a != b"},
        {CONVERTED("{\"name\":\"a\",\"uid\":\"u\"}"),
         BEGIN "returned invalid object: must have the same namespace: n != "},
        {CONVERTED("{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"w\"}"),
         BEGIN "returned invalid object: must have the same UID: u != w"},
        {"{\"apiVersion\":\"example.com/v2\",\"kind\":\"Widget\"}",
         BEGIN "returned invalid object: must have the same name: a != "},
        {CONVERTED("{" SAME ",\"labels\":[]}"),
         BEGIN "returned invalid metadata: invalid metadata.labels of type []interface {} in "
               "converted object"},
        {CONVERTED("{" SAME ",\"annotations\":{\"k\":5}}"),
         BEGIN "returned invalid metadata: metadata.annotations[k] must be a string, but is int64 "
               "in converted object"},
        {CONVERTED("{" SAME ",\"annotations\":{\"-\":\"x\"}}"),
         BEGIN "returned invalid metadata: metadata.annotation: Invalid value: \"-\": name part "
               "must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
               "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
               "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
        {"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"},
        {"null", "unexpected end of JSON input"},
        {"{\"metadata\":{}}", "Object 'Kind' is missing in '{\"metadata\":{}}'"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(buf_fini) struct buf why = {0};
        struct json_node *object;
        assert_int_equal(check(*state, rows[i].text, &why, &object), ST_INVALID);
        assert_text(&why, rows[i].error);
    }
}

static void metadata_is_restored_but_labels_and_annotations(void **state)
{
    AUTO(buf_fini) struct buf why = {0}, text = {0};
    struct json_node *object;
    assert_int_equal(check(*state,
                           CONVERTED("{" SAME ",\"labels\":{\"m\":\"2\"},\"annotations\":{\"A/b\":"
                                     "\"\"},\"generation\":9,\"more\":1,\"finalizers\":[]}"),
                           &why, &object),
                     ST_OK);
    assert_int_equal(json_tree_write(json_node_named(object, "metadata"), &text), ST_OK);
    assert_text(&text, "{" SAME ",\"labels\":{\"m\":\"2\"},\"generation\":2,\"finalizers\":["
                       "\"x/y\"],\"annotations\":{\"A/b\":\"\"}}");
}

static void labels_that_are_gone_stay_away(void **state)
{
    AUTO(buf_fini) struct buf why = {0};
    struct json_node *object;
    assert_int_equal(check(*state, CONVERTED("{" SAME ",\"labels\":null}"), &why, &object), ST_OK);
    assert_null(json_node_path(object, "metadata.labels"));
}

static void labels_that_were_changed_must_be_valid(void **state)
{
    AUTO(buf_fini) struct buf why = {0};
    struct json_node *object;
    assert_int_equal(
        check(*state, CONVERTED("{" SAME ",\"labels\":{\"l\":\"a b\"}}"), &why, &object),
        ST_INVALID);
    assert_non_null(memmem(why.ptr, why.len, "metadata.labels: Invalid value: \"a b\": ",
                           strlen("metadata.labels: Invalid value: \"a b\": ")));
}

static void annotations_have_their_limit(void **state)
{
    AUTO(buf_fini) struct buf why = {0}, text = {0};
    struct json_node *object;
    char *large = calloc(1, (256 << 10) + 1);
    memset(large, 'x', 256 << 10);
    assert_int_equal(buf_append_text(&text,
                                     "{\"apiVersion\":\"example.com/v2\",\"kind\":\"Widget\","
                                     "\"metadata\":{" SAME ",\"annotations\":{\"k\":\""),
                     ST_OK);
    assert_int_equal(buf_append_text(&text, large), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("\"}}}", 5)), ST_OK);
    assert_int_equal(check(*state, (const char *)text.ptr, &why, &object), ST_INVALID);
    assert_text(&why, BEGIN "returned invalid metadata: metadata.annotation: Too long: may not be "
                            "more than 262144 bytes");
    free(large);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_question_has_all_objects),
        TEST(the_first_version_that_is_known_is_spoken),
        TEST(answers_are_checked_with_the_texts_of_kubernetes),
        TEST(answers_of_v1beta1_have_fewer_checks),
        TEST(other_bodies_are_refused),
        TEST(an_object_keeps_its_identity),
        TEST(metadata_is_restored_but_labels_and_annotations),
        TEST(labels_that_are_gone_stay_away),
        TEST(labels_that_were_changed_must_be_valid),
        TEST(annotations_have_their_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
