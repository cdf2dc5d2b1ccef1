#include "store/backend/sum.h"

#include "base/crc32c.h"

/* The kind of entry, so that equal bytes count differently in different tables. */
enum { OF_VERSION = 1, OF_ROW, OF_SEGMENT, OF_NUMBER };

/* Spreads 32 bits of checksum over 64, so that sums of several entries do not cancel out. */
static uint64_t spread(uint32_t crc, unsigned kind, size_t bytes)
{
    uint64_t x = ((uint64_t)kind << 56 | (uint64_t)bytes << 32 | crc) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t sum_of(unsigned kind, struct slice key, struct slice value)
{
    return spread(crc32c(crc32c(kind, key), value), kind, key.len + value.len);
}

uint64_t sum_of_version(struct backend_version_id id, struct slice encoded)
{
    uint64_t key[] = {(uint64_t)id.revision, id.sub};
    return sum_of(OF_VERSION, slice_of(key, sizeof(key)), encoded);
}

uint64_t sum_of_row(const struct row *row)
{
    uint8_t table = (uint8_t)row->table;
    uint32_t crc = crc32c(crc32c(OF_ROW, slice_of(&table, 1)), row->key);
    return spread(crc32c(crc, row->value), OF_ROW, row->key.len);
}

uint64_t sum_of_segment(const struct backend_segment *segment)
{
    return sum_of(OF_SEGMENT, slice_of(segment, sizeof(*segment)), SLICE_EMPTY);
}
_Static_assert(sizeof(struct backend_segment) == 5 * sizeof(uint64_t), "has no padding");

uint64_t sum_of_numbers(const struct backend_numbers *numbers)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < BACKEND_SUM; i++) {
        if (!numbers->present[i])
            continue;
        uint64_t number[] = {i, (uint64_t)numbers->values[i]};
        sum += sum_of(OF_NUMBER, slice_of(number, sizeof(number)), SLICE_EMPTY);
    }
    return sum;
}
