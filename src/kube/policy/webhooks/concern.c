#include "kube/policy/webhooks/concern.h"

#include "kube/merge/patch/patch.h"
#include "kube/policy/policies/mutated.h"

/* -- Which webhooks -- */

/* Conditions that cannot be evaluated refuse the write, unless failures are ignored. */
static enum kube_webhook_concern evaluate(struct kube_policy_run *run,
                                          const struct kube_webhook *webhook,
                                          const struct kube_kind *kind,
                                          struct kube_webhook_conditions *conditions)
{
    const struct kube_policy *rule = &webhook->rule;
    const struct kube_policy_write *w = run->write;
    struct kube_policy_round r = {.run = run, .policy = rule};
    const struct kube_policy_inputs *inputs = kube_policy_inputs_make(w, rule, kind, &run->inputs);
    struct slice error = SLICE_EMPTY, copy = SLICE_EMPTY;
    if (!inputs || !kube_policy_round_init(&r, inputs, NULL)) {
        run->no_memory = true;
        return KUBE_WEBHOOK_DENIES;
    }
    bool meets = kube_policy_meets_conditions(&r, &error);
    conditions->elapsed_ns = r.conditions_ns;
    conditions->errors = r.condition_errors;
    if (error.len && arena_dup(w->arena, error, &copy) != ST_OK)
        run->no_memory = true;
    kube_policy_round_fini(&r);
    if (kube_policy_waits(w))
        return KUBE_WEBHOOK_ASKS;
    if (run->limit.reached && w->is_attempt)
        return KUBE_WEBHOOK_TOO_DEAR;
    if (run->limit.reached)
        copy = SLICE_LITERAL(KUBE_POLICIES_TOO_DEAR);
    if (run->no_memory)
        return KUBE_WEBHOOK_DENIES;
    conditions->were_evaluated = true;
    /* Kubernetes also counts errors that are ignored as conditions that do not hold. */
    conditions->are_false =
        !meets && (!copy.len || (rule->ignores_failures && !run->limit.reached));
    if (meets)
        return KUBE_WEBHOOK_CONCERNS;
    if (conditions->are_false)
        return KUBE_WEBHOOK_PASSES;
    const struct kube_kind *asked = w->request.kind;
    (void)kube_fail_forbidden(w->status, slice_from_text(asked->group),
                              slice_from_text(asked->plural), w->request.name, "");
    w->status->long_message =
        kube_policy_format(run, "%s%.*s", w->status->message, SLICE_ARGS(copy));
    return KUBE_WEBHOOK_DENIES;
}

enum kube_webhook_concern kube_webhook_concerns(struct kube_policy_run *run,
                                                const struct kube_webhook *webhook,
                                                const struct kube_kind **ret_kind,
                                                struct kube_webhook_conditions *ret_conditions)
{
    const struct kube_policy_write *w = run->write;
    *ret_conditions = (struct kube_webhook_conditions){0};
    enum kube_policy_matched matched = kube_policy_matches(run, &webhook->rule.match, ret_kind);
    if (matched == KUBE_POLICY_MATCHED_NOT)
        return KUBE_WEBHOOK_PASSES;
    if (matched == KUBE_POLICY_MATCHED_WITHOUT_NAMESPACE) {
        (void)kube_fail_not_found(w->status, SLICE_EMPTY, SLICE_LITERAL("namespaces"),
                                  w->request.namespace);
        return KUBE_WEBHOOK_DENIES;
    }
    if (!kube_policy_can_show(w, *ret_kind))
        return KUBE_WEBHOOK_ASKS;
    struct slice why = kube_policy_show_error(w, *ret_kind);
    if (why.len) {
        (void)kube_policy_fail_internal(run, "", why);
        return KUBE_WEBHOOK_DENIES;
    }
    if (!webhook->rule.condition_count || webhook->rule.unusable)
        return KUBE_WEBHOOK_CONCERNS;
    enum kube_webhook_concern concern = evaluate(run, webhook, *ret_kind, ret_conditions);
    if (run->no_memory)
        (void)kube_fail_engine(w->status, ST_NOMEM);
    return concern;
}

/* -- The review -- */

static struct kube_webhook_kind kind_of(const char *group, const char *version, const char *name)
{
    return (struct kube_webhook_kind){slice_from_text(group), slice_from_text(version),
                                      slice_from_text(name)};
}

/* Empty for no object. */
static enum status write_tree(const struct json_node *tree, struct buf *to)
{
    return tree ? json_tree_write(tree, to) : ST_OK;
}

/* The objects as the webhook sees them. */
static bool see(const struct kube_policy_run *run, const struct kube_kind *kind,
                const struct json_node *object, const struct json_node **ret_object)
{
    const struct kube_policy_write *w = run->write;
    bool versions = object != w->object || !w->keeps_version;
    struct kube_policy rule = {.uses = versions ? KUBE_USES_VERSIONS : 0};
    return kube_policy_inputs_see(run->write, &rule, kind, object, ret_object);
}

