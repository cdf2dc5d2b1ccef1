#include "kube/policy/admission/plugins/facts.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "kube/types/object/object.h"

#define AGAIN_NS (1 * NS_PER_MS)

enum {
    SOON_MAX = 8,    /* turns that are made at once before a timer is used */
    TRIES_MAX = 500, /* until the lookups are as new as the store was */
};

struct kube_fact_finder {
    struct kube_fact_finder_options options;
    struct kube_lookup *lookups[KUBE_FACTS]; /* owned; NULL: not needed so far */
    bool stopped;
};

/* -- Objects -- */

static struct kube_lookup *lookup_of(struct kube_fact_finder *f, size_t fact)
{
    const struct kube_fact_finder_options *options = &f->options;
    if (!f->lookups[fact])
        f->lookups[fact] = kube_lookup_new(&(struct kube_lookup_options){
            .shard = options->shard,
            .loop = options->loop,
            .under_way = options->under_way,
            .stock = kube_lookup_pool_get(options->pool, &f->options.rows[fact]->kind, 0),
        });
    return f->lookups[fact];
}

static struct slice namespace_of(const struct kube_facts_wait *w, size_t fact)
{
    return w->finder->options.rows[fact]->kind.namespaced ? w->namespace : SLICE_EMPTY;
}

/* NULL: the objects are not held, and have not been read for this write. */
static const struct kube_shelf *shelf_of(const struct kube_facts_wait *w, size_t fact)
{
    return w->shelves[fact] ? w->shelves[fact]
                            : kube_lookup_shelf(w->finder->lookups[fact], namespace_of(w, fact));
}

/* The name that an object gives at a path, in its tree or in its text. */
static struct slice name_at(const struct kube_facts_wait *w, const char *path)
{
    struct kube_object object;
    struct slice name = SLICE_EMPTY;
    if (w->object)
        return json_node_text(json_node_path(w->object, path), w->arena, &name) == ST_OK
                   ? name
                   : SLICE_EMPTY;
    if (!w->stored.len || kube_object_parse(w->stored, &object) != ST_OK ||
        !kube_object_field(&object, slice_from_text(path), &name))
        return SLICE_EMPTY;
    return name;
}

/* The name of the object that is used; empty: none. */
static struct slice used_name(const struct kube_facts_wait *w, size_t fact)
{
    const struct kube_fact_row *row = w->finder->options.rows[fact];
    if (row->is_own_namespace)
        return w->namespace;
    struct slice name = row->named_by ? name_at(w, row->named_by) : SLICE_EMPTY;
    return !name.len && row->unnamed ? slice_from_text(row->unnamed) : name;
}

struct choice {
    const struct kube_fact_row *row;
    const struct kube_lookup_object *best;
};

static bool choose(void *ctx, const struct kube_lookup_object *object)
{
    struct choice *choice = ctx;
    if (choice->row->is_default(object->data) &&
        (!choice->best || choice->row->is_better(object, choice->best)))
        choice->best = object;
    return true;
}

static bool collect(void *ctx, const struct kube_lookup_object *object)
{
    struct kube_fact_objects *objects = ctx;
    if (objects->count == KUBE_FACT_ALL_MAX) {
        objects->incomplete = true;
        return false;
    }
    kube_lookup_hold(object);
    objects->all[objects->count++] = object;
    return true;
}

/* Usually a namespace has none, and nothing is allocated. */
static enum status collect_all(const struct kube_facts_wait *w, const struct kube_shelf *shelf,
                               struct kube_fact_objects *to)
{
    to->incomplete = shelf->unreadable;
    if (!kube_shelf_count(shelf))
        return ST_OK;
    to->all = arena_calloc(w->arena, KUBE_FACT_ALL_MAX, sizeof(const struct kube_lookup_object *));
    if (!to->all)
        return ST_NOMEM;
    kube_shelf_each(shelf, collect, to);
    return ST_OK;
}

