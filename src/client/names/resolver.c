#include "client/names/resolver.h"

#include "base/container/list.h"
#include "base/lock.h"
#include "base/random.h"
#include "io/loop.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREAD_STACK_BYTES = 512 * 1024 };

/*
 *     queued ──► running ──► posted ──► ready ──► done (freed)
 *       │ │         └──► abandoned       ▲
 *       │ │              (freed by its   │
 *       │ │               thread)        │
 *       │ └──► (no thread can be started)┘
 *       └──► cancelled (freed)
 *
 * A lookup that was posted waits in the mailbox; one that is ready waits for the end of the turn.
 * One that needs no thread is ready from the beginning.
 */
enum lookup_state {
    LOOKUP_READY,
    LOOKUP_QUEUED,
    LOOKUP_RUNNING,
    LOOKUP_POSTED,
    LOOKUP_ABANDONED,
};

#define TO(state) (1u << LOOKUP_##state)

static const unsigned moves[] = {
    [LOOKUP_READY] = TO(QUEUED),
    [LOOKUP_QUEUED] = TO(RUNNING) | TO(READY),
    [LOOKUP_RUNNING] = TO(POSTED) | TO(ABANDONED),
    [LOOKUP_POSTED] = TO(READY),
    [LOOKUP_ABANDONED] = 0,
};

struct lookup {
    enum lookup_state state; /* protected by the pool's lock once it is queued */
    struct resolver *resolver;
    const struct resolver_backend *backend;
    struct lookup_hooks hooks;
    struct list in_resolver; /* links resolver.lookups; empty once it was cancelled */
    struct list in_queue;    /* links resolver_pool.queue while queued */
    struct deferred deferred;
    struct mailbox_node in_mailbox;
    bool is_srv, cancelled;
    uint16_t port;
    struct error error; /* status ST_OK: there is an answer */
    size_t count;
    union {
        struct address *addresses;
        struct srv_target *targets;
    } answer; /* owned; NULL without an answer */
    char name[SRV_HOST_BYTES];
};

/* What the loop's thread and the helper threads share. Freed with the last of them. */
struct resolver_pool {
    atomic_uint refs;
    struct lock lock;  /* protects the fields below */
    struct list queue; /* lookup.in_queue */
    unsigned threads;
};

/* Its mailbox is used by helper threads under the pool's lock, while a lookup is running and not
 * abandoned; so after resolver_free, which takes the lock, no thread uses it. */
struct resolver {
    struct mailbox mailbox;
    struct loop *loop;
    const struct resolver_backend *backend;
    struct resolver_pool *pool; /* a reference */
    struct list lookups;        /* lookup.in_resolver: not done and not cancelled */
    struct random random;
};

static void free_lookup(struct lookup *l)
{
    assert(list_empty(&l->in_queue));
    free(l->is_srv ? (void *)l->answer.targets : (void *)l->answer.addresses);
    free(l);
}

/* -- looking up, on any thread -- */

static enum status query_srv(struct lookup *l, uint8_t *answer, struct error *error)
{
    size_t len;
    TRY(l->backend->srv(l->backend->ctx, l->name, answer, &len, error));
    enum status status = srv_parse(slice_of(answer, len), l->answer.targets, &l->count);
    if (status == ST_NOT_FOUND)
        error_set(error, status, "no such host");
    else if (status != ST_OK)
        error_set(error, status, "server misbehaving");
    return status;
}

static void run(struct lookup *l)
{
    if (l->is_srv) {
        struct error error;
        uint8_t *answer = malloc(SRV_ANSWER_BYTES);
        l->answer.targets = calloc(SRV_TARGETS_MAX, sizeof(*l->answer.targets));
        enum status status =
            answer && l->answer.targets ? query_srv(l, answer, &error) : error_no_memory(&error);
        if (status != ST_OK)
            error_set(&l->error, status, "lookup %s: %s", l->name, error.text);
        free(answer);
    } else {
        struct error error;
        struct address *addresses = calloc(RESOLVER_ADDRESSES_MAX, sizeof(*addresses));
        if (!addresses) {
            error_set(&l->error, ST_NOMEM, "lookup %s: %s", l->name, "out of memory");
            return;
        }
        l->answer.addresses = addresses;
        enum status status =
            l->backend->host(l->backend->ctx, l->name, addresses, &l->count, &error);
        if (status != ST_OK)
            error_set(&l->error, status, "lookup %s: %s", l->name, error.text);
        else
            assert(l->count > 0 && l->count <= RESOLVER_ADDRESSES_MAX);
        for (size_t i = 0; status == ST_OK && i < l->count; i++) {
            void *at = &addresses[i].as.storage;
            if (addresses[i].as.any.sa_family == AF_INET)
                ((struct sockaddr_in *)at)->sin_port = htons(l->port);
            else if (addresses[i].as.any.sa_family == AF_INET6)
                ((struct sockaddr_in6 *)at)->sin6_port = htons(l->port);
        }
    }
}

