/* Mutations of a custom resource in other versions than that of the request, which a webhook
 * converts: here the test is the webhook. tests/kube/same_policy_versions_test.py compares them
 * with a real kube-apiserver. */
#include "kube/policy/policies/mutate.h"

#include "kube/custom/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20, POLICIES_MAX = 4, CONVERSIONS_MAX = 16 };

#define VERSION(name, stores)                                                                   \
    "{'name':'" name "','served':true,'storage':" stores ",'schema':{'openAPIV3Schema':{'type'" \
    ":'object','x-kubernetes-preserve-unknown-fields':true}}}"
#define GATES                                                                                     \
    "{'kind':'CustomResourceDefinition','metadata':{'name':'gates.example.com'},'spec':{'group"   \
    "':'example.com','scope':'Namespaced','names':{'plural':'gates'},'conversion':{'strategy':"   \
    "'Webhook','webhook':{'conversionReviewVersions':['v1'],'clientConfig':{'url':"               \
    "'https://127.0.0.1/'}}},'versions':[" VERSION("v1", "true") "," VERSION(                     \
        "v2", "false") "," VERSION("v3", "false") "]},'status':{'acceptedNames':{'kind':'Gate','" \
                                                  "listKind':'GateList',"                         \
                                                  "'singular':'gate'},'conditions':[{'type':'"    \
                                                  "Established','status':'True'}]}}"
#define GATE(version, spec)                                                                     \
    "{'apiVersion':'example.com/" version "','kind':'Gate','metadata':{'name':'x','namespace':" \
    "'n'},'spec':" spec "}"

static struct schema_pool *pool;
static struct kube_definition *gates;

struct fixture {
    struct arena arena; /* memory of the test */
    struct arena answer, result;
    size_t answer_bytes;
    struct kube_status status;
    struct kube_mutating mutating;
    struct kube_permissions permissions;
    struct kube_policy_sights sights;
    const struct json_node *object;
    struct kube_lookup_object policies[POLICIES_MAX];
    size_t policy_count;
    const char *failing; /* a version to which nothing is converted */
    char conversions[CONVERSIONS_MAX][8];
    size_t conversion_count;
};

/* A JSON text with ' in place of ". */
static struct slice text_of(struct arena *arena, const char *text)
{
    struct slice copy;
    assert_int_equal(arena_dup(arena, slice_from_text(text), &copy), ST_OK);
    char *at = (char *)(uintptr_t)copy.ptr;
    for (size_t i = 0; i < copy.len; i++)
        at[i] = at[i] == '\'' ? '"' : at[i];
    return copy;
}

static struct json_node *tree(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, text_of(arena, text), &root, &error), ST_OK);
    return root;
}

static int set_up_gates(void **state)
{
    struct arena arena;
    (void)state;
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    pool = schema_pool_new();
    assert_int_equal(kube_definition_new(pool, text_of(&arena, GATES), 7, &gates), ST_OK);
    assert_true(gates->webhook.converts);
    arena_fini(&arena);
    return 0;
}

static int tear_down_gates(void **state)
{
    (void)state;
    kube_definition_unref(gates);
    schema_pool_free(pool);
    return 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, NULL, 0, ARENA_BYTES);
    f->answer_bytes = ARENA_BYTES;
    f->object = tree(&f->arena, GATE("v1", "{'a':'b'}"));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->answer);
    arena_fini(&f->result);
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static const struct kube_kind *kind_of(const char *version)
{
    char name[32];
    snprintf(name, sizeof(name), "example.com/%s", version);
    const struct kube_custom *custom = kube_definition_version(gates, slice_from_text(name));
    assert_non_null(custom);
    return &custom->kind;
}