static enum status hold_objects(const struct kube_facts_wait *w, size_t fact,
                                const struct kube_lookup_object *named)
{
    const struct kube_fact_row *row = w->finder->options.rows[fact];
    const struct kube_shelf *shelf = shelf_of(w, fact);
    struct kube_fact_objects *to = &w->facts->of[fact];
    struct choice choice = {.row = row};
    if (row->is_default)
        kube_shelf_each(shelf, choose, &choice);
    if (named)
        kube_lookup_hold(named);
    if (choice.best)
        kube_lookup_hold(choice.best);
    to->named = named;
    to->standard = choice.best;
    return row->all && w->namespace.len ? collect_all(w, shelf, to) : ST_OK;
}

/* -- Waiting -- */

static void look(struct kube_facts_wait *w);

/* What was read for this write; objects of it may be held. */
static void forget_read(struct kube_facts_wait *w)
{
    for (size_t i = 0; i < KUBE_FACTS; i++) {
        kube_shelf_unref(w->shelves[i]);
        w->shelves[i] = NULL;
    }
    if (w->account)
        account_release(w->account, w->charged);
    w->charged = 0;
}

static void finish(struct kube_facts_wait *w, enum status status)
{
    forget_read(w);
    w->status = status;
    w->go(w);
}

static void on_lookup(struct kube_lookup_wait *lookup)
{
    struct kube_facts_wait *w = CONTAINER_OF(lookup, struct kube_facts_wait, lookup);
    if (lookup->status == ST_OK)
        look(w);
    else
        finish(w, lookup->status);
}

/* The first lookup that has to be waited for; NULL: none. */
static struct kube_lookup *find_unready(const struct kube_facts_wait *w)
{
    for (size_t i = 0; i < KUBE_FACTS; i++)
        if (w->needs & 1u << i) {
            struct kube_lookup *lookup = lookup_of(w->finder, i);
            if (!kube_lookup_ready(lookup))
                return lookup;
        }
    return NULL;
}

static bool is_current(struct kube_facts_wait *w)
{
    if (!w->revision) {
        struct engine_status now;
        engine_status_get(w->finder->options.shard, &now);
        w->revision = now.revision;
    }
    for (size_t i = 0; i < KUBE_FACTS; i++)
        if (w->needs & 1u << i && kube_lookup_revision(w->finder->lookups[i]) < w->revision)
            return false;
    return true;
}

static void on_soon(struct deferred *deferred)
{
    look(CONTAINER_OF(deferred, struct kube_facts_wait, soon));
}

static void on_again(struct timer *timer)
{
    look(CONTAINER_OF(timer, struct kube_facts_wait, again));
}

static void look_later(struct kube_facts_wait *w)
{
    struct loop *loop = w->finder->options.loop;
    w->again.fn = on_again;
    loop_timer_set(loop, &w->again, clock_add(loop_now_ns(loop), AGAIN_NS));
}

/* The hub reads what is new in every turn, and the lookups follow. */
static void look_again(struct kube_facts_wait *w)
{
    if (w->tries++ == TRIES_MAX) {
        finish(w, ST_TIMEOUT);
    } else if (w->tries <= SOON_MAX) {
        w->soon.fn = on_soon;
        loop_defer(w->finder->options.loop, &w->soon);
    } else {
        look_later(w);
    }
}

/* Whether an object that a controller creates is still to be waited for. */
static bool waits_for(struct kube_facts_wait *w, size_t fact)
{
    int64_t now_ns = loop_now_ns(w->finder->options.loop);
    if (!w->until_ns)
        w->until_ns = clock_add(now_ns, w->finder->options.rows[fact]->patience_ns);
    return now_ns < w->until_ns;
}

/* False: one of them may still be created. */
static bool find_all_named(struct kube_facts_wait *w,
                           const struct kube_lookup_object *ret_named[KUBE_FACTS])
{
    for (size_t i = 0; i < KUBE_FACTS; i++) {
        const char *unnamed =
            w->finder->options.rows[i] ? w->finder->options.rows[i]->unnamed : NULL;
        struct slice name = w->needs & 1u << i ? used_name(w, i) : SLICE_EMPTY;
        if (!name.len)
            continue;
        ret_named[i] = kube_shelf_get(shelf_of(w, i), name);
        if (!ret_named[i] && unnamed && slice_is(name, unnamed) && waits_for(w, i))
            return false;
    }
    return true;
}

