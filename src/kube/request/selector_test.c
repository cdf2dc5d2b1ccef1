#include "base/buf.h"
#include "kube/request/field_selector.h"
#include "kube/request/label_selector.h"
#include "kube/types/object/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int setup(void **state)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    arena_init(arena, NULL, 0, 1 << 20);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    arena_fini(*state);
    free(*state);
    return 0;
}

static void labels_match_as_in_kubernetes(void **state)
{
    static const struct {
        const char *selector, *labels;
        bool matches;
    } cases[] = {
        {"", "", true},
        {" ", "{\"a\":\"b\"}", true},
        {"a=b", "{\"a\":\"b\"}", true},
        {"a==b", "{\"a\":\"b\"}", true},
        {"a = b , c != d", "{\"a\":\"b\"}", true},
        {"a=b", "{\"a\":\"c\"}", false},
        {"a=b", "", false},
        {"a!=b", "", true},
        {"a!=b", "{\"a\":\"b\"}", false},
        {"a", "{\"a\":\"\"}", true},
        {"!a", "{\"a\":\"\"}", false},
        {"!a", "{\"b\":\"\"}", true},
        {"a in (b, c)", "{\"a\":\"c\"}", true},
        {"a in (b, c)", "{}", false},
        {"a notin (b,c)", "{}", true},
        {"a notin (b,c)", "{\"a\":\"b\"}", false},
        {"a=", "{\"a\":\"\"}", true},
        {"a in ()", "{\"a\":\"\"}", true},
        {"a in (,b)", "{\"a\":\"\"}", true},
        {"a in (b,)", "{\"a\":\"\"}", true},
        {"in in (in)", "{\"in\":\"in\"}", true},
        {"n>5", "{\"n\":\"6\"}", true},
        {"n>5", "{\"n\":\"5\"}", false},
        {"n<5", "{\"n\":\"-7\"}", true},
        {"n>5", "{\"n\":\"x\"}", false},
        {"x.io/a=b", "{\"x.io/a\":\"b\"}", true},
        {"a=b,a=c", "{\"a\":\"b\"}", false},
        {"a=b,c=d,!e,a!=c", "{\"c\":\"d\",\"a\":\"b\"}", true},
        {"a=b", "{\"\\u0061\":\"b\"}", true},
        {"a=b", "{\"a\":\"\\u0062\"}", true},
        {"a!=b", "{\"a\":\"\\u0062\"}", false},
        {"!a", "{\"\\u0061\":\"b\"}", false},
        {"a in (b,c)", "{\"a\":\"\\u0063\"}", true},
        {"a=b", "{\"a\":\"\\u0062c\"}", false},
        {"x.io/a=b", "{\"x.io\\/a\":\"b\"}", true},
        {"n>5", "{\"n\":\"\\u0036\"}", true},
        {"n<5", "{\"n\":\"\\u002d\\u0037\"}", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct label_selector *selector;
        struct error error = {0};
        enum status status =
            label_selector_parse(*state, slice_from_text(cases[i].selector), &selector, &error);
        if (status != ST_OK)
            print_error("%s: %s\n", cases[i].selector, error.text);
        assert_int_equal(status, ST_OK);
        assert_int_equal(label_selector_matches(selector, slice_from_text(cases[i].labels)),
                         cases[i].matches);
    }
}

static void wrong_label_selectors_have_the_errors_of_kubernetes(void **state)
{
    static const char *const cases[][2] = {
        {",", "found ',', expected: !, identifier, or 'end of string'"},
        {"a,", "found '', expected: identifier after ','"},
        {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
        {"!a=b", "found '=', expected: ',' or 'end of string'"},
        {"a in b", "unable to parse requirement: found 'b' expected: '('"},
        {"a in (b", "unable to parse requirement: found '', expected: ',' or ')'"},
        {"a=(", "unable to parse requirement: found '(', expected: identifier"},
        {"a>b", "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' "
                "operators, the value must be an integer"},
        {"/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be "
               "non-empty"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct label_selector *selector;
        struct error error;
        assert_int_equal(
            label_selector_parse(*state, slice_from_text(cases[i][0]), &selector, &error),
            ST_INVALID);
        assert_string_equal(error.text, cases[i][1]);
    }
}

static void selectors_are_limited_in_size(void **state)
{
    const struct label_selector *selector;
    struct error error;
    struct buf text = {0};
    for (int i = 0; i <= LABEL_REQUIREMENTS_MAX; i++)
        assert_int_equal(buf_append_text(&text, "a=b,"), ST_OK);
    assert_int_equal(label_selector_parse(*state, buf_slice(&text), &selector, &error), ST_LIMIT);
    text.len = 0;
    assert_int_equal(buf_append_text(&text, "a in ("), ST_OK);
    for (int i = 0; i <= LABEL_VALUES_MAX; i++)
        assert_int_equal(buf_append_text(&text, "b,"), ST_OK);
    assert_int_equal(label_selector_parse(*state, buf_slice(&text), &selector, &error), ST_LIMIT);
    while (text.len <= LABEL_SELECTOR_BYTES_MAX)
        assert_int_equal(buf_append_text(&text, "b,"), ST_OK);
    assert_int_equal(label_selector_parse(*state, buf_slice(&text), &selector, &error), ST_LIMIT);
    const struct field_selector *fields;
    static const struct kube_kind none = {.group = "", .kind = "None"};
    assert_int_equal(field_selector_parse(*state, buf_slice(&text), &none, &fields, &error),
                     ST_LIMIT);
    text.len = 0;
    for (int i = 0; i <= FIELD_TERMS_MAX; i++)
        assert_int_equal(buf_append_text(&text, "metadata.name=b,"), ST_OK);
    assert_int_equal(field_selector_parse(*state, buf_slice(&text), &none, &fields, &error),
                     ST_LIMIT);
    buf_fini(&text);
}

static const char *const allowed_names[] = {"spec.nodeName", "status.phase"};
static const struct kube_kind pods = {.group = "",
                                      .kind = "Pod",
                                      .flags = KUBE_NAMESPACED,
                                      .fields = {allowed_names, COUNT_OF(allowed_names)}};

static void fields_match_as_in_kubernetes(void **state)
{
    static const struct {
        const char *selector;
        bool matches;
    } cases[] = {
        {"", true},
        {"metadata.name=a", true},
        {"metadata.name==a,metadata.namespace=n", true},
        {"metadata.name!=a", false},
        {"spec.nodeName=node\\,1", true},
        {"spec.nodeName!=other", true},
        {"status.phase=", true},
        {"status.phase!=", false},
        {",,metadata.name=a,", true},
    };
    struct kube_object object;
    assert_int_equal(kube_object_parse(SLICE_LITERAL("{\"metadata\":{\"name\":\"a\",\"namespace\":"
                                                     "\"n\"},\"spec\":{\"nodeName\":\"node,1\"}}"),
                                       &object),
                     ST_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct field_selector *selector;
        struct error error;
        assert_int_equal(field_selector_parse(*state, slice_from_text(cases[i].selector), &pods,
                                              &selector, &error),
                         ST_OK);
        assert_int_equal(field_selector_matches(selector, &object), cases[i].matches);
        assert_true(field_selector_may_match(selector, object.json) || !cases[i].matches);
    }
}

static void fields_are_compared_by_their_unescaped_values(void **state)
{
    static const struct {
        const char *selector, *json;
        bool matches;
    } cases[] = {
        {"metadata.name=a", "{\"metadata\":{\"name\":\"\\u0061\"}}", true},
        {"metadata.name=a", "{\"metadata\":{\"n\\u0061me\":\"a\"}}", true},
        {"metadata.name!=a", "{\"metadata\":{\"name\":\"\\u0061\"}}", false},
        {"spec.nodeName=a", "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\u0061\"}}", true},
        {"spec.nodeName=a", "{\"metadata\":{},\"sp\\u0065c\":{\"nodeName\":\"a\"}}", true},
        {"spec.nodeName=a/b", "{\"metadata\":{},\"spec\":{\"nodeName\":\"a\\/b\"}}", true},
        {"spec.nodeName=a\"b", "{\"metadata\":{},\"spec\":{\"nodeName\":\"a\\\"b\"}}", true},
        {"spec.nodeName=\xc3\xa4", "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\u00e4\"}}", true},
        {"spec.nodeName=\xf0\x9f\x98\x80",
         "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\ud83d\\ude00\"}}", true},
        {"spec.nodeName=\\\\u0061", "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\u0061\"}}", false},
        {"spec.nodeName=\\\\u0061", "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\\\u0061\"}}",
         true},
        {"spec.nodeName=a", "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\u0061b\"}}", false},
        {"spec.nodeName=a", "{\"metadata\":{},\"spec\":{\"nodeName\":\"\\ud83da\"}}", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct field_selector *selector;
        struct kube_object object;
        struct error error;
        assert_int_equal(field_selector_parse(*state, slice_from_text(cases[i].selector), &pods,
                                              &selector, &error),
                         ST_OK);
        assert_int_equal(kube_object_parse(slice_from_text(cases[i].json), &object), ST_OK);
        if (field_selector_matches(selector, &object) != cases[i].matches)
            fail_msg("%s %s", cases[i].selector, cases[i].json);
        assert_true(field_selector_may_match(selector, object.json) || !cases[i].matches);
    }
}

static void objects_without_the_bytes_of_a_required_value_cannot_match(void **state)
{
    static const struct {
        const char *selector, *json;
        bool may_match;
    } cases[] = {
        {"spec.nodeName=a", "{\"spec\":{\"nodeName\":\"b\"}}", false},
        {"spec.nodeName=a", "{\"spec\":{\"nodeName\":\"aa\"}}", false},
        {"spec.nodeName=a", "{\"metadata\":{\"name\":\"a\"}}", true}, /* must be examined */
        {"spec.nodeName=", "{}", true},
        {"spec.nodeName!=a", "{}", true},
        {"status.phase=true", "{\"status\":{\"phase\":true}}", true},
        {"status.phase=5", "{\"status\":{\"phase\":5}}", true},
        {"status.phase=-5", "{\"status\":{\"phase\":5}}", false},
        {"spec.nodeName=a,status.phase=b", "{\"spec\":{\"nodeName\":\"a\"}}", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct field_selector *selector;
        struct error error;
        assert_int_equal(field_selector_parse(*state, slice_from_text(cases[i].selector), &pods,
                                              &selector, &error),
                         ST_OK);
        assert_int_equal(field_selector_may_match(selector, slice_from_text(cases[i].json)),
                         cases[i].may_match);
    }
}

static void required_values_are_returned(void **state)
{
    const struct field_selector *selector;
    struct error error;
    struct slice value;
    assert_int_equal(field_selector_parse(*state, SLICE_LITERAL("status.phase!=x,spec.nodeName=a"),
                                          &pods, &selector, &error),
                     ST_OK);
    assert_true(field_selector_requires(selector, SLICE_LITERAL("spec.nodeName"), &value));
    assert_true(slice_is(value, "a"));
    assert_false(field_selector_requires(selector, SLICE_LITERAL("status.phase"), &value));
}

static void wrong_field_selectors_have_the_errors_of_kubernetes(void **state)
{
    static const char *const cases[][2] = {
        {"a", "invalid selector: 'a'; can't understand 'a'"},
        {"data.k=v", "field label not supported: data.k"},
        {"data.k=v,b", "invalid selector: 'data.k=v,b'; can't understand 'b'"},
        {"metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"},
        {"metadata.name=a=b", "invalid field selector: unescaped character in value: 61"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct field_selector *selector;
        struct error error;
        assert_int_equal(
            field_selector_parse(*state, slice_from_text(cases[i][0]), &pods, &selector, &error),
            ST_INVALID);
        assert_string_equal(error.text, cases[i][1]);
    }
}

static enum status parse_for(struct arena *arena, const char *plural, const char *text,
                             const struct field_selector **ret_selector, struct error *error)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    while (count && strcmp(kinds->plural, plural) != 0) {
        kinds++;
        count--;
    }
    assert_true(count > 0);
    return field_selector_parse(arena, slice_from_text(text), kinds, ret_selector, error);
}

static void each_kind_has_its_own_error_for_unknown_fields(void **state)
{
    static const char *const cases[][3] = {
        {"configmaps", "a=b",
         "\"a\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {"replicasets", "status.replicas=1",
         "\"status.replicas\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {"nodes", "metadata.namespace=a", "field label not supported: metadata.namespace"},
        {"jobs", "a=b", "field label \"a\" not supported for Job"},
        {"resourceslices", "a=b",
         "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct field_selector *selector;
        struct error error;
        assert_int_equal(parse_for(*state, cases[i][0], cases[i][1], &selector, &error),
                         ST_INVALID);
        assert_string_equal(error.text, cases[i][2]);
    }
}

static void special_fields_have_other_paths_or_defaults(void **state)
{
    static const struct {
        const char *plural, *selector, *object;
        bool matches;
    } cases[] = {
        {"nodes", "spec.unschedulable=false", "{\"metadata\":{}}", true},
        {"nodes", "spec.unschedulable=false", "{\"metadata\":{},\"spec\":{\"unschedulable\":true}}",
         false},
        {"pods", "spec.hostNetwork!=true", "{\"metadata\":{},\"spec\":{}}", true},
        {"pods", "spec.host=a", "{\"metadata\":{},\"spec\":{\"nodeName\":\"a\"}}", true},
        {"jobs", "status.successful=0", "{\"metadata\":{}}", true},
        {"jobs", "status.successful=2", "{\"metadata\":{},\"status\":{\"succeeded\":2}}", true},
        {"replicationcontrollers", "status.replicas=0", "{\"metadata\":{}}", true},
        {"secrets", "type=Opaque", "{\"metadata\":{}}", true},
        {"events", "type=", "{\"metadata\":{}}", true},
        {"events", "source=kubelet", "{\"metadata\":{},\"source\":{\"component\":\"kubelet\"}}",
         true},
        {"events", "source=kubelet",
         "{\"metadata\":{},\"source\":{},\"reportingComponent\":\"kubelet\"}", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct field_selector *selector;
        struct kube_object object;
        struct error error;
        assert_int_equal(parse_for(*state, cases[i].plural, cases[i].selector, &selector, &error),
                         ST_OK);
        assert_int_equal(kube_object_parse(slice_from_text(cases[i].object), &object), ST_OK);
        assert_int_equal(field_selector_matches(selector, &object), cases[i].matches);
        assert_true(field_selector_may_match(selector, object.json) || !cases[i].matches);
    }
}

static void names_are_validated(void **state)
{
    (void)state;
    char why[NAME_ERROR_BYTES];
    assert_true(subdomain_valid(SLICE_LITERAL("a.b-c.1"), why));
    assert_false(subdomain_valid(SLICE_LITERAL("a..b"), why));
    assert_false(subdomain_valid(SLICE_LITERAL("A"), why));
    assert_false(subdomain_valid(SLICE_EMPTY, why));
    assert_true(dns_label_valid(SLICE_LITERAL("kube-system"), why));
    assert_false(dns_label_valid(SLICE_LITERAL("a.b"), why));
    assert_true(label_key_valid(SLICE_LITERAL("x.io/My_name"), why));
    assert_false(label_key_valid(SLICE_LITERAL("a/b/c"), why));
    assert_true(label_value_valid(SLICE_EMPTY, why));
    assert_false(label_value_valid(SLICE_LITERAL("-a"), why));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(labels_match_as_in_kubernetes),
        TEST(wrong_label_selectors_have_the_errors_of_kubernetes),
        TEST(selectors_are_limited_in_size),
        TEST(fields_match_as_in_kubernetes),
        TEST(fields_are_compared_by_their_unescaped_values),
        TEST(objects_without_the_bytes_of_a_required_value_cannot_match),
        TEST(required_values_are_returned),
        TEST(wrong_field_selectors_have_the_errors_of_kubernetes),
        TEST(each_kind_has_its_own_error_for_unknown_fields),
        TEST(special_fields_have_other_paths_or_defaults),
        TEST(names_are_validated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
