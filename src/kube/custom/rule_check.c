#include "kube/custom/rule_check.h"

#include "cel/estimate/range.h"
#include "kube/custom/definition_report.h"
#include "kube/custom/rules/compile.h"
#include "kube/custom/rules/field_path.h"
#include "kube/custom/rules/types.h"
#include "kube/types/go_text.h"

#include <stdio.h>

#define RULES "x-kubernetes-validations"

/* -- Texts -- */

static struct slice text_of(struct definition_check *c, const struct json_node *node,
                            const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    struct slice text = SLICE_EMPTY;
    if (member && member->type == JSON_TYPE_STRING &&
        json_node_text(member, c->arena, &text) != ST_OK)
        c->errors->no_memory = true;
    return text;
}

static bool has_line_breaks(struct slice text)
{
    return text.len && (memchr(text.ptr, '\n', text.len) || memchr(text.ptr, '\r', text.len));
}

/* -- Paths of fields -- */

/* The schema of a property or, in a map, of a value; NULL: there is none. */
static const struct json_node *step_to(const struct json_node *schema, struct slice name)
{
    const struct json_node *fields = json_node_named(schema, "properties");
    const struct json_node *values = json_node_named(schema, "additionalProperties");
    if (fields && fields->type == JSON_TYPE_OBJECT)
        return json_node_member(fields, name);
    return values && values->type == JSON_TYPE_OBJECT ? values : NULL;
}

static enum status descend(void *ctx, struct slice name)
{
    const struct json_node **schema = ctx;
    *schema = step_to(*schema, name);
    return *schema ? ST_OK : ST_INVALID;
}

/* Whether a path such as .a['b'].c names a field below the schema. */
static bool leads_to_field(struct definition_check *c, const struct json_node *schema,
                           struct slice path)
{
    char why[RULE_PATH_WHY_BYTES];
    enum status status = rule_path_walk(path, descend, &schema, why);
    c->errors->no_memory |= status == ST_NOMEM;
    return status == ST_OK;
}

/* -- Each rule -- */

/* "" is the field of the rule itself. */
struct child {
    char text[80];
};

static struct child child_of(size_t at, const char *key)
{
    struct child child;
    snprintf(child.text, sizeof(child.text), RULES "[%zu].%s", at, key);
    return child;
}

static void check_texts(struct definition_check *c, const struct json_node *node,
                        const struct json_node *rule, size_t at)
{
    struct slice text = go_trim(text_of(c, rule, "rule"));
    struct slice message = text_of(c, rule, "message"), expression,
                 path = text_of(c, rule, "fieldPath");
    expression = text_of(c, rule, "messageExpression");
    const struct json_node *message_node = json_node_named(rule, "message"),
                           *reason = json_node_named(rule, "reason");
    if (!text.len)
        check_required(c, child_of(at, "rule").text, "rule is not specified");
    else if (message.len && !go_trim(message).len)
        check_invalid(c, child_of(at, "message").text, message_node,
                      "must be non-empty if specified");
    else if (has_line_breaks(go_trim(message)))
        check_invalid(c, child_of(at, "message").text, message_node,
                      "must not contain line breaks");
    else if (has_line_breaks(text) && !go_trim(message).len)
        check_required(c, child_of(at, "message").text,
                       "message must be specified if rule contains line breaks");
    if (expression.len && !go_trim(expression).len)
        check_required(c, child_of(at, "messageExpression").text,
                       "messageExpression must be non-empty if specified");
    if (reason && reason->type != JSON_TYPE_NULL &&
        !json_node_is_text(reason, "FieldValueInvalid") &&
        !json_node_is_text(reason, "FieldValueForbidden") &&
        !json_node_is_text(reason, "FieldValueRequired") &&
        !json_node_is_text(reason, "FieldValueDuplicate"))
        check_unsupported(c, child_of(at, "reason").text, reason,
                          "\"FieldValueDuplicate\", \"FieldValueForbidden\", "
                          "\"FieldValueInvalid\", \"FieldValueRequired\"");
    if (path.len && !go_trim(path).len)
        check_invalid(c, child_of(at, "fieldPath").text, json_node_named(rule, "fieldPath"),
                      "must be non-empty if specified");
    if (has_line_breaks(path))
        check_invalid(c, child_of(at, "fieldPath").text, json_node_named(rule, "fieldPath"),
                      "must not contain line breaks");
    if (path.len && !leads_to_field(c, node, path))
        check_invalid(c, child_of(at, "fieldPath").text, json_node_named(rule, "fieldPath"),
                      "must be a valid path");
}

void check_rule_texts(struct definition_check *c, const struct json_node *node)
{
    const struct json_node *list = check_array(node, RULES);
    size_t at = 0;
    for (const struct json_node *rule = list ? list->first : NULL; rule; rule = rule->next)
        check_texts(c, node, rule, at++);
}

/* -- Costs -- */

