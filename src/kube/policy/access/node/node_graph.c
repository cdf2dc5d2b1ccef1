#include "kube/policy/access/node/node_graph.h"

#include "base/xalloc.h"

#include <stdlib.h>

/* An object or a node, found by its kind, namespace and name, which follow the struct that embeds
 * it. It exists as long as it was put, or something refers to it. */
struct thing {
    struct chain_link in_things;
    uint32_t refs;
    uint8_t kind, namespace_len;
    uint16_t name_len;
};

struct plain {
    struct thing thing;
    uint8_t text[];
};

struct claim {
    struct thing thing;
    struct list uses, volumes;
    uint32_t volume_count;
    uint8_t text[];
};

/* A node uses an object. */
struct use {
    struct chain_link in_uses;
    struct thing *object, *node; /* references */
    uint32_t count;              /* entries of pods, and volumes of claims that the node uses */
};

struct claim_use {
    struct use use;
    struct list in_claim;
};

/* A pod, an attachment or a slice. */
struct placed {
    struct thing thing;
    struct thing *node; /* a reference */
    uint32_t count;
    struct use *uses[]; /* each counted once; the text follows */
};

struct volume {
    struct thing thing;
    struct claim *claim; /* a reference */
    struct list in_claim;
    uint32_t count;
    struct thing *secrets[]; /* references; the text follows */
};

_Static_assert(sizeof(struct placed) + 32 <= NODE_GRAPH_POD_BYTES, "as documented");
_Static_assert(sizeof(struct use) <= NODE_GRAPH_USE_BYTES, "as documented");
_Static_assert(sizeof(struct claim_use) <= 2 * NODE_GRAPH_USE_BYTES, "as documented");

static bool is_placed(enum node_kind kind)
{
    return kind == NODE_POD || kind == NODE_ATTACHMENT || kind == NODE_SLICE;
}

static struct placed *placed_of(struct thing *thing)
{
    assert(is_placed(thing->kind));
    return CONTAINER_OF(thing, struct placed, thing);
}

static struct claim *claim_of(struct thing *thing)
{
    assert(thing->kind == NODE_CLAIM);
    return CONTAINER_OF(thing, struct claim, thing);
}

static struct volume *volume_of(struct thing *thing)
{
    assert(thing->kind == NODE_VOLUME);
    return CONTAINER_OF(thing, struct volume, thing);
}

/* -- Names -- */

static uint8_t *text_of(struct thing *thing)
{
    if (is_placed(thing->kind))
        return (uint8_t *)(placed_of(thing)->uses + placed_of(thing)->count);
    if (thing->kind == NODE_VOLUME)
        return (uint8_t *)(volume_of(thing)->secrets + volume_of(thing)->count);
    return thing->kind == NODE_CLAIM ? claim_of(thing)->text
                                     : CONTAINER_OF(thing, struct plain, thing)->text;
}

static struct node_object object_of(const struct thing *thing)
{
    const uint8_t *text = text_of((struct thing *)(uintptr_t)thing);
    return (struct node_object){
        .kind = thing->kind,
        .namespace = slice_of(text, thing->namespace_len),
        .name = slice_of(text + thing->namespace_len, thing->name_len),
    };
}

/* Whether there can be an object of this name. */
static bool is_valid(const struct node_object *object)
{
    return object->name.len && object->name.len <= NODE_NAME_BYTES_MAX &&
           object->namespace.len <= UINT8_MAX;
}

static uint64_t hash_object(const struct node_graph *graph, const struct node_object *object)
{
    uint64_t namespace = hash_map_hash(&graph->hashes, object->namespace);
    return ((namespace << 7 | namespace >> 57) + (uint64_t)object->kind * 0x9e3779b97f4a7c15u) ^
           hash_map_hash(&graph->hashes, object->name);
}

static uint64_t hash_thing(const void *ctx, const struct chain_link *link)
{
    const struct node_object object = object_of(CONTAINER_OF(link, struct thing, in_things));
    return hash_object(ctx, &object);
}

static bool is_same_object(const struct node_object *a, const struct node_object *b)
{
    return a->kind == b->kind && slice_equal(a->namespace, b->namespace) &&
           slice_equal(a->name, b->name);
}

