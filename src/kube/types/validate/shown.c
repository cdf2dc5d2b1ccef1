#include "kube/types/validate/shown.h"

#include "kube/types/go_text.h"

#include <stdlib.h>

static enum status append_struct(struct check *c, const struct json_node *object,
                                 const struct shown_type *type, struct buf *to);

static enum status append_list(struct check *c, const struct json_node *list,
                               const struct shown_type *type, struct buf *to)
{
    TRY(buf_append_text(to, "["));
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
        /* The error shows no more than this of the value. */
        if (to->len > GO_SHOWN_BYTES_MAX)
            return ST_OK;
        TRY(append_struct(c, item, type, to));
        TRY(buf_append_text(to, item->next ? "," : ""));
    }
    return buf_append_text(to, "]");
}

static enum status append_member(struct check *c, const struct json_node *value,
                                 const struct shown_member *member, struct buf *to)
{
    TRY(buf_append_format(to, "\"%s\":", member->go_name));
    if (!value)
        return buf_append_text(to, member->absent);
    if (!member->type)
        return go_value_append(value, c->arena, to);
    return value->type == JSON_TYPE_ARRAY ? append_list(c, value, member->type, to)
                                          : append_struct(c, value, member->type, to);
}

/* The types are constants, so the recursion ends with them. */
static enum status append_struct(struct check *c, const struct json_node *object,
                                 const struct shown_type *type, struct buf *to)
{
    TRY(buf_append_text(to, "{"));
    for (size_t i = 0; i < type->count; i++) {
        TRY(buf_append_text(to, i ? "," : ""));
        TRY(append_member(c, rule_member(object, type->members[i].name), &type->members[i], to));
    }
    return buf_append_text(to, "}");
}

const char *show_struct(struct check *c, const struct json_node *object,
                        const struct shown_type *type)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice kept;
    if (append_struct(c, object, type, &text) == ST_OK) {
        text.len = size_min(text.len, GO_SHOWN_BYTES_MAX);
        if (buf_append(&text, slice_of("", 1)) == ST_OK &&
            arena_dup(c->arena, buf_slice(&text), &kept) == ST_OK)
            return (const char *)kept.ptr;
    }
    c->errors->no_memory = true;
    return "";
}

/* -- Maps -- */

static int key_order(const void *a, const void *b)
{
    const struct json_node *const *x = a, *const *y = b;
    return slice_compare((*x)->key, (*y)->key);
}

static bool set_copy(struct check *c, struct json_node *to, const struct json_node *member)
{
    struct json_node *copy = json_node_copy(c->arena, member);
    if (copy && json_node_set(c->arena, to, member->key, copy) == ST_OK)
        return true;
    c->errors->no_memory = true;
    return false;
}

/* Members of `from` in the order of their keys. */
static void set_sorted(struct check *c, struct json_node *to, const struct json_node *from)
{
    size_t count = 0;
    const struct json_node **members =
        arena_calloc(c->arena, rule_count(from) + 1, sizeof(const struct json_node *));
    for (const struct json_node *item = rule_first(from); members && item; item = item->next)
        members[count++] = item;
    if (count)
        qsort(members, count, sizeof(members[0]), key_order);
    for (size_t i = 0; i < count && set_copy(c, to, members[i]); i++)
        ;
    c->errors->no_memory = c->errors->no_memory || !members;
}

static struct json_node *new_object(struct check *c)
{
    struct json_node *object = json_node_new(c->arena, JSON_TYPE_OBJECT);
    c->errors->no_memory = c->errors->no_memory || !object;
    return object;
}

void bad_map(struct check *c, const struct at *at, const struct json_node *map, const char *why)
{
    struct json_node *sorted = map ? new_object(c) : NULL;
    if (sorted)
        set_sorted(c, sorted, map);
    bad_node(c, at, sorted, why);
}

void bad_selector(struct check *c, const struct at *at, const struct json_node *selector,
                  const char *why)
{
    struct json_node *sorted = new_object(c), *labels = new_object(c);
    if (!sorted || !labels)
        return;
    labels->key = SLICE_LITERAL("matchLabels");
    set_sorted(c, labels, rule_member(selector, "matchLabels"));
    if (!labels->first || set_copy(c, sorted, labels)) {
        if (rule_filled(selector, "matchExpressions"))
            set_copy(c, sorted, rule_member(selector, "matchExpressions"));
        bad_node(c, at, sorted, why);
    }
}
