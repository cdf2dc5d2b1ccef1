#include "kube/policy/access/guard.h"

#define RBAC "rbac.authorization.k8s.io"
#define ADMISSION "admissionregistration.k8s.io"

/* Enough for two objects of the largest size with the shortest items, and their rules. */
enum { TREE_BYTES_MAX = 128 << 20 };

static const struct guard {
    const char *group, *plural, *subresource;
    kube_guard_fn *check;
    const char *policies; /* for a binding of policies: what it binds */
} guards[] = {
    {RBAC, "roles", "", kube_escalation_check, NULL},
    {RBAC, "clusterroles", "", kube_escalation_check, NULL},
    {RBAC, "rolebindings", "", kube_escalation_check, NULL},
    {RBAC, "clusterrolebindings", "", kube_escalation_check, NULL},
    {ADMISSION, "validatingadmissionpolicies", "", kube_param_check, NULL},
    {ADMISSION, "mutatingadmissionpolicies", "", kube_param_check, NULL},
    {ADMISSION, "validatingadmissionpolicybindings", "", kube_param_check,
     "validatingadmissionpolicies"},
    {ADMISSION, "mutatingadmissionpolicybindings", "", kube_param_check,
     "mutatingadmissionpolicies"},
    {"resource.k8s.io", "resourceclaims", "status", kube_device_check, NULL},
};

static const struct guard *guard_of(const struct kube_kind *kind, struct slice subresource)
{
    for (size_t i = 0; i < COUNT_OF(guards); i++) {
        if (strcmp(kind->group, guards[i].group) == 0 &&
            strcmp(kind->plural, guards[i].plural) == 0 &&
            slice_is(subresource, guards[i].subresource))
            return &guards[i];
    }
    return NULL;
}

bool kube_guard_applies(const struct kube_user_info *user, const struct kube_kind *kind,
                        struct slice subresource)
{
    return guard_of(kind, subresource) && !kube_texts_have(&user->groups, KUBE_GROUP_MASTERS);
}

bool kube_guard_applies_to_owners(const struct kube_user_info *user, const struct kube_kind *kind,
                                  struct slice subresource)
{
    return !(kube_kind_is(kind, "", "pods") && slice_is(subresource, "status")) &&
           !kube_texts_have(&user->groups, KUBE_GROUP_MASTERS);
}

/* -- For the checks -- */

struct slice kube_guard_text(struct kube_guard_check *c, const struct json_node *from,
                             const char *name)
{
    struct slice text = SLICE_EMPTY;
    (void)!json_node_text(json_node_named(from, name), &c->arena, &text);
    return text;
}

bool kube_guard_is_set(const struct json_node *node)
{
    return json_node_is_set(node) && !(node->type == JSON_TYPE_ARRAY && !node->count);
}

bool kube_guard_is_same(const struct json_node *a, const struct json_node *b)
{
    bool both = kube_guard_is_set(a) && kube_guard_is_set(b);
    return both ? json_node_equal(a, b) : kube_guard_is_set(a) == kube_guard_is_set(b);
}

bool kube_guard_may(struct kube_guard_check *c, const struct kube_attributes *attributes,
                    char reason[KUBE_RBAC_REASON_BYTES])
{
    return kube_rbac_allows(c->write->rbac, c->write->user, attributes, reason);
}

/* -- The whole -- */

static bool read_tree(struct kube_guard_check *c, struct slice text, struct json_node **ret_tree)
{
    struct error ignored;
    *ret_tree = NULL;
    if (!text.len)
        return true;
    enum status status = json_tree_read(&c->arena, text, ret_tree, &ignored);
    return status == ST_OK || kube_fail_engine(c->write->status, status);
}

static void check_init(struct kube_guard_check *c, const struct kube_guarded_write *write)
{
    *c = (struct kube_guard_check){.write = write};
    arena_init(&c->arena, NULL, 0, TREE_BYTES_MAX);
    arena_charge(&c->arena, write->arena->account);
}

enum status kube_guard_needs(const struct kube_guarded_write *write, struct slice value,
                             struct slice *ret_key)
{
    const struct guard *guard = guard_of(write->kind, write->subresource);
    const struct kube_kind *policies =
        guard && guard->policies ? kube_builtin_find(slice_from_text(guard->group),
                                                     slice_from_text(write->kind->version),
                                                     slice_from_text(guard->policies))
                                 : NULL;
    struct kube_guard_check c;
    struct error ignored;
    *ret_key = SLICE_EMPTY;
    if (!policies)
        return ST_OK;
    check_init(&c, write);
    enum status status = json_tree_read(&c.arena, value, &c.object, &ignored);
    struct slice name = SLICE_EMPTY;
    if (status == ST_OK && json_node_path(c.object, "spec.paramRef"))
        name = kube_guard_text(&c, json_node_named(c.object, "spec"), "policyName");
    if (name.len)
        status = kube_key_make(write->arena, policies->storage_prefix, SLICE_EMPTY, name, ret_key);
    arena_fini(&c.arena);
    return status;
}

bool kube_guard_check(const struct kube_guarded_write *write, struct slice value, struct slice old)
{
    struct kube_guard_check c;
    kube_rbac_begin(write->rbac, write->owner);
    if (!kube_rbac_ready(write->rbac))
        return kube_fail_later(
            write->status, SLICE_LITERAL("roles and bindings are being read, please try again"));
    check_init(&c, write);
    const struct guard *guard = guard_of(write->kind, write->subresource);
    bool fine = read_tree(&c, value, &c.object) && read_tree(&c, old, &c.old);
    if (fine) {
        c.name = kube_guard_text(&c, json_node_named(c.object, "metadata"), "name");
        fine = (!guard || guard->check(&c)) && (!write->owned || kube_owner_check(&c));
    }
    if (fine && arena_ran_out(&c.arena))
        fine = kube_fail_engine(write->status, ST_NOMEM);
    arena_fini(&c.arena);
    return fine;
}
