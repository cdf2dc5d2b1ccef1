#include "kube/access/binding.h"

#include "base/xalloc.h"

#define ACCOUNT_PREFIX "system:serviceaccount:"

/* -- Reading -- */

static bool read_subject(struct arena *arena, const struct json_node *node, struct kube_subject *to)
{
    struct slice kind = kube_text_copy(arena, node, "kind");
    to->name = kube_text_copy(arena, node, "name");
    to->namespace = kube_text_copy(arena, node, "namespace");
    if (slice_equal(kind, SLICE_LITERAL("User")))
        to->kind = SUBJECT_USER;
    else if (slice_equal(kind, SLICE_LITERAL("Group")))
        to->kind = SUBJECT_GROUP;
    else if (slice_equal(kind, SLICE_LITERAL("ServiceAccount")))
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
    if (!b || (some && list->count > KUBE_BINDING_SUBJECTS_MAX))
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

/* -- Buckets -- */

/* The bindings of one subject in one namespace. Owned by the index. */
struct bucket {
    struct slice key; /* owned */
    struct kube_bound *bound;
    size_t count, capacity;
};

static struct slice key_of(const void *value)
{
    return ((const struct bucket *)value)->key;
}

/* A letter for users or groups, the length of the namespace, the namespace, and the name: no two
 * subjects have the same key. */
enum { KEY_HEAD_BYTES = 1 + sizeof(size_t), KEY_FEW_BYTES = 512 };

/* A key is usually short and on the stack. */
struct key {
    struct slice text;
    uint8_t few[KEY_FEW_BYTES];
    uint8_t *many;
};

static void key_fini(struct key *key)
{
    free(key->many);
}

static uint8_t *key_begin(struct key *key, char kind, struct slice namespace, size_t name_bytes)
{
    size_t bytes = KEY_HEAD_BYTES + namespace.len + name_bytes;
    uint8_t *to = key->few;
    key->many = NULL;
    if (bytes > KEY_FEW_BYTES)
        to = key->many = xmalloc(bytes);
    key->text = slice_of(to, bytes);
    to[0] = (uint8_t)kind;
    memcpy(to + 1, &namespace.len, sizeof(namespace.len));
    slice_copy(to + KEY_HEAD_BYTES, namespace);
    return to + KEY_HEAD_BYTES + namespace.len;
}

static void key_of_name(struct key *key, char kind, struct slice namespace, struct slice name)
{
    slice_copy(key_begin(key, kind, namespace, name.len), name);
}

/* The name of the account's user. */
static void key_of_account(struct key *key, struct slice namespace, struct slice of,
                           struct slice name)
{
    struct slice prefix = SLICE_LITERAL(ACCOUNT_PREFIX);
    uint8_t *to = key_begin(key, 'u', namespace, prefix.len + of.len + 1 + name.len);
    slice_copy(to, prefix);
    slice_copy(to + prefix.len, of);
    to[prefix.len + of.len] = ':';
    slice_copy(to + prefix.len + of.len + 1, name);
}

/* False: no user is meant. */
static bool key_of_subject(struct key *key, const struct kube_lookup_object *object,
                           const struct kube_subject *s)
{
    struct slice of = s->namespace.len ? s->namespace : object->namespace;
    *key = (struct key){.text = SLICE_EMPTY};
    if (s->kind == SUBJECT_ACCOUNT && !of.len)
        return false;
    if (s->kind == SUBJECT_ACCOUNT)
        key_of_account(key, object->namespace, of, s->name);
    else
        key_of_name(key, s->kind == SUBJECT_USER ? 'u' : 'g', object->namespace, s->name);
    return true;
}

/* The order of visits: by name, and of one binding the first subject first. */
static int bound_order(const struct kube_bound *a, const struct kube_bound *b)
{
    if (a->object != b->object)
        return slice_compare(a->object->name, b->object->name);
    return (a->subject > b->subject) - (a->subject < b->subject);
}

/* The first that is not before this one. */
static size_t bucket_find(const struct bucket *bucket, const struct kube_bound *bound)
{
    size_t low = 0, high = bucket->count;
    if (high && bound_order(&bucket->bound[high - 1], bound) < 0)
        return high; /* bindings are read in this order */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bound_order(&bucket->bound[middle], bound) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void bucket_insert(struct bucket *bucket, struct kube_bound bound)
{
    size_t at = bucket_find(bucket, &bound);
    if (bucket->count == bucket->capacity) {
        bucket->capacity = bucket->capacity ? bucket->capacity * 2 : 1;
        bucket->bound = xrealloc(bucket->bound, bucket->capacity * sizeof(bound));
    }
    memmove(&bucket->bound[at + 1], &bucket->bound[at], (bucket->count++ - at) * sizeof(bound));
    bucket->bound[at] = bound;
}

static struct bucket *bucket_get(struct kube_binding_index *index, struct slice key)
{
    struct bucket *bucket = hash_map_get(&index->buckets, key);
    void *replaced;
    if (bucket)
        return bucket;
    bucket = xcalloc(1, sizeof(*bucket));
    uint8_t *copy = xmalloc(key.len);
    slice_copy(copy, key);
    bucket->key = slice_of(copy, key.len);
    if (hash_map_put(&index->buckets, bucket, &replaced) != ST_OK)
        abort(); /* no memory, as elsewhere in the server */
    return bucket;
}

static void bucket_free(struct bucket *bucket)
{
    free((void *)(uintptr_t)bucket->key.ptr);
    free(bucket->bound);
    free(bucket);
}

/* -- The index -- */

void kube_binding_index_init(struct kube_binding_index *index, uint64_t seed)
{
    *index = (struct kube_binding_index){0};
    hash_map_init(&index->buckets, key_of, seed);
}

void kube_binding_index_fini(struct kube_binding_index *index)
{
    assert(!index->buckets.count && !index->subjects);
    hash_map_fini(&index->buckets);
}

const char *kube_binding_index_add(void *ctx, const struct kube_lookup_object *object)
{
    struct kube_binding_index *index = ctx;
    const struct kube_binding *b = object->data;
    if (b->subject_count > KUBE_BINDING_INDEXED_MAX - index->subjects)
        return "all together have too many subjects";
    for (size_t i = 0; i < b->subject_count; i++) {
        struct kube_bound bound = {object, &b->subjects[i]};
        struct key key;
        if (key_of_subject(&key, object, bound.subject))
            bucket_insert(bucket_get(index, key.text), bound);
        key_fini(&key);
    }
    index->subjects += b->subject_count;
    return NULL;
}

static void remove_subject(struct kube_binding_index *index, struct slice key,
                           const struct kube_bound *bound)
{
    struct bucket *bucket = hash_map_get(&index->buckets, key);
    size_t at = bucket_find(bucket, bound);
    assert(bound_order(&bucket->bound[at], bound) == 0);
    memmove(&bucket->bound[at], &bucket->bound[at + 1],
            (--bucket->count - at) * sizeof(bucket->bound[0]));
    if (bucket->count)
        return;
    hash_map_remove(&index->buckets, key);
    bucket_free(bucket);
}

void kube_binding_index_remove(void *ctx, const struct kube_lookup_object *object)
{
    struct kube_binding_index *index = ctx;
    const struct kube_binding *b = object->data;
    for (size_t i = b->subject_count; i-- > 0;) {
        struct kube_bound bound = {object, &b->subjects[i]};
        struct key key;
        if (key_of_subject(&key, object, bound.subject))
            remove_subject(index, key.text, &bound);
        key_fini(&key);
    }
    index->subjects -= b->subject_count;
}

/* -- Bindings of a user -- */

/* The buckets of a user, merged: a heap by the first binding that is left in each. */
struct merge {
    struct rest {
        const struct kube_bound *next, *end;
    } * heap, few[8];
    size_t count;
};

static void sift_down(struct merge *m, size_t at)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < m->count; i++)
            if (bound_order(m->heap[i].next, m->heap[least].next) < 0)
                least = i;
        if (least == at)
            return;
        struct rest rest = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = rest;
        at = least;
    }
}

