#include "kube/access/escalation.h"

#include "codec/json/field_fault.h"

#include <stdlib.h>

#define GROUP "rbac.authorization.k8s.io"

/* Enough for two objects of the largest size with the shortest items, and their rules. */
enum { TREE_BYTES_MAX = 128 << 20, SHOWN_MAX = 64 };

/* What is needed for one check; all in its own arena. */
struct check {
    const struct kube_escalation *write;
    struct arena arena;
    struct json_node *object, *old; /* old NULL: it is new */
    struct slice name;
};

bool kube_escalation_applies(const struct kube_user_info *user, const struct kube_kind *kind)
{
    return strcmp(kind->group, GROUP) == 0 && !kube_texts_have(&user->groups, KUBE_GROUP_MASTERS);
}

static bool is_plural(const struct check *c, const char *plural)
{
    return strcmp(c->write->kind->plural, plural) == 0;
}

static struct slice text_of(struct check *c, const struct json_node *from, const char *name)
{
    struct slice text = SLICE_EMPTY;
    (void)!json_node_text(json_node_named(from, name), &c->arena, &text);
    return text;
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
static bool is_for_gc(struct check *c)
{
    if (!c->old)
        return false;
    forget_gc_fields(c->old);
    forget_gc_fields(c->object);
    return json_node_equal(c->old, c->object);
}

/* -- Refusals -- */

static int compare_texts(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Sorted, as in Kubernetes. */
static enum status append_rules(struct check *c, struct kube_rules *missing, struct buf *to)
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
    qsort(texts, count, sizeof(*texts), compare_texts);
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

static enum status append_head(const struct check *c, struct buf *to)
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
static bool forbid(struct check *c, struct buf *text)
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

static bool forbid_text(struct check *c, const char *why)
{
    AUTO(buf_fini) struct buf text = {0};
    if (append_head(c, &text) != ST_OK || buf_append_text(&text, why) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return forbid(c, &text);
}

static bool forbid_rules(struct check *c, struct kube_rules *missing, const char *reason)
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
static bool covers(struct check *c, const struct kube_rules *wanted)
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

static bool may(struct check *c, const char *verb, struct slice resource, struct slice name)
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
    return kube_rbac_allows(c->write->rbac, c->write->user, &attributes, reason);
}

static bool aggregates(const struct json_node *object)
{
    const struct json_node *list = json_node_path(object, "aggregationRule.clusterRoleSelectors");
    return list && list->count;
}

/* An aggregation can gather anything. */
static bool check_aggregation(struct check *c)
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

static bool check_role(struct check *c)
{
    struct kube_rules wanted;
    if (may(c, "escalate", slice_from_text(c->write->kind->plural), c->write->name))
        return true;
    kube_rules_read(&c->arena, json_node_named(c->object, "rules"), &wanted);
    return covers(c, &wanted) && check_aggregation(c);
}

/* As in Kubernetes, it is the name of the role with the resource of the binding. */
static bool role_missing(struct check *c, struct slice name)
{
    struct slice copy;
    if (arena_dup(c->write->arena, name, &copy) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return kube_fail_not_found(c->write->status, SLICE_LITERAL(GROUP),
                               slice_from_text(c->write->kind->plural), copy);
}

static bool check_binding(struct check *c)
{
    const struct json_node *ref = json_node_named(c->object, "roleRef");
    struct slice kind = text_of(c, ref, "kind"), name = text_of(c, ref, "name");
    bool cluster = slice_equal(kind, SLICE_LITERAL("ClusterRole"));
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

static bool read_tree(struct check *c, struct slice text, struct json_node **ret_tree)
{
    struct error ignored;
    *ret_tree = NULL;
    if (!text.len)
        return true;
    enum status status = json_tree_read(&c->arena, text, ret_tree, &ignored);
    return status == ST_OK || kube_fail_engine(c->write->status, status);
}

static bool check(struct check *c, struct slice value, struct slice old)
{
    kube_rbac_begin(c->write->rbac, c->write->owner);
    if (!kube_rbac_ready(c->write->rbac))
        return kube_fail_later(
            c->write->status, SLICE_LITERAL("roles and bindings are being read, please try again"));
    if (!read_tree(c, value, &c->object) || !read_tree(c, old, &c->old))
        return false;
    c->name = text_of(c, json_node_named(c->object, "metadata"), "name");
    if (is_for_gc(c))
        return true;
    return is_plural(c, "roles") || is_plural(c, "clusterroles") ? check_role(c) : check_binding(c);
}

bool kube_escalation_check(const struct kube_escalation *write, struct slice value,
                           struct slice old)
{
    struct check c = {.write = write};
    arena_init(&c.arena, NULL, 0, TREE_BYTES_MAX);
    arena_charge(&c.arena, write->arena->account);
    bool fine = check(&c, value, old);
    if (fine && arena_ran_out(&c.arena))
        fine = kube_fail_engine(write->status, ST_NOMEM);
    arena_fini(&c.arena);
    return fine;
}
