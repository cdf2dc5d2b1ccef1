#include "kubeclient/data/list_reader.h"

#include "codec/json/string.h"
#include "codec/pb/wire.h"
#include "codec/utf8.h"
#include "kubeclient/data/protobuf.h"

#include <inttypes.h>
#include <vigil/kube/json.h>

/*
 *     begin ─{─► first key ─}─────────────────────────────► ended
 *                    │                                        ▲
 *                    ▼                                        }
 *            key ─► key text ─► colon ─:─► value ─► value text ─► comma
 *             ▲                              │                    ▲ │
 *             └──────────────────────────────┼─────────,──────────┼─┘
 *                                            [ of items           ]
 *                                            ▼                    │
 *                                        first item ─► item text ─► item comma ─,─► item ─┐
 *                                                         ▲                               │
 *                                                         └───────────────────────────────┘
 *
 * In a state that ends in "text" a value is cut off by the framer; in the others the next byte
 * decides, after white space. All but ended may move to failed. Protobuf:
 *
 *     magic ──► field head ◄──► field content
 */
enum list_state {
    LIST_BEGIN,
    LIST_FIRST_KEY,
    LIST_KEY,
    LIST_KEY_TEXT,
    LIST_COLON,
    LIST_VALUE,
    LIST_VALUE_TEXT,
    LIST_COMMA,
    LIST_FIRST_ITEM,
    LIST_ITEM,
    LIST_ITEM_TEXT,
    LIST_ITEM_COMMA,
    LIST_ENDED,
    LIST_MAGIC,
    LIST_FIELD_HEAD,
    LIST_FIELD_CONTENT,
    LIST_FAILED,
};

enum list_member { MEMBER_OTHER, MEMBER_KIND, MEMBER_API_VERSION, MEMBER_METADATA, MEMBER_ITEMS };

static const struct slice member_names[] = {
    [MEMBER_KIND] = {(const uint8_t *)"kind", 4},
    [MEMBER_API_VERSION] = {(const uint8_t *)"apiVersion", 10},
    [MEMBER_METADATA] = {(const uint8_t *)"metadata", 8},
    [MEMBER_ITEMS] = {(const uint8_t *)"items", 5},
};

#define TO(state) (1u << LIST_##state)

static const unsigned list_moves[] = {
    [LIST_BEGIN] = TO(FIRST_KEY) | TO(FAILED),
    [LIST_FIRST_KEY] = TO(KEY_TEXT) | TO(ENDED) | TO(FAILED),
    [LIST_KEY] = TO(KEY_TEXT) | TO(FAILED),
    [LIST_KEY_TEXT] = TO(COLON) | TO(FAILED),
    [LIST_COLON] = TO(VALUE) | TO(FAILED),
    [LIST_VALUE] = TO(VALUE_TEXT) | TO(FIRST_ITEM) | TO(FAILED),
    [LIST_VALUE_TEXT] = TO(COMMA) | TO(FAILED),
    [LIST_COMMA] = TO(KEY) | TO(ENDED) | TO(FAILED),
    [LIST_FIRST_ITEM] = TO(ITEM_TEXT) | TO(COMMA) | TO(FAILED),
    [LIST_ITEM] = TO(ITEM_TEXT) | TO(FAILED),
    [LIST_ITEM_TEXT] = TO(ITEM_COMMA) | TO(FAILED),
    [LIST_ITEM_COMMA] = TO(ITEM) | TO(COMMA) | TO(FAILED),
    [LIST_ENDED] = TO(FAILED),
    [LIST_MAGIC] = TO(FIELD_HEAD) | TO(FAILED),
    [LIST_FIELD_HEAD] = TO(FIELD_CONTENT) | TO(FAILED),
    [LIST_FIELD_CONTENT] = TO(FIELD_HEAD) | TO(FAILED),
    [LIST_FAILED] = 0,
};

static void move(struct list_reader *reader, enum list_state next)
{
    assert(list_moves[reader->state] & (1u << next));
    reader->state = (uint8_t)next;
}

