#include "kube/policy/policies/type_check.h"

#include "kube/custom/definition.h"
#include "kube/custom/rules/types.h"
#include "kube/policy/policies/policy.h"
#include "kube/types/expression/kind_types.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SCRATCH_BYTES_MAX = 4 * KUBE_POLICY_BYTES_MAX, /* for one kind */
    /* A validation has two expressions, whose warnings are next to each other. */
    OF_VALIDATION = 2,
};

/* -- The kinds that rules name -- */

struct names {
    struct slice *items; /* sorted */
    size_t count;
};

static int name_order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static bool has_any(struct slice text, const char *bytes)
{
    for (; *bytes; bytes++)
        if (memchr(text.ptr, *bytes, text.len))
            return true;
    return false;
}

/* The names without those that have one of these bytes; `all`: none is left if there is one. */
static struct names read_names(struct kube_type_check *c, const struct json_node *rule,
                               const char *member, const char *bytes, bool all)
{
    const struct json_node *list = json_node_named(rule, member), *item = json_node_items(list);
    struct names names = {0};
    struct slice text;
    if (item && list->count <= KUBE_CHECKED_NAMES_MAX)
        names.items = arena_calloc(c->arena, list->count, sizeof(*names.items));
    for (; item && names.items; item = item->next) {
        if (json_node_text(item, c->arena, &text) != ST_OK)
            continue;
        if (!has_any(text, bytes))
            names.items[names.count++] = text;
        else if (all)
            return (struct names){0};
    }
    if (names.count)
        qsort(names.items, names.count, sizeof(*names.items), name_order);
    return names;
}

static bool is_without_case(struct slice text, const char *name)
{
    return text.len == strlen(name) && strncasecmp((const char *)text.ptr, name, text.len) == 0;
}

/* Whether a rule names the kind so. The core group, whose name is empty, is any group here, as in
 * Kubernetes. */
static bool is_named(const struct kube_kind *kind, struct slice group, struct slice version,
                     struct slice resource)
{
    return (!group.len || slice_is(group, kind->group)) && slice_is(version, kind->version) &&
           (is_without_case(resource, kind->plural) || is_without_case(resource, kind->singular));
}

/* False: there is no room for further kinds. */
static bool add_kind(struct kube_type_check *c, const struct kube_kind *kind)
{
    for (size_t i = 0; i < c->kind_count; i++)
        if (c->kinds[i] == kind)
            return true;
    if (c->kind_count == KUBE_CHECKED_KINDS_MAX)
        return false;
    c->kinds[c->kind_count++] = kind;
    return true;
}

/* False: the rule names so many kinds that no further ones are looked for. */
static bool add_named(struct kube_type_check *c, struct kube_kinds *kinds, struct slice group,
                      struct slice version, struct slice resource, size_t *found)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    if (c->comparisons_left < count)
        return false;
    c->comparisons_left -= count;
    for (size_t i = 0; i < count; i++)
        if (is_named(rows[i], group, version, resource) &&
            (!add_kind(c, rows[i]) || ++*found == KUBE_CHECKED_KINDS_OF_RULE_MAX))
            return false;
    return true;
}

static bool add_rule(struct kube_type_check *c, struct kube_kinds *kinds,
                     const struct json_node *rule)
{
    struct names groups = read_names(c, rule, "apiGroups", "*", true);
    struct names versions = read_names(c, rule, "apiVersions", "*", true);
    struct names resources = read_names(c, rule, "resources", "*/", false);
    size_t found = 0;
    for (size_t g = 0; g < groups.count; g++)
        for (size_t v = 0; v < versions.count; v++)
            for (size_t r = 0; r < resources.count; r++)
                if (!add_named(c, kinds, groups.items[g], versions.items[v], resources.items[r],
                               &found))
                    return false;
    return true;
}

static int kind_order(const void *left, const void *right)
{
    const struct kube_kind *a = *(const struct kube_kind *const *)left;
    const struct kube_kind *b = *(const struct kube_kind *const *)right;
    int order = strcmp(a->group, b->group);
    if (!order)
        order = strcmp(a->version, b->version);
    return order ? order : strcmp(a->kind, b->kind);
}

static const struct kube_kind *find_param_kind(struct kube_type_check *c, struct kube_kinds *kinds)
{
    const struct json_node *of = json_node_path(c->policy, "spec.paramKind");
    char version[KUBE_API_VERSION_BYTES];
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    for (size_t i = 0; of && i < count; i++)
        if (json_node_text_is(of, "kind", rows[i]->kind) &&
            json_node_text_is(of, "apiVersion", kube_kind_api_version(rows[i], version)))
            return rows[i];
    return NULL;
}

static const struct json_node *validations_of(const struct kube_type_check *c)
{
    const struct json_node *list = json_node_path(c->policy, "spec.validations");
    return json_node_items(list) ? list : NULL;
}

void kube_type_check_begin(struct kube_type_check *c, struct kube_kinds *kinds)
{
    const struct json_node *rule =
        json_node_items_at(c->policy, "spec.matchConstraints.resourceRules");
    const struct json_node *validations = validations_of(c);
    c->comparisons_left = KUBE_CHECKED_COMPARISONS_MAX;
    while (rule && add_rule(c, kinds, rule))
        rule = rule->next;
    if (c->kind_count)
        qsort(c->kinds, c->kind_count, sizeof(c->kinds[0]), kind_order);
    c->param_kind = find_param_kind(c, kinds);
    if (validations)
        c->warnings =
            arena_calloc(c->arena, validations->count * OF_VALIDATION, sizeof(*c->warnings));
}

