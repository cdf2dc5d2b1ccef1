/*
 * The objects of a cache: by key, and by the values of named indexes.
 *
 *     indexer ──┬── objects        key ──► object
 *               ├── index "node"   value ──► the objects that have it
 *               └── index …
 *
 * The function of an index names the values of an object: the node of a pod, its owners. An object
 * without a value is not in the index.
 *
 * The indexer holds a reference to each object. A change either succeeds completely or changes
 * nothing. One owner, one thread.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_INDEXER_H
#define VIGIL_KUBECLIENT_INFORMER_INDEXER_H

#include "base/buf.h"
#include "base/container/hash_map.h"
#include "kubeclient/data/object.h"

#include <vigil/kube/informer.h>

/* Collects the values that an object has in an index. */
struct vigil_kube_index_values {
    struct buf bytes; /* each value: its length, and its bytes */
    size_t count;
    bool no_memory;
};
void index_values_add(struct vigil_kube_index_values *values, struct slice value);

struct index {
    char *name; /* owned */
    vigil_kube_index_fn fn;
    void *user;
    struct hash_map entries; /* struct index_entry each, owned */
};

struct indexer {
    struct hash_map objects; /* a reference to a struct vigil_kube_object each */
    struct index *indexes;
    size_t index_count;
    size_t json_bytes; /* size of all objects */
    uint64_t seed;
};

void indexer_init(struct indexer *indexer, uint64_t seed);
void indexer_fini(struct indexer *indexer);

bool indexer_has_index(const struct indexer *indexer, const char *name);
/* Objects that are there are added to the index. ST_EXISTS: there is an index with this name.
 * ST_NOMEM. */
MUST_CHECK
enum status indexer_add_index(struct indexer *indexer, const char *name, vigil_kube_index_fn fn,
                              void *user);

/* Takes a reference. *ret_old: the object with the same key that it replaces, with its reference,
 * or NULL. ST_NOMEM. */
MUST_CHECK
enum status indexer_put(struct indexer *indexer, struct vigil_kube_object *object,
                        struct vigil_kube_object **ret_old);
/* Returns what was removed, with its reference, or NULL. */
struct vigil_kube_object *indexer_remove(struct indexer *indexer, struct slice key);

/* Borrowed; NULL: there is none. */
struct vigil_kube_object *indexer_get(const struct indexer *indexer, struct slice key);
static inline size_t indexer_count(const struct indexer *indexer)
{
    return indexer->objects.count;
}
/* The objects with this value in an index, by key; for MAP_FOREACH. NULL: there are none, or no
 * such index. */
const struct hash_map *indexer_find(const struct indexer *indexer, const char *index,
                                    struct slice value);

/* Asserts every invariant; for tests. */
void indexer_check(const struct indexer *indexer);

#endif
