/*
 * The format of a segment file. Everything here is plain computation on bytes, trusts none of them,
 * and holds no state.
 *
 *   0     head      written once, before the file gets its name
 *   256   seal      written once, when the writer leaves the segment; zeros until then
 *   512   records   each at a multiple of 8, without gaps; then zeros to the end of the file
 *   -512  twin      in the last 512 bytes: a copy of the head, so that no single sector or page has
 *                   the only one. Segments of earlier versions, and short ones, have none; a start
 *                   adds it where the bytes are unused. Earlier versions ignore it in a full
 *                   segment, and cut it off in the one that is being written
 *
 * The head's salt is part of the checksum of every record of the segment, so bytes that a client
 * stored as a value cannot be taken for a record when the log is searched after a torn write.
 * Numbers are in the machine's byte order.
 */
#ifndef VIGIL_STORE_LOG_FORMAT_H
#define VIGIL_STORE_LOG_FORMAT_H

#include "base/slice.h"
#include "base/status.h"

enum {
    LOG_FORMAT_VERSION = 1,
    SEGMENT_SEAL_OFFSET = 256,
    SEGMENT_RECORDS_OFFSET = 512, /* a separate sector: sealing rewrites no record's sector */
    SEGMENT_REWRITTEN = 1,        /* flag: made by the cleaner; indexes may be missing */
    SEGMENT_TWIN_BYTES = 512,
    SEGMENT_TWIN_FROM = 32 << 10, /* segments with at least this capacity have a twin */
    RECORD_ALIGN = 8,
};

struct segment_head {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;
    uint64_t id;
    uint64_t first_index; /* 0 unless rewritten: the first record has it */
    uint64_t capacity;    /* length of the file in bytes */
    uint64_t spare[2];
    uint32_t salt;
    uint32_t crc; /* checksum of everything before it */
};
_Static_assert(sizeof(struct segment_head) == 64, "written to disk as it is");

/* A summary of a full segment, so that a start need not read the segment. */
struct segment_seal {
    uint64_t id;
    uint64_t first_index, last_index;
    int64_t first_revision, last_revision; /* 0 if it has none */
    uint64_t used_bytes;                   /* where the records end */
    uint64_t next_id;                      /* the segment in which the writer continued */
    uint32_t spare;
    uint32_t crc;
};
_Static_assert(sizeof(struct segment_seal) == 64, "written to disk as it is");

struct record_head {
    uint32_t crc; /* checksum of salt, the rest of the head, and the body */
    uint32_t len; /* length of head and body; the next record begins at the next multiple of 8 */
    uint64_t index;
    int64_t revision;
    /* index minus the index known to be durable then; all ones if it does not fit */
    uint32_t behind;
    uint8_t type;
    uint8_t check[3]; /* checksum of the salt and the head before it: detects a bad head without its
                         body */
};
enum { RECORD_HEAD_BYTES = sizeof(struct record_head) };
_Static_assert(RECORD_HEAD_BYTES == 32, "written to disk as it is");

/* Longer bodies are refused before anything is allocated. */
enum { RECORD_BODY_BYTES_MAX = 1 << 30 };

static inline size_t record_bytes(size_t body_bytes)
{
    return align_up(RECORD_HEAD_BYTES + body_bytes, RECORD_ALIGN);
}

/* Fills magic, version and crc. */
void segment_head_finish(struct segment_head *head);
/* ST_WRONG_FORMAT if it has another version; ST_DAMAGED for anything else that is not a head. */
MUST_CHECK
enum status segment_head_check(const struct segment_head *head);

void segment_seal_finish(struct segment_seal *seal);
/* ST_NOT_FOUND when it is absent (zeros), ST_DAMAGED when it is not a seal of this segment. */
MUST_CHECK
enum status segment_seal_check(const struct segment_seal *seal, const struct segment_head *head);

/*
 * Completes a record built in place: `at` points to head, body and padding, in which all but crc is
 * set.
 */
void record_finish(uint8_t *at, uint32_t salt);
/*
 * The same for a record that is written in pieces: sets the check in the head and returns the crc
 * so far, which crc32c() continues over the body.
 */
uint32_t record_start(uint8_t *head, uint32_t salt);

enum record_found {
    RECORD_GOOD,
    RECORD_NONE, /* zeros, or too few bytes for a head: records may end here */
    RECORD_BAD,
};
/* Checks the head alone: true when its check is right and the record would fit in bytes. */
bool record_head_check(struct slice bytes, uint32_t salt, struct record_head *ret_head);
/* Checks the record at the start of `bytes`, which extend to the end of the segment. */
enum record_found record_check(struct slice bytes, uint32_t salt, struct record_head *ret_head);

/* The checksum of a record's head, to be continued over its body, and the expected result. */
void record_sum_head(const uint8_t *at, uint32_t salt, uint32_t *ret_sum, uint32_t *ret_wanted);

/* The index that was durable when the record was written, as the record says. */
static inline uint64_t record_durable_index(const struct record_head *head)
{
    return head->behind < head->index ? head->index - head->behind : 0;
}

static inline uint32_t record_behind(uint64_t index, uint64_t durable_index)
{
    uint64_t behind = index - durable_index;
    return behind < UINT32_MAX ? (uint32_t)behind : UINT32_MAX;
}

/* Offset of the first byte that is not zero; bytes.len if there is none. */
size_t bytes_first_nonzero(struct slice bytes);

#endif