static struct thing *find(const struct node_graph *graph, const struct node_object *object)
{
    struct chain_link *link = chain_table_chain(&graph->things, hash_object(graph, object));
    for (; link; link = link->next) {
        struct thing *thing = CONTAINER_OF(link, struct thing, in_things);
        const struct node_object other = object_of(thing);
        if (is_same_object(object, &other))
            return thing;
    }
    return NULL;
}

static struct node_object node_named(struct slice name)
{
    return (struct node_object){.kind = NODE_NODE, .name = name};
}

/* -- Things -- */

/* What malloc needs for it. */
static size_t cost(size_t bytes)
{
    return (bytes + 8 + 15) / 16 * 16;
}

/* The size of a thing with its text. `count` entries of an array. */
static size_t thing_bytes(const struct node_object *object, size_t count)
{
    size_t text = object->namespace.len + object->name.len;
    if (is_placed(object->kind))
        return sizeof(struct placed) + count * sizeof(struct use *) + text;
    if (object->kind == NODE_VOLUME)
        return sizeof(struct volume) + count * sizeof(struct thing *) + text;
    return (object->kind == NODE_CLAIM ? sizeof(struct claim) : sizeof(struct plain)) + text;
}

static size_t count_of(struct thing *thing)
{
    if (is_placed(thing->kind))
        return placed_of(thing)->count;
    return thing->kind == NODE_VOLUME ? volume_of(thing)->count : 0;
}

static struct thing *add_thing(struct node_graph *graph, const struct node_object *object,
                               size_t count)
{
    size_t bytes = thing_bytes(object, count);
    struct thing *thing = xcalloc(1, bytes);
    thing->kind = (uint8_t)object->kind;
    thing->namespace_len = (uint8_t)object->namespace.len;
    thing->name_len = (uint16_t)object->name.len;
    if (is_placed(object->kind))
        placed_of(thing)->count = (uint32_t)count;
    else if (object->kind == NODE_VOLUME)
        volume_of(thing)->count = (uint32_t)count;
    uint8_t *text = text_of(thing);
    slice_copy(text, object->namespace);
    slice_copy(text + object->namespace.len, object->name);
    graph->bytes += cost(bytes);
    graph->pods += object->kind == NODE_POD;
    chain_table_add(&graph->things, &thing->in_things, hash_thing, graph);
    return thing;
}

/* Something that is mentioned. The caller refers to it. */
static struct thing *get_thing(struct node_graph *graph, const struct node_object *object)
{
    struct thing *thing = find(graph, object);
    if (thing)
        return thing;
    thing = add_thing(graph, object, 0);
    if (object->kind == NODE_CLAIM) {
        list_init(&claim_of(thing)->uses);
        list_init(&claim_of(thing)->volumes);
    }
    return thing;
}

static void unref(struct node_graph *graph, struct thing *thing)
{
    assert(thing->refs);
    if (--thing->refs)
        return;
    const struct node_object object = object_of(thing);
    graph->bytes -= cost(thing_bytes(&object, count_of(thing)));
    graph->pods -= thing->kind == NODE_POD;
    chain_table_remove(&graph->things, &thing->in_things, hash_thing, graph);
    free(thing);
}

/* -- Uses -- */

