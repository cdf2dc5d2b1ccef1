#include "kube/call/registry.h"

#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/storage/storage.h"
#include "watch/cursor.h"

enum {
    ARENA_BYTES_MAX = 1 << 20,
    READ_BYTES_MAX = 256 << 10, /* of new definitions read in one turn; the last may be longer */
    READ_KNOWN_BYTES = 128,     /* what a known definition counts for */
};

struct kube_registry {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way; /* of the API */
    struct schema_pool *pool;
    struct schema_pool *own_pool; /* owned; NULL: pool is shared by the server */
    struct kube_kinds *kinds;
    struct watch_cursor *cursor; /* of the definitions; NULL: not watched */
    struct deferred look;        /* a definition has changed: all are read in the next turn */
    struct kube_registry_wait news;
    bool news_wanted; /* `news` waits */
    struct list uses;

    /* Reading all definitions, some in each turn. */
    bool reading;
    struct deferred more;                 /* the next turn */
    struct kube_kinds *before;            /* a reference: the kinds when the reading began */
    struct kube_definition **definitions; /* owned; references to those read so far */
    size_t definition_count;
    bool incomplete; /* there was not enough memory for one of them */
    struct arena arena;
    struct pb_range_request request;
    struct engine_range range;
    struct list waiting; /* for the reading under way */
    struct list next;    /* arrived later: for the reading after that */
};

struct kube_registry_use {
    struct list in_registry;
    struct kube_definition *definition; /* a reference */
    struct kube_definition *ending; /* a reference: the same while it is being deleted; or NULL */
    void (*on_changed)(void *ctx);
    void *ctx;
};

/* For log lines; the text for clients says that a request needs too much memory. */
static const char *why(enum status status)
{
    return status == ST_NOMEM ? "there is not enough memory for it" : status_text(status);
}

/* -- The kinds -- */

static bool names_equal(const struct kube_names *a, const struct kube_names *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = strcmp(a->names[i], b->names[i]) == 0;
    return equal;
}

/* Requests and watches of the definition are not affected by the change. */
static bool serves_same(const struct kube_definition *a, const struct kube_definition *b)
{
    const struct kube_definition_names *x = &a->names, *y = &b->names;
    return a->established == b->established && a->terminating == b->terminating &&
           a->accepted == b->accepted && strcmp(x->kind, y->kind) == 0 &&
           strcmp(x->list_kind, y->list_kind) == 0 && strcmp(x->singular, y->singular) == 0 &&
           names_equal(&x->short_names, &y->short_names) &&
           names_equal(&x->categories, &y->categories);
}

/* While a definition is being deleted its objects are deleted, too, and its watches must send those
 * events. */
static bool is_current(struct kube_registry_use *use, struct kube_definition *now)
{
    if (now == use->definition || (now && now == use->ending))
        return true;
    if (!now || !now->terminating || !kube_definition_same_spec(use->definition, now))
        return false;
    kube_definition_unref(use->ending);
    use->ending = kube_definition_ref(now);
    return true;
}

/* Ends the uses of definitions that are gone or have changed; their clients connect again. */
static void end_stale(struct kube_registry *r)
{
    struct kube_registry_use *use, *next;
    LIST_FOREACH_SAFE (use, next, &r->uses, in_registry)
        if (!is_current(use, kube_kinds_definition(r->kinds, use->definition->name)))
            use->on_changed(use->ctx);
}

static void set_kinds(struct kube_registry *r, struct kube_definition *const *definitions,
                      size_t count)
{
    struct kube_kinds *old = r->kinds; /* may hold the last references to the definitions */
    r->kinds = kube_kinds_new(definitions, count);
    kube_kinds_unref(old);
    end_stale(r);
}

/* A reference to the known definition if it is still current, else to a new one; NULL: it cannot be
 * used. ST_NOMEM: its current state is not known. */
static enum status renew(struct kube_registry *r, struct kube_kv kv,
                         struct kube_definition **ret_definition)
{
    struct slice prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    struct slice name = slice_sub(kv.key, prefix.len, kv.key.len - prefix.len);
    struct kube_definition *had = kube_kinds_definition(r->kinds, name), *made;
    *ret_definition = NULL;
    /* A definition that a request has read may be newer than this reading of all. */
    if (had && had->revision >= kv.mod_revision) {
        *ret_definition = kube_definition_ref(had);
        return ST_OK;
    }
    enum status status = kube_definition_new(r->pool, kv.value, kv.mod_revision, &made);
    if (status == ST_OK && !slice_equal(made->name, name)) {
        kube_definition_unref(made);
        status = ST_MALFORMED;
    }
    if (status != ST_OK) {
        log_warn("a CustomResourceDefinition cannot be used", LOG_SLICE("name", name),
                 LOG_TEXT("why", why(status)));
        return status == ST_NOMEM ? status : ST_OK;
    }
    bool same = had && kube_definition_same_spec(had, made);
    if (same && serves_same(had, made)) {
        had->revision = kv.mod_revision;
        kube_definition_unref(made);
        made = kube_definition_ref(had);
    } else if (same) {
        made->spec_revision = had->spec_revision;
    }
    *ret_definition = made;
    return ST_OK;
}

