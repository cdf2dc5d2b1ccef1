#include "kube/handlers/write/admit.h"

#include "kube/call/respond.h"
#include "kube/policy/access/identity.h"
#include "kube/policy/admission/plugins/namespaces.h"
#include "kube/policy/security/settings.h"

/* What is gathered for a write, in the arena of its call. */
struct kube_gathered {
    struct kube_change *change;
    struct kube_facts facts;
    struct kube_facts_wait wait;
    struct kube_write_right right; /* its count is 0 if none is needed */
};

/* -- Gathering -- */

static void on_right(struct kube_write_right *right)
{
    struct kube_gathered *gathered = CONTAINER_OF(right, struct kube_gathered, right);
    struct kube_call *call = gathered->change->call;
    enum status status = right->status;
    if (kube_call_succeeded(call, status))
        kube_change_next(gathered->change);
}

static enum kube_stepped ask_right(struct kube_gathered *gathered)
{
    struct kube_call *call = gathered->change->call;
    if (!gathered->right.count)
        return KUBE_STEP_NEXT;
    gathered->right.go = on_right;
    gathered->right.client = &call->exchange;
    kube_call_hold(call);
    kube_identity_ask(call->identity, &gathered->right);
    return KUBE_STEP_LEFT;
}

static void on_gathered(struct kube_facts_wait *wait)
{
    struct kube_gathered *gathered = CONTAINER_OF(wait, struct kube_gathered, wait);
    struct kube_call *call = gathered->change->call;
    enum status status = wait->status;
    if (!kube_call_succeeded(call, status))
        return;
    if (ask_right(gathered) == KUBE_STEP_NEXT)
        kube_change_next(gathered->change);
}

enum kube_stepped kube_admit_gather(struct kube_change *change)
{
    struct kube_call *call = change->call;
    bool creates = change->operation == KUBE_ADMISSION_CREATE;
    const struct json_node *object = creates ? change->object : NULL;
    struct kube_write_right right = {0};
    unsigned needs = 0;
    const struct kube_write_act act = {
        .kind = call->kind,
        .path = &call->path,
        .posts = call->verb == KUBE_VERB_POST,
        .creates = object,
        .stored = change->stored,
    };
    kube_admit_release(change);
    if (!creates)
        kube_count_total(&call->api->counter, KUBE_TOTAL_ATTEMPTS, 1);
    /* Deletions need no facts, and bindings concern no plugin. */
    if (!change->decide)
        change->plugins = kube_admission_concerns(
            call->api->admission, call->kind, call->path.subresource, change->operation, &needs);
    /* Users may be exempt. They are known only on this thread. */
    if (change->plugins && call->api->admission->set.pod_security->users.count)
        (void)kube_call_user(call);
    /* Without roles and bindings every client may do everything. */
    if (call->identity && kube_write_right_of(&call->arena, &act, &right) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!change->gathered && !needs && !right.count)
        return KUBE_STEP_NEXT;
    if (!change->gathered)
        change->gathered = arena_calloc(&call->arena, 1, sizeof(*change->gathered));
    if (!change->gathered)
        return kube_fail_engine(&call->status, ST_NOMEM);
    struct kube_gathered *gathered = change->gathered;
    gathered->change = change;
    gathered->right = right;
    if (!needs)
        return ask_right(gathered);
    gathered->wait = (struct kube_facts_wait){
        .needs = needs,
        .namespace = call->path.namespace,
        .object = object,
        .stored = change->stored,
        .arena = &call->arena,
        .account = call->arena.account,
        .client = &call->exchange,
        .facts = &gathered->facts,
        .go = on_gathered,
    };
    kube_call_hold(call);
    kube_facts_gather(call->api->admission->facts, &gathered->wait);
    return KUBE_STEP_LEFT;
}

void kube_admit_release(struct kube_change *change)
{
    if (change->gathered)
        kube_facts_release(&change->gathered->facts);
}