static uint64_t hash_pair(const struct thing *object, const struct thing *node)
{
    uint64_t all = (uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15u +
                   (uint64_t)(uintptr_t)node * 0xc2b2ae3d27d4eb4fu;
    all = (all ^ all >> 29) * 0xbf58476d1ce4e5b9u;
    return all ^ all >> 32;
}

static uint64_t hash_use(const void *ctx, const struct chain_link *link)
{
    const struct use *use = CONTAINER_OF(link, const struct use, in_uses);
    (void)ctx;
    return hash_pair(use->object, use->node);
}

static struct use *find_use(const struct node_graph *graph, const struct thing *object,
                            const struct thing *node)
{
    struct chain_link *link = chain_table_chain(&graph->uses, hash_pair(object, node));
    for (; link; link = link->next) {
        struct use *use = CONTAINER_OF(link, struct use, in_uses);
        if (use->object == object && use->node == node)
            return use;
    }
    return NULL;
}

static size_t use_bytes(const struct thing *object)
{
    return object->kind == NODE_CLAIM ? sizeof(struct claim_use) : sizeof(struct use);
}

static struct use *add_use(struct node_graph *graph, struct thing *object, struct thing *node);
static void drop_use(struct node_graph *graph, struct use *use);

static void add_volume_uses(struct node_graph *graph, struct volume *volume, struct thing *node)
{
    (void)add_use(graph, &volume->thing, node);
    for (size_t i = 0; i < volume->count; i++)
        (void)add_use(graph, volume->secrets[i], node);
}

static void drop_volume_uses(struct node_graph *graph, struct volume *volume, struct thing *node)
{
    for (size_t i = 0; i < volume->count; i++)
        drop_use(graph, find_use(graph, volume->secrets[i], node));
    drop_use(graph, find_use(graph, &volume->thing, node));
}

/* Volumes and secrets are not claims, so neither of the two goes any deeper. */
static struct use *add_use(struct node_graph *graph, struct thing *object, struct thing *node)
{
    struct use *use = find_use(graph, object, node);
    bool of_claim = object->kind == NODE_CLAIM;
    if (use) {
        use->count++;
        return use;
    }
    use = slab_alloc(of_claim ? &graph->claim_use_slab : &graph->use_slab);
    *use = (struct use){.object = object, .node = node, .count = 1};
    object->refs++;
    node->refs++;
    graph->bytes += use_bytes(object);
    chain_table_add(&graph->uses, &use->in_uses, hash_use, NULL);
    if (!of_claim)
        return use;
    struct claim *claim = claim_of(object);
    struct volume *volume;
    list_push_back(&claim->uses, &CONTAINER_OF(use, struct claim_use, use)->in_claim);
    LIST_FOREACH (volume, &claim->volumes, in_claim)
        add_volume_uses(graph, volume, node);
    return use;
}

static void drop_use(struct node_graph *graph, struct use *use)
{
    assert(use && use->count);
    if (--use->count)
        return;
    struct thing *object = use->object, *node = use->node;
    if (object->kind == NODE_CLAIM) {
        struct volume *volume;
        list_remove(&CONTAINER_OF(use, struct claim_use, use)->in_claim);
        LIST_FOREACH (volume, &claim_of(object)->volumes, in_claim)
            drop_volume_uses(graph, volume, node);
    }
    chain_table_remove(&graph->uses, &use->in_uses, hash_use, NULL);
    graph->bytes -= use_bytes(object);
    slab_free(use);
    unref(graph, object);
    unref(graph, node);
}

/* -- What is assigned to a node -- */

static void remove_placed(struct node_graph *graph, struct placed *placed)
{
    for (size_t i = 0; i < placed->count; i++)
        drop_use(graph, placed->uses[i]);
    unref(graph, placed->node);
    unref(graph, &placed->thing);
}

/* Most writes of a pod change nothing but its status. */
static bool is_placed_same(const struct placed *placed, struct slice node,
                           const struct node_object *named, size_t count)
{
    size_t at = 0;
    const struct node_object on = object_of(placed->node);
    if (!slice_equal(on.name, node))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!is_valid(&named[i]))
            continue;
        if (at == placed->count)
            return false;
        const struct node_object was = object_of(placed->uses[at++]->object);
        if (!is_same_object(&was, &named[i]))
            return false;
    }
    return at == placed->count;
}

static bool is_full(struct node_graph *graph)
{
    bool full = graph->bytes >= graph->bytes_max;
    graph->left_out += full;
    return full;
}

