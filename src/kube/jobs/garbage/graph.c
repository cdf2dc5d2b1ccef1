#include "kube/jobs/garbage/graph.h"

#include "base/clock.h"
#include "base/xalloc.h"

#include <stdlib.h>

#define TO(state) (1u << GARBAGE_##state)

static const unsigned moves[] = {
    [GARBAGE_NAMED] = TO(PRESENT) | TO(FOREGROUND) | TO(ORPHANING),
    [GARBAGE_PRESENT] = TO(NAMED) | TO(FOREGROUND) | TO(ORPHANING),
    [GARBAGE_FOREGROUND] = TO(NAMED) | TO(PRESENT) | TO(ORPHANING),
    [GARBAGE_ORPHANING] = TO(NAMED) | TO(PRESENT) | TO(FOREGROUND),
};

/* Two allocations, each with 8 bytes and rounded up to 16, and a link of the table. */
_Static_assert(sizeof(struct garbage_node) + 48 <= GARBAGE_NODE_BYTES, "as documented");
_Static_assert(sizeof(struct garbage_ref) + 16 <= GARBAGE_REF_BYTES, "as documented");

static bool waits(const struct garbage_node *node)
{
    return node->state == GARBAGE_FOREGROUND || node->state == GARBAGE_ORPHANING;
}

/* -- Hashes -- */

static uint64_t hash_of(const void *ctx, const struct chain_link *link)
{
    (void)ctx;
    return CONTAINER_OF(link, const struct garbage_node, in_graph)->uid;
}

uint32_t garbage_place(const struct garbage_graph *graph, const struct garbage_owner *owner,
                       struct slice namespace)
{
    const struct slice parts[] = {owner->api_version, owner->kind, owner->name, namespace};
    uint64_t all = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        all = (all << 7 | all >> 57) ^ hash_map_hash(&graph->hashes, parts[i]);
    uint32_t place = (uint32_t)(all ^ all >> 32);
    /* 0 stands for a place that is not known. */
    return place ? place : 1;
}

/* -- Nodes -- */

static struct garbage_node *find_hash(const struct garbage_graph *graph, uint64_t uid)
{
    struct chain_link *link = chain_table_chain(&graph->nodes, uid);
    for (; link; link = link->next) {
        struct garbage_node *node = CONTAINER_OF(link, struct garbage_node, in_graph);
        if (node->uid == uid)
            return node;
    }
    return NULL;
}

struct garbage_node *garbage_graph_find(const struct garbage_graph *graph, struct slice uid)
{
    return find_hash(graph, hash_map_hash(&graph->hashes, uid));
}

static struct garbage_node *get_node(struct garbage_graph *graph, struct slice uid)
{
    uint64_t key = hash_map_hash(&graph->hashes, uid);
    struct garbage_node *node = find_hash(graph, key);
    if (node)
        return node;
    node = xcalloc(1, sizeof(*node));
    node->uid = key;
    list_init(&node->dependents);
    list_init(&node->in_queue);
    list_init(&node->in_expanding);
    chain_table_add(&graph->nodes, &node->in_graph, hash_of, NULL);
    return node;
}

static void set_key(struct garbage_node *node, struct slice key)
{
    if (slice_equal(node->key, key))
        return;
    free((void *)(uintptr_t)node->key.ptr);
    node->key = SLICE_EMPTY;
    if (!key.len)
        return;
    uint8_t *copy = xmalloc(key.len);
    slice_copy(copy, key);
    node->key = slice_of(copy, key.len);
}

static void free_if_useless(struct garbage_graph *graph, struct garbage_node *node)
{
    if (!node->examined && !node->ref_count && !node->dependent_count && !waits(node)) {
        assert(!node->examined && !node->ref_count && list_empty(&node->dependents));
        list_remove(&node->in_queue);
        list_remove(&node->in_expanding);
        set_key(node, SLICE_EMPTY);
        if (graph)
            chain_table_remove(&graph->nodes, &node->in_graph, hash_of, NULL);
        free(node);
    }
}

