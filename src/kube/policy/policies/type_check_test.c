#include "kube/policy/policies/type_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RULE(group, version, resources)                                                          \
    "{\"apiGroups\":[\"" group "\"],\"apiVersions\":[\"" version "\"],\"resources\":[" resources \
    "]}"
#define POLICY(rules, rest) \
    "{\"spec\":{\"matchConstraints\":{\"resourceRules\":[" rules "]}" rest "}}"
#define VALIDATE(text) ",\"validations\":[{\"expression\":\"" text "\"}]"
#define LAMPS                                                                                 \
    "{\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"lamps.example.com\"},"   \
    "\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":"     \
    "\"lamps\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{" \
    "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\"," \
    "\"properties\":{\"size\":{\"type\":\"integer\"}}}}}}}]},\"status\":{\"acceptedNames\":{" \
    "\"kind\":\"Lamp\",\"listKind\":\"LampList\",\"singular\":\"lamp\"},\"conditions\":[{"    \
    "\"type\":\"Established\",\"status\":\"True\"}]}}"

static struct schema_pool *pool;
static struct kube_kinds *kinds;
static struct arena arena;
static struct kube_type_check check;
static char shown[4096];

/* What is written into status.typeChecking. */
static const char *checked(const char *policy)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *tree;
    struct json_writer writer;
    struct error error;
    kube_type_check_fini(&check);
    arena_fini(&arena);
    arena_init(&arena, NULL, 0, 64 << 20);
    assert_int_equal(json_tree_read(&arena, slice_from_text(policy), &tree, &error), ST_OK);
    check = (struct kube_type_check){.arena = &arena, .policy = tree};
    kube_type_check_begin(&check, kinds);
    for (size_t i = 0; i < check.kind_count; i++)
        assert_true(kube_type_check_kind(&check, i));
    json_writer_init(&writer, &text);
    kube_type_check_write(&check, &writer);
    assert_int_equal(json_writer_finish(&writer), ST_OK);
    assert_true(text.len < sizeof(shown));
    memcpy(shown, text.ptr, text.len);
    shown[text.len] = '\0';
    return shown;
}

static const char *warning(const char *fields)
{
    static char text[1024];
    snprintf(text, sizeof(text), "{\"expressionWarnings\":[%s]}", fields);
    return text;
}

static void expressions_are_checked_against_each_kind(void **state)
{
    (void)state;
    assert_string_equal(
        checked(POLICY(RULE("", "v1", "\"pods\",\"secrets\""), VALIDATE("object.spec.x == 1"))),
        warning("{\"fieldRef\":\"spec.validations[0].expression\",\"warning\":\""
                "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'x'\\n"
                " | object.spec.x == 1\\n | ...........^\\n\\n"
                "/v1, Kind=Secret: ERROR: <input>:1:7: undefined field 'spec'\\n"
                " | object.spec.x == 1\\n | ......^\\n\"}"));
    assert_string_equal(
        checked(POLICY(RULE("", "v1", "\"pods\""), VALIDATE("object.spec.nodeName == 'x'"))), "{}");
    assert_string_equal(checked(POLICY(RULE("", "v1", "\"pods\""), "")), "{}");
}

static void names_with_stars_and_subresources_name_no_kind(void **state)
{
    static const char *const rules[] = {
        RULE("*", "v1", "\"pods\""),
        RULE("", "*", "\"pods\""),
        RULE("", "v1", "\"*\",\"pods/status\",\"nothings\""),
        RULE("apps", "v1", "\"pods\""),
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        char policy[512];
        snprintf(policy, sizeof(policy), POLICY("%s", VALIDATE("object.x")), rules[i]);
        assert_string_equal(checked(policy), "{}");
        assert_int_equal(check.kind_count, 0);
    }
}

static void the_core_group_means_any_group(void **state)
{
    (void)state;
    (void)checked(POLICY(RULE("", "v1", "\"events\",\"lamp\""), VALIDATE("true")));
    assert_int_equal(check.kind_count, 3);
    assert_string_equal(check.kinds[0]->group, "");
    assert_string_equal(check.kinds[1]->group, "events.k8s.io");
    assert_string_equal(check.kinds[2]->kind, "Lamp");
}

static void custom_resources_have_the_metadata_of_all_objects(void **state)
{
    (void)state;
    assert_string_equal(
        checked(POLICY(RULE("example.com", "v1", "\"lamps\""),
                       VALIDATE("object.spec.size == 1 && object.metadata.labels['a'] == 'b' && "
                                "object.kind != object.metadata.uid"))),
        "{}");
    assert_string_equal(
        checked(POLICY(RULE("example.com", "v1", "\"lamps\""), VALIDATE("object.spec == 1"))),
        warning("{\"fieldRef\":\"spec.validations[0].expression\",\"warning\":\""
                "example.com/v1, Kind=Lamp: ERROR: <input>:1:13: found no matching overload for "
                "'_==_' applied to '(Lamp1.spec, int)'\\n"
                " | object.spec == 1\\n | ............^\\n\"}"));
}

