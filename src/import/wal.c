#include "import/wal.h"

#include "base/crc32c.h"
#include "base/xalloc.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RECORD_METADATA = 1,
    RECORD_ENTRY = 2,
    RECORD_STATE = 3,
    RECORD_CRC = 4,
    RECORD_SNAPSHOT = 5,
    FRAME_BYTES = 8,
    SECTOR_BYTES = 512,
    NAME_BYTES = 16 + 1 + 16 + 4, /* hex - hex .wal */
};

struct import_wal_file {
    uint64_t sequence, index; /* sequence of the file, and index of its first entry */
    struct file *file;        /* while it is read */
    uint64_t bytes;
};

struct import_wal_place {
    uint32_t file;
    uint32_t bytes;  /* size of the record */
    uint64_t offset; /* offset of the record, behind its frame */
};

static void path_of(const struct import_wal *wal, const struct import_wal_file *file,
                    char ret_path[4200])
{
    snprintf(ret_path, 4200, "%s/%016" PRIx64 "-%016" PRIx64 ".wal", wal->dir, file->sequence,
             file->index);
}

/* -- Which files -- */

static bool parse_name(const char *name, struct import_wal_file *ret_file)
{
    char *dash, *end;
    if (strlen(name) != NAME_BYTES)
        return false; /* preallocated, set aside as broken, or not etcd's */
    struct import_wal_file file = {.sequence = strtoull(name, &dash, 16)};
    if (dash != name + 16 || *dash != '-')
        return false;
    file.index = strtoull(dash + 1, &end, 16);
    if (end != dash + 17 || strcmp(end, ".wal") != 0)
        return false;
    *ret_file = file;
    return true;
}

bool import_wal_has_name(const char *name)
{
    struct import_wal_file file;
    return parse_name(name, &file);
}

static void note_name(void *ctx, const char *name)
{
    struct import_wal *wal = ctx;
    struct import_wal_file file;
    if (!parse_name(name, &file))
        return;
    wal->files = xrealloc(wal->files, (wal->file_count + 1) * sizeof(file));
    wal->files[wal->file_count++] = file;
}

static int compare_files(const void *left, const void *right)
{
    const struct import_wal_file *a = left, *b = right;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static enum status check_sequence(struct import_wal *wal, struct error *ret_error)
{
    for (size_t i = 1; i < wal->file_count; i++) {
        if (wal->files[i].sequence == wal->files[i - 1].sequence + 1)
            continue;
        /* etcd does not look at the number after the first file, and then finds its checksum. */
        wal->fault = wal->files[i - 1].sequence ? IMPORT_WAL_NO_FILE : IMPORT_WAL_CHAIN;
        return error_set(ret_error, ST_DAMAGED,
                         "the write-ahead log %s is damaged: the file after sequence %" PRIx64
                         " is missing; put it back, or use a snapshot",
                         wal->dir, wal->files[i - 1].sequence);
    }
    return ST_OK;
}

/* Leaves out the files before the one that may name a snapshot at `after`, as etcd does. */
static enum status choose_files(struct import_wal *wal, struct error *ret_error)
{
    enum status status = fs_list(wal->fs, wal->dir, note_name, wal);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read the directory %s: %s", wal->dir,
                         status_reason(status));
    if (wal->file_count == 0) {
        wal->fault = IMPORT_WAL_NO_FILE;
        return error_set(
            ret_error, ST_NOT_FOUND,
            "the write-ahead log %s is empty: it has no file of etcd's; name the right "
            "one with --wal-dir, or use a snapshot",
            wal->dir);
    }
    qsort(wal->files, wal->file_count, sizeof(*wal->files), compare_files);
    size_t first = 0;
    while (first + 1 < wal->file_count && wal->files[first + 1].index <= wal->after)
        first++;
    wal->file_count -= first;
    memmove(wal->files, wal->files + first, wal->file_count * sizeof(*wal->files));
    return check_sequence(wal, ret_error);
}

/* -- Records -- */

struct scan {
    struct import_wal *wal;
    struct error *error;
    size_t at; /* index of the file */
    uint64_t offset;
    uint32_t crc;
};

static enum status damaged(const struct scan *scan, const char *what)
{
    char path[4200];
    path_of(scan->wal, &scan->wal->files[scan->at], path);
    return error_set(scan->error, ST_DAMAGED,
                     "the write-ahead log is damaged: %s, at offset %" PRIu64
                     ", %s; use a snapshot, or the log of another member",
                     path, scan->offset, what);
}