/* -- One definition -- */

enum status kube_registry_take(struct kube_registry *r, struct slice name, struct kube_kv kv)
{
    size_t had, count = 0;
    struct kube_definition *const *all = kube_kinds_definitions(r->kinds, &had);
    struct kube_definition *made = NULL;
    if (kv.mod_revision)
        TRY(renew(r, kv, &made));
    struct kube_definition *old = kube_kinds_definition(r->kinds, name);
    /* At the limit no definition is added; the known ones still change and disappear. */
    if (made != old && (old || had < KUBE_DEFINITIONS_MAX)) {
        struct kube_definition **list = xcalloc(had + 1, sizeof(struct kube_definition *));
        for (size_t i = 0; i < had; i++)
            if (all[i] != old)
                list[count++] = all[i];
        if (made)
            list[count++] = made;
        set_kinds(r, list, count);
        free(list);
    }
    kube_definition_unref(made);
    return ST_OK;
}

/* -- All definitions -- */

static void start_reading(struct kube_registry *r);

static bool differs(const struct kube_registry *r, struct kube_definition *const *list,
                    size_t count)
{
    size_t had;
    struct kube_definition *const *all = kube_kinds_definitions(r->kinds, &had);
    bool same = had == count;
    for (size_t i = 0; same && i < count; i++)
        same = all[i] == list[i];
    return !same;
}

/* A request has added, changed or removed it while all were being read: that is newer. */
static bool is_newer(const struct kube_registry *r, struct slice name)
{
    return kube_kinds_definition(r->kinds, name) != kube_kinds_definition(r->before, name);
}

/* Takes over what was read, except where a request has read something newer. */
static void take_all(struct kube_registry *r)
{
    size_t had, count = 0;
    struct kube_definition *const *all = kube_kinds_definitions(r->kinds, &had);
    struct kube_definition **list =
        xcalloc(had + r->definition_count + 1, sizeof(struct kube_definition *));
    for (size_t i = 0; i < r->definition_count; i++)
        if (!is_newer(r, r->definitions[i]->name))
            list[count++] = r->definitions[i];
    for (size_t i = 0; i < had; i++)
        if (is_newer(r, all[i]->name))
            list[count++] = all[i];
    if (differs(r, list, count))
        set_kinds(r, list, size_min(count, KUBE_DEFINITIONS_MAX));
    free(list);
}

static void drop_read(struct kube_registry *r)
{
    for (size_t i = 0; i < r->definition_count; i++)
        kube_definition_unref(r->definitions[i]);
    free(r->definitions);
    r->definitions = NULL;
    r->definition_count = 0;
    kube_kinds_unref(r->before);
    r->before = NULL;
}

static void finish_reading(struct kube_registry *r, enum status status)
{
    struct list *link;
    bool complete = status == ST_OK && !r->incomplete;
    if (status == ST_OK)
        take_all(r);
    else
        log_warn("the CustomResourceDefinitions cannot be read", LOG_TEXT("why", why(status)));
    drop_read(r);
    engine_range_close(&r->range);
    arena_fini(&r->arena);
    --*r->under_way;
    r->reading = false;
    struct list ready;
    list_init(&ready);
    while ((link = list_pop_front(&r->waiting)) != NULL)
        list_push_back(&ready, link);
    while ((link = list_pop_front(&r->next)) != NULL)
        list_push_back(&r->waiting, link);
    if (!list_empty(&r->waiting))
        start_reading(r);
    while ((link = list_pop_front(&ready)) != NULL) {
        struct kube_registry_wait *wait = LIST_ENTRY(link, struct kube_registry_wait, in_registry);
        wait->status = status;
        wait->complete = complete;
        wait->go(wait);
    }
}

static size_t take_next(struct kube_registry *r, struct kube_kv kv)
{
    struct slice prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    struct slice name = slice_sub(kv.key, prefix.len, kv.key.len - prefix.len);
    struct kube_definition *definition, *had = kube_kinds_definition(r->kinds, name);
    if (renew(r, kv, &definition) != ST_OK) {
        r->incomplete = true;
        definition = had ? kube_definition_ref(had) : NULL;
    }
    if (!definition)
        return kv.value.len;
    r->definitions[r->definition_count++] = definition;
    return definition->refs > 1 ? READ_KNOWN_BYTES : kv.value.len;
}

static void read_more(struct deferred *deferred)
{
    struct kube_registry *r = CONTAINER_OF(deferred, struct kube_registry, more);
    struct slice field;
    size_t bytes = 0;
    bool more = true;
    while (more && bytes < READ_BYTES_MAX) {
        more = r->definition_count < KUBE_DEFINITIONS_MAX && engine_range_next(&r->range, &field);
        if (more)
            bytes += take_next(r, kube_kv_of(field));
    }
    if (more)
        loop_defer(r->loop, &r->more);
    else
        finish_reading(r, r->range.op.status);
}

