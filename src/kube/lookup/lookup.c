#include "kube/lookup/lookup.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/turn.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "kube/storage/storage.h"
#include "watch/cursor.h"

enum {
    OP_ARENA_BYTES_MAX = 1 << 20,
    TREE_BYTES_MAX = 16 << 20, /* memory for the tree of one object while it is read */
    TURN_BYTES_MAX = 64 << 10, /* parsed in one turn, 1 to 2 ms; one object may be longer */
    OBJECT_COST_BYTES = 128,   /* what an object counts for at least */
    LINES_MAX = 10,            /* log lines about objects that are left out, per reading */
};

/* Before objects that were left out are read again. */
#define RELOAD_NS (60 * NS_PER_S)

enum state { EMPTY, LOADING, CURRENT, STOPPED };

#define TO(state) (1u << (state))

static const unsigned moves[] = {
    [EMPTY] = TO(LOADING) | TO(STOPPED),
    [LOADING] = TO(CURRENT) | TO(EMPTY) | TO(STOPPED),
    [CURRENT] = TO(LOADING) | TO(STOPPED),
    [STOPPED] = 0,
};

/* One version of an object, with its key and what `read` keeps of it. */
struct entry {
    struct kube_lookup_object object;
    struct slice key; /* after the prefix: "namespace/name" or "name" */
    size_t bytes;     /* of this allocation, without the arena's blocks */
    unsigned holds;   /* by the lookup and by users */
    struct arena arena;
    _Alignas(ARENA_ALIGN) uint8_t first[];
};

struct kube_lookup {
    struct kube_lookup_options options;
    enum state state;
    struct entry **entries; /* owned; in the order of their keys */
    size_t count, capacity;
    size_t bytes; /* of all entries */
    size_t left_out;
    unsigned lines;
    struct list waiting;

    /* Reading all objects, some in each turn. */
    bool reading; /* the range is open, or its operation is under way */
    struct deferred more;
    struct arena arena;
    struct pb_range_request request;
    struct engine_range range;

    /* Afterwards. */
    struct watch_cursor *cursor;
    struct deferred look;
    struct timer reload; /* set while objects are left out and one of the others has changed */
};

static void start_loading(struct kube_lookup *l);

static void move(struct kube_lookup *l, enum state next)
{
    assert(moves[l->state] & TO(next));
    l->state = next;
}

/* -- Entries -- */

static size_t entry_size(const struct entry *entry)
{
    return entry->bytes + entry->arena.held_bytes;
}

static void entry_free(struct entry *entry)
{
    if (!entry || --entry->holds)
        return;
    arena_fini(&entry->arena);
    free(entry);
}
DEFINE_CLEANUP(struct entry *, entry_free)

static void set_names(struct entry *entry, bool namespaced)
{
    struct slice key = entry->key;
    const uint8_t *slash = namespaced ? memchr(key.ptr, '/', key.len) : NULL;
    size_t at = slash ? (size_t)(slash - key.ptr) : 0, skip = slash ? at + 1 : 0;
    entry->object.namespace = slice_sub(key, 0, at);
    entry->object.name = slice_sub(key, skip, key.len - skip);
}

/* What is kept is about as long as the stored text, so one allocation usually has room for all. */
static struct entry *entry_new(const struct kube_lookup *l, struct slice key, struct kube_kv kv)
{
    size_t room = key.len + kv.value.len + 256, bytes = sizeof(struct entry) + room;
    struct entry *entry = xmalloc(bytes);
    *entry = (struct entry){.bytes = bytes, .holds = 1, .object.revision = kv.mod_revision};
    arena_init(&entry->arena, entry->first, room, l->options.bytes_max);
    if (arena_dup(&entry->arena, key, &entry->key) != ST_OK)
        abort(); /* the first bytes have room for it */
    set_names(entry, l->options.namespaced);
    return entry;
}

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

static const void *read_data(const struct kube_lookup *l, struct arena *arena, struct slice text)
{
    struct json_node *tree;
    struct error ignored;
    struct arena scratch;
    if (!l->options.read)
        return keep_tree(arena, text);
    arena_init(&scratch, NULL, 0, TREE_BYTES_MAX);
    const void *data = NULL;
    if (json_tree_read(&scratch, text, &tree, &ignored) == ST_OK)
        data = l->options.read(arena, tree);
    arena_fini(&scratch);
    return arena_ran_out(arena) ? NULL : data;
}

/* -- The order -- */