/* An object that does not exist, or whose key is not known, is not examined. */
static void queue(struct garbage_graph *graph, struct garbage_node *node)
{
    /* The result of the examination may be out of date when it arrives. */
    if (node->examined)
        node->again = true;
    if (node->examined || !node->key.len)
        return;
    list_remove(&node->in_queue);
    list_push_back(&graph->queue, &node->in_queue);
}

static void expand(struct garbage_graph *graph, struct garbage_node *node)
{
    node->unexpanded = node->dependent_count;
    if (node->unexpanded && list_empty(&node->in_expanding))
        list_push_back(&graph->expanding, &node->in_expanding);
}

static void move(struct garbage_graph *graph, struct garbage_node *node, enum garbage_state next)
{
    bool was = node->state == GARBAGE_FOREGROUND, is = next == GARBAGE_FOREGROUND;
    if (node->state == next)
        return;
    assert(moves[node->state] & 1u << next);
    node->state = next;
    node->missing = next == GARBAGE_NAMED;
    for (size_t i = 0; was != is && i < node->ref_count; i++)
        node->refs[i].owner->waiting += is ? 1 : UINT32_MAX;
    /* The object itself may already have no dependents left to wait for. */
    if (waits(node))
        queue(graph, node);
    /* Its dependents are examined: the owner is gone, or they are to be deleted or orphaned. */
    if (next != GARBAGE_PRESENT)
        expand(graph, node);
}

/* -- References -- */

/* The dependent that was to find out whether the owner exists is gone: another one is examined. */
static void probe_again(struct garbage_graph *graph, struct garbage_node *owner)
{
    bool unknown = !owner->missing && !owner->place;
    if (!owner->probed || !unknown || !owner->dependent_count)
        return;
    struct garbage_ref *ref = LIST_ENTRY(owner->dependents.next, struct garbage_ref, in_owner);
    queue(graph, ref->dependent);
}

static void unlink_ref(struct garbage_graph *graph, struct garbage_ref *ref)
{
    struct garbage_node *owner = ref->owner;
    list_remove(&ref->in_owner);
    owner->dependent_count--;
    owner->blocking -= ref->blocks;
    owner->waiting -= ref->dependent->state == GARBAGE_FOREGROUND;
    graph->ref_count--;
    if (owner->unexpanded > owner->dependent_count)
        owner->unexpanded = owner->dependent_count;
    if (!owner->unexpanded)
        list_remove(&owner->in_expanding);
    /* An owner that waits for its dependents may now have none left. */
    if (owner->state == GARBAGE_FOREGROUND
            ? !owner->blocking
            : owner->state == GARBAGE_ORPHANING && !owner->dependent_count)
        queue(graph, owner);
    probe_again(graph, owner);
}

static void drop_refs(struct garbage_graph *graph, struct garbage_node *node,
                      struct garbage_ref *refs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct garbage_node *owner = refs[i].owner;
        unlink_ref(graph, &refs[i]);
        if (owner != node)
            free_if_useless(graph, owner);
    }
    free(refs);
}

/* Whether the dependent of a new reference must be examined. Of the dependents of an owner of which
 * nothing is known, one is enough, unless they name different places. */
static bool is_doubtful(struct garbage_ref *ref)
{
    struct garbage_node *owner = ref->owner;
    if (waits(owner) || owner->missing)
        return true;
    if (owner->place)
        return owner->place != ref->place;
    bool first = owner->probed != ref->place;
    owner->probed = ref->place;
    return first;
}

static bool has_refs(const struct garbage_graph *graph, const struct garbage_node *node,
                     const struct garbage_facts *facts)
{
    bool same = node->ref_count == facts->owner_count;
    for (size_t i = 0; same && i < facts->owner_count; i++) {
        const struct garbage_owner *owner = &facts->owners[i];
        const struct garbage_ref *ref = &node->refs[i];
        same = ref->owner->uid == hash_map_hash(&graph->hashes, owner->uid) &&
               ref->blocks == owner->blocks &&
               ref->place == garbage_place(graph, owner, facts->namespace);
    }
    return same;
}

