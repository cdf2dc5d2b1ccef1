/*
 * The kinds that an API knows. They are at least as new as every answer that was sent before the
 * request arrived, whichever thread sent it: a request for a custom resource reads its definition
 * (one key), and a request that needs all definitions reads all. While there are watches of custom
 * resources, the registry watches the definitions, so that watches of an old definition end.
 *
 *     call ─► read its definition ─► the known revision ─────────────► continue
 *                         └─► another, or gone: a new set of kinds ─► continue
 *
 * A long definition is parsed by the worker, one at a time: requests for it wait for that, and
 * requests for another one read again afterwards.
 *
 * One per API, on its thread.
 */
#ifndef VIGIL_KUBE_CALL_REGISTRY_H
#define VIGIL_KUBE_CALL_REGISTRY_H

#include "base/container/list.h"
#include "kube/custom/kinds.h"
#include "kube/types/storage.h"

struct engine_shard;
struct kube_offload;
struct kube_registry;
struct loop;

/* schemas NULL: it has its own. *under_way is incremented while it reads. offload: borrowed. */
struct kube_registry *kube_registry_new(struct engine_shard *shard, struct loop *loop,
                                        struct schema_pool *schemas, struct kube_offload *offload,
                                        size_t *under_way);
/* There must be no waiters and no uses. Accepts NULL. */
void kube_registry_free(struct kube_registry *registry);

/* Borrowed until the next call of a function below; take a reference to keep it. */
struct kube_kinds *kube_registry_kinds(const struct kube_registry *registry);

/* Embedded by its caller until go. */
struct kube_registry_wait {
    struct list in_registry;
    void (*go)(struct kube_registry_wait *wait);
    enum status status; /* in go; not ST_OK: the definitions could not be read, and the kinds are
                           unchanged */
    bool complete;      /* in go; false: as above, or there was not enough memory for one of them */
    /* Used by the registry: the definition that kube_registry_take was given. */
    struct slice name;
    int64_t revision;
};

/* Reads all definitions, then calls go, perhaps at once. */
void kube_registry_read(struct kube_registry *registry, struct kube_registry_wait *wait);

/* Takes over one definition that was just read. kv.mod_revision 0: it does not exist. True: it is
 * taken over, and wait->status is set; false: go is called later. name is borrowed until then, kv
 * only for this call. ST_AGAIN: it must be read again, because the worker was busy with another;
 * ST_NOMEM: the kinds are unchanged. */
MUST_CHECK
bool kube_registry_take(struct kube_registry *registry, struct slice name, struct kube_kv kv,
                        struct kube_registry_wait *wait);

/* A long use of a definition, such as a watch: it keeps a reference to the definition, and
 * on_changed is called when the definition has changed or is gone. Owned by the caller. */
struct kube_registry_use;
struct kube_registry_use *kube_registry_use_new(struct kube_registry *registry,
                                                const struct kube_custom *custom,
                                                void (*on_changed)(void *ctx), void *ctx);
void kube_registry_use_free(struct kube_registry_use *use); /* accepts NULL */
/* Stops watching the definitions. Accepts NULL. */
void kube_registry_stop(struct kube_registry *registry);

#endif
