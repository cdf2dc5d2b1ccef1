#include "kube/policy/access/node/node_view.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log/log.h"
#include "base/memory/budget.h"
#include "base/metric/turn.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "io/loop.h"
#include "kube/policy/access/node/node_refs.h"
#include "kube/types/storage.h"
#include "watch/cursor.h"

enum {
    KINDS = 4,
    TURN_BYTES = 128 << 10, /* read in one turn, 1 to 2 ms; one object may be longer */
    OBJECT_COST = 256,      /* what an object counts for at least */
    DRAINED = 4096,         /* objects of an old graph that are freed in one turn */
    OP_ARENA_BYTES_MAX = 1 << 20,
    TREE_BYTES_MAX = 64 << 20, /* memory for the tree of one object while it is read */
};

/* Between looks at what another thread reads. */
#define POLL_NS (1 * NS_PER_MS)

static const struct {
    enum node_kind kind;
    bool namespaced;
    const char *prefix, *end;
} rows[KINDS] = {
    {NODE_POD, true, "/registry/pods/", "/registry/pods0"},
    {NODE_VOLUME, false, "/registry/persistentvolumes/", "/registry/persistentvolumes0"},
    {NODE_ATTACHMENT, false, "/registry/volumeattachments/", "/registry/volumeattachments0"},
    {NODE_SLICE, false, "/registry/resourceslices/", "/registry/resourceslices0"},
};

struct kube_nodes {
    struct account *account;
    size_t bytes_max;
    _Atomic uint64_t
        generation;           /* changes when all objects have been read; written under the lock */
    struct lock lock;         /* protects what follows */
    struct node_graph *graph; /* NULL: not read so far */
    int64_t revisions[KINDS]; /* every event up to it is in the graph */
    bool reading;             /* a thread reads all objects */
    size_t charged;
};

struct kube_node_view {
    struct kube_node_view_options options;
    bool stopped, asked;
    uint64_t generation;                 /* to which the cursors belong */
    struct watch_cursor *cursors[KINDS]; /* all or none; none: not ready */
    struct deferred look;
    bool lost; /* the events after lost_at are gone */
    int64_t lost_at[KINDS];

    struct list waiting;
    struct timer poll; /* set while another thread reads all objects */

    /* Reading all objects, some in each turn. */
    bool loading; /* the reading of `nodes` is this view's */
    bool open;    /* the range is open, or its operation is under way */
    size_t kind;  /* which is read; KINDS: all were */
    struct deferred more;
    struct arena arena;
    struct pb_range_request request;
    struct engine_range range;
    struct node_graph *building;
    struct watch_cursor *next_cursors[KINDS];
    struct node_graph *old; /* which is being freed */
    struct deferred drain;
};

/* -- Objects -- */

/* False: it is not the key of an object. */
static bool split_key(size_t kind, struct slice key, struct node_object *ret_object)
{
    struct slice prefix = slice_from_text(rows[kind].prefix);
    *ret_object = (struct node_object){.kind = rows[kind].kind};
    if (key.len <= prefix.len || !slice_has_prefix(key, prefix))
        return false;
    struct slice rest = slice_sub(key, prefix.len, key.len - prefix.len);
    if (rows[kind].namespaced)
        ret_object->namespace = slice_cut(&rest, '/');
    ret_object->name = rest;
    return rest.len && (!rows[kind].namespaced || ret_object->namespace.len) &&
           !memchr(rest.ptr, '/', rest.len);
}

static void put(struct node_graph *graph, const struct node_object *object,
                const struct node_refs *refs)
{
    bool fits =
        object->kind == NODE_VOLUME
            ? node_graph_put_volume(graph, object->name, refs->claim, refs->named, refs->count)
            : node_graph_put(graph, *object, refs->node, refs->named, refs->count);
    if (!fits && (graph->left_out & (graph->left_out - 1)) == 0)
        log_warn("the graph of nodes has no room for an object: its node is refused what only "
                 "this object connects it with",
                 LOG_SLICE("namespace", object->namespace), LOG_SLICE("name", object->name),
                 LOG_U64("bytes", graph->bytes), LOG_U64("left_out", graph->left_out));
}

/* What cannot be read as an object has no part in the graph. value empty: it was deleted. */
static void read_object(struct arena *arena, size_t kind, struct slice key, struct slice value,
                        struct node_object *ret_object, struct node_refs *ret_refs)
{
    *ret_refs = (struct node_refs){0};
    if (!split_key(kind, key, ret_object))
        *ret_object = (struct node_object){0};
    else if (value.len && node_refs_read(arena, *ret_object, value, ret_refs) != ST_OK)
        *ret_refs = (struct node_refs){0};
}