void list_reader_init(struct list_reader *reader, enum framer_format format)
{
    *reader = (struct list_reader){.remaining = -1};
    reader->state = format == FRAMER_JSON ? LIST_BEGIN : LIST_MAGIC;
    framer_init(&reader->framer, format);
    reader->framer.bytes_max = LIST_ITEM_BYTES_MAX;
}

void list_reader_fini(struct list_reader *reader)
{
    framer_fini(&reader->framer);
    buf_fini(&reader->envelope);
    for (size_t i = 0; i < LIST_TEXTS; i++)
        buf_fini(&reader->texts[i]);
}

void list_reader_feed(struct list_reader *reader, struct slice bytes)
{
    reader->fed_bytes += bytes.len;
    framer_feed(&reader->framer, bytes);
}

static bool is_protobuf(const struct list_reader *reader)
{
    return reader->framer.format == FRAMER_PROTOBUF;
}

static bool has_seen(const struct list_reader *reader, enum list_member member)
{
    return reader->seen & (1u << member);
}

static void take_bytes(struct list_reader *reader, size_t n)
{
    struct slice *piece = &reader->framer.piece;
    *piece = slice_sub(*piece, n, piece->len - n);
}

/* -- Failures -- */

static const char *text_of_failure(const struct list_reader *reader, enum status status)
{
    if (status == ST_LIMIT)
        return "the list has an item that is too long";
    if (status == ST_NOMEM)
        return "there is no memory for the list";
    return is_protobuf(reader) ? "the server sent a list that is not valid protobuf"
                               : "the server sent a list that is not valid JSON";
}

static bool is_other_object(const struct list_reader *reader)
{
    return !has_seen(reader, MEMBER_ITEMS) && !list_reader_info(reader).item_kind.len;
}

static enum status not_a_list(const struct list_reader *reader, struct error *error)
{
    struct slice kind = list_reader_info(reader).kind;
    kind.len = size_min(kind.len, 64);
    return error_set(error, ST_MALFORMED, "the server sent no list, but an object of kind %.*s",
                     SLICE_ARGS(kind));
}

static enum status fail(struct list_reader *reader, enum status status, struct error *error)
{
    uint64_t at = reader->fed_bytes - reader->framer.piece.len;
    move(reader, LIST_FAILED);
    reader->failure = status;
    reader->framer.piece = SLICE_EMPTY; /* so that more may be fed all the same */
    if (status == ST_MALFORMED && reader->texts[LIST_KIND].len && is_other_object(reader))
        return not_a_list(reader, error);
    return error_set(error, status, "%s: at byte %" PRIu64 ", after %" PRIu64 " items",
                     text_of_failure(reader, status), at, reader->item_count);
}

/* -- JSON: members -- */

/* A value that is not a text is ignored. */
static enum status keep_text(struct list_reader *reader, enum list_text text, vigil_bytes value)
{
    size_t len;
    struct buf *to = &reader->texts[text];
    struct slice raw = slice_of(value.data, value.size);
    if (vigil_json_type_of(value) != VIGIL_JSON_TEXT)
        return ST_OK;
    if (raw.len > LIST_TEXT_BYTES_MAX)
        return ST_LIMIT;
    TRY(buf_reserve(to, raw.len));
    if (json_string_decode(raw, to->ptr, &len) != JSON_STRING_FINE)
        return ST_MALFORMED;
    to->len = len;
    return ST_OK;
}

