/*
 * Transactions: comparisons, and operations that run if all of them hold, or otherwise.
 *
 *     vigil_txn *txn = vigil_txn_new(client);
 *     vigil_txn_if_create_revision(txn, vigil_text("lock"), VIGIL_EQUAL, 0);
 *     vigil_txn_put(txn, vigil_text("lock"), vigil_text("me"), lease);
 *     vigil_txn_else(txn);
 *     vigil_txn_get(txn, vigil_text("lock"));
 *     vigil_call *call = vigil_txn_call(txn);
 *     vigil_txn_free(txn);
 *
 * Like a call, a transaction that is NULL or has run out of memory may be used on: its call is NULL
 * then. A transaction belongs to one thread at a time.
 */
#ifndef VIGIL_TXN_H
#define VIGIL_TXN_H

#include <vigil/kv.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_txn vigil_txn;

enum vigil_comparison { VIGIL_EQUAL, VIGIL_GREATER, VIGIL_LESS, VIGIL_NOT_EQUAL };

VIGIL_API vigil_txn *vigil_txn_new(vigil_client *client);
/* Accepts NULL. */
VIGIL_API void vigil_txn_free(vigil_txn *txn);

/* A key that does not exist has version 0 and revisions of 0. */
VIGIL_API void vigil_txn_if_version(vigil_txn *txn, vigil_bytes key, int comparison,
                                    int64_t version);
VIGIL_API void vigil_txn_if_create_revision(vigil_txn *txn, vigil_bytes key, int comparison,
                                            int64_t revision);
VIGIL_API void vigil_txn_if_mod_revision(vigil_txn *txn, vigil_bytes key, int comparison,
                                         int64_t revision);
VIGIL_API void vigil_txn_if_value(vigil_txn *txn, vigil_bytes key, int comparison,
                                  vigil_bytes value);
VIGIL_API void vigil_txn_if_lease(vigil_txn *txn, vigil_bytes key, int comparison, int64_t lease);

/* What is added from now on runs if a comparison fails. */
VIGIL_API void vigil_txn_else(vigil_txn *txn);

VIGIL_API void vigil_txn_get(vigil_txn *txn, vigil_bytes key);
VIGIL_API void vigil_txn_range(vigil_txn *txn, const vigil_range_request *request);
VIGIL_API void vigil_txn_put(vigil_txn *txn, vigil_bytes key, vigil_bytes value, int64_t lease);
VIGIL_API void vigil_txn_put_with(vigil_txn *txn, const vigil_put_request *request);
VIGIL_API void vigil_txn_delete(vigil_txn *txn, vigil_bytes key);
VIGIL_API void vigil_txn_delete_with(vigil_txn *txn, const vigil_delete_request *request);
/* A transaction inside this one; it is copied. */
VIGIL_API void vigil_txn_nest(vigil_txn *txn, const vigil_txn *inner);

/* The transaction may be changed or freed afterwards. */
VIGIL_API vigil_call *vigil_txn_call(const vigil_txn *txn);

enum vigil_op_kind {
    VIGIL_OP_NONE = 0,
    VIGIL_OP_RANGE = 1,
    VIGIL_OP_PUT = 2,
    VIGIL_OP_DELETE = 3,
    VIGIL_OP_TXN = 4
};

struct vigil_txn_response;

typedef struct vigil_op_response {
    int kind; /* enum vigil_op_kind */
    union {
        const vigil_range_response *range;
        const vigil_put_response *put;
        const vigil_delete_response *removal;
        const struct vigil_txn_response *txn;
    } as;
} vigil_op_response;

typedef struct vigil_txn_response {
    const vigil_header *header;
    uint8_t succeeded;                  /* all comparisons held */
    const vigil_op_response *responses; /* one for each operation that ran, in order */
    size_t response_count;
} vigil_txn_response;

VIGIL_API const vigil_txn_response *vigil_txn_result(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
