/* Policies and bindings as pure functions of a write. tests/kube/same_policies_test.py compares
 * many of them with a real kube-apiserver. */
#include "kube/policy/policies/index.h"
#include "kube/policy/policies/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20, WARNING_BYTES = 512 };

static struct arena arena;
static struct kube_status status;
static char warned[WARNING_BYTES];
static unsigned warnings;
/* What is written, and what was before; NULL: {"a": 1}, which is new. */
static const struct json_node *written, *before;
/* What the binding matches; NULL: everything. */
static const struct json_node *bound;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    status = (struct kube_status){0};
    warnings = 0;
    written = before = bound = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* A JSON text with ' in place of ". */
static struct json_node *tree(const char *text)
{
    struct json_node *root;
    struct error error;
    struct slice copy;
    assert_int_equal(arena_dup(&arena, slice_from_text(text), &copy), ST_OK);
    char *at = (char *)(uintptr_t)copy.ptr;
    for (size_t i = 0; i < copy.len; i++)
        at[i] = at[i] == '\'' ? '"' : at[i];
    assert_int_equal(json_tree_read(&arena, copy, &root, &error), ST_OK);
    return root;
}

/* -- Matching -- */

static const struct kube_kind *kind_of(const char *group, const char *version, const char *plural)
{
    const struct kube_kind *kind = kube_builtin_find(
        slice_from_text(group), slice_from_text(version), slice_from_text(plural));
    assert_non_null(kind);
    return kind;
}

static bool matches(const char *rule, const char *group, const char *version, const char *plural,
                    const char *subresource, const char *namespace, const char *name)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_match match;
    const struct kube_kind *matched;
    assert_int_equal(buf_append_format(&text, "{'resourceRules':[%s]}", rule), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_true(kube_match_read(&arena, tree((const char *)text.ptr), &match));
    const struct kube_match_request request = {
        .kind = kind_of(group, version, plural),
        .subresource = slice_from_text(subresource),
        .operation = KUBE_MATCH_UPDATE,
        .namespace = slice_from_text(namespace),
        .name = slice_from_text(name),
    };
    return kube_match_resource(&match, &request, true, &matched);
}

#define RULE(resources, more)                                                                      \
    "{'apiGroups':['','apps'],'apiVersions':['v1'],'operations':['UPDATE'],'resources':" resources \
        more "}"

static void an_index_has_what_was_put_under_a_whole_text(void **state)
{
    struct kube_lookup_object object = {.name = SLICE_LITERAL("policy")};
    struct version_map index = {0};
    (void)state;
    assert_false(kube_policy_index_has(&index, SLICE_LITERAL("pods")));
    kube_policy_index_put(&index, SLICE_LITERAL("pods"), &object);
    assert_true(kube_policy_index_has(&index, SLICE_LITERAL("pods")));
    assert_false(kube_policy_index_has(&index, SLICE_LITERAL("pod")));
    assert_false(kube_policy_index_has(&index, SLICE_LITERAL("podsets")));
    assert_false(kube_policy_index_has(&index, SLICE_LITERAL("*")));
    kube_policy_index_remove(&index, SLICE_LITERAL("pods"), &object);
    assert_false(kube_policy_index_has(&index, SLICE_LITERAL("pods")));
    version_map_fini(&index);
}

