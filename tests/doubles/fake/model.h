/*
 * The simplest possible model of a multi-version store: every version of every key is in arrays
 * that are searched linearly. The fake engine uses it, and tests may compare with it. Its answers
 * are etcd's; a callback says which leases exist. One thread.
 */
#ifndef VIGIL_FAKE_MODEL_H
#define VIGIL_FAKE_MODEL_H

#include "base/memory/arena.h"
#include "base/status.h"
#include "codec/answer.h"

struct pb_range_request;
struct pb_put_request;
struct pb_delete_range_request;
struct pb_txn_request;

struct fake_model;

struct fake_model *fake_model_new(void); /* aborts without memory, as everything here */
void fake_model_free(struct fake_model *model);

int64_t fake_model_revision(const struct fake_model *model); /* 1 when empty */
int64_t fake_model_compact_revision(const struct fake_model *model);

/* Whether a lease exists. NULL, as initially: no lease exists. */
void fake_model_set_leases(struct fake_model *model, bool (*exists)(void *ctx, int64_t lease),
                           void *ctx);
/* The keys attached to a lease, sorted, in the arena. */
size_t fake_model_leased(struct fake_model *model, int64_t lease, struct arena *arena,
                         struct slice **ret_keys);
/* Deletes these keys at one revision. */
void fake_model_delete_leased(struct fake_model *model, int64_t lease);

/* Answers and their fields are copied into the arena. The caller has validated the requests. */
MUST_CHECK
enum status fake_model_range(struct fake_model *model, const struct pb_range_request *request,
                             struct arena *arena, struct kv_range_answer *ret_answer);
MUST_CHECK
enum status fake_model_put(struct fake_model *model, const struct pb_put_request *request,
                           struct arena *arena, struct kv_answer *ret_answer);
MUST_CHECK
enum status fake_model_delete(struct fake_model *model,
                              const struct pb_delete_range_request *request, struct arena *arena,
                              struct kv_answer *ret_answer);
MUST_CHECK
enum status fake_model_txn(struct fake_model *model, const struct pb_txn_request *request,
                           struct arena *arena, struct kv_answer *ret_answer);

/* One change of a revision, as a watch sees it. In the arena. */
struct fake_event {
    struct slice key;
    struct slice field;      /* `12 len KeyValue` */
    struct slice prev_field; /* field of the previous version; empty if there is none */
    bool tombstone, created;
};
/* All changes of one revision, in order. */
size_t fake_model_events(const struct fake_model *model, int64_t revision, struct arena *arena,
                         struct fake_event **ret_events);

MUST_CHECK
enum status fake_model_compact(struct fake_model *model, int64_t revision);

#endif