static void apply(struct node_graph *graph, const struct node_object *object, bool exists,
                  const struct node_refs *refs)
{
    if (object->name.len && exists)
        put(graph, object, refs);
    else if (object->name.len)
        node_graph_remove(graph, *object);
}

/* -- The graph -- */

/* Under the lock, after a change. */
static void charge(struct kube_nodes *nodes)
{
    size_t bytes = nodes->graph ? nodes->graph->bytes : 0;
    if (nodes->account && bytes > nodes->charged)
        account_charge_anyway(nodes->account, bytes - nodes->charged);
    else if (nodes->account)
        account_release(nodes->account, nodes->charged - bytes);
    nodes->charged = bytes;
}

static bool is_applied(const struct kube_nodes *nodes, uint64_t generation, size_t kind,
                       int64_t revision)
{
    return nodes->generation != generation || revision <= nodes->revisions[kind];
}

static void raise_revision(struct kube_nodes *nodes, size_t kind, int64_t revision)
{
    if (revision > nodes->revisions[kind])
        nodes->revisions[kind] = revision;
}

/* The caller has applied every event before the revision of this one. */
static void apply_shared(struct kube_nodes *nodes, uint64_t generation, size_t kind,
                         int64_t revision, struct slice key, struct slice value, bool exists)
{
    uint8_t first[2048];
    struct arena arena;
    struct node_object object;
    struct node_refs refs;
    lock_take(&nodes->lock);
    bool applied = is_applied(nodes, generation, kind, revision);
    lock_release(&nodes->lock);
    if (applied)
        return;
    arena_init(&arena, first, sizeof(first), TREE_BYTES_MAX);
    read_object(&arena, kind, key, exists ? value : SLICE_EMPTY, &object, &refs);
    lock_take(&nodes->lock);
    /* Another thread may have applied this event meanwhile, but not a later one without it. */
    if (!is_applied(nodes, generation, kind, revision)) {
        raise_revision(nodes, kind, revision - 1);
        apply(nodes->graph, &object, exists, &refs);
        charge(nodes);
    }
    lock_release(&nodes->lock);
    arena_fini(&arena);
}

static void complete(struct kube_nodes *nodes, uint64_t generation, size_t kind, int64_t revision)
{
    LOCK_SCOPE(&nodes->lock);
    if (nodes->generation == generation)
        raise_revision(nodes, kind, revision);
}

static bool begin_reading(struct kube_nodes *nodes)
{
    LOCK_SCOPE(&nodes->lock);
    bool begins = !nodes->reading;
    nodes->reading = true;
    return begins;
}

/* Publishes what was read, and returns the graph before it; NULL: the reading has failed. */
static struct node_graph *end_reading(struct kube_nodes *nodes, struct node_graph *graph,
                                      const int64_t revisions[KINDS])
{
    LOCK_SCOPE(&nodes->lock);
    struct node_graph *old = NULL;
    nodes->reading = false;
    if (!graph)
        return NULL;
    old = nodes->graph;
    nodes->graph = graph;
    memcpy(nodes->revisions, revisions, sizeof(nodes->revisions));
    atomic_fetch_add_explicit(&nodes->generation, 1, memory_order_release);
    charge(nodes);
    return old;
}

struct kube_nodes *kube_nodes_new(struct budget *budget, size_t bytes_max)
{
    struct kube_nodes *nodes = xcalloc(1, sizeof(*nodes));
    size_t limit = budget ? budget_stats(budget).limit_bytes : 0;
    lock_init(&nodes->lock);
    nodes->bytes_max = bytes_max ? bytes_max : NODE_GRAPH_BYTES_MAX;
    if (limit)
        nodes->bytes_max = size_min(nodes->bytes_max, limit / NODE_GRAPH_BUDGET_PART);
    if (budget && account_new(budget, &nodes->account) != ST_OK)
        xalloc_check(NULL, 1); /* no memory, as elsewhere in the server */
    return nodes;
}

static void free_graph(struct node_graph *graph)
{
    if (graph)
        (void)!node_graph_drain(graph, SIZE_MAX);
    free(graph);
}

void kube_nodes_free(struct kube_nodes *nodes)
{
    if (!nodes)
        return;
    free_graph(nodes->graph);
    nodes->graph = NULL;
    charge(nodes);
    if (nodes->account)
        account_unref(nodes->account);
    lock_fini(&nodes->lock);
    free(nodes);
}