/* -- helper threads -- */

static void pool_unref(struct resolver_pool *pool)
{
    if (atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) > 1)
        return;
    assert(list_empty(&pool->queue) && pool->threads == 0);
    lock_fini(&pool->lock);
    free(pool);
}

/* NULL: the queue is empty, and the thread ends. */
static struct lookup *take_next(struct resolver_pool *pool)
{
    LOCK_SCOPE(&pool->lock);
    struct list *link = list_pop_front(&pool->queue);
    if (!link) {
        pool->threads--;
        return NULL;
    }
    struct lookup *l = LIST_ENTRY(link, struct lookup, in_queue);
    STATE_MOVE(l->state, moves, LOOKUP_RUNNING);
    return l;
}

static void return_lookup(struct resolver_pool *pool, struct lookup *l)
{
    LOCK_SCOPE(&pool->lock);
    if (l->state == LOOKUP_ABANDONED) {
        free_lookup(l);
        return;
    }
    STATE_MOVE(l->state, moves, LOOKUP_POSTED);
    mailbox_post(&l->resolver->mailbox, &l->in_mailbox);
}

static void *thread_main(void *arg)
{
    struct resolver_pool *pool = arg;
    pthread_setname_np(pthread_self(), "vigil-lookup");
    for (struct lookup *l; (l = take_next(pool));) {
        run(l);
        return_lookup(pool, l);
    }
    pool_unref(pool);
    return NULL;
}

/* The thread takes no signals: those are for the program's own threads. */
static int create_thread(struct resolver_pool *pool)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, thread_main, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Another thread for what was just queued, unless there are enough. False: there is none at all. */
static bool start_thread(struct resolver_pool *pool)
{
    assert(lock_held(&pool->lock));
    if (pool->threads == RESOLVER_THREADS_MAX)
        return true;
    atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
    if (create_thread(pool) == 0) {
        pool->threads++;
        return true;
    }
    atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_relaxed);
    return pool->threads > 0;
}

/* -- completion, on the loop's thread -- */

static void on_deferred(struct deferred *deferred)
{
    struct lookup *l = CONTAINER_OF(deferred, struct lookup, deferred);
    struct lookup_hooks hooks = l->hooks;
    bool found = l->error.status == ST_OK;
    struct lookup_result result = {.status = l->error.status, .reason = l->error.text};
    if (found && l->is_srv) {
        srv_order(l->answer.targets, l->count, &l->resolver->random);
        result.targets = l->answer.targets;
        result.target_count = l->count;
    } else if (found) {
        result.addresses = l->answer.addresses;
        result.address_count = l->count;
    }
    list_remove(&l->in_resolver);
    hooks.done(hooks.owner, &result); /* may free the resolver */
    free_lookup(l);
}

/* done is not called from here, because it may free the resolver with the mailbox. */
static void receive(void *owner, struct mailbox_node *node)
{
    struct resolver *r = owner;
    struct lookup *l = CONTAINER_OF(node, struct lookup, in_mailbox);
    if (l->cancelled) {
        free_lookup(l);
        return;
    }
    STATE_MOVE(l->state, moves, LOOKUP_READY);
    loop_defer(r->loop, &l->deferred);
}

/* -- starting -- */

/* False: no thread could be started, and the lookup is ready. */
static bool queue(struct resolver *r, struct lookup *l)
{
    LOCK_SCOPE(&r->pool->lock);
    STATE_MOVE(l->state, moves, LOOKUP_QUEUED);
    list_push_back(&r->pool->queue, &l->in_queue);
    if (start_thread(r->pool))
        return true;
    list_remove(&l->in_queue);
    STATE_MOVE(l->state, moves, LOOKUP_READY);
    error_set(&l->error, ST_NOMEM, "lookup %s: %s", l->name, "cannot start a thread");
    return false;
}

/* True: the host is a number or this machine, and the answer is set. */
static bool answer_locally(struct lookup *l)
{
    bool here = !*l->name || strcmp(l->name, "localhost") == 0;
    struct slice number = here ? SLICE_LITERAL("127.0.0.1") : slice_from_text(l->name);
    struct address first;
    if (address_from_host(number, l->port, &first) != ST_OK)
        return false;
    l->answer.addresses = calloc(2, sizeof(first));
    if (!l->answer.addresses) {
        error_set(&l->error, ST_NOMEM, "lookup %s: %s", l->name, "out of memory");
        return true;
    }
    l->answer.addresses[l->count++] = first;
    if (here && address_from_host(SLICE_LITERAL("::1"), l->port, &first) == ST_OK)
        l->answer.addresses[l->count++] = first;
    return true;
}

