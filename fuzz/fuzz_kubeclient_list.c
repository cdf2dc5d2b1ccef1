/* Any bytes as the body of a list. The highest bit of the first byte chooses the format, and the
 * byte is the seed for how the rest is cut into pieces: the result is the same as that of one
 * piece.
 */
#include "cost.h"

#include "codec/json/scanner.h"
#include "kubeclient/data/list_reader.h"
#include "kubeclient/data/protobuf.h"

#include <assert.h>

/* The bytes of a long field are skipped without a look at each, so that short ones after it would
 * look like work that grows faster than the input. */
enum { ITEM_BYTES_MAX = 1024, PROTOBUF_BYTES_MAX = 4096 };

/* What a reader has returned. */
struct result {
    uint64_t digest; /* digest of all items, and of what the list says about itself */
    size_t count;
    enum status status;
};

static uint64_t digest_of(uint64_t digest, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        digest = (digest ^ bytes.ptr[i]) * 0x100000001b3u;
    return (digest ^ bytes.len) * 0x100000001b3u;
}

static void check_item(const struct list_reader *reader, struct slice item)
{
    struct json_scanner s;
    struct slice value;
    struct envelope envelope;
    if (reader->framer.format == FRAMER_PROTOBUF) {
        assert(envelope_read(item, &envelope) && envelope.message.len <= ITEM_BYTES_MAX);
        assert(slice_equal(envelope.kind, list_reader_info(reader).item_kind));
        return;
    }
    json_scanner_init(&s, item);
    assert(item.len <= ITEM_BYTES_MAX && item.ptr[0] == '{');
    assert(json_next_value(&s, &value) && value.len == item.len);
}

static enum status take_items(struct list_reader *reader, struct result *result)
{
    enum status status;
    struct slice item;
    struct error error = {0};
    while ((status = list_reader_next(reader, &item, &error)) == ST_OK) {
        list_reader_check(reader);
        check_item(reader, item);
        result->count++;
        result->digest = digest_of(result->digest, item);
    }
    list_reader_check(reader);
    assert((status == ST_AGAIN) == (error.text[0] == 0));
    return status;
}

static void add_info(struct list_info info, struct result *result)
{
    const struct slice texts[] = {info.kind, info.api_version, info.version, info.continue_token};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert(texts[i].len <= LIST_TEXT_BYTES_MAX);
        result->digest = digest_of(result->digest, texts[i]);
    }
    result->digest = digest_of(result->digest, slice_of(&info.remaining, sizeof(info.remaining)));
    assert(info.remaining >= -1 && info.item_kind.len <= info.kind.len);
}

/* seed 0: in one piece. */
static struct result read_list(struct slice body, enum framer_format format, uint32_t seed)
{
    struct list_reader reader;
    struct error error;
    struct result result = {.status = ST_AGAIN};
    list_reader_init(&reader, format);
    reader.framer.bytes_max = ITEM_BYTES_MAX;
    for (size_t at = 0; at < body.len && result.status == ST_AGAIN;) {
        bool whole = seed == 0;
        seed = seed * 1664525u + 1013904223u;
        size_t n = whole ? body.len : 1 + (seed >> 8) % (seed >> 30 ? 20 : 2000);
        n = size_min(n, body.len - at);
        list_reader_feed(&reader, slice_sub(body, at, n));
        result.status = take_items(&reader, &result);
        at += n;
    }
    if (result.status == ST_AGAIN)
        result.status = list_reader_end(&reader, &error);
    add_info(list_reader_info(&reader), &result);
    list_reader_fini(&reader);
    return result;
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    struct slice body = slice_of(data + 1, size - 1);
    enum framer_format format = data[0] & 0x80 ? FRAMER_PROTOBUF : FRAMER_JSON;
    if (format == FRAMER_PROTOBUF)
        body.len = size_min(body.len, PROTOBUF_BYTES_MAX);
    struct result whole = read_list(body, format, 0);
    struct result pieces = read_list(body, format, 1 + data[0]);
    assert(whole.status != ST_NOMEM && whole.status == pieces.status);
    assert(whole.digest == pieces.digest && whole.count == pieces.count);
    return 0;
}
