#include "kube/call/registry.h"

#include "base/log/log.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "kube/call/offload.h"
#include "kube/types/storage.h"
#include "watch/cursor.h"

enum {
    ARENA_BYTES_MAX = 1 << 20,
    READ_BYTES_MAX = 32 << 10, /* bytes of new definitions read in one turn, about 2 ms; a longer
                                  one is read by the worker */
    READ_KNOWN_BYTES = 128,    /* what a known definition counts for */
    USES_PER_TURN = 2048,      /* uses that are compared with new kinds in one turn, */
    USE_END_COST = 16,         /* each that ends counts as this many */
};

/* Reads one long definition on the worker. */
struct definition_maker {
    struct kube_offload_job job;
    struct kube_registry *registry;
    bool busy;
    struct buf name, text; /* copies */
    int64_t revision;
    enum status status; /* result of kube_definition_new */
    struct kube_definition *made;
};

struct kube_registry {
    struct engine_shard *shard;
    struct loop *loop;
    struct kube_offload *offload; /* worker of the API */
    size_t *under_way;            /* counter of the API */
    struct schema_pool *pool;
    struct schema_pool *own_pool; /* owned; NULL: pool is shared by the server */
    struct kube_kinds *kinds;
    struct watch_cursor *cursor; /* follows the definitions; NULL: not watched */
    struct deferred look;        /* a definition has changed: all are read in the next turn */
    struct kube_registry_wait news;
    bool news_wanted; /* `news` waits */
    struct list uses;
    struct list unchecked; /* uses that have not been compared with the kinds yet, */
    struct deferred check; /* some of them in each turn */

    /* A definition that a request has read; requests for others wait and read again. */
    struct definition_maker maker;
    struct list making; /* requests that wait for it */

