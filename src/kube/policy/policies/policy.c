#include "kube/policy/policies/policy.h"

#include "kube/policy/policies/index.h"
#include "kube/types/go_text.h"

#define WHY_LARGE "it takes more memory than this server allows for one policy"
#define WHY_NESTED "its variables use each other too deeply"

const char kube_policy_limits[] = "policies that take at most 8 MiB when they are compiled, and "
                                  "whose variables use each other at "
                                  "most 16 levels deep";

/* -- Texts -- */

static struct slice text_of(struct arena *arena, const struct json_node *from, const char *name)
{
    struct slice text = SLICE_EMPTY;
    (void)!json_node_text(json_node_named(from, name), arena, &text);
    return text;
}

static bool contains(struct slice text, const char *word)
{
    return text.len && memmem(text.ptr, text.len, word, strlen(word));
}

static unsigned uses_of(struct slice text)
{
    return (contains(text, "resourceVersion") ? KUBE_USES_VERSIONS : 0u) |
           (contains(text, "request") ? KUBE_USES_REQUEST : 0u) |
           (contains(text, "namespaceObject") ? KUBE_USES_NAMESPACE : 0u) |
           (contains(text, "authorizer") ? KUBE_USES_AUTHORIZER : 0u);
}

/* -- Expressions -- */

struct reading {
    struct arena *arena;
    struct kube_policy *policy;
    struct kube_expression_scope scope;
};

/* Room for the items of a list; NULL if it is empty, and without memory. */
static void *room_for(struct reading *r, const struct json_node *list, size_t item_bytes)
{
    return json_node_items(list) ? arena_calloc(r->arena, list->count, item_bytes) : NULL;
}

/* Whether there is room for another expression. */
static bool goes_on(struct reading *r)
{
    if (r->arena->held_bytes > KUBE_POLICY_BYTES_MAX)
        r->policy->unusable = WHY_LARGE;
    return !r->policy->unusable && !arena_ran_out(r->arena);
}

static void note(struct reading *r, const struct kube_expression *expression)
{
    r->policy->uses |= uses_of(expression->text);
    if (expression->nesting > KUBE_EXPRESSION_NESTING_MAX)
        r->policy->unusable = WHY_NESTED;
}

static void compile(struct reading *r, struct slice text, enum kube_expression_returns returns,
                    struct kube_expression *to)
{
    if (goes_on(r) && kube_expression_compile(&r->scope, text, returns, to) == ST_OK)
        note(r, to);
}

static void read_variables(struct reading *r, const struct json_node *list)
{
    for (const struct json_node *item = json_node_items(list); item && goes_on(r);
         item = item->next) {
        struct kube_expression expression;
        if (kube_expression_declare(&r->scope, text_of(r->arena, item, "name"),
                                    text_of(r->arena, item, "expression"), &expression) == ST_OK)
            note(r, &expression);
    }
    r->policy->variables = r->scope.variables;
    r->policy->variable_count = r->scope.count;
}

static void read_conditions(struct reading *r, const struct json_node *list)
{
    struct kube_policy *policy = r->policy;
    policy->conditions = room_for(r, list, sizeof(*policy->conditions));
    for (const struct json_node *item = json_node_items(list); item && policy->conditions;
         item = item->next)
        compile(r, text_of(r->arena, item, "expression"), KUBE_RETURNS_BOOL,
                &policy->conditions[policy->condition_count++]);
}

static enum kube_reason reason_of(const struct json_node *item)
{
    const struct json_node *reason = json_node_named(item, "reason");
    if (json_node_is_text(reason, "Unauthorized"))
        return KUBE_UNAUTHORIZED;
    if (json_node_is_text(reason, "Forbidden"))
        return KUBE_FORBIDDEN;
    return json_node_is_text(reason, "RequestEntityTooLarge") ? KUBE_TOO_LARGE : KUBE_INVALID;
}

static void read_validations(struct reading *r, const struct json_node *list)
{
    struct kube_policy *policy = r->policy;
    policy->validations = room_for(r, list, sizeof(*policy->validations));
    for (const struct json_node *item = json_node_items(list); item && policy->validations;
         item = item->next) {
        struct kube_validation *to = &policy->validations[policy->validation_count++];
        struct slice message = text_of(r->arena, item, "messageExpression");
        to->reason = reason_of(item);
        to->message = go_trim(text_of(r->arena, item, "message"));
        compile(r, text_of(r->arena, item, "expression"), KUBE_RETURNS_BOOL, &to->expression);
        to->has_message_expression = message.len;
        r->scope.has_authorizer = false;
        if (message.len)
            compile(r, message, KUBE_RETURNS_STRING, &to->message_expression);
        r->scope.has_authorizer = true;
    }
}

