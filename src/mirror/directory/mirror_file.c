#include "mirror/directory/mirror_file.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/slices.h"
#include "base/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE "vigil mirror of a cluster, file "
#define VERSION "3"
#define VERSION_BEFORE "2"

enum { PATH_BYTES = 4200 };

void mirror_file_fini(struct mirror_file *file)
{
    free(file->prefixes);
    *file = (struct mirror_file){0};
}

/* -- Writing -- */

static void must(enum status status)
{
    if (status != ST_OK)
        abort(); /* out of memory */
}

char *mirror_file_prefixes(const struct slice *prefixes, size_t count)
{
    struct slice *sorted = xcalloc(count + 1, sizeof(*sorted));
    struct buf text = {0};
    for (size_t i = 0; i < count; i++)
        sorted[i] = prefixes[i];
    slices_sort(sorted, count);
    for (size_t i = 0; i < count; i++) {
        must(buf_append_text(&text, "prefix "));
        for (size_t k = 0; k < sorted[i].len; k++)
            must(buf_append_format(&text, "%02x", sorted[i].ptr[k]));
        must(buf_append_text(&text, "\n"));
    }
    free(sorted);
    must(buf_append(&text, slice_of("", 1)));
    return (char *)text.ptr;
}

void mirror_file_boot(char ret_boot[MIRROR_BOOT_BYTES])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t n = file ? fread(ret_boot, 1, MIRROR_BOOT_BYTES - 1, file) : 0;
    ret_boot[n] = 0;
    ret_boot[strcspn(ret_boot, "\n ")] = 0;
    if (file)
        fclose(file);
}

static void append_file(struct buf *text, const struct mirror_file *file)
{
    must(buf_append_format(
        text,
        TITLE VERSION "\ncluster %llx\nterm %llx\nindex %llx %lld\nboot %s\nclean %s\nvoid %lld\n",
        (unsigned long long)file->cluster_id, (unsigned long long)file->raft_term,
        (unsigned long long)file->raft.index, (long long)file->raft.at_ms, file->boot,
        file->is_clean ? "yes" : "no", (long long)file->void_until));
    must(buf_append_text(text, file->prefixes));
    must(buf_append_format(text, "sum %08x\n", crc32c(0, buf_slice(text))));
}

static enum status replace(struct fs *fs, const char *dir, struct slice text)
{
    char path[PATH_BYTES], new_path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE_NAME, dir);
    snprintf(new_path, sizeof(new_path), "%s/" MIRROR_FILE_NAME ".new", dir);
    enum status removed = fs_unlink(fs, new_path);
    if (removed != ST_OK && removed != ST_NOT_FOUND)
        return removed;
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, new_path, FILE_CREATE, &file));
    TRY(file_pwrite(file, text, 0));
    TRY(file_sync(file));
    TRY(fs_rename(fs, new_path, path));
    return fs_sync_dir(fs, dir);
}

enum status mirror_file_write(struct fs *fs, const char *dir, const struct mirror_file *file)
{
    struct buf text = {0};
    append_file(&text, file);
    enum status status = replace(fs, dir, buf_slice(&text));
    buf_fini(&text);
    return status;
}

/* -- Reading -- */

static enum status read_all(struct fs *fs, const char *dir, struct buf *text)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE_NAME, dir);
    AUTO(file_closep) struct file *file = NULL;
    TRY(fs_open(fs, path, FILE_READ_ONLY, &file));
    uint64_t bytes;
    TRY(file_size(file, &bytes));
    if (bytes > MIRROR_FILE_BYTES_MAX)
        return ST_DAMAGED;
    must(buf_reserve(text, (size_t)bytes + 1));
    TRY(file_pread(file, text->ptr, (size_t)bytes, 0));
    text->len = (size_t)bytes;
    text->ptr[bytes] = 0;
    return memchr(text->ptr, 0, text->len) ? ST_DAMAGED : ST_OK;
}

/* Checks the last line and cuts it off. */
static enum status take_sum(struct buf *text)
{
    enum { SUM_BYTES = sizeof("sum 00000000\n") - 1 };
    if (text->len < SUM_BYTES)
        return ST_DAMAGED;
    text->len -= SUM_BYTES;
    char wanted[SUM_BYTES + 1];
    snprintf(wanted, sizeof(wanted), "sum %08x\n", crc32c(0, buf_slice(text)));
    if (memcmp(text->ptr + text->len, wanted, SUM_BYTES) != 0)
        return ST_DAMAGED;
    text->ptr[text->len] = 0;
    return ST_OK;
}

/* Takes the line "name value". */
static enum status take_line(const char **text, const char *name, char *ret_value, size_t size)
{
    size_t name_bytes = strlen(name), line_bytes = strcspn(*text, "\n");
    if (strncmp(*text, name, name_bytes) != 0 || (*text)[name_bytes] != ' ')
        return ST_DAMAGED;
    size_t bytes = line_bytes - name_bytes - 1;
    if (bytes >= size || (*text)[line_bytes] != '\n')
        return ST_DAMAGED;
    memcpy(ret_value, *text + name_bytes + 1, bytes);
    ret_value[bytes] = 0;
    *text += line_bytes + 1;
    return ST_OK;
}

/* The sum is right, so this program has written it, perhaps in another version. */
static enum status parse(const char *text, struct mirror_file *ret_file)
{
    char cluster[24], term[24], boot[MIRROR_BOOT_BYTES], clean[8], void_until[24];
    char index[48] = "0 0", *time;
    bool has_index = strncmp(text, TITLE VERSION "\n", sizeof(TITLE VERSION)) == 0;
    if (!has_index && strncmp(text, TITLE VERSION_BEFORE "\n", sizeof(TITLE VERSION)) != 0)
        return ST_WRONG_FORMAT;
    text += sizeof(TITLE VERSION);
    TRY(take_line(&text, "cluster", cluster, sizeof(cluster)));
    TRY(take_line(&text, "term", term, sizeof(term)));
    if (has_index)
        TRY(take_line(&text, "index", index, sizeof(index)));
    TRY(take_line(&text, "boot", boot, sizeof(boot)));
    TRY(take_line(&text, "clean", clean, sizeof(clean)));
    TRY(take_line(&text, "void", void_until, sizeof(void_until)));
    *ret_file = (struct mirror_file){
        .cluster_id = strtoull(cluster, NULL, 16),
        .raft_term = strtoull(term, NULL, 16),
        .raft.index = strtoull(index, &time, 16),
        .raft.at_ms = strtoll(time, NULL, 10),
        .is_clean = strcmp(clean, "yes") == 0,
        .void_until = strtoll(void_until, NULL, 10),
        .prefixes = xalloc_check(strdup(text), strlen(text)),
    };
    memcpy(ret_file->boot, boot, sizeof(boot));
    return ST_OK;
}

enum status mirror_file_read(struct fs *fs, const char *dir, struct mirror_file *ret_file)
{
    struct buf text = {0};
    enum status status = read_all(fs, dir, &text);
    if (status == ST_OK)
        status = take_sum(&text);
    if (status == ST_OK)
        status = parse((const char *)text.ptr, ret_file);
    buf_fini(&text);
    return status;
}
