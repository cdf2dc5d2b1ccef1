/* Mutations as functions of a write. tests/kube/same_mutations_test.py compares many of them with a
 * real kube-apiserver. */
#include "kube/policy/policies/mutate.h"

#include "kube/policy/policies/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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
        {SPEC(
             "'mutations':[" PATCH("[JSONPatch{op: \\'replace\\', path: \\'\\', value: [1]}]") "]"),
         "Internal error occurred: couldn't get version/kind; json parse error: json: cannot "
         "unmarshal array into Go value of type struct { APIVersion string "
         "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
         "\"json:\\\"kind,omitempty\\\"\" }"},
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

/* Each mutation makes a new object of some MB; only one of them is needed at a time. */
static void many_mutations_take_the_memory_of_a_few(void **state)
{
    struct fixture *f = *state;
    enum { MUTATIONS = 100, MEMBERS = 10000 };
    AUTO(buf_fini) struct buf policy = {0};
    struct arena result;
    struct json_node *large = tree(&f->arena, OBJECT);
    for (int i = 0; i < MEMBERS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        assert_int_equal(json_node_put(&f->arena, json_node_named(large, "data"), name,
                                       json_node_new_text(&f->arena, SLICE_LITERAL("v"))),
                         ST_OK);
    }
    f->object = large;
    assert_int_equal(buf_append_text(&policy, "{'metadata':{'name':'p'},'spec':{'mutations':["),
                     ST_OK);
    for (int i = 0; i < MUTATIONS; i++)
        assert_int_equal(
            buf_append_format(&policy, "%s%s", i ? "," : "",
                              i % 2 ? APPLY("Object{data: {\\'n\\': object.data.n + \\'1\\'}}")
                                    : PATCH("[JSONPatch{op: \\'add\\', path: \\'/data/n\\', value: "
                                            "object.data.?n.orValue(\\'\\') + \\'0\\'}]")),
            ST_OK);
    assert_int_equal(buf_append(&policy, slice_of("]}}", 4)), ST_OK);
    arena_init(&result, NULL, 0, 16 << 20);
    f->mutating = (struct kube_mutating){.arena = &result};
    assert_int_equal(run(f, (const char *)policy.ptr, KUBE_WRITE_COST_MAX, false, &f->arena),
                     KUBE_POLICY_ADMITS);
    struct slice text = json_node_path(f->result, "data.n")->text;
    assert_int_equal(text.len, MUTATIONS);
    for (size_t i = 0; i < text.len; i++)
        assert_int_equal(text.ptr[i], i % 2 ? '1' : '0');
    assert_int_equal(json_node_named(f->result, "data")->count, MEMBERS + 2);
    arena_fini(&result);
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

/* The text of a policy with a mutation whose value is nested so deeply: a list within a list, with
 * the inner one once or twice. */
static void write_nested(char *text, size_t bytes, bool patches, const char *innermost,
                         const char *below, int levels)
{
    static const char *const begins[] = {
        "'ApplyConfiguration','applyConfiguration':{'expression':'Object{data: {\\'a\\': [%s]",
        "'JSONPatch','jsonPatch':{'expression':'[JSONPatch{op: \\'add\\', path: \\'/data\\', "
        "value: [%s]"};
    static const char *const ends[] = {"}}'}}]}}", "}]'}}]}}"};
    static const char spec[] = "{'metadata':{'name':'p'},'spec':{'mutations':[{'patchType':";
    size_t at = strlen(spec);
    memcpy(text, spec, sizeof(spec));
    at += (size_t)snprintf(text + at, bytes - at, begins[patches], innermost);
    for (int i = 0; i < levels; i++)
        at += (size_t)snprintf(text + at, bytes - at, ".map(a, %s)", below);
    at += (size_t)snprintf(text + at, bytes - at, "%s", ends[patches]);
    assert_true(at < bytes);
}

static void what_contains_a_value_many_times_is_refused_soon(void **state)
{
    struct fixture *f = *state;
    static const char *const below[] = {"[a, a]", "{\\'a\\': dyn(a), \\'b\\': dyn([a])}"};
    char policy[4096];
    for (size_t i = 0; i < 4; i++) {
        write_nested(policy, sizeof(policy), i < 2, i % 2 ? "1" : "object", below[i % 2], 60);
        /* The worker finds that out. */
        assert_int_equal(run(f, policy, 5000, true, &f->arena), KUBE_POLICY_TOO_DEAR);
        arena_fini(&f->arena);
        arena_init(&f->arena, NULL, 0, ARENA_BYTES);
        assert_denied(f, policy, DENIED "the created object is too large");
        arena_fini(&f->arena);
        arena_init(&f->arena, NULL, 0, ARENA_BYTES);
    }
}

static void what_is_nested_too_deeply_is_refused(void **state)
{
    struct fixture *f = *state;
    char policy[8192];
    for (int levels = 120; levels < 132; levels++)
        for (int patches = 0; patches < 2; patches++) {
            write_nested(policy, sizeof(policy), patches, "object", "[[a]]", levels);
            assert_int_equal(run(f, policy, KUBE_WRITE_COST_MAX, false, &f->arena),
                             KUBE_POLICY_DENIES);
            assert_true(f->status.long_message.len); /* and not only that there is no memory */
            if (levels > 127)
                assert_denied(f, policy, DENIED "the created object is nested too deeply");
            arena_fini(&f->arena);
            arena_init(&f->arena, NULL, 0, ARENA_BYTES);
        }
}

static void the_object_does_not_need_what_the_policy_has_read(void **state)
{
    struct fixture *f = *state;
    static const char *const policies[] = {
        SPEC("'mutations':[" APPLY("Object{metadata: Object.metadata{annotations: "
                                   "request.requestKind}}") "]"),
        SPEC(
            "'mutations':[" PATCH("[JSONPatch{op: \\'add\\', path: "
                                  "\\'/metadata/annotations\\', value: request.requestKind}]") "]"),
    };
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        AUTO(buf_fini) struct buf text = {0};
        struct arena answer;
        arena_init(&answer, NULL, 0, ARENA_BYTES);
        assert_int_equal(run(f, policies[i], KUBE_WRITE_COST_MAX, false, &answer),
                         KUBE_POLICY_ADMITS);
        arena_fini(&answer);
        assert_int_equal(json_tree_write(f->result, &text), ST_OK);
        assert_non_null(memmem(text.ptr, text.len, "\"kind\":\"ConfigMap\"", 18));
        assert_true(json_node_text_is(f->result, "metadata.annotations.kind", "ConfigMap"));
    }
}

