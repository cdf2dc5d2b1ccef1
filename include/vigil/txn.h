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
 * The call changes everything or nothing. It has succeeded also if a comparison failed; see
 * vigil_txn_response.succeeded.
 *
 * Like a call, a transaction that is NULL or has run out of memory may be used on: its call is NULL
 * then.
 *
 * Threads: a transaction belongs to one thread at a time. Its call may be used on any thread.
 *
 * Errors: those of the operations (vigil/kv.h); VIGIL_ERROR_SERVER if a key is written twice, or if
 * there are more operations than the server permits (128, unless it is configured otherwise).
 */
#ifndef VIGIL_TXN_H
#define VIGIL_TXN_H

#include <vigil/kv.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_txn vigil_txn;

/* How the key's field must compare with the given value. */
enum vigil_comparison { VIGIL_EQUAL, VIGIL_GREATER, VIGIL_LESS, VIGIL_NOT_EQUAL };

/* Creates a transaction without comparisons and operations. NULL: out of memory. */
VIGIL_API vigil_txn *vigil_txn_new(vigil_client *client);
/* Frees the transaction, but not the calls that were made from it. Accepts NULL. */
VIGIL_API void vigil_txn_free(vigil_txn *txn);

/* Compares the version of a key. A key that does not exist has version 0. comparison is an enum
 * vigil_comparison, here and below. */
VIGIL_API void vigil_txn_if_version(vigil_txn *txn, vigil_bytes key, int comparison,
                                    int64_t version);
/* Compares the revision at which a key was created. It is 0 for a key that does not exist. */
VIGIL_API void vigil_txn_if_create_revision(vigil_txn *txn, vigil_bytes key, int comparison,
                                            int64_t revision);
/* Compares the revision at which a key was last written. It is 0 for a key that does not exist. */
VIGIL_API void vigil_txn_if_mod_revision(vigil_txn *txn, vigil_bytes key, int comparison,
                                         int64_t revision);
/* Compares the value of a key. The comparison fails for a key that does not exist. */
VIGIL_API void vigil_txn_if_value(vigil_txn *txn, vigil_bytes key, int comparison,
                                  vigil_bytes value);
/* Compares the lease of a key. It is 0 for a key without a lease. */
VIGIL_API void vigil_txn_if_lease(vigil_txn *txn, vigil_bytes key, int comparison, int64_t lease);

/* Operations that are added after this run if a comparison fails; those before it run if all
 * comparisons hold. */
VIGIL_API void vigil_txn_else(vigil_txn *txn);

/* Adds an operation that reads one key. */
VIGIL_API void vigil_txn_get(vigil_txn *txn, vigil_bytes key);
/* Adds an operation that reads a range of keys. The request is copied. */
VIGIL_API void vigil_txn_range(vigil_txn *txn, const vigil_range_request *request);
/* Adds an operation that writes a key. lease is the lease with which it expires, or 0. */
VIGIL_API void vigil_txn_put(vigil_txn *txn, vigil_bytes key, vigil_bytes value, int64_t lease);
/* Adds an operation that writes a key, with all options. The request is copied. */
VIGIL_API void vigil_txn_put_with(vigil_txn *txn, const vigil_put_request *request);
/* Adds an operation that deletes one key. */
VIGIL_API void vigil_txn_delete(vigil_txn *txn, vigil_bytes key);
/* Adds an operation that deletes a range of keys. The request is copied. */
VIGIL_API void vigil_txn_delete_with(vigil_txn *txn, const vigil_delete_request *request);
/* Adds a transaction as an operation of this one. It is copied. */
VIGIL_API void vigil_txn_nest(vigil_txn *txn, const vigil_txn *inner);

/* Makes a call from the transaction, which may be changed or freed afterwards. */
VIGIL_API vigil_call *vigil_txn_call(const vigil_txn *txn);

/* Which operation a response belongs to. */
enum vigil_op_kind {
    VIGIL_OP_NONE = 0,
    VIGIL_OP_RANGE = 1,
    VIGIL_OP_PUT = 2,
    VIGIL_OP_DELETE = 3,
    VIGIL_OP_TXN = 4
};

struct vigil_txn_response;

/* The answer to one operation of a transaction. */
typedef struct vigil_op_response {
    int kind; /* enum vigil_op_kind; says which member of `as` is set */
    union {
        const vigil_range_response *range;
        const vigil_put_response *put;
        const vigil_delete_response *removal;
        const struct vigil_txn_response *txn;
    } as;
} vigil_op_response;

/* The answer to a transaction. */
typedef struct vigil_txn_response {
    const vigil_header *header;
    uint8_t succeeded;                  /* all comparisons held */
    const vigil_op_response *responses; /* one for each operation that ran, in order */
    size_t response_count;
} vigil_txn_response;

/* The answer to a transaction whose call has succeeded. */
VIGIL_API const vigil_txn_response *vigil_txn_result(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
