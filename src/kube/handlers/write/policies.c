#include "kube/handlers/write/policies.h"

#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/respond.h"
#include "kube/call/webhook_metrics.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/apply.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/handlers/write/scale.h"
#include "kube/handlers/write/update.h"
#include "kube/merge/apply/created.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/policies/inputs.h"
#include "kube/types/go_text.h"

enum { FIRST_COST_MAX = 5000 }; /* evaluated on the thread of the API: about 0.5 ms */

/* -- Deciding -- */

static const struct kube_policy_object_kind scale_kind = {"autoscaling", "v1", "Scale"};

static void warn(void *ctx, struct slice warning)
{
    kube_call_warn(ctx, warning);
}

static bool put(struct arena *arena, struct json_node *to, const char *name, struct slice text)
{
    return !text.len || json_node_put(arena, to, name, json_node_new_text(arena, text)) == ST_OK;
}

static bool put_dry_run(struct arena *arena, struct json_node *options)
{
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    struct json_node *item = json_node_new_text(arena, SLICE_LITERAL("All"));
    return list && item && json_node_insert(list, NULL, item) == ST_OK &&
           json_node_put(arena, options, "dryRun", list) == ST_OK;
}

/* The options as Kubernetes shows them: those of a patch are those of an update or a create. */
static bool make_options(const struct kube_change *change, unsigned operation, struct arena *arena,
                         const struct json_node **ret_options)
{
    const struct kube_call *call = change->call;
    const char *kind = operation == KUBE_MATCH_CREATE ? "CreateOptions" : "UpdateOptions";
    *ret_options = change->delete_options;
    if (change->delete_options || operation == KUBE_MATCH_CONNECT)
        return true;
    struct json_node *options = json_node_new(arena, JSON_TYPE_OBJECT);
    *ret_options = options;
    return options && put(arena, options, "kind", slice_from_text(kind)) &&
           put(arena, options, "apiVersion", SLICE_LITERAL("meta.k8s.io/v1")) &&
           (!change->dry_run || put_dry_run(arena, options)) &&
           put(arena, options, "fieldManager", call->query.field_manager) &&
           put(arena, options, "fieldValidation", call->query.field_validation);
}

/* The objects as the client sees them. */
bool kube_policies_see(struct kube_change *change, struct kube_policy_write *write)
{
    struct kube_call *call = change->call;
    bool scales = call->subresource == KUBE_SUBRESOURCE_SCALE && !change->posted;
    write->object = change->posted ? change->posted : change->object;
    write->old = change->posted ? NULL : change->old;
    if (write->request.operation == KUBE_MATCH_DELETE)
        write->object = NULL;
    if (write->request.operation == KUBE_MATCH_CREATE && !change->posted)
        write->old = NULL;
    write->revision = write->old ? change->revision : 0;
    if (scales) {
        struct json_node *object, *old;
        write->object_kind = scale_kind;
        if (!kube_scale_make(write->arena, call->kind, write->object, change->revision, &object,
                             &call->status) ||
            !kube_scale_make(write->arena, call->kind, write->old, change->revision, &old,
                             &call->status))
            return false;
        write->object = object;
        write->old = old;
        return true;
    }
    /* A new object has its stored form already. */
    if (write->request.operation != KUBE_MATCH_CREATE || change->posted ||
        !kube_conversion_concerns(call->kind))
        return true;
    struct json_node *copy = json_node_copy(write->arena, change->object);
    write->object = copy;
    return (copy || kube_fail_engine(&call->status, ST_NOMEM)) &&
           kube_conversion_to_served(call, write->arena, copy, change->revision);
}

