#include "kube/merge/apply/fields_v1.h"

#include "kube/types/go_text.h"

#include <stdio.h>
#include <stdlib.h>

struct json_node *field_scalar(struct arena *arena, const struct json_node *node)
{
    struct slice text;
    if (node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT)
        return NULL;
    if (node->type != JSON_TYPE_STRING)
        return json_node_copy(arena, node);
    return json_node_text(node, arena, &text) == ST_OK ? json_node_new_text(arena, text) : NULL;
}

/* -- Reading -- */

static enum status read_value(struct arena *arena, struct slice text,
                              const struct json_node **ret_value)
{
    struct error error;
    struct json_node *node;
    enum status status = json_tree_read(arena, text, &node, &error);
    if (status != ST_OK)
        return status == ST_NOMEM ? ST_NOMEM : ST_MALFORMED;
    if (node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    *ret_value = field_scalar(arena, node);
    return *ret_value ? ST_OK : ST_NOMEM;
}

static int key_order(const void *a, const void *b)
{
    return slice_compare((*(const struct json_node *const *)a)->key,
                         (*(const struct json_node *const *)b)->key);
}

/* Sorts the members of a key by name and removes escapes. */
static enum status sort_key(struct arena *arena, const struct json_node *from,
                            const struct json_node **ret_key)
{
    const struct json_node *members[FIELD_KEY_MEMBERS_MAX];
    size_t count = 0;
    struct json_node *key = json_node_new(arena, JSON_TYPE_OBJECT);
    if (from->count > FIELD_KEY_MEMBERS_MAX)
        return ST_MALFORMED;
    for (const struct json_node *member = from->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof(members[0]), key_order);
    for (size_t i = 0; key && i < count; i++) {
        if (members[i]->type == JSON_TYPE_ARRAY || members[i]->type == JSON_TYPE_OBJECT)
            return ST_MALFORMED;
        struct json_node *value = field_scalar(arena, members[i]);
        if (!value)
            return ST_NOMEM;
        TRY(json_node_set(arena, key, members[i]->key, value));
    }
    *ret_key = key;
    return key ? ST_OK : ST_NOMEM;
}

static enum status read_key(struct arena *arena, struct slice text,
                            const struct json_node **ret_key)
{
    struct error error;
    struct json_node *node;
    enum status status = json_tree_read(arena, text, &node, &error);
    if (status != ST_OK)
        return status == ST_NOMEM ? ST_NOMEM : ST_MALFORMED;
    return node->type == JSON_TYPE_OBJECT ? sort_key(arena, node, ret_key) : ST_MALFORMED;
}

static enum status read_index(struct slice text, int64_t *ret_index)
{
    struct json_node number = {.type = JSON_TYPE_NUMBER, .text = text};
    if (!text.len || text.len > 18)
        return ST_MALFORMED;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return ST_MALFORMED;
    return json_node_int(&number, ret_index) ? ST_OK : ST_MALFORMED;
}

/* ST_NOT_FOUND: an unknown kind of step. */
static enum status read_element(struct arena *arena, struct slice text,
                                struct field_element *ret_element)
{
    if (text.len < 2 || text.ptr[1] != ':')
        return ST_MALFORMED;
    struct slice rest = slice_sub(text, 2, text.len - 2);
    *ret_element = field_name(rest);
    switch (text.ptr[0]) {
    case 'f':
        return ST_OK;
    case 'k':
        ret_element->step = FIELD_KEY;
        return read_key(arena, rest, &ret_element->value);
    case 'v':
        ret_element->step = FIELD_VALUE;
        return read_value(arena, rest, &ret_element->value);
    case 'i':
        ret_element->step = FIELD_INDEX;
        return read_index(rest, &ret_element->index);
    default:
        return ST_NOT_FOUND;
    }
}

static enum status read_level(struct arena *arena, const struct json_node *tree, size_t *budget,
                              const struct field_set **ret_set, bool *ret_member)
{
    struct field_builder builder = {.arena = arena};
    if (tree->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    *ret_member = false;
    for (const struct json_node *node = tree->first; node; node = node->next) {
        struct field_element element;
        const struct field_set *below;
        bool member;
        /* The object or list itself has this owner, and not only fields within it. */
        if (slice_is(node->key, ".")) {
            *ret_member = true;
            continue;
        }
        enum status status = read_element(arena, node->key, &element);
        /* A newer version may have more kinds of steps; Kubernetes ignores unknown ones, too. */
        if (status == ST_NOT_FOUND)
            continue;
        TRY(status);
        if (!(*budget)--)
            return ST_LIMIT;
        TRY(read_level(arena, node, budget, &below, &member));
        TRY(field_builder_add(&builder, element, member ? FIELD_MEMBER : 0, below));
    }
    TRY(field_builder_finish(&builder, ret_set));
    /* What has nothing below it is owned itself: {} is short for {".":{}}. */
    *ret_member = *ret_member || !*ret_set;
    return ST_OK;
}

enum status fields_v1_read(struct arena *arena, const struct json_node *tree, size_t *budget,
                           const struct field_set **ret_set)
{
    bool member;
    return read_level(arena, tree, budget, ret_set, &member);
}

/* -- Writing -- */

static enum status append_escaped(struct slice text, struct buf *to)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (!is_escaped_by_go(c))
            continue;
        TRY(buf_append(to, slice_sub(text, from, i - from)));
        TRY(buf_append_format(to, "\\u%04x", c));
        from = i + 1;
    }
    return buf_append(to, slice_sub(text, from, text.len - from));
}