static enum status keep_member(struct list_reader *reader, struct slice text)
{
    vigil_bytes value = vigil_bytes_of(text.ptr, text.len), part;
    switch (reader->member) {
    case MEMBER_KIND:
        return keep_text(reader, LIST_KIND, value);
    case MEMBER_API_VERSION:
        return keep_text(reader, LIST_API_VERSION, value);
    case MEMBER_METADATA:
        if (vigil_json_find(value, "resourceVersion", &part))
            TRY(keep_text(reader, LIST_VERSION, part));
        if (vigil_json_find(value, "continue", &part))
            TRY(keep_text(reader, LIST_CONTINUE, part));
        if (vigil_json_find(value, "remainingItemCount", &part) &&
            (!vigil_json_integer(part, &reader->remaining) || reader->remaining < 0))
            reader->remaining = -1;
        return ST_OK;
    case MEMBER_ITEMS: /* an array of items does not come here; null is an empty one */
        return vigil_json_type_of(value) == VIGIL_JSON_NULL ? ST_OK : ST_MALFORMED;
    default:
        return ST_OK;
    }
}

/* The member with this key; MEMBER_OTHER if the list has had it before. */
static uint8_t member_of(struct list_reader *reader, struct slice key)
{
    uint8_t member = MEMBER_KIND;
    struct slice inner = slice_sub(key, 1, key.len - 2);
    while (member <= MEMBER_ITEMS && !json_inner_is(inner, member_names[member]))
        member++;
    if (member > MEMBER_ITEMS || has_seen(reader, member))
        return MEMBER_OTHER;
    reader->seen |= (uint8_t)(1u << member);
    return member;
}

/* -- JSON: texts -- */

/* The framer has cut off what the state stands for. ST_OK: it is an item. */
static enum status take_text(struct list_reader *reader, struct slice text)
{
    struct json_scanner s;
    struct slice value;
    json_scanner_init(&s, text);
    if (!json_next_value(&s, &value) || value.len != text.len)
        return ST_MALFORMED;
    switch (reader->state) {
    case LIST_KEY_TEXT:
        reader->member = member_of(reader, text);
        move(reader, LIST_COLON);
        return ST_AGAIN;
    case LIST_VALUE_TEXT:
        TRY(keep_member(reader, text));
        move(reader, LIST_COMMA);
        return ST_AGAIN;
    default:
        reader->item_count++;
        move(reader, LIST_ITEM_COMMA);
        return ST_OK;
    }
}

/* -- JSON: bytes between texts -- */

/* A byte that leads from one state to another. It is consumed unless it begins a text. */
struct list_choice {
    char byte;
    uint8_t next;
};

static const struct list_choice choices[][2] = {
    [LIST_BEGIN] = {{'{', LIST_FIRST_KEY}},
    [LIST_FIRST_KEY] = {{'"', LIST_KEY_TEXT}, {'}', LIST_ENDED}},
    [LIST_KEY] = {{'"', LIST_KEY_TEXT}},
    [LIST_COLON] = {{':', LIST_VALUE}},
    [LIST_COMMA] = {{',', LIST_KEY}, {'}', LIST_ENDED}},
    [LIST_FIRST_ITEM] = {{'{', LIST_ITEM_TEXT}, {']', LIST_COMMA}},
    [LIST_ITEM] = {{'{', LIST_ITEM_TEXT}},
    [LIST_ITEM_COMMA] = {{',', LIST_ITEM}, {']', LIST_COMMA}},
    [LIST_ENDED] = {{0}},
};

static bool is_in_text(const struct list_reader *reader)
{
    return reader->state == LIST_KEY_TEXT || reader->state == LIST_VALUE_TEXT ||
           reader->state == LIST_ITEM_TEXT;
}

/* False: the byte may not be here. */
static bool choose(struct list_reader *reader, uint8_t byte)
{
    if (reader->state == LIST_VALUE) {
        /* The framer decides whether a value begins with the byte. */
        bool items = reader->member == MEMBER_ITEMS && byte == '[';
        move(reader, items ? LIST_FIRST_ITEM : LIST_VALUE_TEXT);
        if (items)
            take_bytes(reader, 1);
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(choices[0]); i++) {
        const struct list_choice *choice = &choices[reader->state][i];
        if (!choice->byte || (uint8_t)choice->byte != byte)
            continue;
        move(reader, choice->next);
        if (!is_in_text(reader))
            take_bytes(reader, 1);
        return true;
    }
    return false;
}