static void set_refs(struct garbage_graph *graph, struct garbage_node *node,
                     const struct garbage_facts *facts)
{
    struct garbage_ref *old = node->refs;
    size_t old_count = node->ref_count, count = facts->owner_count;
    if (has_refs(graph, node, facts))
        return;
    node->refs = count ? xcalloc(count, sizeof(*node->refs)) : NULL;
    node->ref_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct garbage_ref *ref = &node->refs[i];
        *ref = (struct garbage_ref){
            .owner = get_node(graph, facts->owners[i].uid),
            .dependent = node,
            .place = garbage_place(graph, &facts->owners[i], facts->namespace),
            .blocks = facts->owners[i].blocks,
        };
        struct garbage_node *owner = ref->owner;
        list_push_back(&owner->dependents, &ref->in_owner);
        owner->dependent_count++;
        owner->blocking += ref->blocks;
        owner->waiting += ref->dependent->state == GARBAGE_FOREGROUND;
        graph->ref_count++;
        if (is_doubtful(ref))
            queue(graph, node);
    }
    /* Last, because an owner that the object keeps must not be freed in between. */
    drop_refs(graph, node, old, old_count);
}

/* -- Changes of objects -- */

static enum garbage_state state_of(const struct garbage_facts *facts)
{
    if (!facts->deleting || (!facts->orphans && !facts->foreground))
        return GARBAGE_PRESENT;
    return facts->orphans ? GARBAGE_ORPHANING : GARBAGE_FOREGROUND;
}

void garbage_graph_put(struct garbage_graph *graph, struct slice key, int64_t revision,
                       const struct garbage_facts *facts)
{
    struct garbage_node *node = garbage_graph_find(graph, facts->uid);
    enum garbage_state state = state_of(facts);
    bool needed = facts->owner_count || state != GARBAGE_PRESENT;
    /* Most objects have no owner and own nothing, and take no memory here. An event that is older
     * than what a read has shown is ignored. */
    if (key.len > GARBAGE_KEY_BYTES_MAX || (!node && !needed) ||
        (node && node->revision > revision))
        return;
    if (!node)
        node = get_node(graph, facts->uid);
    node->revision = revision;
    set_key(node, key);
    set_refs(graph, node, facts);
    move(graph, node, state);
    free_if_useless(graph, node);
}

void garbage_graph_delete(struct garbage_graph *graph, struct slice uid, int64_t revision)
{
    static const struct garbage_facts none = {0};
    struct garbage_node *node = garbage_graph_find(graph, uid);
    if (!node || node->revision > revision)
        return;
    node->revision = revision;
    set_refs(graph, node, &none);
    list_remove(&node->in_queue);
    set_key(node, SLICE_EMPTY);
    move(graph, node, GARBAGE_NAMED);
    node->missing = true;
    node->place = 0;
    free_if_useless(graph, node);
}

bool garbage_graph_expand(struct garbage_graph *graph, size_t budget)
{
    while (budget-- && !list_empty(&graph->expanding)) {
        struct garbage_node *owner =
            LIST_ENTRY(graph->expanding.next, struct garbage_node, in_expanding);
        struct list *link = list_pop_front(&owner->dependents);
        struct garbage_ref *ref = LIST_ENTRY(link, struct garbage_ref, in_owner);
        /* The list rotates, so that an owner with a million dependents is expanded in many steps
         * without a cursor. */
        list_push_back(&owner->dependents, link);
        if (owner->state != GARBAGE_PRESENT || ref->place != owner->place)
            queue(graph, ref->dependent);
        if (!--owner->unexpanded)
            list_remove(&owner->in_expanding);
    }
    return !list_empty(&graph->expanding);
}

/* -- Examining -- */

struct garbage_node *garbage_graph_take(struct garbage_graph *graph)
{
    struct list *link = list_pop_front(&graph->queue);
    if (!link)
        return NULL;
    struct garbage_node *node = LIST_ENTRY(link, struct garbage_node, in_queue);
    node->examined = true;
    node->again = false;
    return node;
}

