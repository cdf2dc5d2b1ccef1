#include "kube/policy/access/rbac/binding.h"

#include "base/slices.h"
#include "base/xalloc.h"

#define ACCOUNT_PREFIX "system:serviceaccount:"

/* -- Reading -- */

static bool read_subject(struct arena *arena, const struct json_node *node, struct kube_subject *to)
{
    struct slice kind = kube_text_copy(arena, node, "kind");
    to->name = kube_text_copy(arena, node, "name");
    to->namespace = kube_text_copy(arena, node, "namespace");
    if (slice_is(kind, "User"))
        to->kind = SUBJECT_USER;
    else if (slice_is(kind, "Group"))
        to->kind = SUBJECT_GROUP;
    else if (slice_is(kind, "ServiceAccount"))
        to->kind = SUBJECT_ACCOUNT;
    else
        return false;
    return to->name.len;
}

const void *kube_binding_read(struct arena *arena, const struct json_node *object)
{
    struct kube_binding *b = arena_calloc(arena, 1, sizeof(*b));
    const struct json_node *ref = json_node_named(object, "roleRef");
    const struct json_node *list = json_node_named(object, "subjects");
    bool some = list && list->type == JSON_TYPE_ARRAY && list->count;
    if (!b)
        return NULL;
    b->ref_kind = kube_text_copy(arena, ref, "kind");
    b->ref_name = kube_text_copy(arena, ref, "name");
    if (!some)
        return b;
    b->subjects = arena_calloc(arena, list->count, sizeof(*b->subjects));
    for (const struct json_node *item = list->first; b->subjects && item; item = item->next)
        if (read_subject(arena, item, &b->subjects[b->subject_count]))
            b->subject_count++;
    return b;
}

/* -- Keys of the index -- */

/* A letter for users or groups, the length of the name and the name are the subject, so that no two
 * have the same; the name of the binding follows. A key is usually short and on the stack. */
enum { KEY_HEAD_BYTES = 1 + sizeof(uint32_t), KEY_FEW_BYTES = 512 };

struct key {
    struct slice text;
    uint8_t few[KEY_FEW_BYTES];
    uint8_t *many;
};

/* Returns where the name of the subject begins. */
static uint8_t *key_begin(struct key *key, char kind, size_t name_bytes, struct slice binding)
{
    size_t bytes = KEY_HEAD_BYTES + name_bytes + binding.len;
    uint32_t len = (uint32_t)name_bytes;
    uint8_t *to = key->few;
    key->many = NULL;
    if (bytes > KEY_FEW_BYTES)
        to = key->many = xmalloc(bytes);
    key->text = slice_of(to, bytes);
    to[0] = (uint8_t)kind;
    memcpy(to + 1, &len, sizeof(len));
    slice_copy(to + KEY_HEAD_BYTES + name_bytes, binding);
    return to + KEY_HEAD_BYTES;
}

static void key_of_name(struct key *key, char kind, struct slice name, struct slice binding)
{
    slice_copy(key_begin(key, kind, name.len, binding), name);
}

/* False: no user is meant. */
static bool key_of_subject(struct key *key, const struct kube_lookup_object *object,
                           const struct kube_subject *s)
{
    struct slice of = s->namespace.len ? s->namespace : object->namespace;
    *key = (struct key){.text = SLICE_EMPTY};
    if (s->kind == SUBJECT_ACCOUNT && !of.len)
        return false;
    if (s->kind == SUBJECT_ACCOUNT) {
        /* The key has the name of the account's user. */
        struct slice prefix = SLICE_LITERAL(ACCOUNT_PREFIX);
        uint8_t *to = key_begin(key, 'u', prefix.len + of.len + 1 + s->name.len, object->name);
        slice_copy(to, prefix);
        slice_copy(to + prefix.len, of);
        to[prefix.len + of.len] = ':';
        slice_copy(to + prefix.len + of.len + 1, s->name);
    } else {
        key_of_name(key, s->kind == SUBJECT_USER ? 'u' : 'g', s->name, object->name);
    }
    return true;
}

/* -- The index -- */

/* A binding of a subject. */
struct indexed {
    struct version_item item;
    struct kube_bound bound;
    uint8_t key[];
};

static struct indexed *indexed_of(const struct version_item *item)
{
    return CONTAINER_OF((struct version_item *)(uintptr_t)item, struct indexed, item);
}

static void indexed_free(struct version_item *item)
{
    free(indexed_of(item));
}

/* The first of several equal subjects counts. */
static void add_subject(struct version_map *index, struct slice key, struct kube_bound bound)
{
    if (version_map_get(index, key))
        return;
    struct indexed *indexed = xmalloc(sizeof(*indexed) + key.len);
    *indexed = (struct indexed){.item = {.refs = 1, .free = indexed_free}, .bound = bound};
    slice_copy(indexed->key, key);
    indexed->item.key = slice_of(indexed->key, key.len);
    version_map_put(index, &indexed->item);
}

static void remove_subject(struct version_map *index, struct slice key, struct kube_bound bound)
{
    (void)bound;
    (void)version_map_remove(index, key); /* unless an equal subject was removed before */
}

static void each_subject(struct version_map *index, const struct kube_lookup_object *object,
                         void (*fn)(struct version_map *index, struct slice key,
                                    struct kube_bound bound))
{
    const struct kube_binding *b = object->data;
    for (size_t i = 0; i < b->subject_count; i++) {
        struct key key;
        if (key_of_subject(&key, object, &b->subjects[i]))
            fn(index, key.text, (struct kube_bound){object, &b->subjects[i]});
        free(key.many);
    }
}