void kube_nodes_write_metrics(struct kube_nodes *nodes, struct metric_page *page)
{
    size_t bytes = 0, pods = 0, left_out = 0;
    lock_take(&nodes->lock);
    if (nodes->graph) {
        bytes = nodes->graph->bytes;
        pods = nodes->graph->pods;
        left_out = nodes->graph->left_out;
    }
    lock_release(&nodes->lock);
    metric_page_gauge(page, "vigil_kube_node_graph_bytes",
                      "Memory of the graph from which the node authorizer decides.", bytes);
    metric_page_gauge(page, "vigil_kube_node_graph_pods", "The pods of nodes in it.", pods);
    metric_page_gauge(page, "vigil_kube_node_graph_left_out",
                      "Objects that were left out because the graph had no room for them.",
                      left_out);
}

/* -- Cursors -- */

static void wake(void *ctx)
{
    struct kube_node_view *v = ctx;
    if (!v->stopped)
        loop_defer(v->options.loop, &v->look);
}

/* From the revision after the one that is known. */
static struct watch_cursor *open_cursor(struct kube_node_view *v, size_t kind, int64_t revision)
{
    const struct watch_cursor_options options = {
        .key = slice_from_text(rows[kind].prefix),
        .range_end = slice_from_text(rows[kind].end),
        .from = revision + 1,
        .own = true,
        .wake = wake,
        .ctx = v,
    };
    struct watch_cursor *cursor = watch_cursor_new(engine_watch_hub(v->options.shard), &options);
    assert(cursor); /* the limit of watches is not for the server's own */
    wake(v);
    return cursor;
}

static void close_cursors(struct watch_cursor *cursors[KINDS])
{
    for (size_t i = 0; i < KINDS; i++) {
        watch_cursor_free(cursors[i]);
        cursors[i] = NULL;
    }
}

/* Whether another thread has what this one has lost. */
static bool is_found(const struct kube_node_view *v, uint64_t generation,
                     const int64_t revisions[KINDS])
{
    if (!v->lost || generation != v->generation)
        return true;
    for (size_t i = 0; i < KINDS; i++)
        if (revisions[i] > v->lost_at[i])
            return true;
    return false;
}

/* Continues where the graph is. False: it was not read so far, or is lost. */
static bool take_graph(struct kube_node_view *v)
{
    struct kube_nodes *nodes = v->options.nodes;
    int64_t revisions[KINDS];
    lock_take(&nodes->lock);
    uint64_t generation = nodes->generation;
    memcpy(revisions, nodes->revisions, sizeof(revisions));
    lock_release(&nodes->lock);
    if (!generation || !is_found(v, generation, revisions))
        return false;
    close_cursors(v->cursors);
    v->lost = false;
    v->generation = generation;
    for (size_t i = 0; i < KINDS; i++)
        v->cursors[i] = open_cursor(v, i, revisions[i]);
    return true;
}

bool kube_node_view_ready(struct kube_node_view *v)
{
    if (v->stopped || !v->asked)
        return false;
    if (v->cursors[0] &&
        v->generation == atomic_load_explicit(&v->options.nodes->generation, memory_order_acquire))
        return true;
    return v->cursors[0] && take_graph(v);
}

static void finish_waits(struct kube_node_view *v, enum status status)
{
    struct list ready, *link;
    list_init(&ready);
    list_append(&ready, &v->waiting);
    while ((link = list_pop_front(&ready)) != NULL) {
        struct kube_node_wait *wait = LIST_ENTRY(link, struct kube_node_wait, in_view);
        wait->status = status;
        wait->go(wait);
    }
}

/* -- Reading all -- */

static void begin_draining(struct kube_node_view *v, struct node_graph *graph)
{
    if (v->old || v->stopped) {
        free_graph(graph);
    } else if (graph) {
        v->old = graph;
        loop_defer(v->options.loop, &v->drain);
    }
}

static void on_drain(struct deferred *deferred)
{
    struct kube_node_view *v = CONTAINER_OF(deferred, struct kube_node_view, drain);
    if (!node_graph_drain(v->old, DRAINED)) {
        loop_defer(v->options.loop, &v->drain);
        return;
    }
    free(v->old);
    v->old = NULL;
}

