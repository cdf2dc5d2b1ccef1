#include "kube/webhook/endpoints.h"

#include "base/container/list.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "client/names/endpoint.h"
#include "io/loop.h"
#include "kube/types/storage.h"

#include <stdio.h>

#define KEPT_NS NS_PER_S /* how long addresses that were found are used */

enum {
    PAGE_OBJECTS = 64,                /* that one operation reads */
    TURN_BYTES = 128 * 1024,          /* size of the objects that one turn examines */
    OBJECT_ARENA_BYTES_MAX = 8 << 20, /* memory for the tree of one object */
    REASON_BYTES = 320,
    PORT_NAME_BYTES = 64,
};

enum step {
    IDLE,
    SERVICE,      /* reads the service */
    NAMED_SLICES, /* reads the slices that are named after it, as those of its controller are */
    ALL_SLICES,   /* reads the slices of its namespace */
    ENDPOINTS,    /* reads the Endpoints object */
};

#define TO(step) (1u << (step))
static const unsigned moves[] = {
    [IDLE] = TO(SERVICE),
    [SERVICE] = TO(NAMED_SLICES) | TO(IDLE),
    [NAMED_SLICES] = TO(ALL_SLICES) | TO(IDLE),
    [ALL_SLICES] = TO(ENDPOINTS) | TO(IDLE),
    [ENDPOINTS] = TO(IDLE),
};

/* The connection that wants to know. */
struct search {
    struct address_search base;
    struct kube_webhook_endpoints *from;
    struct list in_endpoints; /* links kube_webhook_endpoints.searches, while it waits for them */
    struct lookup_hooks hooks;
    struct lookup *lookup; /* owned; finds another host */
};

struct kube_webhook_endpoints {
    struct kube_webhook_endpoints_options options;
    const struct kube_webhook_target *target;
    struct address_source source;
    struct list searches;
    bool closed;
    struct deferred turn_end; /* delivers what is known, or continues to read */

    /* The reading. */
    enum step step;
    bool in_engine;     /* the operation has not completed */
    struct arena arena; /* keys */
    struct arena page;  /* the operation's */
    struct pb_range_request request;
    struct engine_range range;
    size_t objects, bytes; /* examined so far */
    char port_name[PORT_NAME_BYTES];
    bool prefers_v6;

    /* What was found. The addresses of the preferred family come first. */
    struct address addresses[KUBE_WEBHOOK_ENDPOINTS_MAX];
    size_t count, preferred, turn;
    char other_host[ENDPOINT_HOST_BYTES]; /* "": the addresses are those of endpoints */
    char reason[REASON_BYTES];            /* why there are none; "" */
    int64_t until_ns;                     /* known until then */
};

static void schedule(struct kube_webhook_endpoints *e)
{
    loop_defer(e->options.loop, &e->turn_end);
}

static void fail(struct kube_webhook_endpoints *e, const char *format, struct slice name)
{
    snprintf(e->reason, sizeof(e->reason), format, SLICE_ARGS(name));
}

/* -- Searches -- */

static void end_search(struct search *search, const struct lookup_result *result)
{
    struct lookup_hooks hooks = search->hooks;
    free(search);
    hooks.done(hooks.owner, result);
}

static void fail_search(struct search *search, enum status status, const char *reason)
{
    end_search(search, &(struct lookup_result){.status = status, .reason = reason});
}

static void on_lookup(void *owner, const struct lookup_result *result)
{
    struct search *search = owner;
    search->lookup = NULL;
    end_search(search, result);
}

/* Each search begins with another address. */
static void give_addresses(struct kube_webhook_endpoints *e, struct search *search)
{
    struct address turned[KUBE_WEBHOOK_ENDPOINTS_MAX];
    size_t first = e->turn++;
    for (size_t i = 0; i < e->preferred; i++)
        turned[i] = e->addresses[(first + i) % e->preferred];
    for (size_t i = e->preferred; i < e->count; i++)
        turned[i] = e->addresses[e->preferred + (first + i) % (e->count - e->preferred)];
    end_search(search, &(struct lookup_result){.addresses = turned, .address_count = e->count});
}