/* Up to the next text. ST_AGAIN: the piece is used up. */
static enum status pass_bytes(struct list_reader *reader)
{
    while (!is_in_text(reader)) {
        if (reader->framer.piece.len == 0)
            return ST_AGAIN;
        uint8_t byte = reader->framer.piece.ptr[0];
        if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')
            take_bytes(reader, 1);
        else if (!choose(reader, byte))
            return ST_MALFORMED;
    }
    return ST_OK;
}

/* An item that is complete in its piece: most are, and are examined only here. */
static bool take_whole_item(struct list_reader *reader, struct slice *ret_item)
{
    struct json_scanner s;
    if (reader->state != LIST_ITEM_TEXT)
        return false;
    json_scanner_init(&s, framer_peek(&reader->framer));
    if (!json_next_value(&s, ret_item) || ret_item->len > reader->framer.bytes_max)
        return false;
    framer_take(&reader->framer, ret_item->len);
    reader->item_count++;
    move(reader, LIST_ITEM_COMMA);
    return true;
}

static enum status next_in_json(struct list_reader *reader, struct slice *ret_item)
{
    struct slice text;
    for (;;) {
        TRY(pass_bytes(reader));
        if (take_whole_item(reader, ret_item))
            return ST_OK;
        TRY(framer_next(&reader->framer, &text));
        enum status status = take_text(reader, text);
        if (status == ST_OK)
            *ret_item = text;
        if (status != ST_AGAIN)
            return status;
    }
}

/* -- Protobuf -- */

static enum status keep_bytes(struct list_reader *reader, enum list_text text, struct slice bytes)
{
    if (bytes.len > LIST_TEXT_BYTES_MAX)
        return ST_LIMIT;
    if (!utf8_valid(bytes))
        return ST_MALFORMED;
    return buf_append(&reader->texts[text], bytes);
}

static enum status keep_type(struct list_reader *reader, struct slice type_meta)
{
    if (has_seen(reader, MEMBER_KIND))
        return ST_OK;
    reader->seen |= 1u << MEMBER_KIND;
    TRY(keep_bytes(reader, LIST_API_VERSION, protobuf_bytes(type_meta, TYPE_META_API_VERSION)));
    return keep_bytes(reader, LIST_KIND, protobuf_bytes(type_meta, TYPE_META_KIND));
}

static enum status keep_list_meta(struct list_reader *reader, struct slice meta)
{
    vigil_pb_value value;
    if (has_seen(reader, MEMBER_METADATA))
        return ST_OK;
    reader->seen |= 1u << MEMBER_METADATA;
    TRY(keep_bytes(reader, LIST_VERSION, protobuf_bytes(meta, LIST_META_VERSION)));
    TRY(keep_bytes(reader, LIST_CONTINUE, protobuf_bytes(meta, LIST_META_CONTINUE)));
    if (vigil_pb_find(vigil_bytes_of(meta.ptr, meta.len), "4", &value) &&
        value.type == VIGIL_PB_NUMBER && value.number <= INT64_MAX)
        reader->remaining = (int64_t)value.number;
    return ST_OK;
}

/* ST_OK: the content is an item, else ST_AGAIN. */
static enum status take_content(struct list_reader *reader, struct slice content)
{
    move(reader, LIST_FIELD_HEAD);
    if (reader->in_list && reader->field == LIST_ITEMS) {
        reader->item_count++;
        return ST_OK;
    }
    if (reader->in_list && reader->field == LIST_METADATA)
        TRY(keep_list_meta(reader, content));
    if (!reader->in_list && reader->field == UNKNOWN_TYPE_META)
        TRY(keep_type(reader, content));
    bool readable = reader->in_list ||
                    !((reader->field == UNKNOWN_ENCODING && content.len) ||
                      (reader->field == UNKNOWN_CONTENT_TYPE && !envelope_is_protobuf(content)));
    return readable ? ST_AGAIN : ST_MALFORMED;
}

