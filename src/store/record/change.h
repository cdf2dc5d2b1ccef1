/*
 * The format of changed keys in the log. One record is one request that changed something; its body
 * has the changes in the order they were made, all of one revision, and then the rows (row.h):
 *
 *   body     changes u32 | rows u32 | change | change … | row | row …
 *   change   head (32 bytes) | field: 12 len KeyValue | pad to 8
 *
 * The field is sent to clients byte for byte. The location of a change is that of its head. A
 * tombstone's KeyValue has the key and mod_revision only, as in a delete event. Numbers are in the
 * machine's byte order, which the format file of the data directory names.
 */
#ifndef VIGIL_STORE_RECORD_CHANGE_H
#define VIGIL_STORE_RECORD_CHANGE_H

#include "base/slice.h"
#include "base/status.h"
#include "store/log/reader.h"

enum log_record_type {
    LOG_RECORD_KV = LOG_TYPE_OF_REVISIONS, /* body as above */
    LOG_RECORD_COMPACT = 2,                /* body: struct change_compaction */
    /*
     * A body without changes. It creates no revision and carries the one before it, so that a
     * search of the log by revision knows its position.
     */
    LOG_RECORD_ROWS = 3,
};

/*
 * The upper bits of the flags are 30 bits of the crc32c of the head (without them) and the field,
 * so that one change can be verified without the rest of its record. Changes written by earlier
 * versions do not have CHANGE_SUMMED; only their record has a checksum.
 */
enum { CHANGE_TOMBSTONE = 1, CHANGE_SUMMED = 2, CHANGE_SUM_SHIFT = 2 };

struct change_head {
    int64_t revision;
    int64_t prev_revision; /* revision of the key's previous version, which may be a tombstone; 0:
                              none */
    uint32_t prev_sub;
    uint32_t sub; /* position among the changes of its revision */
    uint32_t field_bytes;
    uint32_t flags;
};

enum {
    CHANGE_BODY_HEAD_BYTES = 8,
    CHANGE_HEAD_BYTES = sizeof(struct change_head),
    CHANGE_ALIGN = 8,
};
_Static_assert(sizeof(struct change_head) == 32, "written to disk as it is");

/* The contents of a KeyValue. Slices refer to the field. */
struct change_kv {
    struct slice key;
    int64_t create_revision;
    int64_t mod_revision;
    int64_t version;
    struct slice value;
    int64_t lease;
};

/* Written to disk as it is. `reached` only in a mirror: otherwise 0, and not written. */
struct change_compaction {
    int64_t compact_revision;
    int64_t reached; /* everything up to this revision was known */
};
MUST_CHECK
enum status change_compaction_read(struct slice body, struct change_compaction *ret_compaction);

/* Bytes that a change takes in a body, including head and padding. */
size_t change_bytes(size_t field_bytes);
/* An upper bound of change_bytes for a put or delete whose numbers are not known yet. */
size_t change_bytes_max(size_t key_bytes, size_t value_bytes);

/*
 * Writes head and field to dst, and sets field_bytes and the checksum. Returns the bytes written.
 */
size_t change_write(uint8_t *dst, struct change_head *head, const struct change_kv *kv);

/* -- Reading at a location: the bytes on the disk may be damaged -- */

/*
 * The change at a location; its checksum is verified, so the functions below may read it.
 * ST_DAMAGED, which is also noted in the log.
 */
MUST_CHECK
enum status change_get(const struct log *log, log_loc loc, const struct change_head **ret_head);
/*
 * The same without reading the field, for long lists: only what the index has is compared, and the
 * length of the field. Once damage is known in the log, this is change_get.
 */
MUST_CHECK
enum status change_get_known(const struct log *log, log_loc loc, int64_t revision,
                             uint32_t field_bytes, const struct change_head **ret_head);

/* -- Reading what is known to be undamaged: its checksum was verified -- */

static inline const struct change_head *change_at(const uint8_t *bytes)
{
    return (const struct change_head *)(const void *)bytes;
}

static inline struct slice change_field(const struct change_head *head)
{
    return slice_of((const uint8_t *)head + CHANGE_HEAD_BYTES, head->field_bytes);
}

static inline bool change_is_tombstone(const struct change_head *head)
{
    return head->flags & CHANGE_TOMBSTONE;
}

void change_read_kv(const struct change_head *head, struct change_kv *ret_kv);

/* The KeyValue without `12 len`. */
struct slice change_message(const struct change_head *head);

/*
 * The next record that changed keys, up to last_index. Many records without changes, such as those
 * of short-lived leases, are skipped by the revision that they carry. ST_END; ST_DAMAGED.
 */
MUST_CHECK
enum status change_record_next(struct log_reader *reader, uint64_t last_index,
                               struct log_record *ret_record);

/* -- Walking a body: checks bounds, because the disk may be damaged -- */

struct change_walk {
    struct slice body;
    size_t offset; /* offset of the next head */
    uint32_t left;
};
MUST_CHECK
enum status change_walk_init(struct change_walk *walk, struct slice body);
/* NULL after the last; *ret_offset is the offset of the head in the body. */
MUST_CHECK
enum status change_walk_next(struct change_walk *walk, const struct change_head **ret_head,
                             size_t *ret_offset);
/* Whether a change that was walked to can be read; its checksum is not verified. */
bool change_is_sound(const struct change_head *head);
/* The same for a field, which must have that key. */
bool change_field_is_sound(struct slice field, struct slice key);

#endif