static void check_cost(struct definition_check *c, const char *child, const char *what,
                       uint64_t cost, uint64_t cost_max)
{
    char factor[32], why[400];
    double times = (double)cost / (double)cost_max;
    if (cost <= cost_max)
        return;
    if (times > 100.0)
        snprintf(factor, sizeof(factor), "more than 100x");
    else
        snprintf(factor, sizeof(factor), times < 1.5 ? "%fx" : "%.1fx", times);
    snprintf(why, sizeof(why),
             "%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, "
             "maxProperties, and maxLength where arrays, maps, and strings are declared)",
             what, factor);
    check_forbidden(c, child, why);
}

/* Adds a cost to the sum, and to the list of the dearest if it takes a hundredth of the limit. */
static void observe(struct definition_check *c, struct rule_costs *costs, const char *child,
                    uint64_t cost)
{
    AUTO(buf_fini) struct buf field = {0};
    costs->sum = cel_saturated_sum(costs->sum, cost);
    uint32_t at = costs->dear_count;
    while (at && costs->dear[at - 1].cost < cost)
        at--;
    if (cost < RULE_COST_SUM_MAX / 100 || at == RULE_DEAR_MAX)
        return;
    struct slice kept;
    if (buf_append(&field, buf_slice(&c->path)) != ST_OK ||
        buf_append_format(&field, ".%s", child) != ST_OK ||
        arena_dup(c->arena, buf_slice(&field), &kept) != ST_OK) {
        c->errors->no_memory = true;
        return;
    }
    costs->dear_count += costs->dear_count < RULE_DEAR_MAX;
    for (uint32_t i = costs->dear_count - 1; i > at; i--)
        costs->dear[i] = costs->dear[i - 1];
    costs->dear[at].cost = cost;
    costs->dear[at].field = kept;
}

static void report(struct definition_check *c, const char *child, struct slice text, uint64_t cost,
                   uint64_t cost_max, struct slice error)
{
    AUTO(buf_fini) struct buf field = {0};
    if (!c->reports)
        return;
    struct rule_report *made = arena_calloc(c->arena, 1, sizeof(*made));
    if (!made ||
        buf_append_format(&field, "%.*s%s%s", SLICE_ARGS(buf_slice(&c->path)), child[0] ? "." : "",
                          child) != ST_OK ||
        arena_dup(c->arena, buf_slice(&field), &made->field) != ST_OK ||
        arena_dup(c->arena, text, &made->text) != ST_OK ||
        arena_dup(c->arena, error, &made->error) != ST_OK) {
        c->errors->no_memory = true;
        return;
    }
    made->cost = cost;
    made->cost_max = cost_max;
    *(c->reports->last ? &c->reports->last->next : &c->reports->first) = made;
    c->reports->last = made;
}

/* -- Compiled rules -- */

struct rule_scope rule_scope_below(struct definition_check *c, const struct rule_scope *scope,
                                   const struct schema *schema, bool correlatable)
{
    struct rule_scope below = *scope;
    const struct schema *around = scope->schema;
    below.schema = schema;
    below.root = false;
    if (!around)
        return below;
    int64_t limit = 1;
    if (around->types == SCHEMA_ARRAY)
        limit = around->more->max_items;
    else if (around->types == SCHEMA_OBJECT && around->additional_given)
        limit = around->more->max_properties;
    below.unbounded |= limit < 0;
    if (limit >= 0)
        below.occurrences = cel_saturated_product(below.occurrences, (uint64_t)limit);
    if (!correlatable && !below.uncorrelatable.len &&
        arena_dup(c->arena, buf_slice(&c->path), &below.uncorrelatable) != ST_OK)
        c->errors->no_memory = true;
    return below;
}

static const char *as_text(struct definition_check *c, struct slice text)
{
    struct slice copy;
    uint8_t *bytes = arena_alloc(c->arena, text.len + 1);
    if (!bytes) {
        c->errors->no_memory = true;
        return "";
    }
    slice_copy(bytes, text);
    bytes[text.len] = '\0';
    copy = slice_of(bytes, text.len);
    return (const char *)copy.ptr;
}

/* Kubernetes shows the rule as a struct of Go. */
static const struct json_node *shown_rule(struct definition_check *c, const struct json_node *rule)
{
    static const struct {
        const char *name, *key, *absent;
    } members[] = {
        {"Rule", "rule", "\"\""},
        {"Message", "message", "\"\""},
        {"MessageExpression", "messageExpression", "\"\""},
        {"Reason", "reason", "null"},
        {"FieldPath", "fieldPath", "\"\""},
        {"OptionalOldSelf", "optionalOldSelf", "null"},
    };
    AUTO(buf_fini) struct buf json = {0};
    struct json_node *shown = NULL;
    struct slice kept;
    struct error error;
    enum status status = ST_OK;
    for (size_t i = 0; i < COUNT_OF(members) && status == ST_OK; i++) {
        const struct json_node *member = json_node_named(rule, members[i].key);
        status = buf_append_format(&json, "%s\"%s\":", i ? "," : "{", members[i].name);
        if (status == ST_OK)
            status =
                member ? json_tree_write(member, &json) : buf_append_text(&json, members[i].absent);
    }
    if (status != ST_OK || buf_append_text(&json, "}") != ST_OK ||
        arena_dup(c->arena, buf_slice(&json), &kept) != ST_OK ||
        json_tree_read(c->arena, kept, &shown, &error) != ST_OK)
        c->errors->no_memory = true;
    return shown;
}

