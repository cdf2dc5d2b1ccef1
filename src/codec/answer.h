/*
 * The answer of a key-value operation before it is encoded as a message: counts, flags, and
 * key-values as they are encoded in the store. A field is `12 len KeyValue`, the exact bytes of a
 * range response and of a watch event. The store makes answers, the APIs encode them.
 *
 * Everything is borrowed: arrays from the operation's arena, fields from the store or the arena.
 */
#ifndef VIGIL_CODEC_ANSWER_H
#define VIGIL_CODEC_ANSWER_H

#include "base/slice.h"

/* The answer to a range inside a transaction. keys_only is already applied. */
struct kv_range_answer {
    const struct slice *fields;
    size_t field_count;
    uint64_t fields_bytes;
    int64_t count;
    bool more;
};

struct kv_put_answer {
    struct slice prev_field; /* `12 len KeyValue` of the previous version, or empty */
};

struct kv_delete_answer {
    int64_t deleted;
    const struct slice *prev_fields; /* `12 len KeyValue`; in a response their tag is 1a */
    size_t prev_field_count;
    uint64_t prev_fields_bytes;
};

enum kv_answer_kind { KV_ANSWER_RANGE, KV_ANSWER_PUT, KV_ANSWER_DELETE, KV_ANSWER_TXN };

struct kv_answer; /* answer of one operation in a transaction */

struct kv_txn_answer {
    bool succeeded;
    struct kv_answer *answers; /* one per operation of the branch taken, in order */
    size_t answer_count;
};

struct kv_answer {
    enum kv_answer_kind kind;
    int64_t revision; /* for the header of this inner response */
    union {
        struct kv_range_answer range;
        struct kv_put_answer put;
        struct kv_delete_answer delete_range;
        struct kv_txn_answer txn;
    };
};

#endif
