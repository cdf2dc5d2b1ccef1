#include "kube/policy/access/rbac/rule.h"

#include "codec/json/field_fault.h"

/* -- Reading -- */

static void read_list(struct arena *arena, const struct json_node *rule, const char *name,
                      struct kube_texts *ret_texts)
{
    (void)!kube_texts_read(arena, json_node_named(rule, name), SIZE_MAX, ret_texts);
}

void kube_rules_read(struct arena *arena, const struct json_node *array,
                     struct kube_rules *ret_rules)
{
    *ret_rules = (struct kube_rules){0};
    if (!array || array->type != JSON_TYPE_ARRAY || !array->count)
        return;
    struct kube_rule *rules = arena_calloc(arena, array->count, sizeof(*rules));
    size_t count = 0;
    if (!rules)
        return;
    for (const struct json_node *item = array->first; item; item = item->next) {
        struct kube_rule *rule = &rules[count++];
        read_list(arena, item, "verbs", &rule->verbs);
        read_list(arena, item, "apiGroups", &rule->groups);
        read_list(arena, item, "resources", &rule->resources);
        read_list(arena, item, "resourceNames", &rule->names);
        read_list(arena, item, "nonResourceURLs", &rule->urls);
    }
    *ret_rules = (struct kube_rules){rules, count};
}

/* -- Deciding -- */

#define ALL SLICE_LITERAL("*")

static bool has(const struct kube_texts *texts, struct slice text)
{
    for (size_t i = 0; i < texts->count; i++)
        if (slice_equal(texts->items[i], ALL) || slice_equal(texts->items[i], text))
            return true;
    return false;
}

/* "pods/log", also as "*" + "/log". */
static bool is_resource(struct slice rule, const struct kube_attributes *a)
{
    struct slice sub = a->subresource;
    if (slice_equal(rule, ALL))
        return true;
    if (!sub.len)
        return slice_equal(rule, a->resource);
    if (rule.len <= sub.len + 1 || rule.ptr[rule.len - sub.len - 1] != '/' ||
        !slice_equal(slice_sub(rule, rule.len - sub.len, sub.len), sub))
        return false;
    struct slice head = slice_sub(rule, 0, rule.len - sub.len - 1);
    return slice_equal(head, a->resource) || slice_equal(head, ALL);
}

static bool has_resource(const struct kube_texts *texts, const struct kube_attributes *a)
{
    for (size_t i = 0; i < texts->count; i++)
        if (is_resource(texts->items[i], a))
            return true;
    return false;
}

static bool url_covers(struct slice rule, struct slice path)
{
    if (slice_equal(rule, path))
        return true;
    if (!rule.len || rule.ptr[rule.len - 1] != '*')
        return false;
    while (rule.len && rule.ptr[rule.len - 1] == '*')
        rule.len--;
    return slice_has_prefix(path, rule);
}

static bool has_url(const struct kube_texts *urls, struct slice path)
{
    for (size_t i = 0; i < urls->count; i++)
        if (url_covers(urls->items[i], path))
            return true;
    return false;
}

bool kube_rule_allows(const struct kube_rule *rule, const struct kube_attributes *a)
{
    if (!has(&rule->verbs, a->verb))
        return false;
    if (!a->of_resource)
        return has_url(&rule->urls, a->path);
    return has(&rule->groups, a->group) && has_resource(&rule->resources, a) &&
           (!rule->names.count || kube_texts_have(&rule->names, a->name));
}

size_t kube_rule_cost(const struct kube_rule *rule)
{
    return 1 + rule->verbs.count + rule->groups.count + rule->resources.count + rule->names.count +
           rule->urls.count;
}

/* -- Escalation -- */

/* One verb on one resource or path. */
struct part {
    const struct slice *verb, *group, *resource, *name, *url;
};

static bool resource_covers(const struct kube_texts *owned, struct slice wanted)
{
    const uint8_t *slash = wanted.len ? memchr(wanted.ptr, '/', wanted.len) : NULL;
    if (has(owned, wanted))
        return true;
    if (!slash)
        return false;
    struct slice tail =
        slice_sub(wanted, (size_t)(slash - wanted.ptr), wanted.len - (size_t)(slash - wanted.ptr));
    for (size_t i = 0; i < owned->count; i++) {
        struct slice item = owned->items[i];
        if (item.len == tail.len + 1 && item.ptr[0] == '*' &&
            slice_equal(slice_sub(item, 1, tail.len), tail))
            return true;
    }
    return false;
}

static bool rule_covers(const struct kube_rule *owned, const struct part *part)
{
    if (!has(&owned->verbs, *part->verb))
        return false;
    if (part->url)
        return has_url(&owned->urls, *part->url) && !owned->names.count;
    return has(&owned->groups, *part->group) &&
           resource_covers(&owned->resources, *part->resource) &&
           (!owned->names.count || (part->name && kube_texts_have(&owned->names, *part->name)));
}

struct search {
    struct arena *arena;
    const struct kube_rules *owned;
    size_t steps;
    struct kube_rule *missing;
    size_t count, capacity;
};

static struct kube_texts one(const struct slice *text)
{
    return (struct kube_texts){text, text ? 1 : 0};
}