static void parameters_and_variables_have_types(void **state)
{
    (void)state;
    assert_string_equal(
        checked(POLICY(RULE("", "v1", "\"pods\""),
                       ",\"paramKind\":{\"apiVersion\":\"example.com/v1\",\"kind\":\"Lamp\"},"
                       "\"variables\":[{\"name\":\"n\",\"expression\":\"object.spec.nodeName\"},"
                       "{\"name\":\"wrong\",\"expression\":\"object.x\"}],"
                       "\"validations\":[{\"expression\":\"params.spec.size == variables.n\","
                       "\"messageExpression\":\"string(variables.wrong.y)\"}]")),
        warning("{\"fieldRef\":\"spec.validations[0].expression\",\"warning\":\""
                "/v1, Kind=Pod: ERROR: <input>:1:18: found no matching overload for '_==_' applied "
                "to '(int, string)'\\n"
                " | params.spec.size == variables.n\\n | .................^\\n\"}"));
}

/* Kubernetes does not declare it there. */
static void the_resource_of_the_request_cannot_be_asked_about(void **state)
{
    (void)state;
    assert_string_equal(
        checked(POLICY(RULE("", "v1", "\"pods\""),
                       VALIDATE("authorizer.requestResource.check('get').allowed()"))),
        warning("{\"fieldRef\":\"spec.validations[0].expression\",\"warning\":\""
                "/v1, Kind=Pod: ERROR: <input>:1:11: unexpected failed resolution of "
                "'kubernetes.authorization.Authorizer'\\n"
                " | authorizer.requestResource.check('get').allowed()\\n | ..........^\\n\"}"));
}

static void a_rule_names_ten_kinds_at_most(void **state)
{
    (void)state;
    (void)checked(POLICY(RULE("", "v1",
                              "\"pods\",\"services\",\"configmaps\",\"secrets\",\"nodes\","
                              "\"namespaces\",\"endpoints\",\"limitranges\",\"resourcequotas\","
                              "\"serviceaccounts\",\"persistentvolumes\""),
                         VALIDATE("true")));
    assert_int_equal(check.kind_count, KUBE_CHECKED_KINDS_OF_RULE_MAX);
    assert_string_equal(check.kinds[check.kind_count - 1]->kind, "ServiceAccount");
}

/* A policy with two rules: one names many resources that do not exist, the other one pods. */
static const char *with_names(struct buf *text, unsigned groups, unsigned resources)
{
    buf_reset(text, SIZE_MAX);
    assert_int_equal(buf_append_text(text, "{\"spec\":{\"matchConstraints\":{\"resourceRules\":["
                                           "{\"apiVersions\":[\"v1\"],\"apiGroups\":[\"g\""),
                     ST_OK);
    for (unsigned i = 1; i < groups; i++)
        assert_int_equal(buf_append_text(text, ",\"g\""), ST_OK);
    assert_int_equal(buf_append_text(text, "],\"resources\":[\"a\""), ST_OK);
    for (unsigned i = 1; i < resources; i++)
        assert_int_equal(buf_append_text(text, ",\"a\""), ST_OK);
    assert_int_equal(buf_append_text(text, "]}," RULE("", "v1", "\"pods\"") "]}}}"), ST_OK);
    assert_int_equal(buf_append(text, slice_of("", 1)), ST_OK);
    return (const char *)text->ptr;
}

static void only_so_many_names_are_compared(void **state)
{
    AUTO(buf_fini) struct buf text = {0};
    size_t rows;
    (void)state;
    (void)kube_kinds_rows(kinds, &rows);
    unsigned most = (unsigned)(KUBE_CHECKED_COMPARISONS_MAX / rows);
    assert_in_range(most, 1000, 100000);
    (void)checked(with_names(&text, most / 1000 + 1, 1000));
    assert_int_equal(check.kind_count, 0);
    (void)checked(with_names(&text, most / 1000 - 1, 1000));
    assert_int_equal(check.kind_count, 1);
    /* A list that is too long is not compared at all. */
    (void)checked(with_names(&text, 1, KUBE_CHECKED_NAMES_MAX + 1));
    assert_int_equal(check.kind_count, 1);
    assert_int_equal(check.comparisons_left, KUBE_CHECKED_COMPARISONS_MAX - rows);
}

static int set_up(void **state)
{
    struct kube_definition *lamps = NULL;
    (void)state;
    pool = schema_pool_new();
    assert_int_equal(kube_definition_new(pool, SLICE_LITERAL(LAMPS), 7, &lamps), ST_OK);
    kinds = kube_kinds_new(&lamps, 1);
    kube_definition_unref(lamps);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kube_type_check_fini(&check);
    arena_fini(&arena);
    kube_kinds_unref(kinds);
    schema_pool_free(pool);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_checked_against_each_kind),
        cmocka_unit_test(names_with_stars_and_subresources_name_no_kind),
        cmocka_unit_test(the_core_group_means_any_group),
        cmocka_unit_test(custom_resources_have_the_metadata_of_all_objects),
        cmocka_unit_test(parameters_and_variables_have_types),
        cmocka_unit_test(the_resource_of_the_request_cannot_be_asked_about),
        cmocka_unit_test(a_rule_names_ten_kinds_at_most),
        cmocka_unit_test(only_so_many_names_are_compared),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
