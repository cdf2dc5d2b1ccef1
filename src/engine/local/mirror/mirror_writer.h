/*
 * The writer's part of a mirror (engine/local/mirror/mirror_store.h): applies batches. On the
 * writer's thread.
 *
 * A state that is loaded has no history: its keys have the revisions of their last changes, and
 * everything else that happened at those revisions is missing. So it begins with its compaction and
 * stays hidden until all of it is applied:
 *
 *     compaction to R, not reached │ revisions … up to R │ compaction to R, reached │ shown
 *                                  └── a start finds only a part: the mirror is incomplete
 */
#ifndef VIGIL_ENGINE_LOCAL_MIRROR_MIRROR_WRITER_H
#define VIGIL_ENGINE_LOCAL_MIRROR_MIRROR_WRITER_H

#include "base/error.h"
#include "engine/local/mirror/mirror_store.h"

struct local_shared;

/* Embedded in the writer. */
struct local_mirror_writer {
    struct local_shared *shared;
    void (*commit)(void *ctx); /* ends the writer's group: calls local_mirror_writer_published */
    void *ctx;
    struct mailbox_chain applied;  /* batches of the group */
    struct mailbox_chain deferred; /* batches that drop revisions which some shard has not read */
    int64_t deferred_until_ns;     /* they wait until then; 0: there are none */
};

/* After the store was opened. ST_DAMAGED: only a part of a state was applied. */
MUST_CHECK
enum status local_mirror_writer_check_complete(const struct local_shared *shared,
                                               struct error *error);
/* Before the threads start. */
void local_mirror_writer_open(struct local_shared *shared);

/* Applies the batch, or defers it. */
void local_mirror_writer_execute(struct local_mirror_writer *mirror_writer,
                                 struct mirror_batch *batch, int64_t now_ns);
/* Tries again what was deferred. */
void local_mirror_writer_continue(struct local_mirror_writer *mirror_writer, int64_t now_ns);
/* The group was published: its batches are done. */
void local_mirror_writer_published(struct local_mirror_writer *mirror_writer);
/* After a failure of the log: all batches are done, and fail. */
void local_mirror_writer_refuse(struct local_mirror_writer *mirror_writer);

#endif