/* -- What is not held -- */

static bool wants(void *ctx, const struct kube_lookup_object *object)
{
    const struct kube_facts_wait *w = ctx;
    const struct kube_fact_row *row = w->finder->options.rows[w->reads];
    return row->all || (row->is_default && row->is_default(object->data)) ||
           (w->name.len && slice_equal(object->name, w->name));
}

static void on_read(struct kube_lookup_read *read)
{
    struct kube_facts_wait *w = CONTAINER_OF(read, struct kube_facts_wait, read);
    if (read->status != ST_OK) {
        finish(w, read->status);
        return;
    }
    w->shelves[w->reads] = TAKE(read->shelf);
    w->charged += read->charged;
    look(w);
}

static void read_fact(struct kube_facts_wait *w, size_t fact)
{
    const struct kube_fact_row *row = w->finder->options.rows[fact];
    bool by_name = !row->all && !row->is_default;
    w->name = used_name(w, fact);
    w->reads = fact;
    if (by_name && !w->name.len) {
        w->shelves[fact] = kube_shelf_new(namespace_of(w, fact)); /* nothing is needed of it */
        look(w);
        return;
    }
    w->read = (struct kube_lookup_read){
        .namespace = namespace_of(w, fact),
        .name = by_name ? w->name : SLICE_EMPTY,
        .wants = wants,
        .ctx = w,
        .account = w->account,
        .client = w->client,
        .go = on_read,
    };
    kube_lookup_read_start(w->finder->lookups[fact], &w->read);
}

static void look(struct kube_facts_wait *w)
{
    const struct kube_lookup_object *named[KUBE_FACTS] = {0};
    enum status status = ST_OK;
    if (w->finder->stopped) {
        finish(w, ST_STOPPED);
        return;
    }
    struct kube_lookup *unready = find_unready(w);
    if (unready) {
        w->lookup.go = on_lookup;
        kube_lookup_wait(unready, &w->lookup);
        return;
    }
    if (!is_current(w)) {
        look_again(w);
        return;
    }
    size_t not_held = 0;
    while (not_held < KUBE_FACTS && (!(w->needs & 1u << not_held) || shelf_of(w, not_held)))
        not_held++;
    if (not_held < KUBE_FACTS) {
        read_fact(w, not_held);
        return;
    }
    if (!find_all_named(w, named)) {
        forget_read(w);
        look_later(w);
        return;
    }
    for (size_t i = 0; i < KUBE_FACTS && status == ST_OK; i++)
        if (w->needs & 1u << i)
            status = hold_objects(w, i, named[i]);
    w->facts->known = w->needs;
    finish(w, status);
}

struct kube_lookup *kube_facts_lookup(struct kube_fact_finder *finder, enum kube_fact fact)
{
    return lookup_of(finder, fact);
}

void kube_facts_gather(struct kube_fact_finder *finder, struct kube_facts_wait *wait)
{
    wait->finder = finder;
    look(wait);
}

void kube_facts_release(struct kube_facts *facts)
{
    if (!facts)
        return;
    for (size_t i = 0; i < KUBE_FACTS; i++) {
        struct kube_fact_objects *of = &facts->of[i];
        kube_lookup_release(of->named);
        kube_lookup_release(of->standard);
        for (size_t n = 0; n < of->count; n++)
            kube_lookup_release(of->all[n]);
    }
    *facts = (struct kube_facts){0};
}

/* -- Life -- */

struct kube_fact_finder *kube_fact_finder_new(const struct kube_fact_finder_options *options)
{
    struct kube_fact_finder *f = xcalloc(1, sizeof(*f));
    f->options = *options;
    return f;
}

void kube_fact_finder_stop(struct kube_fact_finder *f)
{
    f->stopped = true;
    for (size_t i = 0; i < KUBE_FACTS; i++)
        kube_lookup_stop(f->lookups[i]);
}

void kube_fact_finder_free(struct kube_fact_finder *f)
{
    for (size_t i = 0; f && i < KUBE_FACTS; i++)
        kube_lookup_free(f->lookups[i]);
    free(f);
}
