#include "kube/patch/patch.h"

/* What a merge patch inserts for a missing member: itself, without nulls. */
static enum status without_nulls(struct arena *arena, const struct json_node *patch,
                                 struct json_node **ret_value)
{
    struct json_node *value = json_node_new(arena, JSON_TYPE_OBJECT);
    return value ? patch_merge(arena, value, patch, ret_value) : ST_NOMEM;
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
    if (member && member->type == JSON_TYPE_OBJECT && change->type == JSON_TYPE_OBJECT)
        return patch_merge(arena, member, change, &merged);
    TRY(patch_merge(arena, NULL, change, &merged));
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
        return without_nulls(arena, patch, ret_object);
    for (const struct json_node *change = patch->first; change; change = change->next)
        TRY(merge_member(arena, object, change));
    *ret_object = object;
    return ST_OK;
}