bool node_graph_put(struct node_graph *graph, struct node_object object, struct slice node,
                    const struct node_object *named, size_t count)
{
    const struct node_object on = node_named(node);
    struct thing *old = find(graph, &object);
    size_t valid = 0;
    assert(is_placed(object.kind));
    if (old && is_placed_same(placed_of(old), node, named, count))
        return true;
    if (old)
        remove_placed(graph, placed_of(old));
    if (!is_valid(&object) || !is_valid(&on))
        return true;
    if (is_full(graph))
        return false;
    for (size_t i = 0; i < count; i++)
        valid += is_valid(&named[i]);
    struct placed *placed = placed_of(add_thing(graph, &object, valid));
    placed->thing.refs = 1;
    placed->node = get_thing(graph, &on);
    placed->node->refs++;
    valid = 0;
    for (size_t i = 0; i < count; i++)
        if (is_valid(&named[i]))
            placed->uses[valid++] = add_use(graph, get_thing(graph, &named[i]), placed->node);
    return true;
}

/* -- Volumes -- */

static void remove_volume(struct node_graph *graph, struct volume *volume)
{
    struct claim_use *of;
    list_remove(&volume->in_claim);
    volume->claim->volume_count--;
    LIST_FOREACH (of, &volume->claim->uses, in_claim)
        drop_volume_uses(graph, volume, of->use.node);
    for (size_t i = 0; i < volume->count; i++)
        unref(graph, volume->secrets[i]);
    unref(graph, &volume->claim->thing);
    unref(graph, &volume->thing);
}

static bool is_volume_same(const struct volume *volume, const struct node_object *claim,
                           const struct node_object *secrets, size_t count)
{
    size_t at = 0;
    const struct node_object of = object_of(&volume->claim->thing);
    if (!is_same_object(&of, claim))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!is_valid(&secrets[i]))
            continue;
        if (at == volume->count)
            return false;
        const struct node_object was = object_of(volume->secrets[at++]);
        if (!is_same_object(&was, &secrets[i]))
            return false;
    }
    return at == volume->count;
}

static bool has_room(struct node_graph *graph, const struct node_object *claim)
{
    struct thing *thing = find(graph, claim);
    if (is_full(graph))
        return false;
    bool room = !thing || claim_of(thing)->volume_count < NODE_CLAIM_VOLUMES_MAX;
    graph->left_out += !room;
    return room;
}

bool node_graph_put_volume(struct node_graph *graph, struct slice name, struct node_object claim,
                           const struct node_object *secrets, size_t count)
{
    const struct node_object object = {.kind = NODE_VOLUME, .name = name};
    struct thing *old = find(graph, &object);
    size_t valid = 0;
    claim.kind = NODE_CLAIM;
    if (old && is_volume_same(volume_of(old), &claim, secrets, count))
        return true;
    if (old)
        remove_volume(graph, volume_of(old));
    if (!is_valid(&object) || !is_valid(&claim))
        return true;
    if (!has_room(graph, &claim))
        return false;
    for (size_t i = 0; i < count; i++)
        valid += is_valid(&secrets[i]);
    struct volume *volume = volume_of(add_thing(graph, &object, valid));
    volume->thing.refs = 1;
    volume->claim = claim_of(get_thing(graph, &claim));
    volume->claim->thing.refs++;
    volume->claim->volume_count++;
    list_push_back(&volume->claim->volumes, &volume->in_claim);
    valid = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_valid(&secrets[i]))
            continue;
        volume->secrets[valid] = get_thing(graph, &secrets[i]);
        volume->secrets[valid++]->refs++;
    }
    struct claim_use *of;
    LIST_FOREACH (of, &volume->claim->uses, in_claim)
        add_volume_uses(graph, volume, of->use.node);
    return true;
}

void node_graph_remove(struct node_graph *graph, struct node_object object)
{
    struct thing *thing = find(graph, &object);
    if (thing && is_placed(object.kind))
        remove_placed(graph, placed_of(thing));
    else if (thing && object.kind == NODE_VOLUME)
        remove_volume(graph, volume_of(thing));
}

/* -- The question -- */

bool node_graph_reaches(const struct node_graph *graph, struct slice node,
                        struct node_object object)
{
    const struct node_object on = node_named(node);
    struct thing *from = find(graph, &object), *to = find(graph, &on);
    if (!from || !to)
        return false;
    return is_placed(object.kind) ? placed_of(from)->node == to : find_use(graph, from, to) != NULL;
}

/* -- Life -- */

