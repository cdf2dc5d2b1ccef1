/*
 * Checks of writes to admission policies and their bindings, as in Kubernetes: a policy can show
 * its parameters in the refusals that it causes, so its writer must be able to read them. A policy
 * names a kind, of which all objects must be readable; a binding names objects of the policy's
 * kind.
 */
#include "kube/policy/access/guard.h"
#include "kube/types/field_errors.h"

/* The kind of the parameters; "*" where it is not known. */
struct param_kind {
    struct slice group, version, resource;
    const char *unknown; /* why a part is not known; NULL: everything is */
};

static struct slice resource_of(struct kube_guard_check *c, const struct param_kind *of,
                                struct slice kind)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(c->write->kinds, &count);
    for (size_t i = 0; i < count; i++) {
        if (slice_is(of->group, rows[i]->group) && slice_is(of->version, rows[i]->version) &&
            slice_is(kind, rows[i]->kind))
            return slice_from_text(rows[i]->plural);
    }
    return SLICE_EMPTY;
}

static struct param_kind read_kind(struct kube_guard_check *c, const struct json_node *param_kind)
{
    struct slice all = SLICE_LITERAL("*");
    struct slice api = kube_guard_text(c, param_kind, "apiVersion");
    struct param_kind found = {.group = all, .version = all, .resource = all};
    const uint8_t *slash = api.len ? memchr(api.ptr, '/', api.len) : NULL;
    size_t group_len = slash ? (size_t)(slash - api.ptr) : 0;
    if (slash && memchr(slash + 1, '/', api.len - group_len - 1)) {
        found.unknown = "parse";
        return found;
    }
    found.group = slice_sub(api, 0, group_len);
    found.version = slash ? slice_sub(api, group_len + 1, api.len - group_len - 1) : api;
    struct slice resource = resource_of(c, &found, kube_guard_text(c, param_kind, "kind"));
    if (resource.len)
        found.resource = resource;
    else
        found.unknown = "resolve";
    return found;
}

static bool forbid(struct kube_guard_check *c, const char *field, struct buf *why)
{
    struct kube_field_errors errors = {.arena = c->write->arena};
    struct slice name;
    if (arena_dup(c->write->arena, c->name, &name) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    kube_field_errors_add(&errors, "FieldValueForbidden", slice_from_text(field), "Forbidden: %.*s",
                          SLICE_ARGS(buf_slice(why)));
    return kube_fail_field_errors(c->write->status, &errors, slice_from_text(c->write->kind->group),
                                  slice_from_text(c->write->kind->kind), name);
}

static bool check_policy(struct kube_guard_check *c)
{
    AUTO(buf_fini) struct buf why = {0};
    char reason[KUBE_RBAC_REASON_BYTES];
    const struct json_node *param_kind = json_node_path(c->object, "spec.paramKind");
    if (!kube_guard_is_set(param_kind) ||
        (c->old && kube_guard_is_same(param_kind, json_node_path(c->old, "spec.paramKind"))))
        return true;
    struct param_kind of = read_kind(c, param_kind);
    struct kube_attributes attributes = {
        .of_resource = true,
        .verb = SLICE_LITERAL("get"),
        .group = of.group,
        .resource = of.resource,
        .namespace = SLICE_LITERAL("*"),
        .name = SLICE_LITERAL("*"),
    };
    if (kube_guard_may(c, &attributes, reason))
        return true;
    if (buf_append_text(&why, "user ") != ST_OK || kube_user_write(c->write->user, &why) != ST_OK ||
        buf_append_format(
            &why,
            " must have \"get\" permission on all objects of the referenced paramKind "
            "(kind=%.*s, apiVersion=%.*s)",
            SLICE_ARGS(kube_guard_text(c, param_kind, "kind")),
            SLICE_ARGS(kube_guard_text(c, param_kind, "apiVersion"))) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return forbid(c, "spec.paramKind", &why);
}

static enum status explain_binding(struct kube_guard_check *c, const struct param_kind *of,
                                   const struct json_node *param_kind, bool has_policy,
                                   const char *verb, struct buf *to)
{
    if (!has_policy)
        TRY(buf_append_format(
            to, "unable to get policy %.*s to determine minimum required permissions and ",
            SLICE_ARGS(kube_guard_text(c, json_node_named(c->object, "spec"), "policyName"))));
    else if (of->unknown)
        TRY(buf_append_format(to,
                              "unable to %s paramKind &{%.*s %.*s} to determine minimum required "
                              "permissions and ",
                              of->unknown, SLICE_ARGS(kube_guard_text(c, param_kind, "apiVersion")),
                              SLICE_ARGS(kube_guard_text(c, param_kind, "kind"))));
    TRY(buf_append_text(to, "user "));
    TRY(kube_user_write(c->write->user, to));
    TRY(buf_append_format(to, " does not have \"%s\" permission ", verb));
    return buf_append_text(to, has_policy && !of->unknown
                                   ? "on the object referenced by paramRef"
                                   : "for all groups, versions and resources");
}

static bool check_policy_binding(struct kube_guard_check *c)
{
    AUTO(buf_fini) struct buf why = {0};
    struct error ignored;
    struct slice all = SLICE_LITERAL("*");
    struct json_node *policy = NULL;
    char reason[KUBE_RBAC_REASON_BYTES];
    const struct json_node *ref = json_node_path(c->object, "spec.paramRef");
    if (!kube_guard_is_set(ref) ||
        (c->old && kube_guard_is_same(ref, json_node_path(c->old, "spec.paramRef")) &&
         kube_guard_is_same(json_node_path(c->object, "spec.policyName"),
                            json_node_path(c->old, "spec.policyName"))))
        return true;
    if (c->write->policy.len &&
        json_tree_read(&c->arena, c->write->policy, &policy, &ignored) == ST_NOMEM)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    const struct json_node *param_kind = json_node_path(policy, "spec.paramKind");
    struct param_kind of = {.group = all, .version = all, .resource = all};
    if (kube_guard_is_set(param_kind))
        of = read_kind(c, param_kind);
    struct slice name = kube_guard_text(c, ref, "name");
    const char *verb = name.len ? "get" : "list";
    struct kube_attributes attributes = {
        .of_resource = true,
        .verb = slice_from_text(verb),
        .group = of.group,
        .resource = of.resource,
        .namespace = kube_guard_text(c, ref, "namespace"),
        .name = name,
    };
    if (kube_guard_may(c, &attributes, reason))
        return true;
    if (explain_binding(c, &of, param_kind, policy != NULL, verb, &why) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return forbid(c, "spec.paramRef", &why);
}

bool kube_param_check(struct kube_guard_check *c)
{
    size_t len = strlen(c->write->kind->plural);
    bool binds = len > 8 && strcmp(c->write->kind->plural + len - 8, "bindings") == 0;
    return binds ? check_policy_binding(c) : check_policy(c);
}
