#include "store/log/mend.h"

#include "base/crc32c.h"

/* -- The salt -- */

/* The state before a byte, by the upper byte of the state after it. */
struct crc_back {
    uint32_t table[256];
    uint8_t place[256]; /* place of the entry with this upper byte */
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

bool segment_heads_resemble(const struct segment_head *a, const struct segment_head *b)
{
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
    size_t equal = 0, zeros = 0;
    for (size_t i = 0; i < sizeof(*a); i++) {
        equal += x[i] == y[i];
        zeros += x[i] == 0 && y[i] == 0;
    }
    /* Half of a head is zeros, and so is an unused place for a twin. */
    return equal >= sizeof(*a) * 3 / 4 && equal > zeros &&
           equal - zeros >= (sizeof(*a) - zeros) / 2;
}

/* The twin is whole and belongs to this segment. */
static bool twin_read(struct slice file, uint64_t id, struct segment_head *ret_twin)
{
    if (file.len < SEGMENT_RECORDS_OFFSET + SEGMENT_TWIN_BYTES)
        return false;
    memcpy(ret_twin, file.ptr + file.len - SEGMENT_TWIN_BYTES, sizeof(*ret_twin));
    return segment_head_check(ret_twin) == ST_OK && ret_twin->id == id &&
           ret_twin->capacity == file.len;
}

/* Whether a record from there on is readable with the salt. */
static bool salt_fits(struct slice file, size_t from, uint32_t salt)
{
    struct record_head head;
    for (size_t offset = from; offset + RECORD_HEAD_BYTES <= file.len; offset += RECORD_ALIGN) {
        struct slice rest = slice_sub(file, offset, file.len - offset);
        if (record_head_check(rest, salt, &head) && record_check(rest, salt, &head) == RECORD_GOOD)
            return true;
    }
    return false;
}

/* Perhaps the salt is intact, and another byte of the head is the damaged one. */
static bool find_salt(struct slice file, uint32_t stored, uint32_t *ret_salt)
{
    struct slice records =
        slice_sub(file, SEGMENT_RECORDS_OFFSET, file.len - SEGMENT_RECORDS_OFFSET);
    struct record_head first;
    *ret_salt = stored;
    if (salt_fits(file, SEGMENT_RECORDS_OFFSET, stored))
        return true;
    uint32_t salt;
    if (!record_find_salt(records, &salt))
        return false;
    memcpy(&first, records.ptr, sizeof(first));
    size_t next = SEGMENT_RECORDS_OFFSET + align_up(first.len, RECORD_ALIGN);
    struct slice rest = slice_sub(file, next, file.len - next);
    if (!salt_fits(file, next, salt) && bytes_first_nonzero(rest) < rest.len)
        return false;
    *ret_salt = salt;
    return true;
}

enum segment_head_found segment_head_mend(struct slice file, uint64_t id,
                                          struct segment_head *ret_head, bool *ret_has_twin)
{
    struct segment_head head, twin = {0};
    struct segment_seal seal;
    memcpy(&head, file.ptr, sizeof(head));
    memcpy(&seal, file.ptr + SEGMENT_SEAL_OFFSET, sizeof(seal));
    *ret_head = head;
    bool has_twin = twin_read(file, id, &twin);
    *ret_has_twin = has_twin || segment_heads_resemble(&head, &twin);
    if (segment_head_check(&head) == ST_OK && head.id == id)
        return SEGMENT_HEAD_INTACT;
    if (has_twin) {
        *ret_head = twin;
        return SEGMENT_HEAD_MENDED;
    }
    uint32_t salt;
    bool is_sure = find_salt(file, head.salt, &salt);
    *ret_head = (struct segment_head){.id = id, .capacity = file.len, .salt = salt};
    /*
     * The cleaner's copies end with their last record, segments of the writer hardly ever do. To
     * take a segment for a copy is the safe mistake: what a copy lacks is not believed to be gone.
     */
    if (segment_seal_check(&seal, ret_head) == ST_OK &&
        (seal.used_bytes == file.len || seal.used_bytes + SEGMENT_TWIN_BYTES == file.len)) {
        ret_head->flags = SEGMENT_REWRITTEN;
        ret_head->first_index = seal.first_index;
    }
    segment_head_finish(ret_head);
    return is_sure ? SEGMENT_HEAD_MENDED : SEGMENT_HEAD_GUESSED;
}
