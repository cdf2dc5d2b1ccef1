#include "kube/policy/lookup/stock.h"

#include "base/lock.h"
#include "base/log/log.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"

struct kube_stock {
    struct kube_lookup_kind kind;
    struct kube_lookup_pool *pool;
    size_t bytes_max;
    _Atomic uint64_t version; /* written under the lock */
    struct lock lock;
    struct kube_shelves *current; /* a reference; changed in place while there is no other */
    int64_t revision;             /* every event up to it has been applied */
    bool reading;                 /* a thread reads all objects */
    size_t charged;               /* to the pool's account */
};

struct kube_lookup_pool {
    struct lock lock; /* protects what follows; stocks have locks of their own */
    struct account *account;
    size_t bytes_max; /* limit on the size of each kind */
    struct kube_stock *stocks[KUBE_LOOKUP_KINDS_MAX];
    size_t count;
};

/* -- Versions -- */

struct kube_shelves *kube_shelves_new(void)
{
    struct kube_shelves *shelves = xcalloc(1, sizeof(*shelves));
    shelves->refs = 1;
    return shelves;
}

void kube_shelves_unref(struct kube_shelves *shelves)
{
    if (!shelves || atomic_fetch_sub_explicit(&shelves->refs, 1, memory_order_acq_rel) != 1)
        return;
    version_map_fini(&shelves->shelves);
    free(shelves);
}

static struct kube_shelf *find(const struct kube_shelves *shelves, struct slice namespace)
{
    struct version_item *item = version_map_get(&shelves->shelves, namespace);
    return item ? CONTAINER_OF(item, struct kube_shelf, item) : NULL;
}

const struct kube_shelf *kube_shelves_find(const struct kube_shelves *shelves,
                                           struct slice namespace)
{
    static const struct kube_shelf empty = {.held = true};
    const struct kube_shelf *shelf = find(shelves, namespace);
    if (!shelf)
        return &empty;
    return shelf->held ? shelf : NULL;
}

static size_t weight(const struct kube_shelf *shelf)
{
    return sizeof(*shelf) + VERSION_NODE_BYTES + shelf->item.key.len + shelf->bytes;
}

/* Replaces a shelf by its next version, or by none. Takes over the reference. */
static void replace(struct kube_shelves *shelves, const struct kube_shelf *old,
                    struct kube_shelf *next)
{
    size_t before = shelves->bytes;
    if (old) {
        shelves->bytes -= weight(old);
        shelves->count -= kube_shelf_count(old);
    }
    if (next->held && !kube_shelf_count(next)) {
        (void)version_map_remove(&shelves->shelves, next->item.key);
        kube_shelf_unref(next);
    } else {
        shelves->bytes += weight(next);
        shelves->count += kube_shelf_count(next);
        version_map_put(&shelves->shelves, &next->item);
    }
    shelves->may_fit = shelves->may_fit || (shelves->not_held && shelves->bytes < before);
}

static bool choose_largest(void *ctx, struct version_item *item)
{
    struct kube_shelf **largest = ctx, *shelf = CONTAINER_OF(item, struct kube_shelf, item);
    if (shelf->held && (!*largest || shelf->bytes > (*largest)->bytes))
        *largest = shelf;
    return true;
}

/* From now on the objects of this namespace are read when they are needed. old NULL: it had none.
 */
static void drop(struct kube_shelves *shelves, const struct kube_stock *stock,
                 const struct kube_shelf *old, struct slice namespace, const char *why)
{
    struct kube_shelf *stub = kube_shelf_new(namespace);
    bool may_fit = shelves->may_fit;
    log_info("objects are not held in memory, and requests that need them read them from the store",
             LOG_TEXT("prefix", stock->kind.prefix), LOG_SLICE("namespace", namespace),
             LOG_TEXT("why", why), LOG_U64("bytes", old ? old->bytes : 0),
             LOG_U64("limit", stock->bytes_max));
    stub->held = false;
    shelves->not_held++;
    replace(shelves, old, stub);
    shelves->may_fit = may_fit; /* the room is not for the namespace that has just lost it */
}

/* False: it is not the key of an object. */
static bool split_key(const struct kube_stock *stock, struct slice key, struct slice *ret_namespace,
                      struct slice *ret_name)
{
    struct slice prefix = slice_from_text(stock->kind.prefix);
    *ret_namespace = SLICE_EMPTY;
    if (key.len <= prefix.len || !slice_has_prefix(key, prefix))
        return false;
    *ret_name = slice_sub(key, prefix.len, key.len - prefix.len);
    if (!stock->kind.namespaced)
        return true;
    const uint8_t *slash = memchr(ret_name->ptr, '/', ret_name->len);
    if (!slash || slash == ret_name->ptr)
        return false;
    size_t at = (size_t)(slash - ret_name->ptr);
    *ret_namespace = slice_sub(*ret_name, 0, at);
    *ret_name = slice_sub(*ret_name, at + 1, ret_name->len - at - 1);
    return true;
}

