/*
 * OwnerReferencesPermissionEnforcement: who changes the owners of an object could have it deleted
 * by the garbage collector, so its writer must be able to delete it; and a new owner whose deletion
 * it blocks must be one whose finalizers the writer may set. Off by default, as in Kubernetes.
 */
#include "kube/policy/access/guard.h"
#include "kube/types/go_text.h"

/* -- Owners -- */

static const struct json_node *owners_of(const struct json_node *object)
{
    return json_node_path(object, "metadata.ownerReferences");
}

/* Members that are null or "" are the same as none. */
static bool same_owner(const struct json_node *a, const struct json_node *b)
{
    static const char *const members[] = {"apiVersion", "kind",       "name",
                                          "uid",        "controller", "blockOwnerDeletion"};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json_node *m = json_node_named(a, members[i]);
        const struct json_node *n = json_node_named(b, members[i]);
        bool has_m = json_node_is_set(m) && !json_node_is_text(m, "");
        bool has_n = json_node_is_set(n) && !json_node_is_text(n, "");
        if (has_m != has_n || (has_m && !json_node_equal(m, n)))
            return false;
    }
    return true;
}

bool kube_owners_change(const struct json_node *object, const struct json_node *old)
{
    const struct json_node *now = json_node_items(owners_of(object));
    const struct json_node *had = json_node_items(owners_of(old));
    for (; now && had; now = now->next, had = had->next)
        if (!same_owner(now, had))
            return true;
    return now || had;
}

static bool blocks(const struct json_node *owner)
{
    return json_node_is_true(json_node_named(owner, "blockOwnerDeletion"));
}

/* Whether the object already had this owner, and blocked its deletion. The last one of a uid
 * counts. */
static bool blocked(const struct json_node *old, const struct json_node *owner)
{
    const struct json_node *uid = json_node_named(owner, "uid"), *found = NULL;
    for (const struct json_node *had = json_node_items(owners_of(old)); had; had = had->next)
        if (kube_guard_is_same(uid, json_node_named(had, "uid")))
            found = had;
    return blocks(found);
}

/* -- Refusals -- */

static bool forbid(struct kube_guard_check *c, const struct buf *why)
{
    struct kube_status *status = c->write->status;
    struct slice name, message;
    AUTO(buf_fini) struct buf text = {0};
    if (arena_dup(c->write->arena, c->name, &name) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    (void)kube_fail_forbidden(status, slice_from_text(c->write->kind->group),
                              slice_from_text(c->write->kind->plural), name, "");
    if (buf_append_text(&text, status->message) != ST_OK ||
        buf_append(&text, buf_slice(why)) != ST_OK ||
        arena_dup(c->write->arena, buf_slice(&text), &message) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    status->long_message = message;
    return false;
}

/* Kubernetes also prints an error of the decision, of which there is none. */
static bool forbid_because(struct kube_guard_check *c, const char *what, const char *reason)
{
    AUTO(buf_fini) struct buf why = {0};
    return buf_append_format(&why, "%s: %s, <nil>", what, reason) == ST_OK
               ? forbid(c, &why)
               : kube_fail_engine(c->write->status, ST_NOMEM);
}

static bool forbid_unknown(struct kube_guard_check *c, struct slice api, struct slice kind,
                           bool parsed)
{
    AUTO(buf_fini) struct buf why = {0};
    enum status status = buf_append_format(
        &why,
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
        "%.*s Kind %.*s: %s",
        SLICE_ARGS(api), SLICE_ARGS(kind),
        parsed ? "no matches for kind " : "unexpected GroupVersion string: ");
    if (status == ST_OK && !parsed)
        status = buf_append(&why, api);
    if (status == ST_OK && parsed)
        status = go_quote(kind, &why);
    if (status == ST_OK && parsed)
        status = buf_append_text(&why, " in version ");
    if (status == ST_OK && parsed)
        status = go_quote(api, &why);
    return status == ST_OK ? forbid(c, &why) : kube_fail_engine(c->write->status, ST_NOMEM);
}

/* -- Permissions -- */

/* The namespace of a namespace is itself. */
static struct slice namespace_of(const struct kube_guard_check *c)
{
    return kube_kind_is(c->write->kind, "", "namespaces") ? c->name : c->write->namespace;
}

static bool may_delete(struct kube_guard_check *c)
{
    char reason[KUBE_RBAC_REASON_BYTES];
    struct kube_attributes attributes = {
        .of_resource = true,
        .verb = SLICE_LITERAL("delete"),
        .group = slice_from_text(c->write->kind->group),
        .resource = slice_from_text(c->write->kind->plural),
        .subresource = c->write->subresource,
        .namespace = namespace_of(c),
        .name = c->name,
    };
    return kube_guard_may(c, &attributes, reason) ||
           forbid_because(c, "cannot set an ownerRef on a resource you can't delete", reason);
}

static struct kube_attributes finalizers_of(struct slice group, struct slice resource,
                                            struct slice namespace, struct slice name)
{
    return (struct kube_attributes){
        .of_resource = true,
        .verb = SLICE_LITERAL("update"),
        .group = group,
        .resource = resource,
        .subresource = SLICE_LITERAL("finalizers"),
        .namespace = namespace,
        .name = name,
    };
}

/* The user must have this right to every resource of the kind: more than one may be served. */
static bool may_finalize(struct kube_guard_check *c, const struct json_node *owner)
{
    char reason[KUBE_RBAC_REASON_BYTES];
    struct slice api = kube_guard_text(c, owner, "apiVersion"), version = api;
    struct slice kind = kube_guard_text(c, owner, "kind");
    struct slice group = slice_cut(&version, '/');
    bool parsed = !version.len || !memchr(version.ptr, '/', version.len), found = false;
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(c->write->kinds, &count);
    /* Without a slash there is only the version. */
    if (group.len == api.len) {
        version = api;
        group = SLICE_EMPTY;
    }
    for (size_t i = 0; parsed && i < count; i++) {
        if (!slice_is(group, rows[i]->group) || !slice_is(version, rows[i]->version) ||
            !slice_is(kind, rows[i]->kind))
            continue;
        /* An owner in a namespace is in that of its dependents. */
        bool inside = rows[i]->flags & KUBE_NAMESPACED;
        struct kube_attributes attributes = finalizers_of(group, slice_from_text(rows[i]->plural),
                                                          inside ? namespace_of(c) : SLICE_EMPTY,
                                                          kube_guard_text(c, owner, "name"));
        if (!kube_guard_may(c, &attributes, reason))
            return forbid_because(c,
                                  "cannot set blockOwnerDeletion if an ownerReference refers to a "
                                  "resource you can't set finalizers on",
                                  reason);
        found = true;
    }
    return found || forbid_unknown(c, api, kind, parsed);
}

bool kube_owner_check(struct kube_guard_check *c)
{
    struct slice all = SLICE_LITERAL("*");
    struct kube_attributes anything = finalizers_of(all, all, SLICE_EMPTY, all);
    char reason[KUBE_RBAC_REASON_BYTES];
    bool known = false;
    /* Who creates an object could as well not create it. */
    if (c->old && !may_delete(c))
        return false;
    for (const struct json_node *owner = json_node_items(owners_of(c->object)); owner;
         owner = owner->next) {
        if (!blocks(owner) || blocked(c->old, owner))
            continue;
        if (!known && kube_guard_may(c, &anything, reason))
            return true;
        known = true;
        if (!may_finalize(c, owner))
            return false;
    }
    return true;
}
