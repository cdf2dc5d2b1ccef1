#include "kube/merge/apply/fields_v1.h"
#include "kube/merge/apply/typed_private.h"

/* -- Merging -- */

static enum status merge(const struct typed *typed, struct apply_type type,
                         const struct json_node *live, const struct json_node *config,
                         struct json_node **ret_out);

static enum status copy(const struct typed *typed, const struct json_node *node,
                        struct json_node **ret_copy)
{
    *ret_copy = json_node_copy(typed->arena, node);
    return *ret_copy ? ST_OK : ST_NOMEM;
}

static enum status merge_member(const struct typed *typed, struct apply_type type,
                                const struct apply_rules *rules, const struct json_node *live,
                                const struct json_node *config, struct json_node *out)
{
    struct slice key = live ? live->key : config->key;
    struct json_node *merged = NULL;
    bool named;
    TRY(merge(typed, apply_rules_member(type, rules, key, &named), live, config, &merged));
    return merged ? json_node_set(typed->arena, out, key, merged) : ST_OK;
}

static enum status merge_maps(const struct typed *typed, struct apply_type type,
                              const struct apply_rules *rules, const struct json_node *live,
                              const struct json_node *config, struct json_node **ret_out)
{
    bool in_live = typed_has(live, JSON_TYPE_OBJECT),
         in_config = typed_has(config, JSON_TYPE_OBJECT);
    struct json_node *out = json_node_new(typed->arena, JSON_TYPE_OBJECT);
    if (!out)
        return ST_NOMEM;
    for (const struct json_node *node = in_live ? live->first : NULL; node; node = node->next) {
        const struct json_node *other = in_config ? json_node_member(config, node->key) : NULL;
        TRY(merge_member(typed, type, rules, node, other, out));
    }
    for (const struct json_node *node = in_config ? config->first : NULL; node; node = node->next) {
        if (!in_live || !json_node_member(live, node->key))
            TRY(merge_member(typed, type, rules, NULL, node, out));
    }
    *ret_out = out->first ? out : NULL;
    return ST_OK;
}

/* -- Lists: in the order of the configuration; items only in the live list keep their place -- */

enum { NONE = -1 };

struct list_merge {
    const struct typed *typed;
    const struct apply_rules *rules;
    struct typed_item *live, *config;
    size_t live_count, config_count;
    int64_t *of_live;   /* for each live item: its index in config */
    int64_t *of_config; /* for each config item: its first index in live */
    bool *twice;        /* for each config item: live has it more than once */
    bool *merged;       /* for each config item */
    size_t next_shared; /* next config item that live also has; config_count: none */
    struct json_node *out;
};

static enum status duplicate(const struct typed *typed, const struct field_element *element)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(field_element_append(element, typed->arena, &text));
    return error_set(typed->why, ST_INVALID, "duplicate entries for key %.*s",
                     SLICE_ARGS(buf_slice(&text)));
}

static enum status match(struct list_merge *m)
{
    struct arena *arena = m->typed->arena;
    struct typed_item *live, *config;
    TRY(typed_sort(arena, m->live, m->live_count, &live));
    TRY(typed_sort(arena, m->config, m->config_count, &config));
    for (size_t i = 1; i < m->config_count; i++)
        if (!field_element_compare(&config[i - 1].element, &config[i].element))
            return duplicate(m->typed, &config[i].element);
    for (size_t i = 0; i < m->live_count; i++) {
        size_t found = typed_find(config, m->config_count, &m->live[i].element);
        m->of_live[i] = found < m->config_count ? (int64_t)config[found].at : NONE;
    }
    for (size_t i = 0; i < m->config_count; i++) {
        size_t found = typed_find(live, m->live_count, &m->config[i].element);
        m->of_config[i] = found < m->live_count ? (int64_t)live[found].at : NONE;
        m->twice[i] = found + 1 < m->live_count &&
                      !field_element_compare(&live[found].element, &live[found + 1].element);
    }
    return ST_OK;
}

static void advance_shared(struct list_merge *m, size_t from)
{
    m->next_shared = from;
    while (m->next_shared < m->config_count && m->of_config[m->next_shared] == NONE)
        m->next_shared++;
}

static enum status put(struct list_merge *m, const struct json_node *live,
                       const struct json_node *config)
{
    struct json_node *merged = NULL;
    TRY(merge(m->typed, m->rules->item, live, config, &merged));
    return merged ? json_node_insert(m->out, NULL, merged) : ST_OK;
}

/* An item that live has more than once is not merged with any of them. */
static enum status put_config(struct list_merge *m, size_t at)
{
    const struct json_node *live = NULL;
    m->merged[at] = true;
    if (m->of_config[at] != NONE && !m->twice[at])
        live = m->live[m->of_config[at]].node;
    return put(m, live, m->config[at].node);
}

static enum status merge_in_order(struct list_merge *m)
{
    size_t l = 0, c = 0;
    advance_shared(m, 0);
    while (l < m->live_count || c < m->config_count) {
        int64_t of = l < m->live_count ? m->of_live[l] : NONE;
        if (l < m->live_count && c < m->config_count && of != NONE) {
            if ((size_t)of == c) {
                TRY(put_config(m, c));
                l++;
                c++;
                advance_shared(m, m->next_shared + 1);
                continue;
            }
            if (m->next_shared < m->config_count && m->next_shared != (size_t)of) {
                l++; /* shared, but not the next one in order */
                continue;
            }
        }
        if (l < m->live_count && of == NONE) {
            TRY(put(m, m->live[l++].node, NULL));
            continue;
        }
        if (l < m->live_count && m->merged[of])
            l++;
        if (c < m->config_count) {
            TRY(put_config(m, c));
            if (m->next_shared == c)
                advance_shared(m, c + 1);
            c++;
        }
    }
    return ST_OK;
}

