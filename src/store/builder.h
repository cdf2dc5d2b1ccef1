/*
 * Makes a new store out of what another server has kept: its revisions with their numbers, one
 * after the other, then its rows and how far it was compacted. Writes in large groups and brings
 * the checkpoint along, so that memory holds the index and a few megabytes.
 *
 * The directory is nobody else's. What has begun and is not finished must not be served: whoever
 * builds does it under a name that no server is given.
 *
 * One owner, one thread.
 */
#ifndef VIGIL_STORE_BUILDER_H
#define VIGIL_STORE_BUILDER_H

#include "store/store.h"

struct store_builder;

struct store_builder_options {
    struct fs *fs;
    const char *dir;             /* made; must be new or empty. Borrowed until closing */
    size_t checkpoint_map_bytes; /* as in store_options */
    uint64_t salt;
    struct backend *backend; /* as in store_options, for the simulator; may be NULL */
};

MUST_CHECK
enum status store_builder_open(const struct store_builder_options *options,
                               struct store_builder **ret_builder, struct error *ret_error);
/* What was built so far stays as it is. Accepts NULL. */
void store_builder_close(struct store_builder *builder);
DEFINE_CLEANUP(struct store_builder *, store_builder_close)

/* For applier_put and the like, and for reading what was flushed. */
struct store *store_builder_store(struct store_builder *builder);

/* After each change that was applied: writes when enough has come together. */
MUST_CHECK
enum status store_builder_step(struct store_builder *builder);
/* Writes what was applied, and makes it visible. */
MUST_CHECK
enum status store_builder_flush(struct store_builder *builder);

/* As applier_import, applier_rows without keys, and applier_compact. */
MUST_CHECK
enum status store_builder_add(struct store_builder *builder, int64_t revision,
                              const struct imported_change *changes, size_t count);
MUST_CHECK
enum status store_builder_add_rows(struct store_builder *builder, const struct row *rows,
                                   size_t count);
/* The newest revision is at least this, though nothing of it is left. */
void store_builder_reach(struct store_builder *builder, int64_t revision);
MUST_CHECK
enum status store_builder_compact(struct store_builder *builder, int64_t revision);

/* Who the store is. Without: the first start says, as it does for a new one. */
struct store_builder_identity {
    uint64_t cluster_id, member_id;
    uint64_t term; /* of its last start */
};

/* Trims what is compacted and writes all there is to disk. Only closing may follow. */
MUST_CHECK
enum status store_builder_finish(struct store_builder *builder,
                                 const struct store_builder_identity *identity);

/* Says why a call failed, as far as it is known, and returns the same status. */
enum status store_builder_failed(const struct store_builder *builder, enum status status,
                                 struct error *ret_error);

#endif
