#include "io/file.h"

enum status file_pread(struct file *file, void *to, size_t len, uint64_t offset)
{
    return file->ops->pread(file, to, len, offset);
}

enum status file_pwrite(struct file *file, struct slice bytes, uint64_t offset)
{
    return file->ops->pwrite(file, bytes, offset);
}

enum status file_sync(struct file *file)
{
    return file->ops->sync(file);
}

enum status file_size(struct file *file, uint64_t *ret_bytes)
{
    return file->ops->size(file, ret_bytes);
}

enum status file_map(struct file *file, size_t len, const uint8_t **ret_base)
{
    assert(len > 0);
    return file->ops->map(file, len, ret_base);
}

void file_unmap(struct file *file, const uint8_t *base, size_t len)
{
    file->ops->unmap(file, base, len);
}

void file_close(struct file *file)
{
    if (file)
        file->ops->close(file);
}

enum status fs_open(struct fs *fs, const char *path, int flags, struct file **ret_file)
{
    return fs->ops->open(fs, path, flags, ret_file);
}

enum status fs_rename(struct fs *fs, const char *from, const char *to)
{
    return fs->ops->rename(fs, from, to);
}

enum status fs_unlink(struct fs *fs, const char *path)
{
    return fs->ops->unlink(fs, path);
}

enum status fs_make_dir(struct fs *fs, const char *path)
{
    return fs->ops->make_dir(fs, path);
}

enum status fs_sync_dir(struct fs *fs, const char *path)
{
    return fs->ops->sync_dir(fs, path);
}

enum status fs_list(struct fs *fs, const char *path, void (*fn)(void *ctx, const char *name),
                    void *ctx)
{
    return fs->ops->list(fs, path, fn, ctx);
}

enum status fs_lock(struct fs *fs, const char *path, struct file **ret_file)
{
    return fs->ops->lock(fs, path, ret_file);
}

enum status fs_space(struct fs *fs, const char *path, uint64_t *ret_bytes)
{
    return fs->ops->space(fs, path, ret_bytes);
}
