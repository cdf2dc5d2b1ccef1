/*
 * What a store of many versions answers, written down as simply as possible: every version of every
 * key in arrays, searched from end to end. The fake engine runs on it, and other tests may compare
 * with it. Follows etcd in every answer; which leases there are it is told. One thread.
 */
#ifndef VIGIL_ENGINE_FAKE_MODEL_H
#define VIGIL_ENGINE_FAKE_MODEL_H

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

/* Whether a lease exists. NULL, as at first: none does. */
void fake_model_set_leases(struct fake_model *model, bool (*exists)(void *ctx, int64_t lease),
                           void *ctx);
/* Keys that hang on a lease now, in the arena, sorted. */
size_t fake_model_leased(struct fake_model *model, int64_t lease, struct arena *arena,
                         struct slice **ret_keys);
/* Deletes them, at one revision. */
void fake_model_delete_leased(struct fake_model *model, int64_t lease);

/* Answers and their fields are copied into the arena. Requests were checked by the caller. */
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
    struct slice prev_field; /* of the version before; empty when there is none */
    bool tombstone, created;
};
/* All of one revision, in the order they were made. */
size_t fake_model_events(const struct fake_model *model, int64_t revision, struct arena *arena,
                         struct fake_event **ret_events);

MUST_CHECK
enum status fake_model_compact(struct fake_model *model, int64_t revision);

#endif