static void start(struct lookup *l)
{
    struct resolver *r = l->resolver;
    if (l->is_srv || !answer_locally(l)) {
        if (!r->backend->blocks)
            run(l);
        else if (queue(r, l))
            return;
    }
    loop_defer(r->loop, &l->deferred);
}

static enum status lookup_new(struct resolver *r, struct slice name, struct lookup_hooks hooks,
                              struct lookup **ret_lookup)
{
    assert(hooks.done);
    if (name.len >= SRV_HOST_BYTES || (name.len && memchr(name.ptr, 0, name.len)))
        return ST_INVALID;
    struct lookup *l = calloc(1, sizeof(*l));
    if (!l)
        return ST_NOMEM;
    l->resolver = r;
    l->backend = r->backend;
    l->hooks = hooks;
    l->deferred.fn = on_deferred;
    list_init(&l->in_queue);
    list_push_back(&r->lookups, &l->in_resolver);
    slice_copy(l->name, name);
    *ret_lookup = l;
    return ST_OK;
}

enum status resolver_lookup_host(struct resolver *r, struct slice host, uint16_t port,
                                 struct lookup_hooks hooks, struct lookup **ret_lookup)
{
    struct lookup *l;
    TRY(lookup_new(r, host, hooks, &l));
    l->port = port;
    start(l);
    *ret_lookup = l;
    return ST_OK;
}

enum status resolver_lookup_srv(struct resolver *r, struct slice name, struct lookup_hooks hooks,
                                struct lookup **ret_lookup)
{
    struct lookup *l;
    TRY(lookup_new(r, name, hooks, &l));
    l->is_srv = true;
    start(l);
    *ret_lookup = l;
    return ST_OK;
}

void lookup_cancel(struct lookup *l)
{
    if (!l)
        return;
    assert(!l->cancelled);
    list_remove(&l->in_resolver);
    LOCK_SCOPE(&l->resolver->pool->lock);
    switch (l->state) {
    case LOOKUP_READY:
        loop_defer_cancel(&l->deferred);
        free_lookup(l);
        break;
    case LOOKUP_QUEUED:
        list_remove(&l->in_queue);
        free_lookup(l);
        break;
    case LOOKUP_RUNNING:
        STATE_MOVE(l->state, moves, LOOKUP_ABANDONED);
        break;
    default:
        assert(l->state == LOOKUP_POSTED);
        l->cancelled = true; /* freed when it is received */
    }
}

/* -- the resolver -- */

static struct resolver_pool *pool_new(void)
{
    struct resolver_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    atomic_init(&pool->refs, 1);
    lock_init(&pool->lock);
    list_init(&pool->queue);
    return pool;
}

enum status resolver_new(struct loop *loop, const struct resolver_backend *backend, uint64_t seed,
                         struct resolver **ret_resolver)
{
    struct resolver *r = aligned_alloc(_Alignof(struct resolver), sizeof(*r));
    struct resolver_pool *pool = pool_new();
    if (!r || !pool) {
        free(r);
        free(pool);
        return ST_NOMEM;
    }
    *r = (struct resolver){.loop = loop, .backend = backend, .pool = pool};
    list_init(&r->lookups);
    random_init(&r->random, seed);
    loop_attach(loop, &r->mailbox, receive, r);
    *ret_resolver = r;
    return ST_OK;
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    assert(list_empty(&r->lookups));
    mailbox_detach(&r->mailbox);
    lock_take(&r->pool->lock); /* a thread that posts has finished afterwards */
    for (struct mailbox_node *node = mailbox_take(&r->mailbox); node;) {
        struct lookup *l = CONTAINER_OF(node, struct lookup, in_mailbox);
        node = node->next;
        assert(l->cancelled);
        free_lookup(l);
    }
    lock_release(&r->pool->lock);
    pool_unref(r->pool);
    free(r);
}

unsigned resolver_threads(struct resolver *r)
{
    LOCK_SCOPE(&r->pool->lock);
    return r->pool->threads;
}

void resolver_check(struct resolver *r)
{
    LOCK_SCOPE(&r->pool->lock);
    const struct lookup *l;
    size_t queued = 0, waiting = 0;
    LIST_FOREACH (l, &r->pool->queue, in_queue) {
        assert(l->state == LOOKUP_QUEUED && l->resolver == r);
        queued++;
    }
    LIST_FOREACH (l, &r->lookups, in_resolver) {
        assert(l->resolver == r && !l->cancelled && l->state != LOOKUP_ABANDONED);
        waiting += l->state == LOOKUP_QUEUED;
        assert((l->state == LOOKUP_QUEUED) == !list_empty(&l->in_queue));
    }
    assert(queued == waiting);
    assert(r->pool->threads <= RESOLVER_THREADS_MAX);
    assert(queued == 0 || r->pool->threads > 0);
}