static void deliver(struct kube_webhook_endpoints *e)
{
    struct list waiting, *link;
    list_init(&waiting);
    list_append(&waiting, &e->searches);
    while ((link = list_pop_front(&waiting)) != NULL) {
        struct search *search = LIST_ENTRY(link, struct search, in_endpoints);
        list_init(&search->in_endpoints);
        if (*e->reason)
            fail_search(search, ST_NOT_FOUND, e->reason);
        else if (!*e->other_host)
            give_addresses(e, search);
        else if (resolver_lookup_host(e->options.resolver, slice_from_text(e->other_host),
                                      e->target->port, (struct lookup_hooks){on_lookup, search},
                                      &search->lookup) != ST_OK)
            fail_search(search, ST_NOMEM, "out of memory");
    }
}

static void cancel_search(struct address_search *base)
{
    struct search *search = CONTAINER_OF(base, struct search, base);
    lookup_cancel(search->lookup);
    list_remove(&search->in_endpoints);
    free(search);
}

static enum status start_search(void *ctx, struct lookup_hooks hooks,
                                struct address_search **ret_search)
{
    struct kube_webhook_endpoints *e = ctx;
    struct search *search = xcalloc(1, sizeof(*search));
    search->base.cancel = cancel_search;
    search->from = e;
    search->hooks = hooks;
    list_push_back(&e->searches, &search->in_endpoints);
    schedule(e);
    *ret_search = &search->base;
    return ST_OK;
}

/* -- Addresses -- */

static bool is_v6(const struct address *address)
{
    return address->as.any.sa_family == AF_INET6;
}

static void add_address(struct kube_webhook_endpoints *e, struct slice host, uint16_t port)
{
    struct address address;
    if (e->count == KUBE_WEBHOOK_ENDPOINTS_MAX || address_from_host(host, port, &address) != ST_OK)
        return;
    e->addresses[e->count++] = address;
    if (is_v6(&address) != e->prefers_v6)
        return;
    e->addresses[e->count - 1] = e->addresses[e->preferred];
    e->addresses[e->preferred++] = address;
}

/* The port with the name that the service gives it. */
static bool find_port(const struct kube_webhook_endpoints *e, const struct json_node *ports,
                      struct arena *arena, uint16_t *ret_port)
{
    const struct json_node *port;
    struct slice name;
    int64_t number;
    for (port = json_node_items(ports); port; port = port->next) {
        name = SLICE_EMPTY;
        if (json_node_text(json_node_named(port, "name"), arena, &name) == ST_OK &&
            slice_is(name, e->port_name) && json_node_int(json_node_named(port, "port"), &number) &&
            number > 0 && number <= UINT16_MAX) {
            *ret_port = (uint16_t)number;
            return true;
        }
    }
    return false;
}

static bool is_ready(const struct json_node *endpoint)
{
    const struct json_node *ready = json_node_path(endpoint, "conditions.ready");
    return !json_node_is_set(ready) || json_node_is_true(ready);
}

static void take_slice(struct kube_webhook_endpoints *e, const struct json_node *slice,
                       struct arena *arena)
{
    const struct json_node *labels = json_node_path(slice, "metadata.labels"), *endpoint;
    struct slice name = SLICE_EMPTY, host;
    uint16_t port;
    if (json_node_text(json_node_named(labels, "kubernetes.io/service-name"), arena, &name) !=
            ST_OK ||
        !slice_equal(name, e->target->service_name) ||
        !find_port(e, json_node_named(slice, "ports"), arena, &port))
        return;
    for (endpoint = json_node_items_at(slice, "endpoints"); endpoint; endpoint = endpoint->next) {
        const struct json_node *first = json_node_items_at(endpoint, "addresses");
        if (is_ready(endpoint) && json_node_text(first, arena, &host) == ST_OK)
            add_address(e, host, port);
    }
}

static void take_endpoints(struct kube_webhook_endpoints *e, const struct json_node *object,
                           struct arena *arena)
{
    const struct json_node *subset, *address;
    struct slice host;
    uint16_t port;
    for (subset = json_node_items_at(object, "subsets"); subset; subset = subset->next) {
        if (!find_port(e, json_node_named(subset, "ports"), arena, &port))
            continue;
        for (address = json_node_items_at(subset, "addresses"); address; address = address->next)
            if (json_node_text(json_node_named(address, "ip"), arena, &host) == ST_OK)
                add_address(e, host, port);
    }
}

/* -- The service -- */

static const struct json_node *port_of(const struct kube_webhook_endpoints *e,
                                       const struct json_node *service)
{
    const struct json_node *port = json_node_items_at(service, "spec.ports");
    int64_t number;
    while (port && !(json_node_int(json_node_named(port, "port"), &number) &&
                     number == e->target->service_port))
        port = port->next;
    return port;
}

