#include "store/log/mark.h"

#include "base/crc32c.h"

#include <stdio.h>

/* "vigilmrk" when read as text */
static const uint64_t mark_magic = 0x6b726d6c69676976;

struct mark_copy {
    uint64_t magic;
    uint32_t version;
    uint32_t spare;
    struct mark mark;
    uint32_t spare_too;
    uint32_t crc; /* checksum of everything before it */
};
_Static_assert(sizeof(struct mark_copy) == 72, "written to disk as it is");

struct mark_path {
    char text[4096];
};

static struct mark_path path_of(const char *dir, const char *suffix)
{
    struct mark_path path;
    int len = snprintf(path.text, sizeof(path.text), "%s/" MARK_FILE_NAME "%s", dir, suffix);
    assert(len > 0 && (size_t)len < sizeof(path.text));
    return path;
}

static uint32_t copy_crc(const struct mark_copy *copy)
{
    return crc32c(0, slice_of(copy, offsetof(struct mark_copy, crc)));
}

/* -- Reading -- */

/* A copy that the disk cannot read counts as damaged; there is another one. */
static enum status copy_read(struct file *file, unsigned number, struct mark *ret_mark)
{
    struct mark_copy copy;
    if (file_pread(file, &copy, sizeof(copy), (uint64_t)number * MARK_COPY_BYTES) != ST_OK)
        return ST_DAMAGED;
    if (copy.magic != mark_magic || copy.crc != copy_crc(&copy))
        return ST_DAMAGED;
    if (copy.version != MARK_FORMAT_VERSION)
        return ST_WRONG_FORMAT;
    *ret_mark = copy.mark;
    return ST_OK;
}

enum status mark_read(struct fs *fs, const char *dir, struct mark *ret_mark)
{
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, path_of(dir, "").text, FILE_READ_ONLY, &file));
    bool whole = false;
    struct mark best = {0};
    for (unsigned i = 0; i < MARK_COPIES; i++) {
        struct mark mark;
        enum status status = copy_read(file, i, &mark);
        if (status == ST_WRONG_FORMAT)
            return status;
        if (status == ST_OK && (!whole || mark.index > best.index))
            best = mark;
        whole = whole || status == ST_OK;
    }
    if (!whole)
        return ST_DAMAGED;
    *ret_mark = best;
    return ST_OK;
}

/* -- Writing -- */

static enum status copy_write(struct file *file, unsigned number, const struct mark_copy *copy)
{
    return file_pwrite(file, slice_of(copy, sizeof(*copy)), (uint64_t)number * MARK_COPY_BYTES);
}

static enum status fill_new(struct file *file, const struct mark_copy *copy)
{
    static const uint8_t zeros[MARK_COPY_BYTES];
    for (unsigned i = 0; i < MARK_COPIES; i++) {
        TRY(file_pwrite(file, slice_of(zeros, sizeof(zeros)), (uint64_t)i * MARK_COPY_BYTES));
        TRY(copy_write(file, i, copy));
    }
    return file_sync(file);
}

static enum status mark_create(struct fs *fs, const char *dir, const struct mark_copy *copy)
{
    struct mark_path temporary = path_of(dir, ".tmp"), name = path_of(dir, "");
    enum status status = fs_unlink(fs, temporary.text);
    if (status != ST_OK && status != ST_NOT_FOUND)
        return status;
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, temporary.text, FILE_CREATE, &file));
    TRY(fill_new(file, copy));
    TRY(fs_rename(fs, temporary.text, name.text));
    return fs_sync_dir(fs, dir);
}

enum status mark_write(struct fs *fs, const char *dir, const struct mark *mark)
{
    struct mark_copy copy = {.magic = mark_magic, .version = MARK_FORMAT_VERSION, .mark = *mark};
    copy.crc = copy_crc(&copy);
    AUTO(file_closep) struct file *file = NULL;
    enum status status = fs_open(fs, path_of(dir, "").text, FILE_READ_WRITE, &file);
    if (status == ST_NOT_FOUND)
        return mark_create(fs, dir, &copy);
    TRY(status);
    for (unsigned i = 0; i < MARK_COPIES; i++) {
        TRY(copy_write(file, i, &copy));
        TRY(file_sync(file));
    }
    return ST_OK;
}