void kube_shelves_apply(struct kube_shelves *shelves, const struct kube_stock *stock,
                        struct slice key, const struct kube_kv *kv)
{
    struct slice namespace, name;
    if (!split_key(stock, key, &namespace, &name))
        return;
    const struct kube_shelf *old = find(shelves, namespace);
    if (old && !old->held) {
        shelves->may_fit = true; /* it may have become smaller */
        return;
    }
    if (!old && !kv)
        return;
    AUTO(kube_shelf_unrefp)
    struct kube_shelf *next = old ? kube_shelf_dup(old) : kube_shelf_new(namespace);
    enum status status = ST_OK;
    if (kv)
        status = kube_shelf_put(next, &stock->kind, name, *kv, NULL, NULL);
    else
        kube_shelf_remove(next, &stock->kind, name);
    if (status != ST_OK) {
        drop(shelves, stock, old, namespace, "there is no memory for one of them");
        return;
    }
    if (next->unreadable > (old ? old->unreadable : 0))
        log_warn("an object cannot be used and has no part in decisions", LOG_SLICE("key", key),
                 LOG_TEXT("limits", stock->kind.limits ? stock->kind.limits : "it is not valid"));
    replace(shelves, old, TAKE(next));
    /* What takes the most is not held any more, until the rest fits. */
    while (shelves->bytes > stock->bytes_max) {
        struct kube_shelf *largest = NULL;
        (void)version_map_each(&shelves->shelves, choose_largest, &largest);
        if (!largest)
            return;
        drop(shelves, stock, largest, largest->item.key, "all together are too large");
    }
}

static bool add_up(void *ctx, struct version_item *item)
{
    struct kube_shelves *sums = ctx;
    struct kube_shelf *shelf = CONTAINER_OF(item, struct kube_shelf, item);
    kube_shelf_check(shelf);
    assert(!shelf->held || kube_shelf_count(shelf));
    sums->bytes += weight(shelf);
    sums->count += kube_shelf_count(shelf);
    sums->not_held += !shelf->held;
    return true;
}

void kube_shelves_check(const struct kube_shelves *shelves)
{
    struct kube_shelves sums = {0};
    version_map_check(&shelves->shelves);
    (void)version_map_each(&shelves->shelves, add_up, &sums);
    assert(sums.bytes == shelves->bytes && sums.count == shelves->count);
    assert(sums.not_held == shelves->not_held);
}

/* -- The current version -- */

const struct kube_lookup_kind *kube_stock_kind(const struct kube_stock *stock)
{
    return &stock->kind;
}

const _Atomic uint64_t *kube_stock_version(const struct kube_stock *stock)
{
    return &stock->version;
}

/* Under the lock, after a change. */
static void publish(struct kube_stock *stock)
{
    struct account *account = stock->pool->account;
    assert(lock_held(&stock->lock));
    atomic_fetch_add_explicit(&stock->version, 1, memory_order_release);
    if (account && stock->current->bytes > stock->charged)
        account_charge_anyway(account, stock->current->bytes - stock->charged);
    else if (account)
        account_release(account, stock->charged - stock->current->bytes);
    stock->charged = stock->current->bytes;
}

/* Under the lock: the current version, of which the caller has the only reference. Other threads
 * get references only under the lock. */
static struct kube_shelves *own_current(struct kube_stock *stock)
{
    struct kube_shelves *old = stock->current;
    assert(lock_held(&stock->lock));
    if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return old;
    struct kube_shelves *next = kube_shelves_new();
    next->generation = old->generation;
    next->shelves = version_map_dup(&old->shelves);
    next->bytes = old->bytes;
    next->count = old->count;
    next->not_held = old->not_held;
    next->may_fit = old->may_fit;
    kube_shelves_unref(old);
    return stock->current = next;
}

struct kube_shelves *kube_stock_get(struct kube_stock *stock, uint64_t *ret_version,
                                    int64_t *ret_revision)
{
    LOCK_SCOPE(&stock->lock);
    if (stock->current)
        atomic_fetch_add_explicit(&stock->current->refs, 1, memory_order_relaxed);
    *ret_version = stock->version;
    *ret_revision = stock->revision;
    return stock->current;
}

int64_t kube_stock_revision(struct kube_stock *stock)
{
    LOCK_SCOPE(&stock->lock);
    return stock->revision;
}

