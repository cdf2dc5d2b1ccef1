#include "kube/policy/lookup/shelf.h"

#include "base/memory/arena.h"
#include "base/xalloc.h"

enum {
    TREE_BYTES_MAX = 64 << 20, /* memory for the tree of one object while it is read */
    KEPT_BYTES_MAX = 64 << 20, /* what is kept of one object */
    FIRST_BYTES_MAX = 1024,    /* room for that in the first allocation of an object */
};

/* One version of an object, with what `read` keeps of it. */
struct entry {
    struct version_item item; /* its key is the name */
    struct kube_lookup_object object;
    size_t bytes; /* with its place in the shelf */
    struct arena arena;
    _Alignas(ARENA_ALIGN) uint8_t first[];
};

static struct entry *entry_of(const struct version_item *item)
{
    return CONTAINER_OF((struct version_item *)(uintptr_t)item, struct entry, item);
}

static void entry_free(struct version_item *item)
{
    struct entry *entry = entry_of(item);
    arena_fini(&entry->arena);
    free(entry);
}

static void entry_unref(struct entry *entry)
{
    version_item_unref(entry ? &entry->item : NULL);
}
DEFINE_CLEANUP(struct entry *, entry_unref)

/* What is kept is often about as long as the stored text, and sometimes much shorter. */
static struct entry *entry_new(struct slice namespace, struct slice name, struct kube_kv kv)
{
    size_t room = size_min(kv.value.len, FIRST_BYTES_MAX);
    size_t bytes = sizeof(struct entry) + room + namespace.len + name.len;
    struct entry *entry = xmalloc(bytes);
    uint8_t *names = entry->first + room;
    *entry = (struct entry){.item = {.refs = 1, .free = entry_free}, .bytes = bytes};
    slice_copy(names, namespace);
    slice_copy(names + namespace.len, name);
    entry->object = (struct kube_lookup_object){
        .namespace = slice_of(names, namespace.len),
        .name = slice_of(names + namespace.len, name.len),
        .revision = kv.mod_revision,
    };
    entry->item.key = entry->object.name;
    arena_init(&entry->arena, entry->first, room, KEPT_BYTES_MAX);
    return entry;
}

/* -- Reading -- */

/* Keeps the tree with its text. */
static const void *keep_tree(struct arena *arena, struct slice text)
{
    struct slice copy;
    struct json_node *tree;
    struct error ignored;
    if (arena_dup(arena, text, &copy) != ST_OK ||
        json_tree_read(arena, copy, &tree, &ignored) != ST_OK)
        return NULL;
    return tree;
}

static enum status read_data(const struct kube_lookup_kind *kind, struct entry *entry,
                             struct slice text)
{
    struct json_node *tree;
    struct error ignored;
    struct arena scratch;
    enum status status = ST_OK;
    if (!kind->read) {
        entry->object.data = keep_tree(&entry->arena, text);
    } else {
        arena_init(&scratch, NULL, 0, TREE_BYTES_MAX);
        status = json_tree_read(&scratch, text, &tree, &ignored);
        if (status == ST_OK)
            entry->object.data = kind->read(&entry->arena, tree);
        arena_fini(&scratch);
    }
    /* What is not JSON is not an object, for which memory has no part in it. */
    return status == ST_NOMEM || arena_ran_out(&entry->arena) ? ST_NOMEM : ST_OK;
}

/* -- Shelves -- */

static void shelf_free(struct version_item *item)
{
    struct kube_shelf *shelf = CONTAINER_OF(item, struct kube_shelf, item);
    version_map_fini(&shelf->objects);
    version_map_fini(&shelf->index);
    free(shelf);
}

struct kube_shelf *kube_shelf_new(struct slice namespace)
{
    struct kube_shelf *shelf = xmalloc(sizeof(*shelf) + namespace.len);
    *shelf = (struct kube_shelf){.item = {.refs = 1, .free = shelf_free}, .held = true};
    slice_copy(shelf->namespace, namespace);
    shelf->item.key = slice_of(shelf->namespace, namespace.len);
    return shelf;
}

struct kube_shelf *kube_shelf_dup(const struct kube_shelf *shelf)
{
    struct kube_shelf *copy = kube_shelf_new(shelf->item.key);
    copy->objects = version_map_dup(&shelf->objects);
    copy->index = version_map_dup(&shelf->index);
    copy->bytes = shelf->bytes;
    copy->unreadable = shelf->unreadable;
    copy->held = shelf->held;
    return copy;
}

