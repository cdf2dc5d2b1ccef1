/*
 * The directory of a mirror: whether what is in it can be used, and throwing it away.
 *
 *     data-dir/MIRROR        what the content is, and whether it was stopped cleanly: mirror_file.h
 *     data-dir/LOCK          locked while a process uses the directory
 *     data-dir/mirror/       the content: a local engine
 *     data-dir/mirror.old/   thrown away, while it is being removed
 *
 * The mirror of a kube-apiserver is in such a directory as well, but it is never identified: its
 * file MIRROR names no cluster, so that no start uses what is in it, and it ends with an abandon.
 */
#ifndef VIGIL_MIRROR_DIRECTORY_DIRECTORY_H
#define VIGIL_MIRROR_DIRECTORY_DIRECTORY_H

#include "base/error.h"
#include "engine/engine.h"
#include "io/file.h"
#include "mirror/directory/raft_mark.h"
#include "mirror/link/options.h"

struct mirror_directory {
    struct engine *engine; /* a local engine with is_mirror */
    bool is_warm;          /* it has the content of an earlier run */
    uint64_t cluster_id;   /* id of the cluster that the content is from; 0: none */
    /* The highest in which that cluster has answered a linearizable read; 0: not known. A cluster
     * that was restored from a snapshot begins with low terms again. */
    uint64_t raft_term;
    struct raft_mark raft; /* when that cluster was last followed */
    int64_t void_until;    /* see mirror_state; kept by a discard until the cluster is past it */

    /* Private. */
    char *path;        /* owned: of the content */
    struct file *lock; /* owned */
};

/*
 * Opens the mirror. Fails if the directory has something else than a mirror (ST_WRONG_FORMAT), or
 * cannot be used at all. What is damaged, of other prefixes, or was written in an earlier boot of
 * the machine without a clean stop is thrown away, with a warning (options.mirror.on_warning).
 */
MUST_CHECK
enum status mirror_directory_open(const struct mirror_options *options,
                                  struct mirror_directory *ret_mirror, struct error *error);
/* The cluster is known now: what was given to the mirror is of this one. */
MUST_CHECK
enum status mirror_directory_identify(struct mirror_directory *mirror,
                                      const struct mirror_options *options, uint64_t cluster_id,
                                      struct error *error);
/* The cluster has answered in this term. A lower one than before changes nothing. On failure the
 * term is known until the next start. */
MUST_CHECK
enum status mirror_directory_raise_term(struct mirror_directory *mirror,
                                        const struct mirror_options *options, uint64_t raft_term,
                                        struct error *error);
/* A clean stop: everything is synced. The shards must have been freed. */
void mirror_directory_close(struct mirror_directory *mirror, const struct mirror_options *options);
/* An end without syncing: the content is thrown away. The shards must have been freed. */
void mirror_directory_abandon(struct mirror_directory *mirror,
                              const struct mirror_options *options);
/* Throws the content away, while no engine uses it. Its revisions become void (void_until). */
MUST_CHECK
enum status mirror_directory_discard(const struct mirror_options *options, int64_t void_until,
                                     struct error *error);

#endif