enum status go_json_append(const struct json_node *node, struct buf *to)
{
    size_t at = to->len;
    TRY(json_tree_write(node, to));
    while (at < to->len && !is_escaped_by_go(to->ptr[at]))
        at++;
    if (at == to->len)
        return ST_OK;
    AUTO(buf_fini) struct buf plain = {0};
    TRY(buf_append(&plain, slice_of(to->ptr + at, to->len - at)));
    to->len = at;
    return append_escaped(buf_slice(&plain), to);
}

enum status field_element_write(const struct field_element *element, struct buf *to)
{
    buf_reset(to, SIZE_MAX);
    switch (element->step) {
    case FIELD_NAME:
        TRY(buf_append_text(to, "f:"));
        return buf_append(to, element->name);
    case FIELD_KEY:
        TRY(buf_append_text(to, "k:"));
        return go_json_append(element->value, to);
    case FIELD_VALUE:
        TRY(buf_append_text(to, "v:"));
        return go_json_append(element->value, to);
    default:
        return buf_append_format(to, "i:%lld", (long long)element->index);
    }
}

static enum status write_level(struct arena *arena, const struct field_set *set, bool self,
                               struct buf *text, struct json_node **ret_tree)
{
    struct json_node *tree = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!tree)
        return ST_NOMEM;
    /* Fields follow that are owned as well, so that "." has to say that this one is. */
    if (self && set) {
        struct json_node *value = json_node_new(arena, JSON_TYPE_OBJECT);
        TRY(value ? json_node_set(arena, tree, SLICE_LITERAL("."), value) : ST_NOMEM);
    }
    for (size_t i = 0; set && i < set->count; i++) {
        const struct field_entry *entry = &set->entries[i];
        struct json_node *below;
        TRY(write_level(arena, entry->below, entry->marks, text, &below));
        TRY(field_element_write(&entry->element, text));
        TRY(below ? json_node_set(arena, tree, buf_slice(text), below) : ST_NOMEM);
    }
    *ret_tree = tree;
    return ST_OK;
}

enum status fields_v1_write(struct arena *arena, const struct field_set *set,
                            struct json_node **ret_tree)
{
    AUTO(buf_fini) struct buf text = {0};
    return write_level(arena, set, false, &text, ret_tree);
}

/* -- Paths -- */

static enum status append_value(const struct json_node *value, struct arena *arena, struct buf *to)
{
    struct slice text;
    if (value->type != JSON_TYPE_STRING)
        return json_tree_write(value, to);
    TRY(json_node_text(value, arena, &text));
    return go_quote(text, to);
}

static enum status append_key(const struct json_node *key, struct arena *arena, struct buf *to)
{
    TRY(buf_append_text(to, "["));
    for (const struct json_node *member = key->first; member; member = member->next) {
        TRY(buf_append_text(to, member->prev ? "," : ""));
        TRY(buf_append(to, member->key));
        TRY(buf_append_text(to, "="));
        TRY(append_value(member, arena, to));
    }
    return buf_append_text(to, "]");
}

enum status field_element_append(const struct field_element *element, struct arena *arena,
                                 struct buf *to)
{
    switch (element->step) {
    case FIELD_NAME:
        TRY(buf_append_text(to, "."));
        return buf_append(to, element->name);
    case FIELD_KEY:
        return append_key(element->value, arena, to);
    case FIELD_VALUE:
        TRY(buf_append_text(to, "[="));
        TRY(append_value(element->value, arena, to));
        return buf_append_text(to, "]");
    default:
        return buf_append_format(to, "[%lld]", (long long)element->index);
    }
}
