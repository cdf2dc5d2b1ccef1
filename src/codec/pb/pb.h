/*
 * Protobuf messages as plain C structs, coded by tables that tools/pbgen.py makes from proto/.
 *
 *     proto/kv.proto ──► codec/pb/kv.pb.h: struct pb_key_value, pb_key_value_table
 *
 * A message RangeRequest is a struct pb_range_request and a table pb_range_request_table. In it
 *     bytes, string     struct slice
 *     enum              int32_t: a peer may send a number that has no name
 *     sub-message       pointer, NULL when absent
 *     repeated x        pointer x and size_t x_count
 *     oneof x           enum x_case (the number of the field that is set) and an anonymous union
 *
 * Decoding follows Go's protobuf, which etcd uses: the last value of a field wins, repeated
 * occurrences of a sub-message are merged, unknown fields and wrong wire types are skipped, numbers
 * have at most ten bytes, repeated numbers may be packed or not, invalid UTF-8 in a string is an
 * error. Encoding gives the same bytes as Go and C++: ascending fields, defaults left out. Unknown
 * fields are dropped.
 */
#ifndef VIGIL_CODEC_PB_PB_H
#define VIGIL_CODEC_PB_PB_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "base/slice.h"
#include "base/status.h"

/* Depth of nested sub-messages and unknown groups. Go allows 10,000, C++ and Java 100. */
enum { PB_DEPTH_MAX = 100 };

/* No item of a repeated field is larger; a test checks the tables. */
enum { PB_ITEM_BYTES_MAX = 64 };

enum pb_kind {
    PB_KIND_BOOL,
    PB_KIND_INT32,
    PB_KIND_UINT32,
    PB_KIND_ENUM,
    PB_KIND_INT64,
    PB_KIND_UINT64,
    PB_KIND_STRING,
    PB_KIND_BYTES,
    PB_KIND_MESSAGE,
};

enum pb_label { PB_SINGULAR, PB_REPEATED, PB_ONEOF };

struct pb_enum_value {
    int32_t number;
    const char *name; /* also its JSON form */
};

struct pb_enum {
    const char *name; /* "etcdserverpb.AlarmType" */
    const struct pb_enum_value *values;
    size_t value_count;
};

struct pb_field {
    uint32_t tag;         /* as encoders write it: repeated numbers packed */
    uint16_t offset;      /* offset of the value, or for a repeated field of its struct pb_array */
    uint16_t case_offset; /* PB_ONEOF: of the case */
    uint16_t item_bytes;  /* size of the value in the struct, or of one item of a repeated field */
    uint8_t kind;         /* enum pb_kind */
    uint8_t label;        /* enum pb_label */
    union {
        const struct pb_message *message; /* PB_KIND_MESSAGE */
        const struct pb_enum *enumeration;
    };
    const char *name;      /* as in the proto file: the name in the JSON of etcd's gateway */
    const char *json_name; /* lowerCamel: the name in proto3-JSON; readers accept both */
};

/* The representation of a repeated field in its struct. */
struct pb_array {
    void *items;
    size_t count;
};

enum { PB_DIRECT_NUMBERS = 16 };

struct pb_message {
    const struct pb_field *fields; /* ascending by number */
    uint16_t field_count;
    uint16_t struct_bytes;
    uint8_t direct[PB_DIRECT_NUMBERS]; /* 1 + index of the field with this number; 0: none */
    const char *name;                  /* "etcdserverpb.RangeRequest" */
};

/* All messages that have a table. */
extern const struct pb_message *const pb_messages[];
extern const size_t pb_message_count;

static inline uint32_t pb_field_number(const struct pb_field *field)
{
    return field->tag >> 3;
}

/* NULL: the message has no such field. */
const struct pb_field *pb_field_find(const struct pb_message *type, uint32_t number);

/*
 * Decodes one message into *ret_struct, which has type->struct_bytes bytes and need not be
 * initialised. Slices in it point into bytes; arrays and sub-messages are in the arena.
 *
 * ST_MALFORMED: the bytes are not such a message; ST_LIMIT: it nests deeper than PB_DEPTH_MAX or is
 * larger than the arena allows; ST_NOMEM. After an error *ret_struct is undefined.
 *
 * Memory: an empty item of a repeated field takes two bytes on the wire and at most
 * PB_ITEM_BYTES_MAX here, so a hostile message takes up to 32 times its length; an ordinary one,
 * whose bytes are in keys and values, takes a fraction of its length. The arena's limit bounds it.
 * Arrays are allocated at their final size; only one that is merged from pieces leaves smaller ones
 * unused.
 */
MUST_CHECK
enum status pb_decode(const struct pb_message *type, struct slice bytes, struct arena *arena,
                      void *ret_struct);

/* The encoded length. */
size_t pb_size(const struct pb_message *type, const void *message);

/* Writes exactly size bytes to dst, where size is the result of pb_size for the same message. */
void pb_encode(const struct pb_message *type, const void *message, uint8_t *dst, size_t size);

/* Appends the encoded message. */
MUST_CHECK
enum status pb_append(const struct pb_message *type, const void *message, struct buf *out);

#endif