/* What all policies see; without memory it fails. */
bool kube_policies_begin_write(struct kube_change *change, const struct kube_policy_case *cases,
                               size_t count, struct kube_policy_write *write)
{
    struct kube_call *call = change->call;
    struct kube_policy_facts *f = change->policies;
    bool first = kube_call_can_leave(call);
    /* A name that was generated is known by now. */
    struct kube_match_request now = kube_policies_request(change);
    *write = (struct kube_policy_write){
        .cases = (struct kube_policy_case *)(uintptr_t)cases,
        .case_count = count,
        .request = f->request,
        .object_kind = {call->kind->group, call->kind->version, call->kind->kind},
        .namespace_object = f->namespace_object,
        .namespace_missing = f->has_namespace && !f->namespace_object,
        .user = call->user,
        .permissions = &f->permissions,
        .sights = &f->sights,
        .dry_run = change->dry_run,
        .cost_max = first ? FIRST_COST_MAX : KUBE_WRITE_COST_MAX - f->spent,
        .is_attempt = first,
        .arena = &f->arena,
        .checks = f->checks,
        .clock = call->api->clock,
        .status = &call->status,
        .warn = warn,
        .ctx = call,
    };
    write->request.name = now.name;
    write->request.namespace = now.namespace;
    /* Expressions and patches may look into the managers of a new object. */
    if (change->object && created_expand(change->arena, change->object) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!now.name.len && change->operation == KUBE_ADMISSION_CREATE && change->object &&
        !change->decide)
        write->request.name =
            kube_text_copy(&f->arena, json_node_named(change->object, "metadata"), "name");
    return make_options(change, write->request.operation, &f->arena, &write->options) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool write_tree(struct kube_policy_facts *f, const struct json_node *tree,
                       struct slice *ret_json)
{
    AUTO(buf_fini) struct buf json = {0};
    *ret_json = SLICE_EMPTY;
    return !tree || (json_tree_write(tree, &json) == ST_OK &&
                     arena_dup(&f->arena, buf_slice(&json), ret_json) == ST_OK);
}

/* What is converted. */
static bool write_objects(struct kube_policy_facts *f, const struct kube_policy_write *write)
{
    return write_tree(f, write->object, &f->object_json) && write_tree(f, write->old, &f->old_json);
}

/* Back to the step that answers questions about permissions. What was evaluated so far counts, so
 * that many questions, of which each depends on the answer before, cost no more than one. */
enum kube_stepped kube_policies_go_to_ask(struct kube_change *change,
                                          const struct kube_policy_write *write)
{
    struct kube_policy_facts *f = change->policies;
    if (f->sights.wanted && !write_objects(f, write))
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    f->spent += write->cost;
    if (f->spent > KUBE_WRITE_COST_MAX)
        f->spent = KUBE_WRITE_COST_MAX;
    change->step = kube_step_before(change->step);
    return KUBE_STEP_JUMP;
}

/* -- Mutating -- */

/* A new name is refused, with the error that both checks of Kubernetes find. */
static bool keeps_name(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct slice name =
        kube_text_copy(change->arena, json_node_named(change->object, "metadata"), "name");
    AUTO(buf_fini) struct buf text = {0};
    if (slice_equal(name, change->name))
        return true;
    if (buf_append_text(&text, "Invalid value: ") != ST_OK || go_quote(name, &text) != ST_OK ||
        buf_append(&text, slice_of(": field is immutable", 21)) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    const char *why = (const char *)text.ptr;
    kube_status_cause(&call->status, "FieldValueInvalid", "metadata.name", why);
    (void)kube_fail_invalid(&call->status, slice_from_text(call->kind->group),
                            slice_from_text(call->kind->kind), name);
    kube_status_cause(&call->status, "FieldValueInvalid", "metadata.name", why);
    return false;
}

/* The name of a Scale has no effect once it was mutated. */
static bool keep_scale_name(struct kube_change *change, const struct json_node *before)
{
    struct json_node *metadata = json_node_named(change->object, "metadata");
    const struct json_node *name = json_node_path(before, "metadata.name");
    return !metadata || metadata->type != JSON_TYPE_OBJECT || !name ||
           json_node_put(change->arena, metadata, "name", json_node_copy(change->arena, name)) ==
               ST_OK ||
           kube_fail_engine(&change->call->status, ST_NOMEM);
}

/* What belongs to the client is known before policies change the object, and their changes have no
 * manager, unless they change the managers; what only another path may change is then as it was. */
static bool take(struct kube_change *change, const struct json_node *before)
{
    AUTO(buf_fini) struct buf unknown = {0};
    struct kube_call *call = change->call;
    bool creates = change->operation == KUBE_ADMISSION_CREATE;
    if (call->subresource == KUBE_SUBRESOURCE_SCALE)
        return keep_scale_name(change, before) && kube_update_take(change, before);
    if (call->kind->flags & KUBE_CUSTOM && !kube_custom_prune(call, change->object, &unknown))
        return false;
    if (!kube_meta_check(&change->meta, change->object) ||
        !kube_apply_keep_valid(&change->meta, call, before, change->object))
        return false;
    if (!creates)
        return keeps_name(change) && kube_update_take(change, before);
    change->named = json_node_has_text(json_node_path(change->object, "metadata.name"));
    return true;
}

/* The Scale of an object, with the version that the client has given. */
static bool make_scale(struct kube_change *change, struct arena *arena,
                       const struct json_node *object, struct json_node **ret_scale)
{
    const struct json_node *version = json_node_path(object, "metadata.resourceVersion");
    if (!kube_scale_make(arena, change->call->kind, object, change->revision, ret_scale,
                         &change->call->status))
        return false;
    struct json_node *metadata = json_node_named(*ret_scale, "metadata");
    if (version)
        return json_node_put(arena, metadata, "resourceVersion", json_node_copy(arena, version)) ==
                   ST_OK ||
               kube_fail_engine(&change->call->status, ST_NOMEM);
    json_node_remove(metadata, json_node_named(metadata, "resourceVersion"));
    return true;
}

bool kube_policies_see_mutable(struct kube_change *change, struct kube_policy_write *write)
{
    struct json_node *scale, *old;
    write->object = change->object;
    write->old = change->operation == KUBE_ADMISSION_CREATE ? NULL : change->old;
    write->revision = write->old ? change->revision : 0;
    if (change->posted) {
        write->object_kind = *change->posted_kind;
        write->object = change->posted;
        write->old = NULL;
        write->revision = 0;
    } else if (change->call->subresource == KUBE_SUBRESOURCE_SCALE) {
        write->object_kind = scale_kind;
        if (!make_scale(change, change->arena, change->object, &scale) ||
            !kube_scale_make(change->arena, change->call->kind, change->old, change->revision, &old,
                             &change->call->status))
            return false;
        write->object = scale;
        write->old = old;
        write->revision = 0; /* a Scale has its version already */
    }
    return true;
}

/* *ret_object is NULL if nothing was mutated. */
static enum kube_stepped run_policies(struct kube_change *change, struct kube_mutating *mutating,
                                      const struct json_node **ret_object)
{
    struct kube_policy_facts *f = change->policies;
    struct kube_policy_write write;
    const struct json_node *after;
    *ret_object = NULL;
    if (!kube_policies_begin_write(change, f->cases + f->validating, f->count - f->validating,
                                   &write) ||
        !kube_policies_see_mutable(change, &write))
        return KUBE_STEP_FAIL;
    enum kube_policy_verdict verdict = kube_policy_mutate(&write, mutating, &after);
    f->checks = write.checks;
    switch (verdict) {
    case KUBE_POLICY_TOO_DEAR:
        return KUBE_STEP_LONG;
    case KUBE_POLICY_ASKS:
        return kube_policies_go_to_ask(change, &write);
    case KUBE_POLICY_DENIES:
        return KUBE_STEP_FAIL;
    case KUBE_POLICY_ADMITS:
        break;
    }
    kube_policies_forget_sights(f);
    if (after != write.object)
        *ret_object = after;
    return KUBE_STEP_NEXT;
}

bool kube_policies_take(struct kube_change *change, const struct json_node *mutated)
{
    const struct json_node *before = change->object;
    if (change->posted) {
        change->posted = mutated;
        return true;
    }
    /* The trees of mutations are in the arena of the attempt, where they may be changed. */
    change->object = (struct json_node *)(uintptr_t)mutated;
    return take(change, before);
}

enum kube_stepped kube_policies_mutate(struct kube_change *change)
{
    const struct kube_policy_facts *f = change->policies;
    const struct json_node *after;
    if (f->count == f->validating)
        return KUBE_STEP_NEXT;
    enum kube_stepped stepped = run_policies(change, change->mutating, &after);
    return stepped == KUBE_STEP_NEXT && after ? kube_policies_take(change, after) : stepped;
}

/* -- Validating -- */

enum kube_stepped kube_policies_check(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_policy_facts *f = change->policies;
    struct kube_policy_write write;
    if (!f->validating)
        return KUBE_STEP_NEXT;
    /* Nothing is deleted: the object was not selected. One that is being deleted already counts. */
    if (change->decide && !change->posted && change->decision == KUBE_DECIDE_KEEP &&
        !change->object)
        return KUBE_STEP_NEXT;
    if (!kube_policies_begin_write(change, f->cases, f->validating, &write))
        return KUBE_STEP_FAIL;
    if (change->posted)
        write.object_kind = *change->posted_kind;
    /* The warnings of an attempt before are not those of this one. Other writes have dropped them
     * when they began the attempt. */
    if (f->checked && change->operation == KUBE_ADMISSION_CREATE && !change->decide)
        call->warnings.len = size_min(call->warnings.len, f->warned);
    f->checked = true;
    f->warned = call->warnings.len;
    if (!kube_policies_see(change, &write))
        return KUBE_STEP_FAIL;
    enum kube_policy_verdict verdict = kube_policy_validate(&write);
    if (verdict == KUBE_POLICY_TOO_DEAR)
        return KUBE_STEP_LONG;
    if (verdict == KUBE_POLICY_ASKS)
        return kube_policies_go_to_ask(change, &write);
    kube_policies_forget_sights(f);
    f->audited += write.audited;
    f->checks = write.checks;
    return verdict == KUBE_POLICY_ADMITS;
}

/* -- Policies and webhooks themselves -- */

struct settling {
    struct kube_policies_wait wait;
    struct kube_change *change;
};

/* The write has succeeded, so that it is also answered if the policies follow late. */
static void on_settled(struct kube_policies_wait *wait)
{
    struct kube_change *change = CONTAINER_OF(wait, struct settling, wait)->change;
    if (kube_call_done(change->call))
        kube_change_next(change);
}

enum kube_stepped kube_policies_settle(struct kube_change *change)
{
    struct kube_call *call = change->call;
    bool wrote = change->decision == KUBE_DECIDE_PUT || change->decision == KUBE_DECIDE_DELETE;
    enum kube_policy_part part;
    if (!kube_policy_part_of(call->kind, &part) || change->dry_run || !wrote ||
        !kube_admission_uses(call->api->admission, part))
        return KUBE_STEP_NEXT;
    struct settling *settling = arena_calloc(&call->arena, 1, sizeof(*settling));
    if (!settling)
        return KUBE_STEP_NEXT;
    settling->change = change;
    settling->wait = (struct kube_policies_wait){.revision = change->revision, .go = on_settled};
    kube_call_hold(call);
    kube_policies_wait(call->api->admission->policies, &settling->wait);
    return KUBE_STEP_LEFT;
}

#define NO_AUDIT_LOG "this server has no audit log: "

void kube_policies_warn(struct kube_call *call, const struct json_node *object)
{
    enum kube_policy_part part;
    if (!kube_policy_part_of(call->kind, &part))
        return;
    if (part == KUBE_POLICIES && json_node_items_at(object, "spec.auditAnnotations"))
        kube_call_warn(
            call, SLICE_LITERAL(NO_AUDIT_LOG "auditAnnotations are evaluated and not recorded"));
    if (part != KUBE_POLICY_BINDINGS)
        return;
    const struct json_node *item = json_node_items_at(object, "spec.validationActions");
    for (; item; item = item->next)
        if (json_node_is_text(item, "Audit"))
            kube_call_warn(call, SLICE_LITERAL(NO_AUDIT_LOG
                                               "failures with the action Audit are counted and "
                                               "not recorded"));
}

/* -- Metrics -- */

static void count_check(const struct kube_policy_facts *f, const struct kube_policy_check *check)
{
    const struct kube_counter *counter = &f->change->call->api->counter;
    if (check->is_conditions)
        kube_webhook_metrics_conditions(
            kube_counter_webhooks(counter),
            &(struct kube_conditions_count){.name = check->policy,
                                            .is_policy = true,
                                            .operation =
                                                kube_policy_operation(f->request.operation),
                                            .errors = check->errors,
                                            .elapsed_ns = check->elapsed_ns});
    else
        kube_count_check(counter, &(struct kube_check){.policy = check->policy,
                                                       .binding = check->binding,
                                                       .error_type = check->error_type,
                                                       .action = check->action,
                                                       .elapsed_ns = check->elapsed_ns});
}

void kube_policies_count(const struct kube_policy_facts *f)
{
    if (f->audited)
        kube_count_total(&f->change->call->api->counter, KUBE_TOTAL_POLICY_AUDITS, f->audited);
    for (const struct kube_policy_check *check = f->checks; check; check = check->next)
        count_check(f, check);
}
