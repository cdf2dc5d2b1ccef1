/*
 * Encodes the responses of KV. This is written by hand because the responses are small and
 * frequent, and their sizes must be known before the first byte. Key-values are copied in their
 * stored form, `12 len KeyValue`.
 *
 *     RangeResponse        0a header  12 KeyValue…  18 more  20 count
 *     PutResponse          0a header  12 KeyValue
 *     DeleteRangeResponse  0a header  10 deleted  1a KeyValue…
 *     TxnResponse          0a header  10 succeeded  1a ResponseOp…
 *
 * As in etcd, only the outermost header has the ids of cluster and member and the term. Headers
 * inside a transaction have only a revision, and that of a nested transaction is empty.
 */
#ifndef VIGIL_ETCD_SHARED_KV_ENCODE_H
#define VIGIL_ETCD_SHARED_KV_ENCODE_H

#include "base/memory/arena.h"
#include "codec/answer.h"
#include "codec/pb/pb.h"
#include "codec/pb/wire.h"

/* Up to this length a response is encoded directly into the call's output. A longer one becomes a
 * source, which is encoded as the connection has room. */
enum { KV_DIRECT_BYTES_MAX = 16 * 1024 };

/* The encoded ids of cluster and member, which are the same in every header. */
struct kv_ids {
    uint8_t len;
    uint8_t bytes[2 * (1 + PB_VARINT_BYTES_MAX)];
};
void kv_ids_init(struct kv_ids *ids, uint64_t cluster_id, uint64_t member_id);

struct kv_header {
    const struct kv_ids *ids; /* NULL inside a transaction */
    int64_t revision;
    uint64_t raft_term;
};

/* Field 1 of every response. */
enum { KV_HEADER_BYTES_MAX = 2 + 4 * (1 + PB_VARINT_BYTES_MAX) };
size_t kv_header_size(const struct kv_header *header);
uint8_t *kv_header_write(uint8_t *dst, const struct kv_header *header);

/* The fields after the key-values of a RangeResponse. */
enum { KV_RANGE_TAIL_BYTES_MAX = 2 + 1 + PB_VARINT_BYTES_MAX };
size_t kv_range_tail_size(bool more, int64_t count);
uint8_t *kv_range_tail_write(uint8_t *dst, bool more, int64_t count);

/*
 * The response to a write, with the sizes of all messages in it, because each nested message is
 * preceded by its size. The plan of a transaction has one size per operation that ran, in the
 * arena.
 */
struct kv_plan {
    const struct kv_answer *answer;
    struct kv_header header;
    size_t bytes;   /* size of the whole message */
    size_t *nested; /* sizes of nested answers, in the order in which they are written */
};

/* Borrows the answer. ST_NOMEM when the arena is exhausted. */
MUST_CHECK
enum status kv_plan_make(struct kv_plan *plan, const struct kv_answer *answer,
                         const struct kv_header *header, struct arena *arena);

/* Nested transactions: each takes two of the decoder's levels. */
enum { KV_DEPTH_MAX = PB_DEPTH_MAX / 2 + 1, KV_SMALL_BYTES_MAX = 128 };

/* Writes a plan, in one or several pieces. Borrows the plan. */
struct kv_writer {
    const size_t *nested; /* the next size */
    unsigned depth;       /* depth of the transaction that is being written */
    /* The answer that is being written: small bytes, then fields, then small bytes. */
    uint8_t small_at, head_len, small_len;
    bool retagged; /* the fields are written with the tag 1a instead of 12 */
    const struct slice *fields;
    size_t field_count;
    size_t field_at;        /* bytes of the current field that are written */
    struct slice one_field; /* the only field of a put */
    uint8_t small[KV_SMALL_BYTES_MAX];
    struct {
        const struct kv_txn_answer *txn;
        size_t next;
    } stack[KV_DEPTH_MAX];
};

void kv_writer_init(struct kv_writer *writer, const struct kv_plan *plan);
/* Returns less than room only at the end of the message. */
size_t kv_writer_fill(struct kv_writer *writer, uint8_t *dst, size_t room);

#endif
