/*
 * The answers of KV as bytes, by hand: they are small, hot, and their sizes must be known before
 * the first byte. What the store keeps, `12 len KeyValue`, goes in as it stands.
 *
 *     RangeResponse        0a header  12 KeyValue…  18 more  20 count
 *     PutResponse          0a header  12 KeyValue
 *     DeleteRangeResponse  0a header  10 deleted  1a KeyValue…
 *     TxnResponse          0a header  10 succeeded  1a ResponseOp…
 *
 * Only the outermost header names cluster, member and term; those inside a transaction hold a
 * revision alone, and a nested transaction's is empty: so etcd has it.
 */
#ifndef VIGIL_ETCD_SERVICE_KV_ENCODE_H
#define VIGIL_ETCD_SERVICE_KV_ENCODE_H

#include "base/memory/arena.h"
#include "codec/answer.h"
#include "codec/pb/pb.h"
#include "codec/pb/wire.h"

/* The ids of cluster and member as they stand in every header: long numbers, encoded once. */
struct kv_ids {
    uint8_t len;
    uint8_t bytes[2 * (1 + PB_VARINT_BYTES_MAX)];
};
void kv_ids_init(struct kv_ids *ids, uint64_t cluster_id, uint64_t member_id);

struct kv_header {
    const struct kv_ids *ids; /* NULL: none, as inside a transaction */
    int64_t revision;
    uint64_t raft_term;
};

/* Field 1 of every response. */
enum { KV_HEADER_BYTES_MAX = 2 + 4 * (1 + PB_VARINT_BYTES_MAX) };
size_t kv_header_size(const struct kv_header *header);
uint8_t *kv_header_write(uint8_t *dst, const struct kv_header *header);

/* What follows the key-values of a RangeResponse. */
enum { KV_RANGE_TAIL_BYTES_MAX = 2 + 1 + PB_VARINT_BYTES_MAX };
size_t kv_range_tail_size(bool more, int64_t count);
uint8_t *kv_range_tail_write(uint8_t *dst, bool more, int64_t count);

/*
 * The message that answers a write: sizes first, which are kept, since those of nested messages
 * stand before them. A transaction's plan holds one number per operation that ran, in the arena.
 */
struct kv_plan {
    const struct kv_answer *answer;
    struct kv_header header;
    size_t bytes;   /* of the whole message */
    size_t *nested; /* sizes of nested answers in the order they are written */
};

/* Borrows the answer. ST_NOMEM when the arena is exhausted. */
MUST_CHECK
enum status kv_plan_make(struct kv_plan *plan, const struct kv_answer *answer,
                         const struct kv_header *header, struct arena *arena);

/* Transactions inside each other: each takes two of the decoder's levels. */
enum { KV_DEPTH_MAX = PB_DEPTH_MAX / 2 + 1, KV_SMALL_BYTES_MAX = 128 };

/* Writes a plan, all at once or as there is room. Borrows it. */
struct kv_writer {
    const size_t *nested; /* the next size */
    unsigned depth;       /* transactions entered and not left */
    /* What is being written: some bytes, then fields, then some bytes. */
    uint8_t small_at, head_len, small_len;
    bool retagged; /* the fields stand under tag 1a */
    const struct slice *fields;
    size_t field_count;
    size_t field_at;        /* bytes of the first of them that are written */
    struct slice one_field; /* of a put */
    uint8_t small[KV_SMALL_BYTES_MAX];
    struct {
        const struct kv_txn_answer *txn;
        size_t next;
    } stack[KV_DEPTH_MAX];
};

void kv_writer_init(struct kv_writer *writer, const struct kv_plan *plan);
/* Less than room only at the end of the message. */
size_t kv_writer_fill(struct kv_writer *writer, uint8_t *dst, size_t room);

#endif
