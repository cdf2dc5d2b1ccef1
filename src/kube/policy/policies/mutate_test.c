/* Mutations as functions of a write. tests/kube/same_mutations_test.py compares many of them with a
 * real kube-apiserver. */
#include "kube/policy/policies/mutate.h"

#include "kube/policy/policies/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20 };

/* What policies ask; without an arena everything is allowed. */
static struct kube_permissions permissions;

struct fixture {
    struct arena arena;
    struct kube_status status;
    struct kube_mutating mutating;
    const struct json_node *object, *result;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, NULL, 0, ARENA_BYTES);
    f->mutating.arena = &f->arena;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    free(f);
    return 0;
}

/* A JSON text with ' in place of ". */
static struct json_node *tree(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    struct slice copy;
    assert_int_equal(arena_dup(arena, slice_from_text(text), &copy), ST_OK);
    char *at = (char *)(uintptr_t)copy.ptr;
    for (size_t i = 0; i < copy.len; i++)
        at[i] = at[i] == '\'' ? '"' : at[i];
    assert_int_equal(json_tree_read(arena, copy, &root, &error), ST_OK);
    return root;
}

#define OBJECT                                                                        \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'x','namespace':'n'},'" \
    "data':{'a':'b'}}"
#define SPEC(members) "{'metadata':{'name':'p'},'spec':{" members "}}"
#define APPLY(text) \
    "{'patchType':'ApplyConfiguration','applyConfiguration':{'expression':'" text "'}}"
#define PATCH(text) "{'patchType':'JSONPatch','jsonPatch':{'expression':'" text "'}}"

static enum kube_policy_verdict run(struct fixture *f, const char *policy, uint64_t cost_max,
                                    bool is_attempt, struct arena *answer)
{
    const struct json_node *params[] = {NULL};
    struct kube_lookup_object objects[2] = {{.name = SLICE_LITERAL("p")},
                                            {.name = SLICE_LITERAL("b")}};
    objects[0].data = kube_policy_read(&f->arena, tree(&f->arena, policy));
    objects[1].data = kube_policy_binding_read(
        &f->arena, tree(&f->arena, "{'metadata':{'name':'b'},'spec':{'policyName':'p'}}"));
    assert_non_null(objects[0].data);
    assert_non_null(objects[1].data);
    struct kube_policy_case one = {.policy_object = &objects[0],
                                   .binding_object = &objects[1],
                                   .params = params,
                                   .param_count = 1};
    struct kube_policy_write write = {
        .cases = &one,
        .case_count = 1,
        .request = {.kind = kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"),
                                              SLICE_LITERAL("configmaps")),
                    .operation = KUBE_MATCH_CREATE,
                    .namespace = SLICE_LITERAL("n"),
                    .name = SLICE_LITERAL("x")},
        .object_kind = {"", "v1", "ConfigMap"},
        .object = f->object ? f->object : tree(&f->arena, OBJECT),
        .cost_max = cost_max,
        .is_attempt = is_attempt,
        .permissions = &permissions,
        .arena = answer,
        .status = &f->status,
    };
    f->status = (struct kube_status){0};
    f->result = NULL;
    return kube_policy_mutate(&write, &f->mutating, &f->result);
}

static void assert_result(struct fixture *f, const char *policy, const char *path, const char *text)
{
    assert_int_equal(run(f, policy, KUBE_WRITE_COST_MAX, false, &f->arena), KUBE_POLICY_ADMITS);
    const struct json_node *found = json_node_path(f->result, path);
    if (text)
        assert_true(json_node_is_text(found, text));
    else
        assert_null(found);
}

static void assert_denied(struct fixture *f, const char *policy, const char *message)
{
    assert_int_equal(run(f, policy, KUBE_WRITE_COST_MAX, false, &f->arena), KUBE_POLICY_DENIES);
    if (!slice_is(f->status.long_message, message))
        fail_msg("%.*s", SLICE_ARGS(f->status.long_message));
}

#define DENIED "policy 'p' with binding 'b' denied request: "

static void each_mutation_sees_the_result_of_the_one_before(void **state)
{
    struct fixture *f = *state;
    assert_result(
        f,
        SPEC("'mutations':[" APPLY("Object{data: {\\'c\\': object.data.a + \\'1\\'}}") "," PATCH(
            "[JSONPatch{op: \\'move\\', from: \\'/data/c\\', path: \\'/data/d\\'}]") "]"),
        "data.d", "b1");
    assert_null(json_node_path(f->result, "data.c"));
    assert_true(json_node_text_is(f->result, "data.a", "b"));
    assert_true(f->mutating.mutated);
}

static void a_patch_whose_test_fails_changes_nothing(void **state)
{
    struct fixture *f = *state;
    assert_result(f,
                  SPEC("'mutations':[" PATCH(
                      "[JSONPatch{op: \\'remove\\', path: \\'/data\\'}, JSONPatch{op: \\'test\\', "
                      "path: \\'/kind\\', value: \\'x\\'}]") "]"),
                  "data.a", "b");
    assert_true(f->mutating.mutated); /* the chain runs again nevertheless */
}

