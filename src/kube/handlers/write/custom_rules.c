#include "kube/handlers/write/custom_rules.h"

#include "kube/call/call.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/respond.h"
#include "kube/custom/rules/evaluate.h"
#include "kube/merge/patch/print.h"
#include "kube/types/object/meta.h"

#include <stdio.h>

bool kube_custom_fail_schema(struct kube_call *call)
{
    return kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                     "Internal error occurred: the schema of %s.%s cannot be used",
                     call->kind->plural, call->kind->group);
}

/* The schema that applies to an object: NULL for a built-in kind, and for an object of a kind other
 * than that of the path (a Scale). False: call->status says why. */
static bool find_schema(struct kube_call *call, struct json_node *object,
                        const struct schema **ret_schema)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    *ret_schema = NULL;
    if (!custom || kube_conversion_is_foreign(call->kind, object))
        return true;
    *ret_schema = kube_custom_schema(custom);
    return *ret_schema || kube_custom_fail_schema(call);
}

bool kube_custom_prune(struct kube_call *call, struct json_node *object, struct buf *unknown)
{
    const struct schema *schema;
    if (!find_schema(call, object, &schema))
        return false;
    if (!schema)
        return true;
    enum status status = kube_meta_append_unknown(object, unknown);
    if (status == ST_OK)
        status = schema_prune(schema, object, true, unknown);
    return status == ST_OK || kube_fail_engine(&call->status, ST_NOMEM);
}

enum kube_stepped kube_custom_default(struct kube_change *change)
{
    const struct schema *schema;
    if (!find_schema(change->call, change->object, &schema))
        return KUBE_STEP_FAIL;
    return !schema || schema_default(change->arena, schema, change->object) == ST_OK ||
           kube_fail_engine(&change->call->status, ST_NOMEM);
}

enum kube_stepped kube_custom_default_again(struct kube_change *change)
{
    return !(change->call->kind->flags & KUBE_HAS_STATUS) ? KUBE_STEP_NEXT
                                                          : kube_custom_default(change);
}

/* A field that the Scale subresource reads must be a number. */
static void check_replicas(const struct json_node *object, const char *path,
                           struct kube_field_errors *faults)
{
    char field[512];
    int64_t replicas;
    const struct json_node *node = object;
    const char *rest = path;
    snprintf(field, sizeof(field), ".%s", path ? path : "");
    while (rest && node && node->type == JSON_TYPE_OBJECT) {
        const char *dot = strchr(rest, '.');
        node = json_node_member(node, slice_of(rest, dot ? (size_t)(dot - rest) : strlen(rest)));
        rest = dot ? dot + 1 : NULL;
    }
    if (!path || !node || (rest && node->type == JSON_TYPE_NULL))
        return;
    if (rest || !json_node_int(node, &replicas)) {
        char shown[PRINT_BYTES];
        kube_field_errors_add(
            faults, "FieldValueInvalid", slice_from_text(field),
            "Invalid value: 0: %s accessor error: %s is of the type %s, expected %s", field,
            print_go(node, shown), print_go_type(node), rest ? "map[string]interface{}" : "int64");
        return;
    }
    if (replicas < 0)
        kube_field_errors_add(faults, "FieldValueInvalid", slice_from_text(field),
                              "Invalid value: %lld: should be a non-negative integer",
                              (long long)replicas);
    else if (replicas > INT32_MAX)
        kube_field_errors_add(faults, "FieldValueInvalid", slice_from_text(field),
                              "Invalid value: %lld: should be less than or equal to 2147483647",
                              (long long)replicas);
}

/* Lists without duplicates stay so; an object that has some anywhere may have others. */
static void check_lists(const struct schema *schema, struct arena *arena,
                        const struct json_node *object, const struct json_node *old,
                        struct kube_field_errors *faults)
{
    struct kube_field_errors found = {.arena = faults->arena}, before = {.arena = arena};
    schema_validate_lists(schema, object, arena, &found);
    if (found.count && old)
        schema_validate_lists(schema, old, arena, &before);
    if (!before.count)
        kube_field_errors_join(faults, &found);
    faults->no_memory |= found.no_memory || before.no_memory;
}

static void check_all(const struct kube_custom *custom, const struct schema *schema,
                      struct arena *arena, const struct json_node *object,
                      const struct json_node *old, struct kube_field_errors *faults)
{
    schema_validate(schema, object, old, SLICE_EMPTY, arena, faults);
    check_replicas(object, custom->replicas_path, faults);
    check_replicas(object, custom->status_replicas_path, faults);
    schema_validate_embedded(schema, object, arena, faults);
    check_lists(schema, arena, object, old, faults);
}

/* Only status is written: errors elsewhere are not those of this request. */
static void check_status(const struct kube_custom *custom, const struct schema *schema,
                         struct arena *arena, const struct json_node *object,
                         const struct json_node *old, struct kube_field_errors *faults)
{
    const struct schema *of = schema_property(schema, SLICE_LITERAL("status"));
    const struct json_node *status = json_node_named(object, "status");
    if (of && status)
        schema_validate(of, status, old ? json_node_named(old, "status") : NULL,
                        SLICE_LITERAL("status"), arena, faults);
    check_replicas(object, custom->status_replicas_path, faults);
    check_lists(schema, arena, object, old, faults);
}