static void rules_match_resources_and_their_parts(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *plural, *subresource;
        bool matches;
    } rows[] = {
        {RULE("['pods']", ""), "pods", "", true},
        {RULE("['pods']", ""), "pods", "status", false},
        {RULE("['pods']", ""), "configmaps", "", false},
        {RULE("['pods/status']", ""), "pods", "status", true},
        {RULE("['pods/status']", ""), "pods", "", false},
        {RULE("['pods/*']", ""), "pods", "status", true},
        {RULE("['pods/*']", ""), "pods", "", true},
        {RULE("['*']", ""), "pods", "", true},
        {RULE("['*']", ""), "pods", "status", false},
        {RULE("['*/*']", ""), "pods", "status", true},
        {RULE("['*/status']", ""), "pods", "status", true},
        {RULE("['*/scale']", ""), "pods", "status", false},
        {RULE("['pods']", ",'resourceNames':['a']"), "pods", "", true},
        {RULE("['pods']", ",'resourceNames':['b']"), "pods", "", false},
        {RULE("['pods']", ",'scope':'Cluster'"), "pods", "", false},
        {RULE("['pods']", ",'scope':'Namespaced'"), "pods", "", true},
        {"{'apiGroups':['*'],'apiVersions':['*'],'operations':['*'],'resources':['pods']}", "pods",
         "", true},
        {"{'apiGroups':[''],'apiVersions':['v2'],'operations':['*'],'resources':['pods']}", "pods",
         "", false},
        {"{'apiGroups':['apps'],'apiVersions':['v1'],'operations':['*'],'resources':['pods']}",
         "pods", "", false},
        {"{'apiGroups':[''],'apiVersions':['v1'],'operations':['CREATE','DELETE'],'resources':["
         "'pods']}",
         "pods", "", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (matches(rows[i].rule, "", "v1", rows[i].plural, rows[i].subresource, "n", "a") !=
            rows[i].matches)
            fail_msg("row %zu", i);
    /* A namespace has the namespace of its name, and is nevertheless of the cluster. */
    assert_true(matches(RULE("['namespaces']", ",'scope':'Cluster'"), "", "v1", "namespaces", "",
                        "a", "a"));
    assert_false(matches(RULE("['namespaces']", ",'scope':'Namespaced'"), "", "v1", "namespaces",
                         "", "a", "a"));
}

/* -- Deciding -- */

static void warn(void *ctx, struct slice warning)
{
    (void)ctx;
    warnings++;
    snprintf(warned, sizeof(warned), "%.*s", SLICE_ARGS(warning));
}

#define SPEC(more)                                                                         \
    "{'metadata':{'name':'p'},'spec':{'matchConstraints':{'resourceRules':[{'apiGroups':[" \
    "'*'],'apiVersions':['*'],'operations':['*'],'resources':['*']}]}," more "}}"

/* What policies ask; without an arena everything is allowed. */
static struct kube_permissions permissions;

/* The decision about it by a policy and a binding with these actions. */
static enum kube_policy_verdict decide(const char *policy, const char *actions, uint64_t cost_max,
                                       bool is_attempt, struct arena *answer)
{
    AUTO(buf_fini) struct buf text = {0};
    static const struct json_node *params[] = {NULL};
    struct kube_lookup_object objects[2] = {{.name = SLICE_LITERAL("p")},
                                            {.name = SLICE_LITERAL("b")}};
    assert_int_equal(buf_append_format(&text,
                                       "{'metadata':{'name':'b'},'spec':{'policyName':'p',"
                                       "'validationActions':%s}}",
                                       actions),
                     ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    objects[0].data = kube_policy_read(&arena, tree(policy));
    struct json_node *binding = tree((const char *)text.ptr);
    if (bound)
        assert_int_equal(json_node_put(&arena, json_node_named(binding, "spec"), "matchResources",
                                       json_node_copy(&arena, bound)),
                         ST_OK);
    objects[1].data = kube_policy_binding_read(&arena, binding);
    assert_non_null(objects[0].data);
    assert_non_null(objects[1].data);
    struct kube_policy_case one = {.policy_object = &objects[0],
                                   .binding_object = &objects[1],
                                   .params = params,
                                   .param_count = 1};
    struct kube_policy_write write = {
        .permissions = &permissions,
        .cases = &one,
        .case_count = 1,
        .request = {.kind = kind_of("", "v1", "configmaps"),
                    .operation = KUBE_MATCH_CREATE,
                    .namespace = SLICE_LITERAL("n"),
                    .name = SLICE_LITERAL("x")},
        .object_kind = {"", "v1", "ConfigMap"},
        .object = written ? written : tree("{'a':1}"),
        .old = before,
        .revision = before ? 7 : 0,
        .cost_max = cost_max,
        .is_attempt = is_attempt,
        .arena = answer,
        .status = &status,
        .warn = warn,
    };
    return kube_policy_validate(&write);
}

static void assert_denied(const char *policy, const char *message)
{
    status = (struct kube_status){0};
    assert_int_equal(decide(policy, "['Deny']", KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_DENIES);
    if (!slice_is(status.long_message, message))
        fail_msg("%.*s", SLICE_ARGS(status.long_message));
}

#define DENIED                                                                              \
    "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied " \
    "request: "

static void a_failed_validation_denies_with_its_message(void **state)
{
    (void)state;
    assert_denied(SPEC("'validations':[{'expression':'true'},{'expression':' object.a == 2 '}]"),
                  DENIED "failed expression: object.a == 2");
    assert_int_equal(kube_status_code(&status), 422);
    assert_denied(SPEC("'validations':[{'expression':'false','message':' no ','reason':'Forbidden'"
                       "}]"),
                  DENIED "no");
    assert_int_equal(kube_status_code(&status), 403);
    assert_denied(SPEC("'validations':[{'expression':'false','message':'no','messageExpression':"
                       "'string(object.a) + \\'!\\''}]"),
                  DENIED "1!");
    assert_int_equal(decide(SPEC("'validations':[{'expression':'object.a == 1'}]"), "['Deny']",
                            KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
}

static void other_actions_do_not_deny(void **state)
{
    (void)state;
    assert_int_equal(decide(SPEC("'validations':[{'expression':'false'}]"), "['Warn','Audit']",
                            KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
    assert_int_equal(warnings, 1);
    assert_string_equal(warned, "Validation failed for ValidatingAdmissionPolicy 'p' with binding "
                                "'b': failed expression: false");
}

static void an_error_denies_unless_failures_are_ignored(void **state)
{
    (void)state;
#define FAILS "'validations':[{'expression':'object.b == 1'}]"
    assert_denied(SPEC(FAILS),
                  DENIED "expression 'object.b == 1' resulted in error: no such key: b");
    assert_int_equal(decide(SPEC(FAILS ",'failurePolicy':'Ignore'"), "['Deny']",
                            KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
    /* Stored through the etcd API, without a check. */
    assert_denied(SPEC("'validations':[{'expression':'object.'}]"),
                  DENIED "compilation error: compilation failed: ERROR: <input>:1:8: Syntax error: "
                         "no viable alternative at input '.'\n | object.\n | .......^");
}

static void a_variable_that_refers_to_itself_is_an_error(void **state)
{
    (void)state;
    assert_denied(SPEC("'variables':[{'name':'v','expression':'1'},{'name':'v','expression':"
                       "'variables.v'}],'validations':[{'expression':'variables.v == 1'}]"),
                  DENIED "expression 'variables.v == 1' resulted in error: composited variable "
                         "\"v\" fails to evaluate: variable \"v\" refers to itself");
}

#define DEAR                                                                                \
    "'failurePolicy':'Ignore','validations':[{'expression':'[1,2,3].all(a, [1,2,3].all(b, " \
    "[1,2,3].all(c, a + b + c > 0)))'},{'expression':'false'}]"

#define ASKS(verb) "authorizer.requestResource.check(\\u0027" verb "\\u0027).allowed()"

static void what_a_policy_asks_is_answered_before_it_decides(void **state)
{
    const char *policy =
        SPEC("'validations':[{'expression':'" ASKS("get") " && " ASKS("list") "'}]");
    struct kube_permission *asked;
    (void)state;
    kube_permissions_init(&permissions, &arena);
    assert_int_equal(decide(policy, "['Deny']", KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ASKS);
    /* Both questions are known, and are not asked again. */
    while ((asked = kube_permissions_next(&permissions)) != NULL) {
        assert_true(slice_is(asked->attributes.resource, "configmaps"));
        kube_permission_answer(&permissions, asked, slice_is(asked->attributes.verb, "get"), "");
    }
    assert_int_equal(permissions.count, 2);
    assert_int_equal(decide(policy, "['Deny']", KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_DENIES);
    assert_int_equal(permissions.count, 2);
    kube_permissions_init(&permissions, NULL);
    assert_int_equal(decide(policy, "['Deny']", KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
}

static void a_policy_cannot_ask_without_end(void **state)
{
    (void)state;
    kube_permissions_init(&permissions, &arena);
    permissions.count = KUBE_PERMISSIONS_MAX;
    assert_int_equal(decide(SPEC("'validations':[{'expression':'" ASKS("get") "'}]"), "['Deny']",
                            KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_DENIES);
    assert_null(permissions.first);
    kube_permissions_init(&permissions, NULL);
}

static void an_attempt_that_costs_too_much_decides_nothing(void **state)
{
    (void)state;
    assert_int_equal(decide(SPEC(DEAR), "['Warn']", 100, true, &arena), KUBE_POLICY_TOO_DEAR);
    assert_int_equal(warnings, 0);
    assert_int_equal(decide(SPEC(DEAR), "['Warn']", KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
    assert_int_equal(warnings, 1);
}

/* {"metadata": {}, "l": [[0], [1], …]} */
static const struct json_node *large_object(int count)
{
    struct json_node *root = tree("{'metadata':{'name':'x'},'l':[]}");
    for (int i = 0; i < count; i++)
        assert_int_equal(
            json_node_insert(json_node_named(root, "l"), NULL, tree(i % 2 ? "[0]" : "[1]")), ST_OK);
    return root;
}

/* Kubernetes counts nothing for the comparison of two objects, however large they are. */
static void comparing_large_objects_is_not_cheap(void **state)
{
    (void)state;
    const char *policy = SPEC("'validations':[{'expression':'object == oldObject'},{'expression':"
                              "'object == oldObject'}]");
    written = before = large_object(10);
    assert_int_equal(decide(policy, "['Deny']", 1000, true, &arena), KUBE_POLICY_ADMITS);
    written = before = large_object(2000);
    assert_int_equal(decide(policy, "['Deny']", 1000, true, &arena), KUBE_POLICY_TOO_DEAR);
    assert_int_equal(decide(policy, "['Deny']", KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
}

/* All but a few values are shared with the object that is written. */
static void the_version_of_an_object_takes_little_memory(void **state)
{
    (void)state;
    struct arena small;
    const char *policy =
        SPEC("'validations':[{'expression':'object.metadata.resourceVersion == \\'7\\' && "
             "oldObject.metadata.resourceVersion == \\'7\\' && object.l == oldObject.l && "
             "object.metadata.name == \\'x\\''}]");
    written = before = large_object(2000);
    arena_init(&small, NULL, 0, 16 << 10);
    assert_int_equal(decide(policy, "['Deny']", KUBE_WRITE_COST_MAX, false, &small),
                     KUBE_POLICY_ADMITS);
    arena_fini(&small);
    assert_null(json_node_path(written, "metadata.resourceVersion"));
}

/* The limit is the server's, so that it also counts for a policy that ignores failures. */
static void policies_that_cost_too_much_together_refuse_the_write(void **state)
{
    (void)state;
    assert_int_equal(decide(SPEC(DEAR), "['Warn']", 100, false, &arena), KUBE_POLICY_DENIES);
    assert_int_equal(kube_status_code(&status), 403);
    assert_non_null(strstr((const char *)status.long_message.ptr, "cost more than this server"));
}

/* -- Limits -- */

static void what_is_too_large_or_too_deep_cannot_be_used(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf text = {0};
    assert_non_null(kube_policy_check(&arena, tree(SPEC("'validations':[{'expression':'true'}]"))));
    assert_int_equal(buf_append_text(&text, "{'metadata':{'name':'p'},'spec':{'variables':[{'name':"
                                            "'v0','expression':'1'}"),
                     ST_OK);
    for (int i = 1; i <= KUBE_EXPRESSION_NESTING_MAX + 1; i++)
        assert_int_equal(
            buf_append_format(&text, ",{'name':'v%d','expression':'variables.v%d + 1'}", i, i - 1),
            ST_OK);
    assert_int_equal(buf_append(&text, slice_of("]}}", 4)), ST_OK);
    const struct json_node *deep = tree((const char *)text.ptr);
    assert_null(kube_policy_check(&arena, deep));
    const struct kube_policy *policy = kube_policy_read(&arena, deep);
    assert_non_null(policy);
    assert_non_null(policy->unusable);
}

/* {"resourceRules": [{…, "resourceNames": ["y", "y", …]}]}, which does not match "x" */
static const struct json_node *match_of_names(int count)
{
    struct json_node *match = tree("{'resourceRules':[{'apiGroups':['*'],'apiVersions':['*'],"
                                   "'operations':['*'],'resources':['*'],'resourceNames':[]}]}");
    struct json_node *rule = json_node_first(json_node_named(match, "resourceRules"));
    struct json_node *names = json_node_named(rule, "resourceNames");
    for (int i = 0; i < count; i++)
        assert_int_equal(json_node_insert(names, NULL, tree("'y'")), ST_OK);
    return match;
}

/* One that was stored by another program concerns what its policy matches, and denies it even if
 * the policy ignores failures. */
static void a_binding_of_too_many_names_denies(void **state)
{
    (void)state;
    const char *ignores = SPEC("'validations':[{'expression':'true'}],'failurePolicy':'Ignore'");
    bound = match_of_names(10000);
    assert_int_equal(decide(SPEC("'validations':[{'expression':'false'}]"), "['Deny']",
                            KUBE_WRITE_COST_MAX, false, &arena),
                     KUBE_POLICY_ADMITS);
    bound = match_of_names(10001);
    assert_denied(ignores, DENIED "failed to configure binding: one of its rules has more than "
                                  "10000 groups, versions, resources or names");
}

/* Whatever allocation fails, there is no policy rather than half of one. */
static void without_memory_there_is_no_policy(void **state)
{
    (void)state;
    const struct json_node *object = tree(
        SPEC("'variables':[{'name':'v','expression':'object.a'}],'matchConditions':[{'name':'c',"
             "'expression':'true'}],'validations':[{'expression':'variables.v == 1'}]"));
    bool made = false;
    for (size_t bytes = 0; !made; bytes += 512) {
        struct arena small;
        assert_true(bytes < ARENA_BYTES);
        arena_init(&small, NULL, 0, bytes);
        made = kube_policy_read(&small, object);
        assert_true(made != arena_ran_out(&small));
        arena_fini(&small);
    }
}

static void without_memory_a_write_is_refused(void **state)
{
    (void)state;
    struct arena none;
    arena_init(&none, NULL, 0, 0);
    assert_int_equal(decide(SPEC("'validations':[{'expression':'false'}]"), "['Deny']",
                            KUBE_WRITE_COST_MAX, false, &none),
                     KUBE_POLICY_DENIES);
    assert_true(kube_code_is_no_memory(kube_status_code(&status)));
    arena_fini(&none);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_index_has_what_was_put_under_a_whole_text),
        TEST(rules_match_resources_and_their_parts),
        TEST(a_failed_validation_denies_with_its_message),
        TEST(other_actions_do_not_deny),
        TEST(an_error_denies_unless_failures_are_ignored),
        TEST(a_variable_that_refers_to_itself_is_an_error),
        TEST(what_a_policy_asks_is_answered_before_it_decides),
        TEST(a_policy_cannot_ask_without_end),
        TEST(an_attempt_that_costs_too_much_decides_nothing),
        TEST(comparing_large_objects_is_not_cheap),
        TEST(the_version_of_an_object_takes_little_memory),
        TEST(policies_that_cost_too_much_together_refuse_the_write),
        TEST(what_is_too_large_or_too_deep_cannot_be_used),
        TEST(a_binding_of_too_many_names_denies),
        TEST(without_memory_there_is_no_policy),
        TEST(without_memory_a_write_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