/* Ends the log here if this is its last file and the bytes may be the result of a crash: nothing
 * after a point, or a sector of zeros. */
static enum status end_torn(const struct scan *scan, struct slice bytes, const char *what)
{
    /* A crash can tear only the last file. */
    if (scan->at + 1 < scan->wal->file_count)
        return damaged(scan, what);
    uint64_t offset = scan->offset + FRAME_BYTES;
    bool has_zeros = bytes.len == 0;
    for (size_t at = 0; at < bytes.len && !has_zeros;) {
        size_t len = size_min(SECTOR_BYTES - (offset + at) % SECTOR_BYTES, bytes.len - at);
        has_zeros = true;
        for (size_t i = 0; i < len && has_zeros; i++)
            has_zeros = bytes.ptr[at + i] == 0;
        at += len;
    }
    if (!has_zeros)
        return damaged(scan, what);
    scan->wal->is_torn = true;
    scan->wal->fault = IMPORT_WAL_FINE;
    return ST_END;
}

static enum status read_bytes(const struct scan *scan, void *to, size_t len, uint64_t offset)
{
    char path[4200];
    const struct import_wal_file *file = &scan->wal->files[scan->at];
    enum status status = file_pread(file->file, to, len, offset);
    if (status == ST_OK)
        return ST_OK;
    path_of(scan->wal, file, path);
    return error_set(scan->error, status, "cannot read %s: %s", path, status_reason(status));
}

/* ST_END: the file has no more records. The record is in wal->record. */
static enum status record_next(struct scan *scan, struct pb_log_record *ret_record,
                               uint32_t *ret_bytes)
{
    struct import_wal *wal = scan->wal;
    const struct import_wal_file *file = &wal->files[scan->at];
    uint64_t frame, room = file->bytes - scan->offset;
    if (room < FRAME_BYTES)
        return ST_END;
    TRY(read_bytes(scan, &frame, sizeof(frame), scan->offset));
    frame = le64toh(frame);
    /* etcd allocates files of 64 MB in advance. Zeros are the part that was not written yet. */
    if (frame == 0)
        return ST_END;
    /* The highest byte says how many bytes of padding follow, so that frames are aligned to
     * eight. */
    uint64_t bytes = frame & ~(UINT64_C(0xff) << 56);
    uint64_t pad = frame >> 63 ? frame >> 56 & 7 : 0;
    room -= FRAME_BYTES;
    if (bytes > room || pad > room - bytes || bytes > IMPORT_WAL_RECORD_BYTES_MAX) {
        wal->torn_bytes = bytes;
        return end_torn(scan, SLICE_EMPTY, "has a record that reaches past the end of the file");
    }
    wal->record.len = 0;
    TRY(buf_reserve(&wal->record, (size_t)bytes + 1));
    TRY(read_bytes(scan, wal->record.ptr, (size_t)bytes, scan->offset + FRAME_BYTES));
    wal->record.len = (size_t)bytes;
    struct arena none = {0};
    struct slice record = buf_slice(&wal->record);
    if (pb_decode(&pb_log_record_table, record, &none, ret_record) != ST_OK)
        return end_torn(scan, record, "has something that is not a record");
    /* The checksums of a file form a chain, in which each covers everything before it. */
    if (ret_record->type != RECORD_CRC) {
        uint32_t crc = crc32c(scan->crc, ret_record->data);
        if (crc != ret_record->crc) {
            wal->fault = IMPORT_WAL_CHECKSUM;
            return end_torn(scan, record, "has a record with a wrong checksum");
        }
        scan->crc = crc;
    }
    *ret_bytes = (uint32_t)bytes;
    scan->offset += FRAME_BYTES + bytes + pad;
    return ST_OK;
}

static enum status take_entry(struct scan *scan, const struct pb_log_entry *entry, uint64_t offset,
                              uint32_t bytes)
{
    struct import_wal *wal = scan->wal;
    if (entry->index <= wal->after)
        return ST_OK;
    uint64_t at = entry->index - wal->after - 1;
    if (at > wal->place_count) {
        wal->fault = wal->files[0].index > wal->after ? IMPORT_WAL_NO_FILE : IMPORT_WAL_GAP;
        return error_set(
            scan->error, ST_DAMAGED,
            "the write-ahead log %s does not go back far enough: the entry after index "
            "%" PRIu64 " is %" PRIu64 "; start the etcd once more and stop it, or use a snapshot",
            wal->dir, wal->after + wal->place_count, entry->index);
    }
    if (at == wal->place_capacity) {
        wal->place_capacity = wal->place_capacity ? wal->place_capacity * 2 : 1024;
        wal->places = xrealloc(wal->places, wal->place_capacity * sizeof(*wal->places));
    }
    wal->places[at] = (struct import_wal_place){(uint32_t)scan->at, bytes, offset};
    wal->place_count = (size_t)at + 1;
    return ST_OK;
}