static void take_service(struct kube_webhook_endpoints *e, const struct json_node *service,
                         struct arena *arena)
{
    const struct json_node *type = json_node_path(service, "spec.type");
    const struct json_node *port = port_of(e, service);
    struct slice name = SLICE_EMPTY;
    if (json_node_is_text(type, "ExternalName")) {
        if (json_node_text(json_node_path(service, "spec.externalName"), arena, &name) == ST_OK &&
            name.len && name.len < sizeof(e->other_host))
            snprintf(e->other_host, sizeof(e->other_host), "%.*s", SLICE_ARGS(name));
        else
            fail(e, "service \"%.*s\" has no external name", e->target->service_name);
        return;
    }
    if (!port) {
        snprintf(e->reason, sizeof(e->reason), "no service port %u found for service \"%.*s\"",
                 (unsigned)e->target->service_port, SLICE_ARGS(e->target->service_name));
        return;
    }
    if (json_node_text(json_node_named(port, "name"), arena, &name) == ST_OK)
        snprintf(e->port_name, sizeof(e->port_name), "%.*s", SLICE_ARGS(name));
    e->prefers_v6 = json_node_is_text(json_node_items_at(service, "spec.ipFamilies"), "IPv6");
}

/* -- Reading -- */

static void take_object(struct kube_webhook_endpoints *e, struct slice value)
{
    struct arena arena;
    struct json_node *root;
    struct error error;
    arena_init(&arena, NULL, 0, OBJECT_ARENA_BYTES_MAX);
    /* What cannot be read is not an object. */
    if (json_tree_read(&arena, value, &root, &error) == ST_OK) {
        if (e->step == SERVICE)
            take_service(e, root, &arena);
        else if (e->step == ENDPOINTS)
            take_endpoints(e, root, &arena);
        else
            take_slice(e, root, &arena);
    }
    arena_fini(&arena);
}

static void on_range(struct engine_op *op)
{
    struct kube_webhook_endpoints *e = CONTAINER_OF(op, struct kube_webhook_endpoints, range.op);
    e->in_engine = false;
    schedule(e);
}

static void start_range(struct kube_webhook_endpoints *e)
{
    e->request.serializable = true;
    e->request.limit = PAGE_OBJECTS;
    arena_init(&e->page, NULL, 0, SIZE_MAX);
    e->range = (struct engine_range){
        .op = {.done = on_range, .arena = &e->page, .principal = ENGINE_SERVER}};
    e->in_engine = true;
    engine_range_start(e->options.shard, &e->range, &e->request);
}

static enum status add_byte(struct arena *arena, struct slice key, char byte, struct slice *ret_key)
{
    uint8_t *longer = arena_alloc(arena, key.len + 1);
    if (!longer)
        return ST_NOMEM;
    slice_copy(longer, key);
    longer[key.len] = (uint8_t)byte;
    *ret_key = slice_of(longer, key.len + 1);
    return ST_OK;
}

static enum status make_request(struct kube_webhook_endpoints *e)
{
    static const struct {
        const char *prefix;
        bool by_name;
    } rows[] = {
        [SERVICE] = {"/registry/services/specs/", true},
        [NAMED_SLICES] = {"/registry/endpointslices/", true},
        [ALL_SLICES] = {"/registry/endpointslices/", false},
        [ENDPOINTS] = {"/registry/services/endpoints/", true},
    };
    const struct kube_webhook_target *t = e->target;
    struct slice name = rows[e->step].by_name ? t->service_name : SLICE_EMPTY, key;
    TRY(kube_key_make(&e->arena, rows[e->step].prefix, t->service_namespace, name, &key));
    e->request = (struct pb_range_request){.key = key};
    if (e->step == ALL_SLICES)
        return kube_prefix_end(&e->arena, key, &e->request.range_end);
    if (e->step != NAMED_SLICES)
        return ST_OK;
    /* "name-…": '.' follows '-'. */
    TRY(add_byte(&e->arena, key, '-', &e->request.key));
    return add_byte(&e->arena, key, '.', &e->request.range_end);
}

static void begin_step(struct kube_webhook_endpoints *e, enum step step)
{
    STATE_MOVE(e->step, moves, step);
    if (make_request(e) == ST_OK) {
        start_range(e);
        return;
    }
    e->range = (struct engine_range){.op.status = ST_NOMEM};
    schedule(e);
}