/* -- Checking -- */

/* The number keeps the names apart from those of other types, and the object's from those of a
 * parameter of the same kind. */
static enum status type_of(struct arena *arena, const struct kube_kind *kind, size_t number,
                           const struct cel_type **ret_type)
{
    static const struct schema any = {.types = SCHEMA_OBJECT, .least_bytes = 2};
    struct kube_custom *custom = kube_custom_of(kind);
    size_t room = strlen(kind->kind) + 24;
    char *name = arena_alloc(arena, room);
    if (!name)
        return ST_NOMEM;
    snprintf(name, room, "%s%zu", kind->kind, number);
    if (!custom)
        return kube_kind_type_new(arena, kube_type_of_kind(kind), name, ret_type);
    const struct schema *schema = kube_custom_schema(custom);
    return rule_type_published(arena, schema ? schema : &any, name, ret_type);
}

/* Kubernetes separates the errors of several kinds by empty lines. */
static bool add_error(struct kube_type_check *c, const struct kube_kind *kind, struct slice error,
                      struct buf *warning)
{
    size_t before = warning->len;
    if (error.len > KUBE_TYPE_WARNINGS_BYTES_MAX - c->warning_bytes)
        return true;
    bool added =
        buf_append_format(warning, "%s%s/%s, Kind=%s: %.*s\n", before ? "\n" : "", kind->group,
                          kind->version, kind->kind, SLICE_ARGS(error)) == ST_OK;
    c->warning_bytes =
        size_min(c->warning_bytes + warning->len - before, KUBE_TYPE_WARNINGS_BYTES_MAX);
    return added;
}

static enum status declare(struct kube_expression_scope *scope, const struct json_node *variable)
{
    struct slice name, text;
    struct kube_expression ignored;
    TRY(json_node_text(json_node_named(variable, "name"), scope->arena, &name));
    TRY(json_node_text(json_node_named(variable, "expression"), scope->arena, &text));
    return kube_expression_declare(scope, name, text, &ignored);
}

/* An expression that is not given has nothing that could be wrong. */
static bool check(struct kube_type_check *c, struct kube_expression_scope *scope, size_t i,
                  const struct json_node *node, struct buf *warning)
{
    struct kube_expression expression;
    struct slice text;
    if (json_node_text(node, scope->arena, &text) != ST_OK || !text.len)
        return !arena_ran_out(scope->arena);
    return kube_expression_compile(scope, text, KUBE_RETURNS_ANY, &expression) == ST_OK &&
           (!expression.error.len || add_error(c, c->kinds[i], expression.error, warning));
}

static bool check_all(struct kube_type_check *c, struct kube_expression_scope *scope, size_t i)
{
    const struct json_node *item = json_node_items_at(c->policy, "spec.variables");
    struct buf *warning = c->warnings;
    if (type_of(scope->arena, c->kinds[i], i + 1, &scope->object) != ST_OK ||
        (c->param_kind && type_of(scope->arena, c->param_kind, 0, &scope->params) != ST_OK))
        return false;
    for (; item; item = item->next)
        if (declare(scope, item) != ST_OK)
            return false;
    for (item = json_node_items(validations_of(c)); item; item = item->next) {
        if (!check(c, scope, i, json_node_named(item, "expression"), warning) ||
            !check(c, scope, i, json_node_named(item, "messageExpression"), warning + 1))
            return false;
        warning += OF_VALIDATION;
    }
    return true;
}

bool kube_type_check_kind(struct kube_type_check *c, size_t i)
{
    struct arena scratch;
    if (!c->warnings)
        return !arena_ran_out(c->arena);
    arena_init(&scratch, NULL, 0, SCRATCH_BYTES_MAX);
    struct kube_expression_scope scope = {
        .arena = &scratch,
        .has_params = json_node_is_set(json_node_path(c->policy, "spec.paramKind")),
        .has_authorizer = true,
        .has_variables = true,
        .checks_only = true,
    };
    /* Expressions that take more memory than that are not checked any further. */
    bool checked = check_all(c, &scope, i) || arena_ran_out(&scratch);
    arena_fini(&scratch);
    return checked && !arena_ran_out(c->arena);
}

void kube_type_check_fini(struct kube_type_check *c)
{
    const struct json_node *validations = c->warnings ? validations_of(c) : NULL;
    for (size_t i = 0; validations && i < validations->count * OF_VALIDATION; i++)
        buf_fini(&c->warnings[i]);
}

/* -- The status -- */

static bool has_warning(const struct kube_type_check *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c->warnings[i].len)
            return true;
    return false;
}

void kube_type_check_write(const struct kube_type_check *c, struct json_writer *w)
{
    const struct json_node *validations = c->warnings ? validations_of(c) : NULL;
    size_t count = validations ? validations->count * OF_VALIDATION : 0;
    json_begin_object(w);
    /* An empty list is omitted. */
    if (has_warning(c, count)) {
        json_member_array(w, "expressionWarnings");
        for (size_t i = 0; i < count; i++) {
            char field[64];
            if (!c->warnings[i].len)
                continue;
            snprintf(field, sizeof(field), "spec.validations[%zu].%s", i / OF_VALIDATION,
                     i % OF_VALIDATION ? "messageExpression" : "expression");
            json_begin_object(w);
            json_member_text(w, "fieldRef", field);
            json_member_string(w, "warning", buf_slice(&c->warnings[i]));
            json_end_object(w);
        }
        json_end_array(w);
    }
    json_end_object(w);
}
