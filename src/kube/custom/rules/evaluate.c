#include "kube/custom/rules/evaluate.h"

#include "kube/custom/rules/field_path.h"
#include "kube/custom/schema/correlate.h"
#include "kube/types/go_text.h"

#include <stdlib.h>

enum { MESSAGE_BYTES_MAX = 5 * 1024, FIRST_BYTES = 4096 };

/* A value on its way down. */
struct place {
    const struct rule_node *node;
    const struct json_node *value, *old; /* old: for oldSelf; NULL: none */
    /* The old value that decides about warnings, and that of the nearest value above which has one.
     * They differ from `old` in what they consider: see key_of. */
    struct correlated *current, *nearest;
    struct correlated pair; /* what `current` refers to */
    /* The path. */
    const struct place *up;
    struct slice name;
    size_t index;
    enum { PLACE_ROOT, PLACE_MEMBER, PLACE_ENTRY, PLACE_ITEM } kind;
};

/* One expression, with memory of its own. */
struct call {
    struct arena arena;
    struct cel_value variables[RULE_VARIABLES];
    struct cel_budget budget;
};

static void visit(struct rule_evaluation *e, struct place *at);

/* -- Reporting -- */

static enum status append_path(const struct place *at, struct buf *to)
{
    if (at->kind == PLACE_ROOT)
        return buf_append(to, at->name);
    TRY(append_path(at->up, to));
    switch (at->kind) {
    case PLACE_ITEM:
        return buf_append_format(to, "[%zu]", at->index);
    case PLACE_ENTRY:
        return buf_append_format(to, "[%.*s]", SLICE_ARGS(at->name));
    default:
        return buf_append_format(to, "%s%.*s", to->len ? "." : "", SLICE_ARGS(at->name));
    }
}

static enum status append_field(const struct place *at, const struct schema_rule *rule,
                                struct buf *to)
{
    AUTO(buf_fini) struct buf below = {0};
    char why[RULE_PATH_WHY_BYTES];
    TRY(append_path(at, to));
    if (rule && rule->field_path.len &&
        rule_field_path(at->node->schema, rule->field_path, &below, why) == ST_OK)
        TRY(buf_append_format(to, "%s%.*s", to->len ? "." : "", SLICE_ARGS(buf_slice(&below))));
    return to->len ? ST_OK : buf_append_text(to, "<nil>");
}

/* rule: adds its fieldPath; NULL: the field is the value itself. */
static void report(struct rule_evaluation *e, struct kube_field_errors *to, const struct place *at,
                   const struct schema_rule *rule, const char *reason, struct slice message)
{
    AUTO(buf_fini) struct buf field = {0};
    if (to->count >= KUBE_FIELD_ERRORS_MAX)
        return;
    if (append_field(at, rule, &field) != ST_OK)
        e->errors->no_memory = true;
    else
        kube_field_errors_add(to, reason, buf_slice(&field), "%.*s", SLICE_ARGS(message));
}

static const char *type_name(const struct schema *schema)
{
    static const char *const names[] = {
        [SCHEMA_STRING] = "string",   [SCHEMA_NUMBER] = "number", [SCHEMA_INTEGER] = "integer",
        [SCHEMA_BOOLEAN] = "boolean", [SCHEMA_ARRAY] = "array",   [SCHEMA_OBJECT] = "object",
    };
    bool has_one = !schema->int_or_string && schema->types < COUNT_OF(names);
    return has_one && names[schema->types] ? names[schema->types] : "";
}

/* How errors call a rule. */
static struct slice name_of(const struct schema_rule *rule)
{
    return go_trim(rule->message.len ? rule->message : rule->rule);
}

/* A rule could not be evaluated: an error whose value is the type of the schema. */
static void report_run(struct rule_evaluation *e, const struct place *at,
                       const struct schema_rule *rule, const char *before, struct slice error,
                       const char *after, struct slice named)
{
    AUTO(buf_fini) struct buf text = {0};
    if (buf_append_format(&text, "Invalid value: \"%s\": %s%.*s%s%.*s", type_name(at->node->schema),
                          before, SLICE_ARGS(error), after, SLICE_ARGS(named)) != ST_OK)
        e->errors->no_memory = true;
    else
        report(e, e->errors, at, rule, "FieldValueInvalid", buf_slice(&text));
}

static bool is_ratcheted(const struct rule_evaluation *e, const struct place *at)
{
    struct correlated *pair = at->current ? at->current : at->nearest;
    return e->warnings && pair && correlated_is_same(pair, e->arena);
}