/* Finalizers of custom resources may have any name; adding one without a domain gives a warning. */
static void warn_of_finalizers(struct kube_call *call, const struct json_node *object,
                               const struct json_node *old)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion"};
    const struct json_node *list = json_node_path(object, "metadata.finalizers");
    const struct json_node *had = json_node_path(old, "metadata.finalizers");
    char text[512];
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next) {
        const struct json_node *same = had ? had->first : NULL;
        bool fine = !item->text.len || memchr(item->text.ptr, '/', item->text.len);
        for (size_t i = 0; i < COUNT_OF(standard); i++)
            fine = fine || json_node_is_text(item, standard[i]);
        while (same && !json_node_equal(same, item))
            same = same->next;
        if (fine || same)
            continue;
        snprintf(text, sizeof(text),
                 "metadata.finalizers: \"%.*s\": prefer a domain-qualified finalizer name%s to "
                 "avoid accidental conflicts with other finalizer writers",
                 (int)size_min(item->text.len, 128), (const char *)item->text.ptr,
                 memchr(item->text.ptr, '.', item->text.len) ? " including a path (/)" : "");
        kube_call_warn(call, slice_from_text(text));
    }
}

/* -- Rules in CEL -- */

/* What the rules of an object may cost on the thread of the API, which takes about a millisecond;
 * those that cost more begin again on the worker. */
enum { LOOP_COST_MAX = 20000 };

/* Errors after which Kubernetes does not evaluate rules, because values may lack their types. */
static bool blocks_rules(const struct kube_status *metadata, const struct kube_field_errors *faults)
{
    static const char *const reasons[] = {"FieldValueRequired", "FieldValueNotSupported",
                                          "FieldValueTooLong", "FieldValueTooMany",
                                          "FieldValueTypeInvalid"};
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        for (size_t k = 0; k < metadata->cause_count; k++)
            if (strcmp(metadata->causes[k].reason, reasons[i]) == 0)
                return true;
        for (const struct kube_field_error *fault = faults->first; fault; fault = fault->next)
            if (strcmp(fault->reason, reasons[i]) == 0)
                return true;
    }
    return false;
}

static void warn_of_rules(struct kube_call *call, const struct kube_field_errors *warnings)
{
    for (const struct kube_field_error *fault = warnings->first; fault; fault = fault->next) {
        AUTO(buf_fini) struct buf text = {0};
        /* Without memory the warning is dropped. */
        if (buf_append_format(&text, "%.*s: %.*s", SLICE_ARGS(fault->field),
                              SLICE_ARGS(fault->message)) == ST_OK)
            kube_call_warn(call, buf_slice(&text));
    }
}

/* False: the step takes too long for this thread. */
static bool check_rules(struct kube_change *change, struct kube_custom *custom,
                        struct kube_field_errors *faults)
{
    struct kube_call *call = change->call;
    bool limited = kube_call_can_leave(call);
    struct kube_field_errors found = {.arena = &call->arena}, warnings = {.arena = change->arena};
    const struct rule_node *rules;
    if (limited && !pool_schema_rules_ready(custom->schema))
        return false;
    if (pool_schema_rules(custom->schema, &rules) != ST_OK) {
        faults->no_memory = true;
        return true;
    }
    if (!rules)
        return true;
    if (blocks_rules(&call->status, faults)) {
        kube_field_errors_add(faults, "FieldValueInvalid", SLICE_LITERAL("<nil>"),
                              "Invalid value: null: some validation rules were not checked because "
                              "the object was invalid; correct the existing errors to complete "
                              "validation");
        return true;
    }
    struct rule_evaluation evaluation = {
        .arena = change->arena,
        .errors = limited ? &found : faults,
        .warnings = change->old ? &warnings : NULL,
        .call_max = limited ? LOOP_COST_MAX : RULE_CALL_COST_MAX,
        .budget = limited ? LOOP_COST_MAX : RULE_WRITE_COST_MAX,
    };
    rules_evaluate(rules, change->object, change->old, SLICE_EMPTY, &evaluation);
    if (limited && evaluation.budget < 0)
        return false;
    if (limited)
        kube_field_errors_join(faults, &found);
    warn_of_rules(call, &warnings);
    return true;
}

enum kube_stepped kube_custom_validate(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct json_node *object = change->object, *old = change->old;
    struct kube_custom *custom = kube_custom_of(call->kind);
    struct kube_field_errors faults = {.arena = &call->arena};
    const struct schema *schema = kube_custom_schema(custom);
    if (!schema)
        return kube_custom_fail_schema(call);
    bool status = slice_is(call->path.subresource, "status");
    (status ? check_status : check_all)(custom, schema, change->arena, object, old, &faults);
    if (!check_rules(change, custom, &faults))
        return KUBE_STEP_LONG;
    if (!faults.count && !faults.no_memory && !call->status.cause_count) {
        warn_of_finalizers(call, object, old);
        return KUBE_STEP_NEXT;
    }
    return kube_fail_field_errors(&call->status, &faults, slice_from_text(call->kind->group),
                                  slice_from_text(call->kind->kind), change->name);
}

void kube_custom_fail_changed(struct kube_call *call)
{
    kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS,
              "the definition of %s.%s has changed meanwhile, please try again", call->kind->plural,
              call->kind->group);
    call->status.retry_after_s = 1;
    kube_call_fail(call);
}