static void read_annotations(struct reading *r, const struct json_node *list)
{
    struct kube_policy *policy = r->policy;
    policy->annotations = room_for(r, list, sizeof(*policy->annotations));
    for (const struct json_node *item = json_node_items(list); item && policy->annotations;
         item = item->next) {
        struct kube_named_expression *to = &policy->annotations[policy->annotation_count++];
        to->name = text_of(r->arena, item, "key");
        compile(r, text_of(r->arena, item, "valueExpression"), KUBE_RETURNS_STRING_OR_NULL,
                &to->expression);
    }
}

static void read_mutations(struct reading *r, const struct json_node *list)
{
    struct kube_policy *policy = r->policy;
    policy->mutations = room_for(r, list, sizeof(*policy->mutations));
    r->scope.has_patches = true;
    for (const struct json_node *item = json_node_items(list); item && policy->mutations;
         item = item->next) {
        struct kube_mutation *to = &policy->mutations[policy->mutation_count++];
        to->patches = json_node_text_is(item, "patchType", "JSONPatch");
        const struct json_node *of =
            json_node_named(item, to->patches ? "jsonPatch" : "applyConfiguration");
        compile(r, text_of(r->arena, of, "expression"),
                to->patches ? KUBE_RETURNS_PATCHES : KUBE_RETURNS_OBJECT, &to->expression);
    }
    r->scope.has_patches = false;
}

void kube_policy_read_conditions(struct arena *arena, const struct json_node *list,
                                 struct kube_policy *policy)
{
    struct reading r = {
        .arena = arena,
        .policy = policy,
        .scope = {.arena = arena, .has_authorizer = true},
    };
    read_conditions(&r, list);
    (void)goes_on(&r);
}

/* -- The index -- */

static const struct kube_match *match_of(const struct kube_lookup_object *object)
{
    return &((const struct kube_policy *)object->data)->match;
}

static void index_add(struct version_map *index, const struct kube_lookup_object *object)
{
    (void)kube_policy_index_match(match_of(object), index, kube_policy_index_put, object);
}

static void index_remove(struct version_map *index, const struct kube_lookup_object *object)
{
    (void)kube_policy_index_match(match_of(object), index, kube_policy_index_remove, object);
}

static size_t index_bytes(const struct kube_lookup_object *object)
{
    return kube_policy_index_match(match_of(object), NULL, NULL, object);
}

/* -- Policies -- */

const void *kube_policy_read(struct arena *arena, const struct json_node *object)
{
    struct kube_policy *policy = arena_calloc(arena, 1, sizeof(*policy));
    const struct json_node *spec = kube_match_keep(arena, json_node_named(object, "spec"));
    if (!policy || !spec || spec->type != JSON_TYPE_OBJECT)
        return NULL;
    const struct json_node *params = json_node_named(spec, "paramKind");
    struct reading r = {
        .arena = arena,
        .policy = policy,
        .scope = {.arena = arena, .has_authorizer = true, .has_variables = true},
    };
    policy->name = kube_text_copy(arena, json_node_named(object, "metadata"), "name");
    policy->ignores_failures = json_node_text_is(spec, "failurePolicy", "Ignore");
    policy->has_params = r.scope.has_params = json_node_is_set(params);
    policy->param_version = text_of(arena, params, "apiVersion");
    policy->param_kind = text_of(arena, params, "kind");
    if (!kube_match_read(arena, json_node_named(spec, "matchConstraints"), &policy->match)) {
        /* It is not known what it matches: it concerns everything, and its failurePolicy decides.
         */
        policy->match = (struct kube_match){0};
        policy->unusable = WHY_LARGE;
    }
    read_variables(&r, json_node_named(spec, "variables"));
    read_conditions(&r, json_node_named(spec, "matchConditions"));
    read_validations(&r, json_node_named(spec, "validations"));
    read_annotations(&r, json_node_named(spec, "auditAnnotations"));
    policy->reinvoked = json_node_text_is(spec, "reinvocationPolicy", "IfNeeded");
    read_mutations(&r, json_node_named(spec, "mutations"));
    (void)goes_on(&r);
    return arena_ran_out(arena) ? NULL : policy;
}

const void *kube_policy_check(struct arena *arena, const struct json_node *object)
{
    const struct kube_policy *policy = kube_policy_read(arena, object);
    return policy && !policy->unusable ? policy : NULL;
}

const struct kube_lookup_kind kube_policy_kind = {
    .prefix = "/registry/validatingadmissionpolicies/",
    .read = kube_policy_read,
    .added = index_add,
    .removed = index_remove,
    .index_bytes = index_bytes,
};

const struct kube_lookup_kind kube_mutating_policy_kind = {
    .prefix = "/registry/mutatingadmissionpolicies/",
    .read = kube_policy_read,
    .added = index_add,
    .removed = index_remove,
    .index_bytes = index_bytes,
};
