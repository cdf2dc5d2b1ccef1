/*
 * A simulated disk: the counterpart of fs_posix for tests and the simulator. Every choice comes
 * from a seed. One thread. Without memory the process aborts.
 *
 * A power cut and failures have these effects:
 *   - bytes written since a file's last sync are lost, kept or torn: each 512-byte sector has,
 *     independently, any of the contents that it had since then;
 *   - names created, changed or removed since the directory's last sync are lost or kept, each
 *     independently; directories themselves are kept, and their renaming is durable at once;
 *   - a failed write has written some of its sectors; after a failed sync the unsynced bytes can
 *     still be read but do not reach the disk unless they are written again, and the next sync
 *     reports success.
 * A mapping shows immediately what was written, and stays valid until it is unmapped.
 */
#ifndef VIGIL_SIMULATED_FILE_SIM_H
#define VIGIL_SIMULATED_FILE_SIM_H

#include "io/file.h"

struct fs_sim;

enum fs_sim_call {
    FS_SIM_ANY, /* any of the calls below */
    FS_SIM_OPEN,
    FS_SIM_PREAD,
    FS_SIM_PWRITE,
    FS_SIM_SYNC,
    FS_SIM_MAP,
    FS_SIM_RENAME,
    FS_SIM_UNLINK,
    FS_SIM_SYNC_DIR,
    FS_SIM_LIST,
    FS_SIM_CALL_COUNT
};

struct fs_sim *fs_sim_new(uint64_t seed);
void fs_sim_free(struct fs_sim *sim); /* accepts NULL; all files are closed before */
DEFINE_CLEANUP(struct fs_sim *, fs_sim_free)
struct fs *fs_sim_fs(struct fs_sim *sim);
/* The disk of a file; NULL: it is not simulated. */
struct fs_sim *fs_sim_of(struct file *file);

/* Removes a directory with everything in it, as a program does that asks the system itself. */
void fs_sim_remove_tree(struct fs_sim *sim, const char *path);

/*
 * The nth such call from now on (1: the next) fails with that status, and if sticky all later ones,
 * too. One plan at a time; n == 0 ends it.
 */
void fs_sim_fail(struct fs_sim *sim, enum fs_sim_call call, uint64_t n, enum status status,
                 bool sticky);
/* How many such calls were made so far. */
uint64_t fs_sim_calls(const struct fs_sim *sim, enum fs_sim_call call);

/* Maximum size of all files together; writing beyond it is ST_DISK_FULL. Unlimited at first. */
void fs_sim_set_space(struct fs_sim *sim, uint64_t bytes);

/*
 * Power fails and returns. Every call on a file that was open fails; it can only be closed and
 * unmapped. Locks are released.
 */
void fs_sim_crash(struct fs_sim *sim);
/* What a power cut does to the unsynced writes of a file. */
enum fs_sim_fate {
    FS_SIM_NONE,    /* all are lost */
    FS_SIM_ALL,     /* all are kept */
    FS_SIM_PREFIX,  /* the last one that is kept is torn */
    FS_SIM_SECTORS, /* each sector has any of its contents, so that writes are reordered */
    FS_SIM_FATES
};
/* How often that has happened, and how many sectors were put in the wrong place. */
struct fs_sim_cuts {
    uint64_t files[FS_SIM_FATES];
    uint64_t misdirected;
};
const struct fs_sim_cuts *fs_sim_cuts(const struct fs_sim *sim);
/* From now on a power cut may also put a sector of an unsynced write in the place of another. */
void fs_sim_set_misdirects(struct fs_sim *sim, bool misdirects);

/* A bit of a file changes on the disk. No file is open. False: there is no file. */
bool fs_sim_rot(struct fs_sim *sim);
/* A file that fs_sim_rot has changed still exists. */
bool fs_sim_is_rotten(const struct fs_sim *sim);

#endif