static enum status merge_lists(const struct typed *typed, struct apply_type type,
                               const struct apply_rules *rules, const struct json_node *live,
                               const struct json_node *config, struct json_node **ret_out)
{
    struct list_merge m = {.typed = typed, .rules = rules};
    TRY(typed_items(typed, type, rules, config, true, &m.config, &m.config_count));
    TRY(typed_items(typed, type, rules, live, true, &m.live, &m.live_count));
    m.of_live = arena_calloc(typed->arena, m.live_count + 1, sizeof(*m.of_live));
    m.of_config = arena_calloc(typed->arena, m.config_count + 1, sizeof(*m.of_config));
    m.twice = arena_calloc(typed->arena, m.config_count + 1, sizeof(*m.twice));
    m.merged = arena_calloc(typed->arena, m.config_count + 1, sizeof(*m.merged));
    m.out = json_node_new(typed->arena, JSON_TYPE_ARRAY);
    if (!m.of_live || !m.of_config || !m.twice || !m.merged || !m.out)
        return ST_NOMEM;
    TRY(match(&m));
    TRY(merge_in_order(&m));
    *ret_out = m.out->first ? m.out : NULL;
    return ST_OK;
}

static enum status merge(const struct typed *typed, struct apply_type type,
                         const struct json_node *live, const struct json_node *config,
                         struct json_node **ret_out)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned forms = apply_rules_forms(&rules, config ? config : live);
    bool map = forms & APPLY_FORM_MAP, scalar = !map && forms & APPLY_FORM_SCALAR;
    enum json_type container = map ? JSON_TYPE_OBJECT : JSON_TYPE_ARRAY;
    bool empty = !typed_has(live, container) && !typed_has(config, container);
    if (scalar || empty || (map ? rules.map_atomic : rules.list_atomic))
        return copy(typed, config ? config : live, ret_out);
    return (map ? merge_maps : merge_lists)(typed, type, &rules, live, config, ret_out);
}

enum status typed_merge(const struct typed *typed, struct apply_type type,
                        const struct json_node *live, const struct json_node *config,
                        struct json_node **ret_merged)
{
    return merge(typed, type, live, config, ret_merged);
}

/* -- Removing -- */

static enum status without_items(const struct typed *typed, struct apply_type type,
                                 const struct apply_rules *rules, const struct json_node *list,
                                 const struct field_set *fields, struct json_node **ret_value)
{
    struct json_node *out = json_node_new(typed->arena, JSON_TYPE_ARRAY), *kept;
    struct typed_item *items;
    size_t count;
    if (!out)
        return ST_NOMEM;
    TRY(typed_items(typed, type, rules, list, true, &items, &count));
    for (size_t i = 0; i < count; i++) {
        const struct field_entry *entry = field_set_find(fields, &items[i].element);
        if (entry && entry->marks)
            continue;
        if (entry)
            TRY(typed_without(typed, rules->item, items[i].node, entry->below, &kept));
        else
            TRY(copy(typed, items[i].node, &kept));
        TRY(json_node_insert(out, NULL, kept));
    }
    if (out->first)
        *ret_value = out;
    return ST_OK;
}

static enum status without_members(const struct typed *typed, struct apply_type type,
                                   const struct apply_rules *rules, const struct json_node *map,
                                   const struct field_set *fields, struct json_node **ret_value)
{
    struct json_node *out = json_node_new(typed->arena, JSON_TYPE_OBJECT), *kept;
    if (!out)
        return ST_NOMEM;
    for (const struct json_node *node = map->first; node; node = node->next) {
        struct field_element element = field_name(node->key);
        const struct field_entry *entry = field_set_find(fields, &element);
        bool named;
        if (entry && entry->marks)
            continue;
        if (entry)
            TRY(typed_without(typed, apply_rules_member(type, rules, node->key, &named), node,
                              entry->below, &kept));
        else
            TRY(copy(typed, node, &kept));
        TRY(json_node_set(typed->arena, out, node->key, kept));
    }
    if (out->first)
        *ret_value = out;
    return ST_OK;
}

enum status typed_without(const struct typed *typed, struct apply_type type,
                          const struct json_node *value, const struct field_set *fields,
                          struct json_node **ret_value)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned forms = apply_rules_forms(&rules, value);
    if (!(forms & APPLY_FORM_MAP) && forms & APPLY_FORM_SCALAR)
        return copy(typed, value, ret_value);
    *ret_value = json_node_new(typed->arena, JSON_TYPE_NULL);
    if (!*ret_value)
        return ST_NOMEM;
    if (forms & APPLY_FORM_MAP && typed_has(value, JSON_TYPE_OBJECT) && !rules.map_atomic)
        return without_members(typed, type, &rules, value, fields, ret_value);
    if (!(forms & APPLY_FORM_MAP) && typed_has(value, JSON_TYPE_ARRAY) && !rules.list_atomic)
        return without_items(typed, type, &rules, value, fields, ret_value);
    return ST_OK;
}