/* A rule is not kept. */
static void report_failed(struct rule_evaluation *e, const struct place *at,
                          const struct rule_program *program, struct slice detail)
{
    static const struct {
        const char *reason, *text;
        bool has_value, has_detail;
    } kinds[] = {
        [SCHEMA_INVALID] = {"FieldValueInvalid", "Invalid value", true, true},
        [SCHEMA_FORBIDDEN] = {"FieldValueForbidden", "Forbidden", false, true},
        [SCHEMA_REQUIRED] = {"FieldValueRequired", "Required value", false, true},
        [SCHEMA_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value", true, false},
    };
    AUTO(buf_fini) struct buf text = {0};
    uint8_t types = at->node->schema->types;
    bool is_container = types == SCHEMA_OBJECT || types == SCHEMA_ARRAY;
    enum schema_reason reason = program->rule->reason;
    enum status status = buf_append_text(&text, kinds[reason].text);
    if (status == ST_OK && kinds[reason].has_value && !is_container) {
        status = buf_append_text(&text, ": ");
        if (status == ST_OK)
            status = go_value_append(at->value, e->arena, &text);
    }
    if (status == ST_OK && kinds[reason].has_detail && detail.len)
        status = buf_append_format(&text, ": %.*s", SLICE_ARGS(detail));
    if (status != ST_OK) {
        e->errors->no_memory = true;
        return;
    }
    bool warns = !program->uses_old && is_ratcheted(e, at);
    report(e, warns ? e->warnings : e->errors, at, program->rule, kinds[reason].reason,
           buf_slice(&text));
}

/* -- One expression -- */

static void call_begin(struct rule_evaluation *e, struct call *call, uint8_t first[FIRST_BYTES])
{
    *call = (struct call){.budget = {.cost_max = e->call_max}};
    arena_init(&call->arena, first, FIRST_BYTES, RULE_MEMORY_MAX);
    if (e->arena->account)
        arena_charge_borrowed(&call->arena, e->arena->account);
}

/* self and oldSelf; `optional`: oldSelf is an optional value. */
static void set_variables(const struct place *at, struct call *call, bool optional)
{
    struct cel_work work = {.arena = &call->arena, .steps_left = RULE_CALL_COST_MAX};
    const struct cel_shape *shape = at->node->shape;
    call->variables[RULE_SELF] = cel_shaped(&work, shape, cel_of_json(&work, at->value));
    struct cel_value *old = &call->variables[RULE_OLD_SELF];
    bool has_old = at->old && at->node->uses_old;
    if (has_old)
        *old = cel_shaped(&work, shape, cel_of_json(&work, at->old));
    else
        *old = CEL_FAIL("no such attribute(s): oldSelf");
    if (optional && at->node->uses_old)
        *old = has_old ? cel_of_some(&work, *old) : cel_of_none();
}

static struct cel_value call_run(struct call *call, const struct cel_program *program)
{
    return cel_eval(program, call->variables, &call->arena, &call->budget);
}

static bool begins(struct cel_value error, const char *with)
{
    return slice_has_prefix(cel_text(error), slice_from_text(with));
}

/* False: the call has cost more than is left. */
static bool pay(struct rule_evaluation *e, const struct call *call)
{
    if (call->budget.cost > (uint64_t)e->budget)
        return false;
    e->budget -= (int64_t)call->budget.cost;
    return true;
}

/* -- Messages -- */

/* Errors about the message are warnings where the failure of the rule itself is one. */
static void stop_message(struct rule_evaluation *e, const struct place *at,
                         const struct rule_program *program, const char *text, struct slice shown)
{
    AUTO(buf_fini) struct buf message = {0};
    bool warns = !program->uses_old && is_ratcheted(e, at);
    enum status status =
        buf_append_format(&message, "Invalid value: \"%s\": %s", type_name(at->node->schema), text);
    if (status == ST_OK && shown.len)
        status = go_quote(shown, &message);
    if (status != ST_OK)
        e->errors->no_memory = true;
    else
        report(e, warns ? e->warnings : e->errors, at, program->rule, "FieldValueInvalid",
               buf_slice(&message));
    e->budget = -1;
}

/* The text of messageExpression; empty: it failed, or it is not fit for a message. */
static struct slice eval_message(struct rule_evaluation *e, const struct place *at,
                                 const struct rule_program *program, struct call *call)
{
    /* As in Kubernetes, oldSelf is never optional here, whatever the rule says. */
    set_variables(at, call, false);
    struct cel_value value = call_run(call, program->message);
    if (call->budget.cost > (uint64_t)e->budget) {
        stop_message(e, at, program,
                     "messageExpression evaluation failed due to running out of cost budget, no "
                     "further validation rules will be run",
                     SLICE_EMPTY);
        return SLICE_EMPTY;
    }
    if (cel_is_error(value) && begins(value, "operation cancelled: actual cost limit exceeded")) {
        stop_message(e, at, program,
                     "no further validation rules will be run due to call cost exceeds limit for "
                     "messageExpression: ",
                     program->rule->message_expression);
        return SLICE_EMPTY;
    }
    (void)pay(e, call);
    if (value.kind != CEL_STRING)
        return SLICE_EMPTY;
    struct slice text = go_trim(cel_text(value));
    bool fits = text.len <= MESSAGE_BYTES_MAX && !(text.len && memchr(text.ptr, '\n', text.len));
    return fits ? text : SLICE_EMPTY;
}

static void fail(struct rule_evaluation *e, const struct place *at,
                 const struct rule_program *program)
{
    AUTO(buf_fini) struct buf text = {0};
    uint8_t first[FIRST_BYTES];
    struct call call;
    struct slice detail = SLICE_EMPTY;
    call_begin(e, &call, first);
    if (program->message)
        detail = eval_message(e, at, program, &call);
    if (!detail.len && program->rule->message.len)
        detail = go_trim(program->rule->message);
    else if (!detail.len) {
        if (buf_append_format(&text, "failed rule: %.*s", SLICE_ARGS(name_of(program->rule))) !=
            ST_OK)
            e->errors->no_memory = true;
        detail = buf_slice(&text);
    }
    if (e->budget >= 0)
        report_failed(e, at, program, detail);
    arena_fini(&call.arena);
}

/* -- The rules of a value -- */

static const char out_of_budget[] =
    "validation failed due to running out of cost budget, no further validation rules will be run";

static void stop(struct rule_evaluation *e, const struct place *at)
{
    report_run(e, at, NULL, out_of_budget, SLICE_EMPTY, "", SLICE_EMPTY);
    e->budget = -1;
}

static void report_error(struct rule_evaluation *e, const struct place *at,
                         const struct schema_rule *rule, struct cel_value error)
{
    if (begins(error, "no such overload")) {
        report_run(e, at, NULL, "'", cel_text(error),
                   "': call arguments did not match a supported operator, function or macro "
                   "signature for rule: ",
                   name_of(rule));
    } else if (begins(error, "operation cancelled: actual cost limit exceeded")) {
        report_run(e, at, NULL, "'", cel_text(error),
                   "': no further validation rules will be run due to call cost exceeds limit for "
                   "rule: ",
                   name_of(rule));
        e->budget = -1;
    } else {
        report_run(e, at, NULL, "", cel_text(error), " evaluating rule: ", name_of(rule));
    }
}

static void run_rule(struct rule_evaluation *e, const struct place *at,
                     const struct rule_program *program)
{
    const struct schema_rule *rule = program->rule;
    uint8_t first[FIRST_BYTES];
    struct call call;
    if (program->error.len) {
        report_run(e, at, NULL, "rule compile error: ", program->error, "", SLICE_EMPTY);
        return;
    }
    if (!program->condition || (program->uses_old && !at->old && !rule->optional_old))
        return;
    call_begin(e, &call, first);
    set_variables(at, &call, rule->optional_old);
    struct cel_value value = call_run(&call, program->condition);
    bool paid = pay(e, &call);
    if (!paid)
        stop(e, at);
    else if (cel_is_error(value))
        report_error(e, at, rule, value);
    arena_fini(&call.arena);
    if (paid && !cel_is_error(value) && !cel_is_true(value))
        fail(e, at, program);
}

static void run_rules(struct rule_evaluation *e, const struct place *at)
{
    const struct rule_programs *programs = at->node->programs;
    if (!programs || !programs->count)
        return;
    if (e->budget <= 0) {
        stop(e, at);
        return;
    }
    for (size_t i = 0; i < programs->count && e->budget >= 0; i++)
        run_rule(e, at, &programs->list[i]);
}

/* -- The walk -- */

/* Sets what decides about warnings below `up`. `old` is the value there that belongs to this one.
 */
static void correlate(struct place *at, const struct place *up, const struct schema *schema,
                      const struct json_node *old)
{
    at->current = NULL;
    at->nearest = up->nearest;
    if (!up->current)
        return;
    at->nearest = up->current;
    if (old && schema) {
        at->pair = (struct correlated){.schema = schema, .value = at->value, .old = old};
        at->current = &at->pair;
    }
}

/* An old value that is null counts as absent. */
static const struct json_node *not_null(const struct json_node *node)
{
    return json_node_is_set(node) ? node : NULL;
}

static void visit_member(struct rule_evaluation *e, const struct place *up,
                         const struct rule_node *node, const struct json_node *member,
                         bool is_entry)
{
    struct place at = {.node = node,
                       .value = member,
                       .up = up,
                       .name = member->key,
                       .kind = is_entry ? PLACE_ENTRY : PLACE_MEMBER};
    const struct json_node *old = up->old && up->old->type == JSON_TYPE_OBJECT
                                      ? json_node_member(up->old, member->key)
                                      : NULL;
    const struct json_node *before = up->current && up->current->old->type == JSON_TYPE_OBJECT
                                         ? json_node_member(up->current->old, member->key)
                                         : NULL;
    at.old = not_null(old);
    correlate(&at, up, schema_member(up->node->schema, member->key), before);
    /* The version and the kind of an object are those of the request. */
    if (up->current && !up->nearest &&
        (slice_is(member->key, "apiVersion") || slice_is(member->key, "kind")))
        at.current = at.nearest = NULL;
    visit(e, &at);
}

static int order_members(const void *a, const void *b)
{
    return slice_compare((*(const struct json_node *const *)a)->key,
                         (*(const struct json_node *const *)b)->key);
}

static void visit_entries(struct rule_evaluation *e, const struct place *at)
{
    const struct json_node **members =
        arena_calloc(e->arena, at->value->count + 1, sizeof(struct json_node *));
    size_t count = 0;
    if (!members) {
        e->errors->no_memory = true;
        return;
    }
    for (const struct json_node *member = at->value->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof(*members), order_members);
    for (size_t i = 0; i < count && e->budget >= 0; i++)
        visit_member(e, at, at->node->additional, members[i], true);
}

static void visit_properties(struct rule_evaluation *e, const struct place *at)
{
    for (uint32_t i = 0; i < at->node->property_count && e->budget >= 0; i++) {
        const struct rule_branch *branch = &at->node->properties[i];
        const struct json_node *member = json_node_member(at->value, branch->name);
        if (member)
            visit_member(e, at, branch->node, member, false);
    }
}

static void visit_items(struct rule_evaluation *e, const struct place *at)
{
    const struct schema *schema = at->node->schema;
    struct old_items olds, before;
    old_items_init(&olds, e->arena, schema, at->old);
    old_items_init(&before, e->arena, schema, at->current ? at->current->old : NULL);
    size_t index = 0;
    for (const struct json_node *item = at->value->first; item && e->budget >= 0;
         item = item->next, index++) {
        struct place below = {.node = at->node->items,
                              .value = item,
                              .up = at,
                              .index = index,
                              .kind = PLACE_ITEM,
                              .old = old_items_find(&olds, item)};
        correlate(&below, at, schema->items, old_items_find(&before, item));
        visit(e, &below);
    }
}

static void visit(struct rule_evaluation *e, struct place *at)
{
    if (at->value->type == JSON_TYPE_NULL || e->errors->count >= KUBE_FIELD_ERRORS_MAX)
        return;
    run_rules(e, at);
    if (e->budget < 0)
        return;
    if (at->value->type == JSON_TYPE_ARRAY && at->node->items)
        visit_items(e, at);
    if (at->value->type == JSON_TYPE_OBJECT && at->node->additional)
        visit_entries(e, at);
    if (at->value->type == JSON_TYPE_OBJECT && e->budget >= 0)
        visit_properties(e, at);
}

void rules_evaluate(const struct rule_node *root, const struct json_node *value,
                    const struct json_node *old, struct slice path,
                    struct rule_evaluation *evaluation)
{
    struct place at = {
        .node = root, .value = value, .old = not_null(old), .name = path, .kind = PLACE_ROOT};
    if (old) {
        at.pair = (struct correlated){.schema = root->schema, .value = value, .old = old};
        at.current = &at.pair;
    }
    visit(evaluation, &at);
}