static void finish_loading(struct kube_node_view *v, enum status status)
{
    int64_t revisions[KINDS] = {0};
    struct node_graph *graph = v->building;
    v->building = NULL;
    v->loading = false;
    if (status == ST_OK) {
        for (size_t i = 0; i < KINDS; i++)
            revisions[i] = watch_cursor_revision(v->next_cursors[i]);
    } else {
        begin_draining(v, graph);
        graph = NULL;
    }
    struct node_graph *old = end_reading(v->options.nodes, graph, revisions);
    begin_draining(v, old);
    close_cursors(v->cursors);
    if (status == ST_OK) {
        memcpy(v->cursors, v->next_cursors, sizeof(v->cursors));
        memset(v->next_cursors, 0, sizeof(v->next_cursors));
        v->generation = atomic_load_explicit(&v->options.nodes->generation, memory_order_acquire);
        v->lost = false;
    }
    close_cursors(v->next_cursors);
    finish_waits(v, v->stopped ? ST_STOPPED : status);
}

static void on_range(struct engine_op *op);

static void read_kind(struct kube_node_view *v)
{
    v->open = true;
    ++*v->options.under_way;
    v->request = (struct pb_range_request){
        .key = slice_from_text(rows[v->kind].prefix),
        .range_end = slice_from_text(rows[v->kind].end),
        .serializable = true, /* as the informers of kube-apiserver */
    };
    arena_init(&v->arena, NULL, 0, OP_ARENA_BYTES_MAX);
    v->range.op =
        (struct engine_op){.done = on_range, .arena = &v->arena, .principal = ENGINE_SERVER};
    engine_range_start(v->options.shard, &v->range, &v->request);
}

/* The next kind, until all were read; then `look` takes what was written meanwhile. */
static void finish_range(struct kube_node_view *v, enum status status)
{
    int64_t revision = v->range.op.revision;
    engine_range_close(&v->range);
    arena_fini(&v->arena);
    v->open = false;
    --*v->options.under_way;
    if (v->stopped)
        status = ST_STOPPED;
    if (status != ST_OK) {
        finish_loading(v, status);
        return;
    }
    v->next_cursors[v->kind] = open_cursor(v, v->kind, revision);
    if (++v->kind < KINDS)
        read_kind(v);
}

static void load_object(struct kube_node_view *v, size_t kind, struct slice key, struct slice value,
                        bool exists)
{
    uint8_t first[2048];
    struct arena arena;
    struct node_object object;
    struct node_refs refs;
    arena_init(&arena, first, sizeof(first), TREE_BYTES_MAX);
    read_object(&arena, kind, key, exists ? value : SLICE_EMPTY, &object, &refs);
    apply(v->building, &object, exists, &refs);
    arena_fini(&arena);
}

static void on_more(struct deferred *deferred)
{
    struct kube_node_view *v = CONTAINER_OF(deferred, struct kube_node_view, more);
    struct slice field;
    size_t bytes = 0;
    turn_work("reading all objects for the graph of nodes", slice_from_text(rows[v->kind].prefix));
    while (bytes < TURN_BYTES) {
        if (v->stopped || !engine_range_next(&v->range, &field)) {
            finish_range(v, v->range.op.status);
            return;
        }
        struct kube_kv kv = kube_kv_of(field);
        load_object(v, v->kind, kv.key, kv.value, true);
        bytes += size_max(kv.value.len, OBJECT_COST);
    }
    loop_defer(v->options.loop, &v->more);
}

static void on_range(struct engine_op *op)
{
    struct kube_node_view *v = CONTAINER_OF(op, struct kube_node_view, range.op);
    if (op->status == ST_OK)
        loop_defer(v->options.loop, &v->more);
    else
        finish_range(v, op->status);
}

/* The caller has begun the reading of the graph. */
static void start_loading(struct kube_node_view *v)
{
    v->loading = true;
    v->kind = 0;
    v->building = xcalloc(1, sizeof(*v->building));
    node_graph_init(v->building, random_seed_system(), v->options.nodes->bytes_max);
    read_kind(v);
}

/* Makes the view ready, and then ends the waits. */
static void open_view(struct kube_node_view *v)
{
    struct loop *loop = v->options.loop;
    if (v->loading || v->stopped)
        return;
    v->asked = true;
    if (take_graph(v))
        finish_waits(v, ST_OK);
    else if (begin_reading(v->options.nodes))
        start_loading(v);
    else if (!v->poll.set)
        loop_timer_set(loop, &v->poll, clock_add(loop_now_ns(loop), POLL_NS));
}

static void on_poll(struct timer *timer)
{
    open_view(CONTAINER_OF(timer, struct kube_node_view, poll));
}

/* -- Changes -- */

