/*
 * What a reflector knows about a collection: the objects by key and by index, and a callback for
 * every change.
 *
 *     list:    cache_begin_list ──► cache_put for each object ──► cache_end_list
 *     watch:   cache_put, cache_remove
 *
 * A list does not need memory for a second copy of the collection: its objects enter the cache as
 * they arrive, marked with the number of the list, and what is not marked at its end is removed. A
 * list that fails in the middle has only made the cache newer; the next one begins again.
 *
 * Versions do not go back: an object that is older than the one in the cache is ignored, for
 * instance one from a server whose own cache is behind. Only a list of the most recent state is
 * believed in any case, because the server may have been restored from a backup. Owned by a
 * reflector; its thread.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_CACHE_H
#define VIGIL_KUBECLIENT_INFORMER_CACHE_H

#include "kubeclient/informer/indexer.h"

enum cache_change_kind { CACHE_ADDED, CACHE_UPDATED, CACHE_REMOVED };

/* The objects are borrowed; the callback may take references. */
struct cache_change {
    enum cache_change_kind kind;
    const struct vigil_kube_object *old; /* NULL if it was added */
    const struct vigil_kube_object *now; /* NULL if it was removed */
    /* What the cache had, and reported before. That is `old`, unless the object was removed: then
     * `old` is its last state, which may be newer. */
    const struct vigil_kube_object *before;
    bool in_list;       /* part of a list, and not of a watch */
    bool state_unknown; /* removed: the deletion was not seen, so `old` may not be its last state */
};

struct cache {
    struct indexer indexer;
    uint32_t list; /* the number of the latest list; objects that it has are marked with it */
    bool in_list;
    bool most_recent; /* the list is of the most recent state */
    void (*on_change)(void *ctx, const struct cache_change *change);
    /* Called before each change: makes sure that it can be reported. If it fails, nothing changes,
     * so no consumer misses a change. ST_NOMEM. May be NULL. */
    enum status (*reserve)(void *ctx);
    void *ctx;
    size_t bytes_max; /* limit on the size of JSON; 0: no limit. Until a list ends, objects that it
                         may remove are not counted, but there are at most twice as many bytes. */
    size_t listed_bytes; /* size of the objects in the list under way */
};

void cache_init(struct cache *cache, uint64_t seed,
                void (*on_change)(void *ctx, const struct cache_change *change), void *ctx);
void cache_fini(struct cache *cache);

void cache_begin_list(struct cache *cache, bool most_recent);
/* The list has every object of the collection. ST_NOMEM: the list is still under way, and some
 * objects that it does not have were not removed. */
MUST_CHECK
enum status cache_end_list(struct cache *cache);
/* The list is abandoned. */
void cache_drop_list(struct cache *cache);

/* The object exists. Takes a reference if it is kept. ST_NOMEM; ST_LIMIT: bytes_max would be
 * exceeded. Then nothing has changed. */
MUST_CHECK
enum status cache_put(struct cache *cache, struct vigil_kube_object *object);
/* The object was deleted, and this is its last state. ST_NOMEM: nothing has changed. */
MUST_CHECK
enum status cache_remove(struct cache *cache, const struct vigil_kube_object *object);

/* Compares the version of an object that arrives with the one that is known: less than 0 if it is
 * older, 0 if it is the same, greater than 0 if it is newer. Versions are decimal numbers of any
 * length. Others, and objects without a version, have no order: what arrives later is newer, unless
 * it has the same text. */
int version_compare(struct slice arrived, struct slice known);

/* Asserts every invariant; for tests. */
void cache_check(const struct cache *cache);

#endif
