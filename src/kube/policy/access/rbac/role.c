#include "kube/policy/access/rbac/role.h"

/* One matchExpressions entry as a selector's text; false: it is not valid. */
static bool append_expression(struct arena *arena, const struct json_node *node, struct buf *to)
{
    struct slice key = kube_text_copy(arena, node, "key"),
                 op = kube_text_copy(arena, node, "operator");
    struct kube_texts values;
    bool in = slice_is(op, "In"), not_in = slice_is(op, "NotIn");
    bool exists = slice_is(op, "Exists");
    bool absent = slice_is(op, "DoesNotExist");
    if (!kube_texts_read(arena, json_node_named(node, "values"), LABEL_VALUES_MAX, &values) ||
        !(in || not_in || exists || absent))
        return false;
    if (exists || absent)
        return buf_append_format(to, "%s%.*s,", absent ? "!" : "", SLICE_ARGS(key)) == ST_OK;
    if (buf_append_format(to, "%.*s %s (", SLICE_ARGS(key), in ? "in" : "notin") != ST_OK)
        return false;
    for (size_t i = 0; i < values.count; i++)
        if (buf_append_format(to, "%s%.*s", i ? "," : "", SLICE_ARGS(values.items[i])) != ST_OK)
            return false;
    return buf_append_text(to, "),") == ST_OK;
}

static bool append_labels(struct arena *arena, const struct json_node *labels, struct buf *to)
{
    for (const struct json_node *label = labels ? labels->first : NULL; label;
         label = label->next) {
        struct slice value;
        if (json_node_text(label, arena, &value) != ST_OK ||
            buf_append_format(to, "%.*s=%.*s,", SLICE_ARGS(label->key), SLICE_ARGS(value)) != ST_OK)
            return false;
    }
    return true;
}

/* A LabelSelector as the text of one. NULL: it is not valid, or exceeds the limits. */
static const struct label_selector *read_selector(struct arena *arena, const struct json_node *node)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct json_node *expressions = json_node_named(node, "matchExpressions");
    const struct label_selector *selector;
    struct error ignored;
    struct slice copy;
    if (!append_labels(arena, json_node_named(node, "matchLabels"), &text))
        return NULL;
    for (const struct json_node *e = expressions ? expressions->first : NULL; e; e = e->next)
        if (!append_expression(arena, e, &text))
            return NULL;
    struct slice whole = slice_sub(buf_slice(&text), 0, text.len ? text.len - 1 : 0);
    if (arena_dup(arena, whole, &copy) != ST_OK ||
        label_selector_parse(arena, copy, &selector, &ignored) != ST_OK)
        return NULL;
    return selector;
}

static bool read_aggregation(struct arena *arena, const struct json_node *object,
                             struct kube_role *role)
{
    const struct json_node *list = json_node_path(object, "aggregationRule.clusterRoleSelectors");
    if (!list || list->type != JSON_TYPE_ARRAY || !list->count)
        return true;
    if (list->count > KUBE_ROLE_SELECTORS_MAX)
        return false;
    role->aggregates = true;
    role->selectors = arena_calloc(arena, list->count, sizeof(*role->selectors));
    for (const struct json_node *item = list->first; role->selectors && item; item = item->next) {
        const struct label_selector *selector = read_selector(arena, item);
        if (!selector)
            return false; /* as in Kubernetes, the other selectors have no effect either */
        role->selectors[role->selector_count++] = selector;
    }
    return true;
}

static bool read_labels(struct arena *arena, const struct json_node *object, struct kube_role *role)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct json_node *labels = json_node_path(object, "metadata.labels");
    if (!labels || labels->type != JSON_TYPE_OBJECT)
        return true;
    return json_tree_write(labels, &text) == ST_OK &&
           arena_dup(arena, buf_slice(&text), &role->labels) == ST_OK;
}

const void *kube_role_read(struct arena *arena, const struct json_node *object)
{
    struct kube_role *role = arena_calloc(arena, 1, sizeof(*role));
    if (role)
        kube_rules_read(arena, json_node_named(object, "rules"), &role->rules);
    return role;
}

const void *kube_cluster_role_read(struct arena *arena, const struct json_node *object)
{
    struct kube_role *role = arena_calloc(arena, 1, sizeof(*role));
    if (!role || !read_aggregation(arena, object, role) || !read_labels(arena, object, role))
        return NULL;
    kube_rules_read(arena, json_node_named(object, "rules"), &role->rules);
    return role;
}

bool kube_role_selects(const struct kube_role *role, const struct kube_role *other)
{
    for (size_t i = 0; i < role->selector_count; i++)
        if (label_selector_matches(role->selectors[i], other->labels))
            return true;
    return false;
}
