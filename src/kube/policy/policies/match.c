#include "kube/policy/policies/match.h"

#include "kube/types/object/label_match.h"

enum { TEXTS_MAX = 10000 };

/* -- Reading -- */

static unsigned read_operations(const struct json_node *list)
{
    static const struct {
        const char *name;
        unsigned bits;
    } rows[] = {
        {"*", KUBE_MATCH_ALL},           {"CREATE", KUBE_MATCH_CREATE},
        {"UPDATE", KUBE_MATCH_UPDATE},   {"DELETE", KUBE_MATCH_DELETE},
        {"CONNECT", KUBE_MATCH_CONNECT},
    };
    unsigned bits = 0;
    for (const struct json_node *item = json_node_items(list); item; item = item->next)
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            if (json_node_is_text(item, rows[i].name))
                bits |= rows[i].bits;
    return bits;
}

static bool read_rule(struct arena *arena, const struct json_node *rule, struct kube_match_rule *to)
{
    const struct json_node *scope = json_node_named(rule, "scope");
    to->operations = read_operations(json_node_named(rule, "operations"));
    to->scope = json_node_is_text(scope, "Namespaced") ? KUBE_SCOPE_NAMESPACED
                : json_node_is_text(scope, "Cluster")  ? KUBE_SCOPE_CLUSTER
                                                       : KUBE_SCOPE_ALL;
    return kube_texts_read(arena, json_node_named(rule, "apiGroups"), TEXTS_MAX, &to->groups) &&
           kube_texts_read(arena, json_node_named(rule, "apiVersions"), TEXTS_MAX, &to->versions) &&
           kube_texts_read(arena, json_node_named(rule, "resources"), TEXTS_MAX, &to->resources) &&
           kube_texts_read(arena, json_node_named(rule, "resourceNames"), TEXTS_MAX, &to->names);
}

static bool read_rules(struct arena *arena, const struct json_node *list,
                       struct kube_match_rules *to)
{
    const struct json_node *rule = json_node_items(list);
    if (!rule)
        return true;
    to->items = arena_calloc(arena, list->count, sizeof(*to->items));
    for (; to->items && rule; rule = rule->next)
        if (!read_rule(arena, rule, &to->items[to->count++]))
            return false;
    return to->items;
}

const struct json_node *kube_match_keep(struct arena *arena, const struct json_node *node)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice copy;
    struct json_node *tree;
    struct error ignored;
    if (!node || json_tree_write(node, &text) != ST_OK ||
        arena_dup(arena, buf_slice(&text), &copy) != ST_OK ||
        json_tree_read(arena, copy, &tree, &ignored) != ST_OK)
        return NULL;
    return tree;
}

/* NULL: it selects everything. */
static const struct json_node *read_selector(const struct json_node *selector)
{
    const struct json_node *labels = json_node_named(selector, "matchLabels");
    const struct json_node *expressions = json_node_named(selector, "matchExpressions");
    return (labels && labels->count) || (expressions && expressions->count) ? selector : NULL;
}

static void begin_match(const struct json_node *match, struct kube_match *to)
{
    *to = (struct kube_match){0};
    to->exact = json_node_text_is(match, "matchPolicy", "Exact");
    to->namespace_selector = read_selector(json_node_named(match, "namespaceSelector"));
    to->object_selector = read_selector(json_node_named(match, "objectSelector"));
}

bool kube_match_read_webhook(struct arena *arena, const struct json_node *webhook,
                             struct kube_match *to)
{
    const struct json_node *rules = json_node_named(webhook, "rules");
    begin_match(webhook, to);
    to->never = !json_node_items(rules);
    return read_rules(arena, rules, &to->rules);
}

bool kube_match_read(struct arena *arena, const struct json_node *match, struct kube_match *to)
{
    begin_match(match, to);
    return read_rules(arena, json_node_named(match, "resourceRules"), &to->rules) &&
           read_rules(arena, json_node_named(match, "excludeResourceRules"), &to->excludes);
}

/* -- Rules -- */

static bool has(const struct kube_texts *texts, const char *wanted)
{
    for (size_t i = 0; i < texts->count; i++)
        if (slice_is(texts->items[i], "*") || slice_is(texts->items[i], wanted))
            return true;
    return false;
}

/* "pods" is without subresources, "pods/status" is one of them, and a star is any. */
static bool has_resource(const struct kube_texts *texts, const char *plural,
                         struct slice subresource)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct slice sub = texts->items[i], resource = slice_cut(&sub, '/');
        if ((slice_is(resource, "*") || slice_is(resource, plural)) &&
            (slice_is(sub, "*") || slice_equal(sub, subresource)))
            return true;
    }
    return false;
}

static bool is_in_scope(const struct kube_match_rule *rule,
                        const struct kube_match_request *request)
{
    bool namespaced = request->namespace.len && !kube_kind_is(request->kind, "", "namespaces");
    return rule->scope == KUBE_SCOPE_ALL || (rule->scope == KUBE_SCOPE_NAMESPACED) == namespaced;
}

static bool has_name(const struct kube_match_rule *rule, const struct kube_match_request *request)
{
    return !rule->names.count || kube_texts_have(&rule->names, request->name);
}

static bool rule_matches(const struct kube_match_rule *rule, const struct kube_kind *kind,
                         const struct kube_match_request *request, bool names)
{
    return rule->operations & request->operation && is_in_scope(rule, request) &&
           has(&rule->groups, kind->group) && has(&rule->versions, kind->version) &&
           has_resource(&rule->resources, kind->plural, request->subresource) &&
           (!names || has_name(rule, request));
}

static bool rules_match(const struct kube_match *match, const struct kube_match_rules *rules,
                        const struct kube_match_request *request, bool names,
                        const struct kube_kind **ret_kind)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rule_matches(&rules->items[i], request->kind, request, names)) {
            *ret_kind = request->kind;
            return true;
        }
    for (size_t i = 0; i < rules->count && !match->exact; i++)
        for (size_t n = 0; n < request->equivalent_count; n++)
            if (rule_matches(&rules->items[i], request->equivalents[n], request, names)) {
                *ret_kind = request->equivalents[n];
                return true;
            }
    return false;
}

bool kube_match_is_of_any_resource(const struct kube_match *match)
{
    for (size_t i = 0; i < match->rules.count; i++)
        for (size_t n = 0; n < match->rules.items[i].resources.count; n++) {
            struct slice rest = match->rules.items[i].resources.items[n];
            if (slice_is(slice_cut(&rest, '/'), "*"))
                return true;
        }
    return !match->rules.count && !match->never;
}

bool kube_match_resource(const struct kube_match *match, const struct kube_match_request *request,
                         bool names, const struct kube_kind **ret_kind)
{
    const struct kube_kind *ignored;
    *ret_kind = request->kind;
    if (match->never)
        return false;
    /* What a rule with names excludes is known with the name. */
    if (names && rules_match(match, &match->excludes, request, true, &ignored))
        return false;
    return !match->rules.count || rules_match(match, &match->rules, request, names, ret_kind);
}

/* -- Selectors -- */

bool kube_match_namespace(const struct kube_match *match, const struct json_node *namespace_object)
{
    return !match->namespace_selector ||
           kube_label_match(match->namespace_selector,
                            json_node_path(namespace_object, "metadata.labels"));
}

bool kube_match_object(const struct kube_match *match, const struct json_node *object,
                       const struct json_node *old)
{
    const struct json_node *selector = match->object_selector;
    return !selector ||
           (object && kube_label_match(selector, json_node_path(object, "metadata.labels"))) ||
           (old && kube_label_match(selector, json_node_path(old, "metadata.labels")));
}
