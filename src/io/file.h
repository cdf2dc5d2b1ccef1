/*
 * Files and directories behind a table of functions, so that the same store runs on a disk and on a
 * simulated one that tears, loses and refuses writes.
 *
 * fs_posix() uses the operating system; fs_sim (tests/doubles/simulated/file_sim.h) is its
 * simulated counterpart. A file belongs to one thread at a time; its mapping may be read by any
 * thread.
 */
#ifndef VIGIL_IO_FILE_H
#define VIGIL_IO_FILE_H

#include "base/slice.h"
#include "base/status.h"

struct file;
struct fs;

enum file_open_flags {
    FILE_READ_WRITE = 0,
    FILE_CREATE = 1, /* must not exist yet */
    FILE_READ_ONLY = 2,
    FILE_SHARE = 4,   /* no other process may lock it while it is open; ST_IN_USE if one has */
    FILE_PATCHED = 8, /* in a mapping, what the disk cannot read is zero (io/patched.h) */
};

struct file_ops {
    enum status (*pread)(struct file *file, void *to, size_t len, uint64_t offset);
    enum status (*pwrite)(struct file *file, struct slice bytes, uint64_t offset);
    enum status (*sync)(struct file *file); /* the data, and the metadata needed to read it back */
    enum status (*size)(struct file *file, uint64_t *ret_bytes);
    /* Read-only and shared: shows immediately what pwrite wrote. len is at most the file's size. */
    enum status (*map)(struct file *file, size_t len, const uint8_t **ret_base);
    void (*unmap)(struct file *file, const uint8_t *base, size_t len);
    void (*close)(struct file *file);
};

struct file {
    const struct file_ops *ops;
};

struct fs_ops {
    enum status (*open)(struct fs *fs, const char *path, int flags, struct file **ret_file);
    enum status (*rename)(struct fs *fs, const char *from, const char *to);
    enum status (*unlink)(struct fs *fs, const char *path);
    enum status (*make_dir)(struct fs *fs,
                            const char *path); /* mode 0700; ST_EXISTS if it exists */
    enum status (*sync_dir)(struct fs *fs, const char *path);
    /* Calls fn with each name in the directory except "." and "..", in no particular order. */
    enum status (*list)(struct fs *fs, const char *path, void (*fn)(void *ctx, const char *name),
                        void *ctx);
    /* Takes an exclusive lock of the file and its directory, which is released when the returned
     * file is closed. ST_IN_USE: another process holds it, perhaps of a file that was removed. */
    enum status (*lock)(struct fs *fs, const char *path, struct file **ret_file);
    /* Bytes available to us on the file system that contains path. */
    enum status (*space)(struct fs *fs, const char *path, uint64_t *ret_bytes);
};

struct fs {
    const struct fs_ops *ops;
};

struct fs *fs_posix(void);

/* A short read is an error: every requested byte must exist. */
MUST_CHECK
enum status file_pread(struct file *file, void *to, size_t len, uint64_t offset);
MUST_CHECK
enum status file_pwrite(struct file *file, struct slice bytes, uint64_t offset);
MUST_CHECK
enum status file_sync(struct file *file);
MUST_CHECK
enum status file_size(struct file *file, uint64_t *ret_bytes);
MUST_CHECK
enum status file_map(struct file *file, size_t len, const uint8_t **ret_base);
void file_unmap(struct file *file, const uint8_t *base, size_t len);
void file_close(struct file *file); /* accepts NULL */
DEFINE_CLEANUP(struct file *, file_close)

MUST_CHECK
enum status fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file);
MUST_CHECK
enum status fs_rename(struct fs *fs, const char *from, const char *to);
MUST_CHECK
enum status fs_unlink(struct fs *fs, const char *path);
MUST_CHECK
enum status fs_make_dir(struct fs *fs, const char *path);
MUST_CHECK
enum status fs_sync_dir(struct fs *fs, const char *path);
MUST_CHECK
enum status fs_list(struct fs *fs, const char *path, void (*fn)(void *ctx, const char *name),
                    void *ctx);
MUST_CHECK
enum status fs_lock(struct fs *fs, const char *path, struct file **ret_file);
MUST_CHECK
enum status fs_space(struct fs *fs, const char *path, uint64_t *ret_bytes);

#endif