/* Expressions that cost nothing change a large object many times: not on the thread of the API. */
static void mutations_of_a_large_object_cost_what_it_is_large(void **state)
{
    struct fixture *f = *state;
    static const char policy[] = SPEC("'mutations':[" APPLY("Object{}") "]");
    struct json_node *large = tree(&f->arena, OBJECT);
    f->object = tree(&f->arena, OBJECT);
    assert_int_equal(run(f, policy, 5000, true, &f->arena), KUBE_POLICY_ADMITS);
    for (int i = 0; i < 400; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        assert_int_equal(json_node_put(&f->arena, json_node_named(large, "data"), name,
                                       json_node_new_text(&f->arena, SLICE_EMPTY)),
                         ST_OK);
    }
    f->object = large;
    f->mutating = (struct kube_mutating){.arena = &f->arena};
    assert_int_equal(run(f, policy, 1000, true, &f->arena), KUBE_POLICY_TOO_DEAR);
    assert_int_equal(run(f, policy, 5000, true, &f->arena), KUBE_POLICY_ADMITS);
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
        TEST(what_contains_a_value_many_times_is_refused_soon),
        TEST(what_is_nested_too_deeply_is_refused),
        TEST(the_object_does_not_need_what_the_policy_has_read),
        TEST(mutations_of_a_large_object_cost_what_it_is_large),
        TEST(many_mutations_take_the_memory_of_a_few),
        TEST(without_memory_a_write_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