/* The entry is no longer one of the shelf's; it is freed with its last version of the map. */
static void forget(struct kube_shelf *shelf, const struct kube_lookup_kind *kind,
                   const struct entry *entry)
{
    shelf->bytes -= entry->bytes;
    if (!entry->object.data)
        shelf->unreadable--;
    else if (kind->removed)
        kind->removed(&shelf->index, &entry->object);
}

void kube_shelf_remove(struct kube_shelf *shelf, const struct kube_lookup_kind *kind,
                       struct slice name)
{
    const struct version_item *old = version_map_get(&shelf->objects, name);
    if (!old)
        return;
    forget(shelf, kind, entry_of(old));
    version_map_remove(&shelf->objects, name);
}

enum status kube_shelf_put(struct kube_shelf *shelf, const struct kube_lookup_kind *kind,
                           struct slice name, struct kube_kv kv,
                           bool (*wants)(void *ctx, const struct kube_lookup_object *object),
                           void *ctx)
{
    const struct version_item *old = version_map_get(&shelf->objects, name);
    if (old && entry_of(old)->object.revision >= kv.mod_revision)
        return ST_OK;
    AUTO(entry_unrefp) struct entry *entry = entry_new(shelf->item.key, name, kv);
    const struct kube_lookup_object *object = &entry->object;
    TRY(read_data(kind, entry, kv.value));
    if (wants && object->data && !wants(ctx, object))
        return ST_OK;
    if (kind->keeps && object->data && !kind->keeps(object->data)) {
        kube_shelf_remove(shelf, kind, name);
        return ST_OK;
    }
    entry->bytes += entry->arena.held_bytes + VERSION_NODE_BYTES;
    if (object->data && kind->index_bytes)
        entry->bytes += kind->index_bytes(object);
    if (old)
        forget(shelf, kind, entry_of(old));
    if (!object->data)
        shelf->unreadable++;
    else if (kind->added)
        kind->added(&shelf->index, object);
    shelf->bytes += entry->bytes;
    version_map_put(&shelf->objects, &TAKE(entry)->item);
    return ST_OK;
}

/* -- Use -- */

const struct kube_lookup_object *kube_shelf_get(const struct kube_shelf *shelf, struct slice name)
{
    const struct version_item *item = version_map_get(&shelf->objects, name);
    return item && entry_of(item)->object.data ? &entry_of(item)->object : NULL;
}

struct walk {
    bool (*fn)(void *ctx, const struct kube_lookup_object *object);
    void *ctx;
};

static bool visit(void *ctx, struct version_item *item)
{
    const struct walk *walk = ctx;
    const struct entry *entry = entry_of(item);
    return !entry->object.data || walk->fn(walk->ctx, &entry->object);
}

void kube_shelf_each(const struct kube_shelf *shelf,
                     bool (*fn)(void *ctx, const struct kube_lookup_object *object), void *ctx)
{
    (void)version_map_each(&shelf->objects, visit, &(struct walk){fn, ctx});
}

static struct entry *entry_with(const struct kube_lookup_object *object)
{
    return CONTAINER_OF((struct kube_lookup_object *)(uintptr_t)object, struct entry, object);
}

void kube_lookup_hold(const struct kube_lookup_object *object)
{
    version_item_ref(&entry_with(object)->item);
}

void kube_lookup_release(const struct kube_lookup_object *object)
{
    if (object)
        entry_unref(entry_with(object));
}

struct sums {
    size_t bytes, unreadable;
};

static bool add_up(void *ctx, struct version_item *item)
{
    struct sums *sums = ctx;
    sums->bytes += entry_of(item)->bytes;
    sums->unreadable += !entry_of(item)->object.data;
    return true;
}

void kube_shelf_check(const struct kube_shelf *shelf)
{
    struct sums sums = {0};
    version_map_check(&shelf->objects);
    version_map_check(&shelf->index);
    (void)version_map_each(&shelf->objects, add_up, &sums);
    assert(sums.bytes == shelf->bytes && sums.unreadable == shelf->unreadable);
    assert(shelf->held || !version_map_count(&shelf->objects));
}
