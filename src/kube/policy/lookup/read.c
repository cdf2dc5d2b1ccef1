#include "kube/policy/lookup/read.h"

#include "base/memory/budget.h"
#include "base/metric/turn.h"
#include "engine/engine.h"
#include "kube/policy/lookup/lookup_private.h"

enum { ARENA_BYTES_MAX = 1 << 20 };

static void start_some(struct kube_lookup *l);

/* No request waits for it any more. */
static bool is_over(const struct kube_lookup_read *read)
{
    return read->given_up || (read->client && !*read->client);
}

static void finish(struct kube_lookup_read *read, enum status status)
{
    if (status != ST_OK)
        kube_lookup_read_fini(read);
    read->status = status;
    read->go(read);
}

/* The next one may start. */
static void end(struct kube_lookup_read *read, enum status status)
{
    struct kube_lookup *l = read->lookup;
    engine_range_close(&read->range);
    arena_fini(&read->arena);
    list_remove(&read->in_lookup);
    l->running--;
    --*l->options.under_way;
    finish(read, status);
    start_some(l);
}

static bool charge(struct kube_lookup_read *read)
{
    size_t bytes = read->shelf->bytes;
    if (bytes > KUBE_LOOKUP_READ_BYTES_MAX)
        return false;
    if (bytes <= read->charged)
        return true;
    if (read->account && !account_charge(read->account, bytes - read->charged))
        return false;
    read->charged = bytes;
    return true;
}

static enum status take(struct kube_lookup_read *read, struct kube_kv kv)
{
    const struct kube_lookup_kind *kind = kube_stock_kind(read->lookup->options.stock);
    size_t skip = strlen(kind->prefix) + (kind->namespaced ? read->namespace.len + 1 : 0);
    /* What is outside the range is not an object of it, whatever has answered so. */
    if (kv.key.len <= skip || slice_compare(kv.key, read->request.key) < 0 ||
        (read->request.range_end.len && slice_compare(kv.key, read->request.range_end) >= 0))
        return ST_OK;
    TRY(kube_shelf_put(read->shelf, kind, slice_sub(kv.key, skip, kv.key.len - skip), kv,
                       read->wants, read->ctx));
    return charge(read) ? ST_OK : ST_NOMEM;
}

static void read_more(struct deferred *deferred)
{
    struct kube_lookup_read *read = CONTAINER_OF(deferred, struct kube_lookup_read, more);
    struct kube_lookup *l = read->lookup;
    enum status status = ST_OK;
    struct slice field;
    size_t bytes = 0;
    bool more = true;
    turn_work("reading objects that are not held", read->request.key);
    if (is_over(read) || l->stopped)
        status = l->stopped ? ST_STOPPED : ST_CANCELED;
    while (bytes < KUBE_LOOKUP_TURN_BYTES && status == ST_OK) {
        more = read->range.op.status == ST_OK && engine_range_next(&read->range, &field);
        if (!more)
            break;
        struct kube_kv kv = kube_kv_of(field);
        status = take(read, kv);
        bytes += size_max(kv.value.len, KUBE_LOOKUP_OBJECT_COST);
    }
    if (more && status == ST_OK)
        loop_defer(l->options.loop, &read->more);
    else
        end(read, status == ST_OK ? read->range.op.status : status);
}

/* Also a failure waits for the end of the turn, so that many of them do not nest. */
static void on_range(struct engine_op *op)
{
    struct kube_lookup_read *read = CONTAINER_OF(op, struct kube_lookup_read, range.op);
    read->is_open = true;
    loop_defer(read->lookup->options.loop, &read->more);
}

static enum status make_request(struct kube_lookup_read *read)
{
    const struct kube_lookup_kind *kind = kube_stock_kind(read->lookup->options.stock);
    struct pb_range_request *request = &read->request;
    *request = (struct pb_range_request){.serializable = true};
    TRY(kube_key_make(&read->arena, kind->prefix, read->namespace, read->name, &request->key));
    if (!read->name.len)
        TRY(kube_prefix_end(&read->arena, request->key, &request->range_end));
    return ST_OK;
}

static void run(struct kube_lookup_read *read)
{
    struct kube_lookup *l = read->lookup;
    list_push_back(&l->reads_running, &read->in_lookup);
    l->running++;
    ++*l->options.under_way;
    read->shelf = kube_shelf_new(read->namespace);
    arena_init(&read->arena, NULL, 0, ARENA_BYTES_MAX);
    read->range = (struct engine_range){
        .op = {.done = on_range, .arena = &read->arena, .principal = ENGINE_SERVER}};
    read->more.fn = read_more;
    read->is_open = false;
    enum status status = make_request(read);
    if (status == ST_OK) {
        engine_range_start(l->options.shard, &read->range, &read->request);
    } else {
        read->range.op.status = status;
        on_range(&read->range.op);
    }
}

/* Whether too many are under way, or one of the same namespace. */
static bool must_wait(struct kube_lookup *l, const struct kube_lookup_read *read)
{
    if (l->running >= KUBE_LOOKUP_READS_MAX)
        return true;
    const struct kube_lookup_read *other;
    LIST_FOREACH (other, &l->reads_running, in_lookup)
        if (slice_equal(other->namespace, read->namespace))
            return true;
    return false;
}

/* So that clients which come and go do not make the queue grow. */
static void end_those_over(struct kube_lookup *l)
{
    struct kube_lookup_read *read, *following;
    struct list over, *link;
    list_init(&over);
    LIST_FOREACH_SAFE (read, following, &l->reads_queued, in_lookup)
        if (is_over(read)) {
            list_remove(&read->in_lookup);
            list_push_back(&over, &read->in_lookup);
        }
    while ((link = list_pop_front(&over)) != NULL)
        finish(LIST_ENTRY(link, struct kube_lookup_read, in_lookup), ST_CANCELED);
}

static void start_some(struct kube_lookup *l)
{
    struct kube_lookup_read *read;
    end_those_over(l);
    LIST_FOREACH (read, &l->reads_queued, in_lookup) {
        if (must_wait(l, read))
            continue;
        list_remove(&read->in_lookup);
        read->queued = false;
        run(read); /* its end starts the next one */
        return;
    }
}

void kube_lookup_read_start(struct kube_lookup *l, struct kube_lookup_read *read)
{
    read->lookup = l;
    read->given_up = false;
    read->charged = 0;
    read->shelf = NULL;
    if (l->stopped) {
        finish(read, ST_STOPPED);
        return;
    }
    read->queued = must_wait(l, read);
    if (read->queued)
        list_push_back(&l->reads_queued, &read->in_lookup);
    else
        run(read);
}

void kube_lookup_read_give_up(struct kube_lookup_read *read)
{
    read->given_up = true;
    if (read->queued) {
        list_remove(&read->in_lookup);
        finish(read, ST_CANCELED);
    } else if (!read->is_open) {
        engine_give_up(&read->range.op);
    }
}

void kube_lookup_reads_stop(struct kube_lookup *l)
{
    struct list *link;
    while ((link = list_pop_front(&l->reads_queued)) != NULL)
        finish(LIST_ENTRY(link, struct kube_lookup_read, in_lookup), ST_STOPPED);
}

void kube_lookup_read_fini(struct kube_lookup_read *read)
{
    if (read->account && read->charged)
        account_release(read->account, read->charged);
    read->charged = 0;
    kube_shelf_unref(read->shelf);
    read->shelf = NULL;
}
