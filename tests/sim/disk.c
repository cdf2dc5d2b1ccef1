#include "disk.h"

#include "actors.h"
#include "base/xalloc.h"
#include "coverage.h"
#include "plants.h"
#include "simulated/file_sim.h"
#include "store/backend/backend_memory.h"

#include <stdlib.h>
#include <string.h>

enum { DISKS_MAX = 3, SEGMENTS_MAX = 256, LEFT_BYTES = 1024 /* on a full disk */ };

struct disk {
    struct disk_options options;
    struct random random;
    struct fs_sim *files;            /* owned */
    struct backend_disk *checkpoint; /* owned */
    const struct backend *backend;   /* the one that was opened last */
    uint64_t actions, crash_at;
    bool stopped;
    const struct file *segments[SEGMENTS_MAX]; /* files of the log that were opened lately */
    unsigned segment_count;
};

static struct disk *disks[DISKS_MAX]; /* NULL: a free place */

struct disk *disk_new(const struct disk_options *options)
{
    struct disk *disk = xcalloc(1, sizeof(*disk));
    disk->options = *options;
    disk->stopped = true;
    random_init(&disk->random, options->seed);
    disk->files = fs_sim_new(random_u64(&disk->random));
    fs_sim_set_misdirects(disk->files, options->misdirects);
    disk->checkpoint = backend_disk_new();
    unsigned at = 0;
    while (at < DISKS_MAX && disks[at])
        at++;
    assert(at < DISKS_MAX);
    disks[at] = disk;
    return disk;
}

void disk_free(struct disk *disk)
{
    for (unsigned i = 0; i < DISKS_MAX; i++)
        if (disks[i] == disk)
            disks[i] = NULL;
    fs_sim_free(disk->files);
    backend_disk_free(disk->checkpoint);
    free(disk);
}

struct fs *disk_fs(struct disk *disk)
{
    return fs_sim_fs(disk->files);
}

void disk_plan_crash(struct disk *disk, uint64_t n)
{
    disk->crash_at = n ? disk->actions + n : 0;
}

void disk_stop(struct disk *disk)
{
    disk->stopped = true;
    disk->crash_at = 0;
}

void disk_start(struct disk *disk)
{
    disk->stopped = false;
}

static void cover(const struct disk *disk, enum coverage what, uint64_t count)
{
    coverage_add_at(what, disk->options.is_front, count);
}

void disk_cut_power(struct disk *disk)
{
    struct fs_sim_cuts before = *fs_sim_cuts(disk->files);
    fs_sim_crash(disk->files);
    const struct fs_sim_cuts *now = fs_sim_cuts(disk->files);
    const uint64_t *files = now->files, *were = before.files;
    cover(disk, COVERAGE_LOST, files[FS_SIM_NONE] - were[FS_SIM_NONE]);
    cover(disk, COVERAGE_TORN, files[FS_SIM_PREFIX] - were[FS_SIM_PREFIX]);
    cover(disk, COVERAGE_REORDERED, files[FS_SIM_SECTORS] - were[FS_SIM_SECTORS]);
    cover(disk, COVERAGE_MISDIRECTED, now->misdirected - before.misdirected);
}

void disk_plan_error(struct disk *disk, uint64_t n)
{
    static const enum fs_sim_call calls[] = {FS_SIM_PWRITE, FS_SIM_SYNC, FS_SIM_ANY};
    fs_sim_fail(disk->files, calls[random_below(&disk->random, COUNT_OF(calls))], n, ST_IO, false);
}

void disk_set_full(struct disk *disk, bool full)
{
    uint64_t room = 0;
    enum status status = fs_space(disk_fs(disk), disk->options.dir, &room);
    assert(status == ST_OK);
    fs_sim_set_space(disk->files, full ? UINT64_MAX - room + LEFT_BYTES : UINT64_MAX);
}

void disk_rot(struct disk *disk)
{
    cover(disk, COVERAGE_ROT, fs_sim_rot(disk->files));
}

