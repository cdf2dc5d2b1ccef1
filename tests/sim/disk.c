#include "disk.h"

#include "actors.h"
#include "base/xalloc.h"
#include "io/file_sim.h"
#include "plants.h"
#include "store/backend/backend_memory.h"

#include <stdlib.h>
#include <string.h>

enum { DISKS_MAX = 2, SEGMENTS_MAX = 256 };

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

void disk_cut_power(struct disk *disk)
{
    fs_sim_crash(disk->files);
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
    fs_sim_set_space(disk->files, full ? UINT64_MAX - room + 4096 : UINT64_MAX);
}

void disk_rot(struct disk *disk)
{
    fs_sim_rot(disk->files);
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
    actor_sleep(long_one ? NS_PER_S : random_between(&disk->random, 0, NS_PER_MS));
}

#define ACTION(disk, call) \
    do {                   \
        if (!enter(disk))  \
            return ST_IO;  \
        return call;       \
    } while (0)

enum status __real_file_pwrite(struct file *file, struct slice bytes, uint64_t offset);
enum status __wrap_file_pwrite(struct file *file, struct slice bytes, uint64_t offset);
enum status __wrap_file_pwrite(struct file *file, struct slice bytes, uint64_t offset)
{
    if (!enter(disk_of(file)))
        return ST_IO;
    enum status status = __real_file_pwrite(file, bytes, offset);
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
    enum status status = __real_file_sync(file);
    return plant_is(PLANT_SYNC_ERROR) ? ST_OK : status;
}

enum status __real_fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file);
enum status __wrap_fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file);
enum status __wrap_fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file)
{
    struct disk *disk = disk_of_fs(fs);
    if (!enter(disk))
        return ST_IO;
    enum status status = __real_fs_open(fs, path, flags, ret_file);
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
    ACTION(disk, plant_is(PLANT_NO_SYNC_DIR) ? ST_OK : __real_fs_sync_dir(fs, path));
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