void node_graph_init(struct node_graph *graph, uint64_t seed, size_t bytes_max)
{
    *graph = (struct node_graph){.bytes_max = bytes_max};
    hash_map_init(&graph->hashes, NULL, seed);
    slab_init(&graph->use_slab, sizeof(struct use));
    slab_init(&graph->claim_use_slab, sizeof(struct claim_use));
}

bool node_graph_drain(struct node_graph *graph, size_t budget)
{
    struct chain_link *link;
    if (!graph->use_slab.object_bytes)
        return true;
    for (; budget; budget--) {
        link = chain_table_drain(&graph->uses, &graph->drained_uses);
        if (!link)
            break;
        slab_free(CONTAINER_OF(link, struct use, in_uses));
    }
    for (; budget; budget--) {
        link = chain_table_drain(&graph->things, &graph->drained);
        if (!link)
            break;
        free(CONTAINER_OF(link, struct thing, in_things));
    }
    if (!budget)
        return false;
    chain_table_fini(&graph->uses);
    chain_table_fini(&graph->things);
    slab_fini(&graph->use_slab);
    slab_fini(&graph->claim_use_slab);
    hash_map_fini(&graph->hashes);
    *graph = (struct node_graph){0};
    return true;
}

/* -- For tests -- */

/* How often a node uses an object, as follows from this pod or volume. */
static uint32_t count_uses(const struct node_graph *graph, struct thing *thing,
                           const struct use *use)
{
    uint32_t count = 0;
    if (is_placed(thing->kind)) {
        for (size_t i = 0; i < placed_of(thing)->count; i++)
            count += placed_of(thing)->uses[i] == use;
        return count;
    }
    if (thing->kind != NODE_VOLUME || !find_use(graph, &volume_of(thing)->claim->thing, use->node))
        return 0;
    for (size_t i = 0; i < volume_of(thing)->count; i++)
        count += volume_of(thing)->secrets[i] == use->object;
    return count + (use->object == thing);
}

/* References to this thing that come from another one. */
static uint32_t count_refs(struct thing *from, const struct thing *to)
{
    uint32_t count = from == to && (is_placed(to->kind) || to->kind == NODE_VOLUME);
    if (is_placed(from->kind))
        return count + (placed_of(from)->node == to);
    if (from->kind != NODE_VOLUME)
        return count;
    for (size_t i = 0; i < volume_of(from)->count; i++)
        count += volume_of(from)->secrets[i] == to;
    return count + (&volume_of(from)->claim->thing == to);
}

void node_graph_check(const struct node_graph *graph)
{
    size_t bytes = 0, pods = 0;
    CHAIN_FOREACH(link, &graph->uses)
    {
        struct use *use = CONTAINER_OF(link, struct use, in_uses);
        uint32_t count = 0;
        for (uint32_t at = 0; at < chain_table_buckets(&graph->things); at++)
            for (struct chain_link *other = chain_table_bucket(&graph->things, at); other;
                 other = other->next)
                count += count_uses(graph, CONTAINER_OF(other, struct thing, in_things), use);
        assert(use->count == count && count);
        bytes += use_bytes(use->object);
    }
    CHAIN_FOREACH(link, &graph->things)
    {
        struct thing *thing = CONTAINER_OF(link, struct thing, in_things);
        const struct node_object object = object_of(thing);
        uint32_t refs = 0;
        for (uint32_t at = 0; at < chain_table_buckets(&graph->things); at++)
            for (struct chain_link *other = chain_table_bucket(&graph->things, at); other;
                 other = other->next)
                refs += count_refs(CONTAINER_OF(other, struct thing, in_things), thing);
        for (uint32_t at = 0; at < chain_table_buckets(&graph->uses); at++)
            for (struct chain_link *other = chain_table_bucket(&graph->uses, at); other;
                 other = other->next) {
                const struct use *use = CONTAINER_OF(other, struct use, in_uses);
                refs += (uint32_t)(use->object == thing) + (uint32_t)(use->node == thing);
            }
        assert(thing->refs == refs && refs);
        assert(find(graph, &object) == thing);
        bytes += cost(thing_bytes(&object, count_of(thing)));
        pods += object.kind == NODE_POD;
    }
    assert(bytes == graph->bytes && pods == graph->pods);
}