/* A policy whose rule names a version. */
static void add_policy(struct fixture *f, const char *version, const char *members)
{
    char text[1024], *name = arena_alloc(&f->arena, 8);
    size_t i = f->policy_count++;
    assert_true(i < POLICIES_MAX && name);
    snprintf(name, 8, "p%zu", i);
    snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'%s'},'spec':{'matchConstraints':{'resourceRules':[{'apiGroups':"
        "['example.com'],'apiVersions':['%s'],'operations':['*'],'resources':['gates']}]},%s}}",
        name, version, members);
    f->policies[i] = (struct kube_lookup_object){
        .name = slice_from_text(name),
        .data = kube_policy_read(&f->arena, tree(&f->arena, text)),
    };
    assert_non_null(f->policies[i].data);
}

/* The object as JSON; the webhook changes its version, and adds it to spec.seen. */
static struct slice converted(struct fixture *f, struct slice json, const struct kube_kind *to)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *object;
    struct error error;
    char version[KUBE_API_VERSION_BYTES], seen[256];
    struct slice made;
    assert_int_equal(json_tree_read(&f->arena, json, &object, &error), ST_OK);
    struct json_node *spec = json_node_named(object, "spec"), *old = json_node_named(spec, "seen");
    snprintf(seen, sizeof(seen), "%.*s%s", old ? (int)old->text.len : 0,
             old ? (const char *)old->text.ptr : "", to->version);
    struct slice copy;
    assert_int_equal(arena_dup(&f->arena, slice_from_text(seen), &copy), ST_OK);
    assert_int_equal(json_node_put(&f->arena, spec, "seen", json_node_new_text(&f->arena, copy)),
                     ST_OK);
    assert_int_equal(
        json_node_put(
            &f->arena, object, "apiVersion",
            json_node_new_text(&f->arena, slice_from_text(kube_kind_api_version(to, version)))),
        ST_OK);
    assert_int_equal(json_tree_write(object, &text), ST_OK);
    assert_int_equal(arena_dup(&f->arena, buf_slice(&text), &made), ST_OK);
    return made;
}

/* Does what the evaluation waits for. */
static void answer(struct fixture *f)
{
    struct kube_permission *asked;
    while ((asked = kube_permissions_next(&f->permissions)) != NULL)
        kube_permission_answer(&f->permissions, asked, true, "");
    if (!kube_policy_sights_wanted(&f->sights))
        return;
    struct kube_policy_moved *moved = f->sights.leaving;
    const struct kube_kind *to = moved ? moved->to : f->sights.wanted;
    bool fails = f->failing && strcmp(f->failing, to->version) == 0;
    struct slice error = fails ? SLICE_LITERAL("cannot do that") : SLICE_EMPTY;
    AUTO(buf_fini) struct buf text = {0};
    assert_non_null(to);
    assert_true(f->conversion_count < CONVERSIONS_MAX);
    snprintf(f->conversions[f->conversion_count++], sizeof(f->conversions[0]), "%s%s",
             moved ? "+" : "", to->version);
    if (moved) {
        moved->error = error;
        if (!fails)
            moved->after = converted(f, moved->before, to);
        moved->next = f->sights.moved;
        f->sights.moved = moved;
        f->sights.leaving = NULL;
        return;
    }
    struct kube_policy_sight *items = arena_calloc(&f->arena, f->sights.count + 1, sizeof(*items));
    assert_non_null(items);
    if (f->sights.count)
        memcpy(items, f->sights.items, f->sights.count * sizeof(*items));
    assert_int_equal(json_tree_write(f->object, &text), ST_OK);
    items[f->sights.count] = (struct kube_policy_sight){.kind = to, .error = error};
    if (!fails)
        items[f->sights.count].object = converted(f, buf_slice(&text), to);
    f->sights = (struct kube_policy_sights){
        .items = items, .count = f->sights.count + 1, .moved = f->sights.moved};
}

static enum kube_policy_verdict run_once(struct fixture *f, const struct json_node **ret_result)
{
    const struct json_node *params[] = {NULL};
    const struct kube_kind *others[] = {kind_of("v2"), kind_of("v3")};
    struct kube_lookup_object binding = {.name = SLICE_LITERAL("b")};
    struct kube_policy_case cases[POLICIES_MAX];
    binding.data = kube_policy_binding_read(
        &f->arena, tree(&f->arena, "{'metadata':{'name':'b'},'spec':{'policyName':'p'}}"));
    assert_non_null(binding.data);
    for (size_t i = 0; i < f->policy_count; i++)
        cases[i] = (struct kube_policy_case){.policy_object = &f->policies[i],
                                             .binding_object = &binding,
                                             .params = params,
                                             .param_count = 1};
    struct kube_policy_write write = {
        .cases = cases,
        .case_count = f->policy_count,
        .request = {.kind = kind_of("v1"),
                    .operation = KUBE_MATCH_CREATE,
                    .namespace = SLICE_LITERAL("n"),
                    .name = SLICE_LITERAL("x"),
                    .equivalents = others,
                    .equivalent_count = 2},
        .object_kind = {"example.com", "v1", "Gate"},
        .object = f->object,
        .cost_max = KUBE_MUTATION_COST_MAX,
        .permissions = &f->permissions,
        .sights = &f->sights,
        .arena = &f->answer,
        .status = &f->status,
    };
    f->status = (struct kube_status){0};
    return kube_policy_mutate(&write, &f->mutating, ret_result);
}

/* The verdict when everything that it needs is converted. */
static enum kube_policy_verdict run(struct fixture *f, const struct json_node **ret_result)
{
    enum kube_policy_verdict verdict;
    arena_fini(&f->answer);
    arena_fini(&f->result);
    arena_init(&f->answer, NULL, 0, f->answer_bytes);
    arena_init(&f->result, NULL, 0, f->answer_bytes);
    f->mutating.arena = &f->result;
    f->sights = (struct kube_policy_sights){0};
    f->conversion_count = 0;
    while ((verdict = run_once(f, ret_result)) == KUBE_POLICY_ASKS)
        answer(f);
    return verdict;
}

/* What was made, and which conversions it took: "v2", and with a plus of what was mutated. */
static void assert_made(struct fixture *f, const char *spec, const char *conversions)
{
    AUTO(buf_fini) struct buf text = {0}, taken = {0};
    const struct json_node *result;
    assert_int_equal(run(f, &result), KUBE_POLICY_ADMITS);
    assert_true(json_node_text_is(result, "apiVersion", "example.com/v1"));
    assert_int_equal(json_tree_write(json_node_named(result, "spec"), &text), ST_OK);
    struct slice wanted = text_of(&f->arena, spec);
    if (!slice_equal(buf_slice(&text), wanted))
        fail_msg("%.*s", SLICE_ARGS(buf_slice(&text)));
    for (size_t i = 0; i < f->conversion_count; i++)
        assert_int_equal(buf_append_text(&taken, f->conversions[i]), ST_OK);
    if (!slice_is(buf_slice(&taken), conversions))
        fail_msg("%.*s", SLICE_ARGS(buf_slice(&taken)));
}

#define ADD(path, value)                                                                   \
    "{'patchType':'JSONPatch','jsonPatch':{'expression':'[JSONPatch{op: \\'add\\', path: " \
    "\\'/spec/" path "\\', value: " value "}]'}}"
#define MUTATE(mutations) "'mutations':[" mutations "]"

static void mutations_in_one_version_take_two_conversions(void **state)
{
    struct fixture *f = *state;
    add_policy(f, "v2", MUTATE(ADD("c", "object.apiVersion") "," ADD("d", "object.spec.c")));
    add_policy(f, "v2", MUTATE(ADD("e", "object.spec.d + object.spec.seen")));
    assert_made(f,
                "{'a':'b','seen':'v2v1','c':'example.com/v2','d':'example.com/v2','e':"
                "'example.com/v2v2'}",
                "v2+v1");
    assert_true(f->mutating.mutated);
}

static void an_object_that_is_not_mutated_is_not_converted_back(void **state)
{
    struct fixture *f = *state;
    const struct json_node *result;
    add_policy(f, "v2",
               "'matchConditions':[{'name':'c','expression':'object.spec.a == \\'x\\''}]," MUTATE(
                   ADD("c", "1")));
    assert_int_equal(run(f, &result), KUBE_POLICY_ADMITS);
    assert_ptr_equal(result, f->object);
    assert_int_equal(f->conversion_count, 1);
    assert_false(f->mutating.mutated);
}

static void policies_of_several_versions_see_what_the_others_have_made(void **state)
{
    struct fixture *f = *state;
    add_policy(f, "v1", MUTATE(ADD("one", "object.apiVersion")));
    add_policy(f, "v2", MUTATE(ADD("two", "object.spec.one + object.spec.seen")));
    add_policy(f, "v3", MUTATE(ADD("three", "object.spec.two + object.spec.seen")));
    add_policy(f, "v1", MUTATE(ADD("four", "object.apiVersion + object.spec.seen")));
    assert_made(f,
                "{'a':'b','one':'example.com/v1','seen':'v2v3v1','two':'example.com/v1v2','three':"
                "'example.com/v1v2v2v3','four':'example.com/v1v2v3v1'}",
                "v2v3+v2+v3+v1");
}

/* Neither is one that needs no webhook. */
static void an_object_that_is_not_mutated_stays_what_it_was(void **state)
{
    struct fixture *f = *state;
    const struct json_node *result;
    add_policy(f, "v2",
               "'matchConditions':[{'name':'c','expression':'false'}]," MUTATE(ADD("c", "1")));
    gates->webhook.converts = false;
    enum kube_policy_verdict verdict = run(f, &result);
    gates->webhook.converts = true;
    assert_int_equal(verdict, KUBE_POLICY_ADMITS);
    assert_ptr_equal(result, f->object);
    assert_int_equal(f->conversion_count, 0);
}

/* The objects of a version were converted before anything was mutated. */
static void a_version_that_changes_nothing_is_left_without_a_conversion(void **state)
{
    struct fixture *f = *state;
    add_policy(f, "v2",
               "'matchConditions':[{'name':'c','expression':'false'}]," MUTATE(ADD("c", "1")));
    add_policy(f, "v3", MUTATE(ADD("c", "object.spec.seen")));
    assert_made(f, "{'a':'b','seen':'v3v1','c':'v3'}", "v2v3+v1");
}

static void the_second_pass_converts_for_policies_that_run_again(void **state)
{
    struct fixture *f = *state;
    add_policy(f, "v2", MUTATE(ADD("c", "1")));
    add_policy(f, "v3", "'reinvocationPolicy':'IfNeeded'," MUTATE(ADD("d", "object.spec.seen")));
    assert_made(f, "{'a':'b','seen':'v2v3v1','c':1,'d':'v2v3'}", "v2v3+v3+v1");
    f->mutating.again = true;
    /* Its keys were in the memory of the first pass. */
    struct slice *keys = f->mutating.keys, key;
    assert_int_equal(f->mutating.key_count, 1);
    assert_int_equal(arena_dup(&f->arena, keys[0], &key), ST_OK);
    f->mutating.keys = &key;
    assert_made(f, "{'a':'b','seen':'v3v1','d':'v3'}", "v3+v1");
}

/* What was made while the answer was not known is not what is converted. */
static void questions_are_answered_before_the_object_is_converted(void **state)
{
    struct fixture *f = *state;
    kube_permissions_init(&f->permissions, &f->arena);
    add_policy(f, "v2",
               "'failurePolicy':'Ignore'," MUTATE(
                   ADD("c", "1") "," ADD("d", "authorizer.group(\\'\\').resource(\\'pods\\').check("
                                              "\\'get\\').allowed()")));
    assert_made(f, "{'a':'b','seen':'v2v1','c':1,'d':true}", "v2+v1");
    assert_int_equal(f->permissions.count, 1);
}

static void what_a_webhook_does_not_convert_is_an_error(void **state)
{
    struct fixture *f = *state;
    const struct json_node *result;
    add_policy(f, "v2", MUTATE(ADD("c", "1")));
    f->failing = "v2";
    assert_int_equal(run(f, &result), KUBE_POLICY_DENIES);
    assert_int_equal(kube_status_code(&f->status), 403);
    assert_true(slice_is(f->status.long_message, "policy \"p0\" denied request: failed to "
                                                 "configure policy: cannot do that"));
    f->failing = "v1";
    assert_int_equal(run(f, &result), KUBE_POLICY_DENIES);
    assert_int_equal(kube_status_code(&f->status), 500);
    assert_true(slice_is(f->status.long_message,
                         "Internal error occurred: failed to convert object: cannot do that"));
}

static void without_memory_a_write_is_refused(void **state)
{
    struct fixture *f = *state;
    enum kube_policy_verdict verdict = KUBE_POLICY_DENIES;
    const struct json_node *result;
    add_policy(f, "v2", MUTATE(ADD("c", "1")));
    add_policy(f, "v3", MUTATE(ADD("d", "1")));
    for (f->answer_bytes = 0; verdict != KUBE_POLICY_ADMITS; f->answer_bytes += 256) {
        assert_true(f->answer_bytes < 1 << 20);
        verdict = run(f, &result);
        if (verdict != KUBE_POLICY_ADMITS)
            assert_true(kube_code_is_no_memory(kube_status_code(&f->status)));
    }
    assert_true(json_node_path(result, "spec.c") && json_node_path(result, "spec.d"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(mutations_in_one_version_take_two_conversions),
        TEST(an_object_that_is_not_mutated_is_not_converted_back),
        TEST(an_object_that_is_not_mutated_stays_what_it_was),
        TEST(policies_of_several_versions_see_what_the_others_have_made),
        TEST(a_version_that_changes_nothing_is_left_without_a_conversion),
        TEST(the_second_pass_converts_for_policies_that_run_again),
        TEST(questions_are_answered_before_the_object_is_converted),
        TEST(what_a_webhook_does_not_convert_is_an_error),
        TEST(without_memory_a_write_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up_gates, tear_down_gates);
}