static void merge_add(struct merge *m, const struct kube_binding_index *index, char kind,
                      struct slice namespace, struct slice name)
{
    struct key key;
    key_of_name(&key, kind, namespace, name);
    const struct bucket *bucket = hash_map_get(&index->buckets, key.text);
    if (bucket)
        m->heap[m->count++] = (struct rest){bucket->bound, bucket->bound + bucket->count};
    key_fini(&key);
}

static void merge_start(struct merge *m, const struct kube_binding_index *index,
                        const struct kube_user_info *user, struct slice namespace)
{
    m->count = 0;
    m->heap = m->few;
    if (user->groups.count >= COUNT_OF(m->few))
        m->heap = xcalloc(user->groups.count + 1, sizeof(*m->heap));
    merge_add(m, index, 'u', namespace, user->name);
    for (size_t i = 0; i < user->groups.count; i++)
        merge_add(m, index, 'g', namespace, user->groups.items[i]);
    for (size_t i = m->count / 2; i-- > 0;)
        sift_down(m, i);
}

static bool merge_next(struct merge *m, struct kube_bound *ret_bound)
{
    if (!m->count)
        return false;
    *ret_bound = *m->heap[0].next++;
    if (m->heap[0].next == m->heap[0].end)
        m->heap[0] = m->heap[--m->count];
    sift_down(m, 0);
    return true;
}

size_t kube_binding_index_each(const struct kube_binding_index *index,
                               const struct kube_user_info *user, struct slice namespace,
                               bool (*fn)(void *ctx, const struct kube_bound *bound), void *ctx)
{
    size_t examined = 0;
    struct merge merge;
    struct kube_bound bound, last = {NULL, NULL};
    merge_start(&merge, index, user, namespace);
    while (merge_next(&merge, &bound)) {
        bool again = bound.object == last.object; /* another of its subjects */
        last = bound;
        examined++;
        if (!again && !fn(ctx, &bound))
            break;
    }
    if (merge.heap != merge.few)
        free(merge.heap);
    return examined;
}

void kube_binding_index_check(const struct kube_binding_index *index)
{
    const struct bucket *bucket;
    size_t subjects = 0;
    hash_map_check(&index->buckets);
    MAP_FOREACH (bucket, &index->buckets) {
        assert(bucket->count);
        for (size_t i = 1; i < bucket->count; i++)
            assert(bound_order(&bucket->bound[i - 1], &bucket->bound[i]) < 0);
        subjects += bucket->count;
    }
    assert(subjects <= index->subjects);
}