void kube_binding_index_add(struct version_map *index, const struct kube_lookup_object *object)
{
    each_subject(index, object, add_subject);
}

void kube_binding_index_remove(struct version_map *index, const struct kube_lookup_object *object)
{
    each_subject(index, object, remove_subject);
}

size_t kube_binding_index_bytes(const struct kube_lookup_object *object)
{
    const struct kube_binding *b = object->data;
    size_t bytes = 0;
    for (size_t i = 0; i < b->subject_count; i++)
        bytes += VERSION_NODE_BYTES + sizeof(struct indexed) + KEY_HEAD_BYTES +
                 sizeof(ACCOUNT_PREFIX) + b->subjects[i].namespace.len + b->subjects[i].name.len +
                 object->name.len;
    return bytes;
}

static bool is_subject(const struct kube_lookup_object *object, const struct kube_subject *s,
                       const struct kube_user_info *user)
{
    struct key key;
    if (s->kind == SUBJECT_GROUP)
        return slices_have(user->groups.items, user->groups.count, s->name);
    bool is = key_of_subject(&key, object, s);
    struct slice name = slice_sub(key.text, 0, is ? key.text.len - object->name.len : 0);
    is = is && slice_equal(slice_sub(name, KEY_HEAD_BYTES, name.len - KEY_HEAD_BYTES), user->name);
    free(key.many);
    return is;
}

bool kube_binding_is_of(const struct kube_lookup_object *object, const struct kube_user_info *user)
{
    const struct kube_binding *b = object->data;
    for (size_t i = 0; i < b->subject_count; i++)
        if (is_subject(object, &b->subjects[i], user))
            return true;
    return false;
}

/* -- Bindings of a user -- */

/* What is left of the bindings of one of the user's names. */
struct rest {
    struct version_cursor cursor;
    struct slice subject; /* the beginning of the keys; borrowed from them */
    const struct kube_bound *next;
};

/* All of them, merged: a heap by the next binding of each. */
struct merge {
    struct rest *rests, few_rests[8];
    struct rest **heap, *few[8];
    size_t count;
};

/* By name, and of one binding the first subject first. */
static int order(const struct rest *a, const struct rest *b)
{
    if (a->next->object != b->next->object)
        return slice_compare(a->next->object->name, b->next->object->name);
    return (a->next->subject > b->next->subject) - (a->next->subject < b->next->subject);
}

static void sift_down(struct merge *m, size_t at)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < m->count; i++)
            if (order(m->heap[i], m->heap[least]) < 0)
                least = i;
        if (least == at)
            return;
        struct rest *rest = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = rest;
        at = least;
    }
}

static bool rest_next(struct rest *rest)
{
    const struct version_item *item = version_cursor_next(&rest->cursor);
    bool more = item && slice_has_prefix(item->key, rest->subject);
    rest->next = more ? &indexed_of(item)->bound : NULL;
    return more;
}

static void merge_add(struct merge *m, const struct version_map *index, char kind,
                      struct slice name)
{
    struct rest *rest = &m->rests[m->count];
    struct key key;
    key_of_name(&key, kind, name, SLICE_EMPTY);
    version_cursor_seek(&rest->cursor, index, key.text);
    rest->subject = key.text;
    if (rest_next(rest)) {
        const struct indexed *first = CONTAINER_OF(rest->next, const struct indexed, bound);
        rest->subject = slice_sub(first->item.key, 0, key.text.len);
        m->heap[m->count++] = rest;
    }
    free(key.many);
}

static void merge_start(struct merge *m, const struct version_map *index,
                        const struct kube_user_info *user)
{
    size_t names = user->groups.count + 1;
    m->count = 0;
    m->rests = m->few_rests;
    m->heap = m->few;
    if (names > COUNT_OF(m->few)) {
        m->rests = xmalloc(names * sizeof(*m->rests));
        m->heap = xmalloc(names * sizeof(*m->heap));
    }
    merge_add(m, index, 'u', user->name);
    for (size_t i = 0; i < user->groups.count; i++)
        merge_add(m, index, 'g', user->groups.items[i]);
    for (size_t i = m->count / 2; i-- > 0;)
        sift_down(m, i);
}

static void merge_end(struct merge *m)
{
    if (m->heap == m->few)
        return;
    free(m->rests);
    free(m->heap);
}

static bool merge_next(struct merge *m, struct kube_bound *ret_bound)
{
    if (!m->count)
        return false;
    *ret_bound = *m->heap[0]->next;
    if (!rest_next(m->heap[0]))
        m->heap[0] = m->heap[--m->count];
    sift_down(m, 0);
    return true;
}

size_t kube_binding_index_each(const struct version_map *index, const struct kube_user_info *user,
                               bool (*fn)(void *ctx, const struct kube_bound *bound), void *ctx)
{
    size_t examined = 0;
    struct merge merge;
    struct kube_bound bound, last = {NULL, NULL};
    merge_start(&merge, index, user);
    while (merge_next(&merge, &bound)) {
        bool again = bound.object == last.object; /* another of its subjects */
        last = bound;
        examined++;
        if (!again && !fn(ctx, &bound))
            break;
    }
    merge_end(&merge);
    return examined;
}
