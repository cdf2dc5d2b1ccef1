/*
 * The file MIRROR: what the content of a mirror's directory is. Text, replaced atomically.
 *
 *     vigil mirror of a cluster, file 3
 *     cluster 8a1b…          of which it is a copy; 0: of none yet
 *     term 1a                the highest raft term in which the cluster has answered; 0: not known
 *     index 12d687 1790…     of its raft log, and when that was, in milliseconds since 1970; 0 0
 *     boot 3f0c…             in which boot of this machine it is written
 *     clean no               yes: everything was synced at the stop
 *     void 0                 see struct mirror_directory
 *     prefix 2f61            one line for each, in hexadecimal, sorted
 *     sum 1c2d3e4f           crc32c of all lines before
 *
 * File 2 has no index.
 */
#ifndef VIGIL_MIRROR_DIRECTORY_MIRROR_FILE_H
#define VIGIL_MIRROR_DIRECTORY_MIRROR_FILE_H

#include "base/slice.h"
#include "base/status.h"
#include "io/file.h"
#include "mirror/directory/raft_mark.h"

#include <stdbool.h>

#define MIRROR_FILE_NAME "MIRROR"

/* A longer file is damaged. Prefixes come from flags, so they are far shorter. */
enum { MIRROR_BOOT_BYTES = 40, MIRROR_FILE_BYTES_MAX = 16 << 20 };

struct mirror_file {
    uint64_t cluster_id, raft_term;
    struct raft_mark raft;
    char boot[MIRROR_BOOT_BYTES]; /* "": unknown */
    bool is_clean;
    int64_t void_until;
    char *prefixes; /* owned: their lines */
};

void mirror_file_fini(struct mirror_file *file); /* accepts a zeroed one */

/* The lines of the prefixes. Owned by the caller; aborts without memory. */
char *mirror_file_prefixes(const struct slice *prefixes, size_t count);
/* "" if it cannot be determined. */
void mirror_file_boot(char ret_boot[MIRROR_BOOT_BYTES]);

/* ST_NOT_FOUND: there is none. ST_DAMAGED, ST_WRONG_FORMAT, or the error of the system. */
MUST_CHECK
enum status mirror_file_read(struct fs *fs, const char *dir, struct mirror_file *ret_file);
/* Durable when this returns. */
MUST_CHECK
enum status mirror_file_write(struct fs *fs, const char *dir, const struct mirror_file *file);

#endif