static bool add_missing(struct search *s, const struct part *part)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 16;
        struct kube_rule *more = arena_calloc(s->arena, capacity, sizeof(*more));
        if (!more)
            return false;
        if (s->count)
            memcpy(more, s->missing, s->count * sizeof(*more));
        s->missing = more;
        s->capacity = capacity;
    }
    s->missing[s->count++] = (struct kube_rule){
        one(part->verb), one(part->group), one(part->resource), one(part->name), one(part->url)};
    return true;
}

static bool check_part(struct search *s, struct part part)
{
    for (size_t i = 0; i < s->owned->count; i++) {
        s->steps += kube_rule_cost(&s->owned->items[i]);
        if (s->steps > KUBE_RULE_STEPS_MAX)
            return false;
        if (rule_covers(&s->owned->items[i], &part))
            return true;
    }
    return ++s->steps <= KUBE_RULE_STEPS_MAX && add_missing(s, &part);
}

static bool check_names(struct search *s, const struct kube_rule *rule, struct part part)
{
    if (!rule->names.count)
        return check_part(s, part);
    for (size_t n = 0; n < rule->names.count; n++) {
        part.name = &rule->names.items[n];
        if (!check_part(s, part))
            return false;
    }
    return true;
}

static bool check_resources(struct search *s, const struct kube_rule *rule)
{
    for (size_t g = 0; g < rule->groups.count; g++)
        for (size_t r = 0; r < rule->resources.count; r++)
            for (size_t v = 0; v < rule->verbs.count; v++) {
                struct part part = {.verb = &rule->verbs.items[v],
                                    .group = &rule->groups.items[g],
                                    .resource = &rule->resources.items[r]};
                if (!check_names(s, rule, part))
                    return false;
            }
    return true;
}

static bool check_urls(struct search *s, const struct kube_rule *rule)
{
    for (size_t u = 0; u < rule->urls.count; u++)
        for (size_t v = 0; v < rule->verbs.count; v++) {
            struct part part = {.verb = &rule->verbs.items[v], .url = &rule->urls.items[u]};
            if (!check_part(s, part))
                return false;
        }
    return true;
}

bool kube_rules_missing(struct arena *arena, const struct kube_rules *owned,
                        const struct kube_rules *wanted, struct kube_rules *ret_missing)
{
    struct search s = {.arena = arena, .owned = owned};
    for (size_t i = 0; i < wanted->count; i++)
        if (!check_resources(&s, &wanted->items[i]) || !check_urls(&s, &wanted->items[i]))
            return false;
    *ret_missing = (struct kube_rules){s.missing, s.count};
    return true;
}

static bool same_list(const struct kube_texts *a, const struct kube_texts *b)
{
    return a->count == b->count && (!a->count || slice_equal(a->items[0], b->items[0]));
}

static bool merge(struct arena *arena, struct kube_rule *into, const struct kube_rule *rule)
{
    struct slice *verbs = arena_calloc(arena, into->verbs.count + 1, sizeof(*verbs));
    if (!verbs)
        return false;
    memcpy(verbs, into->verbs.items, into->verbs.count * sizeof(*verbs));
    verbs[into->verbs.count] = rule->verbs.items[0];
    into->verbs = (struct kube_texts){verbs, into->verbs.count + 1};
    return true;
}

void kube_rules_compact(struct arena *arena, struct kube_rules *rules)
{
    enum { COMPARED_MAX = 256 }; /* a longer list is not worth reading */
    struct kube_rule *kept = arena_calloc(arena, rules->count + 1, sizeof(*kept));
    size_t count = 0;
    for (size_t i = 0; kept && i < rules->count && count < COMPARED_MAX; i++) {
        size_t at = 0;
        /* Both are parts, whose lists have at most one item: they differ in nothing but the verb.
         */
        while (at < count && !(same_list(&kept[at].groups, &rules->items[i].groups) &&
                               same_list(&kept[at].resources, &rules->items[i].resources) &&
                               same_list(&kept[at].names, &rules->items[i].names) &&
                               !kept[at].urls.count && !rules->items[i].urls.count))
            at++;
        if (at < count && merge(arena, &kept[at], &rules->items[i]))
            continue;
        kept[count++] = rules->items[i];
    }
    if (kept)
        *rules = (struct kube_rules){kept, count};
}

/* -- Text -- */

static enum status write_list(struct buf *to, const char *name, const struct kube_texts *texts)
{
    if (!texts->count)
        return ST_OK;
    if (to->ptr[to->len - 1] != '{')
        TRY(buf_append_text(to, ", "));
    TRY(buf_append_format(to, "%s:[", name));
    for (size_t i = 0; i < texts->count; i++) {
        TRY(buf_append_text(to, i ? " \"" : "\""));
        TRY(go_escape(texts->items[i], to));
        TRY(buf_append_text(to, "\""));
    }
    return buf_append_text(to, "]");
}

enum status kube_rule_write(const struct kube_rule *rule, struct buf *to)
{
    TRY(buf_append_text(to, "{"));
    TRY(write_list(to, "APIGroups", &rule->groups));
    TRY(write_list(to, "Resources", &rule->resources));
    TRY(write_list(to, "NonResourceURLs", &rule->urls));
    TRY(write_list(to, "ResourceNames", &rule->names));
    TRY(write_list(to, "Verbs", &rule->verbs));
    return buf_append_text(to, "}");
}
