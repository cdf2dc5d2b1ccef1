#include "etcd/shared/member_id.h"

#include "base/sha1.h"
#include "base/slices.h"
#include "base/xalloc.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t first_number(struct slice bytes)
{
    uint8_t digest[SHA1_BYTES];
    sha1(bytes, digest);
    uint64_t number = 0;
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | digest[i];
    return number;
}

uint64_t member_id_make(const struct slice *peer_urls, size_t count, struct slice token)
{
    size_t bytes = token.len;
    struct slice *sorted = xcalloc(count + 1, sizeof(*sorted));
    for (size_t i = 0; i < count; i++) {
        sorted[i] = peer_urls[i];
        bytes += peer_urls[i].len;
    }
    slices_sort(sorted, count);
    sorted[count] = token;

    uint8_t *joined = xmalloc(bytes + 1);
    size_t at = 0;
    for (size_t i = 0; i <= count; i++) {
        slice_copy(joined + at, sorted[i]);
        at += sorted[i].len;
    }
    uint64_t id = first_number(slice_of(joined, at));
    free(joined);
    free(sorted);
    return id;
}

uint64_t member_id_make_at(const struct slice *peer_urls, size_t count, int64_t unix_seconds)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, unix_seconds);
    return member_id_make(peer_urls, count, slice_from_text(text));
}

uint64_t cluster_id_make(uint64_t member_id)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(member_id >> (56 - 8 * i));
    return first_number(slice_of(bytes, sizeof(bytes)));
}