bool disk_is_rotten(const struct disk *disk)
{
    return fs_sim_is_rotten(disk->files);
}

void disk_heal(struct disk *disk)
{
    fs_sim_fail(disk->files, FS_SIM_ANY, 0, ST_OK, false);
    fs_sim_set_space(disk->files, UINT64_MAX);
}

/* -- Which disk -- */

static struct disk *disk_with(const struct fs_sim *files)
{
    for (unsigned i = 0; i < DISKS_MAX; i++)
        if (disks[i] && disks[i]->files == files)
            return disks[i];
    return NULL;
}

/* NULL: it is a real one, as before and after a simulation. */
static struct disk *disk_of_fs(const struct fs *fs)
{
    for (unsigned i = 0; i < DISKS_MAX; i++)
        if (disks[i] && disk_fs(disks[i]) == fs)
            return disks[i];
    return NULL;
}

static struct disk *disk_of(struct file *file)
{
    return disk_with(fs_sim_of(file));
}

struct disk *disk_at(const char *path)
{
    for (unsigned i = 0; i < DISKS_MAX; i++)
        if (disks[i] && strncmp(disks[i]->options.dir, path, strlen(disks[i]->options.dir)) == 0)
            return disks[i];
    return NULL;
}

static struct disk *disk_of_backend(const struct backend *backend)
{
    for (unsigned i = 0; i < DISKS_MAX; i++)
        if (disks[i] && disks[i]->backend == backend)
            return disks[i];
    return NULL;
}

void disk_remove_tree(struct disk *disk, const char *path)
{
    fs_sim_remove_tree(disk->files, path);
    backend_disk_free(disk->checkpoint);
    disk->checkpoint = backend_disk_new();
}

/* -- Actions -- */

/* False: the process does not exist any more. */
static bool enter(struct disk *disk)
{
    if (!disk)
        return true;
    actor_may_yield();
    if (disk->stopped)
        return false;
    disk->actions++;
    if (disk->crash_at && disk->actions >= disk->crash_at) {
        disk->options.crash(disk->options.ctx);
        return false;
    }
    return true;
}

static void take_time(struct disk *disk)
{
    if (!disk || !actor_running())
        return;
    bool long_one = disk->options.slow && random_chance(&disk->random, 1, 50);
    cover(disk, COVERAGE_SLOW, long_one);
    actor_sleep(long_one ? NS_PER_S : random_between(&disk->random, 0, NS_PER_MS));
}

/* Counts a fault that a call has met. */
static enum status met(const struct disk *disk, enum status status)
{
    if (disk && status == ST_IO && !disk->stopped)
        cover(disk, COVERAGE_IO_ERROR, 1);
    if (disk && status == ST_DISK_FULL)
        cover(disk, COVERAGE_FULL, 1);
    return status;
}

#define ACTION(which, call)        \
    do {                           \
        struct disk *disk = which; \
        if (!enter(disk))          \
            return ST_IO;          \
        return met(disk, call);    \
    } while (0)

enum status __real_file_pwrite(struct file *file, struct slice bytes, uint64_t offset);
enum status __wrap_file_pwrite(struct file *file, struct slice bytes, uint64_t offset);
enum status __wrap_file_pwrite(struct file *file, struct slice bytes, uint64_t offset)
{
    struct disk *disk = disk_of(file);
    if (!enter(disk))
        return ST_IO;
    enum status status = met(disk, __real_file_pwrite(file, bytes, offset));
    return plant_is(PLANT_WRITE_ERROR) && status == ST_IO ? ST_OK : status;
}

enum status __real_file_pread(struct file *file, void *to, size_t len, uint64_t offset);
enum status __wrap_file_pread(struct file *file, void *to, size_t len, uint64_t offset);
enum status __wrap_file_pread(struct file *file, void *to, size_t len, uint64_t offset)
{
    ACTION(disk_of(file), __real_file_pread(file, to, len, offset));
}

