/*
 * Checks of writes to roles and bindings, as in Kubernetes: a user may give away only permissions
 * that it has itself in that namespace, unless it may `escalate` the role or `bind` to it.
 */
#include "base/slices.h"
#include "codec/json/field_fault.h"
#include "kube/policy/access/guard.h"

#include <stdlib.h>

#define GROUP "rbac.authorization.k8s.io"

enum { SHOWN_MAX = 64 };

static bool is_plural(const struct kube_guard_check *c, const char *plural)
{
    return strcmp(c->write->kind->plural, plural) == 0;
}

/* -- What is only for garbage collection -- */

static void forget_gc_fields(struct json_node *object)
{
    static const char *const names[] = {"ownerReferences", "finalizers", "managedFields"};
    struct json_node *metadata = json_node_named(object, "metadata");
    for (size_t i = 0; metadata && i < COUNT_OF(names); i++) {
        struct json_node *field = json_node_named(metadata, names[i]);
        if (field)
            json_node_remove(metadata, field);
    }
}

/* Only these fields differ. The trees are read for this check alone. */
static bool is_for_gc(struct kube_guard_check *c)
{
    if (!c->old)
        return false;
    forget_gc_fields(c->old);
    forget_gc_fields(c->object);
    return json_node_equal(c->old, c->object);
}

/* -- Refusals -- */

/* Sorted, as in Kubernetes. */
static enum status append_rules(struct kube_guard_check *c, struct kube_rules *missing,
                                struct buf *to)
{
    kube_rules_compact(&c->arena, missing);
    size_t count = size_min(missing->count, SHOWN_MAX);
    struct slice *texts = arena_calloc(&c->arena, count + 1, sizeof(*texts));
    if (!texts)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++) {
        AUTO(buf_fini) struct buf text = {0};
        TRY(kube_rule_write(&missing->items[i], &text));
        TRY(arena_dup(&c->arena, buf_slice(&text), &texts[i]));
    }
    slices_sort(texts, count);
    for (size_t i = 0; i < count; i++) {
        if (i && slice_equal(texts[i], texts[i - 1]))
            continue;
        TRY(buf_append_text(to, i ? "\n" : ""));
        TRY(buf_append(to, texts[i]));
    }
    return ST_OK;
}

/* user "x" (groups=["a" "b"]) is attempting to grant … */
static enum status append_user(const struct kube_user_info *user, struct buf *to)
{
    TRY(buf_append_text(to, "user \""));
    TRY(go_escape(user->name, to));
    TRY(buf_append_text(to, "\" (groups=["));
    for (size_t i = 0; i < user->groups.count; i++) {
        TRY(buf_append_text(to, i ? " \"" : "\""));
        TRY(go_escape(user->groups.items[i], to));
        TRY(buf_append_text(to, "\""));
    }
    return buf_append_text(to, "]) is attempting to grant RBAC permissions not currently held:\n");
}

static enum status append_head(const struct kube_guard_check *c, struct buf *to)
{
    TRY(buf_append_format(to, "%s." GROUP " ", c->write->kind->plural));
    if (c->name.len) {
        TRY(buf_append_text(to, "\""));
        TRY(go_escape(c->name, to));
        TRY(buf_append_text(to, "\" "));
    }
    return buf_append_text(to, "is forbidden: ");
}