void garbage_graph_found(struct garbage_graph *graph, struct slice uid, uint32_t place,
                         int64_t revision)
{
    struct garbage_node *owner = garbage_graph_find(graph, uid);
    if (!owner || owner->revision > revision || owner->place)
        return;
    owner->place = place;
    if (owner->state == GARBAGE_NAMED)
        move(graph, owner, GARBAGE_PRESENT);
    expand(graph, owner); /* those that name another place */
}

void garbage_graph_missing(struct garbage_graph *graph, struct slice uid)
{
    struct garbage_node *owner = garbage_graph_find(graph, uid);
    if (!owner || owner->state != GARBAGE_NAMED || owner->missing)
        return;
    owner->missing = true;
    expand(graph, owner);
}

void garbage_graph_done(struct garbage_graph *graph, struct garbage_node *node,
                        enum garbage_result result, int64_t now_ns)
{
    assert(node->examined);
    node->examined = false;
    /* Something has changed while the object was examined. */
    if (node->again || result == GARBAGE_AGAIN) {
        queue(graph, node);
    } else if (result == GARBAGE_FAILED && node->key.len) {
        node->retry_ns = clock_add(now_ns, GARBAGE_RETRY_S * NS_PER_S);
        list_push_back(&graph->parked, &node->in_queue);
    }
    free_if_useless(graph, node);
}

int64_t garbage_graph_unpark(struct garbage_graph *graph, int64_t now_ns)
{
    while (!list_empty(&graph->parked)) {
        struct garbage_node *node = LIST_ENTRY(graph->parked.next, struct garbage_node, in_queue);
        if (node->retry_ns > now_ns)
            return node->retry_ns;
        queue(graph, node);
    }
    return CLOCK_NEVER;
}

/* -- Life -- */

void garbage_graph_init(struct garbage_graph *graph, uint64_t seed)
{
    *graph = (struct garbage_graph){0};
    hash_map_init(&graph->hashes, NULL, seed);
    list_init(&graph->queue);
    list_init(&graph->parked);
    list_init(&graph->expanding);
}

bool garbage_graph_drain(struct garbage_graph *graph, size_t budget)
{
    uint32_t at = graph->drained;
    struct chain_link *link = NULL;
    while (budget-- && (link = chain_table_drain(&graph->nodes, &at))) {
        struct garbage_node *node = CONTAINER_OF(link, struct garbage_node, in_graph);
        free(node->refs);
        set_key(node, SLICE_EMPTY);
        free(node);
    }
    graph->drained = at;
    if (graph->nodes.count)
        return false;
    chain_table_fini(&graph->nodes);
    return true;
}

static void check_node(const struct garbage_graph *graph, const struct garbage_node *node)
{
    size_t blocking = 0, waiting = 0, dependents = 0;
    const struct garbage_ref *ref;
    LIST_FOREACH (ref, &node->dependents, in_owner) {
        assert(ref->owner == node && ref->dependent->ref_count);
        blocking += ref->blocks;
        waiting += ref->dependent->state == GARBAGE_FOREGROUND;
        dependents++;
    }
    assert(dependents == node->dependent_count);
    assert(blocking == node->blocking && waiting == node->waiting);
    assert(node->unexpanded <= node->dependent_count);
    assert(list_empty(&node->in_expanding) == !node->unexpanded);
    assert(list_empty(&node->in_queue) || (node->key.len && !node->examined));
    assert(node->ref_count || dependents || waits(node) || node->examined);
    assert(!waits(node) || node->key.len);
    assert(find_hash(graph, node->uid) == node);
}

void garbage_graph_check(const struct garbage_graph *graph)
{
    size_t refs = 0;
    CHAIN_FOREACH(link, &graph->nodes)
    {
        const struct garbage_node *node = CONTAINER_OF(link, const struct garbage_node, in_graph);
        check_node(graph, node);
        refs += node->ref_count;
    }
    assert(refs == graph->ref_count);
}