/* The first entry whose key is not smaller. */
static size_t find(const struct kube_lookup *l, struct slice key)
{
    size_t low = 0, high = l->count;
    if (high && slice_compare(l->entries[high - 1]->key, key) < 0)
        return high; /* objects are read in this order */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(l->entries[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct kube_lookup *l, size_t at, struct slice key)
{
    return at < l->count && slice_equal(l->entries[at]->key, key);
}

static void remove_at(struct kube_lookup *l, size_t at)
{
    struct entry *entry = l->entries[at];
    if (l->options.removed)
        l->options.removed(l->options.index, &entry->object);
    memmove(&l->entries[at], &l->entries[at + 1], (--l->count - at) * sizeof(struct entry *));
    l->bytes -= entry_size(entry);
    entry_free(entry);
}

static void insert_at(struct kube_lookup *l, size_t at, struct entry *entry)
{
    if (l->count == l->capacity) {
        l->capacity = size_max(16, l->capacity * 2);
        l->entries = xrealloc(l->entries, l->capacity * sizeof(struct entry *));
    }
    memmove(&l->entries[at + 1], &l->entries[at], (l->count++ - at) * sizeof(struct entry *));
    l->entries[at] = entry;
    l->bytes += entry_size(entry);
}

static void clear(struct kube_lookup *l)
{
    while (l->count)
        remove_at(l, l->count - 1); /* the last is the cheapest to remove, also from an index */
    free(l->entries);
    l->entries = NULL;
    l->capacity = l->left_out = 0;
    l->lines = 0;
}

/* -- One object -- */

static void leave_out(struct kube_lookup *l, struct slice key, const char *why)
{
    l->left_out++;
    if (l->lines++ < LINES_MAX)
        log_warn("an object is left out of decisions that need all of its kind",
                 LOG_TEXT("prefix", l->options.prefix), LOG_SLICE("key", key),
                 LOG_TEXT("why", why));
}

static const char *index_object(const struct kube_lookup *l, const struct entry *entry)
{
    return l->options.added ? l->options.added(l->options.index, &entry->object) : NULL;
}

static void add(struct kube_lookup *l, struct slice key, struct kube_kv kv)
{
    const char *why;
    if (kv.value.len > KUBE_LOOKUP_OBJECT_BYTES_MAX) {
        leave_out(l, key, "it is too long");
        return;
    }
    if (l->count >= l->options.objects_max) {
        leave_out(l, key, "there are too many");
        return;
    }
    AUTO(entry_freep) struct entry *entry = entry_new(l, key, kv);
    entry->object.data = read_data(l, &entry->arena, kv.value);
    if (!entry->object.data)
        leave_out(l, key, "it cannot be read");
    else if (entry_size(entry) > l->options.bytes_max - l->bytes)
        leave_out(l, key, "all together are too large");
    else if ((why = index_object(l, entry)) != NULL)
        leave_out(l, key, why);
    else
        insert_at(l, find(l, key), TAKE(entry));
}

static struct slice key_of(const struct kube_lookup *l, struct slice whole)
{
    size_t len = strlen(l->options.prefix);
    return slice_sub(whole, len, whole.len - len);
}

static bool take_away(struct kube_lookup *l, struct slice key)
{
    size_t at = find(l, key);
    bool had = is_at(l, at, key);
    if (had)
        remove_at(l, at);
    return had;
}

/* There may be room for objects that were left out. */
static void plan_reload(struct kube_lookup *l)
{
    if (l->left_out && !l->reload.set)
        loop_timer_set(l->options.loop, &l->reload,
                       clock_add(loop_now_ns(l->options.loop), RELOAD_NS));
}

/* -- Reading all -- */

static void finish_waits(struct kube_lookup *l, enum status status)
{
    struct list ready, *link;
    list_init(&ready);
    list_append(&ready, &l->waiting);
    while ((link = list_pop_front(&ready)) != NULL) {
        struct kube_lookup_wait *wait = LIST_ENTRY(link, struct kube_lookup_wait, in_lookup);
        wait->status = status;
        wait->go(wait);
    }
}

static void close_range(struct kube_lookup *l)
{
    engine_range_close(&l->range);
    arena_fini(&l->arena);
    l->reading = false;
    --*l->options.under_way;
}

static void wake(void *ctx)
{
    struct kube_lookup *l = ctx;
    loop_defer(l->options.loop, &l->look);
}

/* From the revision after the one that was read. */
static enum status open_cursor(struct kube_lookup *l, int64_t revision)
{
    l->cursor =
        watch_cursor_new(engine_watch_hub(l->options.shard), &(struct watch_cursor_options){
                                                                 .key = l->request.key,
                                                                 .range_end = l->request.range_end,
                                                                 .from = revision + 1,
                                                                 .own = true,
                                                                 .wake = wake,
                                                                 .ctx = l,
                                                             });
    if (!l->cursor)
        return ST_REQUEST_TOO_MANY_REQUESTS;
    loop_defer(l->options.loop, &l->look);
    return ST_OK;
}

static void finish_loading(struct kube_lookup *l, enum status status)
{
    bool stopped = l->state == STOPPED;
    if (status == ST_OK && !stopped)
        status = open_cursor(l, l->range.op.revision);
    close_range(l);
    if (stopped) {
        finish_waits(l, ST_STOPPED);
        return;
    }
    if (status != ST_OK)
        clear(l);
    move(l, status == ST_OK ? CURRENT : EMPTY);
    finish_waits(l, status);
}

static void read_more(struct deferred *deferred)
{
    struct kube_lookup *l = CONTAINER_OF(deferred, struct kube_lookup, more);
    struct slice field;
    size_t bytes = 0;
    bool more = true;
    turn_work("reading all objects of a kind", slice_from_text(l->options.prefix));
    while (more && bytes < TURN_BYTES_MAX) {
        more = l->state == LOADING && engine_range_next(&l->range, &field);
        if (!more)
            break;
        struct kube_kv kv = kube_kv_of(field);
        add(l, key_of(l, kv.key), kv);
        bytes += size_max(kv.value.len, OBJECT_COST_BYTES);
    }
    if (more)
        loop_defer(l->options.loop, &l->more);
    else
        finish_loading(l, l->range.op.status);
}

static void on_range(struct engine_op *op)
{
    struct kube_lookup *l = CONTAINER_OF(op, struct kube_lookup, range.op);
    if (op->status == ST_OK)
        loop_defer(l->options.loop, &l->more);
    else
        finish_loading(l, op->status);
}

static void start_loading(struct kube_lookup *l)
{
    watch_cursor_free(l->cursor);
    l->cursor = NULL;
    clear(l);
    move(l, LOADING);
    l->reading = true;
    ++*l->options.under_way;
    arena_init(&l->arena, NULL, 0, OP_ARENA_BYTES_MAX);
    l->range.op =
        (struct engine_op){.done = on_range, .arena = &l->arena, .principal = ENGINE_SERVER};
    engine_range_start(l->options.shard, &l->range, &l->request);
}

/* -- Changes -- */

static void apply(struct kube_lookup *l, const struct watch_event *event)
{
    struct slice key = key_of(l, event->key);
    size_t left_out = l->left_out;
    bool had = take_away(l, key);
    if (!event->tombstone)
        add(l, key, kube_kv_of(event->field));
    /* Also if one of those that were left out may be gone. */
    if (had || l->left_out == left_out)
        plan_reload(l);
}

static void look(struct deferred *deferred)
{
    struct kube_lookup *l = CONTAINER_OF(deferred, struct kube_lookup, look);
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_OK;
    size_t bytes = 0;
    turn_work("following the objects of a kind", slice_from_text(l->options.prefix));
    while (bytes < TURN_BYTES_MAX &&
           (status = watch_cursor_next(l->cursor, &event, &revision)) == ST_OK) {
        bytes += size_max(event->field.len, OBJECT_COST_BYTES);
        apply(l, event);
        watch_cursor_take(l->cursor);
    }
    if (status == ST_COMPACTED || status == ST_DAMAGED)
        start_loading(l);
    else if (status == ST_OK)
        loop_defer(l->options.loop, &l->look);
}

static void on_reload(struct timer *timer)
{
    struct kube_lookup *l = CONTAINER_OF(timer, struct kube_lookup, reload);
    if (l->state == CURRENT)
        start_loading(l);
}

/* -- Use -- */

bool kube_lookup_ready(const struct kube_lookup *l)
{
    return l->state == CURRENT;
}

void kube_lookup_wait(struct kube_lookup *l, struct kube_lookup_wait *wait)
{
    if (l->state == CURRENT || l->state == STOPPED) {
        wait->status = l->state == CURRENT ? ST_OK : ST_STOPPED;
        wait->go(wait);
        return;
    }
    list_push_back(&l->waiting, &wait->in_lookup);
    if (l->state == EMPTY)
        start_loading(l);
}

enum { KEY_BYTES_MAX = 1024 }; /* longer names are not valid */

const struct kube_lookup_object *kube_lookup_get(const struct kube_lookup *l,
                                                 struct slice namespace, struct slice name)
{
    uint8_t key[KEY_BYTES_MAX];
    size_t head = l->options.namespaced ? namespace.len + 1 : 0;
    assert(kube_lookup_ready(l));
    if (head > KEY_BYTES_MAX || name.len > KEY_BYTES_MAX - head)
        return NULL;
    if (head) {
        slice_copy(key, namespace);
        key[head - 1] = '/';
    }
    slice_copy(key + head, name);
    struct slice whole = slice_of(key, head + name.len);
    size_t at = find(l, whole);
    return is_at(l, at, whole) ? &l->entries[at]->object : NULL;
}

void kube_lookup_each(const struct kube_lookup *l, struct slice namespace,
                      bool (*fn)(void *ctx, const struct kube_lookup_object *object), void *ctx)
{
    assert(kube_lookup_ready(l));
    bool all = !namespace.len;
    for (size_t at = all ? 0 : find(l, namespace); at < l->count; at++) {
        const struct kube_lookup_object *object = &l->entries[at]->object;
        /* "a-b/x" is between "a" and "a/x". */
        if (!all && !slice_has_prefix(l->entries[at]->key, namespace))
            return;
        if ((all || slice_equal(object->namespace, namespace)) && !fn(ctx, object))
            return;
    }
}

static struct entry *entry_of(const struct kube_lookup_object *object)
{
    return CONTAINER_OF((struct kube_lookup_object *)(uintptr_t)object, struct entry, object);
}

void kube_lookup_hold(const struct kube_lookup_object *object)
{
    entry_of(object)->holds++;
}

void kube_lookup_release(const struct kube_lookup_object *object)
{
    if (object)
        entry_free(entry_of(object));
}

size_t kube_lookup_left_out(const struct kube_lookup *l)
{
    return l->left_out;
}

size_t kube_lookup_count(const struct kube_lookup *l)
{
    return l->count;
}

int64_t kube_lookup_revision(const struct kube_lookup *l)
{
    assert(kube_lookup_ready(l));
    return watch_cursor_revision(l->cursor);
}

/* -- Life -- */

static void set_range(struct kube_lookup *l)
{
    const char *prefix = l->options.prefix;
    size_t len = strlen(prefix);
    char *end = xmalloc(len);
    assert(len && prefix[len - 1] == '/');
    memcpy(end, prefix, len - 1);
    end[len - 1] = '/' + 1;
    l->request = (struct pb_range_request){
        .key = slice_of(prefix, len),
        .range_end = slice_of(end, len),
        .serializable = true, /* as the informers of kube-apiserver */
    };
}

struct kube_lookup *kube_lookup_new(const struct kube_lookup_options *options)
{
    struct kube_lookup *l = xcalloc(1, sizeof(*l));
    l->options = *options;
    if (!l->options.bytes_max)
        l->options.bytes_max = KUBE_LOOKUP_BYTES_MAX;
    if (!l->options.objects_max)
        l->options.objects_max = KUBE_LOOKUP_OBJECTS_MAX;
    l->more.fn = read_more;
    l->look.fn = look;
    l->reload.fn = on_reload;
    list_init(&l->waiting);
    set_range(l);
    return l;
}

void kube_lookup_stop(struct kube_lookup *l)
{
    if (!l || l->state == STOPPED)
        return;
    move(l, STOPPED);
    loop_timer_cancel(l->options.loop, &l->reload);
    loop_defer_cancel(&l->look);
    watch_cursor_free(l->cursor);
    l->cursor = NULL;
}

void kube_lookup_free(struct kube_lookup *l)
{
    if (!l)
        return;
    assert(l->state == STOPPED && !l->reading && list_empty(&l->waiting));
    clear(l);
    free((void *)(uintptr_t)l->request.range_end.ptr);
    free(l);
}

void kube_lookup_check(const struct kube_lookup *l)
{
    size_t bytes = 0;
    for (size_t i = 0; i < l->count; i++) {
        assert(!i || slice_compare(l->entries[i - 1]->key, l->entries[i]->key) < 0);
        assert(l->entries[i]->object.data);
        bytes += entry_size(l->entries[i]);
    }
    assert(bytes == l->bytes && l->bytes <= l->options.bytes_max);
    assert(l->count <= l->options.objects_max);
    assert(!l->cursor == (l->state != CURRENT));
    assert(l->reading || l->state != LOADING);
    assert(list_empty(&l->waiting) || l->reading);
}