static void an_error_denies_with_code_403_unless_failures_are_ignored(void **state)
{
    struct fixture *f = *state;
#define FAILS                                                     \
    "'mutations':[" APPLY("Object{data: object.none}") "," APPLY( \
        "Object{data: {\\'c\\': \\'d\\'}}") "]"
    assert_denied(f, SPEC(FAILS),
                  DENIED "expression 'Object{data: object.none}' resulted in error: no such key: "
                         "none");
    assert_int_equal(kube_status_code(&f->status), 403);
    assert_int_equal(f->status.reason, KUBE_INVALID);
    assert_result(f, SPEC(FAILS ",'failurePolicy':'Ignore'"), "data.c", "d");
}

static void what_an_apply_would_lose_or_misplace_is_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *policy, *why;
    } rows[] = {
        {SPEC("'mutations':[" APPLY("Object{nothing: 1}") "]"),
         DENIED "error applying patch: failed to convert patch object to typed object: .nothing: "
                "field not declared in schema"},
        {SPEC("'mutations':[" APPLY("Object{data: Object.other{a: \\'b\\'}}") "]"),
         DENIED "type mismatch: unexpected type name \"Object.other\", expected \"Object.data\", "
                "which matches field name path from root Object type"},
        {SPEC("'mutations':[" APPLY(
             "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{"
             "uid: \\'u\\'}]}}") "]"),
         DENIED "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, "
                "maps or structs: .metadata.ownerReferences[0]"},
        {SPEC("'mutations':[" APPLY("Object{data: {\\'a\\': null}}") "]"),
         DENIED "error applying patch: failed to convert patch object to typed object: .data.a: "
                "expected string, got &value.valueUnstructured{Value:0}"},
        {SPEC("'mutations':[" APPLY("Object{metadata: Object.metadata{generation: null}}") "]"),
         DENIED "error applying patch: failed to convert patch object to typed object: expected "
                "numeric (int or float), got structpb.NullValue"},
        {SPEC("'mutations':[" APPLY("Object{data: {\\'a\\': duration(\\'1s\\')}}") "]"),
         DENIED "a value of type google.protobuf.Duration has no counterpart in JSON"},
        {SPEC("'mutations':[" PATCH("[JSONPatch{op: \\'add\\', path: \\'/data/x\\', value: "
                                    "optional.none()}]") "]"),
         DENIED "JSONPath valueExpression evaluated to a type that could not marshal to JSON: a "
                "value of type optional_type has no counterpart in JSON"},
        {SPEC("'mutations':[" PATCH("[JSONPatch{op: \\'add\\', path: \\'/kind\\', value: "
                                    "\\'Secret\\'}]") "]"),
         "Internal error occurred: failed to convert object: the patch has changed its kind"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_denied(f, rows[i].policy, rows[i].why);
}

#define COUNTS                                                                                    \
    "'mutations':[" APPLY("Object{data: {\\'n\\': string(int(object.data.?n.orValue(\\'0\\')) + " \
                          "1)}}") "]"

static void only_policies_that_say_so_run_in_the_second_pass(void **state)
{
    struct fixture *f = *state;
    static const char *const policies[] = {SPEC(COUNTS ",'reinvocationPolicy':'Never'"),
                                           SPEC(COUNTS ",'reinvocationPolicy':'IfNeeded'")};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        f->mutating = (struct kube_mutating){.arena = &f->arena};
        f->object = NULL;
        assert_result(f, policies[i], "data.n", "1");
        f->mutating.again = true;
        f->object = f->result;
        assert_result(f, policies[i], "data.n", i ? "2" : "1");
    }
}

static void an_attempt_that_costs_too_much_changes_nothing(void **state)
{
    struct fixture *f = *state;
    static const char policy[] = SPEC(COUNTS ",'reinvocationPolicy':'IfNeeded'");
    assert_int_equal(run(f, policy, 10, true, &f->arena), KUBE_POLICY_TOO_DEAR);
    assert_false(f->mutating.mutated);
    assert_int_equal(f->mutating.key_count, 0);
    assert_int_equal(run(f, policy, 10, false, &f->arena), KUBE_POLICY_DENIES);
    assert_non_null(memmem(f->status.long_message.ptr, f->status.long_message.len,
                           "cost more than this server", 26));
}

static void without_memory_a_write_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char policy[] =
        SPEC("'matchConditions':[{'name':'c','expression':'true'}],'mutations':[" APPLY(
            "Object{data: {\\'c\\': \\'d\\'}}") "," PATCH("[JSONPatch{op: \\'add\\', path: "
                                                          "\\'/data/x\\', value: \\'y\\'}]") "]");
    enum kube_policy_verdict verdict = KUBE_POLICY_DENIES;
    for (size_t bytes = 0; verdict != KUBE_POLICY_ADMITS; bytes += 256) {
        struct arena answer, result;
        assert_true(bytes < 1 << 20);
        arena_init(&answer, NULL, 0, bytes);
        arena_init(&result, NULL, 0, bytes);
        f->mutating = (struct kube_mutating){.arena = &result};
        verdict = run(f, policy, KUBE_WRITE_COST_MAX, false, &answer);
        if (verdict != KUBE_POLICY_ADMITS)
            assert_true(kube_code_is_no_memory(kube_status_code(&f->status)));
        arena_fini(&answer);
        arena_fini(&result);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_mutation_sees_the_result_of_the_one_before),
        TEST(a_patch_whose_test_fails_changes_nothing),
        TEST(an_error_denies_with_code_403_unless_failures_are_ignored),
        TEST(what_an_apply_would_lose_or_misplace_is_refused),
        TEST(only_policies_that_say_so_run_in_the_second_pass),
        TEST(an_attempt_that_costs_too_much_changes_nothing),
        TEST(without_memory_a_write_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