static bool is_segment(const struct disk *disk, const struct file *file)
{
    for (unsigned i = 0; i < SEGMENTS_MAX; i++)
        if (disk->segments[i] == file)
            return true;
    return false;
}

static void note_file(struct disk *disk, const char *path, const struct file *file)
{
    for (unsigned i = 0; i < SEGMENTS_MAX; i++)
        if (disk->segments[i] == file)
            disk->segments[i] = NULL;
    if (strstr(path, ".seg"))
        disk->segments[disk->segment_count++ % SEGMENTS_MAX] = file;
}

enum status __real_file_sync(struct file *file);
enum status __wrap_file_sync(struct file *file);
enum status __wrap_file_sync(struct file *file)
{
    struct disk *disk = disk_of(file);
    if (!enter(disk))
        return ST_IO;
    take_time(disk);
    if (!enter(disk))
        return ST_IO;
    if ((plant_is(PLANT_NO_SYNC) || plant_chance(PLANT_HALF_SYNC, 4)) && disk &&
        is_segment(disk, file))
        return ST_OK;
    enum status status = met(disk, __real_file_sync(file));
    return plant_is(PLANT_SYNC_ERROR) ? ST_OK : status;
}

enum status __real_fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file);
enum status __wrap_fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file);
enum status __wrap_fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file)
{
    struct disk *disk = disk_of_fs(fs);
    if (!enter(disk))
        return ST_IO;
    enum status status = met(disk, __real_fs_open(fs, path, flags, ret_file));
    if (status == ST_OK && disk)
        note_file(disk, path, *ret_file);
    return status;
}

enum status __real_fs_rename(struct fs *fs, const char *from, const char *to);
enum status __wrap_fs_rename(struct fs *fs, const char *from, const char *to);
enum status __wrap_fs_rename(struct fs *fs, const char *from, const char *to)
{
    ACTION(disk_of_fs(fs), __real_fs_rename(fs, from, to));
}

enum status __real_fs_unlink(struct fs *fs, const char *path);
enum status __wrap_fs_unlink(struct fs *fs, const char *path);
enum status __wrap_fs_unlink(struct fs *fs, const char *path)
{
    ACTION(disk_of_fs(fs), __real_fs_unlink(fs, path));
}

enum status __real_fs_sync_dir(struct fs *fs, const char *path);
enum status __wrap_fs_sync_dir(struct fs *fs, const char *path);
enum status __wrap_fs_sync_dir(struct fs *fs, const char *path)
{
    struct disk *disk = disk_of_fs(fs);
    if (!enter(disk))
        return ST_IO;
    take_time(disk);
    if (!enter(disk))
        return ST_IO;
    return plant_is(PLANT_NO_SYNC_DIR) ? ST_OK : met(disk, __real_fs_sync_dir(fs, path));
}

/* -- The checkpoint -- */

enum status __wrap_backend_lmdb_open(const char *dir, size_t map_bytes,
                                     struct backend **ret_backend, struct error *ret_error);
enum status __wrap_backend_lmdb_open(const char *dir, size_t map_bytes,
                                     struct backend **ret_backend, struct error *ret_error)
{
    struct disk *disk = disk_at(dir);
    (void)map_bytes, (void)ret_error;
    *ret_backend = backend_memory_open(disk->checkpoint);
    if (disk_of_backend(*ret_backend)) /* one that was freed */
        disk_of_backend(*ret_backend)->backend = NULL;
    disk->backend = *ret_backend;
    return ST_OK;
}

/* A crash during a commit: it has happened, or not. */
enum status __real_backend_commit(struct backend *backend);
enum status __wrap_backend_commit(struct backend *backend);
enum status __wrap_backend_commit(struct backend *backend)
{
    struct disk *disk = disk_of_backend(backend);
    bool was_stopped = disk->stopped;
    if (!enter(disk)) {
        if (!was_stopped && random_chance(&disk->random, 1, 2))
            (void)__real_backend_commit(backend);
        return ST_IO;
    }
    take_time(disk);
    return disk->stopped ? ST_IO : __real_backend_commit(backend);
}
