#include "kube/policy/access/rbac/user.h"

#include "kube/types/object/name.h"

#include <stdlib.h>

bool kube_texts_have(const struct kube_texts *texts, struct slice text)
{
    for (size_t i = 0; i < texts->count; i++)
        if (slice_equal(texts->items[i], text))
            return true;
    return false;
}

void kube_text_add(struct kube_text_list *list, struct slice text)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 4;
        struct slice *items = arena_calloc(list->arena, capacity, sizeof(*items));
        /* The arena remembers that it ran out, which the user of the list checks. */
        if (!items)
            return;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = text;
}

struct slice kube_text_copy(struct arena *arena, const struct json_node *from, const char *name)
{
    struct slice text, copy;
    if (json_node_text(json_node_named(from, name), arena, &text) != ST_OK ||
        arena_dup(arena, text, &copy) != ST_OK)
        return SLICE_EMPTY;
    return copy;
}

bool kube_texts_read(struct arena *arena, const struct json_node *array, size_t max,
                     struct kube_texts *ret_texts)
{
    struct kube_text_list list = {.arena = arena};
    *ret_texts = (struct kube_texts){0};
    if (!array || array->type != JSON_TYPE_ARRAY || !array->count)
        return true;
    list.capacity = size_min(array->count, max);
    list.items = arena_calloc(arena, list.capacity, sizeof(*list.items));
    if (!list.items)
        return true; /* the arena remembers it */
    for (const struct json_node *item = array->first; item; item = item->next) {
        struct slice text, copy;
        if (item->type != JSON_TYPE_STRING)
            continue;
        if (list.count == max)
            return false;
        /* Decoded texts may refer to the JSON; the list owns its own. */
        if (json_node_text(item, arena, &text) != ST_OK || arena_dup(arena, text, &copy) != ST_OK)
            return true;
        kube_text_add(&list, copy);
    }
    *ret_texts = kube_text_taken(&list);
    return true;
}

/* -- Service accounts -- */

#define ACCOUNT "system:serviceaccount:"
#define ACCOUNTS "system:serviceaccounts"

static struct slice join(struct arena *arena, struct slice a, struct slice b, struct slice c)
{
    uint8_t *bytes = arena_alloc(arena, a.len + b.len + c.len + 1);
    if (!bytes)
        return SLICE_EMPTY;
    slice_copy(bytes, a);
    slice_copy(bytes + a.len, b);
    if (!c.len)
        return slice_of(bytes, a.len + b.len);
    bytes[a.len + b.len] = ':';
    slice_copy(bytes + a.len + b.len + 1, c);
    return slice_of(bytes, a.len + b.len + 1 + c.len);
}

void kube_user_account(struct arena *arena, struct slice namespace, struct slice name,
                       struct kube_user_info *ret_user)
{
    struct kube_text_list groups = {.arena = arena};
    kube_text_add(&groups, SLICE_LITERAL(ACCOUNTS));
    kube_text_add(&groups, join(arena, SLICE_LITERAL(ACCOUNTS ":"), namespace, SLICE_EMPTY));
    *ret_user = (struct kube_user_info){
        .name = join(arena, SLICE_LITERAL(ACCOUNT), namespace, name),
        .groups = kube_text_taken(&groups),
    };
}

bool kube_user_split_account(struct slice user, struct slice *ret_namespace, struct slice *ret_name)
{
    struct slice prefix = SLICE_LITERAL(ACCOUNT);
    char why[NAME_ERROR_BYTES];
    if (!slice_has_prefix(user, prefix))
        return false;
    struct slice rest = slice_sub(user, prefix.len, user.len - prefix.len);
    const uint8_t *colon = rest.len ? memchr(rest.ptr, ':', rest.len) : NULL;
    if (!colon)
        return false;
    size_t at = (size_t)(colon - rest.ptr);
    *ret_namespace = slice_sub(rest, 0, at);
    *ret_name = slice_sub(rest, at + 1, rest.len - at - 1);
    return dns_label_valid(*ret_namespace, why) && subdomain_valid(*ret_name, why);
}

/* -- JSON -- */

static bool set(struct arena *arena, struct json_node *to, struct slice key,
                struct json_node *value)
{
    return value && json_node_set(arena, to, key, value) == ST_OK;
}

static struct json_node *texts_json(struct arena *arena, const struct kube_texts *texts)
{
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    for (size_t i = 0; list && i < texts->count; i++) {
        struct json_node *item = json_node_new_text(arena, texts->items[i]);
        if (!item || json_node_insert(list, NULL, item) != ST_OK)
            return NULL;
    }
    return list;
}

static struct json_node *extra_json(struct arena *arena, const struct kube_user_info *user)
{
    struct json_node *extra = json_node_new(arena, JSON_TYPE_OBJECT);
    for (size_t i = 0; extra && i < user->extra_count; i++)
        if (!set(arena, extra, user->extra[i].key, texts_json(arena, &user->extra[i].values)))
            return NULL;
    return extra;
}

static enum status write_texts(const struct kube_texts *texts, struct buf *to)
{
    TRY(buf_append_text(to, "["));
    for (size_t i = 0; i < texts->count; i++) {
        TRY(buf_append_text(to, i ? " " : ""));
        TRY(buf_append(to, texts->items[i]));
    }
    return buf_append_text(to, "]");
}

static int compare_extras(const void *a, const void *b)
{
    const struct kube_user_extra *const *left = a, *const *right = b;
    return slice_compare((*left)->key, (*right)->key);
}

enum status kube_user_write(const struct kube_user_info *user, struct buf *to)
{
    const struct kube_user_extra *extras[KUBE_USER_EXTRAS_MAX] = {NULL};
    size_t count = size_min(user->extra_count, KUBE_USER_EXTRAS_MAX);
    for (size_t i = 0; i < count; i++)
        extras[i] = &user->extra[i];
    qsort(extras, count, sizeof(extras[0]), compare_extras);
    TRY(buf_append_format(to, "&{%.*s %.*s ", SLICE_ARGS(user->name), SLICE_ARGS(user->uid)));
    TRY(write_texts(&user->groups, to));
    TRY(buf_append_text(to, " map["));
    for (size_t i = 0; i < count; i++) {
        TRY(buf_append_format(to, "%s%.*s:", i ? " " : "", SLICE_ARGS(extras[i]->key)));
        TRY(write_texts(&extras[i]->values, to));
    }
    return buf_append_text(to, "]}");
}

struct json_node *kube_user_json(struct arena *arena, const struct kube_user_info *user)
{
    struct json_node *info = json_node_new(arena, JSON_TYPE_OBJECT);
    bool fine =
        info &&
        (!user->name.len ||
         set(arena, info, SLICE_LITERAL("username"), json_node_new_text(arena, user->name))) &&
        (!user->uid.len ||
         set(arena, info, SLICE_LITERAL("uid"), json_node_new_text(arena, user->uid))) &&
        (!user->groups.count ||
         set(arena, info, SLICE_LITERAL("groups"), texts_json(arena, &user->groups))) &&
        (!user->extra_count || set(arena, info, SLICE_LITERAL("extra"), extra_json(arena, user)));
    return fine ? info : NULL;
}
