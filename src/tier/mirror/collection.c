#include "base/metric/counter.h"
#include "client/driver/driver.h"
#include "engine/local/mirror/mirror_store.h"
#include "tier/mirror/collection_private.h"

#include <stdio.h>
#include <stdlib.h>

/* -- Life -- */

static struct slice put(char **at, struct slice text)
{
    char *copy = *at;
    slice_copy(copy, text);
    copy[text.len] = 0;
    *at += text.len + 1;
    return slice_of(copy, text.len);
}

enum status collection_init(struct tier_collection *c, const struct tier_name *name)
{
    *c = (struct tier_collection){.phase = TIER_STARTING};
    char *at = c->texts = malloc(name->group.len + name->version.len + name->resource.len + 3);
    if (!at)
        return ST_NOMEM;
    c->name = (struct tier_name){
        .group = put(&at, name->group),
        .version = put(&at, name->version),
        .resource = put(&at, name->resource),
        .encoding = name->encoding,
    };
    lock_init(&c->lock);
    list_init(&c->uses);
    return ST_OK;
}

void collection_fini(struct tier_collection *c)
{
    assert(list_empty(&c->uses));
    tier_versions_fini(&c->current.versions);
    tier_versions_fini(&c->previous.versions);
    tier_kinds_free(c->all_kinds);
    lock_fini(&c->lock);
    free(c->texts);
}

struct tier_collection *tier_collection_ref(struct tier_collection *c)
{
    unsigned before = atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return c;
}

void tier_collection_close(struct tier_collection *c)
{
    if (!c)
        return;
    unsigned before = atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    (void)before;
}

void collection_wake_follower(struct tier_collection *c)
{
    if (!atomic_exchange(&c->is_posted, true))
        driver_post(c->driver, &c->command);
}

void collection_reopen(struct tier_collection *c)
{
    lock_take(&c->lock);
    bool retries = c->phase == TIER_REFUSED && c->may_retry;
    if (retries) {
        c->phase = TIER_STARTING;
        c->may_retry = false;
        c->retries = true;
    }
    lock_release(&c->lock);
    if (retries)
        collection_wake_follower(c);
}

/* -- Looking -- */

const struct tier_name *tier_collection_name(const struct tier_collection *c)
{
    return &c->name;
}

static uint8_t *put_number(uint8_t *to, uint64_t number, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;)
        *to++ = (uint8_t)(number >> (8 * i));
    return to;
}

void collection_prefix(const struct tier_collection *c, uint64_t generation,
                       uint8_t ret_prefix[TIER_PREFIX_BYTES])
{
    (void)put_number(put_number(ret_prefix, c->number, 4), generation, 8);
}

uint64_t collection_visible_version(const struct tier_collection *c)
{
    uint64_t version;
    assert(lock_held(&c->lock));
    if (!c->current.number ||
        !tier_versions_version(&c->current.versions, local_mirror_revision(c->engine), &version))
        return 0;
    return version;
}

void tier_collection_look(struct tier_collection *c, struct tier_view *ret_view)
{
    LOCK_SCOPE(&c->lock);
    *ret_view = (struct tier_view){
        .phase = c->phase,
        .generation = c->current.number,
        .began = c->current.began,
        .oldest = tier_versions_oldest(&c->current.versions),
        .newest = collection_visible_version(c),
        .void_after = c->void_after,
        .void_until = c->void_until,
        .has_kinds = c->has_kinds,
        .connected = c->connected,
        .store_fails = c->store_fails,
        .is_cluster_scoped = atomic_load_explicit(&c->is_cluster_scoped, memory_order_relaxed),
        .objects = counter_get(&c->counters.objects),
        .bytes = counter_get(&c->counters.bytes),
        .kind = c->kinds ? c->kinds->kind : "",
        .list_kind = c->kinds ? c->kinds->list_kind : "",
        .api_version = c->kinds ? c->kinds->api_version : "",
    };
    collection_prefix(c, c->current.number, ret_view->prefix);
    snprintf(ret_view->reason, sizeof(ret_view->reason), "%s", c->reason);
}

/* NULL: it has ended, and is forgotten. */
static const struct tier_generation *find(const struct tier_collection *c, uint64_t generation)
{
    if (!generation)
        return NULL;
    if (c->current.number == generation)
        return &c->current;
    return c->previous.number == generation ? &c->previous : NULL;
}

bool tier_collection_revision(struct tier_collection *c, uint64_t generation, uint64_t version,
                              int64_t *ret_revision)
{
    LOCK_SCOPE(&c->lock);
    int64_t revision;
    if (!generation || c->current.number != generation ||
        !tier_versions_revision(&c->current.versions, version, &revision))
        return false;
    /* Nothing of this collection is between it and the next entry, so the oldest entry is as good
     * as the revision up to which the store has dropped its history. */
    *ret_revision = revision > c->compacted ? revision : c->compacted;
    return true;
}

/* The generation, if it has this revision. */
static const struct tier_generation *find_at(const struct tier_collection *c, uint64_t generation,
                                             int64_t revision)
{
    const struct tier_generation *g = find(c, generation);
    bool has = g && revision >= g->began && (!g->ended || revision < g->ended);
    return has ? g : NULL;
}

bool tier_collection_version(struct tier_collection *c, uint64_t generation, int64_t revision,
                             uint64_t *ret_version)
{
    LOCK_SCOPE(&c->lock);
    const struct tier_generation *g = find_at(c, generation, revision);
    return g && tier_versions_version(&g->versions, revision, ret_version);
}

bool tier_collection_change(struct tier_collection *c, uint64_t generation, int64_t revision,
                            uint64_t *ret_version)
{
    LOCK_SCOPE(&c->lock);
    const struct tier_generation *g = find_at(c, generation, revision);
    return g && revision > g->began && tier_versions_change(&g->versions, revision, ret_version);
}

bool tier_collection_pass_early(struct tier_collection *c, uint64_t generation)
{
    LOCK_SCOPE(&c->lock);
    bool is_first = generation == c->first_generation && generation == c->current.number;
    if (!is_first || c->early_watches == TIER_EARLY_WATCHES_MAX)
        return false;
    c->early_watches++;
    return true;
}

bool tier_collection_pass_late(struct tier_collection *c, int64_t now_ns)
{
    LOCK_SCOPE(&c->lock);
    int64_t from_ns = c->late_ns > now_ns ? c->late_ns : now_ns;
    if (from_ns - now_ns > (TIER_LATE_READS_MAX - 1) * TIER_LATE_READ_NS)
        return false;
    c->late_ns = from_ns + TIER_LATE_READ_NS;
    return true;
}

/* -- Notices -- */

void collection_notify(struct tier_collection *c, bool changed)
{
    struct mailbox_node *first = NULL;
    struct tier_reader_use *use;
    lock_take(&c->lock);
    LIST_FOREACH (use, &c->uses, in_collection) {
        use->changed |= changed;
        if (use->posted || (!changed && !use->waiting))
            continue;
        use->posted = true;
        use->node.next = first;
        first = &use->node;
    }
    lock_release(&c->lock);
    /* Posting may make a system call. What is posted is owned by its message, so it is there. */
    while (first) {
        struct mailbox_node *next = first->next;
        use = CONTAINER_OF(first, struct tier_reader_use, node);
        mailbox_post(use->mailbox, first);
        first = next;
    }
}
