#include "kube/policy/admission/plugins/pods/toleration_merge.h"

static struct slice text_of(const struct json_node *node, const char *key)
{
    const struct json_node *text = json_node_named(node, key);
    return text && text->type == JSON_TYPE_STRING ? text->text : SLICE_EMPTY;
}

static bool same(const struct json_node *a, const struct json_node *b, const char *key)
{
    return slice_equal(text_of(a, key), text_of(b, key));
}

static bool has_seconds(const struct json_node *node, int64_t *ret_seconds)
{
    const struct json_node *seconds = json_node_named(node, "tolerationSeconds");
    return seconds && json_node_int(seconds, ret_seconds);
}

/* Whether the first lasts at least as long, which counts only for NoExecute. */
static bool lasts(const struct json_node *a, const struct json_node *b)
{
    int64_t a_s, b_s;
    if (!slice_is(text_of(a, "effect"), "NoExecute") || !has_seconds(a, &a_s))
        return true;
    return has_seconds(b, &b_s) && b_s <= a_s;
}

/* Whether everything that the second tolerates is tolerated by the first. */
static bool contains(const struct json_node *a, const struct json_node *b)
{
    struct slice op = text_of(a, "operator");
    bool exists = slice_is(op, "Exists");
    if (json_node_equal(a, b))
        return true;
    if (!same(a, b, "key") && (text_of(a, "key").len || !exists))
        return false;
    if (!same(a, b, "effect") && text_of(a, "effect").len)
        return false;
    if (!lasts(a, b))
        return false;
    if (!op.len || slice_is(op, "Equal"))
        return slice_is(text_of(b, "operator"), "Equal") && same(a, b, "value");
    return exists;
}

/* The first of two equal tolerations stays. */
static bool is_redundant(const struct json_node *item)
{
    for (const struct json_node *other = item->prev; other; other = other->prev)
        if (contains(other, item))
            return true;
    for (const struct json_node *other = item->next; other; other = other->next)
        if (!json_node_equal(item, other) && contains(other, item))
            return true;
    return false;
}

enum status kube_tolerations_merge(struct arena *arena, struct json_node *list,
                                   const struct json_node *more)
{
    for (const struct json_node *item = more ? more->first : NULL; item; item = item->next) {
        struct json_node *copy = json_node_copy(arena, item);
        if (!copy)
            return ST_NOMEM;
        TRY(json_node_insert(list, NULL, copy));
    }
    if (list->count > KUBE_TOLERATIONS_COMPARED_MAX)
        return ST_OK;
    for (struct json_node *item = json_node_first(list), *next; item; item = next) {
        next = json_node_next(item);
        if (is_redundant(item))
            json_node_remove(list, item);
    }
    return ST_OK;
}
