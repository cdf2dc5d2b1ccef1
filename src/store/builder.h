/*
 * Builds a new store from what another server has stored: its revisions with their numbers, in
 * order, then its rows and its compact revision. Writes in large groups and writes checkpoints
 * meanwhile, so that memory holds the index and a few megabytes.
 *
 * No other process may use the directory. An unfinished store must not be served, so the caller
 * builds it under a name that no server uses.
 *
 * One owner, one thread.
 */
#ifndef VIGIL_STORE_BUILDER_H
#define VIGIL_STORE_BUILDER_H

#include "store/store.h"

struct store_builder;

struct store_builder_options {
    struct fs *fs;
    const char *dir;             /* created; must be new or empty. Borrowed until it is closed */
    size_t checkpoint_map_bytes; /* as in store_options */
    uint64_t salt;
    struct backend *backend; /* as in store_options, for the simulator; may be NULL */
};

MUST_CHECK
enum status store_builder_open(const struct store_builder_options *options,
                               struct store_builder **ret_builder, struct error *ret_error);
/* Does not remove what was built so far. Accepts NULL. */
void store_builder_close(struct store_builder *builder);
DEFINE_CLEANUP(struct store_builder *, store_builder_close)

/* For applier_put and similar functions, and for reading what was flushed. */
struct store *store_builder_store(struct store_builder *builder);

/* To be called after each change that was applied: writes when enough has accumulated. */
MUST_CHECK
enum status store_builder_step(struct store_builder *builder);
/* Writes what was applied and makes it visible. */
MUST_CHECK
enum status store_builder_flush(struct store_builder *builder);

/* Like applier_import, applier_rows without keys, and applier_compact. */
MUST_CHECK
enum status store_builder_add(struct store_builder *builder, int64_t revision,
                              const struct imported_change *changes, size_t count);
MUST_CHECK
enum status store_builder_add_rows(struct store_builder *builder, const struct row *rows,
                                   size_t count);
/* The newest revision is at least this, even if nothing of it is left. */
void store_builder_reach(struct store_builder *builder, int64_t revision);
MUST_CHECK
enum status store_builder_compact(struct store_builder *builder, int64_t revision);

/* The ids of the store. Without them the first start sets them, as for a new store. */
struct store_builder_identity {
    uint64_t cluster_id, member_id;
    uint64_t term; /* term of its last start */
};

/* Trims what is compacted and writes everything to disk. Only store_builder_free may follow. */
MUST_CHECK
enum status store_builder_finish(struct store_builder *builder,
                                 const struct store_builder_identity *identity);

/* Sets the reason of a failure, if it is known, and returns the same status. */
enum status store_builder_failed(const struct store_builder *builder, enum status status,
                                 struct error *ret_error);

#endif