/* -- Deciding -- */

static void warn(void *ctx, struct slice warning)
{
    kube_call_warn(ctx, warning);
}

struct kube_admission_write kube_admit_write(struct kube_change *change,
                                             enum kube_admission_operation operation,
                                             struct json_node *object, const struct json_node *old)
{
    static const struct kube_facts none;
    struct kube_call *call = change->call;
    struct kube_gathered *gathered = change->gathered;
    return (struct kube_admission_write){
        .plugins = change->plugins,
        .arena = change->arena,
        .kind = call->kind,
        .subresource = call->path.subresource,
        .operation = operation,
        .namespace = change->namespace,
        .name = call->path.name,
        .user = call->identity ? kube_identity_user(call->identity) : call->user,
        .random = &call->random,
        .dry_run = call->query.dry_run,
        .object = object,
        .wanted = object == change->object ? change->wanted : NULL,
        .patched = change->patches,
        .old = old,
        .facts = gathered ? &gathered->facts : &none,
        .pod_security = call->api->admission->set.pod_security,
        .pod_metrics = kube_counter_pods(&call->api->counter),
        .right = gathered && gathered->right.count ? &gathered->right : NULL,
        .nodes = change->node_facts,
        .status = &call->status,
        .warn = warn,
        .warned = call,
    };
}

enum kube_stepped kube_admit_mutate(struct kube_change *change)
{
    struct kube_admission_write write =
        kube_admit_write(change, change->operation, change->object, change->old);
    return kube_admission_run(&write, KUBE_ADMISSION_MUTATE);
}

enum kube_stepped kube_admit_check(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_admission_write write =
        kube_admit_write(change, change->operation, change->object, change->old);
    if (change->operation == KUBE_ADMISSION_CREATE && write.right && !write.right->allowed)
        return kube_fail_attributes(&call->arena, &call->status, kube_identity_user(call->identity),
                                    &write.right->any[0], write.right->reason);
    return kube_admission_run(&write, KUBE_ADMISSION_VALIDATE);
}

enum kube_stepped kube_admit_quota(struct kube_change *change)
{
    struct kube_admission_write write =
        kube_admit_write(change, change->operation, change->object, change->old);
    if (!kube_admission_run(&write, KUBE_ADMISSION_CHARGE))
        return KUBE_STEP_FAIL;
    change->charges = (struct kube_charges){write.companions, write.companion_count};
    return KUBE_STEP_NEXT;
}

/* -- Namespaces -- */

struct settling {
    struct kube_facts_wait wait;
    struct kube_facts facts;
    struct kube_change *change;
};

/* The write has succeeded, so that it is also answered if the facts follow late. */
static void on_settled(struct kube_facts_wait *wait)
{
    struct kube_change *change = CONTAINER_OF(wait, struct settling, wait)->change;
    kube_facts_release(wait->facts);
    if (kube_call_done(change->call))
        kube_change_next(change);
}

enum kube_stepped kube_admit_settle(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct json_node *object = change->object;
    bool concerned = kube_labels_concern_pods(json_node_path(object, "metadata.labels")) ||
                     kube_labels_concern_pods(json_node_path(change->old, "metadata.labels"));
    if (change->dry_run || !concerned || !kube_admission_reviews_pods(call->api->admission))
        return KUBE_STEP_NEXT;
    struct settling *settling = arena_calloc(&call->arena, 1, sizeof(*settling));
    if (!settling)
        return KUBE_STEP_NEXT;
    settling->change = change;
    settling->wait = (struct kube_facts_wait){
        .needs = 1u << KUBE_FACT_NAMESPACES,
        .arena = &call->arena,
        .account = call->arena.account,
        .client = &call->exchange,
        .facts = &settling->facts,
        .revision = change->revision,
        .go = on_settled,
    };
    kube_call_hold(call);
    kube_facts_gather(call->api->admission->facts, &settling->wait);
    return KUBE_STEP_LEFT;
}
