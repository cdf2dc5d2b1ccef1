/*
 * The kinds that a face knows, kept as new as whoever asks has a right to expect: what was answered
 * before a request was sent holds for it, whichever thread serves it. For the kind of a request its
 * definition is read with it (one key); who needs all of them reads all; while there are watches of
 * custom resources a watch tells of changes, so that those on an old definition end.
 *
 *     call ─► its definition as it is now ─► the same revision: known ─► go on
 *                         └─► another, or gone: a new picture ─► go on
 *
 * One per face, on its thread.
 */
#ifndef VIGIL_KUBE_CALL_REGISTRY_H
#define VIGIL_KUBE_CALL_REGISTRY_H

#include "base/container/list.h"
#include "kube/custom/kinds.h"
#include "kube/storage/storage.h"

struct engine_shard;
struct kube_registry;
struct loop;

/* schemas NULL: it has its own. *under_way is incremented while it reads. */
struct kube_registry *kube_registry_new(struct engine_shard *shard, struct loop *loop,
                                        struct schema_pool *schemas, size_t *under_way);
/* Nothing may wait. Accepts NULL. */
void kube_registry_free(struct kube_registry *registry);

/* Borrowed until the next call of a function below; hold on to it to keep it. */
struct kube_kinds *kube_registry_kinds(const struct kube_registry *registry);

/* Embedded by its caller until go. */
struct kube_registry_wait {
    struct list in_registry;
    void (*go)(struct kube_registry_wait *wait);
    enum status status; /* in go; not ST_OK: they could not be read, the picture is as it was */
    bool complete;      /* in go; false: so it is, or there was no memory for one of them */
};

/* All definitions as they are now, then go: perhaps at once. */
void kube_registry_read(struct kube_registry *registry, struct kube_registry_wait *wait);

/* One definition as it was just read: kv.mod_revision 0: there is none. ST_NOMEM: the picture stays
 * as it was. */
MUST_CHECK
enum status kube_registry_take(struct kube_registry *registry, struct slice name,
                               struct kube_kv kv);

/* Who goes on for long by a definition: it is held meanwhile, and he hears when it is no more what
 * it was. Freed by whom it was given to. */
struct kube_registry_use;
struct kube_registry_use *kube_registry_use_new(struct kube_registry *registry,
                                                const struct kube_custom *custom,
                                                void (*on_changed)(void *ctx), void *ctx);
void kube_registry_use_free(struct kube_registry_use *use); /* accepts NULL */
/* Hears of nothing more. Accepts NULL. */
void kube_registry_stop(struct kube_registry *registry);

#endif
