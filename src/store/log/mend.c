#include "store/log/mend.h"

#include "base/crc32c.h"

/* -- The salt -- */

/* The state before a byte, by the upper byte of the state after it. */
struct crc_back {
    uint32_t table[256];
    uint8_t place[256]; /* of the entry with this upper byte */
};

static void crc_back_init(struct crc_back *back)
{
    for (unsigned i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        /* With a state of zero, the byte alone chooses the entry. */
        back->table[i] = ~crc32c(UINT32_MAX, slice_of(&byte, 1));
        back->place[back->table[i] >> 24] = byte;
    }
}

static uint32_t crc_back_over(const struct crc_back *back, uint32_t crc, struct slice bytes)
{
    uint32_t state = ~crc;
    for (size_t i = bytes.len; i-- > 0;) {
        uint8_t place = back->place[state >> 24];
        state = (state ^ back->table[place]) << 8 | (uint8_t)(place ^ bytes.ptr[i]);
    }
    return ~state;
}

bool record_find_salt(struct slice bytes, uint32_t *ret_salt)
{
    enum { CRC_BYTES = 4, CHECK_FROM = offsetof(struct record_head, check) };
    struct record_head head, found;
    if (bytes.len < RECORD_HEAD_BYTES)
        return false;
    memcpy(&head, bytes.ptr, sizeof(head));
    if (head.len < RECORD_HEAD_BYTES || align_up(head.len, RECORD_ALIGN) > bytes.len)
        return false;
    struct crc_back back;
    crc_back_init(&back);
    uint32_t salt =
        crc_back_over(&back, head.crc, slice_of(bytes.ptr + CRC_BYTES, head.len - CRC_BYTES));
    /* Any bytes have a salt for their checksum; the check of the head verifies it. */
    if (record_check(bytes, salt, &found) != RECORD_GOOD)
        return false;
    *ret_salt = salt;
    return true;
}

/* -- The head -- */

bool segment_head_mend(struct slice file, uint64_t id, struct segment_head *ret_head)
{
    struct segment_head head;
    struct segment_seal seal;
    memcpy(&head, file.ptr, sizeof(head));
    memcpy(&seal, file.ptr + SEGMENT_SEAL_OFFSET, sizeof(seal));
    *ret_head = head;
    if (segment_head_check(&head) == ST_OK && head.id == id)
        return false;
    struct slice records =
        slice_sub(file, SEGMENT_RECORDS_OFFSET, file.len - SEGMENT_RECORDS_OFFSET);
    uint32_t salt = head.salt; /* perhaps another byte is the damaged one */
    (void)record_find_salt(records, &salt);
    *ret_head = (struct segment_head){.id = id, .capacity = file.len, .salt = salt};
    /*
     * The cleaner's copies end with their last record, segments of the writer hardly ever do. To
     * take a segment for a copy is the safe mistake: what a copy lacks is not believed to be gone.
     */
    if (segment_seal_check(&seal, ret_head) == ST_OK && seal.used_bytes == file.len) {
        ret_head->flags = SEGMENT_REWRITTEN;
        ret_head->first_index = seal.first_index;
    }
    segment_head_finish(ret_head);
    return true;
}
