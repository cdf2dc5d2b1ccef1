#include "store/log/format.h"

#include "base/crc32c.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "segments are written in little-endian order"
#endif

/* "vigilseg" when read as text */
static const uint64_t segment_magic = 0x6765736c69676976;

static uint32_t head_crc(const struct segment_head *head)
{
    return crc32c(0, slice_of(head, offsetof(struct segment_head, crc)));
}

void segment_head_finish(struct segment_head *head)
{
    head->magic = segment_magic;
    head->version = LOG_FORMAT_VERSION;
    head->crc = head_crc(head);
}

enum status segment_head_check(const struct segment_head *head)
{
    if (head->magic != segment_magic || head->crc != head_crc(head))
        return ST_DAMAGED;
    if (head->version != LOG_FORMAT_VERSION)
        return ST_WRONG_FORMAT;
    if (head->capacity < SEGMENT_RECORDS_OFFSET || head->capacity % RECORD_ALIGN)
        return ST_DAMAGED;
    return ST_OK;
}

static uint32_t seal_crc(const struct segment_seal *seal)
{
    return crc32c(0, slice_of(seal, offsetof(struct segment_seal, crc)));
}

void segment_seal_finish(struct segment_seal *seal)
{
    seal->crc = seal_crc(seal);
}

enum status segment_seal_check(const struct segment_seal *seal, const struct segment_head *head)
{
    if (bytes_first_nonzero(slice_of(seal, sizeof(*seal))) == sizeof(*seal))
        return ST_NOT_FOUND;
    if (seal->crc != seal_crc(seal) || seal->id != head->id)
        return ST_DAMAGED;
    if (seal->used_bytes < SEGMENT_RECORDS_OFFSET || seal->used_bytes > head->capacity ||
        seal->used_bytes % RECORD_ALIGN || seal->first_index == 0 ||
        seal->first_index > seal->last_index)
        return ST_DAMAGED;
    return ST_OK;
}

/*
 * One checksum runs over the record: its value after the fields of the head becomes the head's
 * check, its value at the end becomes crc.
 */
enum {
    CRC_FROM = sizeof(uint32_t),
    CHECK_FROM = offsetof(struct record_head, check),
};

static uint32_t record_crc_of_fields(const uint8_t *at, uint32_t salt)
{
    return crc32c(salt, slice_of(at + CRC_FROM, CHECK_FROM - CRC_FROM));
}

static uint32_t record_crc_of_rest(const uint8_t *at, size_t len, uint32_t crc)
{
    return crc32c(crc, slice_of(at + CHECK_FROM, len - CHECK_FROM));
}

uint32_t record_start(uint8_t *head, uint32_t salt)
{
    uint32_t crc = record_crc_of_fields(head, salt);
    memcpy(head + CHECK_FROM, &crc, sizeof(((struct record_head *)0)->check));
    return record_crc_of_rest(head, RECORD_HEAD_BYTES, crc);
}

void record_finish(uint8_t *at, uint32_t salt)
{
    uint32_t len;
    memcpy(&len, at + offsetof(struct record_head, len), sizeof(len));
    assert(len >= RECORD_HEAD_BYTES);
    uint32_t crc = record_start(at, salt);
    crc = crc32c(crc, slice_of(at + RECORD_HEAD_BYTES, len - RECORD_HEAD_BYTES));
    memcpy(at, &crc, sizeof(crc));
}

bool record_head_check(struct slice bytes, uint32_t salt, struct record_head *ret_head)
{
    if (bytes.len < RECORD_HEAD_BYTES)
        return false;
    struct record_head head;
    memcpy(&head, bytes.ptr, sizeof(head));
    if (head.len < RECORD_HEAD_BYTES || head.len > RECORD_HEAD_BYTES + RECORD_BODY_BYTES_MAX ||
        align_up(head.len, RECORD_ALIGN) > bytes.len || head.index == 0)
        return false;
    uint32_t crc = record_crc_of_fields(bytes.ptr, salt);
    if (memcmp(head.check, &crc, sizeof(head.check)) != 0)
        return false;
    *ret_head = head;
    return true;
}

enum record_found record_check(struct slice bytes, uint32_t salt, struct record_head *ret_head)
{
    struct record_head head;
    if (!record_head_check(bytes, salt, &head)) {
        size_t examined = size_min(bytes.len, RECORD_HEAD_BYTES);
        bool zeros = bytes_first_nonzero(slice_sub(bytes, 0, examined)) == examined;
        return zeros ? RECORD_NONE : RECORD_BAD;
    }
    uint32_t crc = record_crc_of_fields(bytes.ptr, salt);
    if (head.crc != record_crc_of_rest(bytes.ptr, head.len, crc))
        return RECORD_BAD;
    *ret_head = head;
    return RECORD_GOOD;
}

void record_sum_head(const uint8_t *at, uint32_t salt, uint32_t *ret_sum, uint32_t *ret_wanted)
{
    struct record_head head;
    memcpy(&head, at, sizeof(head));
    *ret_sum = record_crc_of_rest(at, RECORD_HEAD_BYTES, record_crc_of_fields(at, salt));
    *ret_wanted = head.crc;
}

size_t bytes_first_nonzero(struct slice bytes)
{
    const uint8_t *at = bytes.ptr;
    size_t i = 0;
    /* Whole cache lines first: most of a new segment is zeros. */
    for (; i + 64 <= bytes.len; i += 64) {
        uint64_t words[8];
        memcpy(words, at + i, sizeof(words));
        if (words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7])
            break;
    }
    while (i < bytes.len && at[i] == 0)
        i++;
    return i;
}