static void check_program(struct definition_check *c, const struct json_node *rule, size_t at,
                          const struct rule_program *program, const struct rule_scope *scope)
{
    const struct child field = child_of(at, "rule"), message = child_of(at, "messageExpression");
    uint64_t times =
        scope->unbounded ? rule_occurrences_max(scope->schema->least_bytes) : scope->occurrences;
    uint64_t cost = cel_saturated_product(program->cost_max, times);
    const struct json_node *old = json_node_named(rule, "optionalOldSelf");
    if (!c->costs_unchecked)
        check_cost(c, field.text, "estimated rule cost", cost, RULE_COST_MAX);
    observe(c, scope->costs, field.text, cost);
    report(c, field.text, program->rule->rule, cost, RULE_COST_MAX, program->error);
    if (program->message || program->message_error.len)
        report(c, message.text, program->rule->message_expression, program->message_cost_max,
               RULE_COST_MAX, program->message_error);
    if (program->error.len)
        check_invalid(c, field.text, shown_rule(c, rule), as_text(c, program->error));
    if (program->message_error.len)
        check_invalid(c, message.text, shown_rule(c, rule), as_text(c, program->message_error));
    if (program->message) {
        if (!c->costs_unchecked)
            check_cost(c, message.text, "estimated messageExpression cost",
                       program->message_cost_max, RULE_COST_MAX);
        observe(c, scope->costs, message.text, program->message_cost_max);
    }
    if (program->uses_old && scope->uncorrelatable.len) {
        AUTO(buf_fini) struct buf why = {0};
        if (buf_append_format(&why,
                              "oldSelf cannot be used on the uncorrelatable portion of the "
                              "schema within %.*s",
                              SLICE_ARGS(scope->uncorrelatable)) != ST_OK)
            c->errors->no_memory = true;
        check_invalid(c, field.text, json_node_named(rule, "rule"), as_text(c, buf_slice(&why)));
    } else if (!program->uses_old && old && old->type != JSON_TYPE_NULL) {
        check_invalid(c, child_of(at, "optionalOldSelf").text, old,
                      "may not be set if oldSelf is not used in rule");
    }
}

static enum status compile_and_check(struct definition_check *c, struct arena *arena,
                                     const struct json_node *list, const struct rule_scope *scope)
{
    struct rule_programs programs;
    const struct cel_type *type;
    size_t at = 0;
    TRY(rule_type_new(arena, scope->schema, scope->root, &type));
    if (!type) {
        check_internal(c, RULES,
                       "internal error: failed to construct type information for "
                       "x-kubernetes-validations rules: unable to convert structural schema to "
                       "CEL declarations");
        return ST_OK;
    }
    TRY(rules_compile(arena, arena, scope->schema, type, &programs));
    for (const struct json_node *rule = list->first; rule && at < programs.count;
         rule = rule->next, at++)
        check_program(c, rule, at, &programs.list[at], scope);
    return ST_OK;
}

void check_rules(struct definition_check *c, const struct json_node *node,
                 const struct rule_scope *scope)
{
    const struct json_node *list = check_array(node, RULES);
    struct kube_field_errors *errors = c->errors;
    struct arena arena;
    if (!list || !list->count || !scope->schema)
        return;
    c->errors = &scope->costs->errors;
    arena_init(&arena, NULL, 0, c->arena->limit_bytes);
    if (compile_and_check(c, &arena, list, scope) != ST_OK)
        c->errors->no_memory = true;
    arena_fini(&arena);
    c->errors = errors;
}

void check_rule_costs(struct definition_check *c, struct rule_costs *costs)
{
    static const char dear[] = "contributed to estimated rule cost total exceeding cost limit for "
                               "entire OpenAPIv3 schema";
    struct kube_field_errors *errors = c->errors;
    struct kube_field_error *next = costs->errors.first;
    errors->no_memory |= costs->errors.no_memory;
    while (next && errors->count < KUBE_FIELD_ERRORS_MAX) {
        struct kube_field_error *error = next;
        next = error->next;
        error->next = NULL;
        *(errors->last ? &errors->last->next : &errors->first) = error;
        errors->last = error;
        errors->count++;
    }
    report(c, "", SLICE_EMPTY, costs->sum, RULE_COST_SUM_MAX, SLICE_EMPTY);
    if (costs->sum <= RULE_COST_SUM_MAX)
        return;
    for (uint32_t i = 0; i < costs->dear_count; i++)
        kube_field_errors_add(c->errors, "FieldValueForbidden", costs->dear[i].field,
                              "Forbidden: %s", dear);
    check_cost(c, "",
               "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
               costs->sum, RULE_COST_SUM_MAX);
}
