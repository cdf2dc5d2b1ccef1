#include "kube/handlers/write/admit.h"

#include "kube/call/respond.h"
#include "kube/policy/access/identity.h"

/* What is gathered for a call, in its arena. */
struct kube_gathered {
    struct kube_call *call;
    struct kube_facts facts;
    struct kube_facts_wait wait;
    struct kube_write_right right; /* its count is 0 if none is needed */
    void (*next)(struct kube_call *call);
};

unsigned kube_admit_needs(const struct kube_call *call, enum kube_admission_operation operation)
{
    unsigned needs;
    (void)kube_admission_concerns(call->api->admission, call->kind, call->path.subresource,
                                  operation, &needs);
    return needs;
}

static void on_right(struct kube_write_right *right)
{
    struct kube_gathered *gathered = CONTAINER_OF(right, struct kube_gathered, right);
    struct kube_call *call = gathered->call;
    enum status status = right->status;
    if (!kube_call_done(call))
        return;
    if (status == ST_OK)
        gathered->next(call);
    else
        kube_call_fail_engine(call, status);
}

static void ask_right(struct kube_gathered *gathered)
{
    struct kube_call *call = gathered->call;
    if (!gathered->right.count) {
        gathered->next(call);
        return;
    }
    gathered->right.go = on_right;
    gathered->right.client = &call->exchange;
    kube_call_hold(call);
    kube_identity_ask(call->identity, &gathered->right);
}

static void on_gathered(struct kube_facts_wait *wait)
{
    struct kube_gathered *gathered = CONTAINER_OF(wait, struct kube_gathered, wait);
    struct kube_call *call = gathered->call;
    enum status status = wait->status;
    if (!kube_call_done(call))
        return;
    if (status == ST_OK)
        ask_right(gathered);
    else
        kube_call_fail_engine(call, status);
}

void kube_admit_gather(struct kube_call *call, unsigned needs, const struct json_node *object,
                       struct slice stored, void (*next)(struct kube_call *call))
{
    struct kube_write_right right = {0};
    const struct kube_write_act act = {
        .kind = call->kind,
        .path = &call->path,
        .posts = call->verb == KUBE_VERB_POST,
        .creates = object,
        .stored = stored,
    };
    kube_admit_release(call);
    /* Without roles and bindings every client may do everything. */
    if (call->identity && kube_write_right_of(&call->arena, &act, &right) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    if (!call->gathered && !needs && !right.count) {
        next(call);
        return;
    }
    if (!call->gathered)
        call->gathered = arena_calloc(&call->arena, 1, sizeof(*call->gathered));
    if (!call->gathered) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    struct kube_gathered *gathered = call->gathered;
    gathered->call = call;
    gathered->next = next;
    gathered->right = right;
    if (!needs) {
        ask_right(gathered);
        return;
    }
    gathered->wait = (struct kube_facts_wait){
        .needs = needs,
        .namespace = call->path.namespace,
        .object = object,
        .stored = stored,
        .arena = &call->arena,
        .account = call->arena.account,
        .client = &call->exchange,
        .facts = &gathered->facts,
        .go = on_gathered,
    };
    kube_call_hold(call);
    kube_facts_gather(call->api->admission->facts, &gathered->wait);
}

void kube_admit_release(struct kube_call *call)
{
    if (call->gathered)
        kube_facts_release(&call->gathered->facts);
}

bool kube_admit_creates(struct kube_call *call)
{
    const struct kube_write_right *right = call->gathered ? &call->gathered->right : NULL;
    return !right || !right->count || right->allowed ||
           kube_fail_attributes(&call->arena, &call->status, kube_identity_user(call->identity),
                                &right->any[0], right->reason);
}

struct kube_admission_write kube_admit_write(struct kube_call *call, struct arena *arena,
                                             enum kube_admission_operation operation,
                                             struct json_node *object, const struct json_node *old)
{
    static const struct kube_facts none;
    return (struct kube_admission_write){
        .arena = arena,
        .kind = call->kind,
        .subresource = call->path.subresource,
        .operation = operation,
        .namespace = call->path.namespace,
        .name = call->path.name,
        .user = call->user,
        .random = kube_call_random(call),
        .dry_run = call->query.dry_run,
        .object = object,
        .old = old,
        .facts = call->gathered ? &call->gathered->facts : &none,
        .right = call->gathered && call->gathered->right.count ? &call->gathered->right : NULL,
        .status = &call->status,
    };
}
