#include "kube/handlers/write/policies.h"

#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/handlers/write/scale.h"
#include "kube/policy/admission/admission.h"

enum { FIRST_COST_MAX = 5000 }; /* evaluated on the thread of the API: about 0.5 ms */

/* -- Deciding -- */

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
    if (change->delete_options)
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
static bool make_objects(struct kube_change *change, struct kube_policy_write *write)
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
        write->object_kind = (struct kube_policy_object_kind){"autoscaling", "v1", "Scale"};
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

enum kube_stepped kube_policies_check(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_policy_facts *f = change->policies;
    const struct json_node *options;
    if (!f || !f->count)
        return KUBE_STEP_NEXT;
    /* Nothing is deleted: the object was not selected, or is being deleted already. */
    if (change->decide && !change->posted && change->decision == KUBE_DECIDE_KEEP)
        return KUBE_STEP_NEXT;
    bool first = kube_call_can_leave(call);
    struct kube_policy_write write = {
        .cases = f->cases,
        .case_count = f->count,
        .request = f->request,
        .object_kind = {call->kind->group, call->kind->version, call->kind->kind},
        .namespace_object = f->namespace_object,
        .namespace_missing = f->has_namespace && !f->namespace_object,
        .user = call->user,
        .permissions = &f->permissions,
        .dry_run = change->dry_run,
        .cost_max = first ? FIRST_COST_MAX : KUBE_WRITE_COST_MAX,
        .is_attempt = first,
        .arena = &f->arena,
        .clock = call->api->clock,
        .status = &call->status,
        .warn = warn,
        .ctx = call,
    };
    /* A name that was generated is known by now. */
    struct kube_match_request now = kube_policies_request(change);
    write.request.name = now.name;
    write.request.namespace = now.namespace;
    if (change->posted)
        write.object_kind = *change->posted_kind;
    /* The warnings of an attempt before are not those of this one. Other writes have dropped them
     * when they began the attempt. */
    if (f->checked && change->operation == KUBE_ADMISSION_CREATE && !change->decide)
        call->warnings.len = size_min(call->warnings.len, f->warned);
    f->checked = true;
    f->warned = call->warnings.len;
    if (!make_options(change, write.request.operation, &f->arena, &options))
        return kube_fail_engine(&call->status, ST_NOMEM);
    write.options = options;
    if (!make_objects(change, &write))
        return KUBE_STEP_FAIL;
    enum kube_policy_verdict verdict = kube_policy_validate(&write);
    if (verdict == KUBE_POLICY_TOO_DEAR)
        return KUBE_STEP_LONG;
    if (verdict == KUBE_POLICY_ASKS) {
        change->step = kube_step_before(change->step);
        return KUBE_STEP_JUMP;
    }
    f->audited += write.audited;
    f->failures = write.failures;
    return verdict == KUBE_POLICY_ADMITS;
}

/* -- Policies themselves -- */

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
    if (!(kube_is_policy(call->kind) || kube_is_policy_binding(call->kind)) || change->dry_run ||
        !wrote || !kube_admission_has_policies(call->api->admission))
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

/* Whether a rule names a subresource that no list of steps has. */
static bool names_unseen(const struct json_node *rules)
{
    static const char *const unseen[] = {"*", "token", "exec", "attach", "portforward", "proxy"};
    for (const struct json_node *rule = json_node_items(rules); rule; rule = rule->next) {
        const struct json_node *item = json_node_items(json_node_named(rule, "resources"));
        for (; item; item = item->next) {
            struct slice subresource = item->text;
            (void)slice_cut(&subresource, '/');
            for (size_t i = 0; i < COUNT_OF(unseen) && item->type == JSON_TYPE_STRING; i++)
                if (slice_is(subresource, unseen[i]))
                    return true;
        }
    }
    return false;
}

void kube_policies_warn(struct kube_call *call, const struct json_node *object)
{
    if (kube_is_policy(call->kind) && json_node_items_at(object, "spec.auditAnnotations"))
        kube_call_warn(
            call, SLICE_LITERAL(NO_AUDIT_LOG "auditAnnotations are evaluated and not recorded"));
    if (kube_is_policy(call->kind) &&
        names_unseen(json_node_path(object, "spec.matchConstraints.resourceRules")))
        kube_call_warn(call, SLICE_LITERAL("this server does not evaluate policies for tokens, "
                                           "and connections to pods, nodes and services"));
    if (!kube_is_policy_binding(call->kind))
        return;
    const struct json_node *item = json_node_items_at(object, "spec.validationActions");
    for (; item; item = item->next)
        if (json_node_is_text(item, "Audit"))
            kube_call_warn(call, SLICE_LITERAL(NO_AUDIT_LOG
                                               "failures with the action Audit are counted and "
                                               "not recorded"));
}