/* What the head of a field says. */
struct field_head {
    uint64_t number;        /* number of the field */
    uint64_t content_bytes; /* that follow the head */
    bool is_bytes;          /* a text or a message */
};

/* ST_AGAIN: more bytes are needed. */
static enum status parse_head(const struct list_reader *reader, struct field_head *ret_head)
{
    uint64_t tag, value = 0;
    const uint8_t *end = reader->head + reader->head_length;
    const uint8_t *p = pb_varint_read(reader->head, end, &tag);
    if (!p)
        return reader->head_length < PB_VARINT_BYTES_MAX ? ST_AGAIN : ST_MALFORMED;
    uint64_t wire = tag & 7;
    bool is_fixed = wire == PB_WIRE_I32 || wire == PB_WIRE_I64;
    if (tag >> 3 < 1 || tag >> 3 > PB_NUMBER_MAX ||
        (!is_fixed && wire != PB_WIRE_VARINT && wire != PB_WIRE_LEN))
        return ST_MALFORMED;
    if (!is_fixed && !pb_varint_read(p, end, &value))
        return end - p < PB_VARINT_BYTES_MAX ? ST_AGAIN : ST_MALFORMED;
    *ret_head = (struct field_head){.number = tag >> 3, .is_bytes = wire == PB_WIRE_LEN};
    ret_head->content_bytes = is_fixed ? wire == PB_WIRE_I64 ? 8 : 4 : value;
    if (wire == PB_WIRE_VARINT)
        ret_head->content_bytes = 0;
    return ST_OK;
}

static enum status begin_content(struct list_reader *reader, const struct field_head *head)
{
    struct list_info info = list_reader_info(reader);
    bool is_item = reader->in_list && head->number == LIST_ITEMS && head->is_bytes;
    if (head->content_bytes > reader->framer.bytes_max)
        return ST_LIMIT;
    buf_reset(&reader->envelope, SIZE_MAX);
    if (is_item)
        TRY(envelope_append_head(&reader->envelope, info.api_version, info.item_kind,
                                 (size_t)head->content_bytes));
    TRY(framer_expect(&reader->framer, buf_slice(&reader->envelope),
                      (uint32_t)head->content_bytes));
    reader->field = head->is_bytes ? (uint32_t)head->number : 0; /* 0: of no interest */
    move(reader, LIST_FIELD_CONTENT);
    return ST_OK;
}

static enum status begin_field(struct list_reader *reader)
{
    struct field_head head;
    if (reader->in_list && reader->list_left == 0)
        reader->in_list = false;
    /* The head of a field may be cut anywhere by the end of a piece, so it is collected byte by
     * byte until it can be read. */
    enum status status = ST_AGAIN;
    while (status == ST_AGAIN && reader->framer.piece.len) {
        assert(reader->head_length < sizeof(reader->head));
        reader->head[reader->head_length++] = reader->framer.piece.ptr[0];
        take_bytes(reader, 1);
        status = parse_head(reader, &head);
    }
    TRY(status);
    uint64_t head_bytes = reader->head_length;
    reader->head_length = 0;
    if (!reader->in_list && head.number == UNKNOWN_RAW && head.is_bytes) {
        /* The kind, which comes before, tells that the numbers below have their meanings. */
        if (is_other_object(reader) || has_seen(reader, MEMBER_ITEMS))
            return ST_MALFORMED;
        reader->seen |= 1u << MEMBER_ITEMS;
        reader->in_list = true;
        reader->list_left = head.content_bytes;
        return ST_OK;
    }
    if (reader->in_list) {
        if (reader->list_left < head_bytes || reader->list_left - head_bytes < head.content_bytes)
            return ST_MALFORMED;
        reader->list_left -= head_bytes + head.content_bytes;
    }
    return begin_content(reader, &head);
}