/* The texts outlive the check. */
static bool forbid(struct kube_guard_check *c, struct buf *text)
{
    struct kube_status *status = c->write->status;
    struct slice message, name;
    if (arena_dup(c->write->arena, buf_slice(text), &message) != ST_OK ||
        arena_dup(c->write->arena, c->name, &name) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    (void)kube_fail(status, KUBE_FORBIDDEN, "%s", "");
    status->long_message = message;
    status->group = slice_from_text(c->write->kind->group);
    status->kind = slice_from_text(c->write->kind->plural);
    status->name = name;
    return false;
}

static bool forbid_text(struct kube_guard_check *c, const char *why)
{
    AUTO(buf_fini) struct buf text = {0};
    if (append_head(c, &text) != ST_OK || buf_append_text(&text, why) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return forbid(c, &text);
}

static bool forbid_rules(struct kube_guard_check *c, struct kube_rules *missing, const char *reason)
{
    AUTO(buf_fini) struct buf text = {0};
    if (append_head(c, &text) != ST_OK || append_user(c->write->user, &text) != ST_OK ||
        append_rules(c, missing, &text) != ST_OK ||
        (*reason && buf_append_format(&text, "; resolution errors: [%s]", reason) != ST_OK))
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return forbid(c, &text);
}

/* -- Checks -- */

#define TOO_MANY \
    "there are too many rules to compare with those of the user: use several smaller roles"

/* The user has all of these itself. */
static bool covers(struct kube_guard_check *c, const struct kube_rules *wanted)
{
    struct kube_rules owned, missing;
    char reason[KUBE_RBAC_REASON_BYTES];
    if (!kube_rbac_rules(c->write->rbac, &c->arena, c->write->user, c->write->namespace, &owned,
                         reason) ||
        !kube_rules_missing(&c->arena, &owned, wanted, &missing))
        return arena_ran_out(&c->arena) ? kube_fail_engine(c->write->status, ST_NOMEM)
                                        : forbid_text(c, TOO_MANY);
    return !missing.count || forbid_rules(c, &missing, reason);
}

static bool may(struct kube_guard_check *c, const char *verb, struct slice resource,
                struct slice name)
{
    char reason[KUBE_RBAC_REASON_BYTES];
    struct kube_attributes attributes = {
        .of_resource = true,
        .verb = slice_from_text(verb),
        .group = SLICE_LITERAL(GROUP),
        .resource = resource,
        .namespace = c->write->namespace,
        .name = name,
    };
    return kube_guard_may(c, &attributes, reason);
}

static bool aggregates(const struct json_node *object)
{
    const struct json_node *list = json_node_path(object, "aggregationRule.clusterRoleSelectors");
    return list && list->count;
}

/* An aggregation can gather anything. */
static bool check_aggregation(struct kube_guard_check *c)
{
    static const struct slice all = {(const uint8_t *)"*", 1};
    const struct kube_texts star = {&all, 1};
    const struct kube_rule every[] = {{.verbs = star, .groups = star, .resources = star},
                                      {.verbs = star, .urls = star}};
    if (!is_plural(c, "clusterroles") || (!aggregates(c->object) && !aggregates(c->old)))
        return true;
    if (covers(c, &(struct kube_rules){every, COUNT_OF(every)}))
        return true;
    return forbid_text(c, "must have cluster-admin privileges to use the aggregationRule");
}

static bool check_role(struct kube_guard_check *c)
{
    struct kube_rules wanted;
    if (may(c, "escalate", slice_from_text(c->write->kind->plural), c->write->name))
        return true;
    kube_rules_read(&c->arena, json_node_named(c->object, "rules"), &wanted);
    return covers(c, &wanted) && check_aggregation(c);
}

/* As in Kubernetes, it is the name of the role with the resource of the binding. */
static bool role_missing(struct kube_guard_check *c, struct slice name)
{
    struct slice copy;
    if (arena_dup(c->write->arena, name, &copy) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return kube_fail_not_found(c->write->status, SLICE_LITERAL(GROUP),
                               slice_from_text(c->write->kind->plural), copy);
}

static bool check_binding(struct kube_guard_check *c)
{
    const struct json_node *ref = json_node_named(c->object, "roleRef");
    struct slice kind = kube_guard_text(c, ref, "kind"), name = kube_guard_text(c, ref, "name");
    bool cluster = slice_is(kind, "ClusterRole");
    struct kube_rules wanted;
    char reason[KUBE_RBAC_REASON_BYTES];
    if (may(c, "bind", cluster ? SLICE_LITERAL("clusterroles") : SLICE_LITERAL("roles"), name))
        return true;
    if (!kube_rbac_role_rules(c->write->rbac, &c->arena, c->write->user, kind, name,
                              c->write->namespace, &wanted, reason))
        return wanted.count ? forbid_text(c, TOO_MANY) : role_missing(c, name);
    return covers(c, &wanted);
}

/* -- The whole -- */

bool kube_escalation_check(struct kube_guard_check *c)
{
    if (is_for_gc(c))
        return true;
    return is_plural(c, "roles") || is_plural(c, "clusterroles") ? check_role(c) : check_binding(c);
}