static void raise_revision(struct kube_stock *stock, int64_t revision)
{
    stock->revision = revision > stock->revision ? revision : stock->revision;
}

void kube_stock_apply(struct kube_stock *stock, uint64_t generation, int64_t revision,
                      struct slice key, const struct kube_kv *kv)
{
    LOCK_SCOPE(&stock->lock);
    if (!stock->current || stock->current->generation != generation || revision <= stock->revision)
        return;
    /* Another thread may have applied this event, but not a later one. */
    raise_revision(stock, revision - 1);
    kube_shelves_apply(own_current(stock), stock, key, kv);
    publish(stock);
}

void kube_stock_complete(struct kube_stock *stock, uint64_t generation, int64_t revision)
{
    LOCK_SCOPE(&stock->lock);
    if (stock->current && stock->current->generation == generation)
        raise_revision(stock, revision);
}

bool kube_stock_begin(struct kube_stock *stock)
{
    LOCK_SCOPE(&stock->lock);
    bool begins = !stock->reading;
    stock->reading = true;
    return begins;
}

void kube_stock_end(struct kube_stock *stock, struct kube_shelves *shelves, int64_t revision)
{
    struct kube_shelves *old = NULL;
    {
        LOCK_SCOPE(&stock->lock);
        assert(stock->reading);
        stock->reading = false;
        if (!shelves)
            return;
        old = stock->current;
        shelves->generation = old ? old->generation + 1 : 1;
        shelves->may_fit = false;
        stock->current = shelves;
        stock->revision = revision;
        publish(stock);
    }
    kube_shelves_unref(old); /* which may take a while */
}

/* -- The pool -- */

struct kube_lookup_pool *kube_lookup_pool_new(struct budget *budget)
{
    struct kube_lookup_pool *pool = xcalloc(1, sizeof(*pool));
    size_t limit = budget ? budget_stats(budget).limit_bytes : 0;
    lock_init(&pool->lock);
    pool->bytes_max = KUBE_LOOKUP_BYTES_MAX;
    if (limit)
        pool->bytes_max = size_min(pool->bytes_max, limit / KUBE_LOOKUP_BUDGET_PART);
    if (budget && account_new(budget, &pool->account) != ST_OK)
        xalloc_check(NULL, 1); /* no memory, as elsewhere in the server */
    return pool;
}

static void stock_free(struct kube_stock *stock)
{
    if (stock->pool->account)
        account_release(stock->pool->account, stock->charged);
    kube_shelves_unref(stock->current);
    lock_fini(&stock->lock);
    free(stock);
}

void kube_lookup_pool_free(struct kube_lookup_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->count; i++)
        stock_free(pool->stocks[i]);
    if (pool->account)
        account_unref(pool->account);
    lock_fini(&pool->lock);
    free(pool);
}

struct kube_stock *kube_lookup_pool_get(struct kube_lookup_pool *pool,
                                        const struct kube_lookup_kind *kind, size_t bytes_max)
{
    LOCK_SCOPE(&pool->lock);
    for (size_t i = 0; i < pool->count; i++)
        if (strcmp(pool->stocks[i]->kind.prefix, kind->prefix) == 0)
            return pool->stocks[i];
    assert(pool->count < KUBE_LOOKUP_KINDS_MAX);
    struct kube_stock *stock = xcalloc(1, sizeof(*stock));
    lock_init(&stock->lock);
    stock->kind = *kind;
    stock->pool = pool;
    stock->bytes_max = bytes_max ? bytes_max : pool->bytes_max;
    return pool->stocks[pool->count++] = stock;
}

void kube_lookup_pool_write_metrics(struct kube_lookup_pool *pool, struct metric_page *page)
{
    size_t bytes = 0, count = 0, not_held = 0;
    LOCK_SCOPE(&pool->lock);
    for (size_t i = 0; i < pool->count; i++) {
        struct kube_stock *stock = pool->stocks[i];
        lock_take(&stock->lock);
        if (stock->current) {
            bytes += stock->current->bytes;
            count += stock->current->count;
            not_held += stock->current->not_held;
        }
        lock_release(&stock->lock);
    }
    metric_page_gauge(page, "vigil_kube_lookup_bytes",
                      "Memory that the objects take from which access and admission are decided, "
                      "once for all threads.",
                      bytes);
    metric_page_gauge(page, "vigil_kube_lookup_objects", "The number of these objects.", count);
    metric_page_gauge(page, "vigil_kube_lookup_namespaces_not_held",
                      "Namespaces with too many objects of a kind to hold them: requests in them "
                      "read these objects from the store.",
                      not_held);
}