static void on_range(struct engine_op *op)
{
    struct kube_registry *r = CONTAINER_OF(op, struct kube_registry, range.op);
    if (op->status != ST_OK) {
        finish_reading(r, op->status);
        return;
    }
    r->before = kube_kinds_ref(r->kinds);
    r->definitions = xcalloc(KUBE_DEFINITIONS_MAX, sizeof(struct kube_definition *));
    read_more(&r->more);
}

static void start_reading(struct kube_registry *r)
{
    r->reading = true;
    r->incomplete = false;
    ++*r->under_way;
    arena_init(&r->arena, NULL, 0, ARENA_BYTES_MAX);
    r->request = (struct pb_range_request){
        .key = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX),
        .range_end = SLICE_LITERAL("/registry/apiextensions.k8s.io/customresourcedefinitions0"),
    };
    r->range.op =
        (struct engine_op){.done = on_range, .arena = &r->arena, .principal = ENGINE_SERVER};
    engine_range_start(r->shard, &r->range, &r->request);
}

void kube_registry_read(struct kube_registry *r, struct kube_registry_wait *wait)
{
    if (r->reading) {
        list_push_back(&r->next, &wait->in_registry);
        return;
    }
    list_push_back(&r->waiting, &wait->in_registry);
    start_reading(r);
}

/* -- Changes -- */

static void on_news(struct kube_registry_wait *wait)
{
    CONTAINER_OF(wait, struct kube_registry, news)->news_wanted = false;
}

static bool open_cursor(struct kube_registry *r);

/* The events only show that something has changed; then all definitions are read. */
static void look(struct deferred *deferred)
{
    struct kube_registry *r = CONTAINER_OF(deferred, struct kube_registry, look);
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_OK;
    while (r->cursor && (status = watch_cursor_next(r->cursor, &event, &revision)) == ST_OK)
        watch_cursor_take(r->cursor);
    if (status == ST_COMPACTED || status == ST_DAMAGED) {
        watch_cursor_free(r->cursor);
        r->cursor = NULL;
        (void)!open_cursor(r);
    }
    if (r->news_wanted)
        return;
    r->news_wanted = true;
    r->news.go = on_news;
    kube_registry_read(r, &r->news);
}

static void wake(void *ctx)
{
    struct kube_registry *r = ctx;
    loop_defer(r->loop, &r->look);
}

static bool open_cursor(struct kube_registry *r)
{
    r->cursor = watch_cursor_new(
        engine_watch_hub(r->shard),
        &(struct watch_cursor_options){
            .key = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX),
            .range_end = SLICE_LITERAL("/registry/apiextensions.k8s.io/customresourcedefinitions0"),
            .wake = wake,
            .ctx = r,
        });
    return r->cursor;
}

struct kube_registry_use *kube_registry_use_new(struct kube_registry *r,
                                                const struct kube_custom *custom,
                                                void (*on_changed)(void *ctx), void *ctx)
{
    struct kube_registry_use *use = xcalloc(1, sizeof(*use));
    use->definition = kube_definition_ref(custom->definition);
    use->on_changed = on_changed;
    use->ctx = ctx;
    list_push_back(&r->uses, &use->in_registry);
    /* If the hub accepts no more watches, only requests notice changes. */
    if (!r->cursor && open_cursor(r))
        loop_defer(r->loop, &r->look);
    return use;
}

void kube_registry_use_free(struct kube_registry_use *use)
{
    if (!use)
        return;
    list_remove(&use->in_registry);
    kube_definition_unref(use->ending);
    kube_definition_unref(use->definition);
    free(use);
}

void kube_registry_stop(struct kube_registry *r)
{
    if (!r)
        return;
    loop_defer_cancel(&r->look);
    watch_cursor_free(r->cursor);
    r->cursor = NULL;
}

/* -- Life -- */

struct kube_kinds *kube_registry_kinds(const struct kube_registry *r)
{
    return r->kinds;
}

struct kube_registry *kube_registry_new(struct engine_shard *shard, struct loop *loop,
                                        struct schema_pool *schemas, size_t *under_way)
{
    struct kube_registry *r = xcalloc(1, sizeof(*r));
    r->shard = shard;
    r->loop = loop;
    r->under_way = under_way;
    r->own_pool = schemas ? NULL : schema_pool_new();
    r->pool = schemas ? schemas : r->own_pool;
    r->kinds = kube_kinds_new(NULL, 0);
    r->look.fn = look;
    r->more.fn = read_more;
    list_init(&r->waiting);
    list_init(&r->next);
    list_init(&r->uses);
    return r;
}

void kube_registry_free(struct kube_registry *r)
{
    if (!r)
        return;
    kube_registry_stop(r);
    assert(!r->reading && list_empty(&r->waiting) && list_empty(&r->next) && list_empty(&r->uses));
    kube_kinds_unref(r->kinds);
    schema_pool_free(r->own_pool);
    free(r);
}