static void begin(struct kube_webhook_endpoints *e)
{
    ++*e->options.under_way;
    arena_init(&e->arena, NULL, 0, OBJECT_ARENA_BYTES_MAX);
    e->objects = e->bytes = e->count = e->preferred = 0;
    *e->other_host = *e->reason = *e->port_name = 0;
    begin_step(e, SERVICE);
}

static void end_page(struct kube_webhook_endpoints *e)
{
    engine_range_close(&e->range);
    arena_fini(&e->page);
}

static void stop_reading(struct kube_webhook_endpoints *e)
{
    STATE_MOVE(e->step, moves, IDLE);
    end_page(e);
    arena_fini(&e->arena);
    --*e->options.under_way;
}

static void end(struct kube_webhook_endpoints *e)
{
    stop_reading(e);
    if (!e->count && !*e->other_host && !*e->reason)
        fail(e, "no endpoints available for service \"%.*s\"", e->target->service_name);
    /* What is missing may be created at any time. */
    e->until_ns = *e->reason ? 0 : clock_add(loop_now_ns(e->options.loop), KEPT_NS);
    deliver(e);
}

static bool is_past_limit(const struct kube_webhook_endpoints *e)
{
    return e->objects >= KUBE_WEBHOOK_SLICES_MAX || e->bytes >= KUBE_WEBHOOK_ENDPOINTS_BYTES_MAX ||
           e->count == KUBE_WEBHOOK_ENDPOINTS_MAX;
}

/* Examines what the operation has returned. True: there is more in the range. */
static bool take_some(struct kube_webhook_endpoints *e)
{
    struct slice field, last = SLICE_EMPTY;
    size_t bytes = 0;
    bool more = false;
    while (!is_past_limit(e) && bytes <= TURN_BYTES &&
           (more = engine_range_next(&e->range, &field))) {
        struct kube_kv kv = kube_kv_of(field);
        take_object(e, kv.value);
        bytes += kv.value.len;
        e->bytes += kv.value.len;
        e->objects++;
        last = kv.key;
    }
    more = (more || e->range.more) && last.len && !is_past_limit(e);
    if (!more)
        return false;
    /* The next operation begins behind the last key. */
    return add_byte(&e->arena, last, 0, &e->request.key) == ST_OK;
}

static void read_on(struct kube_webhook_endpoints *e)
{
    turn_work("reading the endpoints of a webhook", e->request.key);
    if (e->range.op.status != ST_OK) {
        fail(e, "%.*s", slice_from_text(status_text(e->range.op.status)));
        end(e);
        return;
    }
    size_t before = e->objects;
    bool more = take_some(e);
    end_page(e);
    if (e->step == SERVICE && e->objects == before)
        fail(e, "service \"%.*s\" not found", e->target->service_name);
    if (more)
        start_range(e);
    else if (*e->reason || *e->other_host || e->count || e->step == ENDPOINTS)
        end(e);
    else
        begin_step(e, e->step + 1);
}

static void on_turn_end(struct deferred *deferred)
{
    struct kube_webhook_endpoints *e =
        CONTAINER_OF(deferred, struct kube_webhook_endpoints, turn_end);
    if (e->in_engine)
        return;
    if (e->closed) {
        stop_reading(e);
        free(e);
    } else if (e->step != IDLE) {
        read_on(e);
    } else if (!list_empty(&e->searches)) {
        if (loop_now_ns(e->options.loop) < e->until_ns)
            deliver(e);
        else
            begin(e);
    }
}

/* -- Life -- */

struct kube_webhook_endpoints *kube_webhook_endpoints_new(
    const struct kube_webhook_endpoints_options *options, const struct kube_webhook_target *target)
{
    struct kube_webhook_endpoints *e = xcalloc(1, sizeof(*e));
    e->options = *options;
    e->target = target;
    e->source = (struct address_source){start_search, e};
    e->turn_end.fn = on_turn_end;
    list_init(&e->searches);
    return e;
}

void kube_webhook_endpoints_close(struct kube_webhook_endpoints *e)
{
    if (!e)
        return;
    assert(list_empty(&e->searches));
    if (e->step == IDLE) {
        loop_defer_cancel(&e->turn_end);
        free(e);
        return;
    }
    e->closed = true;
    if (e->in_engine)
        engine_give_up(&e->range.op);
}

const struct address_source *kube_webhook_endpoints_source(const struct kube_webhook_endpoints *e)
{
    return &e->source;
}