/* Reads events of one kind until none is left or the turn's share is used up. */
static enum status read_events(struct kube_node_view *v, struct watch_cursor *cursor, size_t kind,
                               size_t *bytes)
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_OK;
    while (*bytes < TURN_BYTES &&
           (status = watch_cursor_next(cursor, &event, &revision)) == ST_OK) {
        struct slice value = event->tombstone ? SLICE_EMPTY : kube_kv_of(event->field).value;
        if (v->loading)
            load_object(v, kind, event->key, value, !event->tombstone);
        else
            apply_shared(v->options.nodes, v->generation, kind, revision, event->key, value,
                         !event->tombstone);
        *bytes += size_max(event->field.len, OBJECT_COST);
        watch_cursor_take(cursor);
    }
    return status;
}

static bool is_gone(enum status status)
{
    return status == ST_COMPACTED || status == ST_DAMAGED;
}

/* What was read is published once nothing newer is known. */
static void catch_up(struct kube_node_view *v)
{
    size_t bytes = 0;
    bool current = true;
    for (size_t i = 0; i < KINDS; i++) {
        enum status status = read_events(v, v->next_cursors[i], i, &bytes);
        if (is_gone(status)) {
            /* The reading has taken longer than the history reaches back. */
            finish_loading(v, ST_AGAIN);
            return;
        }
        current = current && status == ST_END;
    }
    if (current)
        finish_loading(v, ST_OK);
    else if (bytes >= TURN_BYTES)
        loop_defer(v->options.loop, &v->look);
}

static void follow(struct kube_node_view *v)
{
    size_t bytes = 0;
    for (size_t i = 0; i < KINDS; i++) {
        enum status status = read_events(v, v->cursors[i], i, &bytes);
        if (status == ST_END)
            complete(v->options.nodes, v->generation, i, watch_cursor_revision(v->cursors[i]));
        if (!is_gone(status))
            continue;
        for (size_t n = 0; n < KINDS; n++)
            v->lost_at[n] = n == i ? watch_cursor_revision(v->cursors[n]) : INT64_MAX;
        v->lost = true;
        close_cursors(v->cursors);
        open_view(v);
        return;
    }
    if (bytes >= TURN_BYTES)
        loop_defer(v->options.loop, &v->look);
}

static void on_look(struct deferred *deferred)
{
    struct kube_node_view *v = CONTAINER_OF(deferred, struct kube_node_view, look);
    turn_work("following the graph of nodes", SLICE_EMPTY);
    if (v->loading && v->kind == KINDS)
        catch_up(v);
    else if (!v->loading && kube_node_view_ready(v))
        follow(v);
}

/* -- Use -- */

void kube_node_view_wait(struct kube_node_view *v, struct kube_node_wait *wait)
{
    if (v->stopped || kube_node_view_ready(v)) {
        wait->status = v->stopped ? ST_STOPPED : ST_OK;
        wait->go(wait);
        return;
    }
    list_push_back(&v->waiting, &wait->in_view);
    open_view(v);
}

void kube_node_view_forget(struct kube_node_wait *wait)
{
    list_remove(&wait->in_view);
}

int64_t kube_node_view_revision(const struct kube_node_view *v)
{
    int64_t revision = INT64_MAX;
    for (size_t i = 0; i < KINDS && v->cursors[0] && !v->loading; i++) {
        int64_t known = watch_cursor_revision(v->cursors[i]);
        revision = known < revision ? known : revision;
    }
    return revision;
}

bool kube_node_view_reaches(struct kube_node_view *v, struct slice node, struct node_object object)
{
    struct kube_nodes *nodes = v->options.nodes;
    LOCK_SCOPE(&nodes->lock);
    return node_graph_reaches(nodes->graph, node, object);
}

/* -- Life -- */

struct kube_node_view *kube_node_view_new(const struct kube_node_view_options *options)
{
    struct kube_node_view *v = xcalloc(1, sizeof(*v));
    v->options = *options;
    v->look.fn = on_look;
    v->more.fn = on_more;
    v->drain.fn = on_drain;
    v->poll.fn = on_poll;
    list_init(&v->waiting);
    return v;
}

void kube_node_view_stop(struct kube_node_view *v)
{
    if (!v || v->stopped)
        return;
    v->stopped = true;
    loop_timer_cancel(v->options.loop, &v->poll);
    loop_defer_cancel(&v->look);
    close_cursors(v->cursors);
    /* A range under way ends first, and then the waits. */
    if (v->loading && !v->open)
        finish_loading(v, ST_STOPPED);
    else if (!v->loading)
        finish_waits(v, ST_STOPPED);
}

void kube_node_view_free(struct kube_node_view *v)
{
    if (!v)
        return;
    assert(v->stopped && !v->loading && list_empty(&v->waiting));
    loop_defer_cancel(&v->drain);
    free_graph(v->old);
    free(v);
}
