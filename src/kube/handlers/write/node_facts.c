#include "kube/handlers/write/node_facts.h"

#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/admit.h"
#include "kube/policy/access/identity.h"
#include "kube/policy/access/rbac/node_authorizer.h"
#include "kube/policy/admission/plugins/nodes/node_restriction.h"
#include "kube/policy/policies/match.h"

/* In the arena of the call. */
struct gathered {
    struct kube_change *change;
    bool waits; /* for an object or a right; otherwise another attempt begins */
    struct kube_node_facts facts;
    struct pb_range_request request;
    struct kube_write_right right;
};

static struct gathered *gathered_of(const struct kube_change *change)
{
    return CONTAINER_OF(change->node_facts, struct gathered, facts);
}

/* -- Reading -- */

static enum status take_object(struct gathered *g, struct kube_call *call)
{
    struct json_node *tree = NULL;
    struct slice field, text;
    struct error ignored;
    if (engine_range_next(&call->range, &field)) {
        TRY(arena_dup(&call->arena, kube_kv_of(field).value, &text));
        /* What cannot be read as an object does not exist for the plugin. */
        if (json_tree_read(&call->arena, text, &tree, &ignored) == ST_NOMEM)
            return ST_NOMEM;
    }
    TRY(call->range.op.status);
    g->facts.items[g->facts.count++] =
        (struct kube_node_fact){.key = g->request.key, .object = tree};
    return ST_OK;
}

static void on_object(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct gathered *g = gathered_of(call->handler.change);
    enum status status = op->status;
    if (status == ST_OK)
        status = take_object(g, call);
    engine_range_close(&call->range);
    kube_change_resume(g->change, status);
}

static void on_right(struct kube_write_right *right)
{
    struct gathered *g = CONTAINER_OF(right, struct gathered, right);
    g->facts.answered = true;
    g->facts.allowed = right->allowed;
    kube_change_resume(g->change, right->status);
}

/* Without authorization every client may do everything. */
static enum kube_stepped ask(struct gathered *g, struct kube_call *call)
{
    if (!call->identity) {
        g->facts.answered = g->facts.allowed = true;
        return KUBE_STEP_NEXT;
    }
    g->right = (struct kube_write_right){
        .any = {g->facts.question}, .count = 1, .client = &call->exchange, .go = on_right};
    g->waits = true;
    kube_call_hold(call);
    kube_identity_ask(call->identity, &g->right);
    return KUBE_STEP_LEFT;
}

static enum kube_stepped begin(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct gathered *g =
        change->node_facts ? gathered_of(change) : arena_calloc(&call->arena, 1, sizeof(*g));
    if (!g)
        return kube_fail_engine(&call->status, ST_NOMEM);
    change->node_facts = &g->facts;
    g->change = change;
    if (!g->waits)
        g->facts.count = 0;
    g->waits = false;
    return KUBE_STEP_NEXT;
}

/* Decides as often as something is lacking. KUBE_STEP_NEXT: *ret_fine is the decision. */
static enum kube_stepped decide(struct kube_change *change, struct json_node *object,
                                bool *ret_fine)
{
    struct kube_call *call = change->call;
    if (begin(change) == KUBE_STEP_FAIL)
        return KUBE_STEP_FAIL;
    struct gathered *g = gathered_of(change);
    for (;;) {
        struct kube_admission_write write =
            kube_admit_write(change, KUBE_ADMISSION_CREATE, object, NULL);
        write.arena = &call->arena;
        g->facts.wanted = SLICE_EMPTY;
        g->facts.asks = false;
        *ret_fine = kube_node_restrict(&write);
        if (*ret_fine || (!g->facts.wanted.len && !g->facts.asks))
            return KUBE_STEP_NEXT;
        if (g->facts.wanted.len) {
            g->waits = true;
            g->request = (struct pb_range_request){.key = g->facts.wanted};
            kube_call_range(call, &g->request, on_object);
            return KUBE_STEP_LEFT;
        }
        enum kube_stepped asked = ask(g, call);
        if (asked != KUBE_STEP_NEXT)
            return asked;
    }
}

static bool is_of_node(struct kube_call *call)
{
    struct slice node;
    return kube_user_is_node(kube_call_user(call), &node);
}

/* The plugin decides again in its place of the chain. */
enum kube_stepped kube_node_gather(struct kube_change *change)
{
    struct kube_call *call = change->call;
    bool fine;
    if (!is_of_node(call))
        return KUBE_STEP_NEXT;
    enum kube_stepped stepped = decide(change, change->object, &fine);
    if (stepped == KUBE_STEP_NEXT && !fine)
        call->status = (struct kube_status){0};
    return stepped;
}

enum kube_stepped kube_node_check_posted(struct kube_change *change)
{
    bool fine;
    if (!(change->acts & KUBE_MATCH_CREATE) || !is_of_node(change->call))
        return KUBE_STEP_NEXT;
    /* The plugin changes nothing. */
    struct json_node *posted = (struct json_node *)(uintptr_t)change->posted;
    enum kube_stepped stepped = decide(change, posted, &fine);
    return stepped == KUBE_STEP_NEXT ? (enum kube_stepped)fine : stepped;
}