    /* Reading all definitions, some in each turn. */
    bool reading;
    struct deferred more;                 /* the next turn */
    struct kube_kinds *before;            /* a reference: the kinds when the reading began */
    struct kube_definition **definitions; /* owned; references to those read so far */
    size_t definition_count;
    bool incomplete; /* there was not enough memory for one of them */
    struct definition_maker reader;
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
           a->accepted == b->accepted && a->webhook.mixed == b->webhook.mixed &&
           strcmp(x->kind, y->kind) == 0 && strcmp(x->list_kind, y->list_kind) == 0 &&
           strcmp(x->singular, y->singular) == 0 && names_equal(&x->short_names, &y->short_names) &&
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
static void check_uses(struct deferred *deferred)
{
    struct kube_registry *r = CONTAINER_OF(deferred, struct kube_registry, check);
    struct list *link;
    for (size_t cost = 0; cost < USES_PER_TURN && (link = list_pop_front(&r->unchecked)); cost++) {
        struct kube_registry_use *use = LIST_ENTRY(link, struct kube_registry_use, in_registry);
        list_push_back(&r->uses, link);
        if (is_current(use, kube_kinds_definition(r->kinds, use->definition->name)))
            continue;
        use->on_changed(use->ctx);
        cost += USE_END_COST;
    }
    if (!list_empty(&r->unchecked))
        loop_defer(r->loop, &r->check);
}

static void set_kinds(struct kube_registry *r, struct kube_definition *const *definitions,
                      size_t count)
{
    struct kube_kinds *old = r->kinds; /* may hold the last references to the definitions */
    r->kinds = kube_kinds_new(definitions, count);
    size_t omitted = kube_kinds_omitted(r->kinds);
    if (omitted > kube_kinds_omitted(old))
        log_warn("CustomResourceDefinitions are not served, because all have too many versions",
                 LOG_U64("omitted", omitted), LOG_U64("versions-max", KUBE_KINDS_MAX));
    kube_kinds_unref(old);
    list_append(&r->unchecked, &r->uses);
    if (!list_empty(&r->unchecked))
        loop_defer(r->loop, &r->check);
}

static struct slice name_of(struct kube_kv kv)
{
    struct slice prefix = SLICE_LITERAL(KUBE_DEFINITIONS_PREFIX);
    if (!slice_has_prefix(kv.key, prefix))
        return SLICE_EMPTY;
    return slice_sub(kv.key, prefix.len, kv.key.len - prefix.len);
}

/* The known definition if it is as new; a request may have read a newer one than this reading of
 * all. NULL: it must be made. */
static struct kube_definition *find_known(const struct kube_registry *r, struct slice name,
                                          int64_t revision)
{
    struct kube_definition *had = kube_kinds_definition(r->kinds, name);
    return had && had->revision >= revision ? had : NULL;
}

/* Takes over what kube_definition_new has returned: a reference to a definition; NULL: it cannot be
 * used. ST_NOMEM: its current state is not known. */
static enum status adopt(struct kube_registry *r, struct slice name, enum status status,
                         struct kube_definition *made, struct kube_definition **ret_definition)
{
    struct kube_definition *had = kube_kinds_definition(r->kinds, name);
    *ret_definition = NULL;
    if (status == ST_OK && !slice_equal(made->name, name)) {
        kube_definition_unref(made);
        status = ST_MALFORMED;
    }
    if (status != ST_OK) {
        log_warn("a CustomResourceDefinition cannot be used", LOG_SLICE("name", name),
                 LOG_TEXT("why", why(status)));
        return status == ST_NOMEM || status == ST_STOPPED ? status : ST_OK;
    }
    bool same = had && kube_definition_same_spec(had, made);
    if (same && serves_same(had, made)) {
        if (made->revision > had->revision) {
            had->revision = made->revision;
            had->conversion_failing = made->conversion_failing;
        }
        kube_definition_unref(made);
        made = kube_definition_ref(had);
    } else if (same) {
        made->spec_revision = had->spec_revision;
    }
    *ret_definition = made;
    return ST_OK;
}

/* A reference to the known definition if it is still current, else to a new one. Statuses and NULL
 * as adopt. */
static enum status renew(struct kube_registry *r, struct kube_kv kv,
                         struct kube_definition **ret_definition)
{
    struct slice name = name_of(kv);
    struct kube_definition *known = find_known(r, name, kv.mod_revision), *made = NULL;
    if (known) {
        *ret_definition = kube_definition_ref(known);
        return ST_OK;
    }
    enum status status = kube_definition_new(r->pool, kv.value, kv.mod_revision, &made);
    return adopt(r, name, status, made, ret_definition);
}

/* -- A long definition, on the worker -- */

static void run_maker(struct worker_job *job)
{
    struct definition_maker *maker = CONTAINER_OF(job, struct definition_maker, job.worker);
    turn_work("reading the definition", buf_slice(&maker->name));
    maker->status = kube_definition_new(maker->registry->pool, buf_slice(&maker->text),
                                        maker->revision, &maker->made);
}

static bool is_long(const struct kube_registry *r, struct kube_kv kv)
{
    return r->offload->worker && kv.mod_revision && kv.value.len > READ_BYTES_MAX &&
           !find_known(r, name_of(kv), kv.mod_revision);
}

/* At most two for each thread, which must not be refused: one for requests, one that reads all. */
static enum status maker_start(struct definition_maker *maker, struct kube_kv kv)
{
    struct kube_registry *r = maker->registry;
    assert(!maker->busy);
    buf_reset(&maker->name, SIZE_MAX);
    buf_reset(&maker->text, SIZE_MAX);
    TRY(buf_append(&maker->name, name_of(kv)));
    TRY(buf_append(&maker->text, kv.value));
    maker->revision = kv.mod_revision;
    maker->status = ST_STOPPED; /* if it does not run */
    maker->job.worker.must_run = true;
    TRY(kube_offload_send(r->offload, 0, NULL, &maker->job));
    maker->busy = true;
    ++*r->under_way;
    return ST_OK;
}

/* The result, as adopt returns it. */
static enum status maker_take(struct definition_maker *maker,
                              struct kube_definition **ret_definition)
{
    --*maker->registry->under_way;
    maker->busy = false;
    buf_fini(&maker->text);
    enum status status =
        adopt(maker->registry, buf_slice(&maker->name), maker->status, maker->made, ret_definition);
    maker->made = NULL;
    return status;
}

static void maker_init(struct definition_maker *maker, struct kube_registry *r,
                       void (*back)(struct kube_offload_job *job))
{
    maker->registry = r;
    maker->job = (struct kube_offload_job){.back = back, .worker.run = run_maker};
}

static void maker_fini(struct definition_maker *maker)
{
    assert(!maker->busy);
    buf_fini(&maker->name);
    buf_fini(&maker->text);
}

/* -- One definition -- */

/* made NULL: there is none any more. */
static void replace(struct kube_registry *r, struct slice name, struct kube_definition *made)
{
    size_t had, count = 0;
    struct kube_definition *const *all = kube_kinds_definitions(r->kinds, &had);
    struct kube_definition *old = kube_kinds_definition(r->kinds, name);
    /* At the limit no definition is added; the known ones still change and disappear. */
    if (made == old || (!old && had >= KUBE_DEFINITIONS_MAX))
        return;
    struct kube_definition **list = xcalloc(had + 1, sizeof(struct kube_definition *));
    for (size_t i = 0; i < had; i++)
        if (all[i] != old)
            list[count++] = all[i];
    if (made)
        list[count++] = made;
    set_kinds(r, list, count);
    free(list);
}

static enum status take_now(struct kube_registry *r, struct slice name, struct kube_kv kv)
{
    struct kube_definition *made = NULL;
    if (kv.mod_revision)
        TRY(renew(r, kv, &made));
    replace(r, name, made);
    kube_definition_unref(made);
    return ST_OK;
}

static void on_made(struct kube_offload_job *job)
{
    struct kube_registry *r = CONTAINER_OF(job, struct kube_registry, maker.job);
    struct kube_definition *made;
    struct slice name = buf_slice(&r->maker.name);
    struct list ready, *link;
    enum status status = maker_take(&r->maker, &made);
    if (status == ST_OK)
        replace(r, name, made);
    kube_definition_unref(made);
    /* Before any of them starts the maker again. */
    struct kube_registry_wait *wait;
    LIST_FOREACH (wait, &r->making, in_registry)
        wait->status = wait->revision <= r->maker.revision && slice_equal(wait->name, name)
                           ? status
                           : ST_AGAIN;
    list_init(&ready);
    list_append(&ready, &r->making);
    while ((link = list_pop_front(&ready)) != NULL) {
        wait = LIST_ENTRY(link, struct kube_registry_wait, in_registry);
        wait->go(wait);
    }
}

bool kube_registry_take(struct kube_registry *r, struct slice name, struct kube_kv kv,
                        struct kube_registry_wait *wait)
{
    if (!is_long(r, kv)) {
        wait->status = take_now(r, name, kv);
        return true;
    }
    wait->name = name;
    wait->revision = kv.mod_revision;
    wait->status = r->maker.busy ? ST_OK : maker_start(&r->maker, kv);
    if (wait->status == ST_OK)
        list_push_back(&r->making, &wait->in_registry);
    return wait->status != ST_OK;
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
    return r->kinds != r->before &&
           kube_kinds_definition(r->kinds, name) != kube_kinds_definition(r->before, name);
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

static void finish_reading(struct kube_registry *r, enum status status)
{
    struct list *link;
    bool complete = status == ST_OK && !r->incomplete;
    if (status == ST_OK)
        take_all(r);
    else if (status != ST_NOT_SYNCED) /* which passes by itself */
        log_warn("the CustomResourceDefinitions cannot be read", LOG_TEXT("why", why(status)));
    for (size_t i = 0; i < r->definition_count; i++)
        kube_definition_unref(r->definitions[i]);
    free(r->definitions);
    r->definitions = NULL;
    r->definition_count = 0;
    kube_kinds_unref(r->before);
    r->before = NULL;
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

/* Adds a definition, as adopt has returned it, to those that were read. */
static void add_read(struct kube_registry *r, struct slice name, enum status status,
                     struct kube_definition *definition)
{
    struct kube_definition *had = kube_kinds_definition(r->kinds, name);
    if (status != ST_OK) {
        r->incomplete = true;
        definition = had ? kube_definition_ref(had) : NULL;
    }
    if (definition)
        r->definitions[r->definition_count++] = definition;
}

static void read_more(struct deferred *deferred)
{
    struct kube_registry *r = CONTAINER_OF(deferred, struct kube_registry, more);
    struct slice field;
    size_t bytes = 0;
    bool more = true;
    while (more && bytes < READ_BYTES_MAX) {
        more = r->definition_count < KUBE_DEFINITIONS_MAX && engine_range_next(&r->range, &field);
        if (!more)
            break;
        struct kube_kv kv = kube_kv_of(field);
        if (is_long(r, kv) && maker_start(&r->reader, kv) == ST_OK)
            return;
        struct kube_definition *definition;
        bool known = find_known(r, name_of(kv), kv.mod_revision);
        enum status status = renew(r, kv, &definition);
        add_read(r, name_of(kv), status, definition);
        bytes += known ? READ_KNOWN_BYTES : size_max(kv.value.len, READ_KNOWN_BYTES);
    }
    if (more)
        loop_defer(r->loop, &r->more);
    else
        finish_reading(r, r->range.op.status);
}

static void on_read(struct kube_offload_job *job)
{
    struct kube_registry *r = CONTAINER_OF(job, struct kube_registry, reader.job);
    struct kube_definition *made;
    enum status status = maker_take(&r->reader, &made);
    add_read(r, buf_slice(&r->reader.name), status, made);
    loop_defer(r->loop, &r->more);
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
        .serializable = true, /* as the informers that read them in Kubernetes */
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
            .own = true,
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
    loop_defer_cancel(&r->check);
    watch_cursor_free(r->cursor);
    r->cursor = NULL;
}

/* -- Life -- */

struct kube_kinds *kube_registry_kinds(const struct kube_registry *r)
{
    return r->kinds;
}

struct kube_registry *kube_registry_new(struct engine_shard *shard, struct loop *loop,
                                        struct schema_pool *schemas, struct kube_offload *offload,
                                        size_t *under_way)
{
    struct kube_registry *r = xcalloc(1, sizeof(*r));
    r->shard = shard;
    r->loop = loop;
    r->offload = offload;
    r->under_way = under_way;
    r->own_pool = schemas ? NULL : schema_pool_new();
    r->pool = schemas ? schemas : r->own_pool;
    r->kinds = kube_kinds_new(NULL, 0);
    r->look.fn = look;
    r->more.fn = read_more;
    r->check.fn = check_uses;
    maker_init(&r->maker, r, on_made);
    maker_init(&r->reader, r, on_read);
    list_init(&r->waiting);
    list_init(&r->next);
    list_init(&r->uses);
    list_init(&r->unchecked);
    list_init(&r->making);
    return r;
}

void kube_registry_free(struct kube_registry *r)
{
    if (!r)
        return;
    kube_registry_stop(r);
    assert(!r->reading && list_empty(&r->waiting) && list_empty(&r->next));
    assert(list_empty(&r->uses) && list_empty(&r->unchecked) && list_empty(&r->making));
    maker_fini(&r->maker);
    maker_fini(&r->reader);
    kube_kinds_unref(r->kinds);
    schema_pool_free(r->own_pool);
    free(r);
}