enum status kube_webhook_ask(struct kube_policy_run *run, const struct kube_webhook *webhook,
                             const struct kube_kind *kind, struct slice uid, struct buf *to)
{
    const struct kube_policy_write *w = run->write;
    const struct kube_policy_object_kind *requested = &w->object_kind;
    const struct kube_kind *asked = w->request.kind;
    AUTO(buf_fini) struct buf object = {0}, old = {0}, options = {0};
    const struct json_node *new_tree, *old_tree;
    if (!see(run, kind, w->object, &new_tree) || !see(run, kind, w->old, &old_tree))
        return ST_NOMEM;
    TRY(write_tree(new_tree, &object));
    TRY(write_tree(old_tree, &old));
    TRY(write_tree(w->options, &options));
    struct kube_webhook_review review = {
        .version = webhook->takes_v1beta1 ? KUBE_REVIEW_V1BETA1 : KUBE_REVIEW_V1,
        .uid = uid,
        .kind = kind_of(requested->group, requested->version, requested->kind),
        .resource = kind_of(kind->group, kind->version, kind->plural),
        .request_kind = kind_of(requested->group, requested->version, requested->kind),
        .request_resource = kind_of(asked->group, asked->version, asked->plural),
        .subresource = w->request.subresource,
        .request_subresource = w->request.subresource,
        .name = w->request.name,
        .namespace = w->request.namespace,
        .operation = slice_from_text(kube_policy_operation(w->request.operation)),
        .user = w->user,
        .object = buf_slice(&object),
        .old_object = buf_slice(&old),
        .options = buf_slice(&options),
        .dry_run = w->dry_run,
    };
    if (kube_policy_converts(w, kind))
        review.kind = kind_of(kind->group, kind->version, kind->kind);
    return kube_webhook_review_write(to, &review);
}

/* -- The patch -- */

static bool fail_memory(struct kube_policy_run *run)
{
    return kube_fail_engine(run->write->status, ST_NOMEM);
}

/* What jsonpatch says of an operation that lacks its name or its path; NULL: it has both. */
static const char *fault_of(const struct json_node *operation)
{
    static const struct {
        const char *op, *text;
    } rows[] = {
        {"add", "add operation failed to decode path: missing value"},
        {"remove", "remove operation failed to decode path: missing value"},
        {"copy", "copy operation failed to decode path: missing value"},
        {"replace", "replace operation failed to decode path: operation missing path field: "
                    "missing value"},
        {"move", "move operation failed to decode path: operation missing path field: missing "
                 "value"},
        {"test", "test operation failed to decode path: operation missing path field: missing "
                 "value"},
    };
    const struct json_node *op = json_node_named(operation, "op");
    const struct json_node *path = json_node_named(operation, "path");
    if (!op || op->type != JSON_TYPE_STRING)
        return "Unexpected kind: unknown";
    for (size_t i = 0; (!path || path->type != JSON_TYPE_STRING) && i < COUNT_OF(rows); i++)
        if (json_node_is_text(op, rows[i].op))
            return rows[i].text;
    return NULL;
}

/* Kubernetes ignores everything of the answer but its object. */
static bool apply(struct kube_policy_run *run, const struct kube_webhook *webhook,
                  const struct kube_kind *kind, const struct json_node *patch, struct arena *arena,
                  const struct json_node **ret_seen, struct json_node **ret_object)
{
    struct error why = {0};
    if (!run->write->object)
        return kube_policy_fail_internal(
            run, "",
            kube_policy_format(run,
                               "admission webhook \"%.*s\" attempted to modify the object, which "
                               "is not supported for this operation",
                               SLICE_ARGS(webhook->rule.name)));
    const struct json_node *items = json_node_items(patch);
    for (const struct json_node *item = items; item; item = item->next) {
        const char *fault = fault_of(item);
        if (fault)
            return kube_policy_fail_internal(run, "", slice_from_text(fault));
    }
    struct json_node *copy =
        see(run, kind, run->write->object, ret_seen) ? json_node_copy(arena, *ret_seen) : NULL;
    if (!copy)
        return fail_memory(run);
    switch (patch_json(arena, copy, patch, ret_object, &why)) {
    case ST_OK:
        return true;
    case ST_INVALID:
    case ST_MALFORMED:
        return kube_policy_fail_internal(run, "", slice_from_text(why.text));
    case ST_LIMIT:
        return kube_fail(run->write->status, KUBE_TOO_LARGE, "Request entity too large: %s",
                         why.text);
    default:
        return fail_memory(run);
    }
}

bool kube_webhook_patch(struct kube_policy_run *run, const struct kube_webhook *webhook,
                        const struct kube_kind *kind, const struct kube_webhook_verdict *verdict,
                        struct arena *arena, struct json_node **ret_object,
                        const struct kube_kind **ret_kind)
{
    const struct kube_policy_write *w = run->write;
    struct kube_kind room;
    const struct kube_kind *own = kube_mutated_own_kind(w, &room);
    struct json_node *patch;
    struct error why = {0};
    *ret_object = NULL;
    if (!verdict->patch.len)
        return true;
    /* The object keeps values of the patch, whose text ends with the call. */
    struct slice text;
    if (arena_dup(arena, verdict->patch, &text) != ST_OK)
        return fail_memory(run);
    enum status status = json_tree_read(arena, text, &patch, &why);
    if (status == ST_NOMEM)
        return fail_memory(run);
    if (status == ST_LIMIT)
        return kube_fail(w->status, KUBE_TOO_LARGE, "Request entity too large: %s", why.text);
    if (status != ST_OK) /* it is JSON, but a text is not one of Unicode */
        return kube_policy_fail_internal(run, "", slice_from_text(why.text));
    if (!json_node_items(patch))
        return true;
    const struct json_node *seen;
    struct json_node *object;
    if (!apply(run, webhook, kind, patch, arena, &seen, &object) ||
        !kube_mutated_decode(run, arena, own ? own : kind, object, false) ||
        (!own && !kube_mutated_complete(run, arena, kind, object)))
        return false;
    if (json_node_equal(seen, object))
        return true;
    *ret_kind = own || kube_policy_converts_by_webhook(w, kind) ? kind : w->request.kind;
    if (*ret_kind != kind && !kube_policy_convert(arena, kind, *ret_kind, object))
        return fail_memory(run);
    *ret_object = object;
    return true;
}
