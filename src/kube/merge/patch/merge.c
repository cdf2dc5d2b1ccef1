#include "kube/merge/patch/patch.h"

/* Removes the members that are null from all objects; items of lists stay. */
static void drop_nulls(struct json_node *value)
{
    struct json_node *next;
    if (value->type != JSON_TYPE_OBJECT && value->type != JSON_TYPE_ARRAY)
        return;
    for (struct json_node *node = json_node_first(value); node; node = next) {
        next = json_node_next(node);
        if (node->type == JSON_TYPE_NULL && value->type == JSON_TYPE_OBJECT)
            json_node_remove(value, node);
        else
            drop_nulls(node);
    }
}

static enum status merge_member(struct arena *arena, struct json_node *object,
                                const struct json_node *change)
{
    struct json_node *member = json_node_member(object, change->key);
    if (change->type == JSON_TYPE_NULL) {
        if (member)
            json_node_remove(object, member);
        return ST_OK;
    }
    struct json_node *merged;
    bool has_object = member && member->type == JSON_TYPE_OBJECT;
    if (has_object && change->type == JSON_TYPE_OBJECT)
        return patch_merge(arena, member, change, &merged);
    merged = json_node_copy(arena, change);
    if (!merged)
        return ST_NOMEM;
    /* As in Kubernetes' library, a list that replaces an object keeps its nulls. */
    if (!has_object)
        drop_nulls(merged);
    return json_node_set(arena, object, change->key, merged);
}

enum status patch_merge(struct arena *arena, struct json_node *object,
                        const struct json_node *patch, struct json_node **ret_object)
{
    if (patch->type != JSON_TYPE_OBJECT) {
        *ret_object = json_node_copy(arena, patch);
        return *ret_object ? ST_OK : ST_NOMEM;
    }
    if (!object || object->type != JSON_TYPE_OBJECT)
        object = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!object)
        return ST_NOMEM;
    for (const struct json_node *change = patch->first; change; change = change->next)
        TRY(merge_member(arena, object, change));
    *ret_object = object;
    return ST_OK;
}
