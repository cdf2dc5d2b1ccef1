#include "codec/json/diff.h"

enum { MATCHED_ITEMS_MAX = 256 }; /* matching takes the square of their number */

static enum status compare(struct json_diff *diff, const struct json_node *before,
                           const struct json_node *after);

static enum status report(struct json_diff *diff, const struct json_node *before,
                          const struct json_node *after)
{
    struct json_difference difference = {buf_slice(&diff->path), before, after};
    diff->fn(diff->ctx, &difference);
    return ST_OK;
}

/* -- Paths -- */

static bool is_plain(struct slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.ptr[i] == '.' || key.ptr[i] == '[' || key.ptr[i] == ']' || key.ptr[i] == '\'')
            return false;
    return key.len > 0;
}

static enum status push_key(struct json_diff *diff, struct slice key)
{
    if (!is_plain(key))
        return buf_append_format(&diff->path, "['%.*s']", SLICE_ARGS(key));
    if (diff->path.len)
        TRY(buf_append_text(&diff->path, "."));
    return buf_append(&diff->path, key);
}

/* -- Objects -- */

static enum status compare_members(struct json_diff *diff, const struct json_node *before,
                                   const struct json_node *after)
{
    size_t len = diff->path.len;
    for (const struct json_node *member = after->first; member; member = member->next) {
        TRY(push_key(diff, member->key));
        TRY(compare(diff, json_node_member(before, member->key), member));
        diff->path.len = len;
    }
    for (const struct json_node *member = before->first; member; member = member->next) {
        if (json_node_member(after, member->key))
            continue;
        TRY(push_key(diff, member->key));
        TRY(compare(diff, member, NULL));
        diff->path.len = len;
    }
    return ST_OK;
}

/* -- Arrays -- */

static const struct json_node *find_item(const struct json_node *array, const char *key,
                                         const struct json_node *id)
{
    for (const struct json_node *item = array->first; item; item = item->next)
        if (json_node_equal(json_node_named(item, key), id))
            return item;
    return NULL;
}

/* Every item is an object that has a text with this key, different from those of the others. */
static bool are_identified(const struct json_node *array, const char *key)
{
    for (const struct json_node *item = array->first; item; item = item->next) {
        const struct json_node *id =
            item->type == JSON_TYPE_OBJECT ? json_node_named(item, key) : NULL;
        if (!id || id->type != JSON_TYPE_STRING || find_item(array, key, id) != item)
            return false;
    }
    return true;
}

static const char *identifying_key(const struct json_node *a, const struct json_node *b)
{
    static const char *const keys[] = {"name", "type", "key"};
    if (a->count > MATCHED_ITEMS_MAX || b->count > MATCHED_ITEMS_MAX)
        return NULL;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (are_identified(a, keys[i]) && are_identified(b, keys[i]))
            return keys[i];
    return NULL;
}

static enum status compare_item(struct json_diff *diff, const char *key,
                                const struct json_node *before, const struct json_node *after)
{
    struct slice id;
    size_t len = diff->path.len;
    TRY(json_node_text(json_node_named(after ? after : before, key), diff->arena, &id));
    TRY(buf_append_format(&diff->path, "[%s=%.*s]", key, SLICE_ARGS(id)));
    TRY(compare(diff, before, after));
    diff->path.len = len;
    return ST_OK;
}

static enum status compare_by_key(struct json_diff *diff, const char *key,
                                  const struct json_node *before, const struct json_node *after)
{
    for (const struct json_node *item = after->first; item; item = item->next)
        TRY(compare_item(diff, key, find_item(before, key, json_node_named(item, key)), item));
    for (const struct json_node *item = before->first; item; item = item->next)
        if (!find_item(after, key, json_node_named(item, key)))
            TRY(compare_item(diff, key, item, NULL));
    return ST_OK;
}

static enum status compare_by_place(struct json_diff *diff, const struct json_node *before,
                                    const struct json_node *after)
{
    const struct json_node *a = before->first, *b = after->first;
    size_t len = diff->path.len;
    for (size_t place = 0; a || b; place++) {
        TRY(buf_append_format(&diff->path, "[%zu]", place));
        TRY(compare(diff, a, b));
        diff->path.len = len;
        a = a ? a->next : NULL;
        b = b ? b->next : NULL;
    }
    return ST_OK;
}

/* -- Values -- */

/* At most one of them is NULL. */
static enum status compare(struct json_diff *diff, const struct json_node *before,
                           const struct json_node *after)
{
    if (!before || !after || before->type != after->type)
        return report(diff, before, after);
    if (before->type == JSON_TYPE_OBJECT)
        return compare_members(diff, before, after);
    if (before->type == JSON_TYPE_ARRAY) {
        const char *key = identifying_key(before, after);
        return key ? compare_by_key(diff, key, before, after)
                   : compare_by_place(diff, before, after);
    }
    return json_node_equal(before, after) ? ST_OK : report(diff, before, after);
}

enum status json_diff(struct arena *arena, const struct json_node *before,
                      const struct json_node *after,
                      void (*fn)(void *ctx, const struct json_difference *difference), void *ctx)
{
    struct json_diff diff = {.fn = fn, .ctx = ctx, .arena = arena};
    enum status status = compare(&diff, before, after);
    buf_fini(&diff.path);
    return status;
}