static enum status next_in_protobuf(struct list_reader *reader, struct slice *ret_item)
{
    struct slice content;
    if (reader->state == LIST_MAGIC) {
        struct slice magic = SLICE_LITERAL("k8s\0");
        while (reader->head_length < magic.len) {
            if (reader->framer.piece.len == 0)
                return ST_AGAIN;
            if (reader->framer.piece.ptr[0] != magic.ptr[reader->head_length])
                return ST_MALFORMED;
            take_bytes(reader, 1);
            reader->head_length++;
        }
        reader->head_length = 0;
        move(reader, LIST_FIELD_HEAD);
    }
    for (;;) {
        while (reader->state == LIST_FIELD_HEAD)
            TRY(begin_field(reader));
        TRY(framer_next(&reader->framer, &content));
        enum status status = take_content(reader, content);
        if (status == ST_OK)
            *ret_item = content;
        if (status != ST_AGAIN)
            return status;
    }
}

/* Whether the body may end here. */
static bool is_at_end(const struct list_reader *reader)
{
    if (!is_protobuf(reader))
        return reader->state == LIST_ENDED;
    return reader->state == LIST_FIELD_HEAD && reader->head_length == 0 && reader->list_left == 0 &&
           has_seen(reader, MEMBER_KIND);
}

/* -- Results -- */

enum status list_reader_next(struct list_reader *reader, struct slice *ret_item,
                             struct error *error)
{
    if (reader->state == LIST_FAILED) {
        reader->framer.piece = SLICE_EMPTY;
        return error_set(error, reader->failure, "%s", text_of_failure(reader, reader->failure));
    }
    enum status status =
        is_protobuf(reader) ? next_in_protobuf(reader, ret_item) : next_in_json(reader, ret_item);
    return status == ST_OK || status == ST_AGAIN ? status : fail(reader, status, error);
}

enum status list_reader_end(struct list_reader *reader, struct error *error)
{
    assert(reader->framer.piece.len == 0);
    if (reader->state == LIST_FAILED)
        return error_set(error, reader->failure, "%s", text_of_failure(reader, reader->failure));
    if (!is_at_end(reader))
        return error_set(error, ST_MALFORMED,
                         "the list ended early: after %" PRIu64 " bytes and %" PRIu64 " items",
                         reader->fed_bytes, reader->item_count);
    return is_other_object(reader) ? not_a_list(reader, error) : ST_OK;
}

static struct slice item_kind(struct slice kind)
{
    struct slice list = SLICE_LITERAL("List");
    if (kind.len <= list.len || !slice_equal(slice_sub(kind, kind.len - list.len, list.len), list))
        return SLICE_EMPTY;
    return slice_sub(kind, 0, kind.len - list.len);
}

struct list_info list_reader_info(const struct list_reader *reader)
{
    struct slice kind = buf_slice(&reader->texts[LIST_KIND]);
    return (struct list_info){
        .kind = kind,
        .api_version = buf_slice(&reader->texts[LIST_API_VERSION]),
        .item_kind = item_kind(kind),
        .version = buf_slice(&reader->texts[LIST_VERSION]),
        .continue_token = buf_slice(&reader->texts[LIST_CONTINUE]),
        .remaining = reader->remaining,
        .is_protobuf = is_protobuf(reader),
    };
}

void list_reader_check(const struct list_reader *reader)
{
    framer_check(&reader->framer);
    assert(reader->state <= LIST_FAILED && reader->member <= MEMBER_ITEMS);
    assert((reader->state == LIST_FAILED) == (reader->failure != ST_OK));
    /* Only a text or the content of a field may be incomplete. */
    assert(reader->state == LIST_FAILED || reader->state == LIST_FIELD_CONTENT ||
           is_in_text(reader) || !framer_is_cut_off(&reader->framer));
    assert(reader->in_list || reader->list_left == 0);
    assert(reader->head_length <= sizeof(reader->head));
    assert(has_seen(reader, MEMBER_ITEMS) || reader->item_count == 0);
    assert(reader->remaining >= -1);
}
