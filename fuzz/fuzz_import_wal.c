/*
 * Any bytes as etcd's write-ahead log, replayed into a store and into a v2 store: they are applied,
 * or refused with a reason.
 *
 *   input   how | after | bytes: the file, or, with HOW_RECORDS, type (1) len (2) data …
 *
 * Records are put into a well-formed file, so that the fuzzer gets behind frames and checksums.
 */
#include "cost.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "codec/pb/wire.h"
#include "import/replay.h"
#include "import/v2/members.h"
#include "import/v2/replay.h"
#include "import/wal.h"
#include "simulated/file_sim.h"
#include "store/backend/backend_memory.h"

#include <stdlib.h>

enum { HOW_RECORDS = 1, INPUT_HEAD_BYTES = 2, RECORD_CRC = 4 };
#define PATH "/wal/0000000000000000-0000000000000000.wal"

static void must(bool is_true)
{
    if (!is_true)
        abort();
}

static void append_record(struct buf *file, uint8_t type, struct slice data, uint32_t *crc)
{
    *crc = type == RECORD_CRC ? *crc : crc32c(*crc, data);
    uint8_t head[64], *end = head;
    end = pb_uint_write(end, 1, type);
    end = pb_uint_write(end, 2, *crc);
    end = pb_message_head_write(end, 3, data.len);
    uint64_t bytes = (uint64_t)(end - head) + data.len;
    must(buf_append(file, slice_of(&bytes, sizeof(bytes))) == ST_OK);
    must(buf_append(file, slice_of(head, (size_t)(end - head))) == ST_OK);
    must(buf_append(file, data) == ST_OK);
}

static void append_records(struct buf *file, struct slice input)
{
    uint32_t crc = 0;
    for (size_t at = 0; at + 3 <= input.len;) {
        uint8_t type = input.ptr[at];
        size_t len = input.ptr[at + 1] | (size_t)input.ptr[at + 2] << 8;
        at += 3;
        len = size_min(len, input.len - at);
        append_record(file, type, slice_sub(input, at, len), &crc);
        at += len;
    }
}

static void put_file(struct fs *fs, struct slice bytes)
{
    struct file *file;
    must(fs_make_dir(fs, "/wal") == ST_OK);
    must(fs_open(fs, PATH, FILE_CREATE, &file) == ST_OK);
    must(file_pwrite(file, bytes, 0) == ST_OK);
    file_close(file);
}

static void replay_all(struct fs *fs, struct import_wal *wal)
{
    struct error error;
    AUTO(backend_disk_freep) struct backend_disk *disk = backend_disk_new();
    AUTO(store_builder_closep) struct store_builder *builder = NULL;
    must(store_builder_open(&(struct store_builder_options){.fs = fs,
                                                            .dir = "/data",
                                                            .backend = backend_memory_open(disk)},
                            &builder, &error) == ST_OK);
    AUTO(import_replay_freep) struct import_replay *replay = import_replay_new(builder, 7);
    must(import_replay_start(replay) == ST_OK);
    for (size_t i = 0; i < wal->place_count; i++) {
        struct pb_log_entry entry;
        must(import_wal_entry(wal, i, &entry, &error) == ST_OK);
        enum status status = import_replay_entry(replay, &entry);
        must(status == ST_OK || status == ST_DAMAGED || status == ST_LIMIT);
        if (status != ST_OK)
            return;
    }
    must(store_builder_finish(builder, NULL) == ST_OK);
}

/* The same entries as requests of the v2 API. */
static void replay_v2(struct import_wal *wal)
{
    struct error error;
    struct v2_tree tree;
    struct v2_members members;
    enum status status = ST_OK;
    v2_tree_init(&tree, 1);
    v2_members_init(&members, &tree, NULL);
    for (size_t i = 0; i < wal->place_count && status == ST_OK; i++) {
        struct pb_log_entry entry;
        must(import_wal_entry(wal, i, &entry, &error) == ST_OK);
        status = v2_replay_entry(&tree, &members, &entry, &error);
        must(status == ST_OK || error.text[0] != 0);
    }
    v2_tree_check(&tree);
    v2_members_fini(&members);
    v2_tree_fini(&tree);
}

FUZZ_INPUT()
{
    if (size < INPUT_HEAD_BYTES)
        return 0;
    AUTO(fs_sim_freep) struct fs_sim *sim = fs_sim_new(1);
    struct fs *fs = fs_sim_fs(sim);
    struct slice input = slice_of(data + INPUT_HEAD_BYTES, size - INPUT_HEAD_BYTES);
    struct buf file = {0};
    if (data[0] & HOW_RECORDS)
        append_records(&file, input);
    else
        must(buf_append(&file, input) == ST_OK);
    put_file(fs, buf_slice(&file));
    buf_fini(&file);
    struct import_wal wal;
    struct error error = {.text = ""};
    enum status status = import_wal_open(&wal, fs, "/wal", data[1], &error);
    if (status == ST_OK) {
        replay_all(fs, &wal);
        replay_v2(&wal);
    } else {
        must(error.text[0] != 0);
    }
    import_wal_close(&wal);
    return 0;
}