static enum status take_record(struct scan *scan, const struct pb_log_record *record,
                               uint64_t offset, uint32_t bytes)
{
    struct import_wal *wal = scan->wal;
    struct arena none = {0};
    struct pb_log_entry entry;
    struct pb_log_snapshot snapshot;
    switch (record->type) {
    case RECORD_METADATA:
        if (pb_decode(&pb_log_metadata_table, record->data, &none, &wal->metadata) != ST_OK)
            return damaged(scan, "does not say who wrote it");
        return ST_OK;
    case RECORD_ENTRY:
        if (pb_decode(&pb_log_entry_table, record->data, &none, &entry) != ST_OK)
            return damaged(scan, "has something that is not an entry");
        return take_entry(scan, &entry, offset, bytes);
    case RECORD_STATE:
        if (pb_decode(&pb_hard_state_table, record->data, &none, &wal->state) != ST_OK)
            return damaged(scan, "has something that is not a state");
        return ST_OK;
    case RECORD_CRC:
        if (scan->crc && record->crc != scan->crc) {
            wal->fault = IMPORT_WAL_CHAIN;
            return damaged(scan, "does not follow the file before it");
        }
        scan->crc = record->crc;
        return ST_OK;
    case RECORD_SNAPSHOT:
        if (pb_decode(&pb_log_snapshot_table, record->data, &none, &snapshot) != ST_OK)
            return damaged(scan, "has something that is not a snapshot's name");
        if (snapshot.index == wal->after) {
            wal->has_snapshot = true;
            wal->snapshot_term = snapshot.term;
        }
        return ST_OK;
    default:
        return damaged(scan, "has a record of a kind that is not known");
    }
}

static enum status scan_file(struct scan *scan)
{
    struct import_wal *wal = scan->wal;
    struct import_wal_file *file = &wal->files[scan->at];
    char path[4200];
    path_of(wal, file, path);
    enum status status = fs_open(wal->fs, path, FILE_READ_ONLY, &file->file);
    if (status == ST_OK)
        status = file_size(file->file, &file->bytes);
    if (status != ST_OK)
        return error_set(scan->error, status, "cannot open %s: %s", path, status_reason(status));
    scan->offset = 0;
    for (;;) {
        struct pb_log_record record;
        uint64_t offset = scan->offset + FRAME_BYTES;
        uint32_t bytes = 0;
        status = record_next(scan, &record, &bytes);
        if (status == ST_END)
            return ST_OK;
        TRY(status);
        TRY(take_record(scan, &record, offset, bytes));
    }
}

enum status import_wal_open(struct import_wal *wal, struct fs *fs, const char *dir, uint64_t after,
                            struct error *ret_error)
{
    *wal = (struct import_wal){.fs = fs, .dir = dir, .after = after};
    TRY(choose_files(wal, ret_error));
    struct scan scan = {.wal = wal, .error = ret_error};
    for (; scan.at < wal->file_count; scan.at++)
        TRY(scan_file(&scan));
    return ST_OK;
}

void import_wal_close(struct import_wal *wal)
{
    for (size_t i = 0; i < wal->file_count; i++)
        file_close(wal->files[i].file);
    free(TAKE(wal->files));
    free(TAKE(wal->places));
    buf_fini(&wal->record);
    wal->file_count = wal->place_count = 0;
}

enum status import_wal_entry(struct import_wal *wal, size_t i, struct pb_log_entry *ret_entry,
                             struct error *ret_error)
{
    assert(i < wal->place_count);
    const struct import_wal_place *place = &wal->places[i];
    struct scan scan = {.wal = wal, .error = ret_error, .at = place->file, .offset = place->offset};
    wal->record.len = 0;
    TRY(buf_reserve(&wal->record, place->bytes + 1));
    TRY(read_bytes(&scan, wal->record.ptr, place->bytes, place->offset));
    wal->record.len = place->bytes;
    struct arena none = {0};
    struct pb_log_record record;
    if (pb_decode(&pb_log_record_table, buf_slice(&wal->record), &none, &record) != ST_OK ||
        pb_decode(&pb_log_entry_table, record.data, &none, ret_entry) != ST_OK)
        return damaged(&scan, "has changed while it was read");
    return ST_OK;
}
